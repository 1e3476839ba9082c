"""What a memory budget leaves for the backward pass of loops, call by call, and which code serves a call.

A function whose derivatives have a budget has a hidden argument: the bytes that loops may keep. `Budget` finds it
before a call, from the outline of the program, whose footprint depends on the plans that the rest of the budget allows.
The plans are the largest for which the whole call stays below the budget; where no plan does, but the leanest one
without the results of the call, it is that; so it is where no loop keeps anything. Else RecoveryError says how much it
takes. Where some sizes are not known beforehand (lengths that show when it runs), loops may keep what arrays of known
sizes leave of the budget. Other arrays of less than `SMALL` bytes in all do not count: that is less than pages and
threads take anyway.

Note [Programs for calls]
A program that could do with any room would hold every way of every loop. So there are several: each has the ways that
are taken with some room and numbers (`passes.tidy.assumed`), and its outline says for which others it is right, too.
They are made as the search comes to rooms for which there is none yet, and become machine code when a call takes them.
After `MOST_PROGRAMS` of them, or where the search goes over many rooms, one with all the ways is made.
"""

from __future__ import annotations

import math
import threading
from collections.abc import Callable, Iterator, Sequence
from dataclasses import dataclass, field, replace
from typing import Any

from tapeless.errors import RecoveryError
from tapeless.ir.span import Span
from tapeless.ir.types import Var
from tapeless.lower.footprint import Footprint, Outline, footprint
from tapeless.lower.ir.loopir import Site

REMEMBERED = 64  # calls with other numbers
TRIES = 48
MOST = 2**60
SMALL = 2**16
MORE, STEP = 16, 1.25
MOST_PROGRAMS = 4
Numbers = Sequence[Any]  # sizes and parameters in order, None for arrays


@dataclass(frozen=True)
class Refused:
    """The bytes that it takes, and the error site of a loop, if one keeps anything."""

    need: int
    site: int | None


@dataclass(eq=False)
class Program:
    """`inputs` are the variables of sizes and parameters, the hidden one last. `compiled` gives the code, `key` is that
    of the cache. `made_for` are the numbers of the call that it was made for, and its hidden argument.
    """

    outline: Outline
    inputs: Sequence[Var]
    sites: Sequence[Site]
    compiled: Callable[[], Any]
    key: str = ""
    made_for: tuple[Any, ...] = ()

    @property
    def serves_all(self) -> bool:
        return not self.outline.plans


Make = Callable[[Numbers, int | None], Program]  # for a call and the hidden argument; None: with all ways


class Missing(Exception):
    """There is no program for this room; None: for many of them."""

    def __init__(self, room: int | None) -> None:
        self.room = room


@dataclass
class Programs:
    """Of one specialisation."""

    make: Make
    made: list[Program] = field(default_factory=list)  # the one with all ways is not among them
    for_all: Program | None = None
    no_choice: bool = False  # one that was made for a call has all the ways there are
    lock: threading.RLock = field(default_factory=threading.RLock)

    def add(self, numbers: Numbers, room: int | None) -> None:
        program = self.make(numbers, room)
        if program.serves_all:
            self.for_all = program
            self.no_choice = self.no_choice or room is not None or not self.made
        else:
            self.made.append(replace(program, made_for=(*numbers, room)))

    @property
    def all(self) -> list[Program]:
        return self.made if self.for_all is None else [*self.made, self.for_all]


