"""Reverse mode of sequential loops.

The backward loop is made first, from a copy of the body: run again from the values at the start of the iteration, then
backwards. What it reads of those values decides what the forward loop keeps (`ad.plan`); what it does not read costs
nothing. A loop whose adjoints do not change from step to step (sums) need not go backwards at all: it is a sweep.
"""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import dataclass, replace
from typing import TYPE_CHECKING

from tapeless.ad.emit import sum_operator, whole
from tapeless.ad.plan import STORE, UNDO, Plan, plan_loop
from tapeless.ir.core import Apply, At, Body, For, Hist, Index, Lambda, Scatter, Stm, Sweep, Update, While, WithAcc
from tapeless.ir.types import I64, Atom, Const, Dim, Type, Var, atom_dim, i64
from tapeless.ir.walk import all_stms
from tapeless.passes.dce import live_part

if TYPE_CHECKING:
    from tapeless.ad.reverse import Back, Reverse


@dataclass
class Region:
    """One iteration backwards: `body` for the index, the values at its start and the adjoints at its end.

    Its results are the adjoints at the start, what scalars of outside get, and the arrays of `again`.
    """

    index: Var
    params: tuple[Var, ...]  # values at the start
    ends: dict[int, Var]  # adjoints at the end, by the number of the carried value
    scalars: list[Var]
    arrays: list[Var]
    accs: dict[Var, Var]
    body: Body
    results: tuple[Atom, ...]  # of the iteration run again


def vjp_for(reverse: Reverse, stm: Stm, exp: For) -> Back:
    region = _region(reverse, exp)
    plan, forward = _plan(region, exp)
    kept = _forward_loop(reverse, stm, exp, plan, forward)
    return lambda: _backward(reverse, stm, exp, region, plan, kept)


def vjp_while(reverse: Reverse, stm: Stm, exp: While) -> Back:
    """The trips are counted; then it is a loop of so many."""
    b = reverse.b
    count, trips = Var("count", I64), Var("trips", I64)
    body = reverse.without_updates(exp.body)
    more = Var("count", I64)
    counted = Body((*body.stms, Stm((more,), Apply("add", (count, i64(1))), stm.span)), (*body.results, more))
    b.bind((*stm.vars, trips), While((*exp.params, count), (*exp.inits, i64(0)), exp.cond, counted, exp.plan))
    again = reverse.fresh(Lambda(exp.params, exp.body))
    loop = For(Var("i", I64), trips, again.params, exp.inits, again.body)
    vars = tuple(Var(v.name, v.type) for v in stm.vars)
    for old, new in zip(stm.vars, vars, strict=True):
        reverse.activate(old, new)
    region = _region(reverse, loop)
    plan, forward = _plan(region, loop)
    second = Stm(vars, loop, stm.span)
    needs_run = bool(plan.of(STORE) or plan.of(UNDO))
    kept = _forward_loop(reverse, second, loop, plan, forward) if needs_run else Kept({}, {})

    def back() -> None:
        for old, new in zip(stm.vars, vars, strict=True):
            bar = reverse.adjoints.pop(old, None)
            if bar is not None:
                reverse.adjoints[new] = bar
        _backward(reverse, second, loop, region, plan, kept)

    return back


# -- one iteration


def _region(reverse: Reverse, exp: For) -> Region:
    b = reverse.b
    lam = reverse.fresh(Lambda((exp.index, *exp.params), exp.body))
    index, params = lam.params[0], lam.params[1:]
    ends = {k: Var(f"{p.name}_bar", p.type) for k, p in enumerate(params) if reverse.active(p)}
    free = reverse.free(lam.body, lam.params)
    scalars = [v for v in free if not v.type.shape]
    arrays = [v for v in free if v.type.shape]
    accs = {a: Var(f"{a.name}_acc", Type(a.type.dtype, a.type.shape, "add")) for a in arrays if a not in reverse.accs}
    inner = reverse.inside(accs)
    with b.region() as stms:
        backs = inner.forward(lam.body)
        for k, end in ends.items():
            inner.add(lam.body.results[k], end)
        inner.backward(backs)
        starts = [inner.full_adjoint(params[k]) for k in ends]
        sums = [inner.full_adjoint(v) for v in scalars]
    body = Body(tuple(stms), (*starts, *sums))
    return Region(index, params, ends, scalars, arrays, accs, body, lam.body.results)


