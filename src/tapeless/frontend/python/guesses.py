"""A guess of what goes around a loop, and one attempt to compile the loop under it.

What the guess did not allow for raises `Retry`, or `Becomes`. Used by `loop_trials` and what takes part in its trials.
"""

from __future__ import annotations

from collections.abc import Callable, Iterable
from dataclasses import dataclass, field

from tapeless.errors import CompileError
from tapeless.frontend.python.growth import Growth
from tapeless.frontend.python.list_kinds import ListKind
from tapeless.frontend.python.merge import TRUE
from tapeless.frontend.state.context import Context
from tapeless.frontend.state.values import Box, Cell, Key, State, Value
from tapeless.ir.types import Atom, DType, Var

Place = tuple[Key, int]  # a number or an array of a carried value: its name, its position there


@dataclass(eq=False)
class Slot:
    """One carried variable: its parameter, the value before the loop, how to read it at the end of the body."""

    param: Var
    init: Atom
    result: Atom | None = None


@dataclass(eq=False)
class Carried:
    """The guess of one attempt."""

    cells: list[Cell] = field(default_factory=list)  # arrays written in place
    dtypes: dict[Place, tuple[DType, bool]] = field(default_factory=dict)  # widened scalars
    fresh: dict[Key, Value] = field(default_factory=dict)  # first bound inside: shape of the value, as seen in a trial
    stale: dict[Cell, str] = field(default_factory=dict)  # what an iteration leaves unreadable for the next one
    may_be: dict[Place, set[Cell]] = field(default_factory=dict)  # Note [Arrays of the next iteration]
    moved: set[Place] = field(
        default_factory=set
    )  # arrays of arguments and lists, in tuples and objects, that become others
    scattered: set[Place] = field(default_factory=set)  # arrays that an iteration leaves so: Note [Memory order]
    exchanged: tuple[Key, ...] = ()  # names that hand their arrays around: Note [Exchanged arrays]
    readonly: dict[Place, str] = field(default_factory=dict)  # arrays that an iteration leaves so
    lists: dict[Key, Value] = field(default_factory=dict)  # changed in the body: what is in them before
    unsure: dict[Key, set[Box]] = field(default_factory=dict)  # names of lists that change, and which they may be
    moving: set[Key] = field(default_factory=set)  # names of lists that nothing else refers to, and that become others
    growing: dict[Key, Growth] = field(default_factory=dict)  # lists that get longer: Note [Lists that grow]
    kinds: dict[Key, tuple[DType, bool]] = field(default_factory=dict)  # lists that get numbers of another type
    gathered: set[Key] = field(default_factory=set)  # lists of numbers that are written where the position is not known
    nones: dict[Key, Value] = field(default_factory=dict)  # names that are None before the loop: what they are in it
    may_be_none: set[Key] = field(default_factory=set)  # names that have a value before it, and may be None in it
    shifted: set[Place] = field(default_factory=set)  # those that may become a part of themselves
    as_arrays: dict[Key, ListKind] = field(default_factory=dict)  # names of lists that become others
    last: set[Key] = field(default_factory=set)  # names that only the last iteration binds: Note [The last iteration]
    resized: dict[Place, set[int]] = field(default_factory=dict)  # arrays that change their size, in these axes

    @property
    def stay(self) -> set[Key]:
        """Lists that are one array during the loop, of which no more than the numbers change."""
        return self.gathered | self.kinds.keys()


@dataclass(frozen=True)
class Live:
    """Names of a function that somebody reads: in the next iteration before it binds them, and after the loop."""

    frame: int
    at_head: frozenset[str]
    at_end: frozenset[str]

    def again(self, key: Key) -> bool:
        return key[0] == self.frame and key[1] in self.at_head

    def after(self, key: Key) -> bool:
        return key[0] == self.frame and (key[1] in self.at_end or key[1].startswith("<"))


class Retry(Exception):
    """The guess was too small."""


def learn(steps: Iterable[Callable[[], None]]) -> None:
    """Takes all steps, so that one attempt finds what there is to be found: `Retry` if one did, since what failed in others
    may come of the guess.
    """
    again, failure = False, None
    for step in steps:
        try:
            step()
        except Retry:
            again = True
        except (CompileError, Becomes) as problem:
            failure = failure or problem
    if again:
        raise Retry
    if failure is not None:
        raise failure


class Becomes(Exception):
    """A name is something else before the loop than from the first iteration on: Note [The first iteration]"""

    def __init__(
        self, key: Key, kind: str, before: str, none: bool = False, refusal: CompileError | None = None
    ) -> None:
        """`none`: it is None before. `refusal`: what to say if that does not help."""
        super().__init__(key)
        self.key, self.kind, self.before, self.none, self.refusal = key, kind, before, none, refusal

    def reason(self, begun: int) -> str:
        """Why there have to be more than so many iterations."""
        more, fewer = ("two iterations", "after one") if begun else ("an iteration", "without one")
        text = f"'{self.key[1]}' is {self.kind} after {more} of this loop, and {self.before} {fewer}"
        return text if self.refusal is None else f"{text}: {self.refusal.hint.rstrip('.')}"


@dataclass(eq=False)
class Trial:
    """One attempt at a loop under a guess: the state before it, and the variables that go around."""

    ctx: Context
    before: State
    carried: Carried
    slots: list[Slot] = field(default_factory=list)
    runs: bool = False  # whether there is an iteration for sure
    may_begin_apart: bool = False  # whether the first iteration may come before the loop
    rooms: dict[Place, Atom] = field(
        default_factory=dict
    )  # for arrays that change their size: Note [Sizes that change]
    searches: bool = False  # for how much room they need
    fits: Atom = TRUE  # whether there was enough
    needed: dict[Place, Atom] = field(default_factory=dict)  # after a search

    def slot(self, init: Atom, name: str) -> Slot:
        slot = Slot(Var(name, init.type), init)
        self.ctx.firsts[slot.param] = init
        self.slots.append(slot)
        return slot
