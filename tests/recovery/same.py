"""Gradients of one loop by every recovery, and the same expected of all.

`Loops` collects programs whose last argument is the number of trips, with what applies to them. `check` compares one
recovery with storing everything, for each number of trips; `plans` gives what was decided for each loop.
"""

from __future__ import annotations

import copy
import warnings
from collections.abc import Callable
from dataclasses import dataclass, field
from typing import Any

import numpy as np
import pytest

import tapeless as tp
from tapeless.frontend.entry import trace
from tapeless.ir.core import For, While
from tapeless.ir.walk import all_stms
from tests.gradients.jacobians import differences, flat, leaves, same_arguments

TRIPS = (0, 1, 2, 3, 7, 8, 9, 26, 27, 28, 63, 64, 65)
ALWAYS = ("auto", "checkpoint", "checkpoint:3", "recompute")
EXACT = {"float64": 1e-11, "float32": 2e-5}


@dataclass
class Loop:
    """`wrt` are the floats among the arguments. `inverts`: up to so many trips without losing digits; 0: it does not apply."""

    function: Callable[..., Any]
    arguments: tuple[Any, ...]
    inverts: int = 0
    undo: bool = True
    smooth: bool = True  # differences of plain Python say something
    known: dict[int, Any] = field(default_factory=dict)  # by storing everything, for a number of trips

    @property
    def wrt(self) -> tuple[int, ...]:
        floating = [all(np.asarray(leaf).dtype.kind in "fc" for leaf in leaves(a)) for a in self.arguments]
        return tuple(k for k, yes in enumerate(floating) if yes)

    def args(self, trips: int) -> tuple[Any, ...]:
        return (*copy.deepcopy(self.arguments), trips)

    def gradients(self, **options: Any) -> Callable[[int], Any]:
        derived = tp.grad(self.function, self.wrt, **options)

        def at(trips: int) -> Any:
            given = self.args(trips)
            found = derived(*given)
            same_arguments(self.args(trips), given)
            return found

        return at

    def check(self, trips: tuple[int, ...] = TRIPS, tolerance: float = 0.0, **options: Any) -> None:
        """The same as by storing everything, in value and kind."""
        __tracebackhide__ = True
        found = self.gradients(**options)
        for n in trips:
            same(found(n), self.expected(n), tolerance, f"{self.function.__name__}, {options}, {n} trips")

    def expected(self, trips: int) -> Any:
        if not self.known:
            stored = self.gradients(recover="store")
            self.known = {n: stored(n) for n in TRIPS}
        return self.known[trips]

    def against_differences(self, trips: int) -> None:
        __tracebackhide__ = True
        args = self.args(trips)

        def of(*given: Any) -> Any:
            every = list(copy.deepcopy(args))
            for k, value in zip(self.wrt, given, strict=True):
                every[k] = value
            return self.function(*every)

        expected = differences(of, *(args[k] for k in self.wrt))[0]
        found = flat(self.expected(trips))
        np.testing.assert_allclose(found, expected, rtol=1e-6, atol=1e-6 * max(1.0, np.max(np.abs(expected))))


def same(found: Any, expected: Any, tolerance: float = 0.0, message: str = "") -> None:
    """In value, up to the last digits relative to the largest, and in kind."""
    __tracebackhide__ = True
    ours, theirs = leaves(found), leaves(expected)
    assert len(ours) == len(theirs)
    for a, b in zip(ours, theirs, strict=True):
        assert type(a) is type(b) and np.asarray(a).dtype == np.asarray(b).dtype, message
        close = tolerance or EXACT.get(np.asarray(b).dtype.name, 1e-11)
        size = max(1.0, float(np.max(np.abs(b), initial=0.0)))
        np.testing.assert_allclose(a, b, rtol=close, atol=close * size, err_msg=message)


class Loops:
    """`@loop(0.5, inverts=9)` adds a program, `@loop.all` is what a test goes through."""

    def __init__(self) -> None:
        self.loops: list[Loop] = []

    def __call__(self, *arguments: Any, **options: Any) -> Callable[[Any], Any]:
        def add(function: Any) -> Any:
            self.loops.append(Loop(function, arguments, **options))
            return function

        return add

    def take(self, others: Loops, *functions: Any) -> None:
        """Programs of another gallery too."""
        self.loops += [next(p for p in others.loops if p.function is f) for f in functions]

    def having(self, test: Callable[[Loop], bool]) -> Any:
        found = [pytest.param(p, id=p.function.__name__) for p in self.loops if test(p)]
        return pytest.mark.parametrize("program", found)

    @property
    def all(self) -> Any:
        return self.having(lambda p: True)


def plans(f: Callable[..., Any], *args: Any, **options: Any) -> list[str]:
    """What was decided for each loop that had a decision, in the order of the program."""
    derived = tp.grad(f, **options)
    found = [
        str(s.exp.hints) for s in all_stms(trace(derived.python, args).core.body) if isinstance(s.exp, For | While)
    ]
    return [hints for hints in found if hints]


def quietly(run: Callable[[], Any]) -> Any:
    """The result, where no warning may be given."""
    with warnings.catch_warnings():
        warnings.simplefilter("error")
        return run()
