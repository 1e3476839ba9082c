"""Lowering of accumulators: arrays that parallel iterations add to, one private copy per chunk where that is needed.

Note [Copies of cells]
On a GPU all threads add to one array, and updates of the same cell wait for each other: where many elements meet in few
cells that takes longer than all else. So few cells have copies, the copies of a cell side by side, and elements take
them in turn; a kernel adds them up. Both ways are there, and the sizes of the call pick one.
"""

from __future__ import annotations

from collections.abc import Callable, Sequence

from tapeless.ir.core import Atom, UpdateAcc, Var, WithAcc
from tapeless.ir.types import DType, const, i64
from tapeless.lower.core.arrays import write
from tapeless.lower.core.code import ONE, ZERO, Loc, places
from tapeless.lower.core.lowerer import Acc, Lowerer, lowers, view
from tapeless.lower.ir.loopir import Atomic, Tag
from tapeless.lower.parallel.work import PARALLEL_WORK, share

MOST_COPIES = 1024
LEAST_COPIES = 32  # that are worth it
COPIED_CELLS = 1 << 20  # together, at most
CROWD = 1 << 14  # elements that are worth it
PRIVATE_CELL = 16  # scalar operations that pay for a cell of a private copy: to clear it and to add it up, from memory


@lowers(WithAcc)
def lower_with_acc(lo: Lowerer, vars: tuple[Var, ...], exp: WithAcc) -> None:
    for p, a in zip(exp.lam.params, exp.arrays, strict=True):
        lo.accs[p] = Acc(p.type.acc, lo.loc(a))
    for v, a in zip(vars, exp.arrays, strict=False):
        lo.arrays[v] = lo.loc(a)
    results = lo.body(exp.lam.body)
    for v, r in zip(vars[len(exp.arrays) :], results, strict=True):
        if v.type.shape:
            lo.arrays[v] = lo.loc(r)
        else:
            lo.scalars[v] = r


def worth_private(lo: Lowerer, accs: Sequence[Var], pieces: Atom, work: Atom) -> Atom:
    """So many chunks as before, or one where private copies would cost more than the chunks gain."""
    code = lo.code
    cells: Atom = i64(0)
    for a in accs:
        cells = code.add(cells, code.size(lo.accs[a].loc.shape))
    price = code.mul(code.mul(cells, pieces), i64(PRIVATE_CELL))
    return code.let("select", DType.i64, code.compare("le", price, work), pieces, i64(1), label="pieces")


def with_private(lo: Lowerer, accs: Sequence[Var], pieces: Atom, run: Callable[[], None]) -> None:
    """Each chunk accumulates into memory of its own, which is added up afterwards."""
    code = lo.code
    outer = {a: lo.accs[a] for a in accs}
    for a, acc in outer.items():
        memory = code.allocate_apart(acc.loc.dtype, pieces, acc.loc.shape, "private")
        lo.accs[a] = Acc(acc.op, memory)
        if lo.schedule.each:
            code.fill(memory, acc.unit)
    private = {a: lo.accs[a].loc for a in accs}
    run()
    for a, acc in outer.items():
        lo.accs[a] = acc
        if lo.schedule.each:
            add_pieces(lo, acc.op, acc.loc, private[a], pieces)
        else:
            _add_up(lo, acc, private[a], pieces)
        code.free(private[a].buffer)


def add_pieces(lo: Lowerer, op: str, target: Loc, private: Loc, pieces: Atom) -> None:
    """What all chunks have, in order, a thread for each cell."""
    code = lo.code

    def add(cell: list[Atom]) -> None:
        total = code.declare(code.load(target, cell), "total")
        with code.loop(pieces, label="piece") as piece:
            more = code.load(private, [piece, *cell])
            code.assign(total, code.let(op, target.dtype, total, more, label="sum"))
        code.store(target, cell, total)

    code.spread(target.shape, add)


def copies_of_cells(lo: Lowerer, accs: Sequence[Var], n: Atom) -> Atom:
    """Note [Copies of cells]: how many for n elements, or none. Together they are no more than the elements."""
    code = lo.code
    many = code.compare("ge", n, i64(CROWD))
    if many == const(False, DType.bool):
        return ZERO
    cells: Atom = ONE
    for a in accs:
        cells = code.add(cells, code.size(lo.accs[a].loc.shape))
    most = code.let("min", DType.i64, n, i64(COPIED_CELLS), label="copies")
    each = code.let("floordiv", DType.i64, most, cells, label="copies")
    rows = code.let("floordiv", DType.i64, code.let("min", DType.i64, each, i64(MOST_COPIES)), i64(LEAST_COPIES))
    return code.let("select", DType.i64, many, code.mul(rows, i64(LEAST_COPIES)), ZERO, label="copies")


