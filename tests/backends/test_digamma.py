"""The digamma function of emitted code, against 50 digits."""

from __future__ import annotations

import mpmath
import numpy as np
import pytest
from scipy import special

import tapeless as tp
from tapeless.backends.llvm.digamma import FAR, NEAR, NEGATIVE_ROOT, ROOT

RNG = np.random.default_rng(4)
PIECES = {
    "tiny": 10.0 ** RNG.uniform(-308, -1, 60),
    "tiny below 0": -(10.0 ** RNG.uniform(-308, -1, 60)),
    "below 1": RNG.uniform(0, 1, 60),
    "about 1 and 2": np.concatenate([RNG.uniform(1, 2, 60), [1.0, 2.0, np.nextafter(1.0, 0), np.nextafter(2.0, 3)]]),
    "at the root": ROOT[0] + np.array([0.0, 1e-16, -1e-16, 1e-9, -1e-5]),
    "up to the series": np.concatenate([RNG.uniform(2, FAR, 60), [FAR, np.nextafter(FAR, 0)]]),
    "series": 10.0 ** RNG.uniform(0.95, 300, 60),
    "at the negative root": NEGATIVE_ROOT[0]
    + np.array([0.0, 1e-16, -1e-16, 1e-9, -1e-5, 0.9999 * NEAR, -1.0001 * NEAR]),
    "about the negative root": RNG.uniform(-0.9, -0.1, 60),
}


def psi(x: np.ndarray) -> np.ndarray:
    return special.digamma(x)


def total(x: np.ndarray) -> float:
    return np.sum(special.digamma(x))


def slope(x: np.ndarray) -> float:
    return np.sum(special.gammaln(x))


@pytest.mark.parametrize("piece", PIECES)
def test_digits(piece: str) -> None:
    x = PIECES[piece]
    with mpmath.workdps(50):
        want = [mpmath.digamma(mpmath.mpf(float(v))) for v in x]
        for got in (tp.function(psi)(x), tp.grad(slope)(x)):
            ulps = [
                abs(mpmath.mpf(float(g)) - w) / float(np.spacing(abs(float(w)))) for g, w in zip(got, want, strict=True)
            ]
            assert max(ulps) < 4


@pytest.mark.parametrize("piece", PIECES)
def test_digits_of_the_derivative(piece: str) -> None:
    x = PIECES[piece]
    x = x[np.abs(x) > 1e-150]  # others have an infinite one
    with mpmath.workdps(50):
        want = [mpmath.polygamma(1, mpmath.mpf(float(v))) for v in x]
        ulps = [
            abs(mpmath.mpf(float(g)) - w) / float(np.spacing(abs(float(w))))
            for g, w in zip(tp.grad(total)(x), want, strict=True)
        ]
        assert max(ulps) < 5


def test_where_a_tangent_takes_part() -> None:
    """Below -1 its roots are those of a difference: what is lost there is lost in SciPy's as well."""
    x = RNG.uniform(-30, -1, 200)
    np.testing.assert_allclose(tp.function(psi)(x), special.digamma(x), rtol=1e-13, atol=1e-13)


def test_special_arguments() -> None:
    x = np.array([0.0, -0.0, -1.0, -7.0, -np.inf, np.inf, np.nan, 5e-324, -1e17])
    np.testing.assert_array_equal(tp.function(psi)(x), special.digamma(x))
    want = [np.inf, np.inf, np.inf, np.inf, np.nan, 0.0, np.nan, np.inf, np.inf]
    np.testing.assert_array_equal(tp.grad(total)(x), want)


def test_single_precision() -> None:
    x = np.linspace(-3.3, 20, 101, dtype=np.float32)
    got = tp.function(psi)(x)
    assert got.dtype == np.float32
    np.testing.assert_allclose(got, special.digamma(x.astype(float)), rtol=2e-7)
