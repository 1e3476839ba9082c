"""The memory that a call takes at its peak, predicted: read off the lowered program.

`footprint` takes a program and what is known of its arguments; gives the bytes of all arrays that are there when most
are: what is kept, adjoints, temporary arrays and results. Arguments do not count. Sizes are followed through
arithmetic as far as they are known before the program runs; where they are not, neither are the bytes (None).

Note [First and last]
Of a loop the first and the last iteration are looked at: arrays in it grow or shrink with its index, if they change
at all. What iterations hand on is unknown inside, and afterwards. Both arms of an undecided branch are looked at, and
the larger of each array goes on. Threads are counted as one.
"""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from typing import Any

import numpy as np

from tapeless.ir.types import Atom, Const, Var
from tapeless.lower.loopir import Alloc, Assign, Buffer, Declare, For, Free, Give, If, Let, Load, Stm, While
from tapeless.lower.lowering import Lowered
from tapeless.lower.printer import children, walk
from tapeless.ops.table import TABLE

FOLLOWED = 10_000  # iterations of a loop that counts, which are worth running before the call
ROUND = 64  # allocations are multiples of it: backends/llvm/code.py


def footprint(lowered: Lowered, values: Mapping[Var, Any]) -> int | None:
    reader = _Reader({v: np.asarray(x, v.type.dtype.numpy)[()] for v, x in values.items()})
    reader.values[lowered.program.threads] = np.int64(1)
    results: int | None = 0
    for result in lowered.array_results.values():
        if result.provided:
            cells = [reader.number(d) if isinstance(d, Var) else d for d in result.shape]
            results = None if None in cells or results is None else results + _product(cells) * result.type.dtype.bytes
    with np.errstate(all="ignore"):
        reader.block(lowered.program.body)
    return None if results is None or reader.unknown else results + reader.peak


class _Reader:
    def __init__(self, values: dict[Var, Any]) -> None:
        self.values = values
        self.live: dict[Buffer, int] = {}
        self.peak = 0
        self.unknown = False  # whether an array of unknown size was met

    def number(self, a: Atom) -> Any | None:
        return a.dtype.numpy.type(a.value) if isinstance(a, Const) else self.values.get(a)

    def set(self, var: Var, value: Any | None) -> None:
        if value is None:
            self.values.pop(var, None)
        else:
            self.values[var] = value

    def block(self, stms: Sequence[Stm]) -> None:
        for stm in stms:
            self.stm(stm)

    def stm(self, stm: Stm) -> None:
        match stm:
            case Let():
                self.set(stm.var, self.operation(stm))
            case Declare(var=var, init=value) | Assign(var=var, value=value):
                self.set(var, self.number(value))
            case Load(var=var):
                self.set(var, None)
            case For():
                self.loop(stm)
            case While(test=test, body=body):
                self.forget(stm)
                self.block(test)
                self.block(body)
                self.forget(stm)
            case If():
                self.branch(stm)
            case Alloc(buffer=buffer, size=size):
                self.allocate(buffer, self.number(size))
            case Free(buffer=buffer):
                self.live.pop(buffer, None)
            case Give():
                pass  # it is there to the end
            case _:
                for block in children(stm):
                    self.block(block)

    def operation(self, stm: Let) -> Any | None:
        args = [self.number(a) for a in stm.args]
        if any(a is None for a in args):
            return None
        dtype = stm.var.type.dtype.numpy
        return TABLE[stm.op].numpy(*args, *([dtype] if stm.op == "convert" else []))

    def allocate(self, buffer: Buffer, size: Any | None) -> None:
        if size is None:
            self.unknown = True
            return
        self.live[buffer] = (max(0, int(size)) * buffer.dtype.bytes + ROUND) // ROUND * ROUND
        self.peak = max(self.peak, sum(self.live.values()))

    def loop(self, stm: For) -> None:
        """Note [First and last]."""
        lo, hi = self.number(stm.lo), self.number(stm.hi)
        steps = None if lo is None or hi is None else range(int(lo), int(hi), stm.step)
        if steps is not None and not steps:
            return
        if steps is not None and len(steps) <= FOLLOWED and _counts(stm):
            for step in steps:
                self.set(stm.var, np.int64(step))
                self.block(stm.body)
            return
        for index in (None,) if steps is None else dict.fromkeys((steps[0], steps[-1])):
            if steps is None or len(steps) > 1:
                self.forget(stm)
            self.set(stm.var, None if index is None else np.int64(index))
            self.block(stm.body)
        if steps is None or len(steps) > 1:
            self.forget(stm)

    def branch(self, stm: If) -> None:
        taken = self.number(stm.cond)
        if taken is not None:
            self.block(stm.then if taken else stm.orelse)
            return
        before, values = dict(self.live), dict(self.values)
        self.block(stm.then)
        first, self.live = self.live, before
        self.values = values
        self.block(stm.orelse)
        self.live = {b: max(first.get(b, 0), self.live.get(b, 0)) for b in {**first, **self.live}}
        self.forget(stm)

    def forget(self, stm: Stm) -> None:
        """What the statement assigns."""
        for inner in walk((stm,)):
            if isinstance(inner, Assign):
                self.values.pop(inner.var, None)


def _counts(stm: For) -> bool:
    """Whether a loop has nothing but arithmetic on whole numbers: then it is run."""
    return all(
        _counts(s) if isinstance(s, For) else isinstance(s, Let | Assign | Declare) and not s.var.type.dtype.is_float
        for s in stm.body
    )


def _product(cells: Sequence[Any]) -> int:
    total = 1
    for c in cells:
        total *= max(0, int(c))
    return total
