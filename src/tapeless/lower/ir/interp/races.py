"""Races of a grid: two iterations of a launch that touch one cell, one of them writing, are in no order.

`Races` is told of each access, and who makes it; combining in a cell (`Atomic`) is in order with the same, and with
nothing else.
"""

from __future__ import annotations

from enum import Enum, auto


class Access(Enum):
    read = auto()
    write = auto()
    combine = auto()


SEVERAL = -1  # iterations


class Races:
    def __init__(self) -> None:
        self.iteration = 0
        self.seen: dict[tuple[int, int], dict[Access, int]] = {}  # by memory and cell: by whom
        self.memory: dict[int, object] = {}  # stays alive: another one must not have its id

    def meets(self, memory: object, cell: int, access: Access) -> bool:
        """Notes an access; whether another iteration has made one that it is in no order with."""
        self.memory[id(memory)] = memory
        known = self.seen.setdefault((id(memory), cell), {})
        others = {a for a, by in known.items() if by != self.iteration}
        known[access] = self.iteration if known.get(access, self.iteration) == self.iteration else SEVERAL
        match access:
            case Access.read:
                return bool(others & {Access.write, Access.combine})
            case Access.combine:
                return bool(others & {Access.read, Access.write})
            case Access.write:
                return bool(others)
