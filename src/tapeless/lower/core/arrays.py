"""Lowering of indexing, updates and the operations that make or reshape arrays. Views cost nothing."""

from __future__ import annotations

from dataclasses import replace
from typing import assert_never, get_args

from tapeless.ir.core import (
    Arranging,
    ArrayLit,
    Atom,
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
from tapeless.ir.types import i64
from tapeless.lower.core.code import ONE, ZERO, Code, Loc
from tapeless.lower.core.lowerer import Lowerer, lowers, view


@lowers(Index)
def lower_index(lo: Lowerer, vars: tuple[Var, ...], exp: Index) -> None:
    (var,) = vars
    found = view(lo, lo.loc(exp.array), exp.axes)
    if found.rank:
        lo.arrays[var] = found
    else:
        lo.scalars[var] = lo.code.load(found, [], var.name)


@lowers(Update)
def lower_update(lo: Lowerer, vars: tuple[Var, ...], exp: Update) -> None:
    (var,) = vars
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
    return replace(source, shape=shape, strides=tuple(reversed(strides)))


@lowers(*get_args(Arranging))
def lower_shape(lo: Lowerer, vars: tuple[Var, ...], exp: Arranging) -> None:
    (var,) = vars
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
            dims, steps = (tuple(of[p] for p in perm) for of in (source.shape, source.strides))
            in_order = source.ordered and tuple(perm) == tuple(sorted(perm))
            lo.arrays[var] = replace(source, shape=dims, strides=steps, ordered=in_order)
        case Broadcast(array=array, axes=axes):
            source = lo.loc(array)
            shape = lo.dims(exp.shape)
            strides: list[Atom] = [ZERO] * len(shape)
            for k, place in enumerate(axes):
                strides[place] = source.strides[k]
            lo.arrays[var] = replace(source, shape=shape, strides=tuple(strides), ordered=False, upward=False)
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
            code.spread(target.shape, lambda i: code.store(target, i, i[0]))
            lo.arrays[var] = target
        case ArrayLit(items=items):
            target = lo.place(var)
            for k, item in enumerate(items):
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
        case _:
            assert_never(exp)
