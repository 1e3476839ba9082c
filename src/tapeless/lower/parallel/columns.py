"""Reductions of columns: many at once, so that memory is read in its order.

Note [Columns]
A map whose elements reduce rows of a transposed matrix would go down one column after the other, and fetch a line of the
cache for every number. So it takes WIDTH columns at a time: what an element computes is a short array on the stack, with a
cell for each of them, and a reduction goes through the rows of the matrix from left to right.
"""

from __future__ import annotations

from collections.abc import Sequence

from tapeless.ir.core import Atom, Lambda, Stm, Sweep, Var
from tapeless.ir.types import DType, i64
from tapeless.lower.core.code import ONE, Loc
from tapeless.lower.core.lowerer import Lowerer
from tapeless.lower.ir.loopir import Buffer, Space, Tag
from tapeless.lower.parallel.elements import bind_rows
from tapeless.lower.parallel.lanes import rows_reduced

WIDTH = 1024


def reduces_columns(lo: Lowerer, exp: Sweep, lam: Lambda, outs: Sequence[Loc]) -> bool:
    """Whether all rows that the elements reduce are columns in memory, next to each other, and nothing is written over."""
    sweeps = None if lo.schedule.apart or lo.launches else rows_reduced(Sweep(exp.width, exp.arrays, lam))
    if not sweeps or any(v.type.shape for s in lam.body.stms for v in s.vars):
        return False
    rows = dict(zip(lam.params[1:], exp.arrays, strict=True))
    columns = [lo.loc(rows[a]) for sweep in sweeps for a in sweep.arrays if a in rows]
    aligned = all(loc.rank == 2 and loc.strides[0] == ONE and loc.strides[1] != ONE for loc in columns)
    flat = all(p.type.rank == 0 for sweep in sweeps for p in sweep.lam.params)
    written = {out.buffer for out in outs}
    read = {lo.loc(a).buffer for a in exp.arrays}
    return bool(columns) and aligned and flat and not written & read


def run_by_columns(lo: Lowerer, exp: Sweep, lam: Lambda, start: Atom, stop: Atom, outs: Sequence[Loc]) -> None:
    """Note [Columns]"""
    code = lo.code
    with code.loop(stop, start, label="j", step=WIDTH) as first:
        width = code.let("min", DType.i64, code.sub(stop, first), i64(WIDTH), label="width")
        block = _Block(lo, exp, lam, first, width)
        for stm in lam.body.stms:
            block.stm(stm)
        block.put(outs)


class _Block:
    """Some columns, and what is known of each."""

    def __init__(self, lo: Lowerer, exp: Sweep, lam: Lambda, first: Atom, width: Atom) -> None:
        self.lo, self.code, self.exp, self.lam, self.first, self.width = lo, lo.code, exp, lam, first, width
        self.cells: dict[Var, Loc] = {}

    def stm(self, stm: Stm) -> None:
        if isinstance(stm.exp, Sweep):
            self.reduce(stm.vars, stm.exp)
            return
        with self.code.loop(self.width, label="q", tag=Tag.simd) as q:
            self.bind(q)
            self.lo.stm(stm)
            made = {v: _room(v) for v in stm.vars}
            for v, loc in made.items():
                self.code.store(loc, [q], self.lo.atom(v))
        self.cells.update(made)

    def reduce(self, vars: Sequence[Var], exp: Sweep) -> None:
        lo, code = self.lo, self.code
        totals = [_room(v) for v in vars]
        neutral = [ne for r in exp.reduces for ne in r.neutral]
        with code.loop(self.width, label="q", tag=Tag.simd) as q:
            self.bind(q)
            for total, ne in zip(totals, neutral, strict=True):
                code.store(total, [q], lo.atom(ne))
        self.cells.update(zip(vars, totals, strict=True))
        with code.loop(lo.dim(exp.width)) as i, code.loop(self.width, label="q", tag=Tag.simd) as q:
            self.bind(q)
            bind_rows(lo, exp.lam, i, exp.arrays)
            values = lo.body(exp.lam.body)
            at = 0
            for r in exp.reduces:
                own = range(at, at + len(r.neutral))
                before = [code.load(totals[k], [q]) for k in own]
                made = lo.inline(r.op, [*before, *(values[k] for k in own)])
                for k, value in zip(own, made, strict=True):
                    code.store(totals[k], [q], lo.atom(value))
                at += len(r.neutral)

    def put(self, outs: Sequence[Loc]) -> None:
        with self.code.loop(self.width, label="q", tag=Tag.simd) as q:
            self.bind(q)
            for out, result in zip(outs, self.lam.body.results, strict=True):
                self.code.store(out, [self.code.add(self.first, q)], self.lo.atom(result))

    def bind(self, q: Atom) -> None:
        """What column q has so far."""
        bind_rows(self.lo, self.lam, self.code.add(self.first, q), self.exp.arrays)
        for v, loc in self.cells.items():
            self.lo.scalars[v] = self.code.load(loc, [q])


def _room(v: Var) -> Loc:
    return Loc(Buffer(v.name, v.type.dtype, Space.stack, WIDTH), v.type.dtype, (i64(WIDTH),), (ONE,))
