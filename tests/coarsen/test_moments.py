"""Sums over data inside a loop: made once where the loop's values enter linearly, left alone otherwise."""

from __future__ import annotations

import math
from collections.abc import Callable
from typing import Any

import numpy as np
import pytest

import tapeless as tp
from tests.quick import unoptimized  # noqa: F401  (for all tests here)


def data(count: int = 50) -> tuple[np.ndarray, np.ndarray]:
    rng = np.random.default_rng(3)
    x = rng.normal(size=count)
    return x, 2.0 * x + 0.1 * rng.normal(size=count)


def descent(r: float, x: np.ndarray, y: np.ndarray, steps: int) -> float:
    w = 0.0
    for _ in range(steps):
        d = 0.0
        for j in range(len(x)):
            d += 2.0 * x[j] * (y[j] - x[j] * w) / len(x)
        w = w + r * d
    e = 0.0
    for j in range(len(x)):
        e += (y[j] - x[j] * w) ** 2
    return math.sqrt(e) / len(x)


def by_arrays(r: float, x: np.ndarray, y: np.ndarray, steps: int) -> float:
    w = 0.0
    for _ in range(steps):
        w = w + r * np.mean(2.0 * x * (y - x * w))
    return np.sqrt(np.sum((y - x * w) ** 2)) / len(x)


def line(r: float, x: np.ndarray, y: np.ndarray, steps: int) -> float:
    """Two values of the loop."""
    w, b = 0.0, 0.0
    for _ in range(steps):
        residual = y - w * x - b
        w, b = w + r * np.mean(residual * x), b + r * np.mean(residual)
    return np.sum((y - w * x - b) ** 2)


@pytest.mark.parametrize("steps", [0, 1, 3, 50, 200])
@pytest.mark.parametrize("f", [descent, by_arrays, line])
def test_the_same_as_without(f: Callable[..., Any], steps: int) -> None:
    x, y = data()
    value, slopes = tp.value_and_grad(f, argnums=(0, 1, 2))(0.1, x, y, steps)
    plain, plain_slopes = tp.value_and_grad(f, argnums=(0, 1, 2), coarsen=False)(0.1, x, y, steps)
    assert value == pytest.approx(f(0.1, x, y, steps), rel=1e-13)
    assert value == pytest.approx(plain, rel=1e-13)
    for got, want in zip(slopes, plain_slopes, strict=True):
        np.testing.assert_allclose(got, want, rtol=1e-9, atol=1e-14)


@pytest.mark.parametrize("f", [descent, by_arrays, line])
def test_data_are_read_before_the_loop(f: Callable[..., Any]) -> None:
    x, y = data()
    forms = [s.closed_form for s in tp.function(f).explain(0.1, x, y, 50).segments]
    assert any(form and "sum(" in form for form in forms)


def squares(w: float, x: np.ndarray, y: np.ndarray, steps: int) -> float:
    for _ in range(steps):
        w = w - 0.01 * np.sum((y - x * w) ** 2)
    return w


def stops(r: float, x: np.ndarray, y: np.ndarray, steps: int) -> float:
    w = 0.0
    for _ in range(steps):
        d = np.mean(2.0 * x * (y - x * w))
        if abs(d) < 1e-3:
            break
        w = w + r * d
    return w


def changing(r: float, x: np.ndarray, y: np.ndarray, steps: int) -> float:
    w = 0.0
    z = y.copy()
    for _ in range(steps):
        w = w + r * np.sum(x * (z - x * w))
        z[0] = w
    return w


@pytest.mark.parametrize("f", [squares, stops, changing])
def test_left_alone(f: Callable[..., Any]) -> None:
    """Squares would lose digits; what decides keeps its bits; data that change are no data."""
    x, y = data()
    assert not any(s.closed_form and "sum(" in s.closed_form for s in tp.function(f).explain(0.01, x, y, 20).segments)
    assert tp.function(f)(0.01, x, y, 20) == pytest.approx(f(0.01, x, y, 20), rel=1e-12)


def test_an_index_that_is_outside_is_an_error_still() -> None:
    def f(w: float, x: np.ndarray, n: int, steps: int) -> float:
        for _ in range(steps):
            d = 0.0
            for j in range(n):
                d += x[j] * w
            w = w - 0.1 * d
        return w

    g = tp.function(f)
    assert g(1.0, np.ones(3), 5, 0) == 1.0
    with pytest.raises(IndexError):
        g(1.0, np.ones(3), 5, 2)