class Budget:
    def __init__(self, first: int, memory: int, programs: Programs, threads: int, where: Callable[[], Span]) -> None:
        self.where = where  # what the call is, for errors
        self.more = first - memory  # the argument is for the first budget, the limit is the smallest one
        self.memory, self.programs, self.threads = memory, programs, threads
        self.limit = memory + SMALL
        self.known: dict[tuple[Any, ...], tuple[Program, int] | Refused] = {}
        self.seen: dict[tuple[int, int], Footprint] = {}  # of the call that is looked at, by program and room

    def on(self, threads: int) -> Budget:
        """The same for so many threads."""
        return self if threads == self.threads else Budget(
            self.memory + self.more, self.memory, self.programs, threads, self.where
        )  # fmt: skip

    def key(self, numbers: Numbers) -> tuple[Any, ...]:
        """The numbers that programs depend on, None for others."""
        made = self.programs.all
        return tuple(x if any(p.inputs[k] in p.outline.needed for p in made) else None for k, x in enumerate(numbers))

    def find(self, numbers: Numbers) -> tuple[Program, int]:
        """What serves a call, and its hidden argument."""
        found = self.known.get(self.key(numbers))
        if found is None:
            with self.programs.lock:
                found = self._found(numbers)
        if isinstance(found, Refused):
            raise self._error(found)
        return found

    def _found(self, numbers: Numbers) -> tuple[Program, int] | Refused:
        self.seen.clear()
        while True:
            try:
                room = self._search(numbers)
                if isinstance(room, Refused):
                    found: tuple[Program, int] | Refused = self._enough(numbers, room)
                else:
                    found = self._program(numbers, room)[0], room + self.more
                break
            except Missing as missing:  # Note [Programs for calls]
                room_then = None if missing.room is None else missing.room + self.more
                self.programs.add(numbers, room_then)
        if len(self.known) >= REMEMBERED:
            self.known.clear()
        self.known[self.key(numbers)] = found
        return found

    def _enough(self, numbers: Numbers, refused: Refused) -> Refused:
        """With a need that is not refused in its turn: with another budget the search takes other ways."""
        for _ in range(TRIES):
            again = Budget(refused.need + self.more, refused.need, self.programs, self.threads, self.where)
            again.seen = self.seen
            found = again._search(numbers)
            if not isinstance(found, Refused) or found.need <= refused.need:
                break
            refused = found
        return refused

    def _program(self, numbers: Numbers, room: int, many: bool = False) -> tuple[Program, Footprint]:
        """What serves the call if loops may keep so much."""
        for program in () if many else self.programs.made:
            seen = self._at(program, numbers, room)
            if seen.fits or (seen.fits is None and program.made_for == (*numbers, room + self.more)):
                return program, seen
        enough = many or len(self.programs.made) >= MOST_PROGRAMS or self.programs.no_choice
        if not enough:
            raise Missing(room)
        if self.programs.for_all is None:
            raise Missing(None)
        return self.programs.for_all, self._at(self.programs.for_all, numbers, room)

    def _at(self, program: Program, numbers: Numbers, room: int) -> Footprint:
        seen = self.seen.get((id(program), room))
        if seen is None:
            given = zip(program.inputs, (*numbers, room + self.more), strict=True)
            seen = footprint(program.outline, {v: x for v, x in given if x is not None}, self.threads)
            self.seen[id(program), room] = seen
        return seen

    def _look(self, numbers: Numbers, room: int) -> Footprint:
        """For searches over many rooms."""
        return self._program(numbers, room, many=True)[1]

    def _search(self, numbers: Numbers) -> int | Refused:
        room = enough = self.memory
        program, seen = self._program(numbers, room)
        if seen.peak is None:
            return self._room_of_unknown(numbers, program, seen)
        if program.serves_all and not program.outline.budgets:  # no loop keeps anything
            need = seen.peak - (seen.results or 0) - SMALL
            return room if need <= self.memory else Refused(need, None)
        for _ in range(TRIES):
            if seen.refused is not None or seen.peak is None:
                break
            if seen.peak <= self.limit:
                return room
            # A loop may keep less than its room, and so may each part of a call: what is too much need not be all its.
            enough, room = room, max(room // 2, room - (seen.peak - self.limit))
            _, seen = self._program(numbers, room)
        return self._leanest(numbers, room, enough)

    def _room_of_unknown(self, numbers: Numbers, program: Program, seen: Footprint) -> int | Refused:
        """What arrays of known sizes leave. A program without all ways may need more than the leanest of them."""
        if not program.serves_all:
            room = min(self.memory, self.memory - (seen.at_least - SMALL))
            if room == self.memory or (room >= 0 and self._at(program, numbers, room).fits):
                return room
            seen = self._look(numbers, self.memory)
        least = self._look(numbers, 0).at_least - SMALL
        if least <= self.memory:
            return min(self.memory, self.memory - least)
        less = self._less(numbers, self.memory)
        return Refused(least, seen.refused) if less is None else less

    def _leanest(self, numbers: Numbers, little: int, enough: int) -> int | Refused:
        """`little` is known to be refused, or does not help either."""
        refused = self._look(numbers, little).refused
        if (less := self._less(numbers, little)) is not None:
            return less
        while (seen := self._look(numbers, enough)).refused is not None and enough < MOST:
            little, enough = enough, 2 * enough + 1
        while enough - little > 1:
            middle = (little + enough) // 2
            found = self._look(numbers, middle)
            if found.refused is None:
                enough, seen = middle, found
            else:
                little = middle
        if seen.peak is None or seen.results is None:
            return enough
        need, room = min(self._needs(numbers, enough))
        if need > self.memory:  # a program for such calls only may do with less
            need = min(need, self._need(self._program(numbers, room)[1], enough) or need)
        if need <= self.memory:
            return room
        return Refused(need, min(self.for_all.outline.budgets) if refused is None else refused)

    def _less(self, numbers: Numbers, room: int) -> int | None:
        """Less room that serves the call: what one loop does not keep may be enough for another."""
        while room > 0:
            room //= 2
            seen = self._look(numbers, room)
            need = self._need(seen, room)
            if need is None:
                need = room + max(0, seen.at_least - SMALL)
            if seen.refused is None and need <= self.memory:
                return room
        return None

    def _needs(self, numbers: Numbers, enough: int) -> Iterator[tuple[int, int]]:
        """What a call needs if loops may keep as much as is enough, or more: that may save temporary arrays."""
        for k in range(MORE):
            room = math.ceil(enough * STEP**k)
            seen = self._look(numbers, room)
            need = self._need(seen, enough)
            if seen.refused is None and need is not None:
                yield need, room

    def _need(self, seen: Footprint, enough: int) -> int | None:
        return None if seen.peak is None or seen.results is None else max(enough, seen.peak - seen.results - SMALL)

    @property
    def for_all(self) -> Program:
        """There is one when a call was refused."""
        assert self.programs.for_all is not None
        return self.programs.for_all

    def _error(self, found: Refused) -> RecoveryError:
        span = self.where() if found.site is None else self.for_all.sites[found.site].span
        return RecoveryError(
            f"the backward pass needs at least {found.need} bytes, and the memory budget is {self.memory}",
            code="TP305",
            file=span.file,
            line=span.line,
            column=span.column,
            end_line=span.end_line,
            end_column=span.end_column,
        )
