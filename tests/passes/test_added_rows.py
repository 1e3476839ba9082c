"""Rows that are made only to be added: when each element is added where it is made."""

from __future__ import annotations

from functools import partial

import numpy as np
import pytest

import tapeless as tp
from tapeless.passes.accumulators.added_rows import add_in_place
from tests.passes.programs import after, program

entered = partial(after, add_in_place)

START = "zero: [n]f64 = full [n] 0.0"


def test_a_row_is_added_where_it_is_made() -> None:
    code = f"""
        {START}
        g: [n]f64 = with_acc zero (\\(acc: acc<add, [n]f64>) ->
          map n (\\i ->
            r: f64, m: [n]f64 = sweep n (\\h e -> t: f64 = mul e a; in (e, t)) y | reduce comm add 0.0
            update_acc acc[:] = m
            update_acc acc[i] = r
            in ())
          in ())
    """
    text = entered(code, "(g)")
    assert "r: f64 = sweep n (\\h e -> t: f64 = mul e a update_acc acc[h] = t in e) y" in text
    assert text.count("update_acc") == 2


def kept(made: str, added: str, result: str = "m") -> str:
    return f"""
        zero: [n][n]f64 = full [n, n] 0.0
        g: [n][n]f64, q: [n]f64 = with_acc zero (\\(acc: acc<add, [n][n]f64>) ->
          m: [n]f64 = map n (\\h e -> t: f64 = mul e a; in t) y
          {made}
          update_acc acc[{added}] = m
          in {result})
    """


@pytest.mark.parametrize(
    "code",
    [
        kept("", "k, :"),
        kept("l: i64 = mod k n", "l, :", "y"),
        kept("", ":, k", "y"),
        kept('near: bool = lt k n; check near IndexError "far"', "k, :", "y"),
    ],
    ids=["others read it", "the place is known only later", "along another axis", "the place is tested only later"],
)
def test_rows_that_stay(code: str) -> None:
    f = program(code, "(g, q)")
    assert add_in_place(f) is f


def test_adjoints_of_all_pairs() -> None:
    @tp.function
    def pull(x):
        def of(i):
            d = x - x[i]
            s = d * d + 0.1
            return (d / (s * np.sqrt(s))).sum()

        a = tp.map(of, len(x))
        return (a * a).sum()

    x = np.random.default_rng(0).normal(size=37)
    found = tp.grad(pull)(x)
    h = 1e-6
    steps = np.eye(len(x)) * h
    expected = [(pull(x + s) - pull(x - s)) / (2 * h) for s in steps]
    np.testing.assert_allclose(found, expected, rtol=1e-6, atol=1e-6)
    assert "update_acc x_acc[i" in tp.grad(pull).ir(x, stage="optimized")
