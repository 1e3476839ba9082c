"""Arrays of another size after each iteration: `y = np.append(y, v)`, `y = y[y > 0]`, `frontier = further`.

`changes` says whether a size is another one after an iteration, `Storage` carries such an array around a loop, and `rooms`
finds out how much room it needs. Used by `carried` and `loop_trials`.

Note [Sizes that change]
What goes around a loop has one size. So such an array goes around as storage of one size, of which it is a part, and its sizes
go around as numbers; so does where it begins, if an iteration may leave a part of it, as `y = y[1:]` does, which moves nothing. Nobody knows how much storage is needed before the loop has run: it runs with room for some
items, and when an array does not fit again with more, until one run comes to its end. What these runs change is forgotten,
but for the largest size. Then the loop is compiled as it is, with so much storage.

Sizes that might be equal are taken to be equal, which is tested when the loop runs: x = A @ x. Those of which a formula
says otherwise, n + 1 and n, or that only an iteration knows, change.
"""

from __future__ import annotations

from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass, field
from random import Random

import numpy as np

from tapeless.frontend.data import atoms
from tapeless.frontend.python.experiments import silent
from tapeless.frontend.python.guesses import Place, Retry, Slot, Trial
from tapeless.frontend.python.merge import TRUE
from tapeless.frontend.state.code_copies import Before
from tapeless.frontend.state.context import Context
from tapeless.frontend.state.values import Array, Reshaped, Step, Strided
from tapeless.ir.core import Apply, Body, Call, Range, While
from tapeless.ir.types import BOOL, I64, Atom, Const, Dim, DType, Type, Var, const, dim_atom, i64, zero_of

FIRST = 64  # items for which the first run has room
SAMPLES = 12
DIGITS = 1.0, 5.0  # of sizes that are drawn
STEPS = 40  # of a formula, one on another, that are looked at


# -- which sizes change


def changes(ctx: Context, before: Dim, after: Dim, known: set[Var]) -> bool:
    """Whether a size of before the loop is another one after an iteration. `known`: sizes of before."""
    first, second = _Formula(ctx, before), _Formula(ctx, after)
    constant = not (first.atoms or second.atoms)
    if second.of_call or (second.atoms <= known and not second.atoms & first.atoms and not constant):
        return False
    return any(_differ(first, second, Random(k)) for k in range(SAMPLES))


def _differ(first: _Formula, second: _Formula, rng: Random) -> bool:
    """Whether they give two numbers where they are computed of numbers that are drawn at random, the same for both."""
    drawn: dict[Var, Const] = {}
    try:
        return first.sample(drawn, rng) != second.sample(drawn, rng)
    except (ArithmeticError, ValueError):  # of numbers that do not go together: the root of a negative one, as a size
        return False


class _Formula:
    """How a size is computed, from what."""

    def __init__(self, ctx: Context, size: Dim) -> None:
        self.ctx, self.size = ctx, dim_atom(ctx.canon(size))
        self.steps: dict[Var, Apply] = {}
        self.atoms: set[Var] = set()
        self.of_call = False  # which does not say what sizes it gives
        self._visit(self.size, STEPS)

    def _visit(self, atom: Atom, steps: int) -> None:
        if not isinstance(atom, Var) or atom in self.steps or atom in self.atoms:
            return
        made = self.ctx.b.definition(atom)
        if isinstance(made, Apply) and steps:
            self.steps[atom] = made
            for a in made.args:
                self._visit(a, steps - 1)
        else:
            self.atoms.add(self._leaf(atom))
            self.of_call |= isinstance(made, Call)

    def _leaf(self, atom: Var) -> Var:
        """One of those that are known to be equal, unless that is computed."""
        found = self.ctx.canon(atom)
        return found if isinstance(found, Var) and self.ctx.b.definition(found) is None else atom

    def sample(self, drawn: dict[Var, Const], rng: Random) -> Const:
        """Its value, if what it is computed of were `drawn`, or is drawn here."""
        found: dict[Var, Const] = {}

        def value(atom: Atom) -> Const:
            if isinstance(atom, Const):
                return atom
            if (step := self.steps.get(atom)) is not None:
                if atom not in found:
                    found[atom] = self._computed(step, atom.type.dtype, [value(a) for a in step.args])
                return found[atom]
            leaf = self._leaf(atom)
            if leaf not in drawn:
                number = rng.random() < 0.5 if leaf.type.dtype is DType.bool else int(10 ** rng.uniform(*DIGITS))
                drawn[leaf] = const(number, leaf.type.dtype)
            return drawn[leaf]

        with np.errstate(all="ignore"):
            return value(self.size)

    def _computed(self, step: Apply, dtype: DType, args: Sequence[Const]) -> Const:
        is_convert = step.op == "convert"
        made = atoms.convert(self.ctx, args[0], dtype) if is_convert else atoms.apply(self.ctx, step.op, *args)
        assert isinstance(made, Const)
        return made


# -- what goes around


