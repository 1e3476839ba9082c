"""Arguments and results: containers in and out, keyword and default arguments, written arguments, the same object back."""

from __future__ import annotations

from dataclasses import dataclass, field
from typing import Any, NamedTuple

import numpy as np
import pytest

import tapeless as tp
from tests.language.same import same

X = np.arange(4.0)


class Point(NamedTuple):
    x: Any
    y: Any = 2.0


@dataclass
class Body:
    mass: float
    position: np.ndarray
    name: str = "body"
    velocity: np.ndarray = field(default_factory=lambda: np.zeros(2))


@dataclass(frozen=True)
class Settings:
    scale: float
    steps: int = 3


def tuples(pair, nested):
    a, b = pair
    (c, d), e = nested
    return a + b, (c, (d * e,)), pair


def lists(items):
    return [items[0], items[1] * 2, [len(items)]]


def dicts(d):
    return {"sum": d["a"] + d["b"], "inner": {"z": d["c"]["k"] * 2, "a": 1}, "b": d["b"]}


def named(p):
    return Point(p.x * 2, p.y + p[0]), Point(1.0), p


def bodies(b, s):
    b.position[0] += b.mass
    return Body(b.mass * s.scale, b.position * 2, "copy", b.velocity), s, b.name


def test_containers_in_and_out():
    same(tuples, (1.0, 2), ((3.0, X), 4))
    same(lists, [1.5, X])
    same(lists, [1, 2.5, 3])
    same(dicts, {"a": 1.5, "b": X, "c": {"k": 2}})
    same(named, Point(1.0, 2.5))
    same(named, Point(X, X * 2))
    same(bodies, Body(2.0, np.arange(2.0)), Settings(3.0))


def results_of_all_kinds(x):
    return 1, 2.5, True, None, "text", x, x[1:], (x.sum(), [x.max()]), {"k": (x, 3)}, ()


def test_results_of_all_kinds():
    got = same(results_of_all_kinds, X)
    assert got[3] is None and got[4] == "text" and got[9] == ()


def dict_order(d):
    s = 0.0
    for k in d:
        s = s * 10 + d[k]
    return s


def test_dicts_in_any_order():
    f = tp.function(dict_order)
    assert f({"a": 1.0, "b": 2.0}) == 12.0
    assert f({"b": 2.0, "a": 1.0}) in (12.0, 21.0)


def identity(x):
    return x


def pair_of_same(x, y):
    return y, x, x


def maybe_written(x, y):
    x += 1
    return x, y, x + 0


def test_a_returned_argument_is_the_same_object():
    f = tp.function(identity)
    x = X.copy()
    assert f(x) is x
    a, b, c = tp.function(pair_of_same)(x, y := X * 2)
    assert a is y and b is x and c is x
    same(maybe_written, X, X * 2)
    strided = np.arange(10.0)[::2]
    assert f(strided) is strided
    d = {"a": x}
    assert f(d)["a"] is x


def defaults(x, k=3, *, scale=2.0, shift=None):
    y = x * scale + k
    if shift is not None:
        y = y + shift
    return y


def many(a, b=1, /, c=2, *, d=3):
    return a, b * 10, c * 100, d * 1000


def varargs(a, *rest):
    s = a
    for r in rest:
        s = s * 10 + r
    return s, len(rest)


def test_keywords_and_defaults():
    same(defaults, 1.5)
    same(defaults, 1.5, 4)
    same(defaults, X, k=1, scale=0.5)
    same(defaults, 1.5, shift=1.0)
    same(defaults, scale=3, x=2)
    same(many, 1)
    same(many, 1, 2, 3, d=4)
    same(many, 1, c=7)
    same(varargs, 1)
    same(varargs, 1, 2, 3.0)


def test_wrong_arguments_are_refused():
    for call in (
        lambda: tp.function(defaults)(),
        lambda: tp.function(defaults)(1.0, 2, 3),
        lambda: tp.function(defaults)(1.0, other=2),
        lambda: tp.function(defaults)(1.0, x=2.0),
    ):
        with pytest.raises((TypeError, tp.CompileError)):
            call()


def array_default(x, w=X):
    return (x * w).sum()


def test_an_array_as_default():
    same(array_default, X)
    same(array_default, X, X * 2)


def switches(x, mode, kind):
    y = x.astype(kind)
    if mode == "sum":
        return y.sum()
    elif mode == "max":
        return y.max()
    return None


def test_static_arguments():
    for mode in ("sum", "max", "none"):
        for kind in (np.float32, np.int64):
            same(switches, X, mode, kind)


def written(x, m, d, pair):
    x[0] = 100.0
    m[:, 1] = x[1]
    d["k"][...] = 3.0
    pair[1][1:] += 1
    return x.sum()


def test_written_arguments_reach_the_caller():
    same(written, X, np.zeros((2, 3)), {"k": X * 1, "z": 1}, (X * 2, X * 3))


def partly_written(x, n):
    for i in range(n):
        x[i] = -1.0


def test_writes_before_an_error_are_kept():
    x = X.copy()
    with pytest.raises(IndexError):
        tp.function(partly_written)(x, 10)
    assert list(x[:1]) in ([-1.0], [0.0])  # what was written by then is left to chance


def types(a, b):
    return a, b, a + b


@pytest.mark.parametrize(
    "a", [1, 1.5, True, 2j, np.float32(1.5), np.float64(2), np.int32(3), np.int64(4), np.complex64(1j), np.bool_(True)]
)
@pytest.mark.parametrize("b", [2, 0.5])
def test_numbers_of_every_kind(a, b):
    same(types, a, b)


def test_specialisations():
    f = tp.function(types)
    assert f(1, 2) == (1, 2, 3) and f(1.0, 2) == (1.0, 2, 3.0)
    assert len({id(f.compiled(a, b)) for a, b in ((1, 2), (3, 4), (1.0, 2), (2.0, 5))}) == 2
    g = tp.function(identity)
    assert g.compiled(np.zeros(3)) is g.compiled(np.zeros(5))  # not on sizes


class Unknown:
    pass


@pytest.mark.parametrize("value", [
    np.zeros(3, np.float16), np.zeros(3, object), np.array(["a"]), np.zeros(2, [("a", float)]),
])  # fmt: skip
def test_unsupported_arrays_are_refused(value):
    with pytest.raises(tp.CompileError, match="not supported"):
        tp.function(identity)(value)


def huge(x):
    return x + 1


def test_integers_beyond_64_bits():
    with pytest.raises((OverflowError, tp.TapelessError)):
        tp.function(huge)(2**70)


def no_arguments():
    return 42


def test_no_arguments():
    same(no_arguments)


def long_list(items):
    s = 0.0
    for v in items:
        s += v
    return s


def test_a_list_of_many_numbers():
    same(long_list, [float(k) for k in range(40)])


def overlapping(x, y):
    for i in range(len(x)):
        x[i] = y[i] + 1
    return x.sum()


def test_overlapping_arguments_are_refused_or_right():
    base = np.arange(10.0)
    want = base.copy()
    overlapping(want[1:], want[:-1])
    try:
        tp.function(overlapping)(base[1:], base[:-1])
    except ValueError:
        return
    assert np.array_equal(base, want)


class Method:
    scale = 3.0

    @tp.function
    def scaled(self, x):
        return x * 2

    @staticmethod
    def plain(x):
        return x + 1


def test_methods():
    """The object is a static argument; only what is known at compile time can be read from it."""
    assert tp.function(Method.plain)(1.0) == 2.0
    assert Method().scaled(2.0) == 4.0
