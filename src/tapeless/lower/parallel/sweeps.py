"""Lowering of sweeps: one loop, cut into one chunk per thread when it is worth it.

The outermost sweep of a region is cut; sweeps inside it are plain loops, which LLVM vectorises. Each chunk reduces
into values of its own, which are then combined in order, so an operator only has to be associative.
"""

from __future__ import annotations

from collections.abc import Callable, Sequence
from dataclasses import replace
from functools import partial
from itertools import count

from tapeless.ir.core import Atom, Lambda, Stm, Sweep, Var
from tapeless.ir.types import Const, DType, Type, const
from tapeless.ir.walk import all_stms, free_in_lambda, refresh_lambda
from tapeless.lower.core.code import FEW, ONE, ZERO, Loc
from tapeless.lower.core.lowerer import Lowerer, lowers
from tapeless.lower.core.schedule import MOST_THREADS
from tapeless.lower.ir import loopir
from tapeless.lower.ir.loopir import Buffer, Space
from tapeless.lower.parallel.accumulators import (
    add_pieces,
    copies_of_cells,
    with_copies,
    with_private,
    worth_private,
)
from tapeless.lower.parallel.batched import as_one, products
from tapeless.lower.parallel.columns import reduces_columns, run_by_columns
from tapeless.lower.parallel.elements import Total, atomic_ops, element, order_free, set_aside, start_total
from tapeless.lower.parallel.invariant import once_per_chunk
from tapeless.lower.parallel.lanes import share_reduction
from tapeless.lower.parallel.on_grid import better_in_order, can_run, run_on_grid
from tapeless.lower.parallel.same_bits import chunks_of, rounding, shows_order
from tapeless.lower.parallel.work import cost_of, pieces_of, share, work_of, worth_cutting
from tapeless.passes.analysis.distances import owns_rows

LARGE = 100  # statements of an element for which there is one way only, since each takes time to compile