def with_copies(lo: Lowerer, accs: Sequence[Var], copies: Atom, run: Callable[[], None]) -> None:
    """Note [Copies of cells]"""
    code = lo.code
    outer = {a: lo.accs[a] for a in accs}
    made: dict[Var, Loc] = {}
    for a, acc in outer.items():
        made[a] = whole = code.allocate(acc.loc.dtype, (*acc.loc.shape, copies), "copies")
        code.fill(whole, acc.unit)
        turned = Loc(whole.buffer, whole.dtype, (copies, *acc.loc.shape), (ONE, *whole.strides[:-1]), ordered=False)
        lo.accs[a] = Acc(acc.op, turned, copies=copies)
    run()
    for a, acc in outer.items():
        lo.accs[a] = acc
        _add_copies(lo, acc, made[a], copies)
        code.free(made[a].buffer)


def _add_copies(lo: Lowerer, acc: Acc, whole: Loc, copies: Atom) -> None:
    """Threads next to each other take copies next to each other."""
    code, shape = lo.code, (*acc.loc.shape, i64(LEAST_COPIES))
    code.parallel = True
    at = places(code, shape)
    with code.loop(code.size(shape), tag=lo.schedule.launched) as t:
        index = at.of(t)
        *cell, first = index
        total = code.declare(code.load(whole, index), "total")
        with code.loop(copies, code.add(first, i64(LEAST_COPIES)), label="copy", step=LEAST_COPIES) as k:
            code.assign(total, code.let(acc.op, acc.loc.dtype, total, code.load(whole, [*cell, k]), label="sum"))
        code.emit(Atomic(acc.op, acc.loc.buffer, code.address(acc.loc, cell), total))
    code.parallel = False


def _add_up(lo: Lowerer, acc: Acc, private: Loc, pieces: Atom) -> None:
    """The copies of all chunks into the accumulator, rows shared out among the threads if there are many."""
    code = lo.code
    many = code.compare("ge", code.mul(code.size(acc.loc.shape), pieces), i64(PARALLEL_WORK))
    parts = code.let("select", DType.i64, many, pieces, i64(1), label="parts")
    with code.loop(parts, tag=lo.schedule.launched, label="part") as part:
        start, stop = share(lo, part, acc.loc.shape[0], parts)
        with code.loop(pieces, label="piece") as piece:
            source = code.inside(private, piece)
            simd = acc.loc.rank == 1
            with code.loop(stop, start, tag=Tag.simd if simd else Tag.seq, label="row") as i:
                rows = (code.inside(acc.loc, i), code.inside(source, i))

                def add(index: list[Atom], rows: tuple[Loc, Loc] = rows) -> None:
                    total, more = (code.load(r, index) for r in rows)
                    code.store(rows[0], index, code.let(acc.op, acc.loc.dtype, total, more, label="sum"))

                code.each(acc.loc.shape[1:], add)


@lowers(UpdateAcc)
def lower_update_acc(lo: Lowerer, vars: tuple[Var, ...], exp: UpdateAcc) -> None:
    code = lo.code
    acc = lo.accs[exp.acc]
    place = acc.loc
    if acc.copies is not None:
        place = code.inside(place, ZERO if code.grid is None else code.let("mod", DType.i64, code.grid, acc.copies))
    target = view(lo, place, exp.axes)
    value = exp.value
    if acc.op == "set":
        write(lo, target, value)
        return
    source = lo.loc(value) if value.type.shape else None

    def combine(index: list[Atom]) -> None:
        new = code.load(source, index) if source is not None else lo.atom(value)
        if lo.schedule.each and not acc.own:  # elements of other threads may be here too
            code.emit(Atomic(acc.op, target.buffer, code.address(target, index), new))
            return
        old = code.load(target, index)
        code.store(target, index, code.let(acc.op, target.dtype, old, new, label="sum"))

    code.spread(target.shape, combine)
