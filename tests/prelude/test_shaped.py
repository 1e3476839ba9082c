"""Slopes of distribution functions by their shapes, by mpmath and by differences."""

import mpmath as mp
import numpy as np
import pytest
from scipy import special, stats

import tapeless as tp
from tests.prelude.judged import judge
from tests.quick import unoptimized  # noqa: F401

DIGITS = 1e-11


def difference(function, a):
    with mp.workdps(50):
        a = mp.mpf(a)
        step = a * mp.mpf(10) ** -15
        return float((function(a + step) - function(a - step)) / (2 * step))


def tail_of_gamma(x, upper):
    """P, or -Q where that has more digits."""
    if upper:
        return lambda a: -mp.gammainc(a, mp.mpf(x), mp.inf, regularized=True)
    return lambda a: mp.gammainc(a, 0, mp.mpf(x), regularized=True)


def tail_of_beta(b, x, upper):
    if upper:
        return lambda a: -mp.betainc(a, mp.mpf(b), mp.mpf(x), 1, regularized=True)
    return lambda a: mp.betainc(a, mp.mpf(b), 0, mp.mpf(x), regularized=True)


def test_gamma():
    grid = [(a, q) for a in (0.001, 0.2, 0.99, 1.0, 3.0, 40.0, 1e3) for q in (1e-9, 0.1, 0.6, 1 - 1e-9)]
    grid = [(a, float(special.gammaincinv(a, q)), q > 0.5) for a, q in grid if special.gammaincinv(a, q) > 1e-300]
    a, x = (np.array(v) for v in list(zip(*grid, strict=True))[:2])
    found = tp.grad(lambda a: np.sum(special.gammainc(a, x)))(a)
    wanted = [difference(tail_of_gamma(x, upper), a) for a, x, upper in grid]
    np.testing.assert_allclose(found, wanted, rtol=DIGITS)
    np.testing.assert_allclose(tp.grad(lambda a: np.sum(special.gammaincc(a, x)))(a), -found)


@pytest.mark.thorough
def test_beta():
    shapes = [(0.01, 0.4), (0.3, 30.0), (0.9, 0.9), (1.0, 2.5), (5.0, 0.02), (300.0, 0.5), (400.0, 500.0)]
    grid = [(a, b, float(special.betaincinv(a, b, q)), q > 0.5) for a, b in shapes for q in (1e-7, 0.2, 0.7, 1 - 1e-7)]
    grid = [g for g in grid if 1e-290 < g[2] < 1 - 1e-9]
    a, b, x = (np.array(v) for v in list(zip(*grid, strict=True))[:3])
    by_first, by_second = tp.grad(lambda a, b: np.sum(special.betainc(a, b, x)), (0, 1))(a, b)
    np.testing.assert_allclose(by_first, [difference(tail_of_beta(b, x, up), a) for a, b, x, up in grid], rtol=DIGITS)
    for k in range(0, len(grid), 5):
        wanted = difference(lambda t, k=k: tail_of_beta(t, x[k], grid[k][3])(mp.mpf(a[k])), b[k])
        assert by_second[k] == pytest.approx(wanted, rel=DIGITS)
    np.testing.assert_allclose(tp.grad(lambda a: np.sum(special.betaincc(a, b, x)))(a), -by_first)


def test_student():
    v, t = (g.ravel() for g in np.meshgrid([0.1, 1.0, 2.5, 19.0, 21.0, 1e3, 1e6], [1e-3, 0.5, 1.5, 8.0]))
    found = tp.grad(lambda v: np.sum(special.stdtr(v, t)))(v)
    half = mp.mpf(1) / 2
    wanted = [
        difference(lambda v, t=t: -mp.betainc(v / 2, half, 0, v / (v + mp.mpf(t) ** 2), regularized=True) / 2, v)
        for v, t in zip(v, t, strict=True)
    ]
    np.testing.assert_allclose(found, wanted, rtol=DIGITS)
    np.testing.assert_allclose(tp.grad(lambda v: np.sum(special.stdtr(v, -t)))(v), -found)


X = np.array([0.2, 1.0, 3.0, 7.0])
BOTH_MODES = {
    "gammainc": (lambda a, x: special.gammainc(a, x), X[::-1].copy(), X),
    "gammaincc of numbers": (lambda a, x: special.gammaincc(a, x), 2.5, 1.25),
    "stdtr": (lambda v, t: special.stdtr(v, t), 2.5, X - 2),
    "cdf of gamma": (lambda a, s: stats.gamma.cdf(X, a, scale=s), 2.5, 1.5),
    "cdf of poisson": (lambda m: (stats.poisson.cdf(np.arange(4), m), stats.poisson.sf(2, m)), 1.5),
    "sf of beta": (lambda a, b: stats.beta.sf(X / 8, a, b), 2.5, 0.5),
}


@pytest.mark.sampled(3)
@pytest.mark.parametrize("name", BOTH_MODES)
def test_both_modes(name):
    function, *args = BOTH_MODES[name]
    judge(function, *args)


@pytest.mark.exhaustive
@pytest.mark.sampled(6)
@pytest.mark.parametrize("name", BOTH_MODES)
def test_second_slopes(name):
    function, *args = BOTH_MODES[name]
    tp.check_grads(function, args, order=2)


@pytest.mark.thorough
def test_ends():
    slope = tp.grad(lambda a, x: np.sum(special.gammainc(a, x)))
    a = np.array([1.0, 2.0, -1.0, 2.0, 0.0])
    np.testing.assert_array_equal(slope(a, np.array([0.0, np.inf, 1.0, -1.0, 1.0])), [0, 0, np.nan, np.nan, np.nan])
    slope = tp.grad(lambda a, x: np.sum(special.betainc(a, 2.0, x)))
    np.testing.assert_array_equal(slope(np.ones(3), np.array([0.0, 1.0, 1.5])), [0, 0, np.nan])
    slope = tp.grad(lambda v, t: np.sum(special.stdtr(v, t)))
    np.testing.assert_array_equal(slope(np.array([np.inf, 1.0, 1.0]), np.array([1.0, np.inf, 0.0])), [0, 0, 0])


@pytest.mark.thorough
def test_the_limit_of_students_distribution():
    """With endless degrees of freedom it is the normal one."""
    by_point = tp.grad(lambda t: np.sum(special.stdtr(np.inf, t)))
    np.testing.assert_allclose(by_point(X), np.exp(-X * X / 2) / np.sqrt(2 * np.pi), rtol=1e-13)
    tp.check_grads(lambda t: special.stdtr(np.inf, t), (X,), order=2)
