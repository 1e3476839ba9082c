"""What the rows of the ops table claim of themselves, tried on numbers. Where it can be, also that no other row could claim it."""

import itertools
import math
from collections.abc import Iterator, Sequence

import numpy as np
import pytest

from tapeless.ir.types import DType
from tapeless.ops.op import Inverse, Nan, Op
from tapeless.ops.table import FLOATS, INEXACT, TABLE
from tests.ops.test_partials import slope

INF, NAN = math.inf, math.nan
F64, C128 = DType.f64, DType.c128
ROWS = tuple(row for row in TABLE.values() if not row.patterns and not row.borrowed)
OF_PATTERNS = tuple(
    row for row in TABLE.values() if row.patterns
)  # the rest of them: tests/reversible/test_exact_numbers.py
REALS = (-1e4, -3.5, -1.0, -0.25, -0.0, 0.0, 0.5, 1.0, 2.0, 7.75, 1e4)
EXTREMES = (-INF, *REALS, INF)
POSITIVE = (0.25, 0.5, 1.5, 3.0)
SAMPLES = {
    "f": REALS,
    "c": (0.5 + 0.25j, -1.5 + 2j, 3.0 - 1j),
    "i": (-(2**31), -7, -1, 0, 1, 5, 2**31 - 1),
    "b": (False, True),
}
HUGE = 1e15  # as near to a pole as doubles come
DIVISIONS = {"div", "quotient", "floordiv"}


def named(rows: Sequence[Op]) -> list[object]:
    return [pytest.param(row, id=row.name) for row in rows]


def value(row: Op, *args: complex, dtype: DType = F64) -> np.generic:
    return row.numpy(*(dtype.numpy.type(a) for a in args))


def samples(dtype: DType) -> list[complex]:
    if dtype.is_int:
        return [n for n in SAMPLES["i"] if dtype.lowest <= n.real <= dtype.highest]
    return list(SAMPLES[dtype.numpy.kind])


def same(a: object, b: object) -> bool:
    return bool(np.array_equal(a, b, equal_nan=np.asarray(a).dtype.kind in "fc"))


def is_real(row: Op) -> bool:
    return F64 in row.dtypes and row.name != "convert" and row.result([F64] * row.arity) is F64


# --- inverses and units ------------------------------------------------------------------------------------------

INVERSES = [
    pytest.param(row, k, inverse, dtype, id=f"{row.name}-{k}-{dtype.name}")
    for row in (*ROWS, *OF_PATTERNS)
    for k, inverse in enumerate(row.inverse)
    if inverse
    for dtype in sorted(inverse.exact | inverse.rounded, key=lambda d: d.name)
]


@pytest.mark.parametrize("row, k, inverse, dtype", INVERSES)
def test_inverses(row: Op, k: int, inverse: Inverse, dtype: DType):
    rounded = dtype in inverse.rounded
    assert len(row.inverse) == row.arity and not inverse.exact & inverse.rounded
    points = list(POSITIVE) if rounded and not dtype.is_complex else samples(dtype)
    with np.errstate(all="ignore"):
        for args in itertools.product(points, repeat=row.arity):
            result, others = value(row, *args, dtype=dtype), args[:k] + args[k + 1 :]
            found = value(
                TABLE[inverse.op], *((*others, result) if inverse.swapped else (result, *others)), dtype=dtype
            )
            if rounded:
                np.testing.assert_allclose(found, dtype.numpy.type(args[k]), rtol=1e-12 if dtype.real is F64 else 1e-4)
            else:
                assert found.tobytes() == dtype.numpy.type(args[k]).tobytes()


def test_rows_with_an_exact_inverse_lose_nothing():
    """A row of one operand gives different results for different operands, or has no inverse."""
    assert {row.name for row in ROWS if row.arity == 1 and any(i and i.exact for i in row.inverse)} == {
        "neg", "not", "identity", "conj",
    }  # fmt: skip


@pytest.mark.parametrize("row", named([row for row in ROWS if row.unit]))
def test_units(row: Op):
    assert row.unit is not None
    for dtype in row.dtypes:
        unit = row.unit.of(dtype).value
        for x in samples(dtype):
            kept = dtype.numpy.type(x)
            assert same(value(row, kept, unit, dtype=dtype), kept), (x, dtype)
            if row.unit.left:
                assert same(value(row, unit, kept, dtype=dtype), kept), (x, dtype)


@pytest.mark.parametrize("row", named([row for row in ROWS if row.unit and not row.unit.left]))
def test_units_of_the_last_operand_only(row: Op):
    assert row.unit is not None and not row.commutative
    dtype = F64 if F64 in row.dtypes else DType.i64
    unit = row.unit.of(dtype).value
    assert any(not same(value(row, unit, x, dtype=dtype), dtype.numpy.type(x)) for x in (2, 3))


# --- order -------------------------------------------------------------------------------------------------------


@pytest.mark.parametrize("row", named([row for row in ROWS if row.extremum]))
def test_extrema(row: Op):
    assert row.extremum is not None
    for x, y in itertools.product(EXTREMES, repeat=2):
        assert value(row, x, y) == (max(x, y) if row.extremum.greatest else min(x, y))
    wins = {Nan.first_wins: (True, False), Nan.wins: (True, True), Nan.loses: (False, False)}
    assert (np.isnan(value(row, NAN, 1.0)), np.isnan(value(row, 1.0, NAN))) == wins[row.extremum.nan]


