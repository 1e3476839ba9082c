"""Reverse mode of statements without regions: rows of the ops table, and operations that move values.

On the way back the adjoint of a variable is handed on to the operands of what it is.
"""

from __future__ import annotations

from collections.abc import Sequence

from tapeless.ad.emit import unchecked, whole
from tapeless.ad.reverse import Back, Reverse, adjoint_of, nothing
from tapeless.ir.core import (
    Apply,
    ArrayLit,
    Axis,
    Broadcast,
    Check,
    Concat,
    Copy,
    Exp,
    Full,
    Index,
    Iota,
    Print,
    Range,
    Reshape,
    Stm,
    Transpose,
    Update,
)
from tapeless.ir.types import I64, Atom, Dim, Type, Var, dim_atom, i64
from tapeless.ops.partials import FIRST_WINS
from tapeless.symbolic.linear import combined


@adjoint_of(Iota, Check, Print)
def vjp_of_nothing(reverse: Reverse, stm: Stm, exp: Iota | Check | Print) -> Back:
    reverse.b.add(stm)
    return nothing


@adjoint_of(Apply)
def vjp_apply(reverse: Reverse, stm: Stm, exp: Apply) -> Back:
    (v,) = stm.vars
    reverse.b.add(stm)
    if v.type == I64 and (form := combined(exp, reverse.forms)) is not None:
        reverse.forms[v] = form
    if not reverse.active(v):
        return nothing
    reverse.emit.note_root(v, exp)
    return lambda: _hand_on(reverse, v, exp)


@adjoint_of(Index, Full, ArrayLit, Reshape, Transpose, Broadcast, Concat, Copy)
def vjp_moved(reverse: Reverse, stm: Stm, exp: Exp) -> Back:
    reverse.b.add(stm)
    (v,) = stm.vars
    return (lambda: _hand_on(reverse, v, exp)) if reverse.active(v) else nothing


@adjoint_of(Update)
def vjp_update(reverse: Reverse, stm: Stm, exp: Update) -> Back:
    """Where the array has been put back to how it was after the update, the update is put back too."""
    v, b = stm.vars[0], reverse.b
    old = b.index(exp.array, unchecked(exp.axes), "old") if reverse.looped else None
    b.add(stm)
    if not reverse.active(v):
        return nothing

    def back() -> None:
        _hand_on(reverse, v, exp)
        if old is not None and v in reverse.restored:
            reverse.restored[exp.array] = b.update(reverse.restored[v], unchecked(exp.axes), old)

    return back


def _hand_on(reverse: Reverse, v: Var, exp: Exp) -> None:
    bar = reverse.adjoints.pop(v, None)
    if bar is None:
        return
    match exp:
        case Apply():
            _apply(reverse, v, exp, bar)
        case Index(array=array, axes=axes):
            reverse.add_at(array, axes, bar)
        case Update(array=array, axes=axes, value=value):
            _update(reverse, array, axes, value, bar)
        case _:
            _structural(reverse, exp, bar)


def _update(reverse: Reverse, array: Var, axes: Sequence[Axis], value: Atom, bar: Atom) -> None:
    assert isinstance(bar, Var)
    axes = unchecked(axes)
    if reverse.active(value):
        part: Atom = reverse.b.index(bar, axes)
        ranges = part.type.rank
        if ranges and not value.type.shape:
            assert isinstance(part, Var)
            part = reverse.emit.sum_over(part, tuple(range(ranges)))
        reverse.add(value, part)
    if reverse.active(array):
        kept = Type(array.type.dtype, tuple(a.length for a in axes if isinstance(a, Range)))
        reverse.add(array, reverse.b.update(bar, axes, reverse.emit.zero(Type(kept.dtype))))


