"""Iterators that are gone over once, functions that never return, slices of the surroundings, lists that are returned twice."""

from __future__ import annotations

import numpy as np
import pytest

import tapeless as tp
from tests.language.same import raises, same

X = np.array([0.5, -1.0, 2.0])
MIDDLE, EVERY_OTHER, TURNED = slice(1, 3), (slice(None, None, 2), 0), np.s_[1:, ::-1]


def once(x):
    pairs, numbered, waves = zip(x, x[::-1]), enumerate(x), map(np.sin, (1.0, 2.0))
    total = sum(waves)
    for a, b in pairs:
        total += a * b
    if total > 0:
        for k, a in numbered:
            total += k * a
    else:
        for k, a in numbered:
            total -= k * a
    for _ in range(2):
        fresh = zip(x, x)
        for a, b in fresh:
            total += a + b
    return total


def twice(x):
    pairs = zip(x, x)
    return sum([a * b for a, b in pairs]) + sum([a + b for a, b in pairs])


def in_a_loop(x):
    pairs, total = zip(x, x), 0.0
    for _ in range(3):
        for a, b in pairs:
            total += a * b
    return total


def generator_twice(x):
    scaled = (x[0] * k for k in (1, 2))
    return tuple(scaled), tuple(scaled)


def handed_over(x):
    return goes_over_twice(enumerate(x))


def goes_over_twice(pairs):
    total = 0.0
    for _, a in pairs:
        total += a
    for _, a in pairs:
        total += a
    return total


def test_iterators():
    same(once, X)
    same(once, -X)
    for f in (twice, in_a_loop, generator_twice, handed_over):
        with pytest.raises(tp.CompileError, match=r"is an iterator, which can be gone over once[\s\S]*list\("):
            tp.function(f)(X)


def never(x):
    if x > 1:
        raise ValueError("too large")
    raise KeyError("too small")


def calls_never(x, n):
    if n == 0:
        a, b = never(x)
        return a + b
    if n == 1:
        never(x)
    y: float = never(x) if n == 5 else 2.0
    for k in range(3):
        if k == n:
            return never(x)
        y = y + k
    return y * x


def test_functions_that_always_raise():
    same(calls_never, 2.0, 3)
    for n in range(3):
        raises(ValueError, calls_never, 2.0, n)
        raises(KeyError, calls_never, 0.5, n)
    assert tp.grad(calls_never)(2.0, 3) == 5.0


def test_slices_of_the_surroundings():
    middle = slice(0, 2)

    def f(x, a):
        y = x.copy()
        y[middle] = x[MIDDLE] * 2
        return y, a[EVERY_OTHER], a[TURNED], [1, 2, 3][MIDDLE]

    same(f, X, np.arange(12.0).reshape(3, 4))
    g = tp.function(lambda x: x[middle])
    np.testing.assert_array_equal(g(X), X[:2])
    middle = slice(None, None, -1)
    np.testing.assert_array_equal(g(X), X[::-1])
    np.testing.assert_array_equal(tp.grad(lambda x: np.sum(x[MIDDLE] ** 2))(X), [0.0, -2.0, 4.0])


def test_one_list_is_one_list():
    @tp.function
    def f(x):
        a = [x, 1]
        d = {"a": a}
        return a, a, d, (d, [a]), [x, 1]

    first, second, d, (again, (inner,)), other = f(X)
    assert first is second is inner is d["a"] and again is d and other is not first
    assert f(X)[0] is not first


class Counter:
    def __init__(self):
        self.n = 0

    def up(self, x):
        self.n += 1
        return x

    def put(self, x):
        self.n = 1
        return x


@pytest.mark.parametrize("name", ["up", "put"])
def test_attributes_are_not_assigned(name):
    with pytest.raises(tp.CompileError, match=r"'self\.n' cannot be assigned[\s\S]*self\.n = f\(\.\.\.\)"):
        tp.function(getattr(Counter(), name))(1.0)
