"""Reverse mode of sequential loops.

The iteration backwards is made first (`ad.recovery.iteration`), the plan from it (`ad.recovery.plan`), and from the
plan the ways to run the loop forwards and back (`ad.recovery.ways`). Under a memory budget there are several ways, and
the sizes of the call decide: all states, strips, or a fixed number of snapshots.
"""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import replace

from tapeless.ad.policy import NoRecovery
from tapeless.ad.recovery.budget import choices, only_snapshots, share_of, within
from tapeless.ad.recovery.by.abreast import abreast
from tapeless.ad.recovery.by.online import Online
from tapeless.ad.recovery.by.strips import spans, strips
from tapeless.ad.recovery.by.treeverse import Snapshots
from tapeless.ad.recovery.closed import take_closed
from tapeless.ad.recovery.exports import with_exports
from tapeless.ad.recovery.iteration import accumulators_of, make_region
from tapeless.ad.recovery.kept import Kept
from tapeless.ad.recovery.plan import Plan, plan_loop
from tapeless.ad.recovery.updates import trace_updates
from tapeless.ad.recovery.ways import Again, Choice, Way
from tapeless.ad.reverse import Back, Reverse, adjoint_of
from tapeless.ir.core import Apply, Body, For, Lambda, Stm, While
from tapeless.ir.hints import Hints, How, Recovery
from tapeless.ir.types import I64, Atom, Var, i64

DEEPEST = 16  # levels of strips: more would hold less than two iterations each in loops of 2**16


@adjoint_of(For)
def vjp_for(reverse: Reverse, stm: Stm, exp: For) -> Back:
    stm, exp, counters = take_closed(reverse.b, stm, exp, reverse.active)
    way = _way(reverse, stm, exp, [c.param.name for c in counters])
    way.sized()
    kept = way.forwards(stm.vars)
    return lambda: _backward(reverse, stm, exp, way, kept)


@adjoint_of(While)
def vjp_while(reverse: Reverse, stm: Stm, exp: While) -> Back:
    """The trips are counted, unless they are known; then it is a loop of so many."""
    b = reverse.b
    if id(stm) in reverse.scope.trips:
        known = For(Var("i", I64), reverse.scope.trips[id(stm)], exp.params, exp.inits, exp.body, exp.hints)
        return vjp_for(reverse, stm, known)
    count, trips = Var("count", I64), Var("trips", I64)
    reverse.sizes.add(trips)
    online = _online(reverse, stm, exp, trips)
    if online is not None:
        return online
    body = reverse.without_updates(exp.body)
    more = Var("count", I64)
    counted = Body((*body.stms, Stm((more,), Apply("add", (count, i64(1))), stm.span)), (*body.results, more))
    b.bind((*stm.vars, trips), While((*exp.params, count), (*exp.inits, i64(0)), exp.cond, counted, exp.hints))
    again = reverse.fresh(Lambda(exp.params, exp.body))
    loop = For(Var("i", I64), trips, again.params, exp.inits, again.body, exp.hints)
    vars = tuple(Var(v.name, v.type) for v in stm.vars)
    for old, new in zip(stm.vars, vars, strict=True):
        reverse.activate(old, new)
    second, loop, counters = take_closed(b, Stm(vars, loop, stm.span), loop, reverse.active)
    way = _way(reverse, second, loop, [c.param.name for c in counters])
    finals = [stm.vars[vars.index(v)] for v in second.vars]
    way.sized()
    kept = way.forwards(second.vars) if way.keeps else []

    def back() -> None:
        for old, new in zip(stm.vars, vars, strict=True):
            adj = reverse.adjoints.take(old)
            if adj is not None:
                reverse.adjoints.put(new, adj)
        _backward(reverse, second, loop, way, kept, [] if way.keeps else finals)

    return back


