"""Statements of the host and its small kernels, for the threads of one block: what one kernel does instead of many.

`Threads` takes statements of a host program, launches among them, and gives statements that each of BLOCK_THREADS threads
runs, all of them meeting at each barrier.

Note [One block]
All threads do what the host did with numbers, each for itself, with the same results. They share the iterations of a
kernel. What the host wrote to arrays the first thread writes alone; the numbers that it has by then are handed to the
others in shared memory. Branches and loops around kernels are taken by all threads alike, so that barriers may stand
inside. A barrier stands before a statement that touches an array which other threads have touched since the last one,
where either of them writes, and at the end of each iteration. Where a check has stopped the first thread, all stop.
"""

from __future__ import annotations

from collections import Counter
from collections.abc import Iterable, Mapping, Sequence
from collections.abc import Set as AbstractSet
from dataclasses import dataclass, field, replace

from tapeless.ir.types import BOOL, I64, Atom, Const, DType, Type, Var, i64
from tapeless.lower.ir.loopir import (
    BLOCK_THREADS,
    Alloc,
    Assign,
    Atomic,
    Barrier,
    Buffer,
    Check,
    Declare,
    For,
    Free,
    If,
    Launch,
    Let,
    Load,
    Space,
    Stm,
    Store,
    Swap,
    Tag,
    While,
)
from tapeless.lower.ir.rename import fetched, renamed
from tapeless.lower.ir.walk import Block, binds, children, is_blocked, reads, walk
from tapeless.ops.table import TABLE

TAKEN = (Let, Declare, Assign, Check, Load, Store, Atomic, For, While, If, Launch, Alloc, Free, Swap, Barrier)
NO, YES = Const(False, DType.bool), Const(True, DType.bool)


def can_run(stm: Stm) -> bool:
    """Whether one block can do it: nothing is called, shown or given."""
    inside = list(walk((stm,)))
    return all(isinstance(s, TAKEN) and not _is_of_host(s) for s in inside) and all(
        _can_share(s.kernel.loop) for s in inside if isinstance(s, Launch)
    )


def _is_of_host(stm: Stm) -> bool:
    return isinstance(stm, Let) and TABLE[stm.op].only_host


def _can_share(loop: For) -> bool:
    if loop.step != 1 or any(isinstance(s, (Alloc, Swap)) for s in walk(loop.body)):
        return False
    blocks = [s for s in walk(loop.body) if isinstance(s, For) and s.tag is Tag.block]
    if not blocks:
        return True
    (inner, *others) = blocks
    numbers = all(s is inner or isinstance(s, Let) for s in loop.body)
    return not others and numbers and inner.lo == i64(0) and inner.hi == i64(BLOCK_THREADS)


def is_for_all(stm: Stm) -> bool:
    """Whether the threads have to be there together: it launches, or exchanges arrays."""
    return any(isinstance(s, (Launch, Swap, Alloc, Free)) for s in walk((stm,)))


def leaves(block: Block) -> Iterable[Block]:
    """Kernels, and runs of statements that one thread can do."""
    run: list[Stm] = []
    for stm in block:
        if not is_for_all(stm):
            run.append(stm)
            continue
        if run:
            yield tuple(run)
        run = []
        if isinstance(stm, (Launch, Swap, Alloc, Free)):
            yield (stm,)
        else:
            for inner in children(stm):
                yield from leaves(inner)
    if run:
        yield tuple(run)


