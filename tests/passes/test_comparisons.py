"""Comparisons of floats that intervals settle, and those that they must not."""

from __future__ import annotations

import math
from collections.abc import Callable

import numpy as np
import pytest

import tapeless as tp


def root_of_sum(x: float, y: float) -> float:
    return math.sqrt(x * x + y * y + 1e-6)


def root_in_branch(x: float, y: float) -> float:
    d = x - y
    return math.sqrt(d) if d > 0 else 0.0


def sum_of_squares(x: float, y: float) -> float:
    s = 0.0
    for _ in range(5):
        s += x * x
        x = x * y
    return math.sqrt(s)


def logistic(x: float, y: float) -> float:
    return math.log(1.0 + np.exp(-x * y))


def after_a_test(x: float, y: float) -> float:
    return math.sqrt(x) + math.sqrt(x + 1.0) + y


@pytest.mark.parametrize(
    "f, left", [(root_of_sum, 0), (root_in_branch, 0), (sum_of_squares, 0), (logistic, 0), (after_a_test, 1)]
)
def test_tests_of_domains_vanish(f: Callable[[float, float], float], left: int) -> None:
    g = tp.function(f)
    assert g.ir(2.0, 0.5, stage="optimized").count("check") == left
    for x, y in [(2.0, 0.5), (0.0, 0.0), (0.5, -0.25)]:
        assert g(x, y) == pytest.approx(f(x, y), rel=1e-15)


def difference_of_squares(x: float, y: float) -> float:
    return math.sqrt(x * x - y * y)


def carried_sign_is_lost(x: float, y: float) -> float:
    s = 0.0
    for _ in range(3):
        s = s - x
    return math.sqrt(s)


def other_may_be_nan(x: float, y: float) -> float:
    if not x > y:  # y may be NaN, and x anything
        return 0.0 if x <= 3.0 else 1.0
    return 2.0


@pytest.mark.parametrize("f", [difference_of_squares, carried_sign_is_lost])
def test_tests_that_may_fail_stay(f: Callable[[float, float], float]) -> None:
    with pytest.raises(ValueError, match="math domain error"):
        tp.function(f)(1.0, 2.0)


def test_nan_is_no_number_of_an_interval() -> None:
    @tp.function
    def f(x: float) -> float:
        return 1.0 if x * x >= 0.0 else 2.0

    assert f(3.0) == 1.0 and f(math.nan) == 2.0
    assert tp.function(other_may_be_nan)(5.0, math.nan) == other_may_be_nan(5.0, math.nan) == 1.0


def test_what_is_not_chosen_may_be_nan() -> None:
    def f(x: float) -> float:
        return np.where(np.isnan(x), 0.0, 1.0 / max(x, 1.0))

    assert tp.grad(f)(math.nan) == 0.0
    assert tp.grad(f)(2.0) == -0.25


def test_a_slope_that_is_finite_needs_no_guard() -> None:
    def f(x: float, y: float) -> float:
        d = np.sqrt(x * x + y * y + 1e-6)
        return (d - 1.0) ** 2

    assert "select" not in tp.grad(f).ir(1.0, 2.0, stage="optimized")
    assert "select" in tp.grad(lambda x, y: (np.sqrt(x * x + y * y) - 1.0) ** 2).ir(1.0, 2.0, stage="optimized")
