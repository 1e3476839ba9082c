"""The library of reversible routines: values by NumPy and SciPy, the way back, gradients by the same thing written plainly."""

import numpy as np
import pytest
import scipy.sparse

import tapeless as tp
from tapeless.reversible import library
from tapeless.reversible.library import (
    affine,
    axpy,
    csr_dot,
    csr_matmul,
    csr_matvec,
    dot,
    fft,
    forest_ruth,
    hash,
    leapfrog,
    matmul,
    matvec,
    nice,
    norm,
    real_nvp,
    residual,
    rotations,
    scramble,
    selection_sort,
    sort,
    sorting_rounds,
    sum,
    xorshift,
)

pytestmark = pytest.mark.filterwarnings("error::tapeless.errors.InversionDrift")

RANDOM = np.random.default_rng(5)
MATRIX, OTHER = RANDOM.normal(size=(4, 5)), RANDOM.normal(size=(5, 3))
X, Y = RANDOM.normal(size=5), RANDOM.normal(size=5)


def copies(state):
    return [a.copy() if isinstance(a, np.ndarray) else a for a in state]


def there_and_back(function, *state, atol=1e-14, **keywords):
    """The state at the end. Backwards it gives the one at the start."""
    end = function(*copies(state), **keywords)
    start = (~function)(*copies(end), **keywords)
    for a, b in zip(start, state, strict=True):
        np.testing.assert_allclose(a, b, rtol=0, atol=atol)
    return end


def same_gradients(one, other, *args, rtol=1e-10):
    chosen = tuple(range(len(args)))
    for a, b in zip(tp.grad(one, argnums=chosen)(*args), tp.grad(other, argnums=chosen)(*args), strict=True):
        np.testing.assert_allclose(a, b, rtol=rtol, atol=1e-12)


def test_it_has_its_name():
    assert tp.reversible.library is library
    assert all(getattr(library, name).__doc__ for name in library.__all__)


# -- dense arrays


def test_sum_dot_and_norm():
    assert there_and_back(sum, 1.0, X)[0] == pytest.approx(1.0 + X.sum(), rel=1e-14)
    assert there_and_back(dot, 0.0, X, Y)[0] == pytest.approx(X @ Y, rel=1e-14)
    assert there_and_back(norm, 0.0, X)[0] == pytest.approx(np.linalg.norm(X), rel=1e-14)
    assert sum(0.0, MATRIX)[0] == pytest.approx(MATRIX.sum(), rel=1e-14)

    def reversible(x, y):
        return sum(0.0, x)[0] * dot(0.0, x, y)[0] * norm(0.0, y)[0]

    same_gradients(reversible, lambda x, y: np.sum(x) * np.sum(x * y) * np.sqrt(np.sum(y**2)), X, Y)


def test_axpy_and_products():
    np.testing.assert_allclose(there_and_back(axpy, Y, 2.0, X)[0], 2.0 * X + Y, rtol=1e-14)
    np.testing.assert_allclose(there_and_back(matvec, np.zeros(4), MATRIX, X)[0], MATRIX @ X, rtol=1e-13)
    np.testing.assert_allclose(
        there_and_back(matmul, np.ones((4, 3)), MATRIX, OTHER)[0], 1 + MATRIX @ OTHER, rtol=1e-13
    )

    def reversible(a, b, alpha, x):
        (c, a, b), (y, alpha, x) = matmul(np.zeros((4, 3)), a, b), axpy(np.ones(5), alpha, x)
        return np.sum(c**2) + np.sum(matvec(np.zeros(4), a, y)[0] ** 2)

    def plain(a, b, alpha, x):
        return np.sum((a @ b) ** 2) + np.sum((a @ (1 + alpha * x)) ** 2)

    same_gradients(reversible, plain, MATRIX, OTHER, 0.7, X)


def test_affine():
    b = np.arange(4.0)
    np.testing.assert_allclose(there_and_back(affine, np.zeros(4), MATRIX, b, X)[0], MATRIX @ X + b, rtol=1e-13)
    same_gradients(
        lambda w, b, x: np.sum(affine(np.zeros(4), w, b, x)[0] ** 2),
        lambda w, b, x: np.sum((w @ x + b) ** 2),
        MATRIX, b, X,
    )  # fmt: skip


# -- sparse matrices

