"""NumPy's functions: reductions, scans, sorting, products, shapes, broadcasting, linear algebra, complex numbers."""

import numpy as np
import pytest
from scipy import special

import tapeless as tp
from tests.gradients.jacobians import Case, Cases

case = Cases()

X = np.array([0.7, -1.3, 2.1, 0.4])
Y = np.array([1.5, 0.2, -0.6, 0.9])
A = np.array([[0.1, 0.9, -0.4], [1.2, 0.6, 2.0]])
B = np.array([[1.0, -0.5], [0.3, 0.8], [2.0, 0.1]])
S = np.array([[4.0, 1.0, 0.5], [0.8, 3.0, -0.2], [0.1, 0.6, 2.5]])
V = np.array([1.0, -2.0, 0.5])


# -- element by element


@case(X, Y)
def broadcasting(x, y):
    return x[:, np.newaxis] * y + x[0]


@case(A, np.array([[2.0], [3.0]]))
def rows_and_columns(a, c):
    return a * c + c / (a + 5), c - a[0]


@case(X)
def where(x):
    return np.where(x > 0, x * x, np.exp(x))


@case(X, Y)
def pairs(x, y):
    return np.maximum(x, y) + np.minimum(x, 1.0) * np.hypot(x, y) + np.arctan2(x, y) + np.logaddexp(x, y)


@case(X)
def unary_functions(x):
    return np.tanh(x) * np.abs(x) + np.square(x) - np.reciprocal(x) + np.sin(x) * np.cosh(x) + np.clip(x, -1.0, 1.0)


@case(X)
def activations(x):
    return special.expit(x) + special.erf(x) * special.logsumexp(x) + special.xlogy(x * x, x * x + 1)


@case(A)
def methods(a):
    return a.sum(axis=1), a.T, a.max(), a.mean(axis=0), a.reshape(3, 2)


# -- reductions


@case(A, jacobian=np.vstack([np.ones(6), np.kron(np.ones(2), np.eye(3)), np.kron(np.eye(2), np.ones(3))]))
def sums(a):
    return np.sum(a), np.sum(a, axis=0), np.sum(a, axis=1)


@case(A)
def extrema(a):
    return np.max(a), np.min(a, axis=0), np.max(a, axis=1), np.amin(a)


@case(A)
def products(a):
    return np.prod(a), np.prod(a, axis=0), np.prod(a, axis=1)


@case(A)
def statistics(a):
    return np.mean(a), np.var(a), np.std(a, axis=1), np.mean(a * a, axis=0)


@case(A)
def kept_axes(a):
    return a / np.sum(a * a, axis=1, keepdims=True)


@case(X)
def value_at_the_extremum(x):
    return x[np.argmax(x)] * x[np.argmin(x)]


# -- scans and sorting


@case(X, jacobian=np.tri(4))
def running_sum(x):
    return np.cumsum(x)


@case(X)
def running_product(x):
    return np.cumprod(x)


@case(A)
def running_along_axes(a):
    return np.cumsum(a, axis=0), np.cumprod(a, axis=1)


@case(X, jacobian=np.eye(4)[[1, 3, 0, 2]])
def sort(x):
    return np.sort(x)


@case(A)
def sort_rows(a):
    return np.sort(a, axis=1), np.sort(a, axis=0)


@case(X, Y)
def order_of_another(x, y):
    return y[np.argsort(x)] * np.sort(x)


@case(X)
def steps_between(x):
    return np.diff(x), np.flip(x), np.roll(x, 1)


# -- polynomials


@case(X, A)
def polynomial(p, x):
    return np.polyval(p, x), np.polyval([1.0, x[0, 0], 2.0], p[1])


# -- products


@case(X, Y, jacobian=[*Y, *X])
def dot(x, y):
    return np.dot(x, y)


@case(A, B, jacobian=np.hstack([np.kron(np.eye(2), B.T), np.kron(A, np.eye(2))]))
def matrix_times_matrix(a, b):
    return a @ b


@case(A, V, jacobian=np.hstack([np.kron(np.eye(2), V), A]))
def matrix_times_vector(a, v):
    return a @ v


@case(V[:2], A)
def vector_times_matrix(v, a):
    return v @ a


@case(X, Y[:2])
def outer(x, y):
    return np.outer(x, y)


