"""Loops of small kernels as one kernel: a launch takes longer than the work of a small array.

`by_blocks` takes a program of launches, and gives one whose loops of small kernels have two ways: as they were, and in one
kernel of one block (Note [One block]). The sizes of the call pick one.

Note [Small kernels]
A loop can be one kernel if the widths of all its kernels, and the sizes of all that it allocates, are known before it;
then its arrays are allocated once, by the host. A launch takes about as long as LAUNCH operations of a thread. What runs
for a long time runs in strips of STRIP iterations, so that the host can be interrupted. A loop with a check inside of a
kernel, which stops one thread only, must end whatever the others find.
"""

from __future__ import annotations

from collections import Counter
from collections.abc import Callable, Iterable, Mapping, Sequence
from dataclasses import dataclass, field, replace

from tapeless.ir.types import BOOL, I64, Atom, Const, DType, Var, i64
from tapeless.lower.ir.before import Before
from tapeless.lower.ir.counts import Counts
from tapeless.lower.ir.loopir import (
    BLOCK_THREADS,
    SHARED_BYTES,
    Alloc,
    Assign,
    Buffer,
    Check,
    Declare,
    For,
    Free,
    If,
    Kernel,
    Launch,
    Let,
    Program,
    Space,
    Stm,
    Store,
    Swap,
    Tag,
    While,
)
from tapeless.lower.ir.rename import fetched, renamed
from tapeless.lower.ir.walk import Block, binds, children, is_blocked, reads, walk, with_blocks
from tapeless.lower.kernels import captured
from tapeless.lower.one_block import NO, Threads, can_run, is_for_all, leaves

LAUNCH = 600  # statements that a thread of a block runs meanwhile
STRIP = 4096  # iterations
GUESS = 16  # of a loop whose number is not known
WORDS = 1024  # bytes of shared memory for numbers of the first thread


def by_blocks(program: Program) -> Program:
    body = _Loops(program).block(program.body)
    return replace(program, body=body, functions=tuple(map(by_blocks, program.functions)))


class _Loops:
    def __init__(self, program: Program) -> None:
        self.program = program
        self.mentions = Counts(program.body, scalars=False).buffers
        self.sizes: dict[Buffer, Atom] = {s.buffer: s.size for s in walk(program.body) if isinstance(s, Alloc)}
        self.kernels = 0

    def block(self, block: Block) -> Block:
        return tuple(new for stm in block for new in self.stm(stm))

    def stm(self, stm: Stm) -> Iterable[Stm]:
        if isinstance(stm, (For, While)) and any(isinstance(s, Launch) for s in walk((stm,))):
            found = self.one_kernel(stm)
            if found is not None:
                return found
        return (with_blocks(stm, self.block),)

    def one_kernel(self, stm: For | While) -> list[Stm] | None:
        """Note [Small kernels]. None where it cannot be."""
        if not can_run(stm):
            return None
        before = Before((stm,))
        small = _small(before, stm)
        found = {s.buffer: before.value(s.size) for s in walk((stm,)) if isinstance(s, Alloc)}
        sizes = {b: size for b, size in found.items() if size is not None}
        if small is None or small == NO or len(sizes) < len(found) or not _ends(before, stm):
            return None
        if any(s.a not in self.sizes for s in walk((stm,)) if isinstance(s, Swap)):
            return None
        memory = self.memory_of(stm, sizes)
        if memory.bytes > SHARED_BYTES - WORDS:
            return None
        way = self.kernel_of(stm, memory)
        return [*before.stms, *(way if isinstance(small, Const) else [If(small, tuple(way), (stm,))])]

    def kernel_of(self, stm: For | While, memory: _Memory) -> list[Stm]:
        self.kernels += 1
        bound = {v for s in walk((stm,)) for v in binds(s)}
        assigned = list(dict.fromkeys(s.var for s in walk((stm,)) if isinstance(s, Assign) and s.var not in bound))
        names = {v: Var(v.name, v.type) for v in (*bound, *assigned)}
        taken = {v: Var(v.name, v.type) for v in assigned}
        words = {v: Buffer("word", v.type.dtype, Space.heap) for v in assigned}
        strips, loop = _strips(stm)
        copy = renamed(loop, names, memory.names)
        threads = Threads(
            Counter(v for s in walk((copy,)) for v in reads(s)), {**self.sizes, **memory.sizes}, memory.private
        )
        grid = threads.kernel_loop(
            [Declare(names[v], taken[v]) for v in assigned],
            copy,
            [Store(words[v], i64(0), names[v]) for v in assigned],
        )
        own = memory.local | set(threads.words.values())
        mentions = {b: n + (b not in own) for b, n in Counts(grid.body).buffers.items()}
        launch = Launch(Kernel(f"{self.program.name}_block{self.kernels}", captured(grid, mentions), (grid,)))
        allocated = {**memory.sizes, **dict.fromkeys(words.values(), i64(1))}
        return [
            *(Alloc(b, n) for b, n in allocated.items()),
            *strips(
                *(Let(taken[v], "identity", (v,)) for v in assigned),
                launch,
                *(s for v in assigned for s in fetched(v, words[v], i64(0), None)),
            ),
            *(Free(b) for b in allocated),
        ]

    def memory_of(self, stm: Stm, sizes: Mapping[Buffer, Atom]) -> _Memory:
        """Arrays of a loop alone: those that it allocates, small ones, and those of blocks."""
        memory = _Memory()
        for b, size in sizes.items():
            memory.allocate(b, size)
        own = Counts((stm,), scalars=False).buffers
        parts = [Counts(leaf, scalars=False).buffers for leaf in leaves((stm,))]
        small = [b for b, n in own.items() if b.space is Space.stack and n == self.mentions[b]]
        for part in parts:
            memory.pool([b for b in part if b.space is Space.shared])
        for b in small:
            if any(part.get(b) == own[b] for part in parts):
                memory.keep(b, Space.stack)
            elif memory.bytes + (b.size or 0) * b.dtype.bytes <= SHARED_BYTES - WORDS:
                memory.keep(b, Space.shared)
            else:
                memory.allocate(b, i64(b.size or 0))
        return memory


