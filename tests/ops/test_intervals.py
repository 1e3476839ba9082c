"""Intervals of rows: what a row gives for numbers of the intervals lies in the interval that is claimed."""

from __future__ import annotations

import math

import numpy as np
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from tapeless.ir.builder import Builder
from tapeless.ir.types import Const, DType, const
from tapeless.ops.emit import Emit
from tapeless.ops.intervals import ALL, bounded_slopes, interval_of
from tapeless.ops.op import FLOATS
from tapeless.ops.table import TABLE

ROWS = [
    name for name, row in TABLE.items()
    if FLOATS <= row.dtypes and not row.comparison and not row.patterns and not row.borrowed and row.arity <= 2 and name not in ("select", "convert", "complex")
]  # fmt: skip
SPECIAL = [
    -math.inf,
    -700.0,
    -2.0,
    -1.0,
    -0.5,
    -1e-300,
    -0.0,
    0.0,
    5e-324,
    1e-6,
    0.3,
    1.0,
    2.0,
    3.0,
    710.0,
    1e200,
    math.inf,
]
NUMBERS = st.sampled_from(SPECIAL) | st.floats(allow_nan=False)


@st.composite
def operands(draw: st.DrawFn, count: int, dtype: DType) -> list[tuple[tuple[float, float] | Const, float]]:
    """Intervals or constants, each with a number of it."""
    found: list[tuple[tuple[float, float] | Const, float]] = []
    for _ in range(count):
        a, x, b = sorted(float(dtype.numpy.type(draw(NUMBERS))) for _ in range(3))
        found.append((const(x, dtype), x) if draw(st.booleans()) else ((a, b), x))
        if isinstance(found[-1][0], tuple) and draw(st.integers(0, 9)) == 0:
            found[-1] = (found[-1][0], math.nan)
    return found


@pytest.mark.sampled(2, each="name")
@pytest.mark.parametrize("dtype", [DType.f32, DType.f64], ids=str)
@pytest.mark.parametrize("name", ROWS)
@settings(max_examples=25, deadline=None)
@given(data=st.data())
def test_results_are_inside(name: str, dtype: DType, data: st.DataObject) -> None:
    row = TABLE[name]
    drawn = data.draw(operands(row.arity, dtype))
    intervals = tuple(interval for interval, _ in drawn)
    with np.errstate(all="ignore"):
        low, high = interval_of(name, intervals, dtype)
        result = float(row.numpy(*(dtype.numpy.type(x) for _, x in drawn)))
    assert math.isnan(result) or low <= result <= high


def test_some_are_known() -> None:
    f64 = DType.f64
    assert interval_of("cos", (ALL,), f64)[0] > -1.1
    assert interval_of("mul", (ALL, ALL), f64, same=True) == (0.0, math.inf)
    assert interval_of("mul", (ALL, ALL), f64) == ALL
    assert interval_of("max", (const(0.0, f64), ALL), f64)[0] == 0.0
    assert interval_of("fmax", ((3.0, 4.0), ALL), f64) == ALL  # NaN and -5
    low, high = interval_of("sub", (const(0.65, f64), (0.0, 0.4)), f64)
    assert 0.2499 < low <= 0.25 and 0.65 <= high < 0.651


@pytest.mark.parametrize(
    "name, args, level",
    [
        ("sqrt", ((1e-6, math.inf),), True),
        ("sqrt", ((0.0, math.inf),), False),
        ("div", ((-3.0, 3.0), (0.25, 1.0)), True),
        ("div", (ALL, (-1.0, 1.0)), False),
        ("log", ((1.0, math.inf),), True),
        ("log", (ALL,), False),
        ("exp", ((-math.inf, 3.0),), True),
        ("exp", (ALL,), False),
        ("rsqrt", ((0.5, math.inf),), True),
        ("asin", ((-1.0, 1.0),), False),
        ("reciprocal", ((1.0, math.inf),), True),
        ("gamma", ((1.0, 2.0),), False),
    ],
)
def test_slopes(name: str, args: tuple[tuple[float, float], ...], level: bool) -> None:
    assert (len(bounded_slopes(name, args, DType.f64)) == len(args)) is level


STEEP = [name for name in ROWS if TABLE[name].singular_at and name != "times"]


@pytest.mark.parametrize("name", STEEP)
@settings(max_examples=25, deadline=None)
@given(data=st.data())
def test_bounded_slopes_are_numbers(name: str, data: st.DataObject) -> None:
    """The rule for slopes, on numbers, where it was said to be bounded on intervals."""
    row = TABLE[name]
    drawn = data.draw(operands(row.arity, DType.f64))
    if any(math.isnan(x) for _, x in drawn):
        return
    finite = all(abs(x) <= 1e75 for _, x in drawn)
    for tame in (False, True):
        if not tame or finite:
            for k in bounded_slopes(name, tuple(interval for interval, _ in drawn), DType.f64, tame):
                assert math.isfinite(slope(name, k, [x for _, x in drawn]))


def slope(name: str, k: int, point: list[float]) -> float:
    """Of constants Emit makes constants."""
    emit, args = Emit(Builder()), [const(x, DType.f64) for x in point]
    with np.errstate(all="ignore"):
        found = emit.partial(name, k, emit(name, *args), args)
    assert isinstance(found, Const | None)
    return 0.0 if found is None else found.value.real
