"""Whole arrays: making them, element-wise operations, broadcasting, shapes, reductions. NumPy's functions one by one are in
tests/frontend; here is what they mean together with the statements of the language.
"""

from __future__ import annotations

import numpy as np
import pytest

import tapeless as tp
from tests.language.same import raises, same

X = np.array([1.5, -2.0, 0.25, 4.0])
M = np.arange(12.0).reshape(3, 4) - 5


def made(n, k):
    return (
        np.zeros(n), np.ones((n, k)), np.full(n, 2.5), np.full((2, n), 7), np.arange(n), np.arange(1, n), np.arange(0.0, 1.0, 0.25),
        np.linspace(0.0, 1.0, n), np.zeros(n, dtype=np.int32), np.ones(n, np.float32), np.eye(3), np.array([1, 2, n]),
        np.array([[1.0, 2.0], [3.0, k]]), np.zeros((n, 0)), np.arange(n - 1, -1, -1),
    )  # fmt: skip


def made_like(x):
    return (
        np.zeros_like(x),
        np.ones_like(x),
        np.full_like(x, 3),
        np.empty_like(x).shape,
        x.copy(),
        np.array(x),
        np.zeros(x.shape),
    )


def test_creation():
    same(made, 4, 2)
    same(made, 1, 3)
    same(made_like, X)
    same(made_like, M.astype(np.float32))
    same(made_like, np.arange(3))


def empty_written(n):
    a = np.empty((n, n))
    for i in range(n):
        for j in range(n):
            a[i, j] = i - j
    return a


def test_empty():
    same(empty_written, 4)
    same(empty_written, 0)


def operators(x, y):
    return x + y, x - y, x * y, x / y, x**2, -x, abs(x), x < y, x == y, (x < y) & (y > 0), ~(x < y), x // y, x % y


@pytest.mark.thorough
@pytest.mark.parametrize("kind", [np.float64, np.float32, np.int64, np.int32])
def test_elementwise_operators(kind):
    x, y = np.array([7, -7, 3, 0], kind), np.array([2, 2, -2, 5], kind)
    same(operators, x, y)
    same(operators, x, 3)
    same(operators, 5, y)
    same(operators, x, kind(3))


def broadcast(m, row, column, s):
    return m + row, m * column, row + column, m - s, s / (row + 10), (m + row)[0], column * row * m


def test_broadcasting():
    same(broadcast, M, np.arange(4.0), np.arange(3.0)[:, None], 2.0)
    same(broadcast, M, np.ones(1), np.ones((1, 1)), 2)
    same(broadcast, M[:, :1], np.arange(4.0), np.arange(3.0)[:, None], 2.0)


def added(x, y):
    return x + y


def test_shapes_that_do_not_fit_are_refused():
    with pytest.raises(ValueError):
        tp.function(added)(np.zeros(3), np.zeros(4))
    with pytest.raises(ValueError):
        tp.function(added)(np.zeros((2, 3)), np.zeros(2))
    same(added, np.zeros(3), np.zeros(1))
    f = tp.function(added)
    assert f(np.ones(3), np.ones(3)).shape == (3,)
    with pytest.raises(ValueError):  # the version for equal sizes must not be used
        f(np.ones(3), np.ones(4))
    assert f(np.ones(4), np.ones(4)).shape == (4,)


def functions(x):
    return (
        np.sin(x),
        np.exp(x),
        np.sqrt(np.abs(x)),
        np.tanh(x),
        np.maximum(x, 0),
        np.where(x > 0, x, -1.0),
        np.sign(x),
        np.floor(x),
    )


def test_elementwise_functions():
    same(functions, X)
    same(functions, M)
    same(functions, X.astype(np.float32))
    same(functions, np.arange(3))
    same(functions, np.zeros(0))


def reductions(m):
    return (
        m.sum(), m.sum(axis=0), m.sum(axis=1), np.sum(m, axis=(0, 1)), m.mean(), m.mean(axis=0), m.max(), m.min(axis=1), m.prod(axis=1),
        m.argmax(), m.argmin(axis=0), np.any(m > 3), np.all(m > -10, axis=1), m.sum(axis=1, keepdims=True), m.sum(axis=-1),
        np.cumsum(m, axis=1), m.std(), m.var(axis=0),
    )  # fmt: skip


