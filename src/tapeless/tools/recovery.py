"""How the loops of a gradient get their values back, and what that takes: read off the traced program.

`recoveries` takes a Core function and what is known of its arguments; gives a `Recovered` for each loop whose plan was
made by `ad.recovery.plan`, outermost and first ones first, and the bytes of all. Sizes are followed through integer
arithmetic as far as they are known before the program runs; where they are not, neither are the bytes.

Note [Kept bytes]
A plan keeps values in arrays of their own (`Full.kept`), made where the loop stands. Those of one region are there at
the same time; of the regions inside, one at a time. In a loop the first and the last iteration are looked at: strips
are longest first, triangles last.
"""

from __future__ import annotations

import math
from collections.abc import Iterable, Mapping
from dataclasses import dataclass, field, replace
from typing import Any

import numpy as np

from tapeless.ad.recovery.iteration import state_of
from tapeless.ir.core import Apply, Body, For, Full, Function, If, Stm, While
from tapeless.ir.hints import How, Recovery
from tapeless.ir.operands import regions
from tapeless.ir.types import I64, Atom, Const, Dim, Type, Var
from tapeless.lower.footprint import FOLLOWED
from tapeless.ops.table import op as row

Number = Any
Place = tuple[str, int, int]

WHY: dict[str, str] = {
    How.none: "its derivative does not use it",
    How.closed: "it follows from the loop's index",
    How.live: "no cell that is read is written again, so the final array serves",
    How.undo: "cells that are overwritten are logged, and put back in the backward pass",
    How.decisions: "only comparisons look at it: what they said is kept, one byte per comparison",
    How.store: "its value at the start of each iteration is stored",
    How.invert: "iterations are solved backwards for their starting values",
    How.recompute: "for each iteration, the loop runs again from its start",
}
ONE_SLOT = [Recovery(how) for how in (How.none, How.closed, How.live, How.invert, How.store)]
OR = " or "  # between recoveries among which sizes decide when it runs


@dataclass(frozen=True)
class Alternative:
    """Another way: bytes, and how often each iteration runs forwards, the first time included."""

    recover: str
    memory_bytes: int
    runs: float
    seconds: float | None = None


@dataclass
class Recovered:
    """A loop: by carried name its recovery, and why. `state_bytes` is one state of what has to be kept, `whole_bytes`
    with arrays that serve as they are, and `restart_bytes` with all that an iteration starts from.

    `trips` and `memory_bytes` are None where they are not known before the loop runs. `slot_bytes` is what a plan that
    stores keeps an iteration for these values; the rest of the bytes belongs to loops inside.
    """

    file: str
    line: int
    recovery: dict[str, str]
    why: dict[str, str]
    trips: int | None = None
    state_bytes: int | None = None
    whole_bytes: int | None = None
    restart_bytes: int | None = None
    slot_bytes: int | None = None
    memory_bytes: int | None = 0
    alternatives: list[Alternative] = field(default_factory=list)


def recoveries(core: Function, values: Mapping[Var, Number]) -> tuple[list[Recovered], int | None]:
    reader = _Reader(values)
    total = reader.total(core.body)
    for key, loop in reader.loops.items():
        loop.memory_bytes = _Reader(values, key).total(core.body)
        loop.alternatives = alternatives(loop.trips, loop.state_bytes, loop.whole_bytes, loop.restart_bytes)
    return list(reader.loops.values()), total if reader.loops else None


def alternatives(
    trips: int | None, kept: int | None, stored: int | None, restart: int | None
) -> list[Alternative]:  # fmt: skip
    """What the ways that always apply would take: bytes that an iteration keeps in strips, those of all that would be
    stored, and of a state to start again from.
    """
    if trips is None or not kept or stored is None or restart is None:
        return []
    found = [Alternative(How.store.value, trips * stored, 1)]
    for depth in (2, 3, 4):
        m = next(m for m in range(max(1, round(trips ** (1 / depth)) - 1), trips + 2) if m**depth >= trips)
        states = math.ceil(trips / m ** (depth - 1)) + (depth - 2) * m
        found.append(Alternative(f"{How.checkpoint}:{depth}", states * restart + m * kept, depth))
    return [*found, Alternative(How.recompute.value, 0, 1 + (trips - 1) / 2)]


def size_text(count: float) -> str:
    """1.5 kB"""
    for unit, factor in (("GB", 1e9), ("MB", 1e6), ("kB", 1e3)):
        if count >= factor:
            return f"{count / factor:.3g} {unit}"
    return f"{count:.0f} B"


# -- words


