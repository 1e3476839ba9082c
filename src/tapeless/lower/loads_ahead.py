"""Loops of a GPU's threads that read what their number alone tells: some iterations are read before the first of them runs.

Takes and gives a program of launches.

Note [Tests ahead]
Where an iteration tests what it has read, as a position in another array, the next one cannot be on its way before that
test is done. So the tests of AHEAD iterations are done at once, where its number tells what they look at, and if all hold
these iterations run without, and LLVM unrolls them. Where one does not hold, and at the end of the loop, they run as they were.

Note [Loads ahead]
A thread waits for memory as long as for hundreds of operations, and a thread that goes through a long loop alone has
nobody to work meanwhile. What an iteration reads at places that its number tells, as a loop that goes backwards reads what
the way there has kept, can be asked for before: AHEAD iterations at once, so that the thread waits once for all of them.
Short iterations then follow one another with these numbers in registers; the last few of a loop run as they were. Of long
ones the numbers lie in memory of the thread until they are used, and beyond the end they are read where the last one is.
Nothing in such a loop may write to what is read, end the thread or wait for others. LLVM does the same where it unrolls a
loop; it does not where there are branches in it, as there are in functions like sin.
"""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import replace
from typing import TypeGuard

from tapeless.ir.types import BOOL, I64, Atom, Const, DType, Var, i64
from tapeless.lower.ir.loopir import (
    Assign,
    Atomic,
    Barrier,
    Buffer,
    Call,
    Check,
    Declare,
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
SHORT = 16  # statements of an iteration
ENDS = (Call, Invoke, Barrier, Swap)  # wait for others, or write anywhere
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
    inside = list(walk(loop.body))
    if not _is_long(loop) or any(isinstance(s, (For, While, *ENDS)) for s in inside):
        return with_blocks(loop, _inside)
    if any(isinstance(s, Check) for s in inside):
        tests = [s for s in loop.body if _is_test(s)]
        known = _known(loop)
        conditions = {s.cond for s in tests}
        needed = _needed(known, {c for c in conditions if isinstance(c, Var)})
        covered = conditions <= {s.var for s in known}
        others = any(isinstance(s, Check) for t in loop.body if not _is_test(t) for s in walk((t,)))
        if covered and not others and any(isinstance(s, Load) for s in needed):
            return _tested(loop, needed, tests)
    elif any(isinstance(s, If) or (isinstance(s, Let) and TABLE[s.op].cost >= CALL) for s in inside):  # not unrolled
        known = _known(loop)
        loads = [s.var for s in known if isinstance(s, Load)][:MOST]
        if loads:
            needed = _needed(known, set(loads))
            return _unrolled(loop, needed) if len(inside) <= SHORT else _batched(loop, needed)
    return loop


def _is_test(stm: Stm) -> TypeGuard[Check | If]:
    """With nothing to do where its condition holds."""
    return isinstance(stm, Check) or (
        isinstance(stm, If) and not stm.then and any(isinstance(s, Check) for s in walk((stm,)))
    )


def _is_long(loop: For) -> bool:
    if loop.tag is not Tag.seq or loop.step != 1:
        return False
    if isinstance(loop.lo, Const) and isinstance(loop.hi, Const):
        return bool(loop.hi.value.real - loop.lo.value.real > 2 * AHEAD)
    return True


def _known(loop: For) -> list[Let | Load]:
    """What an iteration reads at places that follow from its number, and the arithmetic for that, in order. Nothing is
    read that a test allows.
    """
    inside = list(walk(loop.body))
    changing = {v for s in inside for v in (*binds(s), *((s.var,) if isinstance(s, Assign) else ()))}
    written = {s.buffer for s in inside if isinstance(s, (Store, Atomic))}
    known = {loop.var}
    found: list[Let | Load] = []
    tested = False
    for s in loop.body:
        tested = tested or _is_test(s)
        if not isinstance(s, (Let, Load)) or not all(v in known or v not in changing for v in reads(s)):
            continue
        if isinstance(s, Let) and TABLE[s.op].cost >= CALL:
            continue
        if isinstance(s, Load) and (tested or s.buffer in written or s.buffer.space in OWN or s.index not in known):
            continue
        known.add(s.var)
        found.append(s)
    return found


def _needed(found: Sequence[Let | Load], needed: set[Var]) -> list[Let | Load]:
    """Those that make these numbers."""
    kept: list[Let | Load] = []
    for s in reversed(found):
        if s.var in needed:
            kept.append(s)
            needed.update(reads(s))
    return kept[::-1]


def _batched(loop: For, found: Sequence[Let | Load]) -> For:
    """Note [Loads ahead]"""
    batch, far, end, slot = (Var(name, I64) for name in ("batch", "far", "end", "slot"))
    loads = [s for s in found if isinstance(s, Load)]
    near = {s.var: Buffer(s.var.name, s.buffer.dtype, Space.stack, AHEAD) for s in loads}
    asked, names = _ahead(loop, found, batch)
    stores = [Store(near[s.var], i64(k), names[k][s.var]) for k in range(AHEAD) for s in loads]
    ends = Let(far, "add", (batch, i64(AHEAD)), exact=True), Let(end, "min", (far, loop.hi))
    fetched = Let(slot, "sub", (loop.var, batch), exact=True)
    body = tuple(Load(s.var, near[s.var], slot) if s in loads else s for s in loop.body)
    inner = replace(loop, lo=batch, hi=end, body=(fetched, *body))
    return For(batch, loop.lo, loop.hi, (*asked, *stores, *ends, inner), step=AHEAD, vectorize=False, span=loop.span)


def _unrolled(loop: For, found: Sequence[Let | Load]) -> For:
    """Note [Loads ahead], of short iterations."""
    batch, far, end, whole = Var("batch", I64), Var("far", I64), Var("end", I64), Var("whole", BOOL)
    stms, names = _ahead(loop, found, batch, whole=True)
    rest = tuple(s for s in loop.body if s not in found)
    for k in range(AHEAD):
        own = {v: Var(v.name, v.type) for s in walk(rest) for v in binds(s)}
        stms += renamed(rest, {**names[k], **own})
    as_it_was = Let(end, "min", (far, loop.hi)), replace(loop, lo=batch, hi=end)
    body = (
        Let(far, "add", (batch, i64(AHEAD)), exact=True),
        Let(whole, "le", (far, loop.hi)),
        If(whole, tuple(stms), as_it_was, likely=True),
    )
    return For(batch, loop.lo, loop.hi, body, step=AHEAD, vectorize=False, span=loop.span)


def _tested(loop: For, found: Sequence[Let | Load], tests: Sequence[Check | If]) -> For:
    """Note [Tests ahead]"""
    batch, far, end = (Var(name, I64) for name in ("batch", "far", "end"))
    whole, all_hold = Var("whole", BOOL), Var("good", BOOL)
    asked, names = _ahead(loop, found, batch, whole=True)
    good: Atom = Const(True, DType.bool)
    for k in range(AHEAD):
        for test in tests:
            before, good = good, Var("good", BOOL)
            assert isinstance(test.cond, Var)
            asked.append(Let(good, "and", (before, names[k][test.cond])))
    free = tuple(s for s in loop.body if s not in tests)
    own = {v: Var(v.name, v.type) for v in (loop.var, *(v for s in walk(free) for v in binds(s)))}
    fast = renamed(replace(loop, lo=batch, hi=far, body=free), own)
    as_it_was = Let(end, "min", (far, loop.hi)), replace(loop, lo=batch, hi=end)
    body = (
        Let(far, "add", (batch, i64(AHEAD)), exact=True),
        Let(whole, "le", (far, loop.hi)),
        Declare(all_hold, Const(False, DType.bool)),
        If(whole, (*asked, Assign(all_hold, good))),
        If(all_hold, (fast,), as_it_was, likely=True),
    )
    return For(batch, loop.lo, loop.hi, body, step=AHEAD, vectorize=False, span=loop.span)


def _ahead(
    loop: For, found: Sequence[Let | Load], batch: Var, whole: bool = False
) -> tuple[list[Stm], list[dict[Var, Var]]]:
    """What makes these numbers for the iterations of a batch, and their names in each. Where it is not known to be a
    `whole` one, the last one stands for those beyond.
    """
    last = Var("last", I64)
    stms: list[Stm] = [] if whole else [Let(last, "sub", (loop.hi, i64(1)), exact=True)]
    names: list[dict[Var, Var]] = []
    for k in range(AHEAD):
        beyond, at = Var("beyond", I64), Var(loop.var.name, I64)
        stms.append(Let(at if whole else beyond, "add", (batch, i64(k)), exact=True))
        if not whole:
            stms.append(Let(at, "min", (beyond, last)))
        names.append({loop.var: at, **{s.var: Var(s.var.name, s.var.type) for s in found}})
        stms += renamed(tuple(found), names[k])
    return stms, names
