"""Products and factorisations in every number type, layout and small size: compiled code against NumPy."""

import numpy as np
import pytest

import tapeless as tp

DTYPES = [np.float32, np.float64, np.complex64, np.complex128]


def solve(a, b):
    return np.linalg.solve(a, b)


def inv(a, b):
    return np.linalg.inv(a)


def det(a, b):
    return np.linalg.det(a)


def slogdet(a, b):
    sign, log = np.linalg.slogdet(a)
    return sign, log


def cholesky(a, b):
    return np.linalg.cholesky(a @ np.conj(a).T)


def cholesky_of_a_lower_triangle(a, b):
    return np.linalg.cholesky(np.tril(a @ np.conj(a).T) + np.triu(b, 1))


def matmul(a, b):
    return a @ b, a.T @ b, a @ b.T, np.conj(a).T @ b[:, 0], b[0] @ a, np.vdot(a[0], b[0])


def norms(a, b):
    return np.linalg.norm(a), np.linalg.norm(b, axis=0), np.trace(a), np.outer(a[0], b[0])


def einsum(a, b):
    return np.einsum("ij,jk->ik", a, b), np.einsum("ij,ij->i", a, b), np.einsum("ii", a), np.kron(a, b)


LAYOUTS = {
    "rows": lambda a: a,
    "columns": np.asfortranarray,
    "strided": lambda a: np.repeat(np.repeat(a, 2, 0), 3, 1)[::2, ::3],
    "backwards": lambda a: np.ascontiguousarray(a[::-1, ::-1])[::-1, ::-1],
}


@pytest.mark.sampled(8, each="f")
@pytest.mark.parametrize("n", [1, 2, 3, 9])
@pytest.mark.parametrize("dtype", DTYPES, ids=lambda d: d.__name__)
@pytest.mark.parametrize(
    "f",
    [solve, inv, det, slogdet, cholesky, cholesky_of_a_lower_triangle, matmul, norms, einsum],
    ids=lambda f: f.__name__,
)
def test_against_numpy(f, dtype, n):
    rng = np.random.default_rng(n)
    a, b = rng.standard_normal((2, n, n)) + n * np.eye(n)
    if np.issubdtype(dtype, np.complexfloating):
        a, b = a + 1j * rng.standard_normal((n, n)), b - 1j * rng.standard_normal((n, n))
    compiled = tp.function(f)
    for layout in LAYOUTS.values():
        x, y = layout(a.astype(dtype)), layout(b.astype(dtype))
        got, want = compiled(x, y), f(x, y)
        for g, w in zip(got, want, strict=True) if isinstance(want, tuple) else [(got, want)]:
            assert np.asarray(g).dtype == np.asarray(w).dtype
            np.testing.assert_allclose(g, w, rtol=1e3 * np.finfo(dtype).eps, atol=1e3 * np.finfo(dtype).eps)


def products_of_two_sizes(a, sizes):
    total = 0j
    for k in range(len(sizes)):
        part = a[::2, ::2][: sizes[k], : sizes[k]]
        total += (part @ part)[0, 0]
    return total


def test_room_for_a_complex_product_belongs_to_the_branch_that_calls_blas(monkeypatch):
    """The verifier says so where it is given back after both branches."""
    monkeypatch.setattr("tapeless.runtime.compile.VERIFY", True)
    a = np.random.default_rng(0).random((160, 160)) * (1 + 1j)
    sizes = np.array([80, 2, 80, 2, 2, 80, 3])
    got = tp.function(products_of_two_sizes, cache=False)(a, sizes)
    np.testing.assert_allclose(got, products_of_two_sizes(a, sizes))
