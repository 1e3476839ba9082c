"""Looking through views: an index, a reshape, a transposition or a broadcast of something known.

Takes an expression on arrays whose operands are renamed already; gives an atom, another expression, or None. Relies on
the caller for definitions, for index arithmetic (`Surroundings`) and for running it again on what it gives.

Note [Looking through a view]
`e = index v [j]` of `v = index a [i, :]` is `index a [i, j]`, and then `v` may die. It also keeps `a` alive up to here,
and if `a` was consumed in between (`update` has taken its memory), the whole of `a` would have to be copied. So no rule
goes back to an array that is *gone*. Positions that are tested keep their view: the error names its axis and length.
"""

from __future__ import annotations

from collections.abc import Iterator, Mapping
from operator import is_
from typing import Protocol

from tapeless.ir.core import ArrayLit, At, Axis, Broadcast, Exp, Full, Index, Iota, Range, Reshape, Transpose, Update
from tapeless.ir.types import Atom, Const, Dim, Type, Var, i64

MOST_CELLS = 64  # that are looked at for one


class Surroundings(Protocol):
    """What the simplifier knows at the statement at hand."""

    @property
    def defs(self) -> Mapping[Var, Exp]: ...

    def is_gone(self, array: Var) -> bool:
        """Has a statement before this one consumed the array?"""

    def scalar(self, op: str, x: Atom, y: Atom) -> Atom:
        """The value of an operation, computed before this statement."""


def simplify_view(exp: Exp, near: Surroundings) -> Atom | Exp | None:
    match exp:
        case Index():
            return _index(exp, near)
        case Reshape(array, shape):
            if shape == array.type.shape:
                return array
            match near.defs.get(array):
                case Reshape(source) if not near.is_gone(source):
                    return source if shape == source.type.shape else Reshape(source, shape)
        case Transpose(array, perm):
            if perm == tuple(range(len(perm))):
                return array
            match near.defs.get(array):
                case Transpose(source, first) if not near.is_gone(source):
                    return Transpose(source, tuple(first[p] for p in perm))
        case Broadcast(array, shape, places):
            if shape == array.type.shape and places == tuple(range(len(shape))):
                return array
            match near.defs.get(array):
                case Broadcast(source, _, first) if not near.is_gone(source):
                    return Broadcast(source, shape, tuple(places[p] for p in first))
    return None


# -- index


def _index(exp: Index, near: Surroundings) -> Atom | Exp | None:
    array, axes = exp.array, exp.axes
    settled = settle(axes, array.type)
    if settled is not axes:
        return Index(array, settled)
    if all(map(_is_whole, axes, array.type.shape)):
        return array
    made = near.defs.get(array)
    match made:
        case None:
            return None
        case Update(before, written, value):
            return _written(axes, before, written, value, near)
        case Full(_, Var() | Const() as value) if _untested(axes):
            return value if _all_at(axes) else Full(_lengths(axes), value)
        case Iota() if isinstance(axes[0], At) and not (axes[0].wrap or axes[0].check):
            return axes[0].index
        case ArrayLit(items):
            return _item(items, axes, near)
        case Broadcast(source, _, places) if not near.is_gone(source):
            return _index_of_broadcast(source, places, axes)
        case Transpose(source, perm) if not near.is_gone(source):
            return _index_of_transpose(source, perm, axes)
        case Index(source, outer) if not near.is_gone(source) and _untested(outer) and _composable(axes):
            return Index(source, tuple(_compose(outer, axes, near)))
    return None


def _written(
    axes: tuple[Axis, ...], before: Var, written: tuple[Axis, ...], value: Atom, near: Surroundings
) -> Atom | Exp | None:
    """What was just written, read where it was written, or what was there before, read elsewhere."""
    if _all_at(axes):
        return (
            value if _same_places(axes, written) else _cell(before, axes, near) if _are_apart(axes, written) else None
        )
    if axes != written or not _untested(axes):
        return None
    if not value.type.shape:
        return Full(_lengths(axes), value)
    assert isinstance(value, Var)
    return value if value.type.shape == _lengths(axes) and not near.is_gone(value) else None


def _cell(array: Var, axes: tuple[Axis, ...], near: Surroundings) -> Atom | None:
    """What is in a cell of an array that was filled, and then written cell by cell. The array itself is not looked at:
    its memory is another one's by now.
    """
    for _ in range(MOST_CELLS):
        match near.defs.get(array):
            case Update(before, written, value) if _same_places(axes, written):
                return value
            case Update(before, written) if _are_apart(axes, written):
                array = before
            case Full(_, Var() | Const() as value) if _untested(axes):
                return value
            case ArrayLit(items) if len(axes) == 1:
                found = _item(items, axes, near)
                return found if isinstance(found, (Var, Const)) else None
            case _:
                return None
    return None