def _plan(region: Region, exp: For) -> tuple[Plan, Body]:
    _, needed = live_part(region.body)
    wanted = {p for p, mine in zip(exp.params, region.params, strict=True) if mine in needed}
    return plan_loop(exp.index, exp.params, exp.body, wanted)


# -- forwards


@dataclass
class Kept:
    """What the forward loop leaves: an array of slots, or of logs, for each carried value that has one."""

    slots: dict[Var, Var]
    logs: dict[Var, list[Var]]


def _length(reverse: Reverse, bound: Atom) -> Dim:
    if isinstance(bound, Const):
        return max(0, int(bound.value.real))
    if bound in reverse.sizes:
        return bound
    found = reverse.emit("max", bound, 0, label="trips")
    return atom_dim(found)


def _forward_loop(reverse: Reverse, stm: Stm, exp: For, plan: Plan, body: Body) -> Kept:
    b = reverse.b
    stored, logged = plan.of(STORE), plan.of(UNDO)
    exp = replace(exp, body=reverse.without_updates(body), plan=exp.plan or plan.text())
    if not stored and not logged:
        b.bind(stm.vars, exp)
        return Kept({}, {})
    length = _length(reverse, exp.bound)
    kinds: list[tuple[Var, Type]] = [(p, p.type) for p in stored]
    kinds += [(p, r.type) for p in logged for r in plan.records[p]]
    starts = [b.full((length, *t.shape), None, t.dtype, f"{p.name}_kept") for p, t in kinds]
    params = [Var(s.name, s.type) for s in starts]
    with b.region() as stms:
        written: list[Var] = []
        for p, slot in zip(stored, params, strict=False):
            written.append(b.update(slot, (At(exp.index), *whole(p.type)), p))
        for s in exp.body.stms:
            b.add(s)
        records = [r for p in logged for r in plan.records[p]]
        for r, slot in zip(records, params[len(stored) :], strict=True):
            written.append(b.update(slot, (At(exp.index), *whole(r.type)), r))
    new = Body(tuple(stms), (*exp.body.results, *written))
    ends = [Var(s.name, s.type) for s in starts]
    loop = replace(exp, params=(*exp.params, *params), inits=(*exp.inits, *starts), body=new)
    b.bind((*stm.vars, *ends), loop)
    kept = Kept(dict(zip(stored, ends, strict=False)), {})
    at = len(stored)
    for p in logged:
        kept.logs[p] = ends[at : at + len(plan.records[p])]
        at += len(plan.records[p])
    return kept


# -- backwards


def _backward(reverse: Reverse, stm: Stm, exp: For, region: Region, plan: Plan, kept: Kept) -> None:
    bars = {k: reverse.adjoints.pop(stm.vars[k], None) for k in region.ends}
    if all(bar is None for bar in bars.values()) and not reverse.sums:
        return
    ends = {k: reverse.emit.zero(region.ends[k].type) if bar is None else bar for k, bar in bars.items()}
    body, _ = live_part(region.body)
    count = len(region.ends)
    same = all(body.results[n] is end for n, end in enumerate(region.ends.values()))

    def run(accs: dict[Var, Var]) -> list[Atom]:
        if same and not kept.slots and not kept.logs:
            sums = _as_sweep(reverse, exp, region, body, ends)
            return [*ends.values(), *sums]
        return _as_loop(reverse, stm, exp, region, plan, kept, body, list(ends.values()))

    given = _with(reverse, region, run)
    for k, bar in zip(region.ends, given, strict=False):
        reverse.add(exp.inits[k], bar)
    for v, bar in zip(region.scalars, given[count:], strict=True):
        reverse.add(v, bar)


def _with(reverse: Reverse, region: Region, run: Callable[[dict[Var, Var]], list[Atom]]) -> list[Atom]:
    """The accumulators of the region around it."""
    if not region.accs:
        return list(run({}))
    b = reverse.b
    arrays = list(region.accs)
    starts = tuple(reverse.full_adjoint(a) for a in arrays)
    with b.region() as stms:
        results = tuple(run(region.accs))
    outside = [r for r in results if not _bound_in(r, stms)]
    ends = [Var(f"{a.name}_bar", a.type) for a in arrays]
    vars = [Var("t", r.type) for r in results if r not in outside]
    inner = tuple(r for r in results if r not in outside)
    lam = Lambda(tuple(region.accs.values()), Body(tuple(stms), inner))
    b.bind([*ends, *vars], WithAcc(tuple(s for s in starts if isinstance(s, Var)), lam))
    for a, end in zip(arrays, ends, strict=True):
        reverse.adjoints[a] = end
    made = iter(vars)
    return [r if r in outside else next(made) for r in results]


