"""Reverse mode of statements without regions: rows of the ops table, and operations that move values.

In the backward pass the adjoint of a variable is handed on to the operands of what it is.
"""

from __future__ import annotations

from collections.abc import Sequence

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
    Progress,
    Range,
    Reshape,
    Stm,
    Transpose,
    Update,
)
from tapeless.ir.quiet import unchecked
from tapeless.ir.types import I64, Atom, Dim, Type, Var, dim_atom, i64
from tapeless.ops.emit import whole
from tapeless.ops.partials import FIRST_WINS
from tapeless.symbolic.positions import combined


@adjoint_of(Iota, Check, Print)
def vjp_of_nothing(reverse: Reverse, stm: Stm, exp: Iota | Check | Print) -> Back:
    reverse.b.add(stm)
    return nothing


@adjoint_of(Progress)
def vjp_progress(reverse: Reverse, stm: Stm, exp: Progress) -> Back:
    """What was still to come is now left behind."""
    reverse.b.add(stm)
    return lambda: reverse.b.effect(Progress(reverse.emit("sub", exp.total, exp.done), exp.total, backward=True))


@adjoint_of(Apply)
def vjp_apply(reverse: Reverse, stm: Stm, exp: Apply) -> Back:
    (v,) = stm.vars
    reverse.b.add(stm)
    if v.type == I64 and (form := combined(exp, reverse.forms)) is not None:
        reverse.forms[v] = form
    if not reverse.active(v):
        return nothing
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
    old = b.index(exp.array, unchecked(exp.axes), "old") if reverse.scope.looped else None
    b.add(stm)
    if not reverse.active(v):
        return nothing

    def back() -> None:
        _hand_on(reverse, v, exp)
        if old is not None and v in reverse.restored:
            reverse.restored[exp.array] = b.update(reverse.restored[v], unchecked(exp.axes), old)

    return back


def _hand_on(reverse: Reverse, v: Var, exp: Exp) -> None:
    adj = reverse.adjoints.take(v)
    if adj is None:
        return
    match exp:
        case Apply():
            _apply(reverse, v, exp, adj)
        case Index(array=array, axes=axes):
            reverse.add_at(array, axes, adj)
        case Update(array=array, axes=axes, value=value):
            _update(reverse, array, axes, value, adj)
        case _:
            _structural(reverse, exp, adj)


def _update(reverse: Reverse, array: Var, axes: Sequence[Axis], value: Atom, adj: Atom) -> None:
    assert isinstance(adj, Var)
    axes = unchecked(axes)
    if reverse.active(value):
        part: Atom = reverse.b.index(adj, axes)
        ranges = part.type.rank
        if ranges and not value.type.shape:
            assert isinstance(part, Var)
            part = reverse.emit.sum_over(part, tuple(range(ranges)))
        reverse.add(value, part)
    if reverse.active(array):
        kept = Type(array.type.dtype, tuple(a.length for a in axes if isinstance(a, Range)))
        reverse.add(array, reverse.b.update(adj, axes, reverse.emit.zero(Type(kept.dtype))))


def _structural(reverse: Reverse, exp: Exp, adj: Atom) -> None:
    """Operations that only move values."""
    emit, b = reverse.emit, reverse.b
    match exp:
        case Full(value=value) if value is not None and reverse.active(value):
            assert isinstance(adj, Var)
            reverse.add(value, emit.sum_over(adj, tuple(range(adj.type.rank))))
        case ArrayLit(items=items):
            assert isinstance(adj, Var)
            for k, item in enumerate(items):
                if reverse.active(item):
                    reverse.add(item, b.row(adj, i64(k)))
        case Reshape(array=array):
            assert isinstance(adj, Var)
            reverse.add(array, b.reshape(adj, array.type.shape))
        case Transpose(array=array, perm=perm):
            assert isinstance(adj, Var)
            reverse.add(array, b.transpose(adj, [perm.index(k) for k in range(len(perm))]))
        case Broadcast(array=array, shape=shape, axes=axes):
            assert isinstance(adj, Var)
            summed = emit.sum_over(adj, [k for k in range(len(shape)) if k not in axes])
            kept = sorted(axes)
            if list(axes) != kept:
                assert isinstance(summed, Var)
                summed = b.transpose(summed, [kept.index(a) for a in axes])
            reverse.add(array, summed)
        case Copy(array=array):
            reverse.add(array, adj)
        case Concat(arrays=arrays, axis=axis):
            assert isinstance(adj, Var)
            _concat(reverse, arrays, axis, adj)
        case _:
            raise NotImplementedError(f"no adjoint of {type(exp).__name__}")


def _concat(reverse: Reverse, arrays: Sequence[Var], axis: int, adj: Var) -> None:
    start: Atom = i64(0)
    for a in arrays:
        length: Dim = a.type.shape[axis]
        if reverse.active(a):
            axes = list(whole(adj.type))
            axes[axis] = Range(start, length, i64(1))
            reverse.add(a, reverse.b.index(adj, axes))
        start = reverse.emit("add", start, dim_atom(length))


def _apply(reverse: Reverse, v: Var, exp: Apply, adj: Atom) -> None:
    """A row of the ops table: each operand gets the slope times the adjoint."""
    emit, name, args = reverse.emit, exp.op, exp.args
    first = args[0]
    match name:
        case "identity":
            reverse.add(first, adj)
        case "convert":
            reverse.add(first, _converted(reverse, adj, first.type.dtype.is_complex, first))
        case "select":
            _choose(reverse, first, args[1], args[2], adj)
        case _ if name in FIRST_WINS:
            _choose(reverse, FIRST_WINS[name](emit, first, args[1]), first, args[1], adj)
        case "real":
            reverse.add(first, emit("complex", adj, emit.zero(adj.type)))
        case "imag":
            reverse.add(first, emit("complex", emit.zero(adj.type), emit("neg", adj)))
        case "conj":
            reverse.add(first, emit("conj", adj))
        case "complex":
            reverse.add(first, emit("real", adj))
            if reverse.active(args[1]):
                reverse.add(args[1], emit("neg", emit("imag", adj)))
        case "angle" | "abs" if first.type.dtype.is_complex:
            row, parts, numbers = emit.of_parts(exp)
            adjs = {p: emit.term(row, k, v, numbers, adj) for k, p in enumerate(parts)}
            real, imag = adjs["real"], adjs["imag"]
            assert real is not None and imag is not None
            reverse.add(first, emit("complex", real, emit("neg", imag)))
        case _:
            for k, a in enumerate(args):
                if reverse.active(a):
                    guarded = v in reverse.chosen and any(x in reverse.large for j, x in enumerate(args) if j != k)
                    reverse.add(a, emit.term(name, k, v, args, adj, guarded))


def _choose(reverse: Reverse, cond: Atom, a: Atom, b: Atom, adj: Atom) -> None:
    """One of two operands gets the adjoint; the other gets 0, not 0 times a slope that may be infinite."""
    zero = reverse.emit.zero(adj.type)
    if reverse.active(a):
        reverse.add(a, reverse.emit("select", cond, adj, zero))
    if reverse.active(b):
        reverse.add(b, reverse.emit("select", cond, zero, adj))


def _converted(reverse: Reverse, adj: Atom, to_complex: bool, operand: Atom) -> Atom:
    if adj.type.dtype.is_complex and not to_complex:
        return reverse.emit.convert(reverse.emit("real", adj), operand.type.dtype)
    return reverse.emit.convert(adj, operand.type.dtype)
