"""Loops that say how far they are: where an iteration is short, once in a strip of them.

Takes code that ends in a loop; where that has `progress` in its body it becomes a loop over strips. The loop inside is
what it would have been without, for LLVM too. A longer iteration does not notice two stores.
"""

from __future__ import annotations

from dataclasses import replace

from tapeless.ir.types import I64, Atom, DType, Var, i64
from tapeless.lower.core.code import ONE, ZERO, Code
from tapeless.lower.ir.loopir import Call, For, Invoke, Launch, Let, Progress, While
from tapeless.lower.ir.walk import binds, reads, walk

STRIP = i64(4096)  # iterations


def show_in_strips(code: Code) -> None:
    loop = code.block[-1]
    if not isinstance(loop, For) or loop.lo != ZERO or not any(isinstance(s, Progress) for s in loop.body):
        return
    lets = _lets(loop)
    if lets is None or any(isinstance(s, (For, While, Call, Invoke, Launch)) for s in walk(loop.body)):
        return
    code.block.pop()
    trips = code.let("max", DType.i64, loop.hi, ZERO)
    strips = code.add(code.let("floordiv", DType.i64, code.sub(trips, ONE), STRIP), ONE)
    with code.loop(strips, label="strip") as strip:
        first = code.mul(strip, STRIP)
        _emit_progress(code, loop, lets, first)
        count = code.let("min", DType.i64, STRIP, code.sub(trips, first))
        r = Var("r", I64)
        index = Let(loop.var, "add", (first, r), exact=True)  # LLVM unrolls what counts from 0
        body = (index, *(s for s in loop.body if not isinstance(s, Progress)))
        code.emit(replace(loop, var=r, hi=count, body=body))


def _lets(loop: For) -> list[Let] | None:
    """What says how far it is, from the index and from outside; None if it takes more than that."""
    needed = {v for s in loop.body if isinstance(s, Progress) for v in reads(s)}
    found: list[Let] = []
    for s in reversed(loop.body):
        if isinstance(s, Let) and s.var in needed:
            found.append(s)
            needed.update(reads(s))
    bound = {v for s in loop.body for v in binds(s)}
    return found[::-1] if needed & bound == {s.var for s in found} else None


def _emit_progress(code: Code, loop: For, lets: list[Let], first: Atom) -> None:
    """For the first iteration of a strip."""
    values: dict[Var, Atom] = {loop.var: first}

    def at_first(a: Atom) -> Atom:
        return values.get(a, a) if isinstance(a, Var) else a

    for s in lets:
        values[s.var] = code.let(s.op, s.var.type.dtype, *map(at_first, s.args), label=s.var.name)
    for shown in (s for s in loop.body if isinstance(s, Progress)):
        code.emit(Progress(at_first(shown.done), at_first(shown.total), shown.backward))
