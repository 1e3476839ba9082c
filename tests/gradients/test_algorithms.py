"""Small algorithms written as plain loops, with in-place arrays, pivots, exits and slices of varying length.

Where there is a closed form the Jacobian is that; all are compared with differences of plain Python.
"""

import math

import numpy as np
import pytest

import tapeless as tp
from tests.gradients.jacobians import Case, Cases

case = Cases()

S = np.array([[0.1, 2.0, -0.4], [1.2, 0.6, 2.0], [3.0, -0.7, 0.5]])  # needs pivots
P = np.array([[4.0, 1.0, 0.5], [1.0, 3.0, -0.2], [0.5, -0.2, 2.5]])
V = np.array([1.0, -2.0, 0.5])
INVERSE = np.linalg.inv(S)


@case(S, jacobian=np.linalg.det(S) * INVERSE.T.ravel())
def determinant_by_elimination(a):
    n = len(a)
    d = 1.0
    for k in range(n):
        p = k
        for i in range(k + 1, n):
            if abs(a[i, k]) > abs(a[p, k]):
                p = i
        if p != k:
            for j in range(n):
                a[k, j], a[p, j] = a[p, j], a[k, j]
            d = -d
        d *= a[k, k]
        for i in range(k + 1, n):
            f = a[i, k] / a[k, k]
            for j in range(k, n):
                a[i, j] -= f * a[k, j]
    return d


@case(S, V, jacobian=np.hstack([-np.kron(INVERSE, INVERSE @ V), INVERSE]))
def solve_by_slices(a, b):
    """Slices get shorter from step to step; rows are exchanged as wholes."""
    n = len(b)
    for k in range(n):
        p = k + np.argmax(np.abs(a[k:, k]))
        row = a[k].copy()
        a[k] = a[p]
        a[p] = row
        b[k], b[p] = b[p], b[k]
        for i in range(k + 1, n):
            f = a[i, k] / a[k, k]
            a[i, k:] -= f * a[k, k:]
            b[i] -= f * b[k]
    x = np.zeros(n)
    for k in range(n - 1, -1, -1):
        x[k] = (b[k] - np.dot(a[k, k + 1 :], x[k + 1 :])) / a[k, k]
    return x


@case(P)
def cholesky_by_hand(a):
    """In the lower triangle of the argument itself."""
    n = len(a)
    for j in range(n):
        for k in range(j):
            for i in range(j, n):
                a[i, j] -= a[i, k] * a[j, k]
        d = math.sqrt(a[j, j])
        for i in range(j, n):
            a[i, j] /= d
    return a


@case(np.array([0.3, -1.0, 2.0, 0.7, -0.2]), jacobian=np.eye(5)[[1, 4, 0, 3, 2]])
def insertion_sort(x):
    for i in range(1, len(x)):
        e = x[i]
        j = i - 1
        while j >= 0 and x[j] > e:
            x[j + 1] = x[j]
            j -= 1
        x[j + 1] = e
    return x


@case(np.array([0.3, -1.0, 2.0, 0.7]), jacobian=np.full((4, 4), 0.0) + np.array([[1, 1, 1, 1], [1, -1, 1, -1], [1, 1, -1, -1], [1, -1, -1, 1]]))  # fmt: skip
def hadamard_transform(x):
    h = 1
    while h < len(x):
        for i in range(0, len(x), 2 * h):
            for j in range(i, i + h):
                x[j], x[j + h] = x[j] + x[j + h], x[j] - x[j + h]
        h *= 2
    return x


@case(1.0, 0.5, 2.0)
def runge_kutta(q, p, w):
    h = 0.1
    for i in range(10):
        k1q, k1p = p, -w * w * q
        k2q, k2p = p + h / 2 * k1p, -w * w * (q + h / 2 * k1q)
        k3q, k3p = p + h / 2 * k2p, -w * w * (q + h / 2 * k2q)
        k4q, k4p = p + h * k3p, -w * w * (q + h * k3q)
        q, p = q + h / 6 * (k1q + 2 * k2q + 2 * k3q + k4q), p + h / 6 * (k1p + 2 * k2p + 2 * k3p + k4p)
    return q, p


@case(np.array([0.0, 1.0, 0.5]), np.array([0.1, 0.0, -0.2]), 0.7)
def leapfrog_of_bodies(x, v, g):
    n = len(x)
    for t in range(5):
        for i in range(n):
            a = 0.0
            for j in range(n):
                if i != j:
                    d = x[j] - x[i]
                    a += g * d / (d * d + 0.1) ** 1.5
            v[i] += 0.05 * a
        for i in range(n):
            x[i] += 0.05 * v[i]
    return x, v


