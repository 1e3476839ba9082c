"""Memory of kernels, outside of them: a GPU has none to give to a thread that asks.

`outside` takes a program for a device whose parallel loops allocate, and gives one in which the host does, once for all
threads of a loop.

Note [Slots]
A thread has a slot, and cell i of its part of an array is cell i * slots + slot of the whole: neighbouring threads touch
neighbouring cells. There are at most SLOTS, fewer where arrays are large; a thread then does several iterations, one after
the other. Arrays that are exchanged share one allocation, and what is exchanged is where they start in it. The size must
be known before the loop; a loop whose arrays have sizes of their own in each iteration runs in order, by the host.
"""

from __future__ import annotations

from collections.abc import Iterable, Mapping
from dataclasses import dataclass, replace

from tapeless.ir.types import I64, Atom, Var, i64
from tapeless.lower.ir.before import Before
from tapeless.lower.ir.loopir import (
    BLOCK_THREADS,
    Alloc,
    Assign,
    Atomic,
    Buffer,
    Declare,
    For,
    Free,
    Let,
    Load,
    Program,
    Space,
    Stm,
    Store,
    Swap,
    Tag,
)  # fmt: skip
from tapeless.lower.ir.walk import Block, is_blocked, walk, with_blocks

SLOTS = 1 << 17
CELLS = 1 << 27  # of one array, of all threads together


def outside(program: Program) -> Program:
    return replace(program, body=_block(program.body), functions=tuple(map(outside, program.functions)))


def _block(block: Block) -> Block:
    return tuple(s for stm in block for s in _stm(stm))


def _stm(stm: Stm) -> Iterable[Stm]:
    match stm:
        case For(tag=Tag.grid):
            if not any(isinstance(s, Alloc) for s in walk(stm.body)):
                return (stm,)
            moved = _moved(stm)
            return moved if moved is not None else _stm(replace(stm, tag=Tag.seq, body=_in_order(stm.body)))
        case _:
            return (with_blocks(stm, _block),)


def _in_order(block: Block) -> Block:
    """Nothing is parallel in it."""
    assert not any(isinstance(s, For) and s.tag is Tag.block for s in walk(block)), "a block allocates"
    return block


@dataclass(frozen=True)
class _Part:
    """Where an array of a thread is in the memory of all: from cell `start` on, if that changes a variable."""

    whole: Buffer
    start: Var | None


def _moved(loop: For) -> list[Stm] | None:
    """Note [Slots]. None where sizes are not known before the loop."""
    host = Before((loop,))
    sizes: dict[Buffer, Atom] = {}
    for s in walk(loop.body):
        if isinstance(s, Alloc):
            size = host.value(s.size)
            if size is None or s.buffer in sizes:
                return None
            sizes[s.buffer] = host.let("max", size, i64(1))
    groups = _exchanged(loop, sizes)
    wide = is_blocked(loop)
    slots = _slots(host, loop, sizes, wide)
    allocated: list[Buffer] = []
    parts: dict[Buffer, _Part] = {}
    starts: list[Stm] = []
    for group in groups:
        whole = Buffer(group[0].name, group[0].dtype, Space.heap)
        total: Atom = i64(0)
        for b in group:
            start = Var("start", I64) if len(group) > 1 else None
            if start is not None:
                starts.append(Declare(start, total))
            parts[b] = _Part(whole, start)
            total = host.let("add", total, sizes[b])
        host.stms.append(Alloc(whole, host.let("mul", total, slots)))
        allocated.append(whole)
    changed = _by_blocks(loop, slots, parts, starts) if wide else _by_threads(loop, slots, parts, starts)
    return [*host.stms, changed, *(Free(b) for b in allocated)]


def _exchanged(loop: For, sizes: Mapping[Buffer, Atom]) -> list[list[Buffer]]:
    group = {b: [b] for b in sizes}
    for s in walk(loop.body):
        if isinstance(s, Swap) and group[s.a] is not group[s.b]:
            joined = group[s.a] + group[s.b]
            group.update(dict.fromkeys(joined, joined))
    return list({id(g): g for g in group.values()}.values())


