"""Rows that the threads of a GPU make: written through shared memory.

Note [Rows through shared memory]
Threads next to each other that each write a row of a result, cell by cell, write far apart: each cell is an access of its
own, and memory moves four times as much or more. So a block makes its rows in shared memory, and when all of them are
there its threads write them to where they belong, neighbours side by side. Rows have to be short enough for that, there
have to be enough of them for blocks of many threads, and nothing else may look at the result meanwhile; otherwise each
thread writes its own. So it does what a routine makes, which takes longer than writing. An odd number of cells from one row
to the next lets all threads of a warp write at once.
"""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass, replace

from tapeless.ir.core import Atom, Library, Sweep
from tapeless.ir.types import Const, DType, i64
from tapeless.ir.walk import all_stms, free_in_lambda
from tapeless.lower.core.code import ONE, ZERO, Loc, places
from tapeless.lower.core.lowerer import Lowerer
from tapeless.lower.ir.loopir import Barrier, Buffer, Space, Tag
from tapeless.lower.parallel.elements import element

THREADS = 128  # in a block
BYTES = THREADS * 264  # of shared memory: with more of it, fewer blocks are at work at once
ENOUGH = 1 << 14  # rows, for as many blocks as a large GPU has processors


@dataclass(frozen=True)
class Stage:
    out: Loc
    cells: Atom  # of a row
    apart: Atom  # cells from one row to the next in shared memory
    most: int  # that there is room for


def staged(lo: Lowerer, exp: Sweep, outs: Sequence[Loc]) -> dict[int, Stage]:
    """The results, by their numbers, of which rows may be made in shared memory."""
    if any(isinstance(s.exp, Library) for s in all_stms(exp.lam.body)):
        return {}
    read = {lo.arrays[v].buffer for v in (*exp.arrays, *free_in_lambda(exp.lam)) if v in lo.arrays}
    found = [k for k, out in enumerate(outs) if out.rank > 1 and out.ordered and out.buffer not in read]
    sizes = {k: lo.code.size(outs[k].shape[1:]) for k in found}
    found = [k for k in found if sizes[k] not in (ZERO, ONE)]
    stages: dict[int, Stage] = {}
    for k in found:
        most = BYTES // len(found) // THREADS // outs[k].dtype.bytes
        size = sizes[k]
        if isinstance(size, Const) and size.value.real > most:
            return {}
        stages[k] = Stage(outs[k], size, lo.code.let("or", DType.i64, size, ONE, label="apart"), most)
    return stages


def run_staged(lo: Lowerer, exp: Sweep, n: Atom, outs: Sequence[Loc], stages: dict[int, Stage]) -> None:
    """Note [Rows through shared memory]"""
    code = lo.code
    blocks = code.let("floordiv", DType.i64, code.add(n, i64(THREADS - 1)), i64(THREADS), label="blocks")
    cells = {k: places(code, (i64(THREADS), stage.cells)) for k, stage in stages.items()}
    with (
        code.loop(blocks, tag=lo.schedule.launched, label="block") as block,
        code.loop(i64(THREADS), tag=Tag.block, label="thread") as thread,
    ):
        first = code.mul(block, i64(THREADS))
        i = code.add(first, thread)
        rows = {k: _row(stage, thread, lo) for k, stage in stages.items()}

        def run() -> None:
            element(lo, exp, exp.lam, i, [], [], outs, 0, rows)

        code.branch(code.compare("lt", i, n), run)
        code.emit(Barrier())
        here = code.let("min", DType.i64, code.sub(n, first), i64(THREADS), label="here")
        for k, stage in stages.items():
            with code.loop(code.mul(here, stage.cells), thread, label="cell", step=THREADS) as cell:
                row, column = cells[k].of(cell)
                value = code.load(_flat(rows[k], stage.apart), [row, column])
                target = replace(stage.out, shape=(n, stage.cells), strides=(stage.cells, ONE))
                code.store(target, [code.add(first, row), column], value)


def _row(stage: Stage, thread: Atom, lo: Lowerer) -> Loc:
    buffer = Buffer("rows", stage.out.dtype, Space.shared, THREADS * stage.most)
    row = lo.code.inside(stage.out, ZERO)
    return replace(row, buffer=buffer, offset=lo.code.mul(thread, stage.apart))


def _flat(row: Loc, apart: Atom) -> Loc:
    """All rows of a block, as a table."""
    return Loc(row.buffer, row.dtype, (i64(THREADS), apart), (apart, ONE))


def fit(lo: Lowerer, n: Atom, stages: dict[int, Stage]) -> Atom:
    """Whether there is room for such rows, and whether there are enough of them."""
    code = lo.code
    good = code.compare("ge", n, i64(ENOUGH))
    for stage in stages.values():
        good = code.let("and", DType.bool, good, code.compare("le", stage.apart, i64(stage.most)), label="fit")
    return good