@case(A, B)
def einsum(a, b):
    return np.einsum("ij,jk->ki", a, b), np.einsum("ij,ij->i", a, a), np.einsum("ij->j", a)


@case(np.arange(8.0).reshape(2, 2, 2) / 4 - 0.7, B[:2])
def batched_product(t, b):
    return t @ b


@case(A)
def product_with_itself(a):
    return a @ a.T


# -- shapes


@case(X, Y)
def concatenate(x, y):
    return np.concatenate((x, y * 2, x)), np.stack([x, y]), np.hstack((x[:1], y[:1]))


@case(A)
def concatenate_along_axes(a):
    return np.concatenate((a, a * a), axis=1), np.vstack((a, a[:1]))


@case(A)
def turned(a):
    return np.transpose(a) * 2, a.reshape(6) ** 2, np.ravel(a.T), np.expand_dims(a, 0), np.swapaxes(a, 0, 1)


@case(0.5, 2.0)
def array_from_scalars(x, y):
    return np.array([[x, y], [x * y, 1.0]])


@case(0.5, 2.0)
def made_arrays(x, y):
    return np.full(3, x * y), np.linspace(x, y, 4), np.zeros(2) + x, np.ones((2, 2)) * y


@case(X)
def repeated(x):
    return np.broadcast_to(x, (2, 4)) * 3, np.tile(x, 2), np.repeat(x, 2)


@case(A[:, :2])
def diagonals(a):
    return np.trace(a), np.diag(a), np.triu(a), np.eye(2) * a


# -- linear algebra: the Jacobians are those of the textbook

INVERSE = np.linalg.inv(S)


@case(S, V, jacobian=np.hstack([-np.kron(INVERSE, INVERSE @ V), INVERSE]))
def solve(a, b):
    return np.linalg.solve(a, b)


@case(S, S[:, :2])
def solve_for_a_matrix(a, b):
    return np.linalg.solve(a, b)


@case(S, jacobian=-np.kron(INVERSE, INVERSE.T))
def inverse(a):
    return np.linalg.inv(a)


@case(S, jacobian=np.linalg.det(S) * INVERSE.T.ravel())
def determinant(a):
    return np.linalg.det(a)


def cofactors(a):
    n = len(a)
    minors = [[np.delete(np.delete(a, i, 0), j, 1) for j in range(n)] for i in range(n)]
    return np.array([[(-1) ** (i + j) * np.linalg.det(minors[i][j]) for j in range(n)] for i in range(n)])


RANK_2 = np.array([[1.0, 2.0, 3.0], [2.0, 1.0, 0.0], [3.0, 3.0, 3.0]])
SINGULAR = [np.ones((2, 2)), np.zeros((1, 1)), np.zeros((2, 2)), RANK_2, np.outer(V[:3], V[:3]), np.zeros((4, 4))]


@pytest.mark.thorough
@pytest.mark.sampled(3)
@pytest.mark.parametrize("a", SINGULAR, ids=lambda a: f"{len(a)} rows, rank {np.linalg.matrix_rank(a)}")
def test_determinants_of_singular_matrices(a):
    assert np.linalg.det(a) == pytest.approx(0.0)
    n = len(a)
    for derivative in (tp.grad, tp.jacfwd):
        np.testing.assert_allclose(derivative(np.linalg.det)(a), cofactors(a), atol=1e-14)
    expected = np.zeros((n, n, n, n))
    for i, j, k, m in np.ndindex(expected.shape):
        if i != k and j != m:
            rest = np.delete(np.delete(a, (i, k), 0), (j, m), 1)
            expected[i, j, k, m] = (-1) ** (i + j + k + m) * np.linalg.det(rest) * (1 if (i < k) == (j < m) else -1)
    np.testing.assert_allclose(tp.hessian(lambda a: np.linalg.det(a))(a), expected, atol=1e-13)


@case(S, jacobian=np.vstack([np.zeros(9), INVERSE.T.ravel()]))
def logarithm_of_the_determinant(a):
    return np.linalg.slogdet(a)


@case(-S, jacobian=-INVERSE.T.ravel())
def logarithm_of_a_negative_determinant(a):
    return np.linalg.slogdet(a)[1]


@case(S)
def cholesky(a):
    """Of a symmetric matrix made of `a`, so that a step of one element keeps it symmetric."""
    return np.linalg.cholesky(a @ a.T)


