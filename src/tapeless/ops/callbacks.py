"""Functions of Python that compiled code calls: what `tp.callback` registers, and what happens in a call of one.

`Callback` has the function, and says what it is given and must give back; `run` is what programs call, by number. `during` stands
around a run of a program: it keeps what callbacks gave, and the exception that one of them raised.

Note [Callbacks]
Nothing is taken for granted of such a function: it is called once for each time that the program comes to it, in the order
of the program, whether or not its results are used. Backward passes come to parts of the program again, and to the rules
of functions that have some. There a callback (`again`) gives what the function gave for the same arguments before, and runs only where
it has not had them. So results are kept while a program runs that may ask. What gave different results for the same
arguments cannot be told apart then, and raises. Arguments that are computed a second time must have the same bits: Note
[Strict arithmetic] of lower/lowering.py.

A program names callbacks by numbers of this process, so it is not kept on disk. The thread that runs a program calls them.
"""

from __future__ import annotations

import ctypes
import itertools
import threading
import weakref
from collections.abc import Callable, Iterator, Sequence
from contextlib import contextmanager
from dataclasses import dataclass, field
from typing import Any

import numpy as np

from tapeless.ir.types import DType

FIRST, AGAIN = "callback_", "callback_again_"  # names of routines, before the number
Bits = tuple[Any, ...]


@dataclass(frozen=True)
class Part:
    """A number or an array that goes in or out. `weak`: one of Python's own numbers."""

    dtype: DType
    rank: int
    weak: bool = False


@dataclass
class Frame:
    """One run of a program."""

    keeps: bool = False
    given: dict[Bits, list[tuple[Any, ...]]] = field(default_factory=dict)  # results by callback and arguments
    problem: BaseException | None = None


_running = threading.local()
_numbers = itertools.count(1)
_known: weakref.WeakValueDictionary[int, Callback] = weakref.WeakValueDictionary()


@contextmanager
def during(keeps: bool) -> Iterator[Frame]:
    """A run of a program; `keeps`: it asks for results a second time."""
    before, frame = getattr(_running, "frame", None), Frame(keeps)
    _running.frame = frame
    try:
        yield frame
    finally:
        _running.frame = before


class Callback:
    """`prepare` makes the function's arguments of numbers and arrays, `leaves` gives those of its result, or raises."""

    def __init__(
        self,
        function: Callable[..., Any],
        prepare: Callable[[list[Any]], list[Any]],
        leaves: Callable[[Any], list[Any]],
        arguments: Sequence[Part],
        results: Sequence[Part],
        place: str,
    ) -> None:
        self.function, self.prepare, self.leaves = function, prepare, leaves
        self.arguments, self.results, self.place = tuple(arguments), tuple(results), place
        self.number = next(_numbers)
        self.name = _name(function), self.arguments, self.results  # what tells it from others
        self._native: Any = None
        _known[self.number] = self

    def run(self, values: Sequence[Any], shapes: Sequence[tuple[int, ...]], again: bool) -> tuple[Any, ...]:
        """Arguments are arrays of our own, also numbers; `shapes` are those of the results."""
        frame: Frame = getattr(_running, "frame", None) or Frame()
        key: Bits = (self.name, *((v.shape, v.tobytes()) for v in values)) if frame.keeps else ()
        known = frame.given.get(key, [])
        if again and len(known) > 1:
            reason = "gave different results for the same arguments; give it one more that tells the calls apart"
            raise RuntimeError(f"tp.callback: the function {reason} ({self.place})")
        if again and known:
            return known[0]
        parts = [v[()].item() if p.weak else v[()] for v, p in zip(values, self.arguments, strict=True)]
        found = self._checked(self.leaves(self.function(*self.prepare(parts))), shapes)
        if frame.keeps and not any(_same(found, other) for other in known):
            frame.given[key] = [*known, found]
        return found

    def _checked(self, given: Sequence[Any], shapes: Sequence[tuple[int, ...]]) -> tuple[Any, ...]:
        found: list[Any] = []
        for value, part, shape in zip(given, self.results, shapes, strict=True):
            array, wanted = np.asarray(value), part.dtype.numpy
            of_python = type(value) in (bool, int, float, complex) and np.can_cast(array.dtype, wanted, "same_kind")
            if array.shape != shape or (array.dtype != wanted and not of_python):
                text = f"an array of shape {array.shape} and type {array.dtype}"
                if not shape and not array.shape:
                    text = f"a number of type {array.dtype}"
                wish = f"shape {shape} and type {wanted}" if shape else f"a number of type {wanted}"
                raise TypeError(f"tp.callback: the function gave {text} where result_like has {wish} ({self.place})")
            found.append(np.array(array, wanted, order="C"))
        return tuple(found)

    # -- called by programs

    def raw(self, again: bool, words: Sequence[Any]) -> None:
        """Sizes and addresses, of results and then of arguments; addresses may be arrays in a row."""
        rest = iter(words)

        def taken(part: Part) -> tuple[Any, tuple[int, ...]]:
            shape = tuple(int(next(rest)) for _ in range(part.rank))
            return _seen(next(rest), part.dtype.numpy, shape), shape

        outs = [taken(part) for part in self.results]
        values = [taken(part)[0].copy() for part in self.arguments]
        for (out, _), value in zip(outs, self.run(values, [shape for _, shape in outs], again), strict=True):
            out[...] = value

    def address(self, again: bool) -> int:
        if self._native is None:
            count = sum(part.rank + 1 for part in (*self.results, *self.arguments))
            kind = ctypes.CFUNCTYPE(ctypes.c_int64, *[ctypes.c_int64] * count)
            self._native = (
                kind(lambda *words: self._caught(False, words)),
                kind(lambda *words: self._caught(True, words)),
            )
        found = ctypes.cast(self._native[again], ctypes.c_void_p).value
        assert found is not None
        return found

    def _caught(self, again: bool, words: Sequence[int]) -> int:
        """0, or 1 where it raised: the program is left, and its caller raises that."""
        try:
            self.raw(again, words)
        except BaseException as problem:
            _running.frame.problem = problem
            return 1
        return 0


def _name(function: Callable[..., Any]) -> Any:
    """Methods are made anew each time, and are equal."""
    try:
        hash(function)
    except TypeError:
        return id(function)
    return function


def _seen(place: Any, dtype: np.dtype[Any], shape: tuple[int, ...]) -> np.ndarray[Any, Any]:
    count = int(np.prod(shape, dtype=np.int64))
    if isinstance(place, np.ndarray):
        return place[:count].reshape(shape)
    if not count:
        return np.empty(shape, dtype)
    memory = (ctypes.c_char * (count * dtype.itemsize)).from_address(place)
    found: np.ndarray[Any, Any] = np.ndarray(shape, dtype, memory)  # type: ignore[arg-type]
    return found


def _same(a: Sequence[Any], b: Sequence[Any]) -> bool:
    return all(x.tobytes() == y.tobytes() for x, y in zip(a, b, strict=True))


def callback(number: int) -> Callback:
    return _known[number]


def named(routine: str) -> tuple[Callback, bool] | None:
    """What a routine of a program is, and whether it is one that asks again."""
    for prefix in (AGAIN, FIRST):
        if routine.startswith(prefix):
            return _known[int(routine.removeprefix(prefix))], prefix == AGAIN
    return None