def recovery_lines(loop: Recovered) -> list[str]:
    out = [f"  line {loop.line}: {_loop_text(loop)}"]
    width = max(map(len, loop.recovery), default=0)
    for name, how in loop.recovery.items():
        out.append(f"    {name:<{width}}  {how}: {loop.why[name]}")
    others = worthwhile(loop)
    if others:
        rows = [(f'recover="{a.recover}"', size_text(a.memory_bytes), _runs(a.runs)) for a in others]
        left, right = (max(len(row[k]) for row in rows) for k in (0, 1))
        out.append("    instead, it could be")
        out += [f"      {how:<{left}}  keeps {size:>{right}}, runs forwards {runs}" for how, size, runs in rows]
    return out


def _loop_text(loop: Recovered) -> str:
    text = "loop of unknown length" if loop.trips is None else f"loop of {loop.trips} iterations"
    if loop.memory_bytes == 0:
        return f"{text}, keeps nothing"
    if loop.memory_bytes is not None:
        inside = 0
        if loop.slot_bytes is not None and loop.trips is not None:
            inside = loop.memory_bytes - loop.trips * loop.slot_bytes
        rest = f", {size_text(inside)} of it for loops inside" if inside > 0 else ""
        return f"{text}, keeps {size_text(loop.memory_bytes)}{rest}"
    return f"{text}, {size_text(loop.state_bytes)} per state" if loop.state_bytes else text


def _runs(count: float) -> str:
    return "once" if count == 1 else "twice" if count == 2 else f"{count:.0f} times"


def worthwhile(loop: Recovered) -> list[Alternative]:
    """Those that keep less than the plan or run less, and of which no other one does both."""
    kept, least = loop.memory_bytes, math.inf
    if not kept:
        return []
    depths = [how.partition(":")[2] for how in loop.recovery.values() if how.startswith(How.checkpoint)]
    runs = max((int(d) if d else math.inf for d in depths), default=1)
    found = []
    for a in sorted(loop.alternatives, key=lambda a: a.runs):
        if a.memory_bytes < least and (a.memory_bytes < kept or a.runs < runs):
            found += [a] if a.recover not in loop.recovery.values() else []
            least = a.memory_bytes
    return found


def words(how: str) -> str:
    """Why a value has this recovery."""
    if OR in how:
        return (
            "the first that fits the memory budget, when it runs"
            if How.checkpoint in how
            else "the smaller one, when it runs"
        )
    kind, _, number = how.partition(":")
    if kind == How.checkpoint and not number:
        return "a limited number of states is kept, the rest runs again from them"
    if kind == How.checkpoint:
        return f"some states are kept, in {number} levels of strips, the rest runs again from them"
    if kind == How.invert and number:
        return f"solved backwards, afresh from a state that is kept every {number} iterations"
    return WHY.get(kind, how)


