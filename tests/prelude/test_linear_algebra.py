"""Factorisations and what is made of them: values by NumPy and SciPy, derivatives by differences, and where there are none."""

import numpy as np
import pytest
import scipy.linalg

import tapeless as tp
from tapeless.frontend.entry import trace
from tapeless.passes.check.verify import verify
from tests.prelude.judged import judge
from tests.quick import unoptimized  # noqa: F401

RNG = np.random.default_rng(5)
SQUARE = RNG.normal(size=(4, 4))
POSITIVE = SQUARE @ SQUARE.T + 4 * np.eye(4)
TALL = RNG.normal(size=(5, 3))
STACK = RNG.normal(size=(2, 3, 3))
VECTOR = RNG.normal(size=4)
COMPLEX = SQUARE + 1j * RNG.normal(size=(4, 4))
WEIGHTS = np.arange(9.0).reshape(3, 3)

REAL = {
    "eigh": (lambda x: np.linalg.eigh(x), POSITIVE),
    "eigh of the upper triangle": (lambda x: np.linalg.eigh(x, UPLO="U").eigenvalues, SQUARE),
    "eigvalsh of a stack": (lambda x: np.linalg.eigvalsh(x), STACK),
    "svd": (lambda x: np.linalg.svd(x, full_matrices=False), TALL),
    "svd of a wide matrix": (lambda x: np.abs(np.linalg.svd(x.T, full_matrices=False)[2]), TALL),
    "singular values": (lambda x: np.linalg.svd(x, compute_uv=False), STACK),
    "qr": (lambda x: np.linalg.qr(x), TALL),
    "qr of a wide matrix": (lambda x: np.linalg.qr(x.T), TALL),
    "r alone": (lambda x: np.linalg.qr(x, mode="r"), STACK),
    "pinv": (lambda x: np.linalg.pinv(x), TALL),
    "lstsq": (lambda x, b: np.linalg.lstsq(x, b, rcond=None)[0], TALL, RNG.normal(size=5)),
    "lstsq of columns": (lambda x, b: np.linalg.lstsq(x, b)[:2], TALL, RNG.normal(size=(5, 2))),
    "cond": (lambda x: np.linalg.cond(x), TALL),
    "norm 2": (lambda x: np.linalg.norm(x, 2), TALL),
    "norm -2": (lambda x: np.linalg.norm(x, -2), TALL),
    "nuclear norm": (lambda x: np.linalg.norm(x, "nuc"), TALL),
    "lstsq of SciPy": (lambda x, b: scipy.linalg.lstsq(x, b)[:2], TALL, RNG.normal(size=5)),
    "multi_dot": (lambda x: np.linalg.multi_dot([x.T, x, x.T]), TALL),
    "multi_dot from the right": (lambda x: np.linalg.multi_dot([x, x.T, x, x[0]]), TALL),
    "solve_triangular": (lambda a, b: scipy.linalg.solve_triangular(a, b, lower=True), POSITIVE, VECTOR),
    "solve_triangular, turned": (lambda a, b: scipy.linalg.solve_triangular(a, b, trans="T"), POSITIVE, VECTOR),
    "solve_triangular, ones": (lambda a, b: scipy.linalg.solve_triangular(a, b, unit_diagonal=True), POSITIVE, VECTOR),
    "cholesky": (lambda a: scipy.linalg.cholesky(a), POSITIVE),
    "cholesky, lower": (lambda a: scipy.linalg.cholesky(a, lower=True), POSITIVE),
    "cho_solve": (lambda a, b: scipy.linalg.cho_solve(scipy.linalg.cho_factor(a), b), POSITIVE, VECTOR),
    "lu_solve": (lambda a, b: scipy.linalg.lu_solve(scipy.linalg.lu_factor(a), b, trans=1), POSITIVE, VECTOR),
    "solve": (lambda a, b: scipy.linalg.solve(a, b), SQUARE, VECTOR),
    "solve, symmetric": (lambda a, b: scipy.linalg.solve(a, b, assume_a="pos"), POSITIVE, VECTOR),
    "inv and det": (lambda a: (scipy.linalg.inv(a), scipy.linalg.det(a)), SQUARE),
    "norm": (lambda a: scipy.linalg.norm(a), SQUARE),
    "expm": (lambda a: scipy.linalg.expm(a), SQUARE),
    "expm of a stack of large ones": (lambda a: scipy.linalg.expm(4 * a), STACK),
    "block_diag": (lambda a, b: scipy.linalg.block_diag(a, b, a), TALL, VECTOR),
    "qr, economic": (lambda a: scipy.linalg.qr(a, mode="economic"), TALL),
}  # fmt: skip
OTHER = {
    "eigh, complex": (lambda x: np.linalg.eigh(x + np.conj(x.T))[0], COMPLEX),
    "svd, complex": (lambda x: np.linalg.svd(x), COMPLEX),
    "qr, complex": (lambda x: np.linalg.qr(x), COMPLEX),
    "eig, complex": (lambda x: np.linalg.eig(x), COMPLEX),
    "single precision": (lambda x: np.linalg.svd(x)[1], SQUARE.astype(np.float32)),
    "integers": (lambda x: np.linalg.eigvalsh(x), np.array([[2, 1], [1, 3]])),
    "lstsq of a wide matrix": (lambda x, b: np.linalg.lstsq(x.T, b), TALL, VECTOR[:3]),
    "lstsq of rank 1": (lambda x, b: np.linalg.lstsq(x, b), np.outer(VECTOR, VECTOR[:2]), SQUARE),
    "lstsq of SciPy": (lambda x, b: scipy.linalg.lstsq(x, b), TALL, RNG.normal(size=5)),
    "lstsq of SciPy, columns": (lambda x, b: scipy.linalg.lstsq(x, b), TALL, RNG.normal(size=(5, 2))),
    "matrix_rank": (lambda x: np.linalg.matrix_rank(x), np.ones((4, 4))),
    "matrix_rank of a stack": (lambda x: np.linalg.matrix_rank(x), STACK),
}


