"""Sweeps on a GPU: which way they run, and reductions by blocks of threads.

Note [Sums of blocks]
Each thread of a block takes some elements, the block combines what its threads have in shared memory, and where there is
more than one block a second kernel of one block combines the rest. Where the order of elements does not matter, neighbours
are taken by neighbouring threads, which read memory together. The order is the same in each run. Few elements with much
to do are shared out among many blocks, in turn, and most threads of a block have none.

Note [Few elements]
A kernel with a thread for each element leaves most of a GPU idle where there are few, each with much to do. Then the host
goes through the elements, and what is parallel inside of one is launched. Both ways are there; the sizes of the call pick
one: a launch takes about as long as 400 operations of a thread.
"""

from __future__ import annotations

from collections.abc import Callable, Sequence
from collections.abc import Set as AbstractSet

from tapeless.ir.core import (
    Apply,
    Atom,
    Body,
    For,
    Hist,
    Lambda,
    Library,
    Reduction,
    Scatter,
    Sweep,
    Var,
)
from tapeless.ir.operands import regions
from tapeless.ir.types import Const, Dim, DType, i64
from tapeless.ir.walk import all_stms, free_in_lambda, type_vars
from tapeless.lower.core.code import FEW, ONE, ZERO, Loc, places
from tapeless.lower.core.lowerer import Lowerer
from tapeless.lower.ir.loopir import BLOCK_THREADS, SHARED_BYTES, Barrier, Tag
from tapeless.lower.parallel.block_scans import run_by_blocks
from tapeless.lower.parallel.elements import (
    AtomicTotal,
    Total,
    atomic_ops,
    bind_rows,
    element,
    order_free,
    partial_results,
    put_totals,
    shared_bytes,
    shared_memory,
    start_total,
)
from tapeless.lower.parallel.grid_maps import Level, nest_of, run_each
from tapeless.lower.parallel.invariant import once_per_chunk
from tapeless.lower.parallel.lanes import LANES, rows_reduced
from tapeless.lower.parallel.scans import can_scan
from tapeless.lower.parallel.work import LIGHT, blocks_of, cost_of, share
from tapeless.passes.analysis.free import VIEWS, is_free

EACH_THREAD = 8  # elements that a thread takes before there is another block
FEW_HEAVY = 1 << 15  # elements of others, which are not enough for all threads of a large GPU
HEAVY_BLOCK = 32  # of these, for each block
IN_ORDER = 400  # operations of an element for each operation of its own and each element, that pay for launches of them
GUESS = 16  # elements of an operation whose number is not known


def can_run(exp: Sweep) -> bool:
    """Whether there is a way for all elements at once: arrays that they make have sizes that are known before."""
    known = _known_before(exp.lam)
    if not all(known(d) for v in _made(exp.lam) for d in type_vars(v.type)):
        return False
    if shared_bytes((*exp.reduces, *exp.scans)) > SHARED_BYTES:
        return False
    if exp.scans:
        return can_scan(exp)
    return not _has_arrays(exp) or all(atomic_ops(r) is not None for r in exp.reduces)


def _made(lam: Lambda) -> list[Var]:
    """The arrays that an element makes: each thread of a kernel has memory for them, whether it has an element or not."""
    return [v for s in all_stms(lam.body) if not isinstance(s.exp, VIEWS) for v in s.vars if v.type.shape]


def _known_before(lam: Lambda) -> Callable[[Atom], bool]:
    """Whether a number of an element is one of outside, or comes of such by arithmetic."""
    exps = {v: s.exp for s in all_stms(lam.body) for v in s.vars}
    params = {p for s in all_stms(lam.body) for inner in regions(s.exp) for p in inner.params} | set(lam.params)

    def known(a: Atom) -> bool:
        if not isinstance(a, Var) or (a not in exps and a not in params):
            return True
        exp = exps.get(a)
        return isinstance(exp, Apply) and all(map(known, exp.args))

    return known


def _has_arrays(exp: Sweep) -> bool:
    return any(ne.type.shape for r in exp.reduces for ne in r.neutral)


def run_on_grid(lo: Lowerer, exp: Sweep, n: Atom, totals: Sequence[Total], outs: Sequence[Loc]) -> None:
    """Combines reductions into the totals."""
    if exp.scans:
        run_by_blocks(lo, exp, n, outs)
    elif _has_arrays(exp):
        _run_by_atomics(lo, exp, n, totals, outs)
    elif exp.reduces:
        run_reduced(lo, exp, n, totals, outs)
    else:
        run_each(lo, exp, n, outs)


