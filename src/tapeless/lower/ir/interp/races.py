"""Races of a launch: two of its threads that touch one cell, one of them writing, are in no order.

`Races` is told of each access, and who makes it; combining in a cell (`Atomic`) is in order with the same, and with
nothing else. Threads of one block are in order where a barrier is between.
"""

from __future__ import annotations

from dataclasses import dataclass, replace
from enum import IntEnum


class Access(IntEnum):
    read = 0
    write = 1
    combine = 2


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
            return before if before.iteration == SEVERAL else Who(SEVERAL)
        if self.in_order_with(before):
            return self
        return before if before.thread == SEVERAL else replace(self, thread=SEVERAL)


class Races:
    def __init__(self) -> None:
        self.who = Who()
        self.seen: dict[tuple[int, int], list[Who | None]] = {}  # by memory and cell: by whom, for each kind of access
        self.memory: dict[int, object] = {}  # stays alive: another one must not have its id

    def meets(self, memory: object, cell: int, access: Access) -> bool:
        """Notes an access; whether another thread has made one that it is in no order with."""
        who, key = self.who, (id(memory), cell)
        known = self.seen.get(key)
        if known is None:
            self.memory[id(memory)] = memory
            known = self.seen[key] = [None, None, None]
        met = any(
            by is not None and (a != access or a == Access.write) and not who.in_order_with(by)
            for a, by in enumerate(known)
        )
        before = known[access]
        known[access] = who if before is None else who.joined(before)
        return met
