"""NamedTuples and dataclasses with other values in some of their fields, and tests of their own."""

import dataclasses
from typing import NamedTuple

import numpy as np
import pytest

import tapeless as tp


class Point(NamedTuple):
    a: np.ndarray
    b: float


@dataclasses.dataclass
class Positive:
    a: np.ndarray
    b: float = 1.0

    def __post_init__(self):
        assert self.b > 0, "b must be positive"


@dataclasses.dataclass
class Changing:
    a: float

    def __post_init__(self):
        self.a = 2 * self.a


def moved(x):
    p = Point(x, 2.0)
    p = p._replace(b=p.b + x[0])
    return np.sum(p.a) * p.b + p._asdict()["b"]


def doubled(x, c):
    d = dataclasses.replace(Positive(x, c), a=x * 2.0)
    return np.sum(d.a) * d.b


X = np.array([1.0, 2.0])


def test_other_values_in_some_fields():
    assert tp.function(moved)(X) == moved(X)
    assert tp.function(doubled)(X, 3.0) == doubled(X, 3.0)
    np.testing.assert_allclose(tp.grad(moved)(X), [7.0, 3.0])
    np.testing.assert_allclose(tp.grad(doubled)(X, 3.0), [6.0, 6.0])


def test_what_a_dataclass_tests():
    with pytest.raises(AssertionError, match="b must be positive"):
        tp.function(doubled)(X, -3.0)


def test_what_is_refused():
    with pytest.raises(tp.CompileError, match="has no field 'c': it has a, b"):
        tp.function(lambda x: Point(x, 1.0)._replace(c=2.0))(X)
    with pytest.raises(tp.CompileError, match=r"'self\.a' cannot be assigned"):
        tp.function(lambda x: Changing(x).a)(1.0)
    with pytest.raises(tp.CompileError, match="has no fields to be replaced"):
        tp.function(lambda x: dataclasses.replace(x, a=1.0))(X)
