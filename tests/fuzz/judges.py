"""What is judged of a program of calls: its values by plain Python, its derivatives by each other and by differences.

Both give where something differs, in words, or nothing. What the compiler refuses raises.
"""

from __future__ import annotations

import warnings
from collections.abc import Callable, Sequence
from typing import Any

import numpy as np

import tapeless as tp
from tapeless.testing.compare import Raised, compare
from tapeless.testing.stages import EXPECTED, by_python, outcomes, unstable
from tests.fuzz.calls import Calls

STEP = 1e-6  # of differences
CLOSE = 1e-7  # forward and reverse mode, relative to the size of the terms
NEAR = 1e-4  # and differences


def values_differ(program: Calls, number: int) -> str:
    """Between plain Python, the interpreters of Core before and after all passes, and native code."""
    function = program.load()
    with np.errstate(all="ignore"), warnings.catch_warnings():
        warnings.simplefilter("ignore")
        found = outcomes(
            function, program.arguments, loops=False, threads=(1 + number % 2,), level=3 if number % 8 == 0 else 0
        )
        _, python = next(found)
        for stage, outcome in found:
            where = compare(python, outcome, any_error=True)
            if where and not unstable(function, program.arguments):
                return f"plain Python and {stage}: {where}"
    return ""


def slopes_differ(program: Calls, number: int) -> str:
    """<w, J v> by forward mode, <J^T w, v> by reverse mode and by differences of plain Python; nothing where a program has no
    finite numbers, or where differences say that it is not smooth.
    """
    function, args, rng = _real(program.load()), program.arguments(), np.random.default_rng(number)
    with np.errstate(all="ignore"), warnings.catch_warnings():
        warnings.simplefilter("ignore")
        plain = by_python(function, program.arguments)
        if isinstance(plain, Raised) or not plain.result or not _moderate((plain.result, args)):
            return ""
        weights = [rng.uniform(0.5, 1.0, np.shape(r)).astype(np.asarray(r).dtype)[()] for r in plain.result]
        directions = [_direction(rng, a) for a in args]
        found, pullback = tp.vjp(function, *program.arguments())
        adjoints = pullback(tuple(weights))
        _, tangents = tp.jvp(function, tuple(program.arguments()), tuple(directions))
        if not _moderate([found, tangents, [a for a in adjoints if a is not None]]):
            return "" if _moderate(found) else f"values {plain.result} and {found}"
        forward = [np.sum(w * t) for w, t in zip(weights, tangents, strict=True)]
        reverse = [np.sum(np.real(a) * v) for a, v in zip(adjoints, directions, strict=True) if _floats(v)]
        size = max(np.sum(np.abs(x)) for x in (forward, reverse, [1.0]))
        loose = 1e5 if any(np.asarray(x).dtype in (np.float32, np.complex64) for x in (*args, *plain.result)) else 1.0
        if abs(sum(forward) - sum(reverse)) > CLOSE * size * loose:
            return f"<w, J v> is {sum(forward)!r}, <J^T w, v> is {sum(reverse)!r}"
        return "" if loose > 1 else _against_differences(function, args, directions, weights, float(sum(forward)))


def _real(function: Callable[..., Any]) -> Callable[..., Any]:
    """The results that are floats, and the parts of those that are complex."""

    def parts(*args: Any) -> Any:
        found = []
        for r in function(*args):
            if np.iscomplexobj(r):
                found += [np.real(r), np.imag(r)]
            elif np.issubdtype(np.asarray(r).dtype, np.floating):
                found += [r]
        return tuple(found)

    return parts


def _moderate(values: Any) -> bool:
    if isinstance(values, tuple | list):
        return all(map(_moderate, values))
    return bool(np.all(np.isfinite(values))) and bool(np.all(np.abs(values) < 1e8))


def _floats(value: Any) -> bool:
    return value is not None and np.asarray(value).dtype.kind == "f"


def _direction(rng: np.random.Generator, value: Any) -> Any:
    """Of floats at random, of complex numbers none; whole numbers have none."""
    kind = np.asarray(value).dtype
    if kind.kind not in "fc":
        return None
    made = rng.uniform(-1.0, 1.0, np.shape(value)) if kind.kind == "f" else np.zeros(np.shape(value))
    return made.astype(kind) if isinstance(value, np.ndarray) else type(value)(made)


def _against_differences(
    function: Callable[..., Any], args: Sequence[Any], directions: Sequence[Any], weights: Sequence[Any], expected: float
) -> str:  # fmt: skip
    """At a kink, differences to both sides are not the same, or those along two directions do not add up."""
    rng = np.random.default_rng(0)
    other = [rng.uniform(-1.0, 1.0, np.shape(v)) if _floats(v) else None for v in directions]
    both = [v + u if _floats(v) else None for v, u in zip(directions, other, strict=True)]

    def at(by: float, along: Sequence[Any]) -> float:
        moved = [a + by * v if _floats(v) else a for a, v in zip(args, along, strict=True)]
        moved = [np.array(a) if isinstance(a, np.ndarray) else a for a in moved]
        return sum(float(np.sum(w * r)) for w, r in zip(weights, function(*moved), strict=True))

    def slopes(along: Sequence[Any]) -> tuple[float, ...]:
        here, after, before, far = (at(by, along) for by in (0.0, STEP, -STEP, 3 * STEP))
        return (after - before) / (2 * STEP), (after - here) / STEP, (here - before) / STEP, (far - here) / (3 * STEP)

    try:
        found = [slopes(along) for along in (directions, other, both)]
    except EXPECTED:
        return ""
    scale = max(1.0, abs(expected), *(abs(x) for sides in found for x in sides))
    apart = max(max(sides) - min(sides) for sides in found)
    if not np.isfinite(scale) or max(apart, abs(found[0][0] + found[1][0] - found[2][0])) > NEAR * scale:
        return ""
    wrong = abs(found[0][0] - expected) > 10 * NEAR * scale
    return f"differences give {found[0][0]!r}, derivatives {expected!r}" if wrong else ""
