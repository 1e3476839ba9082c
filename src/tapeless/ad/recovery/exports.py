"""Inner loops whose records the outer loop keeps, so that they do not run again in the backward pass.

Note [Exports]
Coming back into an iteration, its inner loops run forwards again and keep what their own backward pass needs. Where
that takes about as much memory as the iteration keeps anyway (each term of its size divides a term of the other, and at
most MORE times as much), it is kept by the outer loop on its way forwards: more memory by a constant factor, one run
less. Where the inner loops keep more than that, running again is the better half of the bargain.

Note [Read from the record]
The backward pass of an inner loop puts logged cells back into the array as it is after the loop, and mostly reads no
others: then the records suffice. That shows once the backward pass is tidied up. Where the outer loop has a log of its
own, the array may have to be put back to how it was after running again, and everything is left as it is.
"""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import replace

from tapeless.ad.recovery.iteration import Region
from tapeless.ad.recovery.kept import Kept
from tapeless.ad.recovery.plan import Plan, plan_loop
from tapeless.ad.recovery.sizes import at_most
from tapeless.ad.reverse import Reverse
from tapeless.ir.core import Body, For, Full, Function, Stm
from tapeless.ir.hints import Hints, How, Recovery
from tapeless.ir.types import Atom, Var
from tapeless.ir.walk import Substitution, all_stms, free_in_body, type_vars
from tapeless.passes.tidy.dce import live_part
from tapeless.passes.tidy.simplify import simplify

MORE = 6  # times the memory that is kept anyway


def with_exports(reverse: Reverse, stm: Stm, exp: For, region: Region, plain: Kept, tidy: bool = True) -> Kept | None:
    """The way that keeps the records of inner loops; None where there are none, or too much of them.

    tidy: Note [Read from the record]
    """
    loops = _keeping(region.forward)
    if not loops:
        return None
    quiet = {id(s.vars[0]): s for s in region.body.stms if s.vars}
    gone = [quiet[id(s.vars[0])] for s in loops if id(s.vars[0]) in quiet]
    rest = Body(tuple(s for s in region.body.stms if not any(s is g for g in gone)), region.body.results)
    rest = _tidied(rest) if tidy else rest
    _, needed = live_part(rest)
    wanted = [v for s in loops for v in s.vars if v in needed]
    bound = {v for s in all_stms(region.forward) for v in s.vars} | set(region.params)
    if not wanted or any(d in bound for v in wanted for d in type_vars(v.type)):
        return None
    names = Substitution({region.index: exp.index, **dict(zip(region.params, exp.params, strict=True))}, refresh=True)
    body = names.body(region.forward)
    loop = replace(exp, body=body)
    inner = replace(region, body=rest)
    plan = plan_loop(reverse, loop, inner, Recovery(How.keep), stm.span)
    if tidy and plan.of(How.undo):
        return with_exports(reverse, stm, exp, region, plain, tidy=False)
    plan.closed = plain.plan.closed
    plan.exports = [(_var(plan.names or names.map, v), v) for v in wanted]
    way = Kept(reverse, stm, loop, inner, plan, plain.accs, _hints(plan, plain.plan))
    return way if at_most(MORE, way.kept_types(), plain.kept_types()) else None


def _tidied(body: Body) -> Body:
    outside = free_in_body(body)
    sizes = dict.fromkeys(d for v in outside for d in type_vars(v.type))
    rest = tuple(v for v in outside if v not in sizes)
    return live_part(simplify(Function("region", tuple(sizes), rest, body)).body)[0]


def _hints(plan: Plan, plain: Plan) -> Hints:
    """What only inner loops need of a value is kept with them."""
    shown = Plan(dict(plan.recovery), plan.closed)
    for p, how in plain.recovery.items():
        if how in (How.store, How.undo, How.decisions) and plan.recovery[p] == How.none:
            shown.recovery[p] = how if how == How.decisions else How.store
    return shown.hints()


def _keeping(body: Body) -> list[Stm]:
    """The loops of a region that keep something."""
    room = {s.vars[0] for s in body.stms if isinstance(s.exp, Full) and s.exp.kept}
    return [s for s in body.stms if isinstance(s.exp, For) and not room.isdisjoint(s.exp.inits)]


def _var(names: Mapping[Var, Atom], v: Var) -> Var:
    found = names[v]
    assert isinstance(found, Var)
    return found
