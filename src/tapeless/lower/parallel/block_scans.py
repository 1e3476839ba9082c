"""Scans on a GPU: the threads of a block take elements that lie side by side.

Note [Scans by blocks]
Each block goes through a run of the elements, tile by tile. In a tile each thread makes a few elements, side by side, and
combines them; then the block combines what its threads have, in shared memory, where each thread finds what comes before
its own. What there was so far goes from tile to tile. This is done twice: for the total of each block, and, when one
block has scanned these totals, from there, with stores. Elements are made twice, so that nothing between is stored.
"""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass
from functools import partial

from tapeless.ir.core import Atom, Body, Lambda, Reduction, Sweep
from tapeless.ir.operands import regions
from tapeless.ir.types import DType, Var, i64
from tapeless.ir.walk import refresh_lambda
from tapeless.lower.core.code import ONE, ZERO, Loc
from tapeless.lower.core.lowerer import Lowerer
from tapeless.lower.ir.loopir import BLOCK_THREADS, SHARED_BYTES, Barrier, Tag
from tapeless.lower.parallel.elements import (
    Total,
    element,
    partial_results,
    put_totals,
    shared_bytes,
    shared_memory,
    start_total,
)
from tapeless.lower.parallel.invariant import once_per_chunk
from tapeless.lower.parallel.work import LIGHT, blocks_of, cost_of, share

EACH_THREAD = 4  # elements of a tile

Cells = Sequence[Sequence[Loc]]  # for each scan, for each of its numbers


def run_by_blocks(lo: Lowerer, exp: Sweep, n: Atom, outs: Sequence[Loc]) -> None:
    """Note [Scans by blocks]"""
    code = lo.code
    simple = cost_of(exp.lam.body) <= LIGHT and not any(regions(s.exp) for s in exp.lam.body.stms)
    each = EACH_THREAD if simple else 1
    tile = BLOCK_THREADS * each
    tiles = code.let("floordiv", DType.i64, code.add(n, i64(tile - 1)), i64(tile), label="tiles")
    blocks = blocks_of(lo, tiles, ONE)
    scanned = sum(len(r.neutral) for r in exp.scans)
    totals = [[partial_results(lo, ne.type.dtype, blocks) for ne in r.neutral] for r in exp.scans]
    only = Lambda(exp.lam.params, Body(exp.lam.body.stms, exp.lam.body.results[:scanned]))

    def find_totals() -> None:
        with code.loop(blocks, tag=lo.schedule.launched, label="block") as block:
            _Block(lo, exp, refresh_lambda(only), n, each, block, totals).run(share(lo, block, tiles, blocks), None)
        scan_totals(lo, exp.scans, blocks, totals)

    code.parallel = True
    code.branch(code.compare("gt", blocks, ONE), find_totals)
    with code.loop(blocks, tag=lo.schedule.launched, label="block") as block:
        _Block(lo, exp, exp.lam, n, each, block, totals).run(share(lo, block, tiles, blocks), outs)
    code.parallel = False


@dataclass
class _Block:
    """What the threads of one block do. `totals` has a place for each block."""

    lo: Lowerer
    exp: Sweep
    lam: Lambda
    n: Atom
    each: int
    block: Atom
    totals: Cells

    def run(self, tiles: tuple[Atom, Atom], outs: Sequence[Loc] | None) -> None:
        """Without `outs` for the total of the block, else from what comes before it."""
        lo, code, scans = self.lo, self.lo.code, self.exp.scans
        shared = _shared(scans)
        first, self.lam = once_per_chunk(self.lam)
        start, stop = tiles
        with code.loop(i64(BLOCK_THREADS), tag=Tag.block, label="thread") as thread:
            so_far = neutral(lo, scans)
            if outs is not None:
                code.branch(code.compare("gt", self.block, ZERO), lambda: _load(so_far, self.totals, self.block))

            def tile_by_tile() -> None:
                for stm in first:
                    lo.stm(stm)
                with code.loop(stop, start, label="tile", vectorize=False) as tile:
                    self.tile(code.add(code.mul(tile, i64(BLOCK_THREADS)), thread), thread, so_far, shared, outs)

            code.branch(code.compare("lt", start, stop), lambda: lo.scoped(tile_by_tile))
            if outs is None:
                at = self.block
                code.branch(code.compare("eq", thread, ZERO), lambda: put_totals(lo, self.totals, at, so_far))

    def tile(
        self, place: Atom, thread: Atom, so_far: list[Total], shared: Sequence[Cells], outs: Sequence[Loc] | None
    ) -> None:
        lo, code = self.lo, self.lo.code
        scanned = sum(len(total.slots) for total in so_far)
        at = [code.add(code.mul(place, i64(self.each)), i64(k)) for k in range(self.each)]
        own: list[list[Total]] = []
        for i in at:
            own.append(_copies(own[-1]) if own else neutral(lo, self.exp.scans))
            code.branch(code.compare("lt", i, self.n), partial(self.element, i, own[-1], (outs or [])[scanned:]))
        before, all_of_them = _by_thread(lo, own[-1], thread, shared)
        if outs is not None:
            ahead = _copies(so_far)
            _combine(ahead, [total.slots for total in before])
            for i, mine in zip(at, own, strict=True):
                code.branch(code.compare("lt", i, self.n), partial(self.store, i, ahead, mine, outs[:scanned]))
        _combine(so_far, all_of_them)
        code.emit(Barrier())

    def element(self, i: Atom, own: list[Total], outs: Sequence[Loc]) -> None:
        """Scans are reductions here, of the few elements of a thread."""
        lam = refresh_lambda(self.lam)
        element(self.lo, Sweep(self.exp.width, self.exp.arrays, lam, self.exp.scans), lam, i, own, [], outs, 0)

    def store(self, i: Atom, ahead: Sequence[Total], mine: Sequence[Total], outs: Sequence[Loc]) -> None:
        whole = _copies(ahead)
        _combine(whole, [total.slots for total in mine])
        slots = [slot for total in whole for slot in total.slots]
        for out, slot in zip(outs, slots, strict=True):
            assert isinstance(slot, Var)
            self.lo.code.store(out, [i], slot)


