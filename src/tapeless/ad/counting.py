"""Inner loops whose bounds differ from iteration to iteration: how long they get, found by a run that only counts.

`longest` takes a loop and the steps in it that update an array (`ad.undo`); emits a copy of the loop in front of it that
carries the greatest bound of each such inner loop. What bounds do not depend on is dead code there, so the copy is little
work where bounds follow from indices and constant arrays. It tests positions as the first run does, because it comes before it.
"""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import replace
from typing import TYPE_CHECKING

from tapeless.ir.builder import Builder
from tapeless.ir.core import Apply, Body, For, If, Print, Stm
from tapeless.ir.types import I64, Atom, Dim, Var, i64
from tapeless.ir.walk import Substitution, map_regions
from tapeless.passes.dce import live_part

if TYPE_CHECKING:
    from tapeless.ad.reverse import Reverse
    from tapeless.ad.undo import Step

Counters = dict[int, Atom]  # by loop: the greatest bound so far


def longest(reverse: Reverse, exp: For, steps: Sequence[Step], wanted: Sequence[For]) -> dict[int, Dim]:
    """The greatest bound of each wanted loop, by its identity."""
    b = reverse.b
    starts: Counters = {id(loop): i64(0) for loop in wanted}
    loop = _carrying(exp, steps, starts, exp.body)
    body = _silent(reverse.without_updates(loop.body))
    copy = Substitution({}, refresh=True).exp(replace(loop, body=body))
    vars = [Var(p.name, p.type) for p in exp.params]
    counted = [Var("longest", I64) for _ in wanted]
    run, _ = live_part(Body((Stm((*vars, *counted), copy, b.span),), tuple(counted)))
    for stm in run.stms:
        b.add(stm)
    reverse.sizes.update(counted)
    return {id(loop): v for loop, v in zip(wanted, counted, strict=True)}


def _carrying(exp: For, steps: Sequence[Step], counters: Counters, body: Body) -> For:
    """The loop with counters as further values that it carries."""
    params = [Var("longest", I64) for _ in counters]
    counted, ends = _counted(body, steps, dict(zip(counters, params, strict=True)))
    results = (*counted.results, *ends.values())
    return replace(
        exp,
        params=(*exp.params, *params),
        inits=(*exp.inits, *counters.values()),
        body=Body(counted.stms, results),
    )


def _counted(body: Body, steps: Sequence[Step], counters: Counters) -> tuple[Body, Counters]:
    """The body with the counters kept up to date, and these at its end."""
    at = {id(s.stm): s for s in steps}
    b = Builder()
    counters = dict(counters)
    for stm in body.stms:
        b.span = stm.span
        step = at.get(id(stm))
        if step is not None and isinstance(stm.exp, For) and id(stm.exp) in counters:
            own = counters[id(stm.exp)]
            counters[id(stm.exp)] = b.let(I64, Apply("max", (own, stm.exp.bound)), "longest")
        inside = [] if step is None else [c for c in _loops(step) if c in counters]
        if step is None or not inside:
            b.add(stm)
            continue
        mine = {c: counters[c] for c in inside}
        ends = [Var("longest", I64) for _ in inside]
        if isinstance(stm.exp, For):
            b.bind((*stm.vars, *ends), _carrying(stm.exp, step.arms[0], mine, stm.exp.body))
        else:
            assert isinstance(stm.exp, If)
            arms = []
            for arm, inner in zip((stm.exp.then, stm.exp.orelse), step.arms, strict=True):
                made, found = _counted(arm, inner, mine)
                arms.append(Body(made.stms, (*made.results, *found.values())))
            b.bind((*stm.vars, *ends), If(stm.exp.cond, *arms))
        counters.update(zip(inside, ends, strict=True))
    return Body(tuple(b.stms), body.results), counters


def _loops(step: Step) -> list[int]:
    """Loops inside a step, by identity."""
    inner = [s for arm in step.arms for s in arm]
    return [id(s.stm.exp) for s in inner if isinstance(s.stm.exp, For)] + [c for s in inner for c in _loops(s)]


def _silent(body: Body) -> Body:
    stms = [s for s in body.stms if not isinstance(s.exp, Print)]
    return Body(
        tuple(s if isinstance(s.exp, Apply) else Stm(s.vars, map_regions(s.exp, _silent), s.span) for s in stms),
        body.results,
    )