def _online(reverse: Reverse, stm: Stm, exp: While, trips: Var) -> Back | None:
    """Where checkpoints are asked for, without a budget, they are taken while the loop runs: `ad.recovery.by.online`."""
    if reverse.scope.policy.wish(exp.hints) != Recovery(How.checkpoint) or reverse.scope.budget is not None:
        return None
    again = reverse.fresh(Lambda(exp.params, exp.body))
    loop = For(Var("i", I64), trips, again.params, exp.inits, again.body, exp.hints)
    accs = accumulators_of(reverse, loop)
    with reverse.b.region():  # only to see what it would be: the trips are not known here
        plan = plan_loop(reverse, loop, make_region(reverse.sharing(), loop, accs), Recovery(How.keep), stm.span)
    if not plan.keeps:
        return None
    way = Online(reverse, stm, loop, trips, plan, accs)
    kept = way.run(stm.vars, exp)
    return lambda: _backward(reverse, stm, way.exp, way, kept)


def _way(reverse: Reverse, stm: Stm, exp: For, closed: list[str]) -> Way:
    """How the loop runs, both ways."""
    wish = reverse.scope.policy.wish(exp.hints)
    accs = accumulators_of(reverse, exp)
    region = make_region(reverse.sharing(), exp, accs)
    whole_loop = wish.kind in (How.checkpoint, How.recompute) or wish.number is not None
    plan = plan_loop(reverse, exp, region, Recovery() if whole_loop else wish, stm.span)
    plan.closed = closed
    plain = Kept(reverse, stm, exp, region, plan, accs)
    if not plan.keeps:
        return plain
    share = None if reverse.scope.budget is None else share_of(reverse, exp)
    match wish:
        case Recovery(kind=How.keep):
            return _with_known_trips(plain) or plain
        case Recovery(kind=How.auto) if share is None:
            kept = with_exports(reverse, stm, exp, region, plain) or _with_known_trips(plain) or plain
            return _smaller(kept, plain, closed)
        case Recovery(kind=How.auto):
            assert share is not None
            cut = None if reverse.scope.nested else abreast(plain, share) or _cut(reverse, stm, exp, plan, accs, 2)
            return choices(reverse, plain, cut, share)
        case Recovery(kind=How.recompute):
            return Again(reverse, stm, exp, region, plan, accs)
        case Recovery(kind=How.checkpoint, number=None) if share is not None:
            return only_snapshots(reverse, plain, share)
        case Recovery(kind=How.checkpoint, number=depth) if depth != 1:
            cut = _cut(reverse, stm, exp, plan, accs, depth or 2)
            return within(reverse, cut, share, cut.inside(plain))
        case Recovery(kind=How.snapshots, number=int(slots)):
            return Snapshots(plain, None, slots)
        case Recovery(kind=How.invert, number=int(distance)):
            return within(reverse, _anchored(reverse, stm, exp, plan, accs, distance), share)
    if share is None:
        return _with_known_trips(plain) or plain
    return within(reverse, plain, share)


def _with_known_trips(plain: Kept) -> Kept | None:
    """Logs of `while` loops say how often these went around: in the backward pass they need not be counted."""
    reverse, exp, closed = plain.reverse, plain.exp, plain.plan.closed
    if plain.plan.decisions is not None:
        return None
    numbers = {id(s): k for k, s in enumerate(exp.body.stms)}
    found = {}
    for p in plain.plan.of(How.undo):
        steps = trace_updates(exp.body, exp.body.results[exp.params.index(p)], p) or ()
        for which, step in enumerate(steps):
            if isinstance(step.stm.exp, While):
                found[numbers[id(step.stm)]] = p, which
    if not found:
        return None
    trips = {k: Var("trips", I64) for k in found}
    reverse.sizes.update(trips.values())
    region = make_region(reverse.sharing(), exp, plain.accs, trips)
    plan = plan_loop(reverse, exp, region, Recovery(), plain.stm.span)
    plan.closed = closed
    if plan.decisions is not None or any(plan.recovery[p] != How.undo for p, _ in found.values()):
        return None
    plan.trips = [(v, *found[k]) for k, v in trips.items()]
    return Kept(reverse, plain.stm, exp, region, plan, plain.accs)


