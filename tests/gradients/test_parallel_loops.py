"""Parallel loops: own cells, sums, histograms, nested; and operators on arrays that several threads share."""

import math

import numpy as np
import pytest

import tapeless as tp
from tests.gradients.jacobians import Case, Cases

case = Cases()

X = np.array([0.7, -1.3, 2.1, 0.4])
Y = np.array([1.5, 0.2, -0.6, 0.9])
A = np.arange(6.0).reshape(2, 3) / 5 + 0.1
KEYS = np.array([2, 0, 2, 0])


@case(X, 0.5)
def own_cells(x, c):
    y = np.zeros(len(x))
    for i in tp.prange(len(x)):
        y[i] = x[i] * c + x[0]
    return y


@case(X, Y)
def sums_in_a_parallel_loop(x, y):
    s = 1.0
    h = np.zeros(3)
    for i in tp.prange(len(x)):
        s += x[i] * y[i]
        h[KEYS[i]] += x[i] * y[0]
    return s, h


@case(A)
def parallel_loop_in_place(a):
    for i in tp.prange(a.shape[0]):
        for j in range(1, a.shape[1]):
            a[i, j] = a[i, j] * a[i, j - 1]
    return a


@case(A)
def nested_parallel_loops(a):
    t = np.zeros((a.shape[1], a.shape[0]))
    for i in tp.prange(a.shape[0]):
        for j in tp.prange(a.shape[1]):
            t[j, i] = a[i, j] ** 2 * a[0, 0]
    return t


@case(X, jacobian=np.diag([3 * 0.7**2, 3 * 1.3**2, 2, 2]))
def cells_that_keep_their_value(x):
    y = x * 2
    for i in tp.prange(2):
        y[i] = x[i] ** 3
    return y


@case(X)
def conditional_cells(x):
    y = x.copy()
    for i in tp.prange(len(x)):
        if x[i] > 0:
            y[i] = x[i] * x[0]
    return y


@case(X)
def parallel_loops_in_a_loop(x):
    for t in range(3):
        y = np.zeros(len(x))
        for i in tp.prange(len(x)):
            y[i] = x[i] * x[i - 1] * 0.5
        x = y + x
    return x


@case(X, 1.5)
def parallel_sum_in_a_loop(x, c):
    for t in range(3):
        s = 0.0
        for i in tp.prange(len(x)):
            s += x[i] * c
        c = c + s * 0.1
    return c


@case(A, X[:3])
def rows_of_a_parallel_loop(a, x):
    out = np.ones((2, 3))
    for i in tp.prange(2):
        out[i, :] = a[i] * x
        out[i, 0] += x[2]
    return out


@case(X)
def parallel_loop_that_reads_what_was_written_before(x):
    y = x * x
    y[0] = x[3]
    z = np.zeros(len(x))
    for i in tp.prange(len(x)):
        z[i] = y[i] * y[0]
    y[1] = z[2]
    return y, z


@case(A)
def histogram_in_nested_parallel_loops(a):
    h = np.zeros(3)
    for i in tp.prange(2):
        for j in range(3):
            h[(i + j) % 3] += a[i, j] ** 2 * a[1 - i, j]
    return h * h


@case(X, Y)
def parallel_loop_in_a_map(x, y):
    def f(e):
        s = 0.0
        for i in tp.prange(len(y)):
            s += y[i] * e * e
        return s

    return tp.map(f, x)


@case(X)
def parallel_loop_in_a_while(x):
    y = x.copy()
    k = 0
    while np.sum(y * y) < 100.0 and k < 9:
        z = np.zeros(len(y))
        for i in tp.prange(len(y)):
            z[i] = y[i] * 1.5 + y[0] * 0.1
        y = z
        k += 1
    return y


@case(X)
def parallel_extremum(x):
    m = -10.0
    s = 0.0
    for i in tp.prange(len(x)):
        m = max(m, x[i] * x[i])
        s += x[i] * x[0]
    return m * s


@case.all
def test_jacobian(program: Case) -> None:
    program.check()


# -- enough elements for several threads

MANY = 100_000
LONG = np.sin(np.arange(1.0, MANY + 1))
GROUPS = np.arange(MANY) * 7919 % 13


def weighted_sines(x):
    w = np.cos(x[:13])
    return np.sum(tp.map(lambda e, k: math.sin(e) * w[k], x, GROUPS))


def weighted_sines_gradient(x):
    g = np.cos(x) * np.cos(x[:13])[GROUPS]
    g[:13] -= np.sin(x[:13]) * np.bincount(GROUPS, np.sin(x))
    return g


def winner(x):
    return tp.reduce(max, -math.inf, x * x)


def winner_gradient(x):
    g = np.zeros(MANY)
    k = np.argmax(x * x)
    g[k] = 2 * x[k]
    return g


def groups(x):
    return np.sum(tp.hist(lambda a, b: a + b, 0.0, 13, GROUPS, x) ** 2)


def group_maxima(x):
    return np.sum(tp.hist(max, -math.inf, 13, GROUPS, x))


def group_maxima_gradient(x):
    g = np.zeros(MANY)
    for k in range(13):
        members = np.flatnonzero(GROUPS == k)
        g[members[np.argmax(x[members])]] = 1
    return g


def running(x):
    return np.sum(np.cumsum(x) * x)


def turned_around(x):
    order = np.arange(MANY)[::-1].copy()
    return np.sum(tp.scatter(np.zeros(MANY), order, x) * x * x)


def cells(x):
    y = np.zeros(MANY)
    s = 0.0
    for i in tp.prange(MANY):
        y[i] = x[i] * x[MANY - 1 - i]
        s += x[i] ** 2
    return np.sum(y * y) + s


LARGE = {
    weighted_sines: weighted_sines_gradient,
    winner: winner_gradient,
    groups: lambda x: 2 * np.bincount(GROUPS, x)[GROUPS],
    group_maxima: group_maxima_gradient,
    running: lambda x: np.cumsum(x) + np.cumsum(x[::-1])[::-1],
    turned_around: lambda x: x[::-1] ** 2 + 2 * x * x[::-1],
    cells: lambda x: 4 * x * x[::-1] ** 2 + 2 * x,
}


@pytest.mark.thorough
@pytest.mark.sampled(3)
@pytest.mark.parametrize("f", LARGE)
def test_enough_elements_for_threads(f, optimized) -> None:
    expected = LARGE[f](LONG)
    for threads in (1, 2):
        found = tp.grad(tp.function(f, threads=threads))(LONG)
        np.testing.assert_allclose(found, expected, rtol=1e-9, atol=1e-9)
    v = np.cos(np.arange(MANY))
    tangent = tp.jvp(tp.function(f, threads=2), (LONG,), (v,))[1]
    np.testing.assert_allclose(tangent, np.dot(expected, v), rtol=1e-7, atol=1e-7)