@dataclass
class Threads:
    """Note [One block]. `reads` counts the uses of numbers, `sizes` are those of arrays that change places, `private` is
    the memory of each thread.
    """

    reads: Counter[Var]
    sizes: Mapping[Buffer, Atom]
    private: AbstractSet[Buffer]
    thread: Var = field(default_factory=lambda: Var("thread", I64))
    first: Var = field(default_factory=lambda: Var("first", BOOL))
    read: set[Buffer] = field(default_factory=set)  # since the last barrier
    written: set[Buffer] = field(default_factory=set)
    words: dict[DType, Buffer] = field(default_factory=dict)  # for numbers of the first thread

    def kernel_loop(self, before: Iterable[Stm], loop: For | While, after: Iterable[Stm]) -> For:
        """`after` is for the first thread."""
        first = Let(self.first, "eq", (self.thread, i64(0)))
        body = (first, *before, *self.block((loop,)), If(self.first, tuple(after)))
        threads = For(self.thread, i64(0), i64(BLOCK_THREADS), body, tag=Tag.block)
        return For(Var("one", I64), i64(0), i64(1), (threads,), tag=Tag.grid, span=loop.span)

    def block(self, block: Block) -> Block:
        out: list[Stm] = []
        run: list[Stm] = []
        for stm in block:
            if not is_for_all(stm):
                run.append(stm)
                continue
            out += self.in_order(run)
            run = []
            out += self.together(stm)
        return (*out, *self.in_order(run))

    def together(self, stm: Stm) -> Iterable[Stm]:
        match stm:
            case Alloc() | Free():
                return ()
            case Launch(kernel):
                return self.shared(kernel.loop)
            case Swap(a=a, b=b):
                return self.exchanged(a, b)
            case For():
                return (replace(stm, body=self.iteration(stm.body), vectorize=False),)
            case While():
                test = self.block(stm.test)
                return (replace(stm, test=test, body=self.iteration(stm.body)),)
            case If():
                return (self.chosen(stm),)
        raise AssertionError(f"a block cannot {type(stm).__name__}")

    def after(self, read: AbstractSet[Buffer], written: AbstractSet[Buffer]) -> list[Stm]:
        """A barrier, where one is needed before these are touched."""
        meets = read & self.written or written & (self.read | self.written)
        if meets:
            self.read, self.written = set(), set()
        self.read |= read
        self.written |= written
        return [Barrier()] if meets else []

    def touched(self, block: Iterable[Stm]) -> tuple[set[Buffer], set[Buffer]]:
        """What is read and what is written, but for memory of a thread's own."""
        read, written = set(), set()
        for s in walk(tuple(block)):
            match s:
                case Load(buffer=b) if b not in self.private:
                    read.add(b)
                case Store(buffer=b) | Atomic(buffer=b) if b not in self.private:
                    written.add(b)
        return read, written

    def iteration(self, block: Block) -> Block:
        read, written = set(self.read), set(self.written)
        body = (*self.block(block), Barrier())
        self.read, self.written = read, written  # there may be none
        return body

    def chosen(self, stm: If) -> If:
        read, written = set(self.read), set(self.written)
        then = self.block(stm.then)
        after_then = self.read, self.written
        self.read, self.written = read, written
        orelse = self.block(stm.orelse)
        self.read, self.written = self.read | after_then[0], self.written | after_then[1]
        return replace(stm, then=then, orelse=orelse)

    # -- kernels

    def shared(self, loop: For) -> list[Stm]:
        if is_blocked(loop):
            self.read, self.written = set(), set()
            return [Barrier(), self.by_blocks(loop)]
        waits = self.after(*self.touched(loop.body))
        start = Var("start", I64)
        first = Let(start, "add", (loop.lo, self.thread), exact=True)
        return [*waits, first, replace(loop, lo=start, step=BLOCK_THREADS, tag=Tag.seq, vectorize=False)]

    def by_blocks(self, loop: For) -> For:
        """One block after the other, each with a barrier behind it."""
        body: list[Stm] = []
        for s in loop.body:
            if isinstance(s, For) and s.tag is Tag.block:
                body += [Let(s.var, "identity", (self.thread,)), *s.body, Barrier()]
            else:
                body.append(s)
        return replace(loop, body=tuple(body), tag=Tag.seq, vectorize=False)

    def exchanged(self, a: Buffer, b: Buffer) -> list[Stm]:
        """Cell by cell: they are small."""
        i, one, other = Var("i", I64), Var("e", Type(a.dtype)), Var("e", Type(a.dtype))
        body = (Load(one, a, i), Load(other, b, i), Store(a, i, other), Store(b, i, one))
        size = self.sizes[a]
        return [*self.after({a, b}, {a, b}), For(i, self.thread, size, body, step=BLOCK_THREADS, vectorize=False)]

    # -- the host

    def in_order(self, run: Sequence[Stm]) -> list[Stm]:
        """By each thread if nothing is written, else by the first one."""
        read, written = self.touched(run)
        if not written:
            return [*self.after(read, written), *run]
        before, part, after = self.middle(run)
        inside = Counter(v for s in walk(part) for v in reads(s))
        bound = {v: s for s in part for v in binds(s)}
        own = {v for s in walk(part) for v in binds(s)}
        assigned = dict.fromkeys(s.var for s in walk(part) if isinstance(s, Assign) and s.var not in own)
        left = [v for v in bound if self.reads[v] > inside[v]]
        names = {v: Var(v.name, v.type) for v in left}
        words = {v: self.word(v.type.dtype) for v in (*left, *assigned)}
        stores = tuple(Store(b, i64(k), names.get(v, v)) for v, (b, k) in words.items())
        ends = [s for s in walk(part) if isinstance(s, Check) and s.fatal]
        starting, ending, stopping = self.said(ends[0]) if ends else ((), (), ())
        used = {s.buffer for s in (*stores, *ending)}
        guarded = If(self.first, (*starting, *renamed(part, names), *stores, *ending))
        out = [*self.after(self.touched(before)[0], set()), *before]
        out += [*self.after(self.touched(part)[0], written | used), guarded]
        out += [*self.after(used, set()), *stopping]
        for v, (b, k) in words.items():
            out += fetched(v, b, i64(k), bound.get(v))
        return [*out, *self.after(self.touched(after)[0], set()), *after]

    def middle(self, run: Sequence[Stm]) -> tuple[list[Stm], Block, list[Stm]]:
        """From the first statement that writes to the last one; numbers that need nothing of it go before it."""
        writing = [bool(self.touched((s,))[1]) for s in run]
        first, last = writing.index(True), len(writing) - writing[::-1].index(True)
        before, part, after = list(run[:first]), list[Stm](), list(run[last:])
        changing = {v for s in run if isinstance(s, Declare) for v in binds(s)}
        changing |= {s.var for s in walk(tuple(run)) if isinstance(s, Assign)}
        inside: set[Var] = set()
        for s in run[first:last]:
            if isinstance(s, Let) and not any(v in inside or v in changing for v in reads(s)):
                before.append(s)
            else:
                part.append(s)
                inside.update(binds(s))
        return before, tuple(part), after

    def said(self, check: Check) -> tuple[tuple[Store, ...], tuple[Store, ...], tuple[Stm, ...]]:
        """That the first thread has come to the end: what it says at its start and at its end, and what others do."""
        buffer, k = self.word(DType.bool)
        well = Var("well", BOOL)
        stopping = (Load(well, buffer, i64(k)), replace(check, cond=well, args=()))
        return (Store(buffer, i64(k), NO),), (Store(buffer, i64(k), YES),), stopping

    def word(self, dtype: DType) -> tuple[Buffer, int]:
        buffer = self.words.setdefault(dtype, Buffer("words", dtype, Space.shared, 0))
        assert buffer.size is not None
        buffer.size += 1
        return buffer, buffer.size - 1