def _smaller(kept: Kept, plain: Kept, closed: list[str]) -> Way:
    """Where more loops update an array than it has axes, its cells may be overwritten many times in an iteration: sizes
    decide whether the log of them is kept, or the array.
    """
    reverse, plan = plain.reverse, plain.plan
    often = [p for p in plan.of(How.undo) if plan.logs[p].depth() > sum(isinstance(d, Var) for d in p.type.shape)]
    if not often:
        return kept
    again = reverse.fresh(Lambda((plain.exp.index, *plain.exp.params), plain.exp.body), loud=True)
    loop = replace(plain.exp, index=again.params[0], params=again.params[1:], body=again.body)
    region = make_region(reverse.sharing(), loop, plain.accs)
    arrays = [loop.params[plain.exp.params.index(p)] for p in often]
    other = plan_loop(reverse, loop, region, Recovery(), plain.stm.span, arrays)
    other.closed = closed
    whole = Kept(reverse, plain.stm, loop, region, other, plain.accs)
    return Choice(reverse.emit("le", kept.total_bytes(), whole.total_bytes()), kept, whole)


def _cut(reverse: Reverse, stm: Stm, exp: For, plan: Plan, accs: dict[Var, Var], depth: int) -> Kept:
    if depth > DEEPEST:
        raise NoRecovery(f"recover='checkpoint:{depth}': strips of strips end at depth {DEEPEST}", stm.span)
    lengths = spans(reverse.emit, exp.bound, depth)
    return _nest(reverse, stm, exp, plan, accs, lengths, Recovery(How.checkpoint, depth), Recovery(How.keep))


def _anchored(reverse: Reverse, stm: Stm, exp: For, plan: Plan, accs: dict[Var, Var], distance: int) -> Kept:
    return _nest(reverse, stm, exp, plan, accs, [i64(distance)], Recovery(How.invert, distance), Recovery(How.invert))


def _nest(
    reverse: Reverse,
    stm: Stm,
    exp: For,
    plan: Plan,
    accs: dict[Var, Var],
    lengths: list[Atom],
    wish: Recovery,
    inner: Recovery,
) -> Kept:
    """The loop as a nest whose outermost level keeps a state per strip."""
    nest = strips(reverse.b, exp, lengths, Hints(inner), reverse.activate)
    region = make_region(reverse.sharing(), nest, accs)
    levels = plan_loop(reverse, nest, region, Recovery(How.store), stm.span)
    state = [nest.params.index(p) for p in levels.of(How.store)]
    return Kept(reverse, stm, nest, region, levels, accs, plan.hints(wish, state), lengths)


def _backward(reverse: Reverse, stm: Stm, exp: For, way: Way, kept: list[Var], finals: Sequence[Var] = ()) -> None:
    adjs = {k: reverse.adjoints.take(stm.vars[k]) for k in way.active}
    if all(adj is None for adj in adjs.values()) and not reverse.sums:
        return
    ends = {k: reverse.emit.zero(stm.vars[k].type) if adj is None else adj for k, adj in adjs.items()}

    def run(_: dict[Var, Var]) -> list[Atom]:
        starts, sums = way.backwards(kept, ends, finals)
        return [*starts.values(), *sums.values(), *way.restored.values()]

    scalars = way.scalars
    given = reverse.with_accumulators(list(way.accs), run, way.accs)
    for k, adj in zip(ends, given, strict=False):
        reverse.add(exp.inits[k], adj)
    for v, adj in zip(scalars, given[len(ends) :], strict=False):
        reverse.add(v, adj)
    for k, array in zip(way.restored, given[len(ends) + len(scalars) :], strict=True):
        before = exp.inits[k]
        if isinstance(before, Var) and isinstance(array, Var):
            reverse.restored[before] = array
