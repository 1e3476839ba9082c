"""Arrays that change places in loops: in called functions, by called functions, with other names for them."""

import numpy as np
import pytest

import tapeless as tp
from tests.agreement import agree
from tests.quick import unoptimized  # noqa: F401  (for all tests here)

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


@pytest.mark.thorough
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


# -- by branches


def swapped(x, c):
    a, b = x * 1.0, x * 2.0
    if c > 0:
        a, b = b, a
    a[0] = 5.0
    b[1] += a[0] * x[1]
    return a * b


def swapped_by_a_third(x, c):
    a, b = x * 1.0, x * 2.0
    if c > 0:
        t = a
        a = b
        b = t
    a[0] = 5.0 * x[0]
    b[1] += a[0]
    return a * b


def three_by_branches(x, c):
    a, b, d = x * 1.0, x * 2.0, x * 3.0
    if c > 1:
        a, b, d = b, d, a
    elif c == 0:
        a, b = b, a.copy()
    a[0] = 5.0
    b[1] = 7.0
    d += a
    return a + b * d


def swapped_in_a_loop(x, c):
    u, v = x.copy(), np.zeros_like(x)
    for k in range(3 * c + 1):
        v[0] = u[1] * k
        v[1:] = u[:-1] + 1
        if k % 3 != 1:
            u, v = v, u
    return u - 2 * v


def the_larger_first(x, c):
    a, b, n = x * 1.0, x * 2.0, 0
    while n < c:
        if a[0] < b[0]:
            a, b = b, a
        a[0] += 1.0
        b[0] -= 0.5 * x[1]
        n += 1
    return a - b


@pytest.mark.thorough
@pytest.mark.sampled(15)
@pytest.mark.parametrize("c", range(3))
@pytest.mark.parametrize(
    "function",
    [swapped, swapped_by_a_third, three_by_branches, swapped_in_a_loop, the_larger_first],
    ids=lambda f: f.__name__,
)
def test_exchanged_by_branches(function, c):
    agree(function, X, c)
    tp.check_grads(lambda x: function(x, c), (X,))


def one_of_them_has_another_name(x, c):
    a, b = x * 1.0, x * 2.0
    d = a
    if c > 0:
        a, b = b, a
    a[0] = 5.0
    return a + b + d


def cleared(v):
    v[0] = 100.0
    return 1.0


def read_by_the_expression_before(x, c):
    a, b = x * 1.0, x * 2.0
    return a + cleared(a := b if c > 0 else a)


def of_the_caller(a, b, c):
    if c > 0:
        a, b = b, a
    a[0] = 5.0
    return a + b


@pytest.mark.parametrize(
    ("function", "args"),
    [(one_of_them_has_another_name, (X, 1)), (read_by_the_expression_before, (X, 1)), (of_the_caller, (X, X + 1, 1))],
    ids=lambda v: getattr(v, "__name__", ""),
)
def test_exchanged_arrays_that_others_see(function, args):
    with pytest.raises(tp.CompileError, match="TP105"):
        tp.function(function)(*args)


def test_other_names_are_not_used_meanwhile():
    with pytest.raises(tp.CompileError, match="TP105.*'u' goes from name to name in this loop"):
        tp.function(reads_another_name)(X, 3)