@pytest.mark.thorough
def test_reductions():
    same(reductions, M)
    same(reductions, M.astype(np.float32) / 4)
    same(reductions, M.astype(np.int64))


def shapes(m):
    n, k = m.shape
    return (
        m.T, m.reshape(k, n), m.reshape(-1), m.ravel(), m.reshape((2, -1)), m.shape, m.ndim, m.size, len(m), m.T.shape,
        m[:, None].shape, m.transpose(1, 0), m.swapaxes(0, 1), np.concatenate((m, m)), np.stack((m, m), axis=1), np.hstack((m, m)),
        np.vstack((m[0], m[1])), m.flatten(),
    )  # fmt: skip


def test_shapes():
    same(shapes, M)
    same(shapes, np.arange(6).reshape(2, 3))


def products(a, b, v):
    return (
        a @ b,
        a @ v,
        v @ b,
        np.dot(a, b),
        v @ v,
        np.outer(v, v),
        np.einsum("ij,jk->ik", a, b),
        a.dot(v),
        np.dot(v, v),
    )


def test_products():
    a = np.arange(9.0).reshape(3, 3) / 3
    same(products, a, a.T.copy(), np.array([1.0, -2.0, 0.5]))
    same(products, a.astype(np.float32), a.T.copy().astype(np.float32), np.array([1.0, -2.0, 0.5], np.float32))


def conversions(x):
    return x.astype(np.float32), x.astype(np.int64), x.astype(bool), x.astype(float), np.float64(x[0])


def test_conversions():
    same(conversions, X)
    same(conversions, np.arange(3))
    same(conversions, np.array([True, False]))


def empties(x):
    return (
        x.sum(),
        x.prod(),
        x * 2,
        np.sin(x),
        len(x),
        x.shape,
        np.concatenate((x, x)),
        x[1:],
        x[::-1],
        np.zeros((0, 3)).sum(axis=0),
    )


def test_empty_arrays():
    same(empties, np.zeros(0))
    same(empties, np.zeros(0, np.int64))
    same(reductions_of_rows, np.zeros((0, 3)))
    same(reductions_of_rows, np.zeros((3, 0)))


def reductions_of_rows(m):
    return m.sum(axis=0), m.sum(axis=1), m.sum(), m.T, m + 1


def largest(x):
    return x.max()


def test_the_largest_of_nothing():
    raises(ValueError, largest, np.zeros(0))


def zero_dimensional(a, b):
    return a + b, a * 2, np.sin(a), float(a)


def test_zero_dimensional_arrays():
    f = tp.function(zero_dimensional)
    got = f(np.array(1.5), 2.0)
    want = zero_dimensional(np.array(1.5), 2.0)
    assert [float(g) for g in got] == [float(w) for w in want]


def mixed_statements(m):
    out = np.zeros_like(m)
    for i in range(m.shape[0]):
        row = m[i] - m[i].mean()
        out[i] = row / np.sqrt((row**2).sum() + 1e-9)
        if out[i].max() > 0.5:
            out[i] *= 2
    return out, out.sum(axis=0)


def test_array_expressions_in_loops():
    same(mixed_statements, M)
    same(mixed_statements, M.astype(np.float32))


def big_small(n):
    a = np.zeros(3)
    for i in range(n):
        b = a * 0.5 + np.array([1.0, i, 2.0])
        a = b
    return a


def test_arrays_of_constant_shape():
    same(big_small, 5)


def masks(x):
    y = x.copy()
    y[y < 0] = 0.0
    m = x > 0
    return y, m.sum(), np.where(m, x, 0.0).sum(), np.count_nonzero(m), (~m).sum(), m & (x < 2), m.any()


def test_masks():
    same(masks, X)
    same(masks, M)


def sorted_(x):
    return np.sort(x), np.argsort(x), np.cumsum(x), np.cumprod(x), np.diff(x), x[np.argsort(-x)]


def test_sorting_and_scans():
    same(sorted_, X)
    same(sorted_, np.array([3, 1, 2]))


def scalars_of_arrays(x):
    a = x[0]
    b = x.sum()
    return a, b, a + 1, a / b, float(a), a > b, x[0] // 2, x[1] ** 2, np.float32(a)


def test_elements_are_numpy_numbers():
    for kind in (np.float64, np.float32, np.int64, np.int32):
        same(scalars_of_arrays, np.array([3, 2, 1], kind))