def _are_apart(axes: tuple[Axis, ...], written: tuple[Axis, ...]) -> bool:
    """Whether these are certainly two cells."""
    return any(
        isinstance(a, At) and isinstance(b, At) and _is_number(a) and _is_number(b) and a.index != b.index
        for a, b in zip(axes, written, strict=True)
    )


def _is_number(at: At) -> bool:
    return isinstance(at.index, Const) and not at.wrap and not at.check


def _lengths(axes: tuple[Axis, ...]) -> tuple[Dim, ...]:
    return tuple(a.length for a in axes if isinstance(a, Range))


def settle(axes: tuple[Axis, ...], type: Type) -> tuple[Axis, ...]:
    """Constant positions that are inside need no tests; the same tuple if there are none."""
    settled = [_settle(a, d) for a, d in zip(axes, type.shape, strict=True)]
    return axes if all(map(is_, settled, axes)) else tuple(settled)


def _settle(axis: Axis, length: Dim) -> Axis:
    if isinstance(axis, At) and (axis.wrap or axis.check) and isinstance(axis.index, Const):
        i = int(axis.index.value.real)
        if isinstance(length, int):
            i += length if axis.wrap and i < 0 else 0
            return At(i64(i)) if 0 <= i < length else axis
        if i >= 0 and axis.wrap:
            return At(axis.index, False, axis.check)
    return axis


def _is_whole(axis: Axis, length: Dim) -> bool:
    match axis:
        case Range(Const(0), n, Const(1)):
            return n == length
    return False


def _all_at(axes: tuple[Axis, ...]) -> bool:
    return all(isinstance(a, At) for a in axes)


def _untested(axes: tuple[Axis, ...]) -> bool:
    return not any(isinstance(a, At) and a.check for a in axes)


def _same_places(axes: tuple[Axis, ...], written: tuple[Axis, ...]) -> bool:
    """Do both mean the same cells? A test that one of them makes has passed when the other is looked at."""
    return all(
        isinstance(a, At) and isinstance(b, At) and a.index == b.index and a.wrap == b.wrap
        for a, b in zip(axes, written, strict=True)
    )


def covers(axes: tuple[Axis, ...], written: tuple[Axis, ...], type: Type) -> bool:
    """Are all cells that were written among those of `axes`, and was nothing tested for it?"""
    if not _untested(written):
        return False
    return all(a == w or _is_whole(a, d) for a, w, d in zip(axes, written, type.shape, strict=True))


def _item(items: tuple[Atom, ...], axes: tuple[Axis, ...], near: Surroundings) -> Atom | Exp | None:
    match axes[0]:
        case At(Const(int(i)), False, False) if 0 <= i < len(items):
            item = items[i]
            if len(axes) == 1:
                return item
            assert isinstance(item, Var)
            return None if near.is_gone(item) else Index(item, axes[1:])
    return None


def _index_of_broadcast(source: Var, places: tuple[int, ...], axes: tuple[Axis, ...]) -> Atom | Exp | None:
    repeated = [a for k, a in enumerate(axes) if k not in places]
    if not _untested(axes) or not _all_at(tuple(repeated)):
        return None
    ranges = [p for p in places if isinstance(axes[p], Range)]
    if ranges != sorted(ranges):  # the result would be transposed
        return None
    return Index(source, tuple(axes[p] for p in places)) if places else source


def _index_of_transpose(source: Var, perm: tuple[int, ...], axes: tuple[Axis, ...]) -> Exp | None:
    order = [p for p, a in zip(perm, axes, strict=True) if isinstance(a, Range)]
    if not _untested(axes) or order != sorted(order):
        return None
    return Index(source, tuple(axes[perm.index(k)] for k in range(len(perm))))


def _composable(axes: tuple[Axis, ...]) -> bool:
    """Negative positions count from the end of the view."""
    return not any(isinstance(a, At) and (a.wrap or a.check) for a in axes)


def _compose(outer: tuple[Axis, ...], axes: tuple[Axis, ...], near: Surroundings) -> Iterator[Axis]:
    remaining = iter(axes)
    for axis in outer:
        if isinstance(axis, At):
            yield axis
            continue
        match next(remaining):
            case At(index):
                yield At(_position(axis, index, near))
            case Range(start, length, step):
                yield Range(_position(axis, start, near), length, near.scalar("mul", step, axis.step))


def _position(axis: Range, index: Atom, near: Surroundings) -> Atom:
    """Where position `index` of the view is in the array."""
    return near.scalar("add", axis.start, near.scalar("mul", index, axis.step))
