"""The Core text of tiny programs, one per construct: what the front end makes of it, for people to read when it changes."""

from __future__ import annotations

import numpy as np
import pytest

import tapeless as tp

X = np.arange(4.0)
M = np.arange(6.0).reshape(2, 3)
K = np.array([0, 1, 1, 0])


def scalar_arithmetic(x, n):
    return (x + 1) / n


def python_division(a, b):
    return a // b


def lazy_condition(x, i):
    return i < 4 and x[i] > 0


def branches(x):
    if x > 0:
        y = x * 2
    else:
        y = -x
    return y


def bound_on_one_path(x):
    if x > 0:
        y = x
    return y


def early_return(x):
    if x < 0:
        return 0.0
    return x * 2


def sum_of_range(n):
    s = 0
    for i in range(n):
        s += i
    return s


def over_an_array(x):
    s = 0.0
    for v in x:
        s += v
    return s


def while_loop(x):
    while x > 1:
        x = x / 2
    return x


def break_out(x, v):
    for i in range(len(x)):
        if x[i] == v:
            break
    return i


def return_from_a_loop(x):
    for v in x:
        if v > 2:
            return v
    return 0.0


def element_wise(x, y):
    return x * y + 1


def broadcasting(m, row):
    return m - row


def reduction(m):
    return m.sum(axis=0)


def slices(x):
    return x[1:-1].copy()


def negative_index(x, i):
    return x[-1] + x[i]


def write_through_a_view(x):
    v = x[1:]
    v[0] = 5.0


def augmented(x):
    y = x
    y += 1
    return y


def gather(x, idx):
    return x[idx]


def scatter_write(x, idx):
    x[idx] = 0.0


def inlined(x):
    def double(v):
        return v * 2

    return double(x) + double(1.0)


def swapped(u, n):
    v = u * 2
    for _ in range(n):
        v[0] = u[0]
        u, v = v, u
    return u


def mapped(x):
    return tp.map(lambda v: v * v, x)


def reduced(x):
    return tp.reduce(lambda a, b: a + b, 0.0, x)


def scanned(x):
    return tp.scan(lambda a, b: a + b, 0.0, x)


def histogram(k, x):
    return tp.hist(lambda a, b: a + b, 0.0, 2, k, x)


def parallel_loop(x):
    out = np.zeros(len(x))
    for i in tp.prange(len(x)):
        out[i] = x[i] * 2
    return out


def pytree(p):
    return {"sum": p["a"] + p["b"][0], "b": p["b"]}


def checked(x):
    assert x > 0, "x must be positive"
    return x


PROGRAMS = [
    (scalar_arithmetic, (1.5, 2)), (python_division, (7, 2)), (lazy_condition, (X, 1)), (branches, (1.0,)), (bound_on_one_path, (1.0,)),
    (early_return, (1.0,)), (sum_of_range, (3,)), (over_an_array, (X,)), (while_loop, (9.0,)), (break_out, (X, 2.0)),
    (return_from_a_loop, (X,)), (element_wise, (X, X * 1)), (broadcasting, (M, np.ones(3))), (reduction, (M,)), (slices, (X,)),
    (negative_index, (X, 1)), (write_through_a_view, (X,)), (augmented, (X,)), (gather, (X, K)), (scatter_write, (X, K)),
    (inlined, (1.5,)), (swapped, (X, 3)), (mapped, (X,)), (reduced, (X,)), (scanned, (X,)), (histogram, (K, X)),
    (parallel_loop, (X,)), (pytree, ({"a": 1.0, "b": (X, 2)},)), (checked, (1.0,)),
]  # fmt: skip


@pytest.mark.parametrize("f, args", PROGRAMS, ids=[f.__name__ for f, _ in PROGRAMS])
def test_core(f, args, golden):
    golden.check(f.__name__, tp.function(f).ir(*args, stage="core"))
