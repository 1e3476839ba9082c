"""Races of a launch: two of its threads that touch one cell, one of them writing, are in no order.

`Races` is told of each access, and who makes it; combining in a cell (`Atomic`) is in order with the same, and with
nothing else. Threads of one block are in order where a barrier is between.
"""

from __future__ import annotations

from dataclasses import dataclass, replace
from enum import Enum, auto


class Access(Enum):
    read = auto()
    write = auto()
    combine = auto()


SEVERAL = -1  # iterations, or threads


@dataclass(frozen=True)
class Who:
    """Of an iteration of the grid a thread, so many barriers after its start."""

    iteration: int = 0
    thread: int = 0
    barriers: int = 0

    def in_order_with(self, before: Who) -> bool:
        if before.iteration != self.iteration:
            return False
        return before.barriers < self.barriers or before.thread == self.thread

    def joined(self, before: Who) -> Who:
        """All of whom one must be in order with."""
        if before.iteration != self.iteration:
            return Who(SEVERAL)
        return self if self.in_order_with(before) else replace(self, thread=SEVERAL)


class Races:
    def __init__(self) -> None:
        self.who = Who()
        self.seen: dict[tuple[int, int], dict[Access, Who]] = {}  # by memory and cell: by whom
        self.memory: dict[int, object] = {}  # stays alive: another one must not have its id

    def meets(self, memory: object, cell: int, access: Access) -> bool:
        """Notes an access; whether another thread has made one that it is in no order with."""
        self.memory[id(memory)] = memory
        known = self.seen.setdefault((id(memory), cell), {})
        others = {a for a, by in known.items() if not self.who.in_order_with(by)}
        known[access] = self.who.joined(known.get(access, self.who))
        match access:
            case Access.read:
                return bool(others & {Access.write, Access.combine})
            case Access.combine:
                return bool(others & {Access.read, Access.write})
            case Access.write:
                return bool(others)
