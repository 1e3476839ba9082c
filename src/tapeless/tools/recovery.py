"""How the loops of a gradient get their values back, and what that takes: read off the traced program.

`recoveries` takes a Core function and what is known of its arguments; gives a `Recovered` for each loop whose plan was
made by `ad.plan`, outermost and first ones first, and the bytes of all. Sizes are followed through integer arithmetic
as far as they are known before the program runs; where they are not, neither are the bytes.

Note [Kept bytes]
A plan keeps arrays named `..._kept`, made where the loop stands. Those of one region are there at the same time; of
the regions inside, one at a time. In a loop the first and the last iteration are looked at: strips are longest first,
triangles last.
"""

from __future__ import annotations

from collections.abc import Iterable, Mapping
from dataclasses import dataclass, field
from typing import Any

import numpy as np

from tapeless.ir.core import Apply, Body, For, Full, Function, If, Stm, While
from tapeless.ir.plans import CHECKPOINT, CLOSED, DECISIONS, INVERT, LIVE, NONE, RECOMPUTE, STORE, UNDO
from tapeless.ir.types import Atom, Const, Dim, Type, Var
from tapeless.ir.walk import regions
from tapeless.ops.table import op as row

Number = Any
Place = tuple[str, int, int]

WHY = {
    NONE: "its derivative does not use it",
    CLOSED: "it follows from the loop's index",
    LIVE: "no cell that is read is written again, so the final array serves",
    UNDO: "overwritten cells are logged and put back",
    DECISIONS: "only comparisons of it matter: what they said, one slot an iteration",
    STORE: "one slot an iteration",
    INVERT: "iterations are solved for the values at their start",
    RECOMPUTE: "each iteration runs again from the start",
}
KEPT = "_kept"


@dataclass(frozen=True)
class Alternative:
    """Another way: bytes, and how often each iteration runs forwards, the first time included."""

    recover: str
    memory_bytes: int
    runs: float
    seconds: float | None = None


@dataclass
class Recovered:
    """A loop: by carried name its recovery, and why. `state_bytes` is one state of what has to be kept."""

    file: str
    line: int
    recovery: dict[str, str]
    why: dict[str, str]
    trips: int | None = None
    state_bytes: int | None = None
    memory_bytes: int | None = 0
    alternatives: list[Alternative] = field(default_factory=list)


def recoveries(core: Function, values: Mapping[Var, Number]) -> tuple[list[Recovered], int | None]:
    reader = _Reader(values)
    total = reader.total(core.body)
    for key, loop in reader.loops.items():
        loop.memory_bytes = _Reader(values, key).total(core.body)
        loop.alternatives = alternatives(loop.trips, loop.state_bytes)
    return list(reader.loops.values()), total if reader.loops else None


def alternatives(trips: int | None, state: int | None) -> list[Alternative]:
    """What the ways that always apply would take."""
    if trips is None or not state:
        return []
    found = [Alternative(STORE, trips * state, 1)]
    for depth in (2, 3, 4):
        m = next(m for m in range(max(1, round(trips ** (1 / depth)) - 1), trips + 2) if m**depth >= trips)
        found.append(Alternative(f"{CHECKPOINT}:{depth}", depth * m * state, depth))
    return [*found, Alternative(RECOMPUTE, 2 * state, 1 + (trips - 1) / 2)]


def size_text(count: float) -> str:
    """1.5 kB"""
    for unit, factor in (("GB", 1e9), ("MB", 1e6), ("kB", 1e3)):
        if count >= factor:
            return f"{count / factor:.3g} {unit}"
    return f"{count:.0f} B"


def recovery_lines(loop: Recovered) -> list[str]:
    trips = "" if loop.trips is None else f" of {loop.trips} iterations"
    memory = "" if loop.memory_bytes is None else f", {size_text(loop.memory_bytes)}"
    out = [f"  line {loop.line}: loop{trips}{memory}"]
    out += [f"    {name}: {how} ({loop.why[name]})" for name, how in loop.recovery.items()]
    if loop.memory_bytes and loop.alternatives:
        others = [f"{a.recover} {size_text(a.memory_bytes)}, {_runs(a.runs)}" for a in loop.alternatives]
        out.append(f"    possible: {'; '.join(others)}")
    return out


def _runs(count: float) -> str:
    return "1 run" if count == 1 else f"{count:.3g} runs"


def parse_plan(text: str) -> dict[str, str]:
    """What `ad.plan` wrote into a loop; nothing for other texts."""
    parts = [part.split(": ", 1) for part in text.split(", ")]
    return {p[0]: p[1] for p in parts} if all(len(p) == 2 for p in parts) else {}


