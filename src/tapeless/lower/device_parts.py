"""The host's part of a program for a device: it launches kernels, and looks at single numbers.

`apart` takes a program of launches whose host still goes through arrays, and gives one in which it does not: what goes
through arrays in order becomes a kernel of one thread. All arrays that kernels take are in the memory of the device
(`Space.device`). A load or store of the host there copies one element, and waits for what was launched before.

Note [Parts of the host]
A part is a run of statements of one block, the longest that can be in a kernel: nothing that is launched, allocated,
exchanged, printed or handed to the caller; what is freed between them is freed after them. It becomes a kernel if it goes
through an array in a loop, touches more than one element, or works on numbers that the host itself has no need of (Note
[Numbers on the device] in device_numbers.py). The scalars that it takes are handed over; those of its own that are used
after it, and those of outside that it assigns, are left in a buffer, for the host or for kernels to read.

Note [Memory that both see]
What no kernel can do (routines of LAPACK, functions of SciPy) the host does itself, when all that was launched is done. The
arrays that it looks into then are in memory that both see. Arrays of the caller are not: they are copied to such memory
at the start, and back at the end if they are written.
"""

from __future__ import annotations

from collections import Counter
from collections.abc import Iterator, Mapping, Sequence
from collections.abc import Set as AbstractSet
from dataclasses import replace

from tapeless.ir.types import I64, Atom, DType, Type, Var, i64
from tapeless.lower.device_numbers import Needs, of_host, settled, taken_by_kernels
from tapeless.lower.ir.before import Before
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
    Wait,
    While,
)  # fmt: skip
from tapeless.lower.ir.rename import fetched, renamed
from tapeless.lower.ir.walk import Block, binds, buffers, children, reads, walk, with_blocks
from tapeless.lower.kernels import captured
from tapeless.lower.routines_by_loops import is_of_host

ON_DEVICE = (Let, Load, Store, Atomic, Declare, Assign, Check, For, While, If)


BY_HOST = (*ON_DEVICE, Alloc, Free)
Shapes = Mapping[Buffer, Sequence[Atom]]


def apart(program: Program, shapes: Shapes) -> Program:
    """The program with its buffers in their spaces, those of the functions that it invokes too. `shapes` are those of arrays
    of the caller.
    """
    program = replace(program, body=settled(program.body))
    parts = _Parts(program)
    body = parts.block(program.body)
    if parts.words:
        body = taken_by_kernels(body, {buffer for buffer, _ in parts.words.values()})
        sizes = {buffer: i64(count) for buffer, count in parts.words.values()}
        body = (*(Alloc(b, n) for b, n in sizes.items()), *body, *(Free(b) for b in sizes))
    body = _placed(_seen(body, program, shapes))
    return replace(program, body=body, functions=tuple(apart(f, {}) for f in program.functions))


class _Parts:
    def __init__(self, program: Program) -> None:
        self.program = program
        self.reads = Counter(v for s in walk(program.body) for v in reads(s))
        self.mentions = Counts(program.body, scalars=False).buffers
        self.words: dict[DType, tuple[Buffer, int]] = {}  # for scalars that parts leave behind
        self.needs = Needs(program.body)
        self.changing = {s.var for s in of_host(program.body) if isinstance(s, Declare)}
        self.kernels = 0

    def block(self, block: Block) -> Block:
        out: list[Stm] = []
        run: list[Stm] = []
        freed: list[Stm] = []
        for stm in block:
            if _may_be_inside(stm):
                run.append(stm)
                continue
            if isinstance(stm, Free) and run:
                freed.append(stm)
                continue
            out += [*self.part(run), *freed]
            run, freed = [], []
            if _is_by_host(stm):
                out += [Wait(), stm]
            else:
                out.append(with_blocks(stm, self.block))
        return (*out, *self.part(run), *freed)

    def part(self, run: list[Stm]) -> list[Stm]:
        """Note [Parts of the host]"""
        first = next((k for k, s in enumerate(run) if _touches(s)), len(run))
        last = next((k for k in range(len(run), first, -1) if _touches(run[k - 1])), first)
        aside, touching = self.aside(run[first:last])
        ahead, following, after = self.following(touching, run[last:])
        part = (*touching, *following)
        inside = Counter(v for s in walk(part) for v in reads(s))
        bound = {v: s for s in part for v in binds(s)}
        assigned = {s.var for s in walk(part) if isinstance(s, Assign)} - {v for s in walk(part) for v in binds(s)}
        left = [v for v in bound if self.reads[v] > inside[v]]
        if sum(map(_accesses, part)) < 2 and (assigned or not self.needs.stays(left)):
            return run
        before = [*run[:first], *aside, *ahead]
        names = {v: Var(v.name, v.type) for v in (*left, *assigned)}
        taken = {v: Var(v.name, v.type) for v in assigned}
        body = tuple(renamed(s, names) for s in part)
        starts = tuple(Declare(names[v], taken[v]) for v in assigned)
        slots = {v: self.slot(v.type.dtype) for v in (*left, *assigned)}
        ends = tuple(Store(slots[v][0], i64(slots[v][1]), names[v]) for v in names)
        handed = tuple(Let(taken[v], "identity", (v,)) for v in assigned)
        back = [s for v, (b, k) in slots.items() for s in fetched(v, b, i64(k), bound.get(v))]
        return [*before, *handed, self.launched((*starts, *body, *ends)), *back, *after]

    def aside(self, run: Sequence[Stm]) -> tuple[list[Stm], list[Stm]]:
        """What does not follow from memory of the device, and is not behind a test, apart from the rest."""
        made, tested = set[Var](), False
        aside, rest = list[Stm](), list[Stm]()
        for stm in run:
            tested = tested or any(isinstance(s, Check) for s in walk((stm,)))
            if (
                isinstance(stm, Let)
                and not tested
                and stm.var not in self.needs.of_device
                and made.isdisjoint(reads(stm))
            ):
                aside.append(stm)
            else:
                rest.append(stm)
                made |= {v for s in walk((stm,)) for v in (*binds(s), *((s.var,) if isinstance(s, Assign) else ()))}
        return aside, rest

    def following(self, part: Sequence[Stm], rest: Sequence[Stm]) -> tuple[list[Stm], list[Stm], list[Stm]]:
        """What is behind a part in its run: what may be ahead of it, what else is worked out from such numbers for kernels
        or to be returned, and what stays behind.
        """
        ahead, behind = self.aside([*part, *rest])
        following, kept, others = list[Stm](), list[Stm](), set[Var]()
        for stm in behind[len(part) :]:
            needed = set(reads(stm))
            stays = isinstance(stm, Let) and stm.var not in self.needs.by_host and self.changing.isdisjoint(needed)
            if stays and others.isdisjoint(needed):
                following.append(stm)
            else:
                kept.append(stm)
                others |= set(binds(stm))
        return ahead, following, kept

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
    """Of a kernel."""
    return all(_is_plain(s, ON_DEVICE) and not is_of_host(s) for s in walk((stm,)))


