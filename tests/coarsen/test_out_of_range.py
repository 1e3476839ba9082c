"""Closed forms at the ends of the range of floats, and where digits could be lost: as the loop gives."""

from __future__ import annotations

import math
from typing import Any

import numpy as np
import pytest

import tapeless as tp
from tests.quick import unoptimized  # noqa: F401  (for all tests here)

INF = math.inf


def power(s: float, a: float, n: int) -> float:
    for _ in range(n):
        s = s * a
    return s


def affine(s: float, a: float, b: float, n: int) -> float:
    for _ in range(n):
        s = a * s + b
    return s


def unstable(x: float, y: float, n: int) -> float:
    for _ in range(n):
        x, y = 3.0 * x + y, 0.5 * y
    return x + y


def total(s: float, x: float, n: int) -> float:
    for _ in range(n):
        s = s + x
    return s


CASES = [
    (power, (0.0, 10.0, 1000)), (power, (1e-310, 10.0, 618)), (power, (INF, 0.5, 4000)), (power, (1e300, 0.1, 700)),
    (affine, (0.0, 3.0, 0.0, 2000)), (affine, (1.0, 2.0, 1.0, 2000)), (affine, (INF, 0.5, 1.0, 300)), (affine, (1.0, 0.5, INF, 300)),
    (affine, (math.nan, 0.5, 1.0, 300)), (unstable, (0.0, 0.0, 2000)), (total, (-1.7e308, 1e308, 3)), (total, (INF, 1.0, 300)),
    (total, (1.0, -INF, 300)), (total, (-0.0, -0.0, 5)),
]  # fmt: skip


@pytest.mark.parametrize("f, args", CASES)
def test_as_the_loop(f: Any, args: tuple[Any, ...]) -> None:
    np.testing.assert_allclose(tp.function(f)(*args), f(*args), rtol=1e-12)
    slopes = tp.grad(f, argnums=(0, 1))(*args)
    np.testing.assert_allclose(slopes, tp.grad(f, argnums=(0, 1), coarsen=False)(*args), rtol=1e-10)


def test_an_odd_number_of_trips_in_single_precision() -> None:
    one = np.float32(-1.0)
    value, slope = tp.value_and_grad(power)(np.float32(2.0), one, 33554435)
    assert value == -2.0 and slope == -1.0


def squared_sums(c: float, x: np.ndarray, steps: int) -> float:
    total = 0.0
    for _ in range(steps):
        d = np.sum(x - c)
        total = total + d * d
        c = c + 1.0
    return total


def sums_added_up(c: float, x: np.ndarray, steps: int) -> float:
    total = 0.0
    for _ in range(steps):
        d = np.sum(x - c)
        total = total + d
        c = c + d * 1e-4
    return total


@pytest.mark.parametrize("f", [squared_sums, sums_added_up])
def test_small_differences_of_large_numbers(f: Any) -> None:
    x = 1e8 + np.random.default_rng(0).normal(size=1000)
    assert tp.function(f)(1e8 - 3.0, x, 5) == pytest.approx(f(1e8 - 3.0, x, 5), rel=1e-12)
    assert tp.grad(f)(1e8 - 3.0, x, 5) == pytest.approx(tp.grad(f, coarsen=False)(1e8 - 3.0, x, 5), rel=1e-12)


def prefix_sums(w: float, r: float, x: np.ndarray, steps: int) -> float:
    """What is summed up is used on the way."""
    for _ in range(steps):
        s, q = 0.0, 0.0
        for j in range(len(x)):
            s = s + w * x[j]
            q = q + s * x[j]
        w = w + r * q
    return w


def test_sums_that_are_used_on_the_way() -> None:
    x = np.array([1.0, 2.0, 3.0])
    assert tp.function(prefix_sums)(1.0, 0.001, x, 5) == pytest.approx(prefix_sums(1.0, 0.001, x, 5), rel=1e-14)


def half_square(x: float) -> float:
    a = x * 0.0009765625
    return 0.5 * (a * a)


def test_what_is_scaled_to_stay_in_range_does() -> None:
    assert tp.function(half_square)(3e156) == half_square(3e156)
    assert tp.function(lambda x, y: 0.5 * x + 0.5 * y)(1.5e308, 1.5e308) == 1.5e308


# -- numbers near the ends of the range, on the way or in the data


def one_weight(rate, x, y, n):
    w = 0.0
    for _ in range(n):
        w = w + rate * np.sum(x * (y - w * x))
    return w


@pytest.mark.parametrize("dtype, size", [(np.float32, 1e20), (np.float64, 1e160)])
def test_squares_of_the_data_are_out_of_range(dtype, size):
    x, y = np.array([1.0, 2.0], dtype) * dtype(size), np.array([0.5, 0.25], dtype)
    rate = dtype(0.01)
    assert tp.function(one_weight)(rate, x, y, 1) == one_weight(rate, x, y, 1)
    slopes = tp.grad(one_weight, argnums=(1, 2))(dtype(0.0), x, y, 1)
    assert all(np.all(s == 0.0) for s in slopes)


def test_infinite_data_give_what_the_loop_gives():
    def mean(rate, x, y, n):
        w = 0.0
        for _ in range(n):
            w = w - rate * np.mean(w * x - y)
        return w

    x, y = np.array([0.0, 1.0]), np.array([np.inf, 1.0])
    with np.errstate(invalid="ignore"):
        assert math.isnan(mean(-0.3, x, y, 3)) and math.isnan(tp.function(mean)(-0.3, x, y, 3))


def geometric(s, a, n):
    p = 1.0
    for _ in range(n):
        p *= a
        s += p
    return s


def triangle(s, a, n):
    m = 0.0
    for _ in range(n):
        m = m + 2.0
        s = s + m * a
    return s


@pytest.mark.parametrize(
    "f, args",
    [
        (geometric, (np.float32(1e30), np.float32(1.05), 400)),
        (geometric, (1e300, 1.5, 258)),
        (triangle, (1.0, 1e200, 258)),
    ],
)
def test_slopes_are_finite_where_the_loop_s_are(f, args):
    value, slopes = tp.value_and_grad(f, (0, 1))(*args)
    want, wanted = tp.value_and_grad(tp.function(f, coarsen=False), (0, 1))(*args)
    digits = 1e-5 if isinstance(args[0], np.float32) else 1e-12
    np.testing.assert_allclose([value, *slopes], [want, *wanted], rtol=digits)


def ramp(s, c, n):
    for i in range(n):
        s = s + c * i
    return s


@pytest.mark.parametrize(
    "args", [(0.5, 9e307, 2), (0.0, 1e307, 5), (0.5, math.inf, 2), (0.5, math.inf, 9), (1.0, 0.25, 10**6)]
)
def test_a_ramp_up_to_the_largest_numbers(args):
    np.testing.assert_allclose(tp.function(ramp)(*args), ramp(*args), rtol=1e-12)
    np.testing.assert_allclose(tp.grad(ramp, 1)(*args), args[2] * (args[2] - 1) / 2, rtol=1e-12)
