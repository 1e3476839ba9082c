"""Sums over an axis of a product are taken before it is made; what needs the product keeps it."""

from __future__ import annotations

from textwrap import dedent, indent

import numpy as np
import pytest

import tapeless as tp
from tapeless.interp.evaluate import evaluate
from tapeless.ir.parser import parse_function
from tapeless.ir.printer import print_function
from tapeless.passes.check.verify import verify
from tapeless.passes.products.product_sums import sum_products_first
from tapeless.passes.tidy.dce import dce

PARAMS = "a: [m][k]f64, b: [k][n]f64, w: f64, y: [n]f64, z: [2][n]f64, i: i64"


def program(code: str, result: str, type: str):
    f = parse_function(f"def f({PARAMS}) -> {type}\n{indent(dedent(code), '  ')}\n  in {result}")
    verify(f)
    return f


def arguments(m: int = 4, k: int = 5, n: int = 3) -> list[object]:
    random = np.random.default_rng(0)
    shapes = ((m, k), (k, n), (), (n,), (2, n))
    return [*(random.standard_normal(shape) for shape in shapes), 1]


def products(f) -> list[str]:
    """The types of the matrix products that are left, e.g. [m][n]f64."""
    lines = [line for line in print_function(f).splitlines() if "@matmul" in line]
    return [line.split(": ")[1].split(" =")[0] for line in lines]


SUMS = {
    "of rows": (
        """
        p: [m][n]f64 = @matmul a b
        s: [m]f64 = map m (\\j row -> r: f64 = reduce n comm add 0.0 row; in r) p
        """,
        "s", "[m]f64",
    ),
    "of scaled rows, used with other things": (
        """
        p: [m][n]f64 = @matmul a b
        s: [m]f64 = map m (\\j row other ->
          r: f64 = sweep n (\\l e -> t: f64 = mul e w; u: f64 = neg t; in u) row | reduce comm add 0.0
          o: f64 = reduce k comm maximum -inf other
          v: f64 = div r o
          in v) p a
        """,
        "s", "[m]f64",
    ),
    "of columns": (
        """
        p: [m][n]f64 = @matmul a b
        q: [n][m]f64 = transpose p [1, 0]
        s: [n]f64 = map n (\\j row -> r: f64 = reduce m comm add 0.0 row; in r) q
        """,
        "s", "[n]f64",
    ),
    "of everything": (
        """
        p: [m][n]f64 = @matmul a b
        s: f64 = sweep m (\\j row -> r: f64 = reduce n comm add 0.0 row; in r) p | reduce comm add 0.0
        """,
        "s", "f64",
    ),
    "of columns, in an accumulator": (
        """
        p: [m][n]f64 = @matmul a b
        s: [n]f64 = with_acc y (\\(acc: acc<add, [n]f64>) ->
          map m (\\j row ->
            own: [n]f64 = map n (\\l e -> t: f64 = mul w e; in t) row
            update_acc acc[:] = own
            in ()) p
          in ())
        """,
        "s", "[n]f64",
    ),
    "of columns, in a row of an accumulator": (
        """
        p: [m][n]f64 = @matmul a b
        s: [2][n]f64 = with_acc z (\\(acc: acc<add, [2][n]f64>) ->
          map m (\\j row -> update_acc acc[i, :] = row; in ()) p
          in ())
        """,
        "s", "[2][n]f64",
    ),
}  # fmt: skip


@pytest.mark.parametrize("sizes", [(4, 5, 3), (1, 1, 1), (0, 5, 3), (4, 0, 3), (4, 5, 0)])
@pytest.mark.parametrize("name", SUMS)
def test_the_product_goes(name, sizes):
    f = program(*SUMS[name])
    new = sum_products_first(f)
    verify(new)
    assert products(dce(new)) in (["[m]f64"], ["[n]f64"])
    args = arguments(*sizes)
    if "other" in name and 0 in sizes:
        return  # the greatest of nothing
    with np.errstate(all="ignore"):
        expected, found = (evaluate(g, args) for g in (f, new))
    np.testing.assert_allclose(found[0], expected[0], rtol=1e-13, atol=1e-13)


KEPT = {
    "read twice": (
        """
        p: [m][n]f64 = @matmul a b
        s: [m]f64 = map m (\\j row -> r: f64 = reduce n comm add 0.0 row; in r) p
        """,
        "(s, p)", "([m]f64, [m][n]f64)",
    ),
    "squared": (
        """
        p: [m][n]f64 = @matmul a b
        s: [m]f64 = map m (\\j row ->
          r: f64 = sweep n (\\l e -> t: f64 = mul e e; in t) row | reduce comm add 0.0
          in r) p
        """,
        "s", "[m]f64",
    ),
    "by factors of the elements": (
        """
        p: [m][n]f64 = @matmul a b
        s: [m]f64 = map m (\\j row ->
          r: f64 = sweep n (\\l e f -> t: f64 = mul e f; in t) row y | reduce comm add 0.0
          in r) p
        """,
        "s", "[m]f64",
    ),
    "the largest": (
        """
        p: [m][n]f64 = @matmul a b
        s: [m]f64 = map m (\\j row -> r: f64 = reduce n comm maximum -inf row; in r) p
        """,
        "s", "[m]f64",
    ),
    "each row to a cell of its own": (
        """
        p: [m][n]f64 = @matmul a b
        c: [m][n]f64 = full [m, n] 0.0
        s: [m][n]f64 = with_acc c (\\(acc: acc<add, [m][n]f64>) ->
          map m (\\j row -> update_acc acc[j, :] = row; in ()) p
          in ())
        """,
        "s", "[m][n]f64",
    ),
    "by a factor of the row": (
        """
        p: [m][n]f64 = @matmul a b
        s: [n]f64 = with_acc y (\\(acc: acc<add, [n]f64>) ->
          map m (\\j row ->
            f: f64 = convert j
            own: [n]f64 = map n (\\l e -> t: f64 = mul f e; in t) row
            update_acc acc[:] = own
            in ()) p
          in ())
        """,
        "s", "[n]f64",
    ),
    "in every step of a loop": (
        """
        p: [m][n]f64 = @matmul a b
        s: f64 = loop (x: f64 = w) for j < i do
          r: f64 = sweep m (\\l row -> q: f64 = reduce n comm add 0.0 row; in q) p | reduce comm add 0.0
          t: f64 = add x r
          in t
        """,
        "s", "f64",
    ),
}  # fmt: skip


@pytest.mark.parametrize("name", KEPT)
def test_what_needs_the_product_keeps_it(name):
    f = program(*KEPT[name])
    assert "[m][n]f64" in products(dce(sum_products_first(f)))


def test_adjoint_of_a_broadcast_operand():
    def loss(mu, x, q):
        return np.sin((x - mu) @ q).sum()

    random = np.random.default_rng(1)
    mu, x, q = random.standard_normal(30), random.standard_normal((50, 30)), random.standard_normal((30, 20))
    gradient = tp.grad(loss)
    np.testing.assert_allclose(gradient(mu, x, q), -(np.cos((x - mu) @ q) @ q.T).sum(axis=0), rtol=1e-12, atol=1e-12)
    assert gradient.ir(mu, x, q, stage="optimized").count("f64 = @matmul") == 2  # one of them with a vector
