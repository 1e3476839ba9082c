"""What a memory budget leaves for the backward pass of loops, call by call.

A function whose derivatives have a budget has a hidden argument: the bytes that loops may keep. `Budget` finds it
before a call, from the outline of the program, whose footprint depends on the plans that the rest of the budget allows.
The plans are the largest for which the whole call stays below the budget; where no plan does, but the leanest one
without the results of the call, it is that; so it is where no loop keeps anything. Else RecoveryError says how much it
takes. Where some sizes are not known beforehand (lengths that show when it runs), loops may keep what arrays of known
sizes leave of the budget. Other arrays of less than `SMALL` bytes in all do not count: that is less than pages and
threads take anyway.
"""

from __future__ import annotations

import math
from collections.abc import Callable, Iterator, Sequence
from dataclasses import dataclass
from typing import Any

from tapeless.errors import RecoveryError
from tapeless.ir.span import Span
from tapeless.ir.types import Var
from tapeless.lower.footprint import Footprint, Outline, footprint
from tapeless.lower.ir.loopir import Site

REMEMBERED = 64  # calls with other numbers
TRIES = 24
MOST = 2**60
SMALL = 2**16
MORE, STEP = 16, 1.25


@dataclass(frozen=True)
class Refused:
    """The bytes that it takes, and the error site of a loop, if one keeps anything."""

    need: int
    site: int | None


class Budget:
    """`inputs` are the variables of sizes and parameters, the hidden one last."""

    def __init__(
        self,
        first: int,
        memory: int,
        outline: Outline,
        inputs: Sequence[Var],
        threads: int,
        sites: Sequence[Site],
        where: Callable[[], Span],
    ) -> None:
        self.where = where  # what the call is, for errors
        self.more = first - memory  # the argument is for the first budget, the limit is the smallest one
        self.memory, self.outline, self.inputs, self.threads, self.sites = memory, outline, inputs, threads, sites
        self.limit = memory + SMALL
        self.decides = [v in outline.needed for v in inputs[:-1]]
        self.known: dict[tuple[Any, ...], int | Refused] = {}

    def room(self, numbers: Sequence[Any]) -> int:
        """For sizes and parameters in order, None for arrays."""
        key = tuple(x if decides else None for x, decides in zip(numbers, self.decides, strict=True))
        found = self.known.get(key)
        if found is None:
            if len(self.known) >= REMEMBERED:
                self.known.clear()
            found = self.known[key] = self._search(key)
        if isinstance(found, Refused):
            raise self._error(found)
        return found

    def _look(self, numbers: Sequence[Any], room: int) -> Footprint:
        """The call, if loops may keep so much."""
        values = {v: x for v, x in zip(self.inputs, (*numbers, room + self.more), strict=True) if x is not None}
        return footprint(self.outline, values, self.threads)

    def _search(self, numbers: Sequence[Any]) -> int | Refused:
        room = enough = self.memory
        seen = self._look(numbers, room)
        if seen.peak is None:
            least = self._look(numbers, 0).at_least - SMALL
            return min(room, room - least) + self.more if least <= room else Refused(least, seen.refused)
        if not self.outline.budgets:  # no loop keeps anything
            need = seen.peak - (seen.results or 0) - SMALL
            return room + self.more if need <= self.memory else Refused(need, None)
        for _ in range(TRIES):
            if seen.refused is not None or seen.peak is None:
                break
            if seen.peak <= self.limit:
                return room + self.more
            enough, room = room, max(0, room - (seen.peak - self.limit))
            seen = self._look(numbers, room)
        return self._leanest(numbers, room, enough)

    def _leanest(self, numbers: Sequence[Any], little: int, enough: int) -> int | Refused:
        """`little` is known to be refused, or does not help either."""
        refused = self._look(numbers, little).refused
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
            return enough + self.more
        need, room = min(self._needs(numbers, enough))
        if need <= self.memory:
            return room + self.more
        return Refused(need, min(self.outline.budgets) if refused is None else refused)

    def _needs(self, numbers: Sequence[Any], enough: int) -> Iterator[tuple[int, int]]:
        """What a call needs if loops may keep as much as is enough, or more: that may save temporary arrays."""
        for k in range(MORE):
            room = math.ceil(enough * STEP**k)
            seen = self._look(numbers, room)
            if seen.refused is None and seen.peak is not None and seen.results is not None:
                yield max(enough, seen.peak - seen.results - SMALL), room

    def _error(self, found: Refused) -> RecoveryError:
        span = self.where() if found.site is None else self.sites[found.site].span
        return RecoveryError(
            f"the backward pass needs at least {found.need} bytes, and the memory budget is {self.memory}",
            code="TP305",
            file=span.file,
            line=span.line,
            column=span.column,
            end_line=span.end_line,
            end_column=span.end_column,
        )
