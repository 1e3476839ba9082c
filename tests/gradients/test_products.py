"""Products go back by division where that is right, and factor by factor where it is not: zeros, overflow, underflow."""

import os
from fractions import Fraction

import numpy as np
import pytest

import tapeless as tp
from tests.gradients.jacobians import check

RNG = np.random.default_rng(5)
ON_DEVICE = "TAPELESS_TEST_DEVICE" in os.environ  # a GPU takes factors in another order
NEAR_ONE = 1 + 0.1 * RNG.standard_normal(40)


def product(x):
    return np.prod(x)


def reduced(x):
    return tp.reduce(lambda a, b: b * a, 1.0, x)


def bins(x, keys, size=3):
    return tp.hist(lambda a, b: a * b, 1.0, np.ones(size), keys, x)


def without(x, *left_out):
    """The exact product of the elements but some, rounded once."""
    exact = Fraction(1)
    for k, value in enumerate(x):
        if k not in left_out:
            exact *= Fraction(float(value))
    try:
        return float(exact)
    except OverflowError:
        return np.inf if exact > 0 else -np.inf


def others(x):
    return np.array([without(x, k) for k in range(len(x))])


def with_values(at, start=NEAR_ONE):
    x = start.copy()
    for k, value in at.items():
        x[k] = value
    return x


HARD = {
    "nothing special": with_values({}),
    "one zero": with_values({7: 0.0}),
    "one negative zero": with_values({0: -0.0}),
    "two zeros": with_values({7: 0.0, 39: 0.0}),
    "negative": with_values({3: -2.0, 8: -1.5, 9: -1.0}),
    "underflow": with_values({5: 1e-200, 6: 1e-200}),
    "underflow by one": with_values({5: 1e-320, 6: 1e-20}),
    "overflow": with_values({5: 1e200, 6: 1e200}),
    "overflow made good": with_values({5: 1e200, 6: 1e200, 7: 1e-300}),
    "below the least normal number": with_values({5: 1e-300, 6: 1e-15}),
    "a tiny factor of a normal product": with_values({5: 1e-310, 6: 1e100}),
    "a quotient that overflows": with_values({5: 1e-310, 6: 1e300, 7: 1e290}),
    "zero and huge": with_values({5: 0.0, 6: 1e200, 7: 1e200}),
}


@pytest.mark.parametrize("f", [product, reduced])
@pytest.mark.parametrize("case", HARD)
def test_hard_factors(f, case) -> None:
    """Where the value has its digits; a partial product that is out of range is so in any order here, or in none."""
    x = HARD[case]
    expected = others(x)
    found = tp.grad(f)(x)
    no_order_will_do = case in (
        "overflow made good",
        "zero and huge",
    )  # by factors there is none without overflow for all
    another_order = ON_DEVICE and np.isfinite(tp.function(f)(x)) != np.isfinite(without(x))
    if not (no_order_will_do or another_order):
        np.testing.assert_allclose(found, expected, rtol=1e-13, atol=1e-322)
        return
    good = np.isfinite(found)
    assert good.any()
    np.testing.assert_allclose(found[good], expected[good], rtol=1e-13)


@pytest.mark.parametrize("at", [{}, {3: 0.0}, {3: 0.0, 4: 0.0}, {3: 1e-30, 4: 1e-20}, {3: 1e30, 4: 1e20}])
def test_single_precision(at) -> None:
    x = with_values(at).astype(np.float32)
    found = tp.grad(product)(x)
    assert found.dtype == np.float32
    with np.errstate(over="ignore"):
        expected = others(x).astype(np.float32)
    np.testing.assert_allclose(found, expected, rtol=2e-5)


def test_factors_that_are_not_numbers() -> None:
    """All others are there for an infinite factor; everybody has the NaN but the factor that is it."""
    x = with_values({4: np.inf})
    found = tp.grad(product)(x)
    np.testing.assert_allclose(found[4], without(x[np.isfinite(x)]), rtol=1e-13)
    assert np.isinf(np.delete(found, 4)).all()
    found = tp.grad(product)(with_values({4: np.nan}))
    assert np.isfinite(found[4]) and np.isnan(np.delete(found, 4)).all()


def test_adjoint_of_zero_meets_an_infinite_slope() -> None:
    x = with_values({5: 1e-310, 6: 1e300, 7: 1e290})
    assert tp.grad(lambda x: np.prod(x) * 0.0)(x)[5] == 0.0


def test_a_long_product(optimized) -> None:
    x = 1 + 1e-4 * RNG.standard_normal(100_000)
    expected = np.prod(x) / x
    np.testing.assert_allclose(tp.grad(product)(x), expected, rtol=1e-11)
    x[1234] = 0.0
    found = tp.grad(product)(x)
    assert np.count_nonzero(found) == 1
    np.testing.assert_allclose(found[1234], np.prod(np.delete(x, 1234)), rtol=1e-11)


# -- in other company


