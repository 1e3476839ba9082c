"""Names that are None before a loop or on one path, and a number otherwise."""

import numpy as np
import pytest

import tapeless as tp

X = np.array([3.0, -1.0, 2.0, 0.5])


def least_above_zero(x):
    r = None
    for v in x:
        if v > 0 and (r is None or v < r):
            r = v
    return -1.0 if r is None else r


def closest_pair(x):
    best = None
    for i in range(len(x)):
        for j in range(i + 1, len(x)):
            d = abs(x[i] - x[j])
            if best is None or d < best:
                best = d
    if best is not None:
        return best * 2
    return 0.0


def first_below_zero(x):
    k = None
    for i, v in enumerate(x):
        if v < 0:
            k = i
            break
    if k is None:
        return -1
    return k


def forgotten_again(x):
    last, n = None, 0
    for v in x:
        if v < 1:
            last = None
        elif last is None:
            last = v
        else:
            n += 1
    return n, last is None


def pair_of_numbers(x):
    best = None
    for i, v in enumerate(x):
        if best is None or v > best[0]:
            best = (v, i)
    return best[1] if best is not None else -1


def on_one_path(x):
    r = None
    if len(x) > 2:
        r = x[0]
    return 0.0 if r == None else r * 2  # noqa: E711


def in_a_while_loop(x):
    r, i = None, 0
    while i < len(x):
        if x[i] < 1:
            r = i
        i += 1
    return r is None, (r if r is not None else -5)


def none_since_the_third(x):
    b = 1.0
    for i in range(len(x)):
        if i == 2:
            b = None
    return b is None, (-1.0 if b is None else b)


def always_none(x):
    b = (1.0, 2)
    for _ in x:
        b = None
    c = b
    return -1.0 if c is None else c[0]


FUNCTIONS = [none_since_the_third, always_none, least_above_zero, closest_pair, first_below_zero, forgotten_again, pair_of_numbers, on_one_path, in_a_while_loop]  # fmt: skip


@pytest.mark.parametrize("f", FUNCTIONS)
def test_as_in_python(f):
    compiled = tp.function(f)
    for x in (X, -np.abs(X), X[:1], X[:0], X[::-1].copy()):
        assert compiled(x) == f(x)


@pytest.mark.parametrize("f", [least_above_zero, closest_pair])
def test_slopes(f):
    found = tp.grad(f)(X)
    for k in range(len(X)):
        up, down = X.copy(), X.copy()
        up[k] += 1e-6
        down[k] -= 1e-6
        assert found[k] == pytest.approx((f(up) - f(down)) / 2e-6, abs=1e-8)


def test_none_is_no_number():
    def f(x):
        r = None
        for v in x:
            if v > 100:
                r = v
        return r + 1.0

    with pytest.raises(TypeError, match="'r' is None here"):
        tp.function(f)(X)
    assert tp.function(f)(X + 100.0) == 101.5


def test_none_and_nothing():
    def f(x):
        if x > 0:
            r = None
        if x > 1:
            r = 2.0
        return r is None

    with pytest.raises(tp.CompileError, match="TP10"):
        tp.function(f)(0.5)
