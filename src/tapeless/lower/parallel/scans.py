"""Scans in pieces, for threads and for a GPU.

Note [Scans in pieces]
Each piece combines its elements; then the totals of the pieces before it are known to each piece, by one scan over the few
totals; then each piece runs again from there, and stores. Elements are made twice, so that nothing between is stored. On
a GPU one block of threads scans the totals: each thread some of them, in the same three steps.
"""

from __future__ import annotations

from collections.abc import Sequence

from tapeless.ir.core import Atom, Body, Lambda, Reduction, Sweep, Var
from tapeless.ir.types import DType, i64
from tapeless.ir.walk import refresh_lambda
from tapeless.lower.core.code import ONE, Loc
from tapeless.lower.core.lowerer import Lowerer
from tapeless.lower.ir.loopir import BLOCK_THREADS, Barrier, Tag
from tapeless.lower.parallel.elements import Total, element, partial_results, put_totals, shared_memory, start_total
from tapeless.lower.parallel.invariant import once_per_chunk
from tapeless.lower.parallel.work import share

MOST_PIECES = 1 << 15  # on a GPU
EACH_PIECE = 16  # elements at least


def can_scan(exp: Sweep) -> bool:
    """Only numbers are scanned, and nothing is reduced besides."""
    return bool(exp.scans) and not exp.reduces and all(not ne.type.shape for r in exp.scans for ne in r.neutral)


def pieces_on_grid(lo: Lowerer, n: Atom) -> Atom:
    code = lo.code
    enough = code.let("floordiv", DType.i64, n, i64(EACH_PIECE), label="pieces")
    most = code.let("min", DType.i64, enough, i64(MOST_PIECES), label="pieces")
    return code.let("max", DType.i64, most, ONE, label="pieces")


def run_scanned(lo: Lowerer, exp: Sweep, n: Atom, pieces: Atom, outs: Sequence[Loc]) -> None:
    """Note [Scans in pieces]"""
    code = lo.code
    scanned = sum(len(r.neutral) for r in exp.scans)
    totals = [[partial_results(lo, ne.type.dtype, pieces) for ne in r.neutral] for r in exp.scans]
    only = _only_scanned(exp, scanned)
    with code.loop(pieces, tag=lo.schedule.launched, label="piece") as t:
        code.parallel = True
        mine = [start_total(lo, r, [None] * len(r.neutral)) for r in only.reduces]
        _piece(lo, only, n, pieces, t, mine, [], [], 0)
        put_totals(lo, totals, t, mine)
        code.parallel = False
    (_before_by_block if lo.schedule.each else _before)(lo, exp.scans, pieces, totals)
    with code.loop(pieces, tag=lo.schedule.launched, label="piece") as t:
        code.parallel = True
        running = [_started(lo, r, locs, t) for r, locs in zip(exp.scans, totals, strict=True)]
        _piece(lo, exp, n, pieces, t, [], running, outs, scanned)
        code.parallel = False


def _only_scanned(exp: Sweep, scanned: int) -> Sweep:
    """What is scanned, as reductions."""
    lam = refresh_lambda(exp.lam)
    part = Lambda(lam.params, Body(lam.body.stms, lam.body.results[:scanned]))
    return Sweep(exp.width, exp.arrays, part, exp.scans)


def _piece(
    lo: Lowerer,
    exp: Sweep,
    n: Atom,
    pieces: Atom,
    t: Atom,
    totals: list[Total],
    running: list[Total],
    outs: Sequence[Loc],
    scanned: int,
) -> None:
    code = lo.code
    start, stop = share(lo, t, n, pieces)
    first, each = once_per_chunk(exp.lam)

    def run() -> None:
        for stm in first:
            lo.stm(stm)
        with code.loop(stop, start, vectorize=not running) as i:
            element(lo, exp, each, i, totals, running, outs, scanned)

    code.branch(code.compare("lt", start, stop), lambda: lo.scoped(run))


def _started(lo: Lowerer, r: Reduction, locs: Sequence[Loc], at: Atom) -> Total:
    """A running total that starts with stored values."""
    return Total(lo, r, [lo.code.declare(lo.code.load(loc, [at]), "total") for loc in locs])


def _before(lo: Lowerer, scans: Sequence[Reduction], pieces: Atom, totals: Sequence[Sequence[Loc]]) -> None:
    """In the place of each total, the total of all before it."""
    running = [start_total(lo, r, [None] * len(r.neutral)) for r in scans]
    with lo.code.loop(pieces, label="piece", vectorize=False) as t:
        _exchange(lo, running, totals, t)


def _before_by_block(lo: Lowerer, scans: Sequence[Reduction], pieces: Atom, totals: Sequence[Sequence[Loc]]) -> None:
    """The same by one block."""
    code = lo.code
    threads = i64(BLOCK_THREADS)
    code.parallel = True
    with code.loop(ONE, tag=lo.schedule.launched, label="block"):
        shared = [[shared_memory(ne.type.dtype) for ne in r.neutral] for r in scans]
        with code.loop(threads, tag=Tag.block, label="thread") as thread:
            start, stop = share(lo, thread, pieces, threads)
            mine = [start_total(lo, r, [None] * len(r.neutral)) for r in scans]
            with code.loop(stop, start, label="k") as k:
                for total, locs in zip(mine, totals, strict=True):
                    total.combine([code.load(loc, [k]) for loc in locs])
            put_totals(lo, shared, thread, mine)
            code.emit(Barrier())
            running = [start_total(lo, r, [None] * len(r.neutral)) for r in scans]
            with code.loop(thread, label="k") as k:
                for total, locs in zip(running, shared, strict=True):
                    total.combine([code.load(loc, [k]) for loc in locs])
            with code.loop(stop, start, label="k") as k:
                _exchange(lo, running, totals, k)
    code.parallel = False


def _exchange(lo: Lowerer, running: Sequence[Total], totals: Sequence[Sequence[Loc]], at: Atom) -> None:
    """Stores what is running, and takes in what was there."""
    for total, locs in zip(running, totals, strict=True):
        values = [lo.code.load(loc, [at]) for loc in locs]
        for loc, slot in zip(locs, total.slots, strict=True):
            assert isinstance(slot, Var)
            lo.code.store(loc, [at], slot)
        total.combine(values)
