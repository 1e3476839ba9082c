"""Derivatives of complex factorisations, and of bases that any turn leaves a basis."""

import numpy as np
import pytest

import tapeless as tp
from tests.prelude.judged import judge
from tests.quick import unoptimized  # noqa: F401

RNG = np.random.default_rng(3)
SQUARE = RNG.normal(size=(3, 3)) + 1j * RNG.normal(size=(3, 3))
HERMITIAN = SQUARE + np.conj(SQUARE.T)
TALL = RNG.normal(size=(4, 2)) + 1j * RNG.normal(size=(4, 2))
WEIGHTS = np.arange(9.0).reshape(3, 3) * (1 + 0.5j)

FACTORS = {
    "eigh": (lambda x: np.linalg.eigh(x), HERMITIAN),
    "svd of a tall matrix": (lambda x: np.linalg.svd(x, full_matrices=False), TALL),
    "svd of a wide matrix": (lambda x: np.linalg.svd(x.T, full_matrices=False), TALL),
    "qr": (lambda x: np.linalg.qr(x), TALL),
    "eig": (lambda x: np.linalg.eig(x), SQUARE),
}


@pytest.mark.thorough
@pytest.mark.sampled(3)
@pytest.mark.parametrize("name", FACTORS)
def test_slopes(name):
    """The phases of vectors are those of LAPACK, and so are their slopes."""
    function, x = FACTORS[name]
    judge(function, x, rtol=1e-10)


@pytest.mark.exhaustive
@pytest.mark.sampled(5)
@pytest.mark.parametrize("name", FACTORS)
def test_second_slopes(name):
    function, x = FACTORS[name]
    tp.check_grads(function, (x,), order=2)


def test_eigenvectors_of_real_matrices():
    tp.check_grads(lambda x: tuple(np.linalg.eig(x)), (RNG.normal(size=(3, 3)),), order=1)


def projector(x):
    v = np.linalg.eigh(x)[1][:, :2]
    return np.sum((v @ np.conj(v.T)) * WEIGHTS).real


@pytest.mark.thorough
def test_equal_eigenvalues():
    """Note [Vectors that are not unique] of prelude/factorisations.py."""
    q = np.linalg.qr(SQUARE)[0]
    twice = q @ np.diag([1.0, 1.0, 3.0]) @ np.conj(q.T)
    moved = np.tril(RNG.normal(size=(3, 3)) + 1j * RNG.normal(size=(3, 3)), -1)
    there, back = (projector(twice + s * 1e-6 * (moved + np.conj(moved.T))) for s in (1, -1))
    np.testing.assert_allclose(np.sum(tp.grad(projector)(twice) * moved).real, (there - back) / 2e-6, rtol=1e-6)
    total = tp.grad(lambda x: np.sum(np.linalg.eigvalsh(x)))(twice)
    np.testing.assert_allclose(total, np.eye(3), atol=1e-12)
    assert np.isnan(tp.grad(lambda x: np.linalg.eigvalsh(x)[0])(twice)).any()
    assert np.isnan(tp.grad(lambda x: np.abs(np.linalg.eigh(x)[1][0, 1]))(twice)).any()
    assert np.isnan(tp.grad(lambda x: np.linalg.eigvals(x)[0].real)(np.eye(2))).any()


# -- bases of what is left


def completed(x):
    u, s, vt = np.linalg.svd(x)
    q, r = np.linalg.qr(x, mode="complete")
    rest, other = u[:, 2:], q[:, 2:]
    return rest @ np.conj(rest.T), other @ np.conj(other.T), r, s, vt


@pytest.mark.thorough
@pytest.mark.parametrize("x", [TALL.real.copy(), TALL], ids=["real", "complex"])
def test_all_columns(x):
    judge(completed, x, order=0, rtol=1e-10, atol=1e-12)
    tp.check_grads(lambda x: completed(x)[:2], (x,), order=1, modes="rev")
    u, s, vt = tp.function(lambda x: np.linalg.svd(x.T))(x)
    np.testing.assert_allclose(vt @ np.conj(vt.T), np.eye(4), atol=1e-14)
    np.testing.assert_allclose((u * s) @ vt[:2], x.T, atol=1e-14)


def test_one_vector_of_a_basis_has_no_slope():
    turned = RNG.normal(size=(4, 4))
    assert np.isnan(tp.grad(lambda x: np.sum((np.linalg.svd(x)[0] @ turned)[1]))(TALL.real.copy())).any()
    assert np.isnan(tp.jvp(lambda x: np.linalg.svd(x)[0][:, 3], (TALL.real,), (TALL.imag,))[1]).any()
