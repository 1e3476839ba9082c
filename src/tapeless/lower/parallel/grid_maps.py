"""Maps on a GPU: a thread for each element, of nests for each element of all maps.

Note [Nests]
A map whose lambda is a map in turn, but for numbers and views that are made before it, runs over all elements of both:
the outer one alone may have few. What comes before the inner map is done for each of its elements. Rows of results that
lie in memory which the inner map reads otherwise than cell by cell keep the inner map in order, in one thread. Which
of the maps neighbouring threads go along is for memory to say: Note [Neighbours] in memory_order.py.
"""

from __future__ import annotations

from collections.abc import Sequence
from collections.abc import Set as AbstractSet
from dataclasses import dataclass, replace

from tapeless.ir.core import Atom, Lambda, Stm, Sweep, Var
from tapeless.ir.types import I64
from tapeless.ir.walk import free_in_exp, free_in_lambda, refresh_lambda
from tapeless.lower.core.code import Loc, places
from tapeless.lower.core.lowerer import Lowerer
from tapeless.lower.ir.loopir import Let
from tapeless.lower.parallel.elements import bind_rows, element, row_of
from tapeless.lower.parallel.lanes import are_long, lie_together, rows_reduced, run_by_lanes
from tapeless.lower.parallel.memory_order import in_memory_order
from tapeless.lower.parallel.ragged import is_ragged, run_ragged
from tapeless.lower.parallel.staged_rows import fit, run_staged, staged
from tapeless.passes.analysis.free import is_free


@dataclass(frozen=True)
class Level:
    """Of a nest: a map, what its lambda does before the next one, and where results of that one go among its own."""

    exp: Sweep
    before: tuple[Stm, ...]
    order: tuple[int, ...]


def run_each(lo: Lowerer, exp: Sweep, n: Atom, outs: Sequence[Loc]) -> None:
    """A map. Note [Nests]"""
    levels, last = nest_of(exp)
    sweeps = rows_reduced(last)
    inside = {v for level in levels for v in (*level.exp.lam.params, *(w for s in level.before for w in s.vars))}
    together = None
    if sweeps and not any(sweep.width in inside for sweep in sweeps):
        together = _rows_lie_together(lo, levels, last, sweeps[0], outs)
    if sweeps is None or together is None:
        _run_all(lo, exp, n, outs)
        return
    again = replace(exp, lam=refresh_lambda(exp.lam))
    lo.code.branch(
        are_long(lo, sweeps),
        lambda: _share_rows(lo, levels, last, [n, *_widths(lo, levels, last)], sweeps, together, outs),
        lambda: _run_all(lo, again, n, outs),
    )


def _run_all(lo: Lowerer, exp: Sweep, n: Atom, outs: Sequence[Loc]) -> None:
    """A thread for each element, of all maps if that is possible."""
    levels, last = nest_of(exp)
    lo.code.parallel = True
    if not levels or not _emit_nest(lo, levels, last, [n, *_widths(lo, levels, last)], outs):
        _run_elements(lo, exp, n, outs)
    lo.code.parallel = False


def _run_elements(lo: Lowerer, exp: Sweep, n: Atom, outs: Sequence[Loc]) -> None:
    """Of one map, the others inside of it in order."""
    code = lo.code
    if is_ragged(lo, exp):
        run_ragged(lo, exp, n)
        return

    def run() -> None:
        with code.loop(n, tag=lo.schedule.launched) as i:
            element(lo, exp, exp.lam, i, [], [], outs, 0)

    if stages := staged(lo, exp, outs):
        again = replace(exp, lam=refresh_lambda(exp.lam))
        code.branch(fit(lo, n, stages), lambda: run_staged(lo, again, n, outs, stages), run)
    else:
        run()


def _widths(lo: Lowerer, levels: Sequence[Level], last: Sweep) -> list[Atom]:
    """Of the maps inside."""
    if not levels:
        return []
    return [lo.dim(inner.width) for inner in (*(level.exp for level in levels[1:]), last)]


