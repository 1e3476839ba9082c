"""Values of the evaluator: NumPy scalars of the exact type, arrays, accumulators, and ways to reach into them.

Gives `Value` and `Accumulator`, positions and ranges with their tests, and the errors that accuse the compiler.
Relies on Core's axes and types; knows nothing of statements and scopes.
"""

from __future__ import annotations

from collections.abc import Callable, Sequence
from dataclasses import dataclass
from typing import Any

import numpy as np
import numpy.typing as npt

from tapeless.errors import ShapeError
from tapeless.ir.core import At, Range
from tapeless.ir.span import Span
from tapeless.ir.types import Const, DType, Type, Var

Array = npt.NDArray[Any]
Scalar = np.generic


@dataclass(eq=False)
class Accumulator:
    """A write-only array of Core. The array is the accumulator's own, so it may change."""

    op: str
    array: Array


Value = Scalar | Array | Accumulator


class OutOfBounds(AssertionError):
    """An access that the compiler claimed to be inside its array is not."""


class IllTyped(AssertionError):
    """A value is not of the type of its variable, or a variable is used outside its scope."""


class UseAfterConsume(AssertionError):
    """An array is used after a statement took its memory over."""


# What an array holds before it is written: outside of every array as an index, NaN where there is one.
GARBAGE: dict[DType, bool | int | float | complex] = {
    DType.bool: True,
    **{dtype: 0x5A5A5A5A5A5A5A5A % (1 << (8 * dtype.bytes)) for dtype in DType if dtype.is_int},
    DType.f32: np.nan,
    DType.f64: np.nan,
    DType.c64: complex(np.nan, np.nan),
    DType.c128: complex(np.nan, np.nan),
}


def uninitialised(shape: tuple[int, ...], dtype: DType) -> Array:
    return np.full(shape, GARBAGE[dtype], dtype.numpy)


def constant(const: Const) -> Scalar:
    value: Scalar = const.dtype.numpy.type(const.value)
    return value


def fresh(value: Value) -> Scalar | Array:
    """The same value in memory of its own."""
    if isinstance(value, Accumulator):
        raise IllTyped("an accumulator cannot be read")
    return value.copy() if isinstance(value, np.ndarray) else value


def owner(array: Array) -> Array:
    """The array whose memory this one looks at, possibly itself."""
    while isinstance(array.base, np.ndarray):
        array = array.base
    return array


# -- arguments


def argument(param: Var, given: object) -> Scalar | Array:
    """The argument as a value of the parameter's element type and rank; its own copy."""
    type = param.type
    natural = np.asarray(given)
    # A Python number has no element type of its own and takes the parameter's; NumPy values must have it.
    exact = isinstance(given, (np.generic, np.ndarray))
    if not np.can_cast(natural.dtype, type.dtype.numpy, "no" if exact else "same_kind"):
        raise TypeError(f"{param.name} has element type {natural.dtype}, expected {type.dtype.numpy}")
    if natural.ndim != type.rank:
        raise ShapeError(f"{param.name} has {natural.ndim} dimensions, expected {type.rank}")
    value: Scalar | Array = np.array(given, type.dtype.numpy, order="C")[()]  # [()] makes a scalar of rank 0
    return value


def bind_sizes(param: Var, shape: Sequence[int], sizes: dict[Var, int]) -> None:
    """Names the lengths in the parameter's type, or compares those that already have a value."""
    for axis, (dim, length) in enumerate(zip(param.type.shape, shape, strict=True)):
        expected = sizes.setdefault(dim, length) if isinstance(dim, Var) else dim
        if expected != length:
            name = f" ({dim.name})" if isinstance(dim, Var) else ""
            raise ShapeError(f"axis {axis} of {param.name} has length {length}, expected {expected}{name}")


# -- reaching into arrays


@dataclass(frozen=True)
class Place:
    """An axis with its operands evaluated: `at` a position, or `length` positions from `at` by `step`."""

    axis: At | Range
    at: int
    length: int = 1
    step: int = 1


def position(place: Place, number: int, size: int, span: Span) -> int:
    """The position in axis `number`, tested as the axis asks."""
    assert isinstance(place.axis, At)
    i = place.at + size if place.axis.wrap and place.at < 0 else place.at
    if 0 <= i < size:
        return i
    message = f"index {place.at} is out of bounds for axis {number} with size {size} ({span})"
    raise IndexError(message) if place.axis.check else OutOfBounds(message)


def stretch(place: Place, number: int, size: int, span: Span) -> slice:
    """The positions of a range in axis `number`, as a slice of NumPy's."""
    first, last = place.at, place.at + (place.length - 1) * place.step
    if place.length == 0:
        return slice(0, 0)
    if place.length < 0 or not (0 <= first < size and 0 <= last < size) or (place.step == 0 and place.length > 1):
        raise OutOfBounds(
            f"{place.length} positions from {first} by {place.step} leave axis {number} with size {size} ({span})"
        )
    if place.length == 1:
        return slice(first, first + 1)
    stop = last + (1 if place.step > 0 else -1)
    return slice(first, stop if stop >= 0 else None, place.step)


def select(array: Array, places: Sequence[Place], span: Span) -> tuple[int | slice, ...]:
    """What to index the array with in NumPy: one entry for each of its axes."""
    if len(places) != array.ndim:
        raise IllTyped(f"{len(places)} axes index an array of rank {array.ndim} ({span})")
    return tuple(
        position(place, k, size, span) if isinstance(place.axis, At) else stretch(place, k, size, span)
        for k, (place, size) in enumerate(zip(places, array.shape, strict=True))
    )


def store(
    array: Array, where: Any, value: Value, fill: bool = False, combine: Callable[[Any, Any], Any] | None = None
) -> None:
    """Writes a value of the selected shape, or with `fill` a scalar into each cell. Never converts, as NumPy would."""
    if isinstance(value, Accumulator):
        raise IllTyped("an accumulator cannot be read")
    cells = array[where]
    same_shape = value.shape == cells.shape or (fill and value.ndim == 0)
    if value.dtype != array.dtype or not same_shape:
        raise IllTyped(f"{value.dtype}{list(value.shape)} does not fit into {array.dtype}{list(cells.shape)}")
    array[where] = value if combine is None else combine(cells, value)


def broadcast(array: Array | Scalar, shape: tuple[int, ...], axes: tuple[int, ...]) -> Array:
    """Axis k of the array becomes axis `axes[k]`; the others repeat it. A view."""
    if len(axes) != array.ndim or [shape[a] for a in axes] != list(array.shape):
        raise IllTyped(f"an array of shape {list(array.shape)} does not become axes {list(axes)} of {list(shape)}")
    ordered = np.transpose(array, sorted(range(len(axes)), key=lambda k: axes[k]))
    single = ordered[tuple(slice(None) if k in axes else np.newaxis for k in range(len(shape)))]
    return np.broadcast_to(single, shape)


def fits(value: Value, type: Type, shape: tuple[int, ...]) -> bool:
    """Is the value of this type, whose dimensions are now `shape`?"""
    if isinstance(value, Accumulator):
        return value.op == type.acc and value.array.dtype == type.dtype.numpy and value.array.shape == shape
    if isinstance(value, np.ndarray):
        return not type.acc and bool(shape) and value.dtype == type.dtype.numpy and value.shape == shape
    dtype = type.dtype.numpy
    return type.is_scalar and (value.dtype is dtype or value.dtype == dtype)
