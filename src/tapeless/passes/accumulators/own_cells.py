"""Accumulators of which every iteration updates its own cell: results of the sweep instead.

Takes and gives verified Core. `update_acc a[i] = e` in a sweep over all i hands `e` on as a mapped result, and the
array is updated once, as a whole, after the sweep; rows of rows go outwards the same way. An accumulator that is only
updated as a whole is then no accumulator any more: what is set replaces the array, what is added is added to it. So
loops that fill arrays become maps, which fuse, vectorise and need no private copies for threads.
"""

from __future__ import annotations

from dataclasses import replace

from tapeless.ir.builder import Builder, full_axes
from tapeless.ir.core import (
    Apply,
    At,
    Axis,
    Body,
    Full,
    Function,
    Lambda,
    Range,
    Stm,
    Sweep,
    UpdateAcc,
    WithAcc,
)
from tapeless.ir.types import Atom, Const, Type, Var, i64
from tapeless.ir.walk import all_stms, in_regions, map_function, with_stms

LIFTED = ("add", "set")


def own_cells(function: Function) -> Function:
    if not any(isinstance(s.exp, WithAcc) for s in all_stms(function.body)):
        return function
    return map_function(function, _body)


def _body(body: Body) -> Body:
    """Bottom up; the same object where nothing changes."""
    stms: list[Stm] = []
    zeros: set[Var] = set()
    for stm in body.stms:
        new = in_regions(stm, _body)
        match new.exp:
            case Full(value=Const(value=value)) if value == 0:
                zeros.add(new.vars[0])
                made = [new]
            case Sweep() as sweep:
                made = _lifted(new, sweep)
            case WithAcc() as with_acc:
                made = _settled(new, with_acc, zeros)
            case _:
                made = [new]
        stms.extend(made)
    return with_stms(body, stms)


# -- out of a sweep


def _lifted(stm: Stm, exp: Sweep) -> list[Stm]:
    """The sweep with the values of liftable updates as results, and the updates after it."""
    lam = exp.lam
    inner = {v for s in all_stms(lam.body) for v in s.vars} | set(lam.params)
    counts: dict[Var, int] = {}
    for s in all_stms(lam.body):
        if isinstance(s.exp, UpdateAcc):
            counts[s.exp.acc] = counts.get(s.exp.acc, 0) + 1
    kept: list[Stm] = []
    values: list[Atom] = []
    after: list[Stm] = []
    vars: list[Var] = []
    for s in lam.body.stms:
        update = s.exp
        axes = _whole_axes(update, exp, inner) if isinstance(update, UpdateAcc) else None
        if axes is None or not isinstance(update, UpdateAcc) or counts[update.acc] != 1:
            kept.append(s)
            continue
        result = Var("own", Type(update.acc.type.dtype, (exp.width, *update.value.type.shape)))
        values.append(update.value)
        vars.append(result)
        after.append(Stm((), UpdateAcc(update.acc, axes, result), s.span))
    if not values:
        return [stm]
    body = Body(tuple(kept), (*lam.body.results, *values))
    return [Stm((*stm.vars, *vars), replace(exp, lam=Lambda(lam.params, body)), stm.span), *after]


def _whole_axes(update: UpdateAcc, exp: Sweep, inner: set[Var]) -> tuple[Axis, ...] | None:
    """The axes of all iterations together, when iteration i updates at i of an axis and all of those behind it."""
    if update.acc.type.acc not in LIFTED or update.acc in inner:
        return None
    places = [k for k, a in enumerate(update.axes) if isinstance(a, At) and a.index is exp.lam.params[0]]
    if len(places) != 1:
        return None
    at = places[0]
    here = update.axes[at]
    shape = update.acc.type.shape
    same = exp.width is shape[at] or (isinstance(exp.width, int) and exp.width == shape[at])
    if not same or not isinstance(here, At) or here.check:
        return None
    outside = [a.index if isinstance(a, At) else a.start for a in update.axes[:at]]
    if any(isinstance(a, Range) for a in update.axes[:at]) or any(x in inner for x in outside):
        return None
    behind = update.axes[at + 1 :]
    if behind != tuple(full_axes(shape[at + 1 :])) or update.value.type.rank != len(behind):
        return None
    return (*update.axes[:at], Range(i64(0), shape[at], i64(1)), *behind)


# -- out of an accumulator


def _settled(stm: Stm, exp: WithAcc, zeros: set[Var]) -> list[Stm]:
    """Arrays whose only update is one of all of them, at the end of the way, are values again."""
    body = exp.lam.body
    updates: dict[Var, list[Stm]] = {}
    for s in all_stms(body):
        if isinstance(s.exp, UpdateAcc):
            updates.setdefault(s.exp.acc, []).append(s)
    values: dict[Var, Atom] = {}
    for p in exp.lam.params:
        mine = updates.get(p, [])
        if len(mine) != 1 or not any(s is mine[0] for s in body.stms) or p.type.acc not in LIFTED:
            continue
        update = mine[0].exp
        assert isinstance(update, UpdateAcc)
        if update.axes == tuple(full_axes(p.type.shape)) and update.value.type.shape:
            values[p] = update.value
    if not values:
        return [stm]
    count = len(exp.arrays)
    rest = [s for s in body.stms if not (isinstance(s.exp, UpdateAcc) and s.exp.acc in values)]
    left = [k for k, p in enumerate(exp.lam.params) if p not in values]
    made = [k for k, p in enumerate(exp.lam.params) if p in values]
    inner_results = (*body.results, *(values[exp.lam.params[k]] for k in made))
    parts = [Var("own", values[exp.lam.params[k]].type) for k in made]
    out: list[Stm] = []
    if left:
        lam = Lambda(tuple(exp.lam.params[k] for k in left), Body(tuple(rest), inner_results))
        vars = (*(stm.vars[k] for k in left), *stm.vars[count:], *parts)
        out.append(Stm(vars, WithAcc(tuple(exp.arrays[k] for k in left), lam, exp.slopes), stm.span))
    else:
        out.extend(rest)
        b = Builder(stm.span)
        for v, r in zip((*stm.vars[count:], *parts), inner_results, strict=True):
            b.alias(v, r)
        out.extend(b.stms)
    b = Builder(stm.span)
    for k, part in zip(made, parts, strict=True):
        start, result = exp.arrays[k], stm.vars[k]
        if exp.lam.params[k].type.acc == "set" or start in zeros:
            b.alias(result, part)
        else:
            b.alias(result, _sum(b, start, part))
    return [*out, *b.stms]


def _sum(b: Builder, x: Var, y: Var) -> Var:
    def element(_: Var, e: Var, f: Var) -> tuple[Atom, ...]:
        if e.type.shape:
            return (_sum(b, e, f),)
        return (b.let(e.type, Apply("add", (e, f))),)

    return b.map(x.type.shape[0], [x, y], element, "sum")[0]
