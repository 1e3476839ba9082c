"""Lowering of indexing, updates and the operations that make or reshape arrays. Views cost nothing."""

from __future__ import annotations

from collections.abc import Sequence
from typing import TYPE_CHECKING

from tapeless.ir.core import (
    ArrayLit,
    At,
    Atom,
    Axis,
    Broadcast,
    Concat,
    Copy,
    Full,
    Index,
    Iota,
    Reshape,
    Transpose,
    Update,
    Var,
)
from tapeless.ir.types import Const, DType
from tapeless.lower.code import ONE, ZERO, Code, Loc
from tapeless.lower.loopir import If

if TYPE_CHECKING:
    from tapeless.lower.lowering import Lowerer


def position(lo: Lowerer, at: At, length: Atom, axis: int) -> Atom:
    """The position of an `At` axis, wrapped and tested as its flags say."""
    code = lo.code
    index = lo.atom(at.index)
    given = index
    if not at.check:
        if at.wrap and isinstance(index, Const):
            return code.add(index, length) if int(index.value.real) < 0 else index
        if at.wrap:
            negative = code.compare("lt", index, ZERO)
            return code.let("select", DType.i64, negative, code.add(index, length), index, label="at")
        return index
    message = f"index {{0}} is out of bounds for axis {axis} with size {{1}}"
    if not at.wrap or isinstance(index, Const):
        if at.wrap and isinstance(index, Const) and int(index.value.real) < 0:
            index = code.add(index, length)
        code.check(_inside(lo, index, length), "IndexError", message, given, length)
        return index
    # The usual case is one comparison; a negative position is wrapped and tested apart.
    place = code.declare(index, "at")
    with code.nested() as otherwise:
        wrapped = code.add(index, length)
        code.check(_inside(lo, wrapped, length), "IndexError", message, given, length)
        code.assign(place, wrapped)
    code.emit(If(_inside(lo, index, length), (), tuple(otherwise), likely=True))
    return place


def _inside(lo: Lowerer, index: Atom, length: Atom) -> Atom:
    code = lo.code
    low, high = code.compare("ge", index, ZERO), code.compare("lt", index, length)
    return code.let("and", DType.bool, low, high, label="inside")


def view(lo: Lowerer, loc: Loc, axes: Sequence[Axis]) -> Loc:
    """The cells at `axes`; rank 0 when every axis is a position."""
    code = lo.code
    offset = loc.offset
    shape: list[Atom] = []
    strides: list[Atom] = []
    ordered = loc.ordered
    for k, (axis, length, stride) in enumerate(zip(axes, loc.shape, loc.strides, strict=True)):
        if isinstance(axis, At):
            offset = code.add(offset, code.mul(position(lo, axis, length, k), stride))
            ordered = ordered and not shape
        else:
            start, step = lo.atom(axis.start), lo.atom(axis.step)
            count = lo.dim(axis.length)
            offset = code.add(offset, code.mul(start, stride))
            whole = start == ZERO and step == ONE and (count is length or count == length)
            ordered = ordered and (whole or (not shape and step == ONE))
            shape.append(count)
            strides.append(code.mul(stride, step))
    return Loc(loc.buffer, loc.dtype, tuple(shape), tuple(strides), offset, ordered)


def lower_index(lo: Lowerer, var: Var, exp: Index) -> None:
    found = view(lo, lo.loc(exp.array), exp.axes)
    if found.rank:
        lo.arrays[var] = found
    else:
        lo.scalars[var] = lo.code.load(found, [], var.name)


def lower_update(lo: Lowerer, var: Var, exp: Update) -> None:
    whole = lo.loc(exp.array)
    made = lo.in_target.get(exp.value) if isinstance(exp.value, Var) else None
    if made is not None and lo.loc(exp.value).same_place(made):
        lo.arrays[var] = whole
        return
    target = view(lo, whole, exp.axes)
    write(lo, target, exp.value)
    lo.arrays[var] = whole


def write(lo: Lowerer, target: Loc, value: Atom) -> None:
    if value.type.shape:
        lo.code.copy(lo.loc(value), target)
    elif target.rank:
        lo.code.fill(target, lo.atom(value))
    else:
        lo.code.store(target, [], lo.atom(value))


def _unit_axes(code: Code, source: Loc, shape: tuple[Atom, ...]) -> Loc | None:
    """A reshape that only adds or drops axes of one element: a view of any array."""
    kept = [(d, s) for d, s in zip(source.shape, source.strides, strict=True) if d != ONE]
    if [d for d, _ in kept] != [d for d in shape if d != ONE]:
        return None
    strides: list[Atom] = []
    for d in reversed(shape):
        strides.append((strides[-1] if strides else ONE) if d == ONE else kept.pop()[1])
    return Loc(source.buffer, source.dtype, shape, tuple(reversed(strides)), source.offset, source.ordered)


def lower_shape(
    lo: Lowerer, var: Var, exp: Iota | Full | ArrayLit | Reshape | Transpose | Broadcast | Concat | Copy
) -> None:
    code = lo.code
    match exp:
        case Reshape(array=array):
            source = lo.loc(array)
            shape = lo.dims(exp.shape)
            unit = _unit_axes(code, source, shape)
            if unit is not None:
                lo.arrays[var] = unit
                return
            if not source.ordered:
                packed = code.allocate(source.dtype, source.shape, var.name)
                lo.owned[-1].append(packed.buffer)
                code.copy(source, packed)
                source = packed
            lo.arrays[var] = Loc(source.buffer, source.dtype, shape, code.row_major(shape), source.offset)
        case Transpose(array=array, perm=perm):
            source = lo.loc(array)
            lo.arrays[var] = Loc(
                source.buffer, source.dtype, tuple(source.shape[p] for p in perm), tuple(source.strides[p] for p in perm),
                source.offset, ordered=source.ordered and tuple(perm) == tuple(sorted(perm)),
            )  # fmt: skip
        case Broadcast(array=array, axes=axes):
            source = lo.loc(array)
            shape = lo.dims(exp.shape)
            strides: list[Atom] = [ZERO] * len(shape)
            for k, place in enumerate(axes):
                strides[place] = source.strides[k]
            lo.arrays[var] = Loc(source.buffer, source.dtype, shape, tuple(strides), source.offset, ordered=False)
        case Copy(array=array):
            target = lo.place(var)
            code.copy(lo.loc(array), target)
            lo.arrays[var] = target
        case Full(value=value):
            target = lo.place(var)
            if value is not None:
                code.fill(target, lo.atom(value))
            lo.arrays[var] = target
        case Iota():
            target = lo.place(var)
            code.each(target.shape, lambda i: code.store(target, i, i[0]))
            lo.arrays[var] = target
        case ArrayLit(items=items):
            target = lo.place(var)
            for k, item in enumerate(items):
                from tapeless.ir.types import i64

                write(lo, code.inside(target, i64(k)), item)
            lo.arrays[var] = target
        case Concat(arrays=arrays, axis=axis):
            target = lo.place(var)
            start: Atom = ZERO
            for a in arrays:
                source = lo.loc(a)
                offset = code.add(target.offset, code.mul(start, target.strides[axis]))
                part = Loc(target.buffer, target.dtype, source.shape, target.strides, offset, ordered=False)
                code.copy(source, part)
                start = code.add(start, source.shape[axis])
            lo.arrays[var] = target
