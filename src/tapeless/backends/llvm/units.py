"""Large modules in units, which LLVM works on at the same time, and while others are being written.

`Units` takes a module that is being written and gives modules that make the same program together: what each of them
becomes does not depend on how many threads there are.
"""

from __future__ import annotations

import re
from collections.abc import Callable, Sequence
from dataclasses import dataclass

from tapeless.backends.llvm.writer import Defined, Module

UNIT = 400  # lines of a unit that is worth a module of its own
MOST = 12  # units that are made at the end
EARLY = 2000  # lines of complete functions that LLVM begins with before the others are written
NODE = re.compile(r"!(\d+)")
GLOBAL = re.compile(r'@(?:[\w.$-]+|"[^"]*")')


@dataclass(frozen=True)
class Unit:
    text: str
    large: bool  # whether the program is: Note [Pieces]
    polls: bool  # may hold loops that answer Ctrl-C: Note [Polls]
    plain: bool  # Note [Code that runs once]


class Units:
    """`early` is given the units that are made before the module is complete."""

    def __init__(self, module: Module, early: Callable[[Unit], None]) -> None:
        self.module = module
        self.early = early
        self.large = False
        self.made: list[Unit] = []
        self.taken = 0  # functions that are in units
        self.lines = 0  # of the others
        module.completed = self.completed

    def completed(self, function: Defined) -> None:
        self.lines += function.length
        if self.lines < EARLY or not function.internal:  # the entry is the last one
            return
        group = self.module.functions[self.taken :]
        mentioned = _mentions(group)
        if not mentioned <= self.module.names():
            return  # a function that has yet to be written
        self.early(self._add(group, mentioned, {f.name for f in group}))
        self.taken, self.lines = len(self.module.functions), 0

    def finish(self) -> tuple[Unit, ...]:
        """All of them, those of the rest the largest first; the whole text where there is only one."""
        groups = _shared_out(self.module.functions[self.taken :])
        if not self.made and len(groups) == 1:
            self.made.append(self._unit(str(self.module), plain=False))
            return tuple(self.made)
        mentions = [_mentions(group) for group in groups]
        for k, group in enumerate(groups):
            self._add(group, mentions[k], set().union(*mentions[:k], *mentions[k + 1 :]))
        return tuple(self.made)

    def _add(self, group: Sequence[Defined], mentioned: set[str], elsewhere: set[str]) -> Unit:
        """`elsewhere`: what others mention."""
        functions = [f.text(visible=f.name in elsewhere) for f in group]
        own = {f.name for f in group}
        called = [f.declaration for f in self.module.functions if f.name in mentioned and f.name not in own]
        nodes = _nodes(self.module.metadata, functions)
        text = self.module.assembled([*functions, *called], nodes)
        self.made.append(self._unit(text, all(f.plain for f in group)))
        return self.made[-1]

    def _unit(self, text: str, plain: bool) -> Unit:
        return Unit(text, self.large, "rt_poll" in self.module.externals, plain)


def _mentions(group: Sequence[Defined]) -> set[str]:
    return {name for f in group for name in GLOBAL.findall(f.body)}


def _shared_out(functions: Sequence[Defined]) -> list[list[Defined]]:
    """Groups of about the same length, in the order of the module."""
    lengths = [f.length for f in functions]
    count = min(MOST, len(functions), sum(lengths) // UNIT)
    if count < 2:
        return [list(functions)] if functions else []
    groups: list[list[int]] = [[] for _ in range(count)]
    loads = [0] * count
    for k in sorted(range(len(functions)), key=lambda k: -lengths[k]):
        least = loads.index(min(loads))
        groups[least].append(k)
        loads[least] += lengths[k]
    largest_first = sorted((g for g in groups if g), key=lambda g: -sum(lengths[k] for k in g))
    return [[functions[k] for k in sorted(group)] for group in largest_first]


def _nodes(metadata: Sequence[str], functions: Sequence[str]) -> list[int]:
    """The numbers of the nodes that functions mention, and of those that these mention."""
    found: set[int] = set()
    left = [int(n) for text in functions for n in set(NODE.findall(text))]
    while left:
        n = left.pop()
        if n not in found:
            found.add(n)
            left += map(int, NODE.findall(metadata[n]))
    return sorted(found)
