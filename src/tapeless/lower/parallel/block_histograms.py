"""Histograms on a GPU: those of few bins are made in the shared memory of blocks.

Note [Histograms of blocks]
Threads that add to one cell wait for each other, and in the memory of the device for long. Where the bins have room in the
shared memory of a block, each block has bins of its own for the elements that it takes, and combines those that are not
neutral with the results in the end. Both ways are there; the sizes of the call pick one.
"""

from __future__ import annotations

from collections.abc import Sequence
from functools import partial

from tapeless.ir.core import Atom, Hist, Lambda
from tapeless.ir.operands import regions
from tapeless.ir.types import DType, i64
from tapeless.lower.core.code import ONE, Loc
from tapeless.lower.core.lowerer import Lowerer
from tapeless.lower.ir.loopir import BLOCK_THREADS, SHARED_BYTES, Barrier, Buffer, Space, Tag
from tapeless.lower.parallel.elements import combine_cells, combine_element
from tapeless.lower.parallel.work import blocks_of

ROOM = SHARED_BYTES - 8 * 1024  # a loop of small kernels, which becomes one, needs some for other things
EACH_THREAD = 8  # elements that a thread takes before there is another block
EACH_BIN = 4  # elements for each bin that is combined with the results in the end


def few_bins(lo: Lowerer, exp: Hist, n: Atom, dests: Sequence[Loc]) -> Atom | None:
    """Whether blocks have room for all bins, and elements enough to fill them. None where they never do."""
    code = lo.code
    if not is_simple(exp.lam, None, dests):
        return None
    bins = dests[0].shape[0]
    room = code.compare("le", bins, i64(_capacity(dests)))
    return code.let("and", DType.bool, room, code.compare("le", code.mul(bins, i64(2 * EACH_BIN)), n), label="few")


def is_simple(lam: Lambda, op: Lambda | None, dests: Sequence[Loc]) -> bool:
    """Numbers, made of numbers."""
    stms = [s for made in (lam, op) if made for s in made.body.stms]
    return all(d.rank == 1 for d in dests) and not any(regions(s.exp) or v.type.shape for s in stms for v in s.vars)


def _capacity(dests: Sequence[Loc]) -> int:
    return ROOM // sum(d.dtype.bytes for d in dests)


def fill_by_blocks(lo: Lowerer, exp: Hist, n: Atom, dests: Sequence[Loc], ops: Sequence[str]) -> None:
    """Note [Histograms of blocks]"""
    code = lo.code
    bins, capacity = dests[0].shape[0], _capacity(dests)
    enough = code.mul(bins, i64(EACH_BIN))
    each = code.let("max", DType.i64, enough, i64(BLOCK_THREADS * EACH_THREAD), label="each")
    blocks = blocks_of(lo, n, each)
    threads = code.mul(blocks, i64(BLOCK_THREADS))
    code.parallel = True
    with code.loop(blocks, tag=lo.schedule.launched, label="block") as block:
        own = [Loc(Buffer("bins", d.dtype, Space.shared, capacity), d.dtype, (bins,), (ONE,)) for d in dests]
        with code.loop(i64(BLOCK_THREADS), tag=Tag.block, label="thread") as thread:
            with code.loop(bins, thread, label="bin", step=BLOCK_THREADS) as k:
                for cells, ne in zip(own, exp.op.neutral, strict=True):
                    code.store(cells, [k], lo.atom(ne))
            code.emit(Barrier())
            first = code.add(code.mul(block, i64(BLOCK_THREADS)), thread)
            rest = code.sub(code.add(code.sub(n, first), threads), ONE)
            with code.loop(code.let("floordiv", DType.i64, rest, threads, label="count"), label="k") as k:
                combine_element(lo, exp, exp.lam, code.add(first, code.mul(k, threads)), own, ops)
            code.emit(Barrier())
            with code.loop(bins, thread, label="bin", step=BLOCK_THREADS) as k:
                for op, cells, target, ne in zip(ops, own, dests, exp.op.neutral, strict=True):
                    value = code.load(cells, [k])
                    put = partial(combine_cells, lo, op, code.inside(target, k), value)
                    code.branch(code.compare("ne", value, lo.atom(ne)), put)
    code.parallel = False
