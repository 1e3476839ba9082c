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


def set_again(x):
    y = np.zeros(len(x))
    for i in tp.prange(len(x)):
        y[i] = x[0]
        if x[i] > 0.5:
            y[i] = x[i] * x[i]
    return np.sum(y * y)


def set_and_changed(x):
    y = np.zeros(len(x))
    z = np.zeros(len(x))
    for i in tp.prange(len(x)):
        y[i] = x[1]
        z[i] = y[i] * 2.0
        y[i] *= x[i]
        y[i] += x[2]
        y[i] = max(y[i], x[i])
    return np.sum(y * z)


def set_by_an_inner_loop(x):
    y = x.copy()
    for i in tp.prange(len(x)):
        for j in range(3):
            y[i] = x[j] * x[i]
    return np.sum(y * y)


def set_again_in_a_matrix(x):
    y = np.ones((len(x), 3))
    for i in tp.prange(len(x)):
        for j in range(3):
            y[i, j] = x[j] * x[i]
        y[i, 1] = x[3]
    return np.sum(y * y * y)


def set_again_in_columns(x):
    y = np.ones((3, len(x)))
    for i in tp.prange(len(x)):
        for j in range(3):
            y[j, i] = x[j] * x[i]
        y[1, i] = x[3]
    return np.sum(y * y * y)


def set_again_two_apart(x):
    y = np.ones(8)
    for i in tp.prange(4):
        y[2 * i] = x[i]
        y[2 * i + 1] = x[i] * x[0]
        if x[i] < 1.0:
            y[2 * i] = x[i] * x[i]
    return np.sum(y * y)


def set_again_by_nested_loops(x):
    y = np.zeros((len(x), 3))
    for i in tp.prange(len(x)):
        for j in tp.prange(3):
            y[i, j] = x[j]
            if x[i] > x[j]:
                y[i, j] = x[i] * x[j]
    return np.sum(y * y)


def set_in_either_arm(x):
    y = np.zeros(len(x))
    for i in tp.prange(len(x)):
        if x[i] > 0.5:
            y[i] = x[i] * x[1]
        else:
            y[i] = x[0]
    return np.sum(y * y)


PROGRAMS = [
    own_cells,
    some_cells,
    shared_cells,
    cells_and_a_sum,
    inner_loop,
    in_turns,
    set_again,
    set_and_changed,
    set_by_an_inner_loop,
    set_again_in_a_matrix,
    set_again_in_columns,
    set_again_two_apart,
    set_again_by_nested_loops,
    set_in_either_arm,
]


@pytest.mark.sampled(3)
@pytest.mark.parametrize("function", PROGRAMS, ids=lambda f: f.__name__)
def test_gradient(function):
    value, gradient = tp.value_and_grad(function)(X)
    assert value == pytest.approx(function(X))
    assert tp.function(function)(X) == pytest.approx(function(X))
    steps = 1e-6 * np.eye(len(X))
    expected = [(function(X + h) - function(X - h)) / 2e-6 for h in steps]
    np.testing.assert_allclose(gradient, expected, rtol=1e-7)
    np.testing.assert_allclose(tp.jacfwd(function)(X), gradient, rtol=1e-12)


def from_the_end(x, k, n):
    y = np.zeros(len(x))
    for i in tp.prange(n):
        y[i + k] = x[i % 4]
    return y


def test_positions_from_the_end_do_not_meet_others():
    compiled = tp.function(from_the_end)
    for k in (0, -1, -4):
        np.testing.assert_array_equal(compiled(X, k, 4), from_the_end(X, k, 4))
    with pytest.raises(IndexError, match="write the same element of 'y'"):
        compiled(X, -1, 5)


def test_backwards():
    def backwards(x):
        y = np.zeros(len(x))
        for i in tp.prange(len(x)):
            y[len(x) - 1 - i] = x[i] * x[i]
        return y

    np.testing.assert_array_equal(tp.function(backwards)(X), backwards(X))
    tp.check_grads(backwards, (X,))
