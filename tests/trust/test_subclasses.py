"""Subclasses of arrays, numbers and containers: those with operators of their own are refused, the others are their bases."""

from __future__ import annotations

import collections
import enum
from pathlib import Path
from typing import Any, NamedTuple

import numpy as np
import pytest

import tapeless as tp


class Doubling(np.ndarray):
    def __mul__(self, other: Any) -> Any:
        return np.asarray(self) * other * 2.0


class Watching(np.ndarray):
    def __array_ufunc__(self, ufunc: Any, method: str, *inputs: Any, **kwargs: Any) -> Any:
        return 7.0


class Indexed(np.ndarray):
    def __getitem__(self, key: Any) -> Any:
        return -1.0


class Named(np.ndarray):
    """Adds a name and nothing else."""

    label = "a name"

    def __array_finalize__(self, other: Any) -> None:
        self.label = getattr(other, "label", "")


class Metres(float):
    def __add__(self, other: Any) -> float:
        return 100.0


class Child(Metres):
    pass


class Modulo(int):
    def __mul__(self, other: Any) -> int:
        return 0


class Turned(complex):
    def __sub__(self, other: Any) -> complex:
        return 1j


class Number(np.float64):
    def __mul__(self, other: Any) -> float:
        return 3.0


class Told(float):
    def __repr__(self) -> str:
        return "told"


class Colour(enum.IntEnum):
    RED = 3


class Access(enum.IntFlag):
    READ = 1
    WRITE = 2


class Vector(NamedTuple):
    x: float
    count: float

    def __iter__(self) -> Any:
        return iter((5.0, 6.0))


class Point(NamedTuple):
    x: float
    count: float


class Wrapping(list[float]):
    def __getitem__(self, k: Any) -> Any:
        return -3.0


array = np.array([1.0, 2.0])
REFUSED = [
    np.matrix([[1.0, 2.0], [3.0, 4.0]]), np.ma.masked_array([1.0, 2.0], [True, False]), array.view(Doubling),
    array.view(Watching), array.view(Indexed), Metres(2.0), Child(2.0), Modulo(3), Turned(1j), Number(2.0), Access.READ,
    Vector(1.0, 2.0),
]  # fmt: skip
TAKEN = [array.view(Named), Told(2.0), Colour.RED, True, np.float64(2.0), Point(1.0, 2.0), np.float32(1.5)]

held: Any = 1.0
inside: Any = [1.0]
box: Any = {"a": 1.0}


class Holder:
    value: Any = 1.0


holder = Holder()


def of_argument(x: Any, t: float) -> Any:
    return x[0] * t if isinstance(x, tuple) else x * t


def of_global(t: float) -> Any:
    return held[0] * t if isinstance(held, tuple) else held * t


def of_list(t: float) -> Any:
    return inside[0] * t


def of_dict(t: float) -> Any:
    return box["a"] * t


def of_attribute(t: float) -> Any:
    return holder.value * t


# each is compiled once, and must notice what comes later
places: dict[str, Any] = {f.__name__: tp.function(f) for f in (of_global, of_list, of_dict, of_attribute)}


def put(monkeypatch: pytest.MonkeyPatch, value: Any) -> None:
    monkeypatch.setitem(globals(), "held", value)
    inside[0] = value
    monkeypatch.setitem(box, "a", value)
    monkeypatch.setattr(holder, "value", value)


@pytest.mark.parametrize("value", REFUSED, ids=lambda v: type(v).__name__)
def test_w3_those_with_operators_of_their_own(monkeypatch: pytest.MonkeyPatch, value: Any) -> None:
    plain = array if isinstance(value, np.ndarray) else (1.0, 2.0) if isinstance(value, tuple) else 1.5
    for f in places.values():
        put(monkeypatch, plain)
        f(3.0) if not isinstance(plain, tuple) or f is places["of_global"] else None
        put(monkeypatch, value)
        with pytest.raises(tp.CompileError) as caught:
            f(3.0)
        assert caught.value.code == "TP109" and caught.value.line and "of its own" in str(caught.value)
    with pytest.raises(tp.CompileError, match="TP109"):
        tp.function(of_argument)(value, 3.0)


@pytest.mark.parametrize("value", TAKEN, ids=lambda v: type(v).__name__)
def test_w3_those_without(monkeypatch: pytest.MonkeyPatch, value: Any) -> None:
    f = places["of_global"]
    put(monkeypatch, value)
    np.testing.assert_array_equal(f(3.0), f.python(3.0))
    np.testing.assert_array_equal(tp.function(of_argument)(value, 3.0), of_argument(value, 3.0))


def test_w3_memmaps_and_dicts(monkeypatch: pytest.MonkeyPatch, tmp_path: Path) -> None:
    kept = np.memmap(tmp_path / "kept", np.float64, "w+", shape=(3,))
    kept[:] = 2.0
    put(monkeypatch, kept)
    np.testing.assert_array_equal(places["of_global"](3.0), [6.0, 6.0, 6.0])
    for made in (collections.OrderedDict(a=2.0), collections.defaultdict(float, a=2.0)):
        monkeypatch.setitem(globals(), "box", made)
        assert places["of_dict"](3.0) == 6.0
    monkeypatch.setitem(globals(), "inside", Wrapping([1.0]))
    with pytest.raises(tp.CompileError, match="TP109"):
        places["of_list"](3.0)
