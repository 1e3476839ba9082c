"""One gradient by every recovery, which must agree.

`disagreement` takes a function of floats, arrays and trips and how to make its arguments; the gradients, as Core, are
run by the interpreter for each number of trips, as they are made and as they are optimised.
"""

from __future__ import annotations

import warnings
from collections.abc import Callable, Iterator, Sequence
from dataclasses import dataclass, field
from typing import Any

import numpy as np

import tapeless as tp
from tapeless.frontend.entry import Traced, trace
from tapeless.interp.evaluate import evaluate
from tapeless.ir.core import Function
from tapeless.passes.check.consumption import check_in_place
from tapeless.passes.check.verify import verify
from tapeless.passes.pipeline import finished
from tapeless.testing.stages import leaves_of, parameters_of

TRIPS = (0, 1, 2, 3, 7, 8, 9, 26, 27, 28, 63, 64, 65)
MAY_BE_REFUSED = ("invert", "closed", "undo")
CLOSE = 1e-9  # relative to the largest entry
AFTER_INVERSION = 1e-4  # where it came back to where it started

Arguments = Callable[[int], Sequence[Any]]


@dataclass(frozen=True)
class Way:
    recover: str = "auto"
    memory: str | None = None

    def __str__(self) -> str:
        return f"recover={self.recover!r}" + (f", memory={self.memory!r}" if self.memory else "")

    @property
    def kind(self) -> str:
        return self.recover.partition(":")[0]

    def options(self) -> dict[str, Any]:
        return {"recover": self.recover, **({"memory": self.memory} if self.memory else {})}


WAYS = (
    *(Way(r) for r in ("auto", "undo", "checkpoint", "checkpoint:1", "checkpoint:2", "checkpoint:3", "recompute")),
    *(Way("auto", m) for m in ("90B", "350B", "1500B", "1MB")),
    *(Way("checkpoint", m) for m in ("350B", "1500B")),
    *(Way(r) for r in ("invert", "invert:3", "closed")),
)


@dataclass
class Gradient:
    """The gradient of a function by one way, as Core."""

    traced: Traced
    stages: dict[str, Function] = field(default_factory=dict)

    def run(self, stage: str, args: Sequence[Any]) -> tuple[list[Any], bool]:
        """What it gives, and whether inversion drifted."""
        values = parameters_of(self.traced, leaves_of(args))
        given = [v.copy() if isinstance(v, np.ndarray) else v for v in values]
        with warnings.catch_warnings(record=True) as seen, np.errstate(all="ignore"):
            warnings.simplefilter("always")
            results = list(evaluate(self.stages[stage], given))
        return results, any(issubclass(w.category, tp.InversionDrift) for w in seen)


def gradient(function: Callable[..., Any], args: Sequence[Any], way: Way, wrt: Sequence[int]) -> Gradient:
    derived = tp.value_and_grad(function, tuple(wrt), **way.options())
    traced = trace(derived.python, args)
    verify(traced.core)
    cleaned = check_in_place(finished(traced.core))[0]
    verify(cleaned)
    return Gradient(traced, {"core": traced.core, "optimized core": cleaned})


def disagreement(
    function: Callable[..., Any], arguments: Arguments, wrt: Sequence[int], ways: Sequence[Way] = WAYS,
    trips: Sequence[int] = TRIPS,
) -> str:  # fmt: skip
    """The first way that differs from storing everything, or nothing."""
    return next(disagreements(function, arguments, wrt, ways, trips), "")


def disagreements(
    function: Callable[..., Any], arguments: Arguments, wrt: Sequence[int], ways: Sequence[Way], trips: Sequence[int]
) -> Iterator[str]:
    """Nothing where a hint in the program does not apply."""
    try:
        stored = gradient(function, arguments(1), Way("store"), wrt)
    except tp.RecoveryError:
        return
    expected = {n: stored.run("core", arguments(n))[0] for n in trips}
    for way in ways:
        try:
            found = gradient(function, arguments(1), way, wrt)
        except tp.RecoveryError as refused:
            if way.kind in MAY_BE_REFUSED:
                continue
            raise AssertionError(f"{way} is refused: {refused}") from refused
        for n in trips:
            for stage in found.stages:
                if where := _compared(found, stage, arguments(n), expected[n], way):
                    yield f"{way}, {n} trips, {stage}: {where}"


def _compared(found: Gradient, stage: str, args: Sequence[Any], expected: list[Any], way: Way) -> str:
    try:
        results, drifted = found.run(stage, args)
    except tp.RecoveryError:
        return "" if way.memory else "raised RecoveryError"
    if drifted:
        return "" if way.kind == "invert" else "inversion drifted"
    close = AFTER_INVERSION if way.kind == "invert" else CLOSE
    size = max(1.0, *(float(np.max(np.abs(e), initial=0.0)) for e in expected))
    for k, (e, r) in enumerate(zip(expected, results, strict=True)):
        if np.all(np.isfinite(e)) and not np.all(np.abs(np.asarray(e) - r) <= close * size):
            return f"result {k} is {r}, not {e}"
    return ""
