"""The adjoint of tiny programs as Core, one per construct: for people to read when a rule changes."""

from __future__ import annotations

import numpy as np
import pytest

import tapeless as tp

X = np.arange(4.0)
M = np.arange(6.0).reshape(2, 3)
K = np.array([0, 1, 1, 0])


def scalar_operations(x, y):
    return np.sin(x) * y + x / y


def branch(x):
    if x > 0:
        return x * x
    return np.exp(x)


def sum_loop(x, w):
    s = 0.0
    for i in range(len(x)):
        s += np.sin(x[i]) * w
    return s


def nonlinear_loop(x, n):
    for _ in range(n):
        x = np.sin(x) * 1.1
    return x


def in_place_recurrence(x):
    a = np.zeros(len(x))
    a[0] = x[0]
    for i in range(1, len(x)):
        a[i] = np.sin(a[i - 1]) * x[i]
    return a[len(x) - 1]


def update_in_a_branch(x):
    a = x.copy()
    for i in range(len(x)):
        if a[i] > 0.5:
            a[i] = a[i] * a[0]
    return np.sum(a)


def unbounded_while(x):
    while x < 10.0:
        x = x * x + 0.5
    return x


def map_and_sum(x):
    return np.sum(np.exp(x) * x)


def largest(x):
    return np.max(x * x)


def product_of_all(x):
    return np.prod(x)


def running_sum(x):
    return np.sum(np.cumsum(x) ** 2)


def gather(x, k):
    return np.sum(tp.map(lambda i: x[i] * x[i], k))


def histogram(x, k):
    h = tp.hist(lambda a, b: a + b, 0.0, 2, k, x * x)
    return np.sum(h * h)


def scattered(x, k):
    return np.sum(tp.scatter(np.zeros(2), k, x) ** 2)


def parallel_loop(x):
    out = np.zeros(len(x))
    for i in tp.prange(len(x)):
        out[i] = x[i] * x[0]
    return np.sum(out)


def matrix_product(m):
    return np.sum((m @ m.T) ** 2)


@pytest.mark.parametrize(
    "f, args",
    [
        (scalar_operations, (1.0, 2.0)), (branch, (1.0,)), (sum_loop, (X, 2.0)), (nonlinear_loop, (1.0, 3)),
        (in_place_recurrence, (X,)), (update_in_a_branch, (X,)), (unbounded_while, (1.0,)), (map_and_sum, (X,)),
        (largest, (X,)), (product_of_all, (X,)), (running_sum, (X,)), (gather, (X, K)), (histogram, (X, K)),
        (scattered, (X, K)), (parallel_loop, (X,)), (matrix_product, (M,)),
    ],
)  # fmt: skip
def test_adjoint(f, args, golden):
    golden.check(f.__name__, tp.grad(f).ir(*args, stage="optimized"))
