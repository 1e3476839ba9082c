"""Rows that an iteration is solved backwards through."""

import numpy as np
import pytest

import tapeless as tp
from tapeless.ops.table import TABLE

FUNCTIONS = {
    "exp": np.exp, "log": np.log, "expm1": np.expm1, "log1p": np.log1p, "sinh": np.sinh, "asinh": np.arcsinh,
}  # fmt: skip


def test_every_function_with_a_rounded_inverse_is_here() -> None:
    rounded = {name for name, row in TABLE.items() if row.arity == 1 and any(i and i.rounded for i in row.inverse)}
    assert rounded == set(FUNCTIONS)


@pytest.mark.parametrize("name", FUNCTIONS)
def test_functions_with_an_inverse(name: str) -> None:
    function = FUNCTIONS[name]

    def loop(x, n):
        for i in range(n):
            x = 0.3 * function(x) + 0.9
        return x * x

    for n in (0, 1, 4):
        expected = tp.grad(loop, recover="store")(0.7, n)
        np.testing.assert_allclose(tp.grad(loop, recover="invert")(0.7, n), expected, rtol=1e-9)


def test_quotients_and_differences() -> None:
    def loop(x, y, n):
        for i in range(n):
            x = (1.5 - x) / 1.25
            y = y * 1.125 - x
        return x * y

    expected = tp.grad(loop, (0, 1), recover="store")(0.7, 0.4, 6)
    np.testing.assert_allclose(tp.grad(loop, (0, 1), recover="invert")(0.7, 0.4, 6), expected, rtol=1e-9)