A, B = (scipy.sparse.random(6, 5, 0.4, format="csr", rng=np.random.default_rng(k)) for k in (1, 2))
ROWS = np.repeat(np.arange(6), np.diff(A.indptr))


def test_sparse_products():
    stored = {"indices": A.indices, "indptr": A.indptr}
    np.testing.assert_allclose(there_and_back(csr_matvec, np.zeros(6), A.data, X, **stored)[0], A @ X, rtol=1e-14)
    c = there_and_back(csr_matmul, np.zeros((6, 3)), A.data, OTHER, **stored)[0]
    np.testing.assert_allclose(c, A @ OTHER, rtol=1e-13)

    def reversible(data, x, b):
        y, data, x = csr_matvec(np.zeros(6), data, x, indices=A.indices, indptr=A.indptr)
        c, data, b = csr_matmul(np.zeros((6, 3)), data, b, indices=A.indices, indptr=A.indptr)
        return np.sum(y**2) + np.sum(c**2)

    data, x, b = tp.grad(reversible, argnums=(0, 1, 2))(A.data, X, OTHER)  # as many as are stored
    dense = 2 * np.outer(A @ X, X) + 2 * (A @ OTHER) @ OTHER.T
    np.testing.assert_allclose(data, dense[ROWS, A.indices], rtol=1e-12)
    np.testing.assert_allclose(x, 2 * A.T @ (A @ X), rtol=1e-12)
    np.testing.assert_allclose(b, 2 * A.T @ (A @ OTHER), rtol=1e-12)


def test_sparse_dot():
    both = {"indices_a": A.indices, "indptr_a": A.indptr, "indices_b": B.indices, "indptr_b": B.indptr}
    assert there_and_back(csr_dot, 0.0, A.data, B.data, **both)[0] == pytest.approx(A.multiply(B).sum(), rel=1e-14)

    def reversible(a, b):
        return csr_dot(
            0.0, a, b, indices_a=A.indices, indptr_a=A.indptr, indices_b=B.indices, indptr_b=B.indptr
        )[0]  # fmt: skip

    mine, others = tp.grad(reversible, argnums=(0, 1))(A.data, B.data)
    np.testing.assert_array_equal(mine, B.toarray()[ROWS, A.indices])
    np.testing.assert_array_equal(others, A.toarray()[np.repeat(np.arange(6), np.diff(B.indptr)), B.indices])


# -- unitary maps

ANGLES = RANDOM.normal(size=10)