class _Reader:
    """Goes through a program once; with `only`, the bytes are those of the loop at this place."""

    def __init__(self, values: Mapping[Var, Number], only: Place | None = None) -> None:
        self.values, self.only = dict(values), only
        self.loops: dict[Place, Recovered] = {}
        self.counting: list[Place] = []  # places of the loops around, on their way forwards
        self.ends: dict[Atom, Number] = {}  # of differences less something unknown
        self.strips: list[int | None] = []  # iterations of the strips in the region

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
            if exp.op == "sub" and args[0] is not None:
                self.ends[stm.vars[0]] = args[0]
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
                case Full(kept=True):
                    if self.only in (None, _place(stm)):
                        own = _plus(own, self.bytes(stm.vars[0].type))
                case If() as exp:  # arrays that an arm makes go on
                    mine, within = self.branch(stm, exp)
                    own = _plus(own, mine)
                    inside.append(within)
                case For() as exp if self.follow(stm, exp):
                    pass
                case For() | While() as exp:
                    inside.append(self.loop(stm, exp))
                case exp:
                    inside += [self.total(region.body) for region in regions(exp)]
        return own, _most(inside)

    def branch(self, stm: Stm, exp: If) -> tuple[int | None, int | None]:
        taken = self.number(exp.cond)
        if taken is None:
            known = dict(self.loops)
            first, one = self.body(exp.then), self.loops
            self.loops = known
            second = self.body(exp.orelse)
            self.loops = _either(one, self.loops)
            return _most((first[0], second[0])), _most((first[1], second[1]))
        arm = exp.then if taken else exp.orelse
        found = self.body(arm)
        for v, r in zip(stm.vars, arm.results, strict=True):
            if (value := self.number(r)) is not None:
                self.values[v] = value
        return found

    def follow(self, stm: Stm, exp: For) -> bool:
        """Runs a loop over numbers, if all of them are known: such loops count."""
        bound, given = self.number(exp.bound), [self.number(a) for a in exp.inits]
        if bound is None or bound > FOLLOWED or None in given or not _counts(exp):
            return False
        for k in range(int(bound)):
            self.values.update({exp.index: np.int64(k), **dict(zip(exp.params, given, strict=True))})
            self.body(exp.body)
            given = [self.number(r) for r in exp.body.results]
            if None in given:
                return False
        self.values.update(zip(stm.vars, given, strict=True))
        return True

    def loop(self, stm: Stm, exp: For | While) -> int | None:
        bound = self.number(exp.bound) if isinstance(exp, For) else None
        place, plan = _place(stm), dict(exp.hints.chosen)
        if (
            bound is None and isinstance(exp, For) and Recovery(How.checkpoint) in plan.values()
        ):  # what follows the last snapshot
            bound = self.ends.get(exp.bound)
        trips = None if bound is None else max(0, int(bound))
        if trips == 0 and not plan:
            return 0
        fresh = bool(plan) and place not in self.loops
        if fresh:
            self.loops[place] = self._recovered(stm, exp, plan, trips)
            self.counting.append(place)
        elif place in self.counting:  # a strip
            self.strips.append(trips)
        elif plan:
            self.loops[place].trips = _longer(self.loops[place].trips, trips)
        found: list[int | None] = [0]
        inside: list[int | None] = []
        for index in sorted({0, max(0, (trips or 1) - 1)}):
            if isinstance(exp, For):
                self.values[exp.index] = np.int64(index)
            before, self.strips = self.strips, []
            found.append(self.total(exp.body))
            inside += self.strips[:1]
            self.strips = before
        if inside and (fresh or place in self.counting):  # all strips but the last one are as long as the first
            before_last = None if trips is None or inside[0] is None else (trips - 1) * inside[0]
            whole = _plus(before_last, inside[-1])
            if fresh:
                self.loops[place].trips = whole
            else:
                self.strips[-1] = whole
        if fresh:
            self.counting.remove(place)
        return _most(found)

    def _recovered(self, stm: Stm, exp: For | While, plan: dict[str, Recovery], trips: int | None) -> Recovered:
        types = {p.name: p.type for p in exp.params}
        state: int | None = 0
        whole: int | None = 0
        needed = {p for p in exp.params if p.name in plan and plan[p.name].kind not in (How.none, How.closed)}
        for p in needed:
            whole = _plus(whole, self.bytes(p.type))
            if plan[p.name].kind != How.live:
                state = _plus(state, self.bytes(p.type))
        restart: int | None = 0
        for p in state_of(exp, needed) if isinstance(exp, For) else ():
            restart = _plus(restart, self.bytes(p.type))
        shown = {name: str(how) for name, how in plan.items()}
        why = {name: words(how) for name, how in shown.items()}
        slot: int | None = None
        if all(how in ONE_SLOT for how in plan.values()):
            slot = 0
            for name in (n for n, how in plan.items() if how.kind == How.store and n in types):
                slot = _plus(slot, self.bytes(types[name]))
        return Recovered(stm.span.file, stm.span.line, shown, why, trips, state, whole, restart, slot)


def _counts(exp: For) -> bool:
    """Whether a loop has nothing but arithmetic, and carries whole numbers."""
    inner = [s.exp for s in exp.body.stms]
    simple = all(isinstance(e, Apply) or (isinstance(e, For) and _counts(e)) for e in inner)
    return simple and all(p.type == I64 for p in exp.params)


def _longer(one: int | None, other: int | None) -> int | None:
    """Of a loop that is met twice, with other lengths."""
    return one if one is None or other is None else max(one, other)


def _either(one: dict[Place, Recovered], other: dict[Place, Recovered]) -> dict[Place, Recovered]:
    """Loops of two arms of which nobody knows which is taken."""
    found = {**one, **other}
    for place in one.keys() & other.keys():
        mine, theirs = one[place], other[place]
        both = {name: _or(how, theirs.recovery.get(name, how)) for name, how in mine.recovery.items()}
        found[place] = replace(mine, recovery=both, why={name: words(how) for name, how in both.items()})
    return found


def _or(how: str, other: str) -> str:
    return OR.join(dict.fromkeys([*how.split(OR), *other.split(OR)]))


def _place(stm: Stm) -> Place:
    return stm.span.file, stm.span.line, stm.span.column


def _plus(a: int | None, b: int | None) -> int | None:
    return None if a is None or b is None else a + b


def _most(found: Iterable[int | None]) -> int | None:
    known = list(found)
    return None if any(x is None for x in known) else max((x for x in known if x is not None), default=0)
