"""Forward mode of statements without regions: rows of the ops table, and operations that move values."""

from __future__ import annotations

from collections.abc import Mapping, Sequence

from tapeless.ad.forward import Forward, tangent_of
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
    UpdateAcc,
)
from tapeless.ir.types import Atom, DType, Var
from tapeless.ops.emit import differentiable
from tapeless.ops.partials import FIRST_WINS


@tangent_of(Iota, Check, Print, Progress)
def jvp_of_nothing(forward: Forward, stm: Stm, exp: Iota | Check | Print | Progress) -> None:
    forward.b.add(stm)


@tangent_of(Apply)
def jvp_apply(forward: Forward, stm: Stm, exp: Apply) -> None:
    forward.b.add(stm)
    forward.set(stm.vars[0], _apply(forward, stm.vars[0], exp))


@tangent_of(Index, Update, Full, ArrayLit, Concat, Reshape, Transpose, Broadcast, Copy)
def jvp_moved(forward: Forward, stm: Stm, exp: Exp) -> None:
    forward.b.add(stm)
    v = stm.vars[0]
    if differentiable(v.type):
        forward.set(v, _structural(forward, v, exp))


@tangent_of(UpdateAcc)
def jvp_update_acc(forward: Forward, stm: Stm, exp: UpdateAcc) -> None:
    forward.b.add(stm)
    acc, axes, value = exp.acc, exp.axes, exp.value
    twin = forward.tangent(acc)
    if isinstance(twin, Var) and (forward.tangent(value) is not None or acc.type.acc == "set"):
        forward.b.effect(UpdateAcc(twin, forward.lifted_axes(axes), _filling(forward, axes, value)))


def _structural(forward: Forward, v: Var, exp: Exp) -> Atom | None:
    """Operations that only move values: the same on the tangents."""

    def let(new: Exp) -> Var:
        return forward.b.let(forward.lifted(v.type), new, f"{v.name}_t")

    match exp:
        case Index(array=array, axes=axes) if forward.tangent(array) is not None:
            return let(Index(forward.array_tangent(array), forward.lifted_axes(axes)))
        case Update(array=array, axes=axes, value=value) if any(forward.active([array, value])):
            return let(Update(forward.array_tangent(array), forward.lifted_axes(axes), _filling(forward, axes, value)))
        case Full(shape=shape, value=value) if value is not None and forward.tangent(value) is not None:
            return forward.emit.broadcast(forward.full_tangent(value), shape)
        case ArrayLit(items=items) if any(forward.active(items)):
            return let(ArrayLit(tuple(forward.full_tangent(a) for a in items)))
        case Concat(arrays=arrays, axis=axis) if any(forward.active(arrays)):
            return let(Concat(tuple(forward.array_tangent(a) for a in arrays), axis))
        case Reshape(array=array, shape=shape) if forward.tangent(array) is not None:
            return let(Reshape(forward.array_tangent(array), (*shape, *forward.lanes)))
        case Transpose(array=array, perm=perm) if forward.tangent(array) is not None:
            last = range(len(perm), len(perm) + len(forward.lanes))
            return let(Transpose(forward.array_tangent(array), (*perm, *last)))
        case Broadcast(array=array, shape=shape, axes=places) if forward.tangent(array) is not None:
            last = range(len(shape), len(shape) + len(forward.lanes))
            return let(Broadcast(forward.array_tangent(array), (*shape, *forward.lanes), (*places, *last)))
        case Copy(array=array) if forward.tangent(array) is not None:
            return let(Copy(forward.array_tangent(array)))
        case _:
            pass
    return None


def _filling(forward: Forward, axes: Sequence[Axis], value: Atom) -> Atom:
    """The tangent of what is written; a number that fills a range is repeated where it has lanes."""
    found = forward.full_tangent(value)
    lengths = [a.length for a in axes if isinstance(a, Range)]
    return forward.emit.broadcast(found, lengths) if forward.lanes and lengths and not value.type.shape else found


def _apply(forward: Forward, v: Var, exp: Apply) -> Atom | None:
    """The tangent of a row of the ops table."""
    if not differentiable(v.type) or not any(forward.active(exp.args)):
        return None
    emit, name, args = forward.emit, exp.op, exp.args
    each = emit.elementwise
    first = forward.tangent(args[0])
    match name:
        case "identity":
            return first
        case "convert":
            assert first is not None
            return _converted(forward, first, v.type.dtype)
        case "select":
            return each("select", args[0], forward.full_tangent(args[1]), forward.full_tangent(args[2]))
        case _ if name in FIRST_WINS:
            chosen = FIRST_WINS[name](emit, args[0], args[1])
            return each("select", chosen, forward.full_tangent(args[0]), forward.full_tangent(args[1]))
        case "real" | "imag" | "conj":
            assert first is not None
            return each(name, first)
        case "complex":
            return each("complex", forward.full_tangent(args[0]), forward.full_tangent(args[1]))
        case "angle" | "abs" if args[0].type.dtype.is_complex:
            assert first is not None
            return _of_parts(forward, v, exp, {p: each(p, first) for p in ("real", "imag")})
    total: Atom | None = None
    for k, a in enumerate(args):
        tangent = forward.tangent(a)
        if tangent is None:
            continue
        term = emit.term(name, k, v, args, tangent, forward.guarded)
        if term is None:
            continue
        total = term if total is None else each("add", total, term)
    return total


def _of_parts(forward: Forward, v: Var, exp: Apply, tangents: Mapping[str, Atom]) -> Atom:
    """That of a row of a complex number that is another one of its parts."""
    name, parts, args = forward.emit.of_parts(exp)
    terms = [forward.emit.term(name, k, v, args, tangents[p]) for k, p in enumerate(parts)]
    assert terms[0] is not None and terms[1] is not None
    return forward.emit.elementwise("add", terms[0], terms[1])


def _converted(forward: Forward, t: Atom, dtype: DType) -> Atom:
    if not t.type.shape:
        return forward.emit.convert(t, dtype)
    return forward.b.map(t.type.shape[0], [_var(t)], lambda _, row: (_converted(forward, row, dtype),))[0]


def _var(a: Atom) -> Var:
    assert isinstance(a, Var)
    return a
