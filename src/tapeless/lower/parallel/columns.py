"""Reductions of columns: many at once, so that memory is read in its order.

Note [Columns]
A map whose elements reduce rows of a transposed matrix would go down one column after the other, and fetch a line of the
cache for every number. So it takes WIDTH columns at a time: a reduction goes through the rows of the matrix from left to right, and what an
element hands on to or from it is a short array on the stack, with a cell for each column.
"""

from __future__ import annotations

from collections.abc import Callable, Collection, Sequence

from tapeless.ir.core import Atom, Body, Lambda, Stm, Sweep, Var
from tapeless.ir.types import DType, i64
from tapeless.ir.walk import free_in_body, free_in_exp
from tapeless.lower.core.code import ONE, Loc
from tapeless.lower.core.lowerer import Lowerer
from tapeless.lower.ir.loopir import Buffer, Space, Tag
from tapeless.lower.parallel.elements import Total, bind_rows, order_free
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


def run_by_columns(
    lo: Lowerer, exp: Sweep, lam: Lambda, start: Atom, stop: Atom, totals: Sequence[Total], outs: Sequence[Loc]
) -> None:
    """Note [Columns]"""
    code = lo.code
    with code.loop(stop, start, label="j", step=WIDTH) as first:
        width = code.let("min", DType.i64, code.sub(stop, first), i64(WIDTH), label="width")
        block, begun, stms = _Block(lo, exp, lam, first, width), 0, lam.body.stms
        for k, stm in enumerate(stms):
            if isinstance(stm.exp, Sweep):
                block.reduce(stms[begun:k], stm.vars, stm.exp, Body(stms[k:], lam.body.results))
                begun = k + 1
        block.put(stms[begun:], totals, outs)


class _Block:
    """Some columns, and what is known of each: `cells` holds what one pass over them leaves for the next ones."""

    def __init__(self, lo: Lowerer, exp: Sweep, lam: Lambda, first: Atom, width: Atom) -> None:
        self.lo, self.code, self.lam, self.first, self.width = lo, lo.code, lam, first, width
        self.rows = dict(zip(lam.params[1:], exp.arrays, strict=True))
        self.cells: dict[Var, Loc] = {}

    def reduce(self, before: Sequence[Stm], vars: Sequence[Var], exp: Sweep, rest: Body) -> None:
        """`rest` begins with the reduction; what stands before it is done with its neutral elements."""
        lo, code = self.lo, self.code
        totals = [_room(v) for v in vars]
        neutral = [ne for r in exp.reduces for ne in r.neutral]
        later = free_in_body(rest)
        left = {v: _room(v) for s in before for v in s.vars if v in later}

        def begin(q: Atom) -> None:
            for v, loc in left.items():
                code.store(loc, [q], lo.atom(v))
            for total, ne in zip(totals, neutral, strict=True):
                code.store(total, [q], lo.atom(ne))

        self.columns(Body(tuple(before), tuple(neutral)), begin)
        self.cells.update([*left.items(), *zip(vars, totals, strict=True)])
        with code.loop(lo.dim(exp.width)) as i, code.loop(self.width, label="q", tag=Tag.simd) as q:
            self.bind(q, free_in_exp(exp))
            bind_rows(lo, exp.lam, i, exp.arrays)
            values = lo.body(exp.lam.body)
            at = 0
            for r in exp.reduces:
                own = range(at, at + len(r.neutral))
                so_far = [code.load(totals[k], [q]) for k in own]
                made = lo.inline(r.op, [*so_far, *(values[k] for k in own)])
                for k, value in zip(own, made, strict=True):
                    code.store(totals[k], [q], lo.atom(value))
                at += len(r.neutral)

    def put(self, stms: Sequence[Stm], totals: Sequence[Total], outs: Sequence[Loc]) -> None:
        results = self.lam.body.results

        def store(q: Atom) -> None:
            values = [self.lo.atom(r) for r in results]
            for total in totals:
                total.combine(values[: len(total.slots)])
                del values[: len(total.slots)]
            for out, value in zip(outs, values, strict=True):
                self.code.store(out, [self.code.add(self.first, q)], value)

        free = all(order_free(total.reduction) for total in totals)
        self.columns(Body(tuple(stms), results), store, Tag.simd if free else Tag.seq)

    def columns(self, body: Body, then: Callable[[Atom], None], tag: Tag = Tag.simd) -> None:
        """Does this for each column."""
        with self.code.loop(self.width, label="q", tag=tag) as q:
            self.bind(q, free_in_body(body))
            for stm in body.stms:
                self.lo.stm(stm)
            then(q)

    def bind(self, q: Atom, used: Collection[Var]) -> None:
        """What column q has so far, as far as it is used."""
        lo, code = self.lo, self.code
        lo.scalars[self.lam.params[0]] = at = code.add(self.first, q)
        for p, a in self.rows.items():
            if p.type.shape:
                lo.arrays[p] = code.inside(lo.loc(a), at)
            elif p in used:
                lo.scalars[p] = code.load(lo.loc(a), [at], p.name)
        for v, loc in self.cells.items():
            if v in used:
                lo.scalars[v] = code.load(loc, [q])


def _room(v: Var) -> Loc:
    return Loc(Buffer(v.name, v.type.dtype, Space.stack, WIDTH), v.type.dtype, (i64(WIDTH),), (ONE,))