def _bound_in(r: Atom, stms: list[Stm]) -> bool:
    return any(r is v for s in stms for v in s.vars)


def _as_sweep(reverse: Reverse, exp: For, region: Region, body: Body, ends: dict[int, Atom]) -> list[Atom]:
    """Iterations that do not see each other, in any order."""
    b = reverse.b
    with b.region() as stms:
        for k, end in region.ends.items():
            b.alias(end, ends[k])
        for s in body.stms:
            b.add(s)
    sums = body.results[len(region.ends) :]
    vars = [Var(f"{v.name}_bar", v.type) for v in region.scalars]
    operators = tuple(sum_operator(v.type.dtype) for v in region.scalars)
    width = _length(reverse, exp.bound)
    lam = Lambda((region.index,), Body(tuple(stms), sums))
    return list(b.bind(vars, Sweep(width, (), lam, operators)))


def _as_loop(
    reverse: Reverse, stm: Stm, exp: For, region: Region, plan: Plan, kept: Kept, body: Body, starts: list[Atom]
) -> list[Atom]:
    b, emit = reverse.b, reverse.emit
    mine = dict(zip(exp.params, region.params, strict=True))
    logged = list(kept.logs)
    changed = {p: _consumes(body, mine[p]) for p in logged}
    arrays = [Var(p.name, p.type) for p in logged]
    totals = [Var(f"{v.name}_bar", v.type) for v in region.scalars]
    step = Var("j", I64)
    with b.region() as stms:
        last = emit("sub", exp.bound, 1)
        b.bind([region.index], Apply("sub", (last, step)))
        for p, slots in kept.slots.items():
            b.bind([mine[p]], Index(slots, (At(region.index), *whole(p.type))))
        records = {
            p: [b.index(log, (At(region.index), *whole(log.type.row()))) for log in kept.logs[p]] for p in logged
        }
        befores: list[Var] = []
        for p, array in zip(logged, arrays, strict=True):
            before = plan.logs[p].restore(b, array, records[p], region.index)
            befores.append(before)
            b.alias(mine[p], before)
        for s in _whole_body(region, body, [p for p in logged if changed[p]], exp).stms:
            b.add(s)
        count = len(region.ends)
        sums = [emit("add", t, s) for t, s in zip(totals, body.results[count:], strict=True)]
        ends: list[Atom] = []
        for p, before in zip(logged, befores, strict=True):
            if changed[p]:
                result = region.results[exp.params.index(p)]
                assert isinstance(result, Var)
                ends.append(plan.logs[p].restore(b, result, records[p], region.index))
            else:
                ends.append(before)
    results = (*body.results[:count], *sums, *ends)
    params = (*region.ends.values(), *totals, *arrays)
    finals = [stm.vars[exp.params.index(p)] for p in logged]
    inits = (*starts, *(emit.zero(t.type) for t in totals), *finals)
    vars = [Var(p.name, p.type) for p in params]
    trips = _length(reverse, exp.bound)
    bound = trips if isinstance(trips, Var) else i64(trips)
    found = b.bind(vars, For(step, bound, params, inits, Body(tuple(stms), results)))
    return list(found[: count + len(totals)])


def _whole_body(region: Region, body: Body, kept: list[Var], exp: For) -> Body:
    """The live part; with it the arrays that are updated again, where they have to be put back afterwards."""
    if not kept:
        return body
    more = tuple(region.results[exp.params.index(p)] for p in kept)
    live, _ = live_part(Body(region.body.stms, (*region.body.results, *more)))
    return live


def _consumes(body: Body, array: Var) -> bool:
    """Whether the array is written in the body."""
    for s in all_stms(body):
        match s.exp:
            case Update(array=a) if a is array:
                return True
            case For(inits=inits) | While(inits=inits) if array in inits:
                return True
            case Hist(dests=arrays) | Scatter(dests=arrays) | WithAcc(arrays=arrays) if array in arrays:
                return True
            case _:
                pass
    return False
