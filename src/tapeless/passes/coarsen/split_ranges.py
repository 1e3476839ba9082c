"""Loops with a condition on their number, as two loops without it: up to where it changes, and from there on.

`in_two` takes a loop, and gives the two with what comes before each. Nobody is better off with two loops as such: whoever asks
looks whether they have closed forms that the one has not.
"""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import dataclass, replace

from tapeless.ir.builder import Builder
from tapeless.ir.core import Apply, Body, For, If, Stm
from tapeless.ir.types import I64, Atom, Const, DType, Var, i64
from tapeless.ir.walk import Substitution, refresh_body
from tapeless.ops.emit import Emit
from tapeless.ops.table import TABLE


@dataclass(frozen=True)
class Half:
    """`before`: what the loop `stm` needs."""

    before: tuple[Stm, ...]
    stm: Stm


@dataclass(frozen=True)
class _Turn:
    """A condition of the loop, which is `first` in iterations below `limit`, plus one if `beyond`, and not in the others."""

    cond: Var
    limit: Atom
    beyond: bool
    first: bool


def in_two(stm: Stm, loop: For) -> tuple[Half, Half] | None:
    turn = _turn(loop)
    if turn is None:
        return None
    b = Builder(stm.span)
    emit = Emit(b)
    last = emit("sub", loop.bound, 1) if turn.beyond else loop.bound
    end = emit("min", turn.limit, last)
    start = b.let(I64, Apply("max", (emit("add", end, 1) if turn.beyond else end, i64(0))), "turn")
    middle = [Var(v.name, v.type) for v in stm.vars]
    known = _with(loop.body, turn.cond, turn.first)
    first = Half(tuple(b.stms), Stm(tuple(middle), replace(loop, bound=start, body=known), stm.span))
    rest = Builder(stm.span)
    number = Var(loop.index.name, I64)
    trips = rest.let(I64, Apply("sub", (loop.bound, start)), "rest")
    body = _counted_from(rest, start, number, loop.index, _with(loop.body, turn.cond, not turn.first))
    params = tuple(Var(p.name, p.type) for p in loop.params)
    body = Substitution(dict(zip(loop.params, params, strict=True))).body(body)
    second = For(number, trips, params, tuple(middle), body, loop.hints)
    return first, Half(tuple(rest.stms), Stm(stm.vars, second, stm.span))


def _turn(loop: For) -> _Turn | None:
    changing = {loop.index, *loop.params, *(v for s in loop.body.stms for v in s.vars)}
    for s in loop.body.stms:
        if not isinstance(s.exp, Apply) or len(s.exp.args) != 2:
            continue
        row, (x, y) = TABLE[s.exp.op].comparison, s.exp.args
        if row is None or not row.order:
            continue
        order = row.order if x is loop.index else -row.order
        limit = y if x is loop.index else x
        if loop.index in (x, y) and limit not in changing:
            return _Turn(s.vars[0], limit, row.reflexive == (order < 0), order < 0)
    return None


def _with(body: Body, cond: Var, value: bool) -> Body:
    """The body, with names of its own, where the condition is known."""
    known: dict[Var, Atom] = {cond: Const(value, DType.bool)}
    stms = _settled(body.stms, known)
    return refresh_body(Substitution(known).body(Body(tuple(stms), body.results)))


def _settled(stms: Sequence[Stm], known: dict[Var, Atom]) -> list[Stm]:
    """Choices by what is known are no more; their results are known too then."""
    out: list[Stm] = []
    for s in stms:
        match s.exp:
            case If(cond=cond, then=then, orelse=orelse) if isinstance(_known(known, cond), Const):
                arm = then if _known(known, cond).value else orelse  # type: ignore[union-attr]
                out += _settled(arm.stms, known)
                known.update({v: _known(known, r) for v, r in zip(s.vars, arm.results, strict=True)})
            case Apply("select", (cond, x, y)) if isinstance(_known(known, cond), Const):
                known[s.vars[0]] = _known(known, x if _known(known, cond).value else y)  # type: ignore[union-attr]
            case _ if s.vars and s.vars[0] in known:
                pass
            case _:
                out.append(s)
    return out


def _known(known: Mapping[Var, Atom], a: Atom) -> Atom:
    return known.get(a, a) if isinstance(a, Var) else a


def _counted_from(b: Builder, start: Atom, number: Var, index: Var, body: Body) -> Body:
    """The body of a loop that starts with another number. As a float it is a sum of two: whole numbers are exact there."""
    at = Var(index.name, I64)
    stms: list[Stm] = [Stm((at,), Apply("add", (number, start)), b.span)]
    emit = Emit(b)
    for s in body.stms:
        if isinstance(s.exp, Apply) and s.exp.op == "convert" and s.exp.args == (index,):
            dtype = s.vars[0].type.dtype
            own = Var("i", s.vars[0].type)
            stms.append(Stm((own,), Apply("convert", (number,)), s.span))
            stms.append(Stm(s.vars, Apply("add", (own, emit.convert(start, dtype))), s.span))
        else:
            stms.append(s)
    return Substitution({index: at}).body(Body(tuple(stms), body.results))
