"""scipy.linalg: bands, matrices made of a few numbers, roots and logarithms of matrices."""

import numpy as np
import pytest
import scipy.linalg

import tapeless as tp
from tests.prelude.judged import judge
from tests.quick import unoptimized  # noqa: F401

RNG = np.random.default_rng(7)
BAND, VECTOR, COLUMNS = RNG.normal(size=(4, 6)), RNG.normal(size=6), RNG.normal(size=(6, 2))
STEADY = BAND + np.array([[4.0], [0], [0], [4]])  # no pivot is near 0, whichever diagonal is the main one
HALF = np.array([[0, 0, 0.2, 0.1, 0.4], [0, -0.2, 0.3, 0.1, 0.2], [4.0, 5, 6, 3, 4]])
SQUARE = RNG.normal(size=(3, 3))
POSITIVE = SQUARE @ SQUARE.T + np.eye(3)

CASES = {
    "solve_banded": (lambda a, b: scipy.linalg.solve_banded((2, 1), a, b), BAND, VECTOR),
    "solve_banded, complex": (lambda a, b: scipy.linalg.solve_banded((1, 2), a, b), BAND + 1j * BAND[::-1], COLUMNS),
    "solve_banded, upper": (lambda a, b: scipy.linalg.solve_banded((0, 3), a, b), STEADY, COLUMNS),
    "solve_banded, lower": (lambda a, b: scipy.linalg.solve_banded((3, 0), a, b), STEADY, VECTOR),
    "solveh_banded": (lambda a, b: scipy.linalg.solveh_banded(a, b), HALF, VECTOR[:5]),
    "solveh_banded, lower": (lambda a, b: scipy.linalg.solveh_banded(a, b, lower=True), HALF[::-1] * (1 + 0j), VECTOR[:5]),
    "structured": (
        lambda c, r: (
            scipy.linalg.toeplitz(c), scipy.linalg.toeplitz(c, r), scipy.linalg.circulant(c), scipy.linalg.hankel(c, r),
            scipy.linalg.hankel(c), scipy.linalg.companion(c), scipy.linalg.leslie(c, r[:5]), scipy.linalg.hilbert(3),
            scipy.linalg.solve_toeplitz((c + 3, r), r),
        ),
        VECTOR, COLUMNS[:, 0].copy(),
    ),
    "toeplitz, complex": (lambda c: scipy.linalg.toeplitz(c), VECTOR[:3] + 1j),
    "sqrtm": (lambda a: scipy.linalg.sqrtm(a), scipy.linalg.expm(SQUARE)),
    "sqrtm, complex": (lambda a: scipy.linalg.sqrtm(a), SQUARE + 1j * POSITIVE),
    "logm": (lambda a: scipy.linalg.logm(a), POSITIVE),
    "polar": (lambda a: scipy.linalg.polar(a), SQUARE[:, :2].copy()),
    "lstsq, complex": (lambda a, b: np.linalg.lstsq(a, b)[:2], COLUMNS + 1j * COLUMNS[::-1], VECTOR + 1j),
    "pinv, complex": (lambda a: np.linalg.pinv(a), COLUMNS + 1j * COLUMNS[::-1]),
}  # fmt: skip


@pytest.mark.thorough
@pytest.mark.sampled(4)
@pytest.mark.parametrize("name", CASES)
def test_values_and_slopes(name):
    function, *args = CASES[name]
    judge(function, *args, rtol=1e-9, atol=1e-11)


@pytest.mark.exhaustive
def test_second_slopes():
    tp.check_grads(CASES["solve_banded"][0], (BAND, VECTOR), order=2)
    tp.check_grads(CASES["sqrtm"][0], (POSITIVE,), order=2)


def test_large_roots_and_logarithms():
    """Far from 1, and near to what has no root; an error rather than a few digits."""
    spread = SQUARE @ np.diag([1e-2, 1.0, 1e3]) @ np.linalg.inv(SQUARE)
    root = tp.function(lambda a: scipy.linalg.sqrtm(a))
    np.testing.assert_allclose(root(spread) @ root(spread), spread, atol=1e-10 * np.abs(spread).max())
    with pytest.raises(np.linalg.LinAlgError, match="too few digits"):
        root(SQUARE @ np.diag([1e-7, 1.0, 1e7]) @ np.linalg.inv(SQUARE))
    np.testing.assert_allclose(
        tp.jvp(lambda a: scipy.linalg.sqrtm(a), (np.eye(2),), (1e20 * np.ones((2, 2)),))[1], 5e19, rtol=1e-12
    )
    turn = np.array([[np.cos(3.1), -np.sin(3.1)], [np.sin(3.1), np.cos(3.1)]])
    np.testing.assert_allclose(tp.function(lambda a: scipy.linalg.logm(a))(turn), [[0, -3.1], [3.1, 0]], atol=1e-12)
    assert root(POSITIVE.astype(np.float32)).dtype == np.float32


ERRORS = {
    "no root": (lambda a: scipy.linalg.sqrtm(a), np.diag([1.0, -1.0]), np.linalg.LinAlgError),
    "singular band": (
        lambda a: scipy.linalg.solve_banded((1, 1), a, np.ones(3)),
        np.zeros((3, 3)),
        np.linalg.LinAlgError,
    ),
    "wrong band": (lambda a: scipy.linalg.solve_banded((1, 2), a, np.ones(3)), np.ones((3, 3)), ValueError),
    "not positive": (lambda a: scipy.linalg.solveh_banded(a, np.ones(3)), -np.ones((1, 3)), np.linalg.LinAlgError),
    "not finite": (lambda a: scipy.linalg.sqrtm(a), np.full((2, 2), np.nan), ValueError),
    "not square": (lambda a: scipy.linalg.logm(a), np.ones((2, 3)), ValueError),
}


@pytest.mark.parametrize("name", ERRORS)
def test_errors(name):
    function, a, error = ERRORS[name]
    with pytest.raises(error):
        tp.function(function)(a)