def _by_thread(
    lo: Lowerer, own: Sequence[Total], thread: Atom, shared: Sequence[Cells]
) -> tuple[list[Total], list[list[Var]]]:
    """What the threads before this one have, and what all have."""
    code, mine = lo.code, _copies(own)
    step = 1
    while step < BLOCK_THREADS:
        _meet(lo, shared[0], thread, mine)

        def join(at: Atom, cells: Cells = shared[0]) -> None:
            left = neutral(lo, [total.reduction for total in mine])
            _load(left, cells, at)
            _combine(left, [total.slots for total in mine])
            _assign(mine, left)

        code.branch(code.compare("ge", thread, i64(step)), partial(join, code.sub(thread, i64(step))))
        if len(shared) == 1:
            code.emit(Barrier())
        shared = shared[::-1]  # the other half: others may still read this one
        step *= 2
    _meet(lo, shared[0], thread, mine)
    before = neutral(lo, [total.reduction for total in own])
    code.branch(code.compare("gt", thread, ZERO), lambda: _load(before, shared[0], code.sub(thread, ONE)))
    return before, [[code.load(loc, [i64(BLOCK_THREADS - 1)]) for loc in locs] for locs in shared[0]]


def _shared(scans: Sequence[Reduction]) -> list[Cells]:
    """A cell for each thread, twice if there is room: then it is written again before all have read it."""
    halves = 2 if 2 * shared_bytes(scans) <= SHARED_BYTES else 1
    return [[[shared_memory(ne.type.dtype) for ne in r.neutral] for r in scans] for _ in range(halves)]


def _meet(lo: Lowerer, cells: Cells, thread: Atom, mine: Sequence[Total]) -> None:
    put_totals(lo, cells, thread, mine)
    lo.code.emit(Barrier())


def scan_totals(lo: Lowerer, scans: Sequence[Reduction], blocks: Atom, totals: Cells) -> None:
    """In the place of each total, the total of all before it, by one block: each thread takes some of them."""
    code = lo.code
    threads = i64(BLOCK_THREADS)
    with code.loop(ONE, tag=lo.schedule.launched, label="block"):
        shared = _shared(scans)
        with code.loop(threads, tag=Tag.block, label="thread") as thread:
            start, stop = share(lo, thread, blocks, threads)
            mine = neutral(lo, scans)
            with code.loop(stop, start, label="k") as k:
                _combine(mine, [[code.load(loc, [k]) for loc in locs] for locs in totals])
            running, _ = _by_thread(lo, mine, thread, shared)
            with code.loop(stop, start, label="k") as k:
                found = [[code.load(loc, [k]) for loc in locs] for locs in totals]
                put_totals(lo, totals, k, running)
                _combine(running, found)


# -- running totals


def neutral(lo: Lowerer, scans: Sequence[Reduction]) -> list[Total]:
    return [start_total(lo, r, [None] * len(r.neutral)) for r in scans]


def _copies(totals: Sequence[Total]) -> list[Total]:
    declare = totals[0].lo.code.declare
    return [Total(t.lo, t.reduction, [declare(_number(slot), "total") for slot in t.slots]) for t in totals]


def _load(totals: Sequence[Total], cells: Cells, at: Atom) -> None:
    for total, locs in zip(totals, cells, strict=True):
        for slot, loc in zip(total.slots, locs, strict=True):
            total.lo.code.assign(_number(slot), total.lo.code.load(loc, [at]))


def _assign(totals: Sequence[Total], others: Sequence[Total]) -> None:
    for total, other in zip(totals, others, strict=True):
        for slot, value in zip(total.slots, other.slots, strict=True):
            total.lo.code.assign(_number(slot), _number(value))


def _combine(totals: Sequence[Total], values: Sequence[Sequence[Atom | Loc]]) -> None:
    for total, of_one in zip(totals, values, strict=True):
        total.combine(of_one)


def _number(slot: Var | Loc) -> Var:
    assert isinstance(slot, Var)
    return slot