@pytest.mark.parametrize("row", named([row for row in ROWS if row.comparison]))
def test_comparisons(row: Op):
    means = row.comparison
    assert means is not None and row.commutative == (means.mirrored == row.name)
    for x, y in itertools.product(EXTREMES, repeat=2):
        assert value(row, x, y) != value(TABLE[means.negated], x, y)
        assert value(row, x, y) == value(TABLE[means.mirrored], y, x)
        if x == y:
            assert value(row, x, y) == means.reflexive
        elif means.order:
            assert value(row, x, y) == ((x > y) - (x < y) == means.order)


def rises_or_falls(row: Op, k: int) -> bool:
    moving = POSITIVE if row.name in DIVISIONS and k == 1 else np.linspace(-6, 6, 97)
    for others in itertools.product(POSITIVE if row.name in DIVISIONS else REALS, repeat=row.arity - 1):
        found = [float(value(row, *others[:k], x, *others[k:])) for x in moving]
        steps = np.diff([y for y in found if math.isfinite(y)])
        if (steps > 0).any() and (steps < 0).any():
            return False
    return True


@pytest.mark.parametrize(
    "row", named([row for row in ROWS if is_real(row) and row.name not in ("nextafter", "polygamma", "mul_error")])
)
def test_monotone_rows_and_no_others(row: Op):
    """On floats: integers would wrap."""
    assert all(rises_or_falls(row, k) for k in range(row.arity)) == row.monotone


def test_rows_without_real_results_are_not_monotone():
    assert {row.name for row in ROWS if row.monotone and not is_real(row)} == set()


@pytest.mark.parametrize(
    "row",
    named(
        [
            row
            for row in ROWS
            if row.dtypes & INEXACT
            and row.name not in ("convert", "nextafter", "mul_error")
            and row.result([C128] * 3) is not DType.bool
        ]
    ),
)
def test_linear_rows_and_no_others(row: Op):
    dtype = F64 if F64 in row.dtypes else C128
    points = list(itertools.product((0.5, -1.25, 3.0) if dtype is F64 else samples(C128), repeat=row.arity))

    def f(*args: complex) -> complex:
        if row.name == "select":
            return complex(row.numpy(np.bool_(args[0] > 0), *map(np.float64, args[1:])))
        return complex(value(row, *args, dtype=dtype))

    def adds(x: Sequence[complex], y: Sequence[complex]) -> bool:
        both = f(*(a - 2 * b for a, b in zip(x, y, strict=True)))
        return abs(both - (f(*x) - 2 * f(*y))) <= 1e-12

    assert all(adds(x, y) for x, y in itertools.product(points, repeat=2)) == row.linear


@pytest.mark.parametrize("row", named([row for row in ROWS if row.nonnegative]))
def test_nonnegative_rows(row: Op):
    for dtype in row.dtypes & FLOATS:
        for args in itertools.product(EXTREMES, repeat=row.arity):
            found = value(row, *args, dtype=dtype)
            assert np.isnan(found) or not np.signbit(found)


@pytest.mark.parametrize("row", named([row for row in ROWS if row.of_parts]))
def test_rows_of_parts(row: Op):
    assert row.of_parts is not None
    name, parts = row.of_parts
    for z in samples(C128):
        assert value(row, z, dtype=C128) == pytest.approx(
            value(TABLE[name], *(getattr(z, p) for p in parts)), rel=1e-15
        )


# --- slopes ------------------------------------------------------------------------------------------------------

SLOPED = [row for row in ROWS if F64 in row.dtypes and any(row.partials)]


def slopes(row: Op, point: Sequence[float]) -> Iterator[float]:
    return (slope(row.name, k, point) for k, rule in enumerate(row.partials) if rule)


@pytest.mark.parametrize("row", named([row for row in SLOPED if row.bounded_slope]))
def test_bounded_slopes(row: Op):
    for point in itertools.product((*REALS, 5e-324, math.pi / 2), repeat=row.arity):
        assert all(map(math.isfinite, slopes(row, point))), point


@pytest.mark.parametrize("row", named([row for row in ROWS if row.singular_at]))
def test_singular_points(row: Op):
    assert row in SLOPED
    for point in row.singular_at:
        assert all(map(math.isfinite, point)) or row.name == "times"
        assert not all(abs(s) < HUGE for s in slopes(row, point)), point


# At (0, 0) `hypot` and its kin turn around, but that is one point; powers and polygamma are defined on one side of others only;
# `nextafter` decides which neighbour is taken.
NOT_BY_STEPS = {"hypot", "atan2", "direction", "pow", "polygamma", "nextafter"}


def jumps(row: Op) -> bool:
    """Do slopes change at once between numbers that are close together, where they are of moderate size?"""
    step = 2.0**-30
    for point in itertools.product((-1.0, 0.0, 0.5, 1.0, 2.0), repeat=row.arity):
        for k in range(row.arity):
            sides = [tuple(x + side * step * (j == k) for j, x in enumerate(point)) for side in (-1, 1)]
            for a, b in zip(*(slopes(row, side) for side in sides), strict=True):
                if abs(a) < 100 and abs(b) < 100 and abs(a - b) > 1e-6:
                    return True
    return False


@pytest.mark.parametrize("row", named([row for row in SLOPED if row.name not in NOT_BY_STEPS]))
def test_deciding_rows_and_no_others(row: Op):
    assert jumps(row) == row.decides