def _run_by_atomics(lo: Lowerer, exp: Sweep, n: Atom, totals: Sequence[Total], outs: Sequence[Loc]) -> None:
    """Sums of arrays: all threads add to one, which starts with the neutral element."""
    code = lo.code
    ready: list[Total] = []
    numbered: list[tuple[Var, Loc]] = []
    for total in totals:
        slots: list[Var | Loc] = []
        for slot in total.slots:
            if isinstance(slot, Var):
                cell = partial_results(lo, slot.type.dtype, ONE)
                code.store(cell, [ZERO], slot)
                numbered.append((slot, cell))
                slot = code.inside(cell, ZERO)
            slots.append(slot)
        ops = atomic_ops(total.reduction)
        assert ops is not None
        ready.append(AtomicTotal(lo, total.reduction, slots, ops))
    code.parallel = True
    with code.loop(n, tag=lo.schedule.launched) as i:
        element(lo, exp, exp.lam, i, ready, [], outs, 0)
    code.parallel = False
    for slot, cell in numbered:
        code.assign(slot, code.load(cell, [ZERO]))


# -- which way


def better_in_order(lo: Lowerer, exp: Sweep, n: Atom, outs: Sequence[Loc]) -> Atom | None:
    """Note [Few elements]. None where its elements have nothing to run in parallel."""
    code = lo.code
    levels, exp = _nest_of_sums(lo, exp, outs) if exp.reduces else nest_of(exp)
    for inner in [*(level.exp for level in levels), exp][1:]:
        n = code.mul(n, lo.dim(inner.width))
    inside = {v for s in all_stms(exp.lam.body) for v in s.vars} | set(exp.lam.params)
    inside |= {p for s in all_stms(exp.lam.body) for lam in regions(s.exp) for p in lam.params}
    inside |= {v for level in levels for v in (*level.exp.lam.params, *(w for s in level.before for w in s.vars))}
    wide = [s for s in all_stms(exp.lam.body) if _is_wide(s.exp)]
    if not wide:
        return None
    work = _work(lo, exp.lam.body, inside)
    if rows_reduced(exp):
        work = code.let("floordiv", DType.i64, work, i64(LANES), label="work")
    price = code.mul(code.let("max", DType.i64, n, ONE), i64(IN_ORDER * len(wide)))
    return code.compare("gt", work, price)


def _is_wide(exp: object) -> bool:
    match exp:
        case Sweep(width=width) | Hist(width=width) | Scatter(width=width):
            return not isinstance(width, int) or width > FEW
        case Library():
            return True
    return False


def _work(lo: Lowerer, body: Body, inside: AbstractSet[Var]) -> Atom:
    """Operations of a body, with the sizes that are known outside of it."""
    code = lo.code

    def known(d: Dim) -> Atom:
        return i64(GUESS) if d in inside else lo.dim(d)

    plain = cost_of(Body(tuple(s for s in body.stms if not regions(s.exp)), ()))
    total: Atom = i64(plain)
    for stm in body.stms:
        match stm.exp:
            case Sweep(width=width, lam=lam) | Hist(width=width, lam=lam) | Scatter(width=width, lam=lam):
                more = code.mul(known(width), _work(lo, lam.body, inside))
            case For(bound=bound, body=inner):
                times = bound if isinstance(bound, Const) or bound not in inside else i64(GUESS)
                more = code.mul(lo.atom(times), _work(lo, inner, inside))
            case Library(args=args):
                more = code.size([known(d) for a in args for d in a.type.shape[-2:]])
            case exp if regions(exp):
                more = ZERO
                for lam in regions(exp):
                    more = code.add(more, _work(lo, lam.body, inside))
            case _:
                continue
        total = code.add(total, code.let("min", DType.i64, code.let("max", DType.i64, more, ZERO), i64(1 << 40)))
    return total


# -- reductions


def _nest_of_sums(lo: Lowerer, exp: Sweep, outs: Sequence[Loc]) -> tuple[list[Level], Sweep]:
    levels: list[Level] = []
    read = {lo.arrays[v].buffer for v in (*exp.arrays, *free_in_lambda(exp.lam)) if v in lo.arrays}
    if any(out.buffer in read for out in outs):
        return levels, exp
    outside: set[Var] = set()
    while exp.lam.body.stms:
        *before, last = exp.lam.body.stms
        inner = last.exp
        outside |= {*exp.lam.params, *(v for s in before for v in s.vars)}
        if not isinstance(inner, Sweep) or inner.scans or exp.lam.body.results != last.vars or inner.width in outside:
            break
        if not all(map(is_free, before)):
            break
        if len(inner.reduces) != len(exp.reduces) or not all(map(_alike, exp.reduces, inner.reduces)):
            break
        levels.append(Level(exp, tuple(before), ()))
        exp = inner
    return levels, exp


def _alike(a: Reduction, b: Reduction) -> bool:
    rows = atomic_ops(a)
    return rows is not None and rows == atomic_ops(b) and a.neutral == b.neutral


