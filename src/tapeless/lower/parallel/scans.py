"""Scans in pieces, for threads.

Note [Scans in pieces]
Each piece combines its elements; then the totals of the pieces before it are known to each piece, by one scan over the few
totals; then each piece runs again from there, and stores. Elements are made twice, so that nothing between is stored.
"""

from __future__ import annotations

from collections.abc import Sequence

from tapeless.ir.core import Atom, Body, Lambda, Reduction, Sweep, UpdateAcc, Var
from tapeless.ir.effects import effects_in
from tapeless.ir.walk import refresh_lambda
from tapeless.lower.core.code import Loc
from tapeless.lower.core.lowerer import Lowerer
from tapeless.lower.parallel.elements import Total, element, partial_results, put_totals, start_total
from tapeless.lower.parallel.invariant import once_per_chunk
from tapeless.lower.parallel.work import share


def can_scan(exp: Sweep) -> bool:
    """Only numbers are scanned, and nothing is reduced or added to accumulators besides: elements are made twice."""
    if not exp.scans or exp.reduces or any(isinstance(e, UpdateAcc) for e in effects_in(exp.lam.body.stms)):
        return False
    return all(not ne.type.shape for r in exp.scans for ne in r.neutral)


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
    _before(lo, exp.scans, pieces, totals)
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


def _exchange(lo: Lowerer, running: Sequence[Total], totals: Sequence[Sequence[Loc]], at: Atom) -> None:
    """Stores what is running, and takes in what was there."""
    for total, locs in zip(running, totals, strict=True):
        values = [lo.code.load(loc, [at]) for loc in locs]
        for loc, slot in zip(locs, total.slots, strict=True):
            assert isinstance(slot, Var)
            lo.code.store(loc, [at], slot)
        total.combine(values)