@case(S, S.T)
def complex_cholesky(a, b):
    """Of a Hermitian matrix, and of one whose upper triangle must not matter."""
    c = a + 1j * b
    lower = np.linalg.cholesky(c @ np.conj(c).T)
    other = np.linalg.cholesky(np.tril(c @ np.conj(c).T) + np.triu(c, 1))
    return lower.real, lower.imag, np.abs(other + 2.0)


@case(X, jacobian=X / np.sqrt(np.sum(X * X)))
def euclidean_norm(x):
    return np.linalg.norm(x)


@case(A)
def norms(a):
    return np.linalg.norm(a), np.linalg.norm(a, axis=1), np.linalg.norm(a[0], 1), np.linalg.norm(a[1], np.inf)


@case(S, V)
def quadratic_form_in_a_loop(a, b):
    x = b
    for i in range(3):
        x = np.linalg.solve(a + i * np.eye(3), x * b)
    return x @ a @ x


# -- complex numbers on the way from real ones to real ones


@case(0.3, -0.8)
def complex_product(x, y):
    z = complex(x, y)
    w = z * z + 1j / z
    return w.real, w.imag, abs(w)


@case(X, Y)
def complex_arrays(x, y):
    z = np.exp(1j * x) * y
    return np.abs(z + 1.0), np.real(z * np.conj(z)), np.angle(z + 3.0)


@case(0.3, 0.4)
def complex_loop(x, y):
    z, c = 0j, complex(x, y)
    for i in range(5):
        z = z * z + c
    return z.real * z.real + z.imag * z.imag


@case(X, jacobian=np.array([[np.cos(2 * np.pi * j * k / 4) for k in range(4)] for j in range(4)]))
def transform_by_hand(x):
    n = len(x)
    y = np.zeros(n)
    for j in range(n):
        s = 0j
        for k in range(n):
            s += x[k] * np.exp(-2j * np.pi * j * k / n)
        y[j] = s.real
    return y


def test_complex_arguments() -> None:
    """As in JAX: of a real result the gradient is du/dx - i du/dy; of a holomorphic function the pullback is a product."""
    z = 1.0 + 2.0j
    assert tp.grad(lambda z: z.real**2 + z.imag**2)(z) == 2 - 4j
    np.testing.assert_allclose(tp.grad(lambda z: abs(z))(z), np.conj(z) / abs(z))
    np.testing.assert_allclose(tp.grad(lambda z: (z * z * 1j).real)(z), 2j * z)
    (pulled,) = tp.vjp(lambda z: np.exp(z) * z, z)[1](1.0 + 0.5j)
    np.testing.assert_allclose(pulled, np.exp(z) * (1 + z) * (1.0 + 0.5j))
    out, tangent = tp.jvp(lambda z: np.exp(z) * z, (z,), (1.0 - 0.5j,))
    np.testing.assert_allclose(tangent, np.exp(z) * (1 + z) * (1.0 - 0.5j))
    a = np.array([1 + 2j, -0.5j, 3.0])
    np.testing.assert_allclose(tp.grad(lambda a: np.sum(np.abs(a) ** 2))(a), 2 * np.conj(a))
    np.testing.assert_allclose(tp.grad(lambda a: np.sum(a * np.conj(a)).real)(a), 2 * np.conj(a))


# -- single precision

X32 = X.astype(np.float32)


@case(X32, jacobian=2 * X, differ=False)
def single_precision(x):
    return np.sum(x * x)


@case(X32, jacobian=np.cos(X) * np.exp(np.sin(X)), differ=False, tolerance=1e-4)
def single_precision_loop(x):
    s = np.float32(0.0)
    for i in range(len(x)):
        s += np.exp(np.sin(x[i]))
    return s


@case(np.float32(0.5), jacobian=[np.exp(0.5)], differ=False)
def single_precision_scalar(x):
    return np.exp(x)


@case(X32, 2.0, jacobian=[4, 4, 4, 4, 2 * np.sum(2.0 * X)], differ=False, tolerance=1e-5)
def mixed_precision(x, y):
    """f32 * f64 scalar: NumPy keeps f32 for Python floats."""
    return np.sum(x * y * y)


@pytest.mark.sampled(8)
@case.all
def test_jacobian(program: Case) -> None:
    program.check()
