"""Sums of rows on a GPU: the threads of a group share the elements of a row.

Note [Rows and lanes]
A map whose elements reduce rows, and do nothing else but arithmetic with numbers, runs with LANES threads for each element.
All of them do the arithmetic; of a row each takes every LANES-th cell, and what they have is combined in shared memory,
where all of them find it. Threads next to each other are lanes of one element where rows lie together in memory, else
lanes of the same number of neighbouring elements: they read cells side by side. Groups beyond the last element do
its work once more, and store nothing: all threads of a block meet at each barrier.
"""

from __future__ import annotations

from collections.abc import Callable, Sequence

from tapeless.ir.core import Atom, If, Sweep, Var
from tapeless.ir.effects import has_effects
from tapeless.ir.types import DType, i64
from tapeless.lower.core.code import ONE, ZERO, Loc
from tapeless.lower.core.lowerer import Lanes, Lowerer
from tapeless.lower.ir.loopir import BLOCK_THREADS, Barrier, Tag
from tapeless.lower.parallel.elements import (
    bind_rows,
    element,
    order_free,
    put_totals,
    shared_memory,
    start_total,
)
from tapeless.passes.analysis.free import is_free

LANES = 32
GROUPS = BLOCK_THREADS // LANES
LONG = 64  # cells of rows that are worth it


def rows_reduced(exp: Sweep) -> list[Sweep] | None:
    """The reductions of an element, if it has some and is as in Note [Rows and lanes]."""
    body = exp.lam.body
    if exp.reduces or exp.scans or has_effects(body) or any(r.type.shape for r in body.results):
        return None
    found = [s.exp for s in body.stms if isinstance(s.exp, Sweep)]
    if not found or not all(
        (is_free(s) and not isinstance(s.exp, If)) or (isinstance(s.exp, Sweep) and can_share(s.exp)) for s in body.stms
    ):
        return None
    inside = {*exp.lam.params, *(v for s in body.stms for v in s.vars)}
    return None if any(sweep.width in inside for sweep in found) else found


def can_share(exp: Sweep) -> bool:
    """Numbers are combined, in any order, and nothing else is made."""
    combined = sum(len(r.neutral) for r in exp.reduces)
    if exp.scans or not exp.reduces or len(exp.lam.body.results) != combined:
        return False
    return all(order_free(r) and not any(ne.type.shape for ne in r.neutral) for r in exp.reduces)


def are_long(lo: Lowerer, sweeps: Sequence[Sweep]) -> Atom:
    code = lo.code
    longest: Atom = ZERO
    for sweep in sweeps:
        longest = code.let("max", DType.i64, longest, lo.dim(sweep.width), label="longest")
    return code.compare("ge", longest, i64(LONG))


Element = tuple[Atom, Sequence[Loc]]  # its number in a map, and where results of the map go


def run_by_lanes(
    lo: Lowerer, exp: Sweep, n: Atom, sweeps: Sequence[Sweep], together: bool, enter: Callable[[Atom], Element]
) -> None:
    """Note [Rows and lanes]. Of n elements in all; `enter` goes to one of them, given its number in all maps around."""
    code = lo.code
    blocks = code.let("floordiv", DType.i64, code.add(n, i64(GROUPS - 1)), i64(GROUPS), label="blocks")
    code.parallel = True
    with (
        code.loop(blocks, tag=lo.schedule.launched, label="block") as block,
        code.loop(i64(BLOCK_THREADS), tag=Tag.block, label="thread") as thread,
    ):
        size, step = (LANES, 1) if together else (GROUPS, GROUPS)
        high = code.let("floordiv", DType.i64, thread, i64(size), label="high")
        low = code.sub(thread, code.mul(high, i64(size)))
        lane, group = (low, high) if together else (high, low)
        at = code.add(code.mul(block, i64(GROUPS)), group)
        row, outs = enter(code.let("min", DType.i64, at, code.sub(n, ONE), label="row"))
        bind_rows(lo, exp.lam, row, exp.arrays)
        lo.lanes = Lanes(lane, thread, step)
        results = lo.body(exp.lam.body)
        lo.lanes = None
        mine = code.let("and", DType.bool, code.compare("eq", lane, ZERO), code.compare("lt", at, n), label="mine")

        def put() -> None:
            for out, value in zip(outs, results, strict=True):
                code.store(out, [row], value)

        code.branch(mine, put)
    code.parallel = False


def lie_together(lo: Lowerer, exp: Sweep, inner: Sweep) -> bool:
    """Whether the cells of a row are side by side, as far as that can be told."""
    rows = dict(zip(exp.lam.params[1:], exp.arrays, strict=True))
    for a in inner.arrays:
        if a in rows:
            return lo.loc(rows[a]).strides[1] == ONE
    return True


def share_reduction(lo: Lowerer, vars: Sequence[Var], exp: Sweep, lanes: Lanes) -> None:
    """One of an element, by all its lanes."""
    code = lo.code
    lo.lanes = None  # what is inside of it belongs to one lane
    n = lo.dim(exp.width)
    totals = [start_total(lo, r, [None] * len(r.neutral)) for r in exp.reduces]
    rest = code.add(code.sub(n, lanes.lane), i64(LANES - 1))
    with code.loop(code.let("floordiv", DType.i64, rest, i64(LANES), label="count"), label="k") as k:
        element(lo, exp, exp.lam, code.add(lanes.lane, code.mul(k, i64(LANES))), totals, [], [], 0)
    shared = [[shared_memory(ne.type.dtype) for ne in r.neutral] for r in exp.reduces]
    put_totals(lo, shared, lanes.thread, totals)
    code.emit(Barrier())
    step = LANES // 2
    while step:
        other = code.add(lanes.thread, i64(step * lanes.step))

        def join(other: Atom = other) -> None:
            for total, locs in zip(totals, shared, strict=True):
                total.combine([code.load(loc, [other]) for loc in locs])
            put_totals(lo, shared, lanes.thread, totals)

        code.branch(code.compare("lt", lanes.lane, i64(step)), join)
        code.emit(Barrier())
        step //= 2
    first = code.sub(lanes.thread, code.mul(lanes.lane, i64(lanes.step)))
    found = [code.load(loc, [first]) for locs in shared for loc in locs]
    for v, value in zip(vars, found, strict=True):
        lo.scalars[v] = value
    lo.lanes = lanes
