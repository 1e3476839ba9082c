"""How the values that a backward loop needs come back: one recovery for each carried value.

`plan_loop` takes a loop, the carried values whose old contents the backward loop reads, and what the user wishes; gives
a `Plan`. The choice is made here only, and written into the loop's `hints` for people and for `explain` to read.

    none        its derivative does not use it
    closed      computed from the loop's index (taken out of the loop before: `ad.recovery.closed`)
    live        an array each of whose cells is written once, before it is read: the final one serves (`ad.recovery.live`)
    undo        what iterations overwrite in place is logged, and put back on the way (`ad.recovery.by.undo`)
    invert      the iteration is solved for the values at its start (`reversible.invert`)
    decisions   what its comparisons said, one slot per iteration (`ad.recovery.masks`)
    store       one slot per iteration
    checkpoint  some states, and running again between them (`ad.recovery.by.strips`, `ad.recovery.by.treeverse`)
    recompute   running again from the start, for each iteration
"""

from __future__ import annotations

import math
from collections.abc import Collection, Iterable, Sequence
from dataclasses import dataclass, field

from tapeless.ad.policy import NoRecovery
from tapeless.ad.recovery.by.counting import counts
from tapeless.ad.recovery.by.recording import record
from tapeless.ad.recovery.by.undo import Log, Stack
from tapeless.ad.recovery.iteration import Region, trips
from tapeless.ad.recovery.live import is_live
from tapeless.ad.recovery.masks import Decisions, decide
from tapeless.ad.recovery.updates import trace_updates
from tapeless.ad.reverse import Reverse
from tapeless.ir.calls import called_in
from tapeless.ir.core import Body, For
from tapeless.ir.hints import Hints, How, Recovery
from tapeless.ir.span import NOWHERE, Span
from tapeless.ir.types import Atom, Type, Var
from tapeless.reversible.invert import Inverse, invert

SMALL = 64  # cells of an array that is kept as a whole, not logged on stacks


@dataclass
class Plan:
    """The recovery of each carried value. `records` are the variables of the forward body that a log consists of."""

    recovery: dict[Var, How] = field(default_factory=dict)
    closed: list[str] = field(default_factory=list)  # names of counters, which the loop does not carry any more
    logs: dict[Var, Log] = field(default_factory=dict)
    records: dict[Var, list[Atom]] = field(default_factory=dict)
    tops: dict[Var, list[Var]] = field(default_factory=dict)  # what the body leaves of their stacks
    inverse: Inverse | None = None
    exports: list[tuple[Var, Var]] = field(
        default_factory=list
    )  # of the forward body, and as the backward pass knows them
    decisions: Decisions | None = None
    decided: list[Atom] = field(default_factory=list)  # the variables of the forward body that they are
    trips: list[tuple[Var, Var, int]] = field(default_factory=list)  # of a `while`: the log and the step that have them
    body: Body | None = None  # with what has to be logged and decided
    names: dict[Var, Atom] = field(default_factory=dict)  # in the body, if it is that of the iteration run again

    def hints(self, instead: Recovery | None = None, state: Iterable[int] = ()) -> Hints:
        """`instead`: what the values that would be kept are, and those of the numbers `state`, where the whole loop has
        another way.
        """
        kept, more = {How.undo, How.store, How.decisions}, set(state)
        found = {
            v.name: instead if instead and (how in kept or k in more) else Recovery(how)
            for k, (v, how) in enumerate(self.recovery.items())
        }
        return Hints(chosen=tuple({**found, **dict.fromkeys(self.closed, Recovery(How.closed))}.items()))

    def of(self, *hows: How) -> list[Var]:
        return [v for v, h in self.recovery.items() if h in hows]

    def stacks(self, *arrays: Var) -> list[Stack]:
        """Of the logs of these arrays, or of all."""
        return [s for p in arrays or self.of(How.undo) for s in self.logs[p].stacks.values()]

    @property
    def keeps(self) -> bool:
        return bool(self.of(How.store, How.undo, How.decisions) or self.exports)


def plan_loop(
    reverse: Reverse,
    exp: For,
    region: Region,
    wish: Recovery,
    span: Span,
    whole: Collection[Var] = frozenset(),
) -> Plan:
    """`whole`: arrays that are not to be logged."""
    plan = Plan()
    needed = {exp.params[k] for k in region.needed}
    plan.recovery = dict.fromkeys(exp.params, How.none)
    if not needed:
        return plan
    if wish.kind == How.closed:
        refuse(wish, [p for p in exp.params if p in needed], "no closed form in the loop's index is known for it", span)
    if wish.kind == How.invert:
        found = invert(exp, needed, exact=False, functions=reverse.b.functions)
        if isinstance(found, str):
            raise NoRecovery(f"recover='invert' does not apply: {found}", span)
        plan.inverse = found
        plan.recovery.update(dict.fromkeys(found.state, How.invert))
        return plan
    if wish.kind in (How.auto, How.keep):
        plan.inverse = _declared(reverse, exp, needed) or _exactly(exp, needed)
        if plan.inverse is not None:
            plan.recovery.update(dict.fromkeys(plan.inverse.state, How.invert))
            needed -= set(plan.inverse.state)
    _keep(reverse, exp, region, plan, needed, wish, span, whole)
    if wish.kind in (How.auto, How.keep) and plan.keeps:
        return _decided(reverse, exp, region, plan, needed) or plan
    return plan


