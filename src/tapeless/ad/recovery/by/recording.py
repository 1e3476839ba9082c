"""The forward run of a loop with a log (`ad.recovery.by.undo`): what an iteration overwrites is read before, and
recorded.

`record` takes the log of an array and the body of the loop; gives the body with such reads, the record of an iteration
(further results of the body), and what it leaves of stacks, which the loop carries: Note [Stacks] in
`ad.recovery.by.undo`.
"""

from __future__ import annotations

from collections.abc import Iterable, Sequence
from dataclasses import replace
from typing import TYPE_CHECKING

from tapeless.ad.recovery.updates import Step, cells_of, steps_within
from tapeless.ir.builder import Builder, full_axes
from tapeless.ir.core import Apply, At, Body, For, If, Range, Stm, Update, While
from tapeless.ir.types import I64, Atom, Type, Var, atom_dim, i64, zero_of

if TYPE_CHECKING:
    from tapeless.ad.recovery.by.undo import Log


def record(log: Log, body: Body) -> tuple[Body, list[Atom], list[Var]]:
    recorder = Recorder(log)
    b = Builder()
    found = recorder.record(b, body, log.steps)
    return b.body(body.results), found, [v for k in log.stacks for v in recorder.now[k]]


class Recorder:
    """`now`: what stacks are at this place of the body, top and arrays."""

    def __init__(self, log: Log) -> None:
        self.log = log
        self.now = {k: list(s.carried) for k, s in log.stacks.items()}

    def record(self, b: Builder, body: Body, steps: Sequence[Step]) -> list[Atom]:
        at = {id(s.stm): s for s in steps}
        record: list[Atom] = []
        for stm in body.stms:
            b.span = stm.span
            step = at.get(id(stm))
            if step is None:
                b.add(stm)
                continue
            match stm.exp:
                case Update():
                    record += self._record_update(b, stm, stm.exp)
                    b.add(stm)
                case For():
                    record += self._record_for(b, stm, stm.exp, step)
                case While():
                    record += self._record_while(b, stm, stm.exp, step)
                case If():
                    record += self._record_if(b, stm, stm.exp, step)
        return record

    def _record_update(self, b: Builder, stm: Stm, exp: Update) -> list[Atom]:
        old = b.index(exp.array, exp.axes, "old")
        if id(stm) not in self.log.stacks:
            return [old, *self.log.places(exp.axes)]
        top, array = self.now[id(stm)]
        cells = cells_of(b, old.type.shape)
        array = b.update(array, [Range(top, atom_dim(cells), i64(1))], b.reshape(old, [atom_dim(cells)]))
        self.now[id(stm)] = [b.let(I64, Apply("add", (top, cells)), "top"), array]
        return [top, *self.log.places(exp.axes)]

    def _record_for(self, b: Builder, stm: Stm, exp: For, step: Step) -> list[Atom]:
        """The records of its iterations, in arrays or on its stack, after its bound where that is not found again."""
        stacked = id(stm) in self.log.stacks
        top = self.now[id(stm)][0] if stacked else None
        rows = () if stacked else self.log.rows(exp.bound, step)
        slots = self.now[id(stm)][1:] if stacked else [b.full(t.shape, None, t.dtype, "old") for t in rows]
        params, inner = _alike(slots), self._enter(step)
        with b.region() as stms:
            record = self.record(b, exp.body, step.arms[0])
            place = exp.index if top is None else b.let(I64, Apply("add", (top, exp.index)), "place")
            written = _push(b, params, place, record)
        ends, (before, mine, after) = _alike(slots), self._leave(inner)
        loop = replace(
            exp,
            params=(*exp.params, *params, *mine),
            inits=(*exp.inits, *slots, *before),
            body=Body(tuple(stms), (*exp.body.results, *written, *after)),
        )
        b.bind((*stm.vars, *ends, *self._names(inner)), loop)
        if top is None:
            return [*self.log.own(exp.bound), *ends]
        count = b.let(I64, Apply("max", (exp.bound, i64(0))), "count")
        self.now[id(stm)] = [b.let(I64, Apply("add", (top, count)), "top"), *ends]
        return [*self.log.own(exp.bound), top]

    def _record_while(self, b: Builder, stm: Stm, exp: While, step: Step) -> list[Atom]:
        """Where its records begin on its stack, and where they end."""
        first = self.now[id(stm)]
        params, inner = _alike(first), self._enter(step)
        with b.region() as stms:
            record = self.record(b, exp.body, step.arms[0])
            written = _push(b, params[1:], params[0], record)
            top = b.let(I64, Apply("add", (params[0], i64(1))), "top")
        ends, (before, mine, after) = _alike(first), self._leave(inner)
        loop = replace(
            exp,
            params=(*exp.params, *params, *mine),
            inits=(*exp.inits, *first, *before),
            body=Body(tuple(stms), (*exp.body.results, top, *written, *after)),
        )
        b.bind((*stm.vars, *ends, *self._names(inner)), loop)
        self.now[id(stm)] = ends
        return [first[0], ends[0]]

    def _record_if(self, b: Builder, stm: Stm, exp: If, step: Step) -> list[Atom]:
        types = [self.log.types(arm) for arm in step.arms]
        inner = {k: self.now[k] for k in self._inside(step)}
        bodies = []
        for which, (arm, steps) in enumerate(zip((exp.then, exp.orelse), step.arms, strict=True)):
            self.now.update(inner)
            with b.region() as stms:
                record = self.record(b, arm, steps)
                other = [_blank(b, t) for t in types[1 - which]]
            mine = [*record, *other] if which == 0 else [*other, *record]
            bodies.append(Body(tuple(stms), (*arm.results, *mine, *(v for k in inner for v in self.now[k]))))
        vars = [Var("old", t) for t in (*types[0], *types[1])]
        b.span = stm.span
        b.bind((*stm.vars, *vars, *self._names(inner)), If(exp.cond, bodies[0], bodies[1]))
        return [*self.log.own(exp.cond), *vars]

    def _inside(self, step: Step) -> list[int]:
        """The stacks of the steps within a step."""
        return [id(s.stm) for arm in step.arms for s in steps_within(arm) if id(s.stm) in self.log.stacks]

    def _enter(self, step: Step) -> dict[int, tuple[list[Var], list[Var]]]:
        """For a loop that carries stacks: what they are before it, and in it."""
        found = {k: (self.now[k], _alike(self.now[k])) for k in self._inside(step)}
        self.now.update({k: mine for k, (_, mine) in found.items()})
        return found

    def _leave(self, inner: dict[int, tuple[list[Var], list[Var]]]) -> tuple[list[Var], list[Var], list[Var]]:
        """Before the loop, at the start of its body, at the end of that."""
        return (
            [v for before, _ in inner.values() for v in before],
            [v for _, mine in inner.values() for v in mine],
            [v for k in inner for v in self.now[k]],
        )

    def _names(self, inner: Iterable[int]) -> list[Var]:
        """New ones for stacks that a statement binds."""
        found: list[Var] = []
        for k in inner:
            self.now[k] = _alike(self.now[k])
            found += self.now[k]
        return found


def _alike(vars: Sequence[Var]) -> list[Var]:
    return [Var(v.name, v.type) for v in vars]


def _push(b: Builder, arrays: Sequence[Var], place: Atom, record: Sequence[Atom]) -> list[Var]:
    return [b.update(a, (At(place), *full_axes(r.type.shape)), r) for a, r in zip(arrays, record, strict=True)]


def _blank(b: Builder, type: Type) -> Atom:
    if type.shape:
        return b.full(type.shape, None, type.dtype, "blank")
    return zero_of(type.dtype)
