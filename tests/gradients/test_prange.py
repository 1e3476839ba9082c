"""Gradients through `tp.prange`: loops whose iterations write cells of their own or add to shared ones."""

import numpy as np
import pytest

import tapeless as tp

X = np.array([0.7, -1.3, 2.1, 0.4])


def own_cells(x):
    y = np.empty(len(x))
    for i in tp.prange(len(x)):
        y[i] = x[i] * x[i]
    return y.sum()


def some_cells(x):
    y = x * 3.0
    for i in tp.prange(len(x) - 2):
        y[i + 1] = x[i] * x[i + 1]
    return (y * y).sum()


def shared_cells(x):
    y = np.zeros(2)
    for i in tp.prange(len(x)):
        y[i % 2] += x[i] * x[i]
    return y[0] * y[1]


def cells_and_a_sum(x):
    y = np.empty(len(x))
    total = 0.0
    for i in tp.prange(len(x)):
        y[i] = x[i] * x[i]
        total += x[i]
    return y.sum() * total


def inner_loop(x):
    y = np.empty(len(x))
    for i in tp.prange(len(x)):
        s = 0.0
        for j in range(i + 1):
            s += x[j] * x[i]
        y[i] = s
    return (y * y).sum()


def in_turns(x):
    u = x.copy()
    v = x.copy()
    for _ in range(3):
        for i in tp.prange(len(x) - 2):
            v[i + 1] = u[i] * u[i + 2] + u[i + 1]
        u, v = v, u
    return (u * u).sum()


@pytest.mark.parametrize(
    "function", [own_cells, some_cells, shared_cells, cells_and_a_sum, inner_loop, in_turns], ids=lambda f: f.__name__
)
def test_gradient(function):
    value, gradient = tp.value_and_grad(function)(X)
    assert value == pytest.approx(function(X))
    steps = 1e-6 * np.eye(len(X))
    expected = [(function(X + h) - function(X - h)) / 2e-6 for h in steps]
    np.testing.assert_allclose(gradient, expected, rtol=1e-7)
