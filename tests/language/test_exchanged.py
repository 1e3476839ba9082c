"""Arrays that change places in loops: in called functions, by called functions, with other names for them."""

import numpy as np
import pytest

import tapeless as tp
from tests.agreement import agree

X = np.array([1.0, 2.0, 3.0, 5.0])


def wave(u, v, n):
    for i in range(n):
        u[1:-1] = 2 * v[1:-1] - u[1:-1]
        u, v = v, u
    return np.sum(v * v)


def step(u, v):
    v[1:-1] = u[2:] + u[:-2]
    return v, u


def by_a_step(u, n):
    v = u.copy()
    for t in range(n):
        u, v = step(u, v)
    return np.sum(u * u)


def called(u, n):
    v = u * 2
    w = u
    s = wave(u, v, n)
    return s + np.sum(w) * 3 + v[1] * 5 + u[2]


def another_name(u, n):
    v = u * 2
    u0 = u
    for i in range(n):
        u[1:-1] = 2 * v[1:-1] - u[1:-1]
        u, v = v, u
    return np.sum(u) + 2 * np.sum(v) + u0[1] * 7


def three_around(a, n):
    b = a * 2
    c = a * 3
    z = b
    for i in range(n):
        a[0] += b[1] * c[2]
        a, b, c = b, c, a
    return a[0] + 2 * b[0] + 3 * c[0] + 5 * z[0]


def reads_another_name(u, n):
    v = u * 2
    w = u
    for i in range(n):
        u[1] = v[1] * w[1]
        u, v = v, u
    return np.sum(u)


@pytest.mark.sampled(20)
@pytest.mark.parametrize("n", range(5))
@pytest.mark.parametrize("function", [by_a_step, called, another_name, three_around], ids=lambda f: f.__name__)
def test_exchanged(function, n):
    agree(function, X, n)
    ours, theirs = X.copy(), X.copy()
    tp.function(function)(ours, n)
    function(theirs, n)
    np.testing.assert_array_equal(ours, theirs)
    tp.check_grads(lambda x: function(x, n), (X,))


def test_other_names_are_not_used_meanwhile():
    with pytest.raises(tp.CompileError, match="TP105.*'u' goes from name to name in this loop"):
        tp.function(reads_another_name)(X, 3)