@lowers(Sweep)
def lower_sweep(lo: Lowerer, vars: tuple[Var, ...], exp: Sweep) -> None:
    if lo.lanes is not None:
        share_reduction(lo, vars, exp, lo.lanes)
        return
    if lo.launches and as_one(lo, vars, exp):
        return
    n = lo.dim(exp.width)
    reduced = sum(len(r.neutral) for r in exp.reduces)
    scanned = sum(len(r.neutral) for r in exp.scans)
    outs = [lo.place(v) for v in vars[reduced:]]
    set_aside(lo, exp, outs)
    for v, loc in zip(vars[reduced:], outs, strict=True):
        lo.arrays[v] = loc
    finals = [None if not v.type.shape else lo.place(v) for v in vars[:reduced]]
    accs = [a for a in free_in_lambda(exp.lam) if a in lo.accs and lo.accs[a].op != "set" and not owns_rows(exp.lam, a)]

    def chunk(start: Atom, stop: Atom, totals: list[Total], lam: Lambda) -> None:
        first, each = once_per_chunk(lam)
        if first:
            run = partial(lo.scoped, lambda: elements(start, stop, totals, first, each))
            lo.code.branch(lo.code.compare("lt", start, stop), run)
        else:
            elements(start, stop, totals, first, each)

    def elements(start: Atom, stop: Atom, totals: list[Total], first: Sequence[Stm], each: Lambda) -> None:
        for stm in first:
            lo.stm(stm)
        if not exp.scans and reduces_columns(lo, exp, each, outs):
            run_by_columns(lo, exp, each, start, stop, totals, outs)
            return
        running = [start_total(lo, r, [None] * len(r.neutral)) for r in exp.scans]
        _loop(lo, exp, each, start, stop, totals, running, outs, scanned)

    def whole_totals() -> list[Total]:
        totals, at = [], 0
        for r in exp.reduces:
            totals.append(start_total(lo, r, finals[at : at + len(r.neutral)]))
            at += len(r.neutral)
        return totals

    def whole(lam: Lambda) -> list[Total]:
        totals = whole_totals()
        chunk(ZERO, n, totals, lam)
        return totals

    def in_chunks(totals: list[Total]) -> None:
        """Note [Same bits]"""
        assert not exp.scans, "scans add nothing to accumulators"
        mine = rounding(lo, accs)
        own = [*(lo.accs[a].loc for a in mine), *(s for t in totals for s in t.slots if isinstance(s, Loc))]
        chunks = chunks_of(lo, n, own) if own or totals else n
        with_private(lo, mine, chunks, lambda: _cut(lo, exp, n, chunks, totals, chunk, exp.lam, mine))

    def on_grid(totals: list[Total]) -> None:
        if lo.schedule.deterministic and shows_order(lo, exp):
            in_chunks(totals)
            return
        small = sum(1 for _ in all_stms(exp.lam.body)) <= LARGE
        copies = copies_of_cells(lo, accs, n) if accs and small else ZERO
        again = replace(exp, lam=refresh_lambda(exp.lam))
        plain = partial(run_on_grid, lo, exp, n, totals, outs)
        copied = partial(with_copies, lo, accs, copies, partial(run_on_grid, lo, again, n, totals, outs))
        if copies == ZERO:
            plain()
        elif isinstance(copies, Const):
            copied()
        else:
            some = lo.code.compare("gt", copies, ZERO)
            lo.code.branch(some, lambda: lo.scoped(copied), lambda: lo.scoped(plain))

    if not worth_cutting(lo, exp) or exp.scans:
        if lo.launches and not _is_little(exp) and can_run(exp):
            at_once = products(lo, exp, outs[0]) if len(outs) == 1 else None
            if at_once is not None:
                better, run = at_once
                lo.code.branch(better, lambda: lo.scoped(run), lambda: lo.scoped(lambda: on_grid([])))
                return
            totals = whole_totals()
            few = better_in_order(lo, exp, n, outs)
            if few is None or few == const(False, DType.bool):
                on_grid(totals)
            elif isinstance(few, Const):
                chunk(ZERO, n, totals, exp.lam)
            else:
                lo.code.branch(
                    few,
                    lambda: lo.scoped(lambda: chunk(ZERO, n, totals, refresh_lambda(exp.lam))),
                    lambda: lo.scoped(lambda: on_grid(totals)),
                )
            _bind(lo, vars[:reduced], totals)
            return
        totals = whole(exp.lam)
        _bind(lo, vars[:reduced], totals)
        return
    lo.note("parallel on threads")
    work = once_per_chunk(exp.lam)[1].body
    pieces = pieces_of(lo, n, exp.lam, work)
    if accs:
        pieces = worth_private(lo, accs, pieces, work_of(lo, n, exp.lam, work))
        results: list[Total] = []
        shared = [start_total(lo, r, [None] * len(r.neutral)) for r in exp.reduces]

        def sequential() -> None:
            lo.code.parallel = True
            lo.scoped(lambda: chunk(ZERO, n, shared, refresh_lambda(exp.lam)))
            lo.code.parallel = False

        def cut() -> None:
            with_private(
                lo, accs, pieces, lambda: _cut(lo, exp, n, pieces, shared, chunk, refresh_lambda(exp.lam), accs)
            )

        lo.code.branch(lo.code.compare("le", pieces, ONE), sequential, cut)
        results = shared
        _bind(lo, vars[:reduced], results)
        return
    totals = whole_totals()
    _cut(lo, exp, n, pieces, totals, chunk, exp.lam, [])
    _bind(lo, vars[:reduced], totals)


def _is_little(exp: Sweep) -> bool:
    """Not worth a kernel of several threads."""
    return isinstance(exp.width, int) and exp.width * cost_of(exp.lam.body) <= 4 * FEW


def _bind(lo: Lowerer, vars: Sequence[Var], totals: Sequence[Total]) -> None:
    slots = [s for t in totals for s in t.slots]
    for v, s in zip(vars, slots, strict=True):
        if isinstance(s, Loc):
            lo.arrays[v] = s
        else:
            lo.scalars[v] = s