@pytest.mark.sampled(5)
@pytest.mark.parametrize("name", REAL)
def test_values_and_slopes(name):
    function, *args = REAL[name]
    judge(function, *args, rtol=1e-9, atol=1e-12)


@pytest.mark.parametrize("name", OTHER)
def test_values(name):
    function, *args = OTHER[name]
    judge(function, *args, order=0, rtol=1e-5 if name == "single precision" else 1e-10)


@pytest.mark.thorough
@pytest.mark.sampled(3)
@pytest.mark.parametrize("name", ["eigh", "svd", "qr"])
def test_second_derivatives(name):
    function, *args = REAL[name]
    tp.check_grads(function, args, order=2)


def test_programs_are_valid():
    """What is raised is known, and sizes that are known outside of a loop over a stack are."""
    for function, *args in (*REAL.values(), *OTHER.values()):
        verify(trace(function, args).core)


def test_eigenvalues_of_any_matrix():
    """Complex always, where NumPy looks at the numbers first."""
    found = tp.function(lambda x: np.linalg.eigvals(x))(POSITIVE)
    assert found.dtype == np.complex128
    np.testing.assert_allclose(np.sort(found.real), np.linalg.eigvalsh(POSITIVE))
    tp.check_grads(lambda x: np.sort(np.abs(np.linalg.eigvals(x))), (SQUARE,), order=1)


@pytest.mark.parametrize("turn", [0.0, 0.3, 1j])
def test_vectors_of_any_matrix(turn):
    """Real ones with real values, with pairs of them, and complex ones."""
    a = np.array([[2.0, turn, 0.0], [-turn, 2.0, 0.0], [1.0, 0.5, 3.0]])
    w, v = tp.function(lambda x: np.linalg.eig(x))(a)
    np.testing.assert_allclose(a @ v, v * w, atol=1e-12)
    np.testing.assert_allclose(np.linalg.norm(v, axis=0), 1.0)
    np.testing.assert_allclose(w, np.linalg.eigvals(a), atol=1e-12)


def differences(function, x, lower=False):
    found = np.zeros_like(x)
    for place in np.ndindex(x.shape):
        if lower and place[0] < place[1]:
            continue
        moved = [x.copy(), x.copy()]
        moved[0][place] += 1e-5
        moved[1][place] -= 1e-5
        found[place] = (function(moved[0]) - function(moved[1])) / 2e-5
    return found


def projector(x):
    _, v = np.linalg.eigh(x)
    return np.sum((v[:, :2] @ v[:, :2].T) * WEIGHTS)


def polar(x):
    u, _, vt = np.linalg.svd(x)
    return np.sum((u @ vt) * WEIGHTS)


def product(x):
    u, s, vt = np.linalg.svd(x)
    return np.sum(((u * s) @ vt) * WEIGHTS)


def test_equal_eigenvalues():
    """Note [Vectors that are not unique] of prelude/factorisations.py."""
    twice = np.diag([1.0, 1.0, 3.0])
    total = tp.grad(lambda x: np.sum(np.linalg.eigvalsh(x)))(twice)
    np.testing.assert_allclose(total, np.eye(3), atol=1e-14)
    np.testing.assert_allclose(tp.grad(projector)(twice), differences(projector, twice, lower=True), atol=1e-8)
    assert np.isnan(tp.grad(lambda x: np.linalg.eigvalsh(x)[0])(twice)).any()
    assert np.isnan(tp.grad(lambda x: np.linalg.eigh(x)[1][0, 1])(twice)).any()
    np.testing.assert_allclose(tp.grad(lambda x: np.linalg.eigvalsh(x)[2])(twice), np.diag([0, 0, 1.0]), atol=1e-14)