@case(np.array([0.0, 1.0, 0.2, -0.5, 0.0]), 0.3)
def diffusion_in_two_buffers(u, c):
    new = u.copy()
    for t in range(4):
        for i in range(1, len(u) - 1):
            new[i] = u[i] + c * (u[i - 1] - 2 * u[i] + u[i + 1])
        u, new = new, u
    return u


@case(np.array([0.0, 1.0, 0.2, -0.5, 0.0]), 0.3)
def upwind_burgers(u, c):
    for t in range(4):
        for i in range(1, len(u) - 1):
            if u[i] > 0:
                u[i] = u[i] - c * u[i] * (u[i] - u[i - 1])
            else:
                u[i] = u[i] - c * u[i] * (u[i + 1] - u[i])
    return u


OBSERVED = np.array([0, 1, 1, 0, 1])


@case(np.array([0.6, 0.4]), np.array([[0.7, 0.3], [0.2, 0.8]]), np.array([[0.9, 0.1], [0.3, 0.7]]))
def hidden_markov_model(start, move, emit):
    """The scaled forward algorithm: the logarithm of a likelihood."""
    total = 0.0
    a = start * emit[:, OBSERVED[0]]
    for t in range(1, len(OBSERVED)):
        s = np.sum(a)
        total += math.log(s)
        a = (a / s) @ move * emit[:, OBSERVED[t]]
    return total + math.log(np.sum(a))


@case(np.array([[0.3, 0.9, 0.1], [0.8, 0.2, 0.6]]))
def shortest_path(cost):
    """Dynamic programming: only cells on the best path have a gradient."""
    n, m = cost.shape
    best = np.zeros((n, m))
    for i in range(n):
        for j in range(m):
            e = cost[i, j] ** 2
            if i == 0 and j == 0:
                best[i, j] = e
            elif i == 0:
                best[i, j] = best[i, j - 1] + e
            elif j == 0:
                best[i, j] = best[i - 1, j] + e
            else:
                best[i, j] = e + min(best[i - 1, j], best[i, j - 1], best[i - 1, j - 1])
    return best[n - 1, m - 1]


@case(2.0, jacobian=[0.5 / math.sqrt(2.0)], differ=False, tolerance=1e-6)
def root_by_secants(c):
    a, b = 1.0, 2.0
    for i in range(60):
        fa, fb = a * a - c, b * b - c
        if abs(fb - fa) < 1e-12 or abs(fb) < 1e-14:
            break
        a, b = b, b - fb * (b - a) / (fb - fa)
    return b


@case(P, np.array([1.0, 0.3, -0.2]))
def power_iteration(a, v):
    for i in range(4):
        v = a @ v
        v = v / np.linalg.norm(v)
    return v @ a @ v


@case(np.array([0.2, -0.1, 0.4]), np.array([[0.5, -0.3], [0.1, 0.8], [-0.6, 0.2]]), np.array([0.1, -0.2]))
def recurrent_network(x, w, b):
    h = np.zeros(2)
    c = 0.0
    for t in range(len(x)):
        gate = 1 / (1 + np.exp(-(x[t] * w[0] + h @ w[1:] + b)))
        c = c * gate[0] + np.tanh(x[t])
        h = gate * np.tanh(c)
    return h, c


@case(0.5, 1.5)
def adaptive_integration(a, b):
    """Steps as large as the error allows: the number of them depends on the values."""
    t, y, h = 0.0, a, 0.5
    while t < 1.0:
        step = min(h, 1.0 - t)
        once = y + step * b * y
        half = y + step / 2 * b * y
        twice = half + step / 2 * b * half
        if abs(once - twice) > 0.01:
            h = step / 2
            continue
        y = twice
        t = t + step
    return y


@case(np.array([1.0, 2.0, 3.0, 4.0, 5.0]), 0.9)
def ring_buffer(x, decay):
    ring = np.zeros(3)
    out = np.zeros(len(x))
    at = 0
    for i in range(len(x)):
        ring[at] = x[i] + decay * ring[(at + 1) % 3]
        at = (at + 1) % 3
        out[i] = np.sum(ring) * ring[0]
    return out


@case(np.array([0.5, 1.5, -0.5, 2.5]))
def compaction(x):
    """A count decides where the next value goes."""
    y = np.zeros(len(x))
    n = 0
    for i in range(len(x)):
        if x[i] > 0:
            y[n] = x[i] ** 2
            n += 1
    for i in range(1, n):
        y[i] *= y[i - 1]
    return y[:3], y[n - 1] * n


