"""What the statements of Loop IR mention: scalars, buffers, and the blocks inside them.

Gives `Counts` of a block and `alias_classes` of a program. The emitter asks which names cross the border of a region,
which buffers belong to one iteration alone, and which may change places.
"""

from __future__ import annotations

from collections import Counter
from collections.abc import Container, Iterable, Iterator, Mapping
from types import MappingProxyType
from typing import assert_never

from tapeless.ir.types import Var
from tapeless.lower.loopir import (
    Alloc,
    Assign,
    Atomic,
    Barrier,
    Buffer,
    Call,
    Check,
    Declare,
    For,
    Free,
    Give,
    If,
    Let,
    Load,
    Pointer,
    Print,
    Return,
    Space,
    Stm,
    Store,
    Swap,
    While,
)

Block = tuple[Stm, ...]


def inner_blocks(stm: Stm) -> tuple[Block, ...]:
    match stm:
        case For():
            return (stm.body,)
        case While():
            return (stm.test, stm.body)
        case If():
            return (stm.then, stm.orelse)
    return ()


def walk(block: Block, closed: Container[int] = ()) -> Iterator[Stm]:
    """All statements of a block, those inside others after them, but not those inside `closed` ones, given by their ids."""
    left = list(reversed(block))
    while left:
        stm = left.pop()
        yield stm
        if closed and id(stm) in closed:
            continue
        for inner in reversed(inner_blocks(stm)):
            left.extend(reversed(inner))


def operands(stm: Stm) -> tuple[object, ...]:
    """Atoms and pointers that a statement itself reads."""
    match stm:
        case Let() | Check() | Print():
            more: tuple[object, ...] = (stm.cond,) if isinstance(stm, Check) else ()
            return (*stm.args, *more)
        case Load():
            return (stm.index,)
        case Store() | Atomic():
            return (stm.index, stm.value)
        case Declare():
            return (stm.init,)
        case Assign():
            return (stm.value, stm.var)
        case For():
            return (stm.lo, stm.hi)
        case While() | If():
            return (stm.cond,)
        case Alloc():
            return (stm.size,)
        case Call():
            return tuple(part for a in stm.args for part in ((a, a.offset) if isinstance(a, Pointer) else (a,)))
        case Return():
            return (stm.value,)
        case Free() | Swap() | Give() | Barrier():
            return ()
        case _:
            assert_never(stm)


def binds(stm: Stm) -> Var | None:
    match stm:
        case Let() | Load() | Declare() | For():
            return stm.var
        case Call():
            return stm.result
        case Store() | Atomic() | Assign() | While() | If() | Alloc() | Free() | Swap() | Check() | Give() | Return():
            return None
        case Barrier() | Print():
            return None
        case _:
            assert_never(stm)


def buffers_of(stm: Stm) -> tuple[Buffer, ...]:
    match stm:
        case Load() | Store() | Atomic() | Alloc() | Free() | Give():
            return (stm.buffer,)
        case Swap():
            return (stm.a, stm.b)
        case Call():
            return tuple(a.buffer for a in stm.args if isinstance(a, Pointer))
        case Let() | Declare() | Assign() | For() | While() | If() | Check() | Return() | Barrier() | Print():
            return ()
        case _:
            assert_never(stm)


class Counts:
    """How often a block mentions each buffer, the scalars it takes from outside, what it assigns, allocates and moves.

    `known` has the counts of some statements, by their ids: a nest asks at many levels.
    """

    def __init__(self, block: Block, known: Mapping[int, Counts] = MappingProxyType({})) -> None:
        self.buffers: Counter[Buffer] = Counter()
        self.allocated: set[Buffer] = set()
        self.assigned: set[Var] = set()
        self.moved: set[Buffer] = set()  # allocated, freed or exchanged
        self.gives = False  # a result to the caller
        bound: set[Var] = set()
        read: dict[Var, None] = {}
        for stm in walk(block, known):
            inner = known.get(id(stm))
            if inner is not None:
                self._include(inner, read)
                continue
            self.buffers.update(buffers_of(stm))
            var = binds(stm)
            if var is not None:
                bound.add(var)
            for operand in operands(stm):
                if isinstance(operand, Var):
                    read[operand] = None
            match stm:
                case Alloc(buffer=buffer):
                    self.allocated.add(buffer)
                    self.moved.add(buffer)
                case Free(buffer=buffer):
                    self.moved.add(buffer)
                case Swap(a=a, b=b):
                    self.moved.update((a, b))
                case Assign(var=var) | Declare(var=var):
                    self.assigned.add(var)
            self.gives |= isinstance(stm, Give | Return)
        self.free = tuple(var for var in read if var not in bound)

    def _include(self, inner: Counts, read: dict[Var, None]) -> None:
        self.buffers.update(inner.buffers)
        self.allocated |= inner.allocated
        self.assigned |= inner.assigned
        self.moved |= inner.moved
        self.gives |= inner.gives
        read.update(dict.fromkeys(inner.free))

    def private(self, whole: Counter[Buffer]) -> frozenset[Buffer]:
        """The buffers that nothing outside the block mentions."""
        own = (Space.stack, Space.heap, Space.shared)
        return frozenset(b for b, n in self.buffers.items() if b.space in own and whole[b] == n)


def alias_classes(params: Iterable[object], body: Block) -> dict[Buffer, int]:
    """A number for each buffer; buffers with different numbers never overlap while one of them is written.

    Buffers that are swapped share a number: the memory of one is the memory of the other an iteration later.
    """
    parent: dict[Buffer, Buffer] = {b: b for b in params if isinstance(b, Buffer)}

    def root(buffer: Buffer) -> Buffer:
        while parent[buffer] is not buffer:
            buffer = parent[buffer]
        return buffer

    for stm in walk(body):
        for buffer in buffers_of(stm):
            parent.setdefault(buffer, buffer)
        if isinstance(stm, Swap):
            parent[root(stm.a)] = root(stm.b)
    numbers: dict[Buffer, int] = {}
    return {buffer: numbers.setdefault(root(buffer), len(numbers)) for buffer in parent}
