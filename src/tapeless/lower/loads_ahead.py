"""Loops of a GPU's threads that read what their number alone tells: some iterations are read before the first of them runs.

Takes and gives a program of launches.

Note [Loads ahead]
A thread waits for memory as long as for hundreds of operations, and a thread that goes through a long loop alone has
nobody to work meanwhile. What an iteration reads at places that its number tells, as a loop that goes backwards reads what
the way there has kept, can be asked for before: AHEAD iterations at once, so that the thread waits once for all of them.
They lie in memory of its own until they are used. The last ones, beyond the end, are read where the last one is. Nothing in
such a loop may write to what is read, end the thread or wait for others. LLVM does the same where it unrolls a loop; it
does not where there are branches in it, as there are in functions like sin.
"""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import replace

from tapeless.ir.types import I64, Const, Var, i64
from tapeless.lower.ir.loopir import (
    Assign,
    Atomic,
    Barrier,
    Buffer,
    Call,
    Check,
    For,
    If,
    Invoke,
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
)
from tapeless.lower.ir.rename import renamed
from tapeless.lower.ir.walk import Block, binds, reads, walk, with_blocks
from tapeless.ops.rows import CALL
from tapeless.ops.table import TABLE

AHEAD = 8  # iterations
MOST = 6  # loads of an iteration
ENDS = (Check, Call, Invoke, Barrier, Swap)  # or may write anywhere
OWN = (Space.stack, Space.shared)  # memory that is near


def with_loads_ahead(program: Program) -> Program:
    functions = tuple(map(with_loads_ahead, program.functions))
    return replace(program, body=_host(program.body), functions=functions)


def _host(block: Block) -> Block:
    return tuple(_launch(s) if isinstance(s, Launch) else with_blocks(s, _host) for s in block)


def _launch(launch: Launch) -> Launch:
    block = _inside(launch.kernel.block)
    return launch if block is launch.kernel.block else Launch(replace(launch.kernel, block=block))


def _inside(block: Block) -> Block:
    new = tuple(_loop(s) if isinstance(s, For) else with_blocks(s, _inside) for s in block)
    return block if all(a is b for a, b in zip(new, block, strict=True)) else new


def _loop(loop: For) -> Stm:
    found = _loads(loop) if _is_long(loop) else []
    if not any(isinstance(s, Load) for s in found):
        return with_blocks(loop, _inside)
    return _batched(loop, found)


def _is_long(loop: For) -> bool:
    """Whether it may wait for memory in each iteration: nobody unrolls it."""
    if loop.tag is not Tag.seq or loop.step != 1:
        return False
    if (
        isinstance(loop.lo, Const)
        and isinstance(loop.hi, Const)
        and loop.hi.value.real - loop.lo.value.real <= 2 * AHEAD
    ):
        return False
    inside = list(walk(loop.body))
    if any(isinstance(s, (For, While, *ENDS)) for s in inside):
        return False
    return any(isinstance(s, If) or (isinstance(s, Let) and TABLE[s.op].cost >= CALL) for s in inside)


def _loads(loop: For) -> list[Let | Load]:
    """What an iteration reads at places that follow from its number, and the arithmetic for that, in order."""
    inside = list(walk(loop.body))
    changing = {v for s in inside for v in (*binds(s), *((s.var,) if isinstance(s, Assign) else ()))}
    written = {s.buffer for s in inside if isinstance(s, (Store, Atomic))}
    known = {loop.var}
    found: list[Let | Load] = []
    for s in loop.body:
        if not isinstance(s, (Let, Load)) or not all(v in known or v not in changing for v in reads(s)):
            continue
        if isinstance(s, Let) and TABLE[s.op].cost >= CALL:
            continue
        if isinstance(s, Load) and (s.buffer in written or s.buffer.space in OWN or s.index not in known):
            continue
        known.add(s.var)
        found.append(s)
    return _needed(found)


def _needed(found: Sequence[Let | Load]) -> list[Let | Load]:
    """The first loads, and what they need."""
    loads = [s for s in found if isinstance(s, Load)][:MOST]
    needed: set[Var] = {s.var for s in loads}
    kept: list[Let | Load] = []
    for s in reversed(found):
        if s.var in needed:
            kept.append(s)
            needed.update(reads(s))
    return kept[::-1]


def _batched(loop: For, found: Sequence[Let | Load]) -> For:
    """Note [Loads ahead]"""
    batch, last, far, end, slot = (Var(name, I64) for name in ("batch", "last", "far", "end", "slot"))
    loads = [s for s in found if isinstance(s, Load)]
    near = {s.var: Buffer(s.var.name, s.buffer.dtype, Space.stack, AHEAD) for s in loads}
    asked: list[Stm] = [Let(last, "sub", (loop.hi, i64(1)), exact=True)]
    stores: list[Stm] = []
    for k in range(AHEAD):
        beyond, at = Var("beyond", I64), Var(loop.var.name, I64)
        asked += [Let(beyond, "add", (batch, i64(k)), exact=True), Let(at, "min", (beyond, last))]
        names = {loop.var: at, **{s.var: Var(s.var.name, s.var.type) for s in found}}
        asked += renamed(tuple(found), names)
        stores += [Store(near[s.var], i64(k), names[s.var]) for s in loads]
    ends: list[Stm] = [Let(far, "add", (batch, i64(AHEAD)), exact=True), Let(end, "min", (far, loop.hi))]
    fetched: list[Stm] = [Let(slot, "sub", (loop.var, batch), exact=True)]
    body = tuple(Load(s.var, near[s.var], slot) if s in loads else s for s in loop.body)
    inner = replace(loop, lo=batch, hi=end, body=(*fetched, *body))
    return For(batch, loop.lo, loop.hi, (*asked, *stores, *ends, inner), step=AHEAD, vectorize=False, span=loop.span)