@dataclass
class _Memory:
    """New buffers for those of a loop: `local` ones are the kernel's, the others have a size for the host."""

    names: dict[Buffer, Buffer] = field(default_factory=dict)
    local: set[Buffer] = field(default_factory=set)
    sizes: dict[Buffer, Atom] = field(default_factory=dict)
    pools: dict[tuple[DType, int | None], list[Buffer]] = field(default_factory=dict)
    bytes: int = 0  # of shared memory

    def allocate(self, b: Buffer, size: Atom) -> None:
        self.names[b] = new = Buffer(b.name, b.dtype, Space.heap)
        self.sizes[new] = size

    def keep(self, b: Buffer, space: Space) -> Buffer:
        self.names[b] = new = Buffer(b.name, b.dtype, space, b.size)
        self.local.add(new)
        if space is Space.shared:
            self.bytes += (b.size or 0) * b.dtype.bytes
        return new

    def pool(self, shared: Sequence[Buffer]) -> None:
        """Blocks run one after the other: they use the same shared memory."""
        used: Counter[tuple[DType, int | None]] = Counter()
        for b in shared:
            pool = self.pools.setdefault((b.dtype, b.size), [])
            k = used[b.dtype, b.size]
            used[b.dtype, b.size] += 1
            if k == len(pool):
                pool.append(self.keep(b, Space.shared))
            self.names[b] = pool[k]

    @property
    def private(self) -> set[Buffer]:
        """Of each thread."""
        return {b for b in self.local if b.space is Space.stack}


def _strips(stm: For | While) -> tuple[Callable[..., list[Stm]], For | While]:
    """What puts statements into a loop over strips, and the loop of one strip."""
    if not isinstance(stm, For) or stm.step != 1:
        return lambda *inner: [*inner], stm
    strip, count, more, strips, far, first, past, last = (Var("strip", I64) for _ in range(8))
    from_zero = stm.lo == i64(0)

    def around(*inner: Stm) -> list[Stm]:
        counting = (
            *([] if from_zero else [Let(count, "sub", (stm.hi, stm.lo), exact=True)]),
            Let(more, "add", (stm.hi if from_zero else count, i64(STRIP - 1)), exact=True),
            Let(strips, "floordiv", (more, i64(STRIP))),
        )
        ends = (
            Let(far, "mul", (strip, i64(STRIP)), exact=True),
            Let(first, "add", (stm.lo, far), exact=True),
            Let(past, "add", (first, i64(STRIP)), exact=True),
            Let(last, "min", (past, stm.hi)),
        )
        return [*counting, For(strip, i64(0), strips, (*ends, *inner))]

    return around, replace(stm, lo=first, hi=last)


# -- which way


def _small(before: Before, stm: Stm) -> Atom | None:
    """Whether one block does it sooner than launches do; None if that is not known before."""
    launches, known = 0, 0
    total: Atom | None = None
    outside = {id(s) for s in walk((stm,)) if isinstance(s, Launch)}
    for s in walk((stm,), closed=outside):
        if not isinstance(s, Launch):
            continue
        launches += 1
        loop = s.kernel.loop
        width, start = before.value(loop.hi), before.value(loop.lo)
        if width is None or start != i64(0):
            return None
        operations = _operations(loop.body)
        each = 1 if is_blocked(loop) else BLOCK_THREADS
        if isinstance(width, Const):
            known += operations * -(-int(width.value.real) // each)
            continue
        rounds = width
        if each > 1:
            rounds = before.let("floordiv", before.let("add", width, i64(each - 1)), i64(each))
        steps = before.let("mul", rounds, i64(operations))
        total = steps if total is None else before.let("add", total, steps)
    left = launches * LAUNCH - known
    if total is None or left < 0:
        return Const(left >= 0, DType.bool)
    small = Var("small", BOOL)
    before.stms.append(Let(small, "le", (total, i64(left))))
    return small


def _operations(block: Block) -> int:
    total = 0
    for s in block:
        inner = sum(map(_operations, children(s)))
        if isinstance(s, For) and s.tag is not Tag.block:
            trips = s.hi.value.real if isinstance(s.hi, Const) and s.lo == i64(0) else GUESS
            inner *= int(min(max(trips, 0), 1 << 30))
        total += 1 + (inner * GUESS if isinstance(s, While) else inner)
    return total


def _ends(before: Before, stm: For | While) -> bool:
    """Whether the loops end even where a thread has stopped."""
    launches = {id(s): s for s in walk((stm,)) if isinstance(s, Launch)}
    if not any(isinstance(x, Check) and x.fatal for s in launches.values() for x in walk((s,))):
        return True
    around = [s for s in walk((stm,), closed=launches) if is_for_all(s) and isinstance(s, (For, While))]
    return all(isinstance(s, For) and None not in (before.value(s.lo), before.value(s.hi)) for s in around)
