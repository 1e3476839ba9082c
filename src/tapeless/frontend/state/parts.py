"""The values that a value is made of, and the arrays that it refers to.

Relies on `values` alone.
"""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import replace

from tapeless.frontend.state.values import (
    Array,
    Cell,
    Closure,
    Conflict,
    Grown,
    MaybeUndefined,
    Method,
    RangeValue,
    Scalar,
    Sequence_,
    SliceValue,
    Static,
    Text,
    Value,
    Zipped,
)

WHOLE = frozenset({Scalar, Array, Static})  # most values, which are made of no others


def parts_of(value: Value) -> tuple[Value, ...]:
    """The values that a value is made of: elements, bounds, the defaults of a function, the receiver of a method."""
    if type(value) in WHOLE:
        return ()
    match value:
        case Sequence_(items=parts):
            return parts
        case Grown(array=array, length=length, first=first):
            return tuple(part for part in (length, array, first) if part is not None)
        case Zipped(parts=parts, start=start):
            return parts if start is None else (start, *parts)
        case RangeValue():
            return (value.start, value.stop, value.step)
        case SliceValue():
            return tuple(Static(None) if p is None else p for p in (value.start, value.stop, value.step))
        case Closure(defaults=defaults):
            return tuple(v for _, v in defaults)
        case Method(receiver=receiver):
            return (receiver,)
        case Text(numbers=numbers):
            return numbers
        case _:
            return ()


def with_parts(value: Value, parts: Sequence[Value]) -> Value:
    """The value made of other parts. A part without a value leaves none to the whole, but for tuples and the like."""
    if isinstance(value, Sequence_):
        return replace(value, items=tuple(parts))
    for part in parts:
        if isinstance(part, Conflict):
            return part
    match value:
        case Grown(array=None):
            (length,) = parts
            assert isinstance(length, Scalar)
            return replace(value, length=length)
        case Grown():
            length, array, *others = parts
            at = others[0] if others else None
            assert isinstance(length, Scalar) and isinstance(array, Array) and (at is None or isinstance(at, Scalar))
            return replace(value, length=length, array=array, first=at)
        case Zipped(start=None):
            return Zipped(tuple(parts))
        case Zipped():
            first, *rest = parts
            assert isinstance(first, Scalar)
            return Zipped(tuple(rest), first)
        case RangeValue():
            start, stop, step = parts
            assert isinstance(start, Scalar) and isinstance(stop, Scalar) and isinstance(step, Scalar)
            return replace(value, start=start, stop=stop, step=step)
        case SliceValue():
            return SliceValue(*(None if p == Static(None) else p for p in parts))
        case Closure(defaults=defaults):
            return replace(value, defaults=tuple((name, p) for (name, _), p in zip(defaults, parts, strict=True)))
        case Method():
            return replace(value, receiver=parts[0])
        case Text():
            return replace(value, numbers=tuple(parts))
        case _:
            return value


def is_deque(value: Value) -> bool:
    return isinstance(value, (Sequence_, Grown)) and value.ref is not None and value.ref.deque


def same_form(a: Value, b: Value) -> bool:
    """Whether two values differ in their parts only."""
    parts = parts_of(a)
    return type(a) is type(b) and len(parts) == len(parts_of(b)) and with_parts(b, parts) == a


def cells_of(value: Value) -> list[Cell]:
    """The cells that a value refers to."""
    match value:
        case Array(cell=cell):
            return [cell]
        case MaybeUndefined(value=inner):
            return cells_of(inner)
        case _:
            return [c for part in parts_of(value) for c in cells_of(part)]