def nest_of(exp: Sweep) -> tuple[list[Level], Sweep]:
    levels: list[Level] = []
    outside: set[Var] = set()
    while (found := _inner_map(exp.lam)) is not None:
        before, stm = found
        inner = stm.exp
        assert isinstance(inner, Sweep)
        outside |= {*exp.lam.params, *(v for s in before for v in s.vars)}
        if inner.width in outside:
            break
        order = tuple(exp.lam.body.results.index(v) for v in stm.vars)
        levels.append(Level(exp, before, order))
        exp = inner
    return levels, exp


def _inner_map(lam: Lambda) -> tuple[tuple[Stm, ...], Stm] | None:
    """What comes before it, and a last statement that is a map and makes all results."""
    if not lam.body.stms:
        return None
    *before, last = lam.body.stms
    if not isinstance(last.exp, Sweep) or last.exp.reduces or last.exp.scans:
        return None
    if len(lam.body.results) != len(last.vars) or set(lam.body.results) != set(last.vars):
        return None
    return (tuple(before), last) if all(map(is_free, before)) else None


def _emit_nest(lo: Lowerer, levels: Sequence[Level], last: Sweep, widths: Sequence[Atom], outs: Sequence[Loc]) -> bool:
    """False where rows would be overwritten that others read; then nothing is emitted."""
    code = lo.code
    count = code.size(widths)
    possible = True
    with code.nested() as scratch, code.loop(count, tag=lo.schedule.launched) as t:
        indices = [Var("i", I64) for _ in widths]
        with code.nested() as body:
            outs = _enter(lo, levels, indices[:-1], outs)
            possible = not _clash_inside(lo, levels, last, outs)
            if possible:
                element(lo, last, last.lam, indices[-1], [], [], outs, 0)
        order = in_memory_order(body, indices)
        with code.nested() as host:
            cells = places(code, [widths[k] for k in order])
        for k, number in zip(order, cells.of(t), strict=True):
            code.emit(Let(indices[k], "identity", (number,)))
        for emitted in body:
            code.emit(emitted)
    if possible:
        for emitted in (*host, *scratch):
            code.emit(emitted)
    return possible


def _enter(lo: Lowerer, levels: Sequence[Level], indices: Sequence[Atom], outs: Sequence[Loc]) -> Sequence[Loc]:
    """Goes to the innermost map of an element of those around; gives where its results go."""
    for level, i in zip(levels, indices, strict=True):
        bind_rows(lo, level.exp.lam, i, level.exp.arrays)
        rows = [row_of(lo, out, i, level.exp.lam, level.exp.arrays) for out in outs]
        for stm in level.before:
            lo.stm(stm)
        outs = [rows[k] for k in level.order]
    return outs


def _rows_lie_together(
    lo: Lowerer, levels: Sequence[Level], last: Sweep, sweep: Sweep, outs: Sequence[Loc]
) -> bool | None:
    """Whether the cells are side by side of the rows that elements of a nest reduce. None where results would be
    overwritten that others read.
    """
    with lo.code.nested():  # just to look
        rows = _enter(lo, levels, [Var("i", I64) for _ in levels], outs)
        return None if _clash_inside(lo, levels, last, rows) else lie_together(lo, last, sweep)


def _share_rows(
    lo: Lowerer,
    levels: Sequence[Level],
    last: Sweep,
    widths: Sequence[Atom],
    sweeps: Sequence[Sweep],
    together: bool,
    outs: Sequence[Loc],
) -> None:
    """Note [Rows and lanes], of all elements of a nest."""
    cells = places(lo.code, widths)

    def enter(number: Atom) -> tuple[Atom, Sequence[Loc]]:
        *outer, row = cells.of(number)
        return row, _enter(lo, levels, outer, outs)

    run_by_lanes(lo, last, lo.code.size(widths), sweeps, together, enter)


def _clash_inside(lo: Lowerer, levels: Sequence[Level], last: Sweep, outs: Sequence[Loc]) -> bool:
    return _clash(lo, last, outs, {v for level in levels for s in level.before for v in free_in_exp(s.exp)})


def _clash(lo: Lowerer, exp: Sweep, outs: Sequence[Loc], read: AbstractSet[Var]) -> bool:
    taken = {out.buffer for out in outs}
    if any(lo.arrays[v].buffer in taken for v in {*free_in_lambda(exp.lam), *read} if v in lo.arrays):
        return True
    return any(lo.loc(a).buffer is out.buffer and not lo.loc(a).same_place(out) for a in exp.arrays for out in outs)
