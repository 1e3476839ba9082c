"""Inner loops whose records the outer loop keeps, so that they do not run again on the way back.

Note [Exports]
Coming back into an iteration, its inner loops run forwards again and keep what their own way back needs. Where that takes
about as much memory as the iteration keeps anyway (each term of its size divides a term of the other, and at most MORE
times as much), it is kept by the outer loop on its way forwards: more memory by a constant factor, one run less. Where
the inner loops keep more than that, running again is the better half of the bargain.
"""

from __future__ import annotations

from collections import Counter
from collections.abc import Iterable, Mapping
from dataclasses import replace
from typing import TYPE_CHECKING

from tapeless.ad.iteration import Region
from tapeless.ad.plan import Plan, plan_loop
from tapeless.ad.ways import Kept
from tapeless.ir.core import Body, For, Stm
from tapeless.ir.plans import DECISIONS, KEEP, NONE, STORE, UNDO, Wish
from tapeless.ir.types import Atom, Type, Var
from tapeless.ir.walk import Substitution, all_stms, type_vars
from tapeless.passes.dce import live_part

if TYPE_CHECKING:
    from tapeless.ad.reverse import Reverse

MORE = 6
KEPT = "_kept"


def with_exports(reverse: Reverse, stm: Stm, exp: For, region: Region, plain: Kept) -> Kept | None:
    """The way that keeps the records of inner loops; None where there are none, or too much of them."""
    loops = [s for s in region.forward.stms if _keeps(s)]
    if not loops:
        return None
    quiet = {id(s.vars[0]): s for s in region.body.stms if s.vars}
    gone = [quiet[id(s.vars[0])] for s in loops if id(s.vars[0]) in quiet]
    rest = Body(tuple(s for s in region.body.stms if not any(s is g for g in gone)), region.body.results)
    _, needed = live_part(rest)
    wanted = [v for s in loops for v in s.vars if v in needed]
    bound = {v for s in all_stms(region.forward) for v in s.vars} | set(region.params)
    if not wanted or any(d in bound for v in wanted for d in type_vars(v.type)):
        return None
    names = Substitution({region.index: exp.index, **dict(zip(region.params, exp.params, strict=True))}, refresh=True)
    body = names.body(region.forward)
    loop = replace(exp, body=body)
    inner = replace(region, body=rest)
    plan = plan_loop(reverse, loop, inner, Wish(KEEP), stm.span)
    plan.closed = plain.plan.closed
    plan.exports = [(_var(plan.names or names.map, v), v) for v in wanted]
    way = Kept(reverse, stm, loop, inner, plan, plain.accs, _text(plan, plain.plan))
    return way if affordable(way.kept_types(), plain.kept_types()) else None


def _text(plan: Plan, plain: Plan) -> str:
    """What only inner loops need of a value is kept with them."""
    shown = Plan(dict(plan.recovery), plan.closed)
    for p, how in plain.recovery.items():
        if how in (STORE, UNDO, DECISIONS) and plan.recovery[p] == NONE:
            shown.recovery[p] = how if how == DECISIONS else STORE
    return shown.text()


def _keeps(stm: Stm) -> bool:
    return isinstance(stm.exp, For) and any(v.name.endswith(KEPT) for v in stm.vars)


def _var(names: Mapping[Var, Atom], v: Var) -> Var:
    found = names[v]
    assert isinstance(found, Var)
    return found


def affordable(more: Iterable[Type], less: Iterable[Type]) -> bool:
    """Note [Exports], for bytes kept an iteration."""
    here, there = _terms(more), _terms(less)
    dominated = all(any(_divides(term, other) for other in there) for term in here)
    return dominated and sum(here.values()) <= MORE * sum(there.values())


def _terms(types: Iterable[Type]) -> Counter[tuple[Var, ...]]:
    """Bytes as a sum of products of sizes: the factor of each product."""
    found: Counter[tuple[Var, ...]] = Counter()
    for t in types:
        factor = t.dtype.bytes
        for d in t.shape:
            factor *= d if isinstance(d, int) else 1
        found[tuple(sorted(type_vars(t), key=id))] += factor
    return found


def _divides(term: tuple[Var, ...], other: tuple[Var, ...]) -> bool:
    return not Counter(term) - Counter(other)
