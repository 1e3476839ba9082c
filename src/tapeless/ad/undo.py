"""Arrays that a loop updates in place: a log of the cells that an iteration overwrites, and how to put them back.

`trace_updates` follows a carried array through one iteration (updates, branches and loops with updates); None when the
way is not like that. `log` gives the body with the overwritten values (and what is needed to find their places again) as
further results; `restore` undoes the iteration, given those values.
"""

from __future__ import annotations

from collections.abc import Callable, Iterator, Sequence
from dataclasses import dataclass, replace

from tapeless.ir.builder import Builder, full_axes, indexed_type
from tapeless.ir.core import Apply, At, Axis, Body, Exp, For, If, Index, Range, Stm, Update, While
from tapeless.ir.types import I64, Atom, Dim, Type, Var, i64, zero_of
from tapeless.ir.walk import Substitution, all_stms


@dataclass(frozen=True)
class Step:
    """An update, or a branch with the steps of its two arms, or a loop with those of its body."""

    stm: Stm
    arms: tuple[tuple[Step, ...], ...] = ()


@dataclass(frozen=True)
class Recorded:
    """A step with its part of a record."""

    step: Step
    record: list[Atom]
    arms: list[list[Recorded]]


def trace_updates(body: Body, result: Atom, root: Var) -> tuple[Step, ...] | None:
    """The steps from `root` to `result`, first to last."""
    definitions = {v: s for s in body.stms for v in s.vars}
    steps: list[Step] = []
    while result is not root:
        stm = definitions.get(result) if isinstance(result, Var) else None
        if stm is None:
            return None
        assert isinstance(result, Var)
        match stm.exp:
            case Update(array=array):
                steps.append(Step(stm))
                result = array
            case If(then=then, orelse=orelse):
                k = stm.vars.index(result)
                inner = _common_root(then, orelse, k)
                if inner is None:
                    return None
                arms = [trace_updates(arm, arm.results[k], inner) for arm in (then, orelse)]
                if any(arm is None for arm in arms):
                    return None
                steps.append(Step(stm, tuple(a for a in arms if a is not None)))
                result = inner
            case For(params=params, inits=inits, body=inside):
                k = stm.vars.index(result)
                within = trace_updates(inside, inside.results[k], params[k])
                if within is None:
                    return None
                steps.append(Step(stm, (within,)))
                result = inits[k]
            case _:
                return None
    return tuple(reversed(steps))


def _common_root(then: Body, orelse: Body, k: int) -> Var | None:
    roots = []
    for arm in (then, orelse):
        definitions = {v: s for s in arm.stms for v in s.vars}
        at: Atom = arm.results[k]
        while isinstance(at, Var) and at in definitions:
            exp = definitions[at].exp
            if isinstance(exp, Update):
                at = exp.array
            elif isinstance(exp, If):
                inner = _common_root(exp.then, exp.orelse, definitions[at].vars.index(at))
                if inner is None:
                    return None
                at = inner
            elif isinstance(exp, For):
                at = exp.inits[definitions[at].vars.index(at)]
            else:
                return None
        roots.append(at)
    found = roots[0]
    return found if isinstance(found, Var) and found is roots[1] else None


