"""Methods, properties and operators of dataclasses and NamedTuples in compiled code: what Python does with them."""

from __future__ import annotations

import math
from dataclasses import dataclass, field
from typing import NamedTuple

import numpy as np
import pytest

import tapeless as tp


@dataclass
class Vector:
    x: float
    y: float
    SCALE = 3.0

    def __add__(self, other):
        return Vector(self.x + other.x, self.y + other.y)

    def __mul__(self, factor):
        return Vector(self.x * factor, self.y * factor)

    __rmul__ = __mul__

    def __neg__(self):
        return Vector(-self.x, -self.y)

    def __matmul__(self, other):
        return self.x * other.x + self.y * other.y

    def __lt__(self, other):
        return self.norm < other.norm

    def __eq__(self, other):
        return self.x == other.x

    def __bool__(self):
        return self.x > 0

    def __contains__(self, number):
        return number == 2 * self.x

    @property
    def norm(self):
        return math.sqrt(self @ self)

    def turned(self, angle=0.5, *, twice=False):
        if twice:
            return self.turned(angle).turned(angle)
        c, s = math.cos(angle), math.sin(angle)
        return Vector(c * self.x - s * self.y, s * self.x + c * self.y)

    @classmethod
    def unit(cls, angle):
        return cls(math.cos(angle), math.sin(angle))

    @staticmethod
    def half(number):
        return number / 2


class Pair(NamedTuple):
    first: float
    second: float

    def __add__(self, other):
        return Pair(self.first * other.first, self.second + other.second)

    def total(self):
        return self.first + self.second


@dataclass
class Doubled:
    """An array that is seen as twice of what it is."""

    data: np.ndarray

    def __getitem__(self, at):
        return self.data[at] * 2

    def __setitem__(self, at, value):
        self.data[at] = value / 2

    def __len__(self):
        return len(self.data)

    def __array__(self, dtype=None, copy=None):
        return self.data * 2


@dataclass
class Total:
    value: float

    def __iadd__(self, other):
        return Total(self.value + 10 * other)

    def __radd__(self, other):
        return self.value - other


def operators(v, w):
    return 2.0 * v + w * 3.0 + -v, v @ w


def methods(v, w):
    return v.norm, v.turned(), w.turned(0.1, twice=True), v.half(w.x), v.SCALE


def of_the_class(v, w):
    return Vector.unit(v.x), v.unit(w.y), Vector.half(v.y), Vector.SCALE


def comparisons(v, w):
    return v < w, v > w, v == w, v != w, not v, bool(-w), 1 if v else 2, 2.0 in v, 1.0 not in v


def in_loops(v, w):
    total = w
    for k in range(4):
        if total < v:
            total = total + v * k
        else:
            total = -total + 0.5 * w
    return total


PAIR = (Vector(1.0, 2.0), Vector(-0.5, 4.0))


@pytest.mark.parametrize("function", [operators, methods, of_the_class, comparisons, in_loops])
def test_as_in_python(function):
    assert repr(tp.function(function)(*PAIR)) == repr(function(*PAIR))


@pytest.mark.thorough
@pytest.mark.parametrize("function", [operators, methods, in_loops])
def test_gradients(function):
    tp.check_grads(lambda v, w: sum(np.sum(np.asarray(x)) for x in _numbers(function(v, w))), PAIR)


def _numbers(tree):
    if isinstance(tree, Vector):
        return (tree.x, tree.y)
    if isinstance(tree, tuple):
        found = ()
        for part in tree:
            found = (*found, *_numbers(part))
        return found
    return (tree,)


def test_named_tuples():
    @tp.function
    def sums(p):
        return (p + p).total(), p + p

    assert sums(Pair(2.0, 3.0)) == (10.0, Pair(4.0, 6.0))


def test_items_and_arrays():
    def grow(a):
        for i in range(len(a)):
            a[i] += 1.0
        a[0] = a[1]
        return np.sum(np.sin(a)), a[0]

    mine, its = Doubled(np.arange(3.0)), Doubled(np.arange(3.0))
    np.testing.assert_allclose(tp.function(grow)(mine), grow(its), rtol=1e-15)
    np.testing.assert_array_equal(mine.data, its.data)


def test_updates_and_reflected_operators():
    def run(t):
        t += 2.0
        return t, 5.0 + t

    assert tp.function(run)(Total(1.0)) == run(Total(1.0)) == (Total(21.0), 16.0)


def test_a_changed_method_is_noticed(monkeypatch):
    doubled = tp.function(lambda v: v.half(3.0))
    assert doubled(PAIR[0]) == 1.5
    monkeypatch.setattr(Vector, "half", staticmethod(lambda number: number / 3))
    assert doubled(PAIR[0]) == 1.0


def test_a_changed_property_is_noticed(monkeypatch):
    length = tp.function(lambda v: v.norm)
    assert length(Vector(3.0, 4.0)) == 5.0
    monkeypatch.setattr(Vector, "norm", property(lambda self: self.x))
    assert length(Vector(3.0, 4.0)) == 3.0


@dataclass
class OwnStart:
    x: float

    def __init__(self, x):
        self.x = 2 * x


@dataclass
class Plain:
    x: float
    y: float = field(default=1.0)


@pytest.mark.parametrize(
    "function, reason",
    [
        (lambda p: OwnStart(p.x).x, "'OwnStart' has an __init__ of its own"),
        (lambda p: p[0], "cannot be indexed"),
        (lambda p: len(p), r"has no len\(\)"),
        (lambda p: 1.0 in p, "'in' is not supported"),
        (lambda p: sum(p), "cannot be gone through"),
        (lambda p: p + p, "unsupported operand types"),
        (lambda p: -p, "no unary operator"),
        (lambda p: p.nowhere, "no attribute 'nowhere'"),
    ],
)
def test_what_python_refuses_or_we_do(function, reason):
    with pytest.raises(tp.CompileError, match=reason):
        tp.function(function)(Plain(1.0))


def test_a_dataclass_is_unpacked_by_nobody():
    def unpacked(p):
        a, b = p
        return a + b

    with pytest.raises(tp.CompileError, match="cannot unpack"):
        tp.function(unpacked)(Plain(1.0))