def _structural(reverse: Reverse, exp: Exp, bar: Atom) -> None:
    """Operations that only move values."""
    emit, b = reverse.emit, reverse.b
    match exp:
        case Full(value=value) if value is not None and reverse.active(value):
            assert isinstance(bar, Var)
            reverse.add(value, emit.sum_over(bar, tuple(range(bar.type.rank))))
        case ArrayLit(items=items):
            assert isinstance(bar, Var)
            for k, item in enumerate(items):
                if reverse.active(item):
                    reverse.add(item, b.row(bar, i64(k)))
        case Reshape(array=array):
            assert isinstance(bar, Var)
            reverse.add(array, b.reshape(bar, array.type.shape))
        case Transpose(array=array, perm=perm):
            assert isinstance(bar, Var)
            reverse.add(array, b.transpose(bar, [perm.index(k) for k in range(len(perm))]))
        case Broadcast(array=array, shape=shape, axes=axes):
            assert isinstance(bar, Var)
            summed = emit.sum_over(bar, [k for k in range(len(shape)) if k not in axes])
            kept = sorted(axes)
            if list(axes) != kept:
                assert isinstance(summed, Var)
                summed = b.transpose(summed, [kept.index(a) for a in axes])
            reverse.add(array, summed)
        case Copy(array=array):
            reverse.add(array, bar)
        case Concat(arrays=arrays, axis=axis):
            assert isinstance(bar, Var)
            _concat(reverse, arrays, axis, bar)
        case _:
            raise NotImplementedError(f"no adjoint of {type(exp).__name__}")


def _concat(reverse: Reverse, arrays: Sequence[Var], axis: int, bar: Var) -> None:
    start: Atom = i64(0)
    for a in arrays:
        length: Dim = a.type.shape[axis]
        if reverse.active(a):
            axes = list(whole(bar.type))
            axes[axis] = Range(start, length, i64(1))
            reverse.add(a, reverse.b.index(bar, axes))
        start = reverse.emit("add", start, dim_atom(length))


def _apply(reverse: Reverse, v: Var, exp: Apply, bar: Atom) -> None:
    """A row of the ops table: each operand gets the slope times the adjoint."""
    emit, name, args = reverse.emit, exp.op, exp.args
    first = args[0]
    match name:
        case "identity":
            reverse.add(first, bar)
        case "convert":
            reverse.add(first, _converted(reverse, bar, first.type.dtype.is_complex, first))
        case "select":
            _choose(reverse, first, args[1], args[2], bar)
        case _ if name in FIRST_WINS:
            _choose(reverse, FIRST_WINS[name](emit, first, args[1]), first, args[1], bar)
        case "real":
            reverse.add(first, emit("complex", bar, emit.zero(bar.type)))
        case "imag":
            reverse.add(first, emit("complex", emit.zero(bar.type), emit("neg", bar)))
        case "conj":
            reverse.add(first, emit("conj", bar))
        case "complex":
            reverse.add(first, emit("real", bar))
            if reverse.active(args[1]):
                reverse.add(args[1], emit("neg", emit("imag", bar)))
        case "angle" | "abs" if first.type.dtype.is_complex:
            row, parts, numbers = emit.of_parts(exp)
            bars = {p: emit.term(row, k, v, numbers, bar) for k, p in enumerate(parts)}
            real, imag = bars["real"], bars["imag"]
            assert real is not None and imag is not None
            reverse.add(first, emit("complex", real, emit("neg", imag)))
        case "mul" if (own := emit.own_root(exp)) is not None:
            x, root = own
            guarded = v in reverse.chosen and root in reverse.large
            reverse.add(x, emit.slope_times(emit("mul", root, 1.5), bar, guarded))
        case _:
            for k, a in enumerate(args):
                if reverse.active(a):
                    guarded = v in reverse.chosen and any(x in reverse.large for j, x in enumerate(args) if j != k)
                    reverse.add(a, emit.term(name, k, v, args, bar, guarded))


def _choose(reverse: Reverse, cond: Atom, a: Atom, b: Atom, bar: Atom) -> None:
    """One of two operands gets the adjoint; the other gets 0, not 0 times a slope that may be infinite."""
    zero = reverse.emit.zero(bar.type)
    if reverse.active(a):
        reverse.add(a, reverse.emit("select", cond, bar, zero))
    if reverse.active(b):
        reverse.add(b, reverse.emit("select", cond, zero, bar))


def _converted(reverse: Reverse, bar: Atom, to_complex: bool, operand: Atom) -> Atom:
    if bar.type.dtype.is_complex and not to_complex:
        return reverse.emit.convert(reverse.emit("real", bar), operand.type.dtype)
    return reverse.emit.convert(bar, operand.type.dtype)