def turned(x, angles):
    for i in range(1, 5):
        for j in range(i):
            a, b, t = x[i], x[j], angles[i * (i - 1) // 2 + j]
            x[i], x[j] = a * np.cos(t) - b * np.sin(t), a * np.sin(t) + b * np.cos(t)
    return x


@pytest.mark.thorough
def test_rotations():
    x, _ = there_and_back(rotations, X, ANGLES)
    assert np.linalg.norm(x) == pytest.approx(np.linalg.norm(X), rel=1e-15)
    np.testing.assert_allclose(x, turned(X.copy(), ANGLES), rtol=1e-13)
    u, _ = there_and_back(rotations, np.eye(5), ANGLES)
    np.testing.assert_allclose(u @ u.T, np.eye(5), atol=1e-14)
    np.testing.assert_allclose(u @ X, x, rtol=1e-13)
    assert np.linalg.det(u) == pytest.approx(1.0)

    def reversible(x, angles):
        return rotations(x, angles)[0][0]

    same_gradients(reversible, lambda x, angles: turned(x.copy(), angles)[0], X, ANGLES)
    tp.check_grads(reversible, (X, ANGLES), order=1)


def test_fft():
    z = RANDOM.normal(size=64) + 1j * RANDOM.normal(size=64)
    re, im = there_and_back(fft, z.real.copy(), z.imag.copy())
    np.testing.assert_allclose(8 * (re + 1j * im), np.fft.fft(z), rtol=1e-12)

    def power(re, im):
        re, im = fft(re, im)
        return re[1] ** 2 + im[1] ** 2

    line = np.exp(-2j * np.pi * np.arange(64) / 64) / 8  # the row of the matrix that makes the second number
    wanted = 2 * (line @ z) * line.conj()
    re, im = tp.grad(power, argnums=(0, 1))(z.real, z.imag)
    np.testing.assert_allclose(re + 1j * im, wanted, rtol=1e-10)
    with pytest.raises(ValueError, match="2\\*\\*k"):
        fft(np.zeros(6), np.zeros(6))


# -- sorting


@pytest.mark.parametrize("n", [0, 1, 2, 7, 16, 21])
def test_sort(n):
    x = RANDOM.integers(0, 9, size=n).astype(float)
    swapped = np.zeros((sorting_rounds(n), n), bool)
    y, order, _ = there_and_back(sort, x, np.arange(n), swapped)
    np.testing.assert_array_equal(y, np.sort(x))
    np.testing.assert_array_equal(x[order], y)
    z, _ = there_and_back(selection_sort, x, np.zeros(n, int))
    np.testing.assert_array_equal(z, y)


def test_gradients_of_sorting():
    x = RANDOM.normal(size=7)
    ranks = np.argsort(np.argsort(x)).astype(float)

    def by_network(x):
        return np.sum(np.arange(7) * sort(x, np.arange(7), np.zeros((6, 7), bool))[0])

    def by_selection(x):
        return np.sum(np.arange(7) * selection_sort(x, np.zeros(7, np.int64))[0])

    np.testing.assert_array_equal(tp.grad(by_network)(x), ranks)
    np.testing.assert_array_equal(tp.grad(by_selection)(x), ranks)


# -- motion


def gravity(q, mass):
    return -mass * q / np.sqrt(np.sum(q**2)) ** 3


def plain_leapfrog(q, p, mass, h, steps):
    for _ in range(steps):
        q = q + h / 2 * p
        p = p + h * gravity(q, mass)
        q = q + h / 2 * p
    return q, p


Q, P = np.array([1.0, 0.0]), np.array([0.0, 0.8])


def test_leapfrog():
    q, p, _ = there_and_back(leapfrog, Q, P, 1.0, force=gravity, steps=55, h=0.1, atol=1e-12)
    np.testing.assert_array_equal((q, p), tp.function(plain_leapfrog)(Q, P, 1.0, 0.1, 55))

    def reversible(q, p, mass, h):
        q, p, mass = leapfrog(q, p, mass, force=gravity, steps=55, h=h)
        return q[0] + p[1]

    def plain(q, p, mass, h):
        q, p = plain_leapfrog(q, p, mass, h, 55)
        return q[0] + p[1]

    same_gradients(reversible, plain, Q, P, 1.0, 0.1)


@pytest.mark.thorough
def test_forest_ruth():
    def energy(q, p):
        return np.sum(p**2) / 2 - 1 / np.sqrt(np.sum(q**2))

    def drift(function, steps):
        q, p, _ = function(Q.copy(), P.copy(), 1.0, force=gravity, steps=steps, h=2.0 / steps)
        return abs(energy(q, p) - energy(Q, P))

    there_and_back(forest_ruth, Q, P, 1.0, force=gravity, steps=55, h=0.1, atol=1e-12)
    assert drift(leapfrog, 40) / drift(leapfrog, 80) == pytest.approx(4, rel=0.1)
    assert drift(forest_ruth, 40) / drift(forest_ruth, 80) == pytest.approx(16, rel=0.1)

    def end(mass):
        return forest_ruth(np.array([1.0, 0.0]), np.array([0.0, 0.8]), mass, force=gravity, steps=20, h=0.1)[0][0]

    tp.check_grads(end, (1.0,), order=1)


# -- layers

WEIGHTS = RANDOM.normal(size=(4, 2, 2))


def net(x, w):
    return np.tanh(w @ x)


@tp.reversible
def flow(a, b, weights):
    """Four couplings that take turns."""
    nice(a, b, weights[0], net=net)
    nice(b, a, weights[1], net=net)
    nice(a, b, weights[2], net=net)
    nice(b, a, weights[3], net=net)


def log_density(a, b, weights):
    """Of what the flow makes of a normal distribution, up to a constant: volumes stay."""
    a, b, weights = (~flow)(a, b, weights)
    return -(np.sum(a**2) + np.sum(b**2)) / 2


def test_nice():
    z, other = RANDOM.normal(size=(2, 2, 2))
    x, y, _ = there_and_back(flow, z[0], z[1], WEIGHTS)
    v, w, _ = flow(other[0].copy(), other[1].copy(), WEIGHTS.copy())
    ratio = tp.function(log_density)(x, y, WEIGHTS.copy()) - tp.function(log_density)(v, w, WEIGHTS.copy())
    assert ratio == pytest.approx((np.sum(other**2) - np.sum(z**2)) / 2, rel=1e-12)

    def both(z):
        return np.concatenate(flow(z[:2].copy(), z[2:].copy(), WEIGHTS.copy())[:2])

    assert np.linalg.det(tp.jacobian(both)(z.flatten())) == pytest.approx(1.0, rel=1e-13)

    def plain(a, b, weights):
        for k in (3, 1):
            a = a - net(b, weights[k])
            b = b - net(a, weights[k - 1])
        return -(np.sum(a**2) + np.sum(b**2)) / 2

    same_gradients(log_density, plain, z[0], z[1], WEIGHTS)


def test_real_nvp():
    state = (Q, P, 0.0, WEIGHTS[0], WEIGHTS[1])
    x1, x2, log_volume, *_ = there_and_back(real_nvp, *state, scale=net, shift=net)
    np.testing.assert_array_equal(x1, Q)
    np.testing.assert_allclose(x2, P * np.exp(net(Q, WEIGHTS[0])) + net(Q, WEIGHTS[1]), rtol=1e-14)

    def layer(x):
        v, w = WEIGHTS[0].copy(), WEIGHTS[1].copy()
        return np.concatenate(real_nvp(x[:2].copy(), x[2:].copy(), 0.0, v, w, scale=net, shift=net)[:2])

    volume = np.linalg.det(tp.jacobian(layer)(np.concatenate((Q, P))))
    assert np.log(volume) == pytest.approx(log_volume, rel=1e-12)

    def reversible(x1, x2, v, w):
        x1, x2, log_volume, v, w = real_nvp(x1, x2, 0.0, v, w, scale=net, shift=net)
        return np.sum(x2**2) - log_volume

    def plain(x1, x2, v, w):
        s = net(x1, v)
        return np.sum((x2 * np.exp(s) + net(x1, w)) ** 2) - np.sum(s)

    same_gradients(reversible, plain, Q, P, WEIGHTS[0], WEIGHTS[1])


def test_residual_block():
    x1, x2, *_ = there_and_back(residual, Q, P, WEIGHTS[0], WEIGHTS[1], f=net, g=net)
    np.testing.assert_allclose(x1, Q + net(P, WEIGHTS[0]), rtol=1e-15)
    np.testing.assert_allclose(x2, P + net(x1, WEIGHTS[1]), rtol=1e-15)
    same_gradients(
        lambda x1, x2, v, w: np.sum(residual(x1, x2, v, w, f=net, g=net)[1] ** 2),
        lambda x1, x2, v, w: np.sum((x2 + net(x1 + net(x2, v), w)) ** 2),
        Q, P, WEIGHTS[0], WEIGHTS[1],
    )  # fmt: skip


# -- bits


def test_hash():
    seen = {there_and_back(scramble, a, b)[:2] for a in range(4) for b in range(4)}
    assert len(seen) == 16
    words = RANDOM.integers(0, 2**32, size=20)
    a, b, _ = there_and_back(hash, 1, 2, words)
    assert (a, b) == hash.python(1, 2, words)[:2]
    assert 0 <= a < 2**32 and 0 <= b < 2**32
    changed = words.copy()
    changed[3] ^= 1
    other, another, _ = hash(1, 2, changed)
    assert 10 < (int(a) ^ int(other)).bit_count() + (int(b) ^ int(another)).bit_count() < 54


def marsaglia(n, x, y, z, w):
    """As it was published, on numbers of 32 bits."""
    for _ in range(n):
        t = (x ^ (x << 11)) & 0xFFFFFFFF
        x, y, z = y, z, w
        w = w ^ (w >> 19) ^ t ^ (t >> 8)
        yield w


def test_random_numbers():
    seed = (123456789, 362436069, 521288629, 88675123)
    numbers, *state = there_and_back(xorshift, np.zeros(50), *seed)
    published = list(marsaglia(50, *seed))
    assert published[0] == 3701687786
    np.testing.assert_array_equal(numbers, np.array(published) / 2**32)
    assert state == published[-4:]
