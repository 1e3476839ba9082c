"""Lists that meet: one that is known item by item, and one that is an array with a length, become two of the second kind.

`joined` says what both can be, `as_array` makes it of one of them. Used where paths join, and for names that are bound to
another list in each iteration of a loop, as in `frontier = further`.
"""

from __future__ import annotations

from dataclasses import replace
from itertools import starmap
from typing import TypeGuard

from tapeless.errors import CompileError
from tapeless.frontend.data import scalars
from tapeless.frontend.data.iterables import grown_rows
from tapeless.frontend.python.growth import Growth, converted, copied, start
from tapeless.frontend.python.references import renew
from tapeless.frontend.state.context import Context
from tapeless.frontend.state.parts import is_deque
from tapeless.frontend.state.values import Columns, Grown, Scalar, Sequence_, Value
from tapeless.ir.node import node
from tapeless.ir.types import Dim, DType, i64, zero_of


@node(frozen=True)
class ListKind:
    """What the items of a list are."""

    dtype: DType
    weak: bool
    shape: tuple[Dim, ...]
    form: str
    columns: Columns


def is_list(value: Value | None) -> TypeGuard[Sequence_ | Grown]:
    return isinstance(value, Grown) or (isinstance(value, Sequence_) and value.kind == "list")


def joined(ctx: Context, *lists: Sequence_ | Grown) -> ListKind | None:
    """What the items of all of them can be. None if there is no such thing, or all are empty."""
    found: ListKind | None = None
    if any(is_deque(v) for v in lists):
        return None
    for value in lists:
        if isinstance(value, Sequence_) and not value.items:
            continue
        kind = _kind(ctx, value)
        if kind is None or (found is not None and not _alike(found, kind)):
            return None
        found = kind if found is None else _either(ctx, found, kind)
    return found


def joined_with(ctx: Context, kind: ListKind, value: Sequence_ | Grown) -> ListKind | None:
    """What the items of a list and others of this kind can be."""
    if isinstance(value, Sequence_) and not value.items:
        return kind
    other = joined(ctx, value)
    return _either(ctx, kind, other) if other is not None and _alike(kind, other) else None


def _kind(ctx: Context, value: Sequence_ | Grown) -> ListKind | None:
    if isinstance(value, Grown):
        if value.array is None or value.table is not None:
            return None
        type = value.array.type
        return ListKind(type.dtype, value.weak, ctx.dims(type.shape[1:]), value.form, value.columns)
    growth = Growth(ctx.loops)
    try:
        with ctx.part():
            for item in value.items:
                growth.learn(ctx, item)
    except CompileError:
        return None
    if growth.dtype is None or growth.form == "list":
        return None
    return ListKind(growth.dtype, growth.weak, ctx.dims(growth.shape), growth.form, growth.columns)


def _alike(a: ListKind, b: ListKind) -> bool:
    """Whether they differ in the types of numbers at most."""
    return a.shape == b.shape and bool(a.columns) == bool(b.columns) and (bool(a.columns) or a.form == b.form)


def _either(ctx: Context, a: ListKind, b: ListKind) -> ListKind:
    def joined_type(a: tuple[DType, bool], b: tuple[DType, bool]) -> tuple[DType, bool]:
        return scalars.join(ctx, *(Scalar(zero_of(dtype), weak) for dtype, weak in (a, b)))

    dtype, weak = joined_type((a.dtype, a.weak), (b.dtype, b.weak))
    columns = tuple(starmap(joined_type, zip(a.columns, b.columns, strict=True)))
    form = a.form if not columns else "tuple" if len(set(columns)) == 1 else "mixed"
    return ListKind(dtype, weak, a.shape, form, columns)


def as_array(ctx: Context, value: Sequence_ | Grown, kind: ListKind) -> Grown:
    """The list, which is as long as its array. All that refer to it have it so from here on."""
    if isinstance(value, Sequence_):
        growth = Growth(ctx.loops, kind.dtype, kind.weak, kind.shape, kind.form, kind.columns)
        found = start(ctx, growth, value, i64(0), set(ctx.sizes))
    else:
        found = converted(ctx, value, (kind.dtype, kind.weak))
        if found.first is not None:
            found = replace(copied(ctx, found), ref=found.ref)
        rows = grown_rows(ctx, found)
        found = Grown(rows, found.length, found.weak, form=kind.form, columns=kind.columns, ref=found.ref)
    if found.ref is not None and not found.ref.may_be and found != value:
        renew(ctx.state, {found.ref: found}, 0)  # this is no change
    return found
