"""Arrays that a loop updates in place: a log of the cells that an iteration overwrites, and how to put them back.

`Log` takes the steps of an array through one iteration (`ad.recovery.updates`). `ad.recovery.by.recording` gives the
body with the overwritten values, and what is needed to find their places again, as further results; `restore` undoes
the iteration, given those.

Note [Stacks]
What an iteration overwrites by single updates, and by loops whose bounds are known in front of the loop, is as much in
each of them: the record of an iteration has a slot. Loops and slices whose lengths differ from iteration to iteration
push what they overwrite on a stack, and the record says where that begins. A stack is an array that the forward loop
carries, as long as all of it is: `ad.recovery.by.counting`. Loops within such a loop have stacks of their own, if their
lengths vary.
"""

from __future__ import annotations

from collections.abc import Callable, Iterator, Sequence
from dataclasses import dataclass

from tapeless.ad.recovery.updates import Step, cells_of, steps_within
from tapeless.ir.builder import Builder, full_axes, indexed_type
from tapeless.ir.core import Apply, At, Axis, Body, For, If, Range, Stm, Update, While
from tapeless.ir.types import I64, Atom, Dim, Type, Var, atom_dim, dim_atom, i64
from tapeless.ir.walk import Substitution, all_stms


@dataclass(frozen=True)
class Stack:
    """Of a step that runs more or less often. `cells` is its length, to be bound in front of the loop: `total`, unless
    another way is taken. At `most` so many are of one iteration.
    """

    cells: Var
    total: Atom
    most: Atom
    top: Var  # how many are on it
    arrays: list[Var]

    @property
    def types(self) -> list[Type]:
        """Of one cell."""
        return [a.type.row() for a in self.arrays]

    @property
    def carried(self) -> list[Var]:
        return [self.top, *self.arrays]


@dataclass(frozen=True)
class Recorded:
    """A step with its part of a record."""

    step: Step
    record: list[Atom]
    arms: list[list[Recorded]]