def _slots(host: Before, loop: For, sizes: Mapping[Buffer, Atom], wide: bool) -> Atom:
    count = host.let("max", host.let("sub", loop.hi, loop.lo), i64(1))
    if wide:
        return host.let("mul", count, i64(BLOCK_THREADS))
    largest: Atom = i64(1)
    for size in sizes.values():
        largest = host.let("max", largest, size)
    fitting = host.let("max", host.let("floordiv", i64(CELLS), largest), i64(1))
    return host.let("min", count, host.let("min", fitting, i64(SLOTS)))


def _by_threads(loop: For, slots: Atom, parts: Mapping[Buffer, _Part], starts: list[Stm]) -> For:
    slot, k = Var("slot", I64), Var("k", I64)
    names = [Var("at", I64) for _ in range(5)]
    left, more, count, before, past = names
    counting = (
        Let(left, "sub", (loop.hi, loop.lo), exact=True),
        Let(more, "sub", (left, slot), exact=True),
        Let(past, "add", (more, slots), exact=True),
        Let(before, "sub", (past, i64(1)), exact=True),
        Let(count, "floordiv", (before, slots)),
    )
    step, at = Var("at", I64), Var("at", I64)
    taking = (
        Let(step, "mul", (k, slots), exact=True),
        Let(at, "add", (step, slot), exact=True),
        Let(loop.var, "add", (at, loop.lo), exact=True),
    )
    body = (*taking, *starts, *_rewritten(loop.body, slots, slot, parts))
    inner = For(k, i64(0), count, body, vectorize=False, span=loop.span)
    return replace(loop, var=slot, lo=i64(0), hi=slots, body=(*counting, inner))


def _by_blocks(loop: For, slots: Atom, parts: Mapping[Buffer, _Part], starts: list[Stm]) -> For:
    """The memory is that of the threads of a block: each has a slot."""

    def change(block: Block) -> Block:
        out: list[Stm] = []
        for s in block:
            if isinstance(s, For) and s.tag is Tag.block:
                first, own, slot = (Var("at", I64) for _ in range(3))
                taking = (
                    Let(first, "sub", (loop.var, loop.lo), exact=True),
                    Let(own, "mul", (first, i64(BLOCK_THREADS)), exact=True),
                    Let(slot, "add", (own, s.var), exact=True),
                )
                s = replace(s, body=(*taking, *starts, *_rewritten(s.body, slots, slot, parts)))
            out.append(s)
        return tuple(out)

    return replace(loop, body=change(loop.body))


def _rewritten(block: Block, slots: Atom, slot: Atom, parts: Mapping[Buffer, _Part]) -> Block:
    out: list[Stm] = []

    def place(part: _Part, index: Atom) -> Atom:
        if part.start is not None:
            moved = Var("at", I64)
            out.append(Let(moved, "add", (index, part.start), exact=True))
            index = moved
        row, at = Var("at", I64), Var("at", I64)
        out.append(Let(row, "mul", (index, slots), exact=True))
        out.append(Let(at, "add", (row, slot), exact=True))
        return at

    for stm in block:
        match stm:
            case Alloc(buffer=b) | Free(buffer=b) if b in parts:
                pass
            case Load() | Store() | Atomic() if stm.buffer in parts:
                part = parts[stm.buffer]
                index = place(part, stm.index)
                out.append(replace(stm, buffer=part.whole, index=index))
            case Swap(a=a, b=b) if a in parts:
                one, other = parts[a].start, parts[b].start
                assert one is not None and other is not None
                kept = Var("start", I64)
                out += [Let(kept, "identity", (one,)), Assign(one, other), Assign(other, kept)]
            case _:
                out.append(with_blocks(stm, lambda block: _rewritten(block, slots, slot, parts)))
    return tuple(out)