class Log:
    """The record of one iteration for one array."""

    def __init__(
        self, body: Body, steps: Sequence[Step], params: set[Var], index: Var, size: Callable[[Atom], Dim]
    ) -> None:
        """Positions other than the loop's `index` that an iteration makes, or that it carries, are recorded too. `size` gives
        the bound of a loop as a size, in front of the loop.
        """
        self.steps, self.index, self.size = steps, index, size
        self.lengths: dict[int, Dim] = {}  # of loops whose bounds are not known in front: `ad.counting`
        self.local = (_bound(body) | params) - {index}
        self.varying = frozenset({*self.local, index, *_indices(steps)})
        self.again: dict[int, list[Stm]] = {}  # by body: positions that follow from indices are computed again
        self._learn(body, steps)
        self.body = id(body)
        self.names = Substitution({})

    def _learn(self, body: Body, steps: Sequence[Step]) -> None:
        """Which statements can run again on the way back, so that their results need not be recorded."""
        found = self.again.setdefault(id(body), [])
        for stm in body.stms:
            if isinstance(stm.exp, Apply) and not any(a in self.local for a in stm.exp.args):
                self.local -= set(stm.vars)
                found.append(stm)
        self._learn_loops(steps)

    def _learn_loops(self, steps: Sequence[Step]) -> None:
        for step in steps:
            if isinstance(step.stm.exp, For):
                self._learn(step.stm.exp.body, step.arms[0])
            else:
                for arm in step.arms:
                    self._learn_loops(arm)

    # -- forwards

    def record(self, body: Body) -> tuple[Body, list[Atom]]:
        """The body with reads of what will be overwritten, and the record."""
        return self._record(body, self.steps)

    def _record(self, body: Body, steps: Sequence[Step]) -> tuple[Body, list[Atom]]:
        at = {id(s.stm): s for s in steps}
        stms: list[Stm] = []
        record: list[Atom] = []
        for stm in body.stms:
            step = at.get(id(stm))
            if step is None:
                stms.append(stm)
                continue
            if isinstance(stm.exp, Update):
                old = Var("old", indexed_type(stm.exp.array.type, stm.exp.axes))
                stms.append(Stm((old,), Index(stm.exp.array, stm.exp.axes), stm.span))
                record.append(old)
                record.extend(self._places(stm.exp.axes))
                stms.append(stm)
            elif isinstance(stm.exp, For):
                made, more = self._record_for(stm, stm.exp, step)
                stms.extend(made)
                record.extend(more)
            else:
                assert isinstance(stm.exp, If)
                stm, more = self._record_if(stm, stm.exp, step)
                stms.append(stm)
                record.extend(more)
        return Body(tuple(stms), body.results), record

    def _record_for(self, stm: Stm, exp: For, step: Step) -> tuple[list[Stm], list[Atom]]:
        """The records of its iterations, in arrays, after its bound where that is not found again."""
        body, record = self._record(exp.body, step.arms[0])
        b = Builder(stm.span)
        length = self.lengths[id(exp)] if id(exp) in self.lengths else self.size(exp.bound)
        starts = [b.full((length, *r.type.shape), None, r.type.dtype, "old") for r in record]
        params = [Var(s.name, s.type) for s in starts]
        with b.region() as stms:
            for s in body.stms:
                b.add(s)
            written = [
                b.update(p, (At(exp.index), *full_axes(r.type.shape)), r) for p, r in zip(params, record, strict=True)
            ]
        ends = [Var(s.name, s.type) for s in starts]
        loop = replace(
            exp,
            params=(*exp.params, *params),
            inits=(*exp.inits, *starts),
            body=Body(tuple(stms), (*body.results, *written)),
        )
        b.bind((*stm.vars, *ends), loop)
        return list(b.stms), [*self._own(exp.bound), *ends]

    def _own(self, a: Atom) -> list[Atom]:
        """What has to be recorded to have it again."""
        return [a] if a in self.local else []

    def _record_if(self, stm: Stm, exp: If, step: Step) -> tuple[Stm, list[Atom]]:
        arms = [self._record(arm, steps) for arm, steps in zip((exp.then, exp.orelse), step.arms, strict=True)]
        types = [[a.type for a in record] for _, record in arms]
        bodies = []
        for which, (arm, record) in enumerate(arms):
            b = Builder(stm.span)
            for s in arm.stms:
                b.add(s)
            other = [_blank(b, t) for t in types[1 - which]]
            mine = [*record, *other] if which == 0 else [*other, *record]
            bodies.append(Body(tuple(b.stms), (*arm.results, *mine)))
        vars = [Var("old", t) for t in (*types[0], *types[1])]
        new = Stm((*stm.vars, *vars), If(exp.cond, bodies[0], bodies[1]), stm.span)
        return new, [*self._own(exp.cond), *vars]

    def _places(self, axes: Sequence[Axis]) -> list[Atom]:
        """Positions that depend on values of the iteration."""
        atoms = [a.index if isinstance(a, At) else a.start for a in axes]
        return [a for a in atoms if a in self.local]

    # -- backwards

    def restore(self, b: Builder, array: Var, record: Sequence[Atom], index: Var) -> Var:
        """The array as it was before the iteration of this index."""
        rest = list(record)
        self.names = Substitution({self.index: index}, refresh=True)
        self._run_again(b, self.body)
        return self._restore(b, array, self._split(self.steps, rest))

    def _run_again(self, b: Builder, body: int) -> None:
        for stm in self._needed(body):
            b.add(self.names.stm(stm))

    def _needed(self, body: int) -> list[Stm]:
        """Of the statements that may run again, those that positions depend on."""
        wanted = {x for s in self.steps for x in _positions(s)}
        wanted |= {a for stms in self.again.values() for s in stms if isinstance(s.exp, Apply) for a in s.exp.args}
        found: list[Stm] = []
        for stm in reversed(self.again[body]):
            if stm.vars[0] in wanted:
                found.append(stm)
                assert isinstance(stm.exp, Apply)
                wanted.update(a for a in stm.exp.args if isinstance(a, Var))
        return found[::-1]

    def _split(self, steps: Sequence[Step], rest: list[Atom]) -> list[Recorded]:
        """The record, step by step."""
        found: list[Recorded] = []
        for step in steps:
            exp = step.stm.exp
            if isinstance(exp, Update):
                mine = [rest.pop(0) for _ in range(1 + len(self._places(exp.axes)))]
                found.append(Recorded(step, mine, []))
            elif isinstance(exp, For):
                width = len(self._own(exp.bound)) + self._width(step.arms[0])
                found.append(Recorded(step, [rest.pop(0) for _ in range(width)], []))
            else:
                assert isinstance(exp, If)
                mine = [rest.pop(0) for _ in self._own(exp.cond)]
                found.append(Recorded(step, mine, [self._split(arm, rest) for arm in step.arms]))
        return found

    def _width(self, steps: Sequence[Step]) -> int:
        """How many values the record of these steps has."""
        total = 0
        for step in steps:
            exp = step.stm.exp
            if isinstance(exp, Update):
                total += 1 + len(self._places(exp.axes))
            else:
                total += sum(self._width(arm) for arm in step.arms)
                total += len(self._own(_decider(exp)))
        return total

    def _restore(self, b: Builder, array: Var, steps: list[Recorded]) -> Var:
        for s in reversed(steps):
            exp, record = s.step.stm.exp, s.record
            if isinstance(exp, Update):
                places = iter(record[1:])
                axes = [self._placed(a, places) for a in exp.axes]
                array = b.update(array, axes, record[0])
                continue
            if isinstance(exp, For):
                array = self._restore_for(b, array, exp, s)
                continue
            assert isinstance(exp, If)
            bodies = []
            for arm in s.arms:
                with b.region() as stms:
                    end = self._restore(b, array, arm)
                bodies.append(Body(tuple(stms), (end,)))
            cond = record[0] if record else self.names.atom(exp.cond)
            array = b.bind([Var(array.name, array.type)], If(cond, bodies[0], bodies[1]))[0]
        return array

    def _restore_for(self, b: Builder, array: Var, exp: For, s: Recorded) -> Var:
        """Its iterations backwards."""
        step, before = Var("j", I64), Var(array.name, array.type)
        own = len(self._own(exp.bound))
        bound = s.record[0] if own else self.names.atom(exp.bound)
        with b.region() as stms:
            last = b.let(I64, Apply("sub", (bound, i64(1))), "last")
            index = b.let(I64, Apply("sub", (last, step)), exp.index.name)
            self.names.map[exp.index] = index
            self._run_again(b, id(exp.body))
            logs = [r for r in s.record[own:] if isinstance(r, Var)]
            rest: list[Atom] = [b.index(log, (At(index), *full_axes(log.type.shape[1:]))) for log in logs]
            after = self._restore(b, before, self._split(s.step.arms[0], rest))
        loop = For(step, bound, (before,), (array,), Body(tuple(stms), (after,)))
        return b.bind([Var(array.name, array.type)], loop)[0]

    def _placed(self, axis: Axis, places: Iterator[Atom]) -> Axis:
        index = axis.index if isinstance(axis, At) else axis.start
        index = next(places) if index in self.local else self.names.atom(index)
        return At(index, axis.wrap) if isinstance(axis, At) else replace(axis, start=index)

    @property
    def possible(self) -> bool:
        """Whether lengths and steps of what is overwritten are known outside of the iteration."""
        return all(self._fixed(s) for s in self.steps)

    def unknown(self, steps: Sequence[Step] | None = None) -> list[For]:
        """Loops whose bounds are not known in front of the loop around."""
        found: list[For] = []
        for step in self.steps if steps is None else steps:
            if isinstance(step.stm.exp, For) and step.stm.exp.bound in self.varying:
                found.append(step.stm.exp)
            for arm in step.arms:
                found += self.unknown(arm)
        return found

    def _fixed(self, step: Step) -> bool:
        exp = step.stm.exp
        if not isinstance(exp, Update):
            return all(self._fixed(s) for arm in step.arms for s in arm)
        ranges = [a for a in exp.axes if isinstance(a, Range)]
        return not any(x in self.varying for a in ranges for x in (a.length, a.step))


def _positions(step: Step) -> set[Atom]:
    exp = step.stm.exp
    if isinstance(exp, Update):
        return {a.index if isinstance(a, At) else a.start for a in exp.axes}
    return {_decider(exp), *(x for arm in step.arms for s in arm for x in _positions(s))}


def _decider(exp: Exp) -> Atom:
    """What says which steps of a branch or a loop are taken."""
    assert isinstance(exp, If | For)
    return exp.cond if isinstance(exp, If) else exp.bound


def _blank(b: Builder, type: Type) -> Atom:
    if type.shape:
        return b.full(type.shape, None, type.dtype, "blank")
    return zero_of(type.dtype)


def _bound(body: Body) -> set[Var]:
    found = {v for s in all_stms(body) for v in s.vars}
    for s in all_stms(body):
        if isinstance(s.exp, For | While):
            found.update(s.exp.params)
    return found


def _indices(steps: Sequence[Step]) -> list[Var]:
    """Of the loops among the steps."""
    own = [s.stm.exp.index for s in steps if isinstance(s.stm.exp, For)]
    return own + [v for s in steps for arm in s.arms for v in _indices(arm)]