@pytest.mark.parametrize("at", [{}, {2: 0.0}, {2: 0.0, 30: 0.0}])
def test_with_other_results_of_one_sweep(at) -> None:
    def f(x, s):
        y = np.sin(x) * s
        return np.prod(y + x) * 0.5, np.sum(y * y), np.max(y), np.prod(x)

    check(f, with_values(at), 0.3)


@pytest.mark.parametrize("at", [{}, {2: 0.0}, {2: 0.0, 30: 0.0}])
def test_of_rows(at) -> None:
    a = np.stack([NEAR_ONE, with_values(at), NEAR_ONE[::-1]])
    found = tp.grad(lambda a: np.sum(np.prod(a, axis=1) * np.arange(1.0, 4)))(a)
    np.testing.assert_allclose(found, [others(a[0]), 2 * others(a[1]), 3 * others(a[2])], rtol=1e-12)
    found = tp.grad(lambda a: np.sum(np.prod(a, axis=0)))(a)
    np.testing.assert_allclose(found, np.stack([others(c) for c in a.T], axis=1), rtol=1e-12)


@pytest.mark.parametrize("at", [{}, {2: 0.0}, {2: 1.0}])
def test_in_a_loop(at) -> None:
    def f(x):
        y = x.copy()
        for k in range(3):
            y[k] = np.prod(y) * 0.5
        return np.sum(y)

    check(f, with_values(at))


def test_within_a_budget() -> None:
    x = with_values({3: 0.0})
    np.testing.assert_allclose(tp.grad(product, memory="1KB")(x), others(x), rtol=1e-12)


def test_of_complex_factors() -> None:
    x = NEAR_ONE * np.exp(1j * np.arange(40))
    x[3] = 0

    def f(x):
        return np.abs(np.prod(x) - 2.0)

    found, h = tp.grad(f)(x), 1e-6
    moved = x.copy()
    moved[3] += h
    np.testing.assert_allclose(found[3].real, (f(moved) - f(x)) / h, rtol=1e-4)


# -- histograms

KEYS = np.arange(40) * 7 % 5 - 1  # -1 and 3 are outside of three bins


@pytest.mark.parametrize("at", [{}, {3: 0.0}, {3: 0.0, 8: 0.0}, {4: 0.0}, {3: 1e-200, 8: 1e-200}, {3: 1e200, 8: 1e200}])
def test_histograms(at) -> None:
    x, w = with_values(at), np.array([2.0, -3.0, 5.0])
    expected = np.zeros(40)
    for k in range(3):
        expected[KEYS == k] = w[k] * others(x[KEYS == k])
    np.testing.assert_allclose(tp.grad(lambda x: bins(x, KEYS) @ w)(x), expected, rtol=1e-12)
    f = tp.function(lambda x: bins(x, KEYS) @ w)
    np.testing.assert_allclose(tp.value_and_grad(f)(x)[0], f(x), rtol=1e-13)


@pytest.mark.parametrize("at", [{}, {3: 0.0}, {4: 0.0, 9: 0.0}])
def test_histograms_into_what_varies(at) -> None:
    def f(d, x):
        y = tp.hist(lambda a, b: a * b, 1.0, d * 2.0, KEYS, np.cos(x) * x)
        y[1] *= 3.0
        return y

    check(f, np.array([0.5, 0.0, 2.0]), with_values(at))


def test_histogram_without_bins() -> None:
    x = NEAR_ONE
    np.testing.assert_array_equal(tp.grad(lambda x: np.sum(x) + np.sum(bins(x, KEYS, 0)))(x), np.ones(40))


# -- twice


@pytest.mark.thorough
@pytest.mark.sampled(3)
@pytest.mark.parametrize("at", [{}, {3: 0.0}, {3: 0.0, 4: 0.0}, {3: 1e-9}, {3: 0.0, 4: 0.0, 5: 0.0}])
def test_second_derivatives(at) -> None:
    """Those by one factor twice are exactly 0, next to factors of any size."""
    x = with_values(at)[:20]
    expected = [[0.0 if i == j else without(x, i, j) for j in range(20)] for i in range(20)]
    for f in (product, reduced, lambda x: np.sum(bins(x, np.zeros(20, int)) * np.array([1.0, 0, 0]))):
        for way in (tp.hessian(f), tp.jacrev(tp.grad(f)), tp.jacfwd(tp.grad(f)), tp.jacrev(tp.jacfwd(f))):
            np.testing.assert_allclose(way(x), expected, rtol=1e-12, atol=1e-14)


@pytest.mark.parametrize("at", [{}, {3: 1e-9}, {3: 0.0}])
def test_hessian_times_vector(at) -> None:
    """A small factor takes no digits from it: quotients by it are not subtracted from each other."""
    x, v = with_values(at)[:20], RNG.standard_normal(20)
    hessian = np.array([[0.0 if i == j else without(x, i, j) for j in range(20)] for i in range(20)])
    np.testing.assert_allclose(tp.hvp(product, (x,), (v,))[1], hessian @ v, rtol=1e-12)
    np.testing.assert_allclose(tp.grad(lambda x: tp.grad(product)(x) @ v)(x), hessian @ v, rtol=1e-12)