def _cut(
    lo: Lowerer,
    exp: Sweep,
    n: Atom,
    pieces: Atom,
    totals: list[Total],
    chunk: Callable[[Atom, Atom, list[Total], Lambda], None],
    lam: Lambda,
    accs: Sequence[Var],
) -> None:
    """One chunk per thread; partial results in memory, combined in order afterwards."""
    code = lo.code
    partial: list[list[Loc]] = []
    numbers = count()
    for r in exp.reduces:
        partial.append([_partial(lo, ne.type, pieces, next(numbers)) for ne in r.neutral])
    with code.loop(pieces, tag=lo.schedule.launched, label="piece") as t:
        lo.code.parallel = True

        def run() -> None:
            start, stop = share(lo, t, n, pieces)
            for a in accs:
                lo.accs[a] = lo.accs[a].private(lo, t)
            homes = [[code.inside(p, t) if ne.type.shape else None for p, ne in zip(ps, r.neutral, strict=True)]
                     for ps, r in zip(partial, exp.reduces, strict=True)]  # fmt: skip
            mine = [start_total(lo, r, h) for r, h in zip(exp.reduces, homes, strict=True)]
            chunk(start, stop, mine, lam)
            for ps, total in zip(partial, mine, strict=True):
                for p, s in zip(ps, total.slots, strict=True):
                    if isinstance(s, Var):
                        code.store(p, [t], s)

        lo.scoped(run)
        lo.code.parallel = False
    together = [(total, ps) for total, ps in zip(totals, partial, strict=True) if not _by_cells(lo, total, ps, pieces)]
    if together:
        with code.loop(pieces, label="piece", vectorize=False) as t:
            for total, ps in together:
                total.combine([code.inside(p, t) if p.rank > 1 else code.load(p, [t]) for p in ps])
    for ps in partial:
        for p in ps:
            if p.buffer.space is Space.heap:
                code.free(p.buffer)


def _by_cells(lo: Lowerer, total: Total, partial: Sequence[Loc], pieces: Atom) -> bool:
    """Combines arrays of all chunks with a thread for each cell, where there are kernels."""
    slots = [s for s in total.slots if isinstance(s, Loc)]
    if not lo.schedule.each or len(slots) < len(total.slots):
        return False
    for op, slot, loc in zip(atomic_ops(total.reduction) or (), slots, partial, strict=True):
        add_pieces(lo, op, slot, loc, pieces)
    return True


def _partial(lo: Lowerer, type: Type, pieces: Atom, number: int) -> Loc:
    """Memory for the partial results of all chunks: numbers on the stack, where all sweeps of a program share it."""
    if type.shape or lo.schedule.apart:
        return lo.code.allocate(type.dtype, (pieces, *lo.dims(type.shape)), "partial")
    key = type.dtype, number
    if key not in lo.scratch:
        lo.scratch[key] = Buffer("partial", type.dtype, Space.stack, MOST_THREADS)
    return Loc(lo.scratch[key], type.dtype, (pieces,), (ONE,))


def _loop(
    lo: Lowerer,
    exp: Sweep,
    lam: Lambda,
    start: Atom,
    stop: Atom,
    totals: list[Total],
    running: list[Total],
    outs: Sequence[Loc],
    scanned: int,
) -> None:
    code = lo.code
    with code.nested() as body:
        i = Var("i", lam.params[0].type)
        element(lo, exp, lam, i, totals, running, outs, scanned)
    free = not running and all(order_free(r) for r in exp.reduces)
    own = {lo.accs[a].loc.buffer for a in free_in_lambda(lam) if a in lo.accs and owns_rows(lam, a)}
    tag = loopir.Tag.simd if free and _independent(body, own | {o.buffer for o in outs}) else loopir.Tag.seq
    code.emit(loopir.For(i, start, stop, tuple(body), 1, tag, span=code.span))


def _independent(body: Sequence[loopir.Stm], outs: set[loopir.Buffer]) -> bool:
    """Whether the iterations only share what they read: then the loop is marked for SIMD."""
    for stm in body:
        match stm:
            case loopir.Let() | loopir.Load() | loopir.Declare() | loopir.Assign():
                continue
            case loopir.Store(buffer=b) if b in outs:
                continue
            case loopir.If(then=then, orelse=orelse) if _independent(then, outs) and _independent(orelse, outs):
                continue
            case _:
                return False
    return True