def run_reduced(lo: Lowerer, exp: Sweep, n: Atom, totals: Sequence[Total], outs: Sequence[Loc]) -> None:
    """Note [Sums of blocks]. A sum of sums is one sum."""
    code = lo.code
    levels, exp = _nest_of_sums(lo, exp, outs)
    widths = [n, *(lo.dim(inner.width) for inner in [*(level.exp for level in levels), exp][1:])]
    n = code.size(widths)
    light = cost_of(exp.lam.body) <= LIGHT
    per_block: Atom = i64(BLOCK_THREADS * EACH_THREAD if light else BLOCK_THREADS)
    few: Atom | None = None
    if not light and all(map(order_free, exp.reduces)) and not _made(exp.lam):
        few = code.compare("lt", n, i64(FEW_HEAVY))
        per_block = code.let("select", DType.i64, few, i64(HEAVY_BLOCK), per_block)
    blocks = blocks_of(lo, n, per_block)
    partial = [[partial_results(lo, ne.type.dtype, blocks) for ne in r.neutral] for r in exp.reduces]
    threads = code.mul(blocks, i64(BLOCK_THREADS))
    cells = places(code, widths)

    def take(block: Atom, thread: Atom, mine: list[Total]) -> None:
        at = code.add(code.mul(block, i64(BLOCK_THREADS)), thread)
        if few is not None:
            apart = code.add(code.mul(thread, blocks), block)
            at = code.let("select", DType.i64, few, apart, at, label="at")
        first, each = once_per_chunk(exp.lam) if not levels else ([], exp.lam)
        if all(map(order_free, exp.reduces)):
            rest = code.sub(code.add(code.sub(n, at), threads), ONE)
            count = code.let("floordiv", DType.i64, rest, threads, label="count")
            start, step = at, threads
        else:
            start, stop = share(lo, at, n, threads)
            count, step = code.sub(stop, start), ONE

        def run() -> None:
            for stm in first:
                lo.stm(stm)
            with code.loop(count, label="k") as k:
                i = code.add(start, code.mul(k, step))
                outer: list[Atom] = []
                if levels:
                    *outer, i = cells.of(i)
                    for level, index in zip(levels, outer, strict=True):
                        bind_rows(lo, level.exp.lam, index, level.exp.arrays)
                        for stm in level.before:
                            lo.stm(stm)
                rows = outs
                for index in outer:
                    rows = [code.inside(row, index) for row in rows]
                element(lo, exp, each, i, mine, [], rows, 0)

        code.branch(code.compare("gt", count, ZERO), lambda: lo.scoped(run))

    def take_partial(block: Atom, thread: Atom, mine: list[Total]) -> None:
        start, stop = share(lo, thread, blocks, i64(BLOCK_THREADS))
        with code.loop(stop, start, label="k") as k:
            for total, ps in zip(mine, partial, strict=True):
                total.combine([code.load(p, [k]) for p in ps])

    code.parallel = True
    _by_blocks(lo, exp.reduces, blocks, take, partial)
    code.branch(code.compare("gt", blocks, ONE), lambda: _by_blocks(lo, exp.reduces, ONE, take_partial, partial))
    code.parallel = False
    for total, ps in zip(totals, partial, strict=True):
        total.combine([code.load(p, [ZERO]) for p in ps])


def _by_blocks(
    lo: Lowerer,
    reduces: Sequence[Reduction],
    blocks: Atom,
    take: Callable[[Atom, Atom, list[Total]], None],
    results: Sequence[Sequence[Loc]],
) -> None:
    """One number for each block; `take` combines what a thread of a block has to do."""
    code = lo.code
    with code.loop(blocks, tag=lo.schedule.launched, label="block") as block:
        shared = [[shared_memory(ne.type.dtype) for ne in r.neutral] for r in reduces]
        with code.loop(i64(BLOCK_THREADS), tag=Tag.block, label="thread") as thread:
            mine = [start_total(lo, r, [None] * len(r.neutral)) for r in reduces]
            take(block, thread, mine)
            put_totals(lo, shared, thread, mine)
            code.emit(Barrier())
            step = 1
            while step < BLOCK_THREADS:
                pair = code.let("mod", DType.i64, thread, i64(2 * step), label="pair")

                def join(step: int = step) -> None:
                    other = code.add(thread, i64(step))
                    for total, locs in zip(mine, shared, strict=True):
                        total.combine([code.load(loc, [other]) for loc in locs])
                    put_totals(lo, shared, thread, mine)

                code.branch(code.compare("eq", pair, ZERO), join)
                code.emit(Barrier())
                step *= 2
            code.branch(code.compare("eq", thread, ZERO), lambda: put_totals(lo, results, block, mine))
