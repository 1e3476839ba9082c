"""Loops that another one does too."""

from __future__ import annotations

from functools import partial

import numpy as np
import pytest

import tapeless as tp
from tapeless.passes.tidy.repeated_loops import drop_repeated_loops
from tests.passes.programs import after, program

dropped = partial(after, drop_repeated_loops)

SMALL = "t: f64 = loop (e: f64 = a) for i < k do o: f64 = sin e; in o"
BIG = (
    "u: f64, v: f64 = loop (y1: f64 = a, z1: f64 = b) for i1 < k do s1: f64 = sin y1; r1: f64 = mul z1 s1; in (s1, r1)"
)
FEWER = (
    "u: f64, v: f64 = loop (y1: f64 = a, z1: f64 = b) for i1 < k do s1: f64 = sin y1 r1: f64 = mul z1 s1 in (s1, r1)"
)


@pytest.mark.parametrize("code", [f"{SMALL}\n        {BIG}", f"{BIG}\n        {SMALL}"], ids=["before it", "after it"])
def test_a_part_of_another_one(code: str) -> None:
    assert dropped(code, "(t, u, v)") == f"{FEWER} in (u, u, v)"


def test_what_the_larger_one_needs_comes_along() -> None:
    code = f"""
        {SMALL}
        m: f64 = mul t 2.0
        h: f64 = exp b
        {BIG.replace("z1: f64 = b", "z1: f64 = h")}
    """
    want = FEWER.replace("z1: f64 = b", "z1: f64 = h")
    assert dropped(code, "(m, v)") == f"h: f64 = exp b {want} m: f64 = mul u 2.0 in (m, v)"


def test_while_loops() -> None:
    code = """
        t: f64 = loop (e: f64 = a) while c0: bool = lt e b; in c0 do o: f64 = exp e; in o
        u: f64, n1: f64 = loop (y1: f64 = a, z1: f64 = 0.0) while c1: bool = lt y1 b; in c1 do
          s1: f64 = exp y1
          r1: f64 = add z1 1.0
          in (s1, r1)
    """
    assert dropped(code, "(t, n1)").count("loop") == 1


@pytest.mark.parametrize(
    "change",
    [
        ("sin y1", "cos y1"),
        ("y1: f64 = a", "y1: f64 = b"),
        ("for i1 < k", "for i1 < 3"),
        ("in (s1, r1)", "in (r1, s1)"),
        ("sin y1", "sin z1"),
        ("z1: f64 = b", "z1: f64 = t"),
    ],
    ids=["other steps", "another start", "another length", "another order", "other variables", "what it begins with"],
)
def test_loops_that_stay(change: tuple[str, str]) -> None:
    f = program(f"{SMALL}\n        {BIG.replace(*change)}", "(t, u, v)")
    assert drop_repeated_loops(f) is f


def test_loops_that_test_stay() -> None:
    small = SMALL.replace("; in o", '; l: bool = lt o 2.0; check l ValueError "no"; in o')
    f = program(f"{small}\n        {BIG}", "(t, u, v)")
    assert drop_repeated_loops(f) is f


def test_a_value_and_its_gradient_run_the_way_there_once() -> None:
    def f(x: np.ndarray, n: int) -> float:
        def last(y: float) -> float:
            for _ in range(n):
                y = np.sin(y) * 1.5
            return y

        return np.sum(tp.map(last, x))

    x = np.linspace(0.1, 1.0, 5)
    text = tp.value_and_grad(f).ir(x, 7, stage="optimized")
    assert text.count("sin ") == 1, text  # the way back needs cosines
    value, slopes = tp.value_and_grad(f)(x, 7)
    assert value == pytest.approx(f(x, 7), rel=1e-14)
    np.testing.assert_allclose(slopes, tp.grad(f)(x, 7), rtol=1e-14)
