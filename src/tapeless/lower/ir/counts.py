"""What blocks of Loop IR mention: scalars and buffers.

Gives `Counts` of a block: which names cross its border, and which buffers belong to it alone.
"""

from __future__ import annotations

from collections.abc import Mapping
from types import MappingProxyType

from tapeless.ir.types import Var
from tapeless.lower.ir.loopir import ALLOCATED, Alloc, Assign, Buffer, Declare, Free, Give, Let, Return, Space, Swap
from tapeless.lower.ir.walk import Block, binds, buffers, reads, walk


class Counts:
    """How often a block mentions each buffer, the scalars it takes from outside, what it assigns, allocates and moves.

    `known` has the counts of some statements, by their ids: a nest asks at many levels. Without `scalars`, those that
    are taken from outside are not looked for.
    """

    def __init__(
        self, block: Block, known: Mapping[int, Counts] = MappingProxyType({}), *, scalars: bool = True
    ) -> None:
        self.buffers: dict[Buffer, int] = {}
        self.allocated: set[Buffer] = set()
        self.assigned: set[Var] = set()
        self.moved: set[Buffer] = set()  # allocated, freed or exchanged
        self.swapped: list[tuple[Buffer, Buffer]] = []
        self.gives = False  # a result to the caller
        bound: set[Var] = set()
        read: dict[Var, None] = {}
        for stm in walk(block, known):
            if type(stm) is Let:  # most are
                if scalars:
                    read.update([(a, None) for a in stm.args if isinstance(a, Var)])
                    bound.add(stm.var)
                continue
            inner = known.get(id(stm)) if known else None
            if inner is not None:
                self._include(inner, read)
                continue
            if scalars:
                read.update(dict.fromkeys(reads(stm)))
                bound.update(binds(stm))
            for buffer in buffers(stm):
                self.buffers[buffer] = self.buffers.get(buffer, 0) + 1
            match stm:
                case Alloc(buffer=buffer):
                    self.allocated.add(buffer)
                    self.moved.add(buffer)
                case Free(buffer=buffer):
                    self.moved.add(buffer)
                case Swap(a=a, b=b):
                    self.moved.update((a, b))
                    self.swapped.append((a, b))
                case Assign(var=var) | Declare(var=var):
                    self.assigned.add(var)
                case Give() | Return():
                    self.gives = True
        self.free = tuple(var for var in read if var not in bound)

    def _include(self, inner: Counts, read: dict[Var, None]) -> None:
        for buffer, count in inner.buffers.items():
            self.buffers[buffer] = self.buffers.get(buffer, 0) + count
        self.allocated |= inner.allocated
        self.assigned |= inner.assigned
        self.moved |= inner.moved
        self.swapped += inner.swapped
        self.gives |= inner.gives
        read.update(dict.fromkeys(inner.free))

    def private(self, whole: Mapping[Buffer, int]) -> frozenset[Buffer]:
        """The buffers that nothing outside the block mentions."""
        own = (*ALLOCATED, Space.stack, Space.shared)
        return frozenset(b for b, n in self.buffers.items() if b.space in own and whole[b] == n)
