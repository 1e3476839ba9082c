"""Steps of an array that run more or less often from iteration to iteration: how often, found by a run that only
counts.

`counts` takes a loop and the steps in it that update an array (`ad.recovery.updates`); emits a copy of the loop in
front of it that carries two numbers for each such step: how often it has run in all, and at most in one iteration. What
they do not depend on is dead code there, so the copy is little work where lengths follow from indices and constant
arrays. It tests what it uses, positions and divisors, because it comes before the first run; what else is tested, that
run tests.
"""

from __future__ import annotations

from collections.abc import Collection, Sequence
from dataclasses import replace

from tapeless.ad.recovery.updates import Step, steps_within
from tapeless.ad.reverse import Reverse
from tapeless.ir.builder import Builder
from tapeless.ir.core import Apply, Body, Check, For, If, Index, Print, Progress, Range, Stm, Update, While
from tapeless.ir.operands import regions
from tapeless.ir.quiet import unchecked
from tapeless.ir.types import I64, Atom, Var, dim_atom, i64
from tapeless.ir.walk import Substitution, all_stms, map_regions
from tapeless.passes.tidy.dce import live_part

Counters = dict[int, Atom]  # by statement: how often it has run


def counts(reverse: Reverse, exp: For, steps: Sequence[Step], wanted: Sequence[Step]) -> list[tuple[Atom, Atom]]:
    """For each wanted step: how often it runs, and how often at most in one iteration."""
    b = reverse.b
    totals, mosts = ([Var(name, I64) for _ in wanted] for name in ("count", "most"))
    inner = Builder()
    ends = _count(inner, exp.body, steps, {id(s.stm): v for s, v in zip(wanted, totals, strict=True)})
    wider: list[Atom] = []
    for before, after, most in zip(totals, ends.values(), mosts, strict=True):
        now = inner.let(I64, Apply("sub", (after, before)), "now")
        wider.append(inner.let(I64, Apply("max", (most, now)), "most"))
    loop = replace(
        exp,
        params=(*exp.params, *totals, *mosts),
        inits=(*exp.inits, *(i64(0) for _ in (*totals, *mosts))),
        body=_silent(reverse.without_updates(inner.body((*exp.body.results, *ends.values(), *wider)))),
    )
    vars = [Var(p.name, p.type) for p in loop.params]
    found = vars[len(exp.params) :]
    copy = Body((Stm(tuple(vars), Substitution({}, refresh=True).exp(loop), b.span),), tuple(found))
    inside = {v for s in all_stms(copy) for v in (*s.vars, *(p for r in regions(s.exp) for p in r.params))}
    _, needed = live_part(_tested(copy, inside))
    run, _ = live_part(_tested(copy, inside - needed))
    for stm in run.stms:
        b.add(stm)
    return list(zip(found[: len(wanted)], found[len(wanted) :], strict=True))


def _count(b: Builder, body: Body, steps: Sequence[Step], counters: Counters) -> Counters:
    """Emits the body with the counters kept up to date; these at its end."""
    at = {id(s.stm): s for s in steps}
    counters = dict(counters)
    for stm in body.stms:
        b.span = stm.span
        step = at.get(id(stm))
        if step is None:
            b.add(stm)
            continue
        mine = id(stm) in counters
        if mine and isinstance(stm.exp, (For, Update)):
            counters[id(stm)] = _more(b, counters[id(stm)], stm.exp)
        inside = [k for arm in step.arms for s in steps_within(arm) if (k := id(s.stm)) in counters]
        if mine and isinstance(stm.exp, While):
            inside.append(id(stm))
        if not inside:
            b.add(stm)
            continue
        ends = [Var("count", I64) for _ in inside]
        match stm.exp:
            case For() | While() as exp:
                b.bind((*stm.vars, *ends), _carrying(b, stm, exp, step, {k: counters[k] for k in inside}))
            case If(cond, then, orelse):
                arms = []
                for arm, inner in zip((then, orelse), step.arms, strict=True):
                    with b.region() as stms:
                        found = _count(b, arm, inner, {k: counters[k] for k in inside})
                    arms.append(Body(tuple(stms), (*arm.results, *found.values())))
                b.bind((*stm.vars, *ends), If(cond, *arms))
        counters.update(zip(inside, ends, strict=True))
    return counters


def _carrying(b: Builder, stm: Stm, exp: For | While, step: Step, counters: Counters) -> For | While:
    """The loop with counters as further values that it carries."""
    params = [Var("count", I64) for _ in counters]
    with b.region() as stms:
        ends = _count(b, exp.body, step.arms[0], dict(zip(counters, params, strict=True)))
        if isinstance(exp, While) and id(stm) in ends:
            ends[id(stm)] = b.let(I64, Apply("add", (ends[id(stm)], i64(1))), "count")
    return replace(
        exp,
        params=(*exp.params, *params),
        inits=(*exp.inits, *counters.values()),
        body=Body(tuple(stms), (*exp.body.results, *ends.values())),
    )


def _more(b: Builder, before: Atom, exp: For | Update) -> Atom:
    """With the iterations of a loop, or the cells of a slice."""
    if isinstance(exp, For):
        cells: Atom = b.let(I64, Apply("max", (exp.bound, i64(0))), "now")
    else:
        cells = i64(1)
        for axis in exp.axes:
            if isinstance(axis, Range):
                cells = b.let(I64, Apply("mul", (cells, dim_atom(axis.length))), "now")
    return b.let(I64, Apply("add", (before, cells)), "count")


def _tested(body: Body, unneeded: Collection[Var]) -> Body:
    """With tests only of what is needed, or made of that."""
    unknown = set(unneeded)
    stms: list[Stm] = []
    for s in body.stms:
        match s.exp:
            case Check(cond=cond):
                if cond not in unknown:
                    stms.append(s)
            case Apply(args=args):
                if not any(a in unknown for a in args):
                    unknown.difference_update(s.vars)
                stms.append(s)
            case Index(array, axes) if s.vars[0] in unknown:
                stms.append(Stm(s.vars, Index(array, unchecked(axes)), s.span))
            case Update(array, axes, value) if s.vars[0] in unknown:
                stms.append(Stm(s.vars, Update(array, unchecked(axes), value), s.span))
            case exp:
                stms.append(Stm(s.vars, map_regions(exp, lambda inner: _tested(inner, unknown)), s.span))
    return Body(tuple(stms), body.results)


def _silent(body: Body) -> Body:
    stms = [s for s in body.stms if not isinstance(s.exp, (Print, Progress))]
    return Body(
        tuple(s if isinstance(s.exp, Apply) else Stm(s.vars, map_regions(s.exp, _silent), s.span) for s in stms),
        body.results,
    )