@dataclass(eq=False)
class Storage:
    """An array of a carried value, as a part of what goes around."""

    trial: Trial
    place: Place
    slot: Slot
    sizes: dict[int, Slot]  # of the axes that change
    count: Slot | None  # of items, if it is not the one size
    first: Slot | None  # where the array begins, if that changes
    needed: Slot | None  # by the largest of them so far, where that is looked for
    value: Array = field(init=False)

    @staticmethod
    def start(trial: Trial, place: Place, var: Var, axes: Sequence[int], name: str) -> Storage:
        """The array `var`, before the loop. `axes` change."""
        ctx, room = trial.ctx, trial.rooms[place]
        sizes = {k: trial.slot(ctx.size_atom(var.type.shape[k]), "n") for k in axes}
        first = _count(ctx, var.type.shape)
        if trial.searches:
            room = trial.rooms[place] = atoms.apply(ctx, "max", room, first)
        empty = ctx.b.full([ctx.atom_dim(room)], zero_of(var.type.dtype), var.type.dtype, "storage")
        slot = trial.slot(_stored(ctx, var, empty), name)
        needed = trial.slot(first, "needed") if trial.searches else None
        count = trial.slot(first, "count") if var.type.rank > 1 else None
        begins = trial.slot(i64(0), "first") if place in trial.carried.shifted else None
        return Storage(trial, place, slot, sizes, count, begins, needed)

    def seen(self, type: Type, mapping: Callable[[Var], Var]) -> tuple[Type, tuple[Step, ...]]:
        """The type of the array, and how it is seen in the storage."""
        shape = list(type.shape)
        for k, slot in self.sizes.items():
            shape[k] = mapping(slot.param)
        count = shape[0] if self.count is None else mapping(self.count.param)
        first = i64(0) if self.first is None else mapping(self.first.param)
        view: tuple[Step, ...] = (Strided((Range(first, count, i64(1)),), (0,)),)
        return type.with_shape(shape), view if self.count is None else (*view, Reshaped(tuple(shape)))

    def stays(self, new: Array) -> bool:
        """Whether the array is what it was, or a part of that, at the end of the body: then nothing is moved."""
        ctx = self.trial.ctx
        if new.cell is not self.value.cell:
            return False
        begins: Atom | None = None if self.first is None else self.first.param
        if new.view != self.value.view:
            match new.view:
                case (Strided(axes=(Range(start=found, step=Const(value=1)),), order=(0,)),):
                    begins = found
                case _:
                    return False
            if self.first is None and begins != i64(0):
                self.trial.carried.shifted.add(self.place)
                raise Retry
        self.slot.result = ctx.state.cells[new.cell]
        if self.first is not None:
            self.first.result = begins
        for slot in (self.count, self.needed):
            if slot is not None:
                slot.result = slot.param
        for k, slot in self.sizes.items():
            slot.result = ctx.size_atom(new.type.shape[k])
        return True

    def leave(self, var: Var) -> None:
        """At the end of the body: the array has these contents."""
        ctx, trial = self.trial.ctx, self.trial
        if self.first is not None:
            self.first.result = i64(0)
        for k, slot in self.sizes.items():
            slot.result = ctx.size_atom(var.type.shape[k])
        count = _count(ctx, var.type.shape)
        if self.count is not None:
            self.count.result = count
        old = ctx.state.cells[self.value.cell]
        fits = atoms.apply(ctx, "le", count, trial.rooms[self.place])
        if self.needed is None:
            ctx.check(fits, "IndexError", "this array is larger than when the loop ran to find out its size")
            self.slot.result = _stored(ctx, var, old)
            return
        trial.fits = atoms.logical_and(ctx, trial.fits, fits)
        self.needed.result = atoms.apply(ctx, "max", self.needed.param, count)
        with ctx.b.region() as there:
            stored = _stored(ctx, var, old)
        out = Var(self.slot.param.name, self.slot.param.type)
        ctx.b.if_(fits, Body(tuple(there), (stored,)), Body((), (old,)), [out])
        self.slot.result = out


def _count(ctx: Context, shape: Sequence[Dim]) -> Atom:
    count: Atom = i64(1)
    for d in shape:
        count = ctx.size_atom(d) if count == i64(1) else atoms.size_op(ctx, "mul", count, ctx.size_atom(d))
    return count


def _stored(ctx: Context, var: Var, storage: Var) -> Var:
    count = ctx.atom_dim(_count(ctx, var.type.shape))
    flat = var if var.type.rank == 1 else ctx.b.reshape(var, [count])
    return ctx.b.update(storage, [Range(i64(0), count, i64(1))], flat)


# -- how much room there must be


def rooms(ctx: Context, places: Sequence[Place], run: Callable[[Mapping[Place, Atom]], Trial]) -> dict[Place, Atom]:
    """How many items there are at each of these places, at most. `run` compiles the loop with so much room."""
    before = Before(ctx)
    tried = {place: Var("room", I64) for place in places}
    with ctx.part() as stms:
        trial = run(tried)
        next_rooms: list[Atom] = []
        for place in places:
            needed = trial.needed[place]
            more = atoms.apply(ctx, "max", tried[place], atoms.apply(ctx, "mul", needed, i64(2)))
            next_rooms.append(atoms.select(ctx, trial.fits, needed, more))
        again = atoms.logical_not(ctx, trial.fits)
    before.restore(ctx)
    tries = Var("again", BOOL)
    body = silent(ctx, Body(tuple(stms), (*next_rooms, again)))
    found = tuple(Var("room", I64) for _ in places)
    first = tuple(i64(FIRST) for _ in places)
    loop = While((*tried.values(), tries), (*first, TRUE), Body((), (tries,)), body)
    ctx.b.bind((*found, Var("again", BOOL)), loop)
    return dict(zip(places, found, strict=True))