def _keep(
    reverse: Reverse,
    exp: For,
    region: Region,
    plan: Plan,
    needed: set[Var],
    wish: Recovery,
    span: Span,
    whole: Collection[Var] = frozenset(),
) -> None:
    """By what is still there, logs and slots."""
    body = exp.body
    for p in [p for p in exp.params if p in needed]:
        if wish.kind in (How.auto, How.keep, How.undo) and p.type.shape and is_live(exp, region, p, reverse.forms):
            plan.recovery[p] = How.live
            continue
        logged = wish.kind in (How.auto, How.keep, How.undo) and p not in whole
        if logged and (log := _log(reverse, exp, body, p, wish.kind == How.undo)) is not None:
            body, plan.records[p], plan.tops[p] = record(log, body)
            plan.recovery[p], plan.logs[p] = How.undo, log
            continue
        if wish.kind == How.undo and p.type.shape:
            refuse(wish, [p], "it is replaced as a whole, not updated in place", span)
        plan.recovery[p] = How.store
    plan.body = body


def _decided(reverse: Reverse, exp: For, region: Region, plan: Plan, needed: set[Var]) -> Plan | None:
    """With decisions for some of what the plan would keep."""
    mine = dict(zip(exp.params, region.params, strict=True))
    logged = {mine[p]: [r.type for r in plan.records[p]] for p in plan.of(How.undo)}
    found = decide(region, {**{mine[p]: [p.type] for p in plan.of(How.store)}, **logged}, logged)
    if found is None:
        return None
    values = {p for p in exp.params if mine[p] in found.values}
    loop, decided, names = found.forwards(exp)
    new = Plan(dict(plan.recovery), inverse=plan.inverse, decisions=found, decided=decided, names=names)
    _keep(reverse, loop, region, new, needed - values, Recovery(How.keep), NOWHERE)
    new.recovery.update(dict.fromkeys(values, How.decisions))
    return new


def _exactly(exp: For, needed: set[Var]) -> Inverse | None:
    """Integers that come back by solving, without loss: generators of random numbers, permuted states."""
    whole = [p for p in needed if not p.type.dtype.is_float and not p.type.dtype.is_complex]
    solved = {p for p in whole if isinstance(invert(exp, {p}, exact=True), Inverse)}
    found = invert(exp, solved, exact=True) if solved else None
    return found if isinstance(found, Inverse) else None


def _declared(reverse: Reverse, exp: For, needed: set[Var]) -> Inverse | None:
    """Iterations that are calls of reversible functions, or come back without loss."""
    functions = reverse.b.functions
    rules = [functions[name].rule for name in called_in(exp.body) if name in functions]
    if not any(rule is not None and rule.inverse for rule in rules):
        return None
    found = invert(exp, needed, exact=True, functions=functions, declared=True)
    return found if isinstance(found, Inverse) else None


def _log(reverse: Reverse, exp: For, body: Body, p: Var, counted: bool) -> Log | None:
    """None where it is not updated in place; or, unless it is to be `counted`, where keeping it is less work than
    counting: in elements of sweeps, which would each allocate stacks.
    """
    if not p.type.shape:
        return None
    steps = trace_updates(body, body.results[exp.params.index(p)], p)
    if not steps:
        return None
    log = Log(body, steps, set(exp.params), exp.index, lambda bound: trips(reverse, bound))
    if log.uneven():
        if not counted and (reverse.scope.swept or _small(p.type)):
            return None
        first = trace_updates(exp.body, exp.body.results[exp.params.index(p)], p) or ()
        log.stack(counts(reverse, exp, first, Log(exp.body, first, set(exp.params), exp.index, log.size).uneven()))
    return log


def _small(type: Type) -> bool:
    """An array of few cells: keeping it is less work than counting."""
    return math.prod(d if isinstance(d, int) else SMALL + 1 for d in type.shape) <= SMALL


def refuse(wish: Recovery, values: Sequence[Var], reason: str, span: Span) -> None:
    names = ", ".join(f"'{v.name}'" for v in values)
    raise NoRecovery(f"recover='{wish}' does not apply to {names}: {reason}", span)
