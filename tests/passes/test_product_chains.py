"""P @ (f * (A @ B)) in the order that takes less work; what needs A @ B itself keeps it."""

from __future__ import annotations

from textwrap import dedent, indent

import numpy as np
import pytest

import tapeless as tp
from tapeless.interp.evaluate import evaluate
from tapeless.ir.parser import parse_function
from tapeless.ir.printer import print_function
from tapeless.passes.product_chains import chain_products
from tapeless.passes.verify import verify

PARAMS = "p: [k][n]f64, a: [n][m]f64, b: [m][l]f64, f: [n]f64"
SCALED = """
z: [n][l]f64 = @matmul a b
y: [n][l]f64 = map n (\\i f_i row ->
  g: f64 = mul f_i 0.5
  own: [l]f64 = map l (\\j e -> t: f64 = mul e g; u: f64 = add t t; v: f64 = neg u; in v) row
  in own) f z
r: [k][l]f64 = @matmul p y
"""
SUMMED = """
zero: [l]f64 = full [l] 0.0
s: [l]f64 = with_acc zero (\\(acc: acc<add, [l]f64>) -> map n (\\i row -> update_acc acc[:] = row; in ()) y; in ())
"""


def program(code: str, results: str, types: str):
    f = parse_function(f"def f({PARAMS}) -> {types}\n{indent(dedent(code), '  ')}\n  in {results}")
    verify(f)
    return f


def arguments(k: int, n: int, m: int, l: int, scale: float = 1.0) -> list[np.ndarray]:
    random = np.random.default_rng(0)
    p, a, b, f = (random.standard_normal(shape) for shape in ((k, n), (n, m), (m, l), (n,)))
    return [p * scale, a * scale, b / scale, f]


SIZES = [(3, 40, 4, 5), (4, 2, 30, 5), (5, 5, 5, 5), (0, 3, 2, 1), (2, 0, 3, 2), (2, 3, 0, 2)]


@pytest.mark.parametrize("sizes", SIZES)
def test_either_order_gives_the_same(sizes):
    for code, results, types in ((SCALED, "r", "[k][l]f64"), (SCALED + SUMMED, "(r, s)", "([k][l]f64, [l]f64)")):
        before = program(code, results, types)
        after = chain_products(before)
        verify(after)
        assert "fits" in print_function(after)
        args = arguments(*sizes)
        one, other = evaluate(before, args), evaluate(after, args)
        for x, y in zip(one, other, strict=True):
            np.testing.assert_allclose(y, x, rtol=1e-12, atol=1e-13)


def test_one_after_the_other():
    """The second chain is scaled by a result of the first."""
    code = (
        SCALED
        + """
w: [n]f64 = map n (\\i f_i -> t: f64 = r[0, 0]; u: f64 = mul f_i t; in u) f
x: [n][l]f64 = @matmul a b
q: [n][l]f64 = map n (\\i w_i row -> own: [l]f64 = map l (\\j e -> t: f64 = mul e w_i; in t) row; in own) w x
o: [k][l]f64 = @matmul p q
"""
    )
    before = program(code, "(r, o)", "([k][l]f64, [k][l]f64)")
    after = chain_products(before)
    verify(after)
    assert print_function(after).count("fits") == 4
    for x, y in zip(evaluate(before, arguments(3, 40, 4, 5)), evaluate(after, arguments(3, 40, 4, 5)), strict=True):
        np.testing.assert_allclose(y, x, rtol=1e-12, atol=1e-12)


@pytest.mark.parametrize("scale", [1e-170, 1e170])
def test_the_order_is_kept_where_numbers_leave_the_range(scale):
    """P @ A is 0 or infinite here, P @ (A @ B) is neither."""
    before = program(SCALED + SUMMED, "(r, s)", "([k][l]f64, [l]f64)")
    args = arguments(3, 40, 4, 5, scale)
    expected = evaluate(before, args)
    assert all(np.isfinite(x).all() and np.abs(x).max() > 0 for x in expected)
    for found, x in zip(evaluate(chain_products(before), args), expected, strict=True):
        np.testing.assert_array_equal(found, x)


def test_rows_without_weight():
    before = program(SCALED, "r", "[k][l]f64")
    args = arguments(3, 40, 4, 5)
    args[3][:] = 0.0
    assert not np.any(evaluate(chain_products(before), args)[0])


LEFT_ALONE = {
    "the product is a result": (SCALED, "(r, z)", "([k][l]f64, [n][l]f64)"),
    "the scaled product is a result": (SCALED, "(r, y)", "([k][l]f64, [n][l]f64)"),
    "the sum comes first": (SCALED.replace("r:", SUMMED.strip() + "\nr:"), "(r, s)", "([k][l]f64, [l]f64)"),
    "factors differ within a row": (SCALED.replace("add t t", "mul t e"), "r", "[k][l]f64"),
    "a matrix is updated meanwhile": (
        """
        c: [n][m]f64 = copy a
        z: [n][l]f64 = @matmul c b
        d: [n][m]f64 = update c[:, :] = 0.0
        y: [n][l]f64 = map n (\\i f_i row -> own: [l]f64 = map l (\\j e -> t: f64 = mul e f_i; in t) row; in own) f z
        r: [k][l]f64 = @matmul p y
        """,
        "(r, d)", "([k][l]f64, [n][m]f64)",
    ),
}  # fmt: skip


@pytest.mark.parametrize("name", LEFT_ALONE)
def test_left_alone(name):
    before = program(*LEFT_ALONE[name])
    assert print_function(chain_products(before)) == print_function(before)


def squares(b, a, w):
    """The factors come from outside of the map, where products are made again on the way back."""
    scores = tp.map(lambda c: -0.5 * (((a - w[c]) @ b[c]) ** 2).sum(axis=1), len(b))
    top = scores.max(axis=0)
    return (top + np.log(np.exp(scores - top).sum(axis=0))).sum()


@pytest.mark.parametrize("rows", [3, 60])
def test_gradient_of_squares(rows):
    random = np.random.default_rng(3)
    b, a, w = 0.3 * random.normal(size=(2, 4, 5)), random.normal(size=(rows, 4)), random.normal(size=(2, 4))
    found = tp.grad(squares, argnums=(0, 2))
    assert "fits" in found.ir(b, a, w, stage="optimized")
    z = [(a - w[c]) @ b[c] for c in range(2)]
    weights = np.exp([-0.5 * (v * v).sum(axis=1) for v in z])
    y = [-(weights / weights.sum(axis=0))[c][:, None] * z[c] for c in range(2)]
    by_b, by_w = found(b, a, w)
    np.testing.assert_allclose(by_b, [(a - w[c]).T @ y[c] for c in range(2)], rtol=1e-11)
    np.testing.assert_allclose(by_w, [-(y[c] @ b[c].T).sum(axis=0) for c in range(2)], rtol=1e-11)