@case(np.array([[0.5, 1.0, 2.0], [1.5, -1.0, 0.3], [0.2, 0.4, 0.6]]))
def exit_from_nested_loops(a):
    s = 1.0
    for i in range(3):
        for j in range(3):
            a[i, j] *= s
            if a[i, j] < 0:
                return s * a[i, j] + a[0, 0]
            s = s * 0.5 + a[i, j]
    return s


@case(np.array([0.3, 0.6, 0.9, 1.2]))
def triangle_of_slices(x):
    for i in range(1, len(x)):
        x[:i] = x[:i] * x[i]
        x[i:] += x[i - 1]
    return x


@case(np.array([0.3, 0.6, 0.9, 1.2]))
def shifted_onto_itself(x):
    for i in range(3):
        x[1:] = x[:-1] * 0.5 + x[1:]
        x[:2] = x[2:]
    return x


@case(np.array([0.3, -1.0, 2.0, 0.7]), np.array([0.5, 0.1, -0.4, 0.2]))
def fourier_transform_in_place(re, im):
    """Bit reversal by a `while`, then butterflies in loops whose lengths double."""
    n, j = len(re), 0
    for i in range(1, n):
        bit = n >> 1
        while j & bit:
            j ^= bit
            bit >>= 1
        j |= bit
        if i < j:
            re[i], re[j] = re[j], re[i]
            im[i], im[j] = im[j], im[i]
    size = 2
    while size <= n:
        for start in range(0, n, size):
            for k in range(size // 2):
                c, s = math.cos(2 * math.pi * k / size), -math.sin(2 * math.pi * k / size)
                p, q = start + k, start + k + size // 2
                x, y = re[q] * c - im[q] * s, re[q] * s + im[q] * c
                re[q], im[q] = re[p] - x, im[p] - y
                re[p], im[p] = re[p] + x, im[p] + y
        size *= 2
    return re * re + im * im


@case(P)
def rotations(a):
    """One sweep of Jacobi's method: each pair of rows and columns is turned in place."""
    n = len(a)
    for p in range(n):
        for q in range(p + 1, n):
            angle = 0.5 * math.atan2(2.0 * a[p, q], a[q, q] - a[p, p])
            c, s = math.cos(angle), math.sin(angle)
            for k in range(n):
                x, y = a[k, p], a[k, q]
                a[k, p], a[k, q] = c * x - s * y, s * x + c * y
            for k in range(n):
                x, y = a[p, k], a[q, k]
                a[p, k], a[q, k] = c * x - s * y, s * x + c * y
    return np.diag(a)


@case(P)
def orthogonal_columns(a):
    for j in range(a.shape[1]):
        for k in range(j):
            a[:, j] -= (a[:, k] @ a[:, j]) * a[:, k]
        a[:, j] /= np.sqrt((a[:, j] ** 2).sum())
    return a


@case(P, np.array([1.0, 0.3, -0.2]), tolerance=1e-6)
def relaxation_until_it_stands(a, b):
    x, change = np.zeros(len(b)), 1.0
    while change > 1e-10:
        change = 0.0
        for i in range(len(b)):
            new = b[i]
            for j in range(len(b)):
                if j != i:
                    new -= a[i, j] * x[j]
            new /= a[i, i]
            change = max(change, abs(new - x[i]))
            x[i] = new
    return x


@pytest.mark.thorough
@pytest.mark.sampled(3)
@case.all
def test_jacobian(program: Case) -> None:
    program.check()


@pytest.mark.sampled(3)
@pytest.mark.parametrize("f", [determinant_by_elimination, insertion_sort, shortest_path])
def test_with_the_optimiser_of_llvm(f, optimized) -> None:
    next(p.values[0] for p in case.cases if p.values[0].function is f).check()


def test_long_loop_in_place(optimized) -> None:
    """A million updates; the last element is a sum of products that is easy to write down."""
    n = 1_000_000

    @tp.function
    def f(x, c):
        for i in range(1, len(x)):
            x[i] = c * x[i - 1] + x[i]
        return x[len(x) - 1]

    x = np.ones(n)
    gx, gc = tp.grad(f, (0, 1))(x, 0.5)
    np.testing.assert_allclose(gx[-40:], 0.5 ** np.arange(39, -1, -1), rtol=1e-12)
    np.testing.assert_allclose(gc, 4.0, rtol=1e-12)  # of 1 / (1 - c)
    np.testing.assert_array_equal(x, np.ones(n))
