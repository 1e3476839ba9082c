"""How the values that a backward loop needs come back: one recovery for each carried value.

`plan_loop` takes a loop and the carried values whose old contents the backward loop reads; gives a `Plan`. The choice
is made here only, and written into the loop's `plan` for people to read.

    none   its derivative does not use it
    undo   an array that iterations update in place: a log of the overwritten cells, put back on the way
    store  one slot an iteration
"""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass, field

from tapeless.ad.undo import Log, trace_updates
from tapeless.ir.core import Atom, Body
from tapeless.ir.types import Var

NONE, UNDO, STORE = "none", "undo", "store"


@dataclass
class Plan:
    """The recovery of each carried value that has a derivative or is needed by one."""

    recovery: dict[Var, str] = field(default_factory=dict)
    logs: dict[Var, Log] = field(default_factory=dict)
    records: dict[Var, list[Atom]] = field(default_factory=dict)

    def text(self) -> str:
        return ", ".join(f"{v.name}: {how}" for v, how in self.recovery.items())

    def of(self, how: str) -> list[Var]:
        return [v for v, h in self.recovery.items() if h == how]


def plan_loop(index: Var, params: Sequence[Var], body: Body, needed: set[Var]) -> tuple[Plan, Body]:
    """The plan, and the body with what has to be logged for it."""
    plan = Plan()
    for p, result in zip(params, body.results, strict=True):
        if p not in needed:
            plan.recovery[p] = NONE
            continue
        steps = trace_updates(body, result, p) if p.type.shape else None
        if steps:
            log = Log(body, steps, set(params), index)
            if log.possible:
                body, plan.records[p] = log.record(body)
                plan.recovery[p], plan.logs[p] = UNDO, log
                continue
        plan.recovery[p] = STORE
    return plan, body