class Log:
    """The record of one iteration for one array."""

    def __init__(
        self, body: Body, steps: Sequence[Step], params: set[Var], index: Var, size: Callable[[Atom], Dim]
    ) -> None:
        """Positions other than the loop's `index` that an iteration makes, or that it carries, are recorded too. `size`
        gives the bound of a loop as a size, in front of the loop.
        """
        self.steps, self.index, self.size = steps, index, size
        self.sizes: dict[Atom, Dim] = {}
        self.stacks: dict[int, Stack] = {}  # by statement: Note [Stacks]
        self.local = (_bound(body) | params) - {index}
        self.varying = frozenset({*self.local, index, *_indices(steps)})
        self.again: dict[int, list[Stm]] = {}  # by body: positions that follow from indices are computed again
        self._learn(body, steps)
        self.body = id(body)
        self.names = Substitution({})
        self.read: dict[int, Sequence[Var]] = {}  # in the backward pass: their arrays

    def _learn(self, body: Body, steps: Sequence[Step]) -> None:
        """Which statements can run again in the backward pass, so that their results need not be recorded."""
        found = self.again.setdefault(id(body), [])
        for stm in body.stms:
            if isinstance(stm.exp, Apply) and not any(a in self.local for a in stm.exp.args):
                self.local -= set(stm.vars)
                found.append(stm)
        self._learn_loops(steps)

    def _learn_loops(self, steps: Sequence[Step]) -> None:
        for step in steps:
            if isinstance(step.stm.exp, (For, While)):
                self._learn(step.stm.exp.body, step.arms[0])
            else:
                for arm in step.arms:
                    self._learn_loops(arm)

    # -- what varies

    def uneven(self) -> list[Step]:
        """The steps whose lengths are not known in front of the loop around."""
        return [s for s in steps_within(self.steps) if self._varies(s)]

    def _varies(self, step: Step) -> bool:
        match step.stm.exp:
            case For(bound=bound):
                return bound in self.varying
            case Update(axes=axes):
                return any(isinstance(a, Range) and a.length in self.varying for a in axes)
        return isinstance(step.stm.exp, While)

    def stack(self, counts: Sequence[tuple[Atom, Atom]]) -> None:
        """Makes the stacks of the uneven steps, given how often each runs: in all, and at most in an iteration."""
        for step, (total, most) in zip(self.uneven(), counts, strict=True):
            cells = Var("cells", I64)
            arrays = [Var("old", Type(t.dtype, (cells, *t.shape))) for t in self._cell(step)]
            self.stacks[id(step.stm)] = Stack(cells, total, most, Var("top", I64), arrays)

    def _cell(self, step: Step) -> list[Type]:
        """What its stack has cells of."""
        if isinstance(step.stm.exp, Update):
            return [Type(step.stm.exp.array.type.dtype)]
        return self.types(step.arms[0])

    def types(self, steps: Sequence[Step]) -> list[Type]:
        """Of the record of these steps."""
        found: list[Type] = []
        for step in steps:
            match step.stm.exp:
                case Update(array=array, axes=axes):
                    found.append(I64 if self._varies(step) else indexed_type(array.type, axes))
                    found += [I64 for _ in self.places(axes)]
                case For(bound=bound):
                    found += [I64 for _ in self.own(bound)]
                    inner = [I64] if self._varies(step) else self.rows(bound, step)
                    found += inner
                case While():
                    found += [I64, I64]
                case If(cond=cond):
                    found += [a.type for a in self.own(cond)]
                    found += [t for arm in step.arms for t in self.types(arm)]
        return found

    def rows(self, bound: Atom, step: Step) -> list[Type]:
        if bound not in self.sizes:
            self.sizes[bound] = self.size(bound)
        length = self.sizes[bound]
        return [Type(t.dtype, (length, *t.shape)) for t in self.types(step.arms[0])]

    def own(self, a: Atom) -> list[Atom]:
        """What has to be recorded to have it again."""
        return [a] if a in self.local else []

    def places(self, axes: Sequence[Axis]) -> list[Atom]:
        """Positions that depend on values of the iteration."""
        return [a for axis in axes for a in _parts(axis) if a in self.local]

    def depth(self) -> int:
        """How many lengths that are not constants multiply to the number of cells that an iteration overwrites, at the
        most.
        """
        return max((self._depth(s) for s in self.steps), default=0)

    def _depth(self, step: Step) -> int:
        match step.stm.exp:
            case Update(axes=axes):
                return sum(isinstance(a, Range) and isinstance(a.length, Var) for a in axes)
            case For(bound=bound):
                own = isinstance(bound, Var)
            case _:
                own = isinstance(step.stm.exp, While)
        return own + max((self._depth(s) for arm in step.arms for s in arm), default=0)

    # -- backwards

    def restore(
        self,
        b: Builder,
        array: Var,
        record: Sequence[Atom],
        index: Var,
        stacks: Sequence[Sequence[Var]],
        count: int | None = None,
    ) -> Var:
        """The array as it was before the iteration of this index, given what it is after all its steps, or the first
        `count`. `stacks`: the arrays of each.
        """
        self.names = Substitution({self.index: index}, refresh=True)
        self.read = dict(zip(self.stacks, stacks, strict=True))
        self._run_again(b, self.body)
        return self._restore(b, array, self._split(self.steps, list(record))[:count])

    def bind_trips(self, b: Builder, trips: Var, record: Sequence[Atom], step: int) -> None:
        """How often the `while` loop of this step went around."""
        first, end = self._split(self.steps, list(record))[step].record
        b.bind([trips], Apply("sub", (end, first)))

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
            if isinstance(step.stm.exp, If):
                mine = [rest.pop(0) for _ in self.own(step.stm.exp.cond)]
                found.append(Recorded(step, mine, [self._split(arm, rest) for arm in step.arms]))
            else:
                found.append(Recorded(step, [rest.pop(0) for _ in self.types([step])], []))
        return found

    def _restore(self, b: Builder, array: Var, steps: list[Recorded]) -> Var:
        for s in reversed(steps):
            match s.step.stm.exp:
                case Update() as exp:
                    array = self._restore_update(b, array, exp, s)
                case For() as exp:
                    own = len(self.own(exp.bound))
                    bound = s.record[0] if own else self.names.atom(exp.bound)
                    array = self._restore_loop(b, array, bound, s, s.record[own:])
                case While():
                    first, end = s.record
                    bound = b.let(I64, Apply("sub", (end, first)), "count")
                    array = self._restore_loop(b, array, bound, s, [first])
                case If(cond=cond):
                    bodies = []
                    for arm in s.arms:
                        with b.region() as stms:
                            end = self._restore(b, array, arm)
                        bodies.append(Body(tuple(stms), (end,)))
                    cond = s.record[0] if s.record else self.names.atom(cond)
                    array = b.bind([Var(array.name, array.type)], If(cond, bodies[0], bodies[1]))[0]
        return array

    def _restore_update(self, b: Builder, array: Var, exp: Update, s: Recorded) -> Var:
        places = iter(s.record[1:])
        axes = [self._placed(a, places) for a in exp.axes]
        old = s.record[0]
        if id(s.step.stm) in self.stacks:
            (stack,) = self.read[id(s.step.stm)]
            lengths = [a.length for a in axes if isinstance(a, Range)]
            part = b.index(stack, [Range(old, atom_dim(cells_of(b, lengths)), i64(1))])
            old = b.reshape(part, lengths)
        return b.update(array, axes, old)

    def _restore_loop(self, b: Builder, array: Var, bound: Atom, s: Recorded, record: Sequence[Atom]) -> Var:
        """Its iterations backwards."""
        exp = s.step.stm.exp
        assert isinstance(exp, (For, While))
        step, before = Var("j", I64), Var(array.name, array.type)
        with b.region() as stms:
            last = b.let(I64, Apply("sub", (bound, i64(1))), "last")
            index = b.let(I64, Apply("sub", (last, step)), "i")
            if isinstance(exp, For):
                self.names.map[exp.index] = index
            self._run_again(b, id(exp.body))
            logs: Sequence[Atom] = self.read.get(id(s.step.stm), record)
            place = index
            if id(s.step.stm) in self.stacks:
                place = b.let(I64, Apply("add", (record[0], index)), "place")
            rest: list[Atom] = [
                b.index(log, (At(place), *full_axes(log.type.shape[1:]))) for log in logs if isinstance(log, Var)
            ]
            after = self._restore(b, before, self._split(s.step.arms[0], rest))
        loop = For(step, bound, (before,), (array,), Body(tuple(stms), (after,)))
        return b.bind([Var(array.name, array.type)], loop)[0]

    def _placed(self, axis: Axis, places: Iterator[Atom]) -> Axis:
        found = [next(places) if a in self.local else self.names.atom(a) for a in _parts(axis)]
        return At(found[0], axis.wrap) if isinstance(axis, At) else Range(found[0], atom_dim(found[1]), found[2])


def _parts(axis: Axis) -> list[Atom]:
    """What says which positions of an axis are meant."""
    return [axis.index] if isinstance(axis, At) else [axis.start, dim_atom(axis.length), axis.step]


def _positions(step: Step) -> set[Atom]:
    """What says which cells a step overwrites, and which steps are taken."""
    match step.stm.exp:
        case Update(axes=axes):
            return {a for axis in axes for a in _parts(axis)}
        case For(bound=decider) | If(cond=decider):
            own = {decider}
        case _:
            own = set()
    return own.union(*(_positions(s) for arm in step.arms for s in arm))


def _bound(body: Body) -> set[Var]:
    found = {v for s in all_stms(body) for v in s.vars}
    for s in all_stms(body):
        if isinstance(s.exp, (For, While)):
            found.update(s.exp.params)
    return found


def _indices(steps: Sequence[Step]) -> list[Var]:
    """Of the loops among the steps."""
    return [s.stm.exp.index for s in steps_within(steps) if isinstance(s.stm.exp, For)]
