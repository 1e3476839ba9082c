"""Cells of accumulators that a loop updates again and again: the loop sums up in a register, and updates once.

Takes and gives verified Core. `update_acc a[i] += e` in a loop that does not change `i` becomes a value that the loop
carries, and one update after it; so out of nested loops. What the loop adds up is added to the cell in the end, not from
the start: sums may be added in another order.
"""

from __future__ import annotations

from dataclasses import replace

from tapeless.ir.core import Apply, At, Body, For, Function, Stm, UpdateAcc, While, WithAcc
from tapeless.ir.operands import operands
from tapeless.ir.types import Const, Type, Var, nothing_of
from tapeless.ir.walk import all_stms, in_regions, map_function, with_stms
from tapeless.ops.table import TABLE


def sum_in_loops(function: Function) -> Function:
    if not any(isinstance(s.exp, WithAcc) for s in all_stms(function.body)):
        return function
    return map_function(function, _body)


def _body(body: Body) -> Body:
    """Bottom up; the same object where nothing changes."""
    stms: list[Stm] = []
    for stm in body.stms:
        new = in_regions(stm, _body)
        match new.exp:
            case For(index=index) as loop:
                stms.extend(_summed(new, loop, {index}))
            case While() as loop:
                stms.extend(_summed(new, loop, set()))
            case _:
                stms.append(new)
    return with_stms(body, stms)


def _summed(stm: Stm, loop: For | While, inside: set[Var]) -> list[Stm]:
    """The loop with what it adds as values that it carries, and the updates after it."""
    inside |= {*loop.params, *(v for s in all_stms(loop.body) for v in s.vars)}
    kept: list[Stm] = []
    sums: list[tuple[Var, Const, Var, Var]] = []  # parameter, start, result of the body, result of the loop
    after: list[Stm] = []
    for s in loop.body.stms:
        update = s.exp
        unit = _unit(update, inside) if isinstance(update, UpdateAcc) else None
        if unit is None or not isinstance(update, UpdateAcc):
            kept.append(s)
            continue
        type = Type(unit.dtype)
        so_far, more, total = Var("sum", type), Var("sum", type), Var("sum", type)
        kept.append(Stm((more,), Apply(update.acc.type.acc, (so_far, update.value)), s.span))
        sums.append((so_far, unit, more, total))
        after.append(Stm((), UpdateAcc(update.acc, update.axes, total), s.span))
    if not sums:
        return [stm]
    params, starts, results, totals = zip(*sums, strict=True)
    body = Body(tuple(kept), (*loop.body.results, *results))
    new = replace(loop, params=(*loop.params, *params), inits=(*loop.inits, *starts), body=body)
    return [Stm((*stm.vars, *totals), new, stm.span), *after]


def _unit(update: UpdateAcc, inside: set[Var]) -> Const | None:
    """What a sum of nothing is, if the update is of one cell, the same in all iterations, and only sums up."""
    row = TABLE.get(update.acc.type.acc)
    if row is None or row.unit is None or not row.unit.left or update.value.type.shape or update.acc in inside:
        return None
    if any(not isinstance(a, At) or a.check for a in update.axes):
        return None
    if any(isinstance(x, Var) and x in inside and x is not update.value for x in operands(update)):
        return None
    dtype = update.acc.type.dtype
    return nothing_of(dtype) if row.name == "add" else row.unit.of(dtype)