def words(how: str) -> str:
    """Why a value has this recovery."""
    kind, _, number = how.partition(":")
    if kind == CHECKPOINT and not number:
        return "snapshots in as many slots as the memory budget allows, run again from in between"
    if kind == CHECKPOINT:
        return f"strips of depth {number}: a state a strip, and running again inside it"
    if kind == INVERT and number:
        return f"{WHY[INVERT]}, afresh from a state kept every {number} iterations"
    return WHY.get(kind, how)


class _Reader:
    """Goes through a program once; with `only`, the bytes are those of the loop at this place."""

    def __init__(self, values: Mapping[Var, Number], only: Place | None = None) -> None:
        self.values, self.only = dict(values), only
        self.loops: dict[Place, Recovered] = {}
        self.counting: list[Place] = []  # places of the loops around, on their way forwards

    # -- numbers

    def number(self, a: Atom | Dim) -> Number | None:
        if isinstance(a, Var):
            return self.values.get(a)
        return a.value if isinstance(a, Const) else a

    def bytes(self, type: Type) -> int | None:
        total = type.dtype.bytes
        for d in type.shape:
            n = self.number(d)
            if n is None:
                return None
            total *= max(0, int(n))
        return total

    def define(self, stm: Stm, exp: Apply) -> None:
        args = [self.number(a) for a in exp.args]
        if any(a is None for a in args):
            self.values.pop(stm.vars[0], None)
            return
        typed = [np.asarray(x, a.type.dtype.numpy)[()] for x, a in zip(args, exp.args, strict=True)]
        extra = [stm.vars[0].type.dtype.numpy] if exp.op == "convert" else []
        self.values[stm.vars[0]] = row(exp.op).numpy(*typed, *extra)

    # -- bytes: Note [Kept bytes]

    def total(self, body: Body) -> int | None:
        return _plus(*self.body(body))

    def body(self, body: Body) -> tuple[int | None, int | None]:
        """Of the region itself, and the most of the regions inside."""
        own: int | None = 0
        inside: list[int | None] = [0]
        for stm in body.stms:
            match stm.exp:
                case Apply() as exp:
                    self.define(stm, exp)
                case Full(value=None) if stm.vars[0].name.endswith(KEPT):
                    if self.only in (None, _place(stm)):
                        own = _plus(own, self.bytes(stm.vars[0].type))
                case If() as exp:  # arrays that an arm makes go on
                    mine, within = self.branch(stm, exp)
                    own = _plus(own, mine)
                    inside.append(within)
                case For() | While() as exp:
                    inside.append(self.loop(stm, exp))
                case exp:
                    inside += [self.total(region.body) for region in regions(exp)]
        return own, _most(inside)

    def branch(self, stm: Stm, exp: If) -> tuple[int | None, int | None]:
        taken = self.number(exp.cond)
        if taken is None:
            arms = [self.body(exp.then), self.body(exp.orelse)]
            return _most(a for a, _ in arms), _most(b for _, b in arms)
        arm = exp.then if taken else exp.orelse
        found = self.body(arm)
        for v, r in zip(stm.vars, arm.results, strict=True):
            if (value := self.number(r)) is not None:
                self.values[v] = value
        return found

    def loop(self, stm: Stm, exp: For | While) -> int | None:
        bound = self.number(exp.bound) if isinstance(exp, For) else None
        trips = None if bound is None else max(0, int(bound))
        place, plan = _place(stm), parse_plan(exp.plan)
        if trips == 0 and not plan:
            return 0
        fresh = bool(plan) and place not in self.loops
        if fresh:
            self.loops[place] = self._recovered(stm, exp, plan, trips)
            self.counting.append(place)
        elif place in self.counting:  # the strips inside a strip
            known = self.loops[place].trips
            self.loops[place].trips = None if known is None or trips is None else known * trips
        found: list[int | None] = [0]
        for index in sorted({0, max(0, (trips or 1) - 1)}):
            if isinstance(exp, For):
                self.values[exp.index] = np.int64(index)
            before = {k: loop.trips for k, loop in self.loops.items()} if index else {}
            found.append(self.total(exp.body))
            for k, known in before.items():
                self.loops[k].trips = known
        if fresh:
            self.counting.remove(place)
        return _most(found)

    def _recovered(self, stm: Stm, exp: For | While, plan: dict[str, str], trips: int | None) -> Recovered:
        types = {p.name: p.type for p in exp.params}
        state: int | None = 0
        for name, how in plan.items():
            if how not in (NONE, CLOSED, LIVE) and name in types:
                state = _plus(state, self.bytes(types[name]))
        why = {name: words(how) for name, how in plan.items()}
        return Recovered(stm.span.file, stm.span.line, plan, why, trips, state)


def _place(stm: Stm) -> Place:
    return stm.span.file, stm.span.line, stm.span.column


def _plus(a: int | None, b: int | None) -> int | None:
    return None if a is None or b is None else a + b


def _most(found: Iterable[int | None]) -> int | None:
    known = list(found)
    return None if any(x is None for x in known) else max((x for x in known if x is not None), default=0)
