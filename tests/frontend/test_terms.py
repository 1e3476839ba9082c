"""Terms of an expression over whole arrays are one map; see Note [Terms of an expression] in frontend/data/maps.py."""

from dataclasses import dataclass
from typing import Any

import numpy as np
import pytest

import tapeless as tp
from tapeless.ir.core import Sweep
from tapeless.ir.walk import all_stms
from tapeless.testing.sized import module

X, Y = np.array([1.0, -2.0, 3.5]), np.array([0.5, 4.0, -1.25])
A = np.arange(12.0).reshape(4, 3)


def maps(f, *args):
    """How many maps the program has as it was traced, once it has given what Python gives."""
    want = f(*[a.copy() for a in args])
    function = tp.function(f)
    got = function(*[a.copy() for a in args])
    np.testing.assert_allclose(got, want, rtol=1e-14)
    assert np.asarray(got).dtype == np.asarray(want).dtype
    body = function.compiled(*args).traced.core.body
    return sum(isinstance(s.exp, Sweep) for s in all_stms(body))


@pytest.mark.parametrize("f, args, count", [
    (lambda x, y: x * 2.0 + y * x - 1.0, (X, Y), 1),
    (lambda x, y: (x + y) * (x - y) / (x * x + 1.0), (X, Y), 1),
    (lambda a: a * 2.0 + a * a, (A,), 2),  # of rows, and inside
    (lambda a, x: a * x + a * 0.5, (A, X), 2),
    (lambda x: x[1:] * 2.0 + x[:-1] * 3.0, (X,), 1),
    (lambda x: (x > 0.0) * x + 1.0, (X,), 2),  # a comparison is no operator
    (lambda x: np.exp(x) * 2.0 + np.exp(x) * 3.0, (X,), 3),  # calls are made once
    (lambda a, x: a + x * 2.0, (A, X), 3),  # once, not for each row
    (lambda a, x: a + (x[:, None] * 2.0)[:1], (A, X), 4),  # the slice is a view
])  # fmt: skip
def test_terms_are_one_map(f, args, count):
    assert maps(f, *args) == count


def test_a_name_is_no_term():
    def f(x):
        y = x * 2.0
        z = y + 1.0
        return z * y

    assert maps(f, X) == 3


def test_a_name_in_an_expression_is_no_term():
    def f(x):
        z = (y := x * 2.0) + 1.0
        return z * y

    assert maps(f, X) == 3


@dataclass
class Kept:
    """Its sum is an array that it keeps."""

    total: Any

    def __add__(self, other):
        return self.total


def test_what_an_operator_of_the_user_gives_may_be_used_again():
    def f(x):
        kept = Kept(x * 3.0)
        return (kept + 1.0) * 2.0 + kept.total

    assert maps(f, X) == 2


def test_a_term_is_what_it_was_before_its_operand_was_written():
    def doubled(x):
        x *= 2.0
        return x

    def f(x):
        return x * 3.0 + doubled(x) * 5.0

    assert maps(f, X) >= 2


def test_a_term_beside_a_branch():
    def f(x):
        return x * 3.0 + (x * 5.0 + 1.0 if x[0] > 0.0 else x * 7.0 - 2.0) * 2.0

    for sign in (1.0, -1.0):
        np.testing.assert_array_equal(tp.function(f)(sign * X), f(sign * X))


def test_long_sums_stay_several_maps(tmp_path):
    """A map that grew to the length of a page is not taken back again."""
    terms = " + ".join(f"x * {k}.5" for k in range(100))
    f = module(f"def f(x):\n    return {terms}\n", tmp_path / "long_sum.py").f
    assert 2 <= maps(f, X) <= 5


def test_gradients_of_terms():
    def loss(x, y):
        return np.sum((x * y + x / 2.0) * (y - x * x))

    gx, gy = tp.grad(loss, argnums=(0, 1))(X, Y)
    np.testing.assert_allclose(gx, (Y + 0.5) * (Y - X * X) - 2 * X * (X * Y + X / 2), rtol=1e-14)
    np.testing.assert_allclose(gy, X * (Y - X * X) + X * Y + X / 2, rtol=1e-14)


def test_terms_are_counted_once():
    """What is unrolled is refused beyond a number of statements."""

    def f(x):
        s = 0.0
        for k in (1, 2.0) * 20:  # of two types, so that each item is compiled
            x = (x * 1.5 + x * 2.5 + x * 3.5 + x * 4.5 + x * 5.5 + x * 6.5 + x * 7.5 + x * 8.5 + x * 9.5 + x * 10.5
                 + x * 11.5 + x * 12.5 + x * 13.5 + x * 14.5 + x * 15.5 + x * 16.5 + x * 17.5 + x * 18.5) * 0.01 * k  # fmt: skip
            s = s + x.sum()
        return s

    np.testing.assert_allclose(tp.function(f)(X), f(X), rtol=1e-12)
