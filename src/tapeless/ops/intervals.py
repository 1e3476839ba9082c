"""Where the results of rows lie, if it is known where their operands do.

`interval_of` takes the intervals of a row's operands and gives that of its result. An interval says nothing of NaN: a
value is in it, or is NaN. Ends are what the machine computes, so bounds hold for rounded results: rounding does not
change the order of numbers. Where a result may be rounded otherwise (functions of a library, a product and a sum at
once) the ends are moved apart.

`bounded_slopes` runs the rules of `ops/partials.py` on intervals instead of numbers: no table says a second time
where a row is steep.
"""

from __future__ import annotations

import math
import operator
from collections.abc import Callable, Sequence
from functools import lru_cache
from typing import Any

import numpy as np

from tapeless.ir.types import Const, DType
from tapeless.ops.op import FLOATS, NoSlope, Op
from tapeless.ops.partials import PARTIALS
from tapeless.ops.table import TABLE

Interval = tuple[float, float]
ALL: Interval = (-math.inf, math.inf)
EPSILON = {DType.f32: 2.0**-23, DType.f64: 2.0**-52}
SLACK = 1e-6  # relative: more than any function of a library is off by, in single precision too
TINY, HUGE = 1e-37, 1e38  # near the ends of what single precision holds
LARGE = {DType.f32: 1e9, DType.f64: 1e75}  # squares of it are numbers, and so are squares of squares
ARITHMETIC: dict[str, Callable[[float, float], float]] = {
    "add": operator.add,
    "sub": operator.sub,
    "mul": operator.mul,
}


def of_const(value: complex | bool) -> Interval:
    x = float(value.real)
    return ALL if math.isnan(x) else (x, x)


def bounded(x: Interval) -> bool:
    return -math.inf < x[0] and x[1] < math.inf


def hull(*parts: Interval) -> Interval:
    return min(p[0] for p in parts), max(p[1] for p in parts)


def both(x: Interval, y: Interval) -> Interval:
    """What is in both; if nothing is, the place is never reached, and anything is true."""
    low, high = max(x[0], y[0]), min(x[1], y[1])
    return (low, high) if low <= high else x


@lru_cache(maxsize=4096)
def interval_of(name: str, args: tuple[Interval | Const, ...], dtype: DType, same: bool = False) -> Interval:
    """`dtype`: of the operands. `same`: both operands are one value."""
    if name == "convert":
        return _converted(_range_of(args[0]), dtype)
    if dtype not in FLOATS:
        return ALL
    low, high = _interval(name, args, dtype, same)
    if dtype is DType.f32 and (-TINY < low < TINY or -TINY < high < TINY or max(-low, high) > HUGE):
        return _converted((low, high), dtype)
    return low, high


def _interval(name: str, args: tuple[Interval | Const, ...], dtype: DType, same: bool) -> Interval:
    given = [_range_of(a) for a in args]
    if same and name == "mul":
        return _square(given[0])
    if name in RULES:
        return RULES[name](*given)
    row = TABLE[name]
    found = _corners(row, given, dtype) if row.monotone else ALL
    if row.extremum:  # where one operand is NaN the other one may be the result
        found = hull(found, *(x for x, other in zip(given, args[::-1], strict=True) if not isinstance(other, Const)))
    return both((0.0, math.inf), found) if row.nonnegative else found


def _converted(x: Interval, dtype: DType) -> Interval:
    """To a float: from a float, small numbers may become 0 and large ones infinite."""
    if dtype is DType.bool:
        return 0.0, 1.0
    if dtype not in FLOATS:
        return -(2.0**63), 2.0**63
    return 0.0 if x[0] >= 0 else -math.inf, 0.0 if x[1] <= 0 else math.inf


def _corners(row: Op, args: Sequence[Interval], dtype: DType) -> Interval:
    """Of a row that rises or falls with each operand: its values at the ends."""
    if row.singular_at and row.arity == 2 and args[1][0] <= 0.0 <= args[1][1]:  # a divisor on both sides of 0
        return ALL
    if row.linear and row.arity == 2 and ALL in args:
        return ALL
    (a, b), (c, d) = args if row.arity == 2 else (args[0], (0.0, 0.0))
    ends = ((a, a, b, b), (c, d, c, d)) if row.arity == 2 else (_with_zeros(args[0]),)
    found = _values(row, ends, dtype)
    numbers = [x for x in found if not math.isnan(x)]
    if not numbers or (row.arity == 1 and len(numbers) < len(found)):
        return ALL
    low, high = min(numbers), max(numbers)
    if row.linear and row.arity == 2 and _cancels(row, args):
        size = max(abs(x) for a in args for x in a if math.isfinite(x)) if any(map(_has_end, args)) else 0.0
        off = 4 * EPSILON[dtype] * size
        return low - off, high + off
    return _apart((low, high))


