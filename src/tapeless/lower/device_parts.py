"""The host's part of a program for a device: it launches kernels, and looks at single numbers.

`apart` takes a program of launches whose host still goes through arrays, and gives one in which it does not: what goes
through arrays in order becomes a kernel of one thread. All arrays that kernels take are in the memory of the device
(`Space.device`). A load or store of the host there copies one element, and waits for what was launched before. What
routines take that only the host has is in memory that both see.

Note [Parts of the host]
A part is a run of statements of one block, the longest that can be in a kernel: nothing that is launched, allocated,
freed, exchanged, printed or handed to the caller. It becomes a kernel if it goes through an array in a loop, or touches
more than one element. The scalars that it takes are handed over; those of its own that are used after it, and those of
outside that it assigns, are left in a buffer for the host to read.
"""

from __future__ import annotations

from collections import Counter
from dataclasses import replace

from tapeless.ir.types import I64, DType, Var, i64
from tapeless.lower.ir.counts import Counts
from tapeless.lower.ir.loopir import (
    Alloc,
    Assign,
    Atomic,
    Buffer,
    Call,
    Check,
    Declare,
    For,
    Free,
    Give,
    If,
    Kernel,
    Launch,
    Let,
    Load,
    Program,
    Space,
    Stm,
    Store,
    Swap,
    Tag,
    While,
)  # fmt: skip
from tapeless.lower.ir.rename import fetched, renamed
from tapeless.lower.ir.walk import Block, binds, buffers, reads, walk, with_blocks
from tapeless.lower.kernels import captured

ON_DEVICE = (Let, Load, Store, Atomic, Declare, Assign, Check, For, While, If)


def apart(program: Program) -> Program:
    """The program with its buffers in their spaces, those of the functions that it invokes too."""
    parts = _Parts(program)
    body = parts.block(program.body)
    if parts.words:
        sizes = {buffer: i64(count) for buffer, count in parts.words.values()}
        body = (*(Alloc(b, n) for b, n in sizes.items()), *body, *(Free(b) for b in sizes))
    body = _placed(body, program)
    return replace(program, body=body, functions=tuple(map(apart, program.functions)))


class _Parts:
    def __init__(self, program: Program) -> None:
        self.program = program
        self.reads = Counter(v for s in walk(program.body) for v in reads(s))
        self.mentions = Counts(program.body, scalars=False).buffers
        self.words: dict[DType, tuple[Buffer, int]] = {}  # for scalars that parts leave behind
        self.kernels = 0

    def block(self, block: Block) -> Block:
        out: list[Stm] = []
        run: list[Stm] = []
        for stm in block:
            if _may_be_inside(stm):
                run.append(stm)
                continue
            out += self.part(run)
            run = []
            out.append(with_blocks(stm, self.block))
        return (*out, *self.part(run))

    def part(self, run: list[Stm]) -> list[Stm]:
        """Note [Parts of the host]"""
        first = next((k for k, s in enumerate(run) if _touches(s)), len(run))
        last = next((k for k in range(len(run), first, -1) if _touches(run[k - 1])), first)
        before, part, after = run[:first], tuple(run[first:last]), run[last:]
        if sum(map(_accesses, part)) < 2:
            return run
        inside = Counter(v for s in walk(part) for v in reads(s))
        bound = {v: s for s in part for v in binds(s)}
        assigned = {s.var for s in walk(part) if isinstance(s, Assign)} - {v for s in walk(part) for v in binds(s)}
        left = [v for v in bound if self.reads[v] > inside[v]]
        names = {v: Var(v.name, v.type) for v in (*left, *assigned)}
        taken = {v: Var(v.name, v.type) for v in assigned}
        body = tuple(renamed(s, names) for s in part)
        starts = tuple(Declare(names[v], taken[v]) for v in assigned)
        slots = {v: self.slot(v.type.dtype) for v in (*left, *assigned)}
        ends = tuple(Store(slots[v][0], i64(slots[v][1]), names[v]) for v in names)
        handed = tuple(Let(taken[v], "identity", (v,)) for v in assigned)
        back = [s for v, (b, k) in slots.items() for s in fetched(v, b, i64(k), bound.get(v))]
        return [*before, *handed, self.launched((*starts, *body, *ends)), *back, *after]

    def slot(self, dtype: DType) -> tuple[Buffer, int]:
        buffer, count = self.words.get(dtype, (Buffer(f"words_{dtype.value}", dtype, Space.device), 0))
        self.words[dtype] = buffer, count + 1
        return buffer, count

    def launched(self, body: Block) -> Launch:
        self.kernels += 1
        loop = For(Var("one", I64), i64(0), i64(1), body, tag=Tag.grid)
        name = f"{self.program.name}_part{self.kernels}"
        own = Counts(body).buffers
        whole = {b: self.mentions.get(b, n + 1) for b, n in own.items()}
        return Launch(Kernel(name, captured(loop, whole), (loop,)))


def _may_be_inside(stm: Stm) -> bool:
    return all(isinstance(s, ON_DEVICE) and not (isinstance(s, For) and s.tag.parallel) for s in walk((stm,)))


def _touches(stm: Stm) -> bool:
    return any(buffers(s) for s in walk((stm,)))


def _accesses(stm: Stm) -> int:
    """Of elements, those in a loop twice; what combines reads and writes."""
    count = sum((1 + isinstance(s, Atomic)) * bool(buffers(s)) for s in walk((stm,)))
    return 2 * count if isinstance(stm, (For, While)) else count


def _placed(body: Block, program: Program) -> Block:
    """What kernels and libraries take, and what is handed to the caller, is on the device, and what changes places with it."""
    launches = [s for s in walk(body) if isinstance(s, Launch)]
    taken = {b for s in launches for b in s.kernel.params if isinstance(b, Buffer)}
    taken |= {b for s in walk(body) if isinstance(s, (Give, Call)) for b in buffers(s)}
    swaps = [s for s in walk(body) if isinstance(s, Swap)]
    taken = _closed(taken, swaps)
    managed = _closed({b for s in walk(body) if isinstance(s, Call) and not s.of_device for b in buffers(s)}, swaps)
    assert not any(b.space is Space.param for b in managed), "routines of the host work in memory of their own"
    small = [b for b in taken if b.space is Space.stack]  # several kernels, or the host too, look into it
    for b in taken:
        if b.space is not Space.param:
            b.space = Space.managed if b in managed else Space.device
    allocations = tuple(Alloc(b, i64(b.size or 0)) for b in small)
    for b in small:
        b.size = None
    return (*allocations, *body, *(Free(b) for b in small)) if small else body


def _closed(some: set[Buffer], swaps: list[Swap]) -> set[Buffer]:
    """With what changes places with them."""
    while more := {b for s in swaps for b in (s.a, s.b) if b not in some and {s.a, s.b} & some}:
        some = some | more
    return some