def _is_by_host(stm: Stm) -> bool:
    """Note [Memory that both see]"""
    inside = list(walk((stm,)))
    if isinstance(stm, Call):
        return not stm.of_device
    return any(map(is_of_host, inside)) and any(map(buffers, inside)) and all(_is_plain(s, BY_HOST) for s in inside)


def _is_plain(stm: Stm, kinds: tuple[type, ...]) -> bool:
    return isinstance(stm, kinds) and not (isinstance(stm, For) and stm.tag.parallel)


def _touches(stm: Stm) -> bool:
    return any(buffers(s) for s in walk((stm,)))


def _accesses(stm: Stm) -> int:
    """Of elements, those in a loop twice; what combines reads and writes."""
    count = sum((1 + isinstance(s, Atomic)) * bool(buffers(s)) for s in walk((stm,)))
    return 2 * count if isinstance(stm, (For, While)) else count


def _seen(body: Block, program: Program, shapes: Shapes) -> Block:
    """Note [Memory that both see]"""
    swaps = [s for s in walk(body) if isinstance(s, Swap)]
    seen = _closed({b for s in _after_waits(body) for b in buffers(s)}, swaps)
    if not seen:
        return body
    body = _with_waits(body, seen)
    mirrors = {b: Buffer(b.name, b.dtype, Space.managed) for b in seen if b.space is Space.param}
    for b in seen - mirrors.keys():
        if b.space is not Space.stack:
            b.space = Space.managed
    before, after = Before(()), list[Stm]()
    for k, (b, mirror) in enumerate(mirrors.items()):
        size: Atom = i64(1)
        for side in shapes[b]:
            size = before.let("mul", size, side)
        before.stms += [Alloc(mirror, size), _copy(f"{program.name}_copy{k}", b, mirror, size)]
        if b.written:
            after.append(_copy(f"{program.name}_back{k}", mirror, b, size))
        after.append(Free(mirror))
    return (*before.stms, *renamed(body, {}, mirrors), *after)


def _after_waits(block: Block) -> Iterator[Stm]:
    """What the host does behind each wait."""
    for k, stm in enumerate(block):
        if k and isinstance(block[k - 1], Wait):
            yield from walk((stm,))
        else:
            for inner in children(stm):
                yield from _after_waits(inner)


def _with_waits(block: Block, seen: AbstractSet[Buffer]) -> Block:
    """The host waits before it looks at a single element of this memory, too."""
    out: list[Stm] = []
    for k, stm in enumerate(block):
        if k and isinstance(block[k - 1], Wait):
            out.append(stm)
        elif isinstance(stm, (Load, Store)) and stm.buffer in seen:
            out += [Wait(), stm]
        else:
            out.append(with_blocks(stm, lambda inner: _with_waits(inner, seen)))
    return tuple(out)


def _copy(name: str, source: Buffer, target: Buffer, size: Atom) -> Launch:
    i, x = Var("i", I64), Var("x", Type(source.dtype))
    loop = For(i, i64(0), size, (Load(x, source, i), Store(target, i, x)), tag=Tag.grid)
    return Launch(Kernel(name, (source, target), (loop,)))


def _closed(some: set[Buffer], swaps: list[Swap]) -> set[Buffer]:
    """With what changes places with them."""
    while more := {b for s in swaps for b in (s.a, s.b) if b not in some and {s.a, s.b} & some}:
        some = some | more
    return some


def _placed(body: Block) -> Block:
    """What kernels and libraries take, and what is handed to the caller, is on the device, and what changes places with it."""
    launches = [s for s in walk(body) if isinstance(s, Launch)]
    taken = {b for s in launches for b in s.kernel.params if isinstance(b, Buffer)}
    taken |= {b for s in walk(body) if isinstance(s, (Give, Call)) for b in buffers(s)}
    taken = _closed(taken, [s for s in walk(body) if isinstance(s, Swap)])
    small = [b for b in taken if b.space is Space.stack]  # several kernels, or the host too, look into it
    seen = {b for s in _after_waits(body) for b in buffers(s)}
    for b in taken:
        if b.space not in (Space.param, Space.managed):
            b.space = Space.managed if b in seen else Space.device
    allocations = tuple(Alloc(b, i64(b.size or 0)) for b in small)
    for b in small:
        b.size = None
    return (*allocations, *body, *(Free(b) for b in small)) if small else body