@pytest.mark.thorough
def test_equal_and_zero_singular_values():
    turned = 2 * np.linalg.qr(STACK[0])[0]
    np.testing.assert_allclose(tp.grad(polar)(turned), differences(polar, turned), atol=1e-7)
    np.testing.assert_allclose(tp.grad(product)(np.diag([2.0, 1.0, 0.0])), WEIGHTS, atol=1e-12)
    nuclear = tp.grad(lambda x: np.linalg.norm(x, "nuc"))(np.diag([1.0, 1.0, 0.0]))
    np.testing.assert_allclose(np.abs(np.diagonal(nuclear)), 1.0)
    assert np.isnan(tp.grad(lambda x: np.linalg.norm(x, 2))(np.eye(3))).any()
    assert np.isnan(tp.grad(polar)(np.diag([1.0, 0.0, 0.0]))).any()


def test_what_is_refused():
    with pytest.raises(tp.CompileError, match="this mode cannot be compiled"):
        tp.function(lambda x: np.linalg.qr(x, mode="raw"))(TALL)
    with pytest.raises(np.linalg.LinAlgError):
        tp.function(lambda x: np.linalg.eigvalsh(x))(np.full((3, 3), np.nan))


LOWER = np.tril(np.arange(1.0, 10).reshape(3, 3)) + 3 * np.eye(3)


@pytest.mark.parametrize("size", [2, 4])
def test_sizes_that_do_not_fit(size):
    solve = tp.function(lambda a, b: scipy.linalg.solve_triangular(a, b, lower=True))
    by_factor = tp.function(lambda a, b: scipy.linalg.cho_solve((a, True), b))
    for function in (solve, by_factor):
        with pytest.raises(ValueError):
            function(LOWER, np.ones(size))
    with pytest.raises(ValueError):
        solve(LOWER[:, :2], np.ones(3))


@pytest.mark.parametrize("name", ["eigh", "eigvalsh", "eig", "eigvals"])
def test_matrices_that_are_not_square(name):
    of = getattr(np.linalg, name)
    with pytest.raises(ValueError):
        tp.function(lambda a: of(a))(LOWER[:2])


OF_FINITE = {
    "eigh": lambda a: np.linalg.eigh(a),
    "eigvals": lambda a: np.linalg.eigvals(a),
    "svd": lambda a: np.linalg.svd(a),
    "norm": lambda a: np.linalg.norm(a, 2),
    "matrix_rank": lambda a: np.linalg.matrix_rank(a),
    "lstsq": lambda a: np.linalg.lstsq(a, np.ones(3))[0],
}


@pytest.mark.parametrize("what", [np.nan, np.inf])
@pytest.mark.parametrize("name", OF_FINITE)
def test_numbers_that_are_not_finite(name, what):
    a = LOWER.copy()
    a[1, 1] = what
    with pytest.raises(np.linalg.LinAlgError):
        tp.function(OF_FINITE[name])(a)


def test_what_is_no_matrix():
    for function in (lambda x: np.linalg.eigh(x), lambda x: np.linalg.svd(x), lambda x: scipy.linalg.expm(x)):
        with pytest.raises(tp.CompileError, match="a matrix is wanted here, not a 1-dimensional array"):
            tp.function(function)(VECTOR)
    with pytest.raises(ValueError):
        tp.function(lambda x: scipy.linalg.expm(x))(TALL)


def test_exponential_of_infinity_ends():
    assert np.isnan(tp.function(lambda x: scipy.linalg.expm(x))(np.full((2, 2), np.inf))).all()


def test_scipy_tests_for_finite_numbers():
    a = LOWER * np.nan
    for function in (
        lambda a: scipy.linalg.cholesky(a),
        lambda a: scipy.linalg.inv(a),
        lambda a: scipy.linalg.solve_triangular(a, a[0]),
        lambda a: scipy.linalg.svd(a),
        lambda a: scipy.linalg.norm(a),
        lambda a: scipy.linalg.det(a),
        lambda a: scipy.linalg.eigvalsh(a),
        lambda a: scipy.linalg.eigvals(a),
        lambda a: scipy.linalg.svdvals(a),
        lambda a: scipy.linalg.pinv(a),
        lambda a: scipy.linalg.qr(a, mode="economic"),
        lambda a: scipy.linalg.solve(a, a),
    ):
        with pytest.raises(ValueError, match="must not contain infs or NaNs"):
            tp.function(function)(a)
    assert np.isnan(tp.function(lambda a: scipy.linalg.inv(a, check_finite=False))(a)).all()