def _values(row: Op, columns: Sequence[Sequence[float]], dtype: DType) -> list[float]:
    """Of several calls at once."""
    if dtype is DType.f64 and row.name in ARITHMETIC:  # NumPy takes far longer to get ready
        return list(map(ARITHMETIC[row.name], *columns))
    found: list[float] = row.numpy(*[np.array(column, dtype.numpy) for column in columns]).tolist()
    return found


def _with_zeros(x: Interval) -> Interval | tuple[float, float, float, float]:
    """The ends, and the zeros of both signs between them: a row may tell these apart."""
    return (*x, -0.0, 0.0) if x[0] <= 0 <= x[1] else x


def _has_end(x: Interval) -> bool:
    return math.isfinite(x[0]) or math.isfinite(x[1])


def _cancels(row: Op, args: Sequence[Interval]) -> bool:
    """Can a sum or difference be less than its terms?"""
    a, b, c, d = _values(row, ((*args[0], 0.0, 0.0), (0.0, 0.0, *args[1])), DType.f64)
    c, d = min(c, d), max(c, d)
    return not (a >= 0 and c >= 0) and not (b <= 0 and d <= 0)


def _apart(x: Interval) -> Interval:
    """The ends a little further out, on their side of 0."""
    low, high = x
    return low * (1 - SLACK if low > 0 else 1 + SLACK), high * (1 + SLACK if high > 0 else 1 - SLACK)


def _abs(x: Interval) -> Interval:
    low, high = x
    ends = (abs(low), abs(high))
    return (0.0 if low <= 0 <= high else min(ends)), max(ends)


def _square(x: Interval) -> Interval:
    low, high = _abs(x)
    return _apart((low * low, high * high))


def _reciprocal(x: Interval) -> Interval:
    low, high = x
    return ALL if low <= 0 <= high else _apart((1 / high, 1 / low))


def _wave(x: Interval) -> Interval:
    return -1 - SLACK, 1 + SLACK


def _pow(x: Interval, y: Interval) -> Interval:
    return (0.0, math.inf) if x[0] > 0 or (y[0] == y[1] and y[0] % 2 == 0) else ALL


def _one_minus_square(x: Interval) -> Interval:
    low, high = _square(x)
    return _apart((1 - high, 1 - low))


RULES: dict[str, Callable[..., Interval]] = {
    "abs": _abs,
    "square": _square,
    "reciprocal": _reciprocal,
    "sin": _wave,
    "cos": _wave,
    "pow": _pow,
    "floordiv": lambda x, y: ALL,
    "one_minus_square": _one_minus_square,
    "select": lambda c, x, y: hull(x, y),
    "hypot": lambda x, y: (_apart(hull(_abs(x), _abs(y)))[0], math.inf),
    "sign": lambda x: (-1.0 if x[0] < 0 else 0.0, 1.0 if x[1] > 0 else 0.0),
}


@lru_cache(maxsize=4096)
def bounded_slopes(name: str, args: tuple[Interval | Const, ...], dtype: DType, finite: bool = False) -> frozenset[int]:
    """The operands in which the slopes of a row are numbers. `finite`: if no operand is infinite or very large."""
    if dtype not in FLOATS or name not in PARTIALS:
        return frozenset()
    most = LARGE[dtype] if finite else math.inf
    given = [_Range(both(a, (-most, most)), dtype) if isinstance(a, tuple) else a for a in args]
    result = _apply(name, *given)
    found: set[int] = set()
    for k, rule in enumerate(PARTIALS[name]):
        try:
            if rule is None or bounded(_range_of(rule(_apply, result, *given))):
                found.add(k)
        except (_Unknown, NoSlope):
            pass
    return frozenset(found)


class _Unknown(Exception):
    """A rule asks for more than the interval of an operand."""


class _Range:
    """Stands for an operand in a rule for slopes."""

    def __init__(self, interval: Interval, dtype: DType) -> None:
        self.interval, self.dtype = interval, dtype

    def __getattr__(self, name: str) -> Any:
        raise _Unknown(name)


def _range_of(x: Any) -> Interval:
    """Of an operand, in whatever form."""
    if isinstance(x, tuple):
        return x
    return x.interval if isinstance(x, _Range) else of_const(x.value if isinstance(x, Const) else x)


def _apply(name: str, *args: Any) -> _Range:
    dtype = next((a.dtype for a in args if isinstance(a, (_Range, Const)) and a.dtype in FLOATS), DType.bool)
    if TABLE[name].comparison or dtype is DType.bool:
        return _Range((0.0, 1.0), DType.bool)
    same = len(args) == 2 and args[0] is args[1]
    given = tuple([a if isinstance(a, Const) else _range_of(a) for a in args])
    return _Range(interval_of(name, given, dtype, same), dtype)
