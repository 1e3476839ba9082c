"""Updates of all cells of a short row, one by one, become one update of the row.

Takes and gives verified Core. `update_acc a[i, 0] = x` and `update_acc a[i, 1] = y` in a sweep over i, where the last axis
of `a` has length 2, are `update_acc a[i, :] = [x, y]`. Relies on updates having no order. `own_cells` goes on from there.
"""

from __future__ import annotations

from dataclasses import replace

from tapeless.ir.builder import full_axes
from tapeless.ir.core import ArrayLit, At, Axis, Body, Function, Lambda, Stm, Sweep, UpdateAcc
from tapeless.ir.rewrite import Rewriter
from tapeless.ir.types import Const, Type, Var
from tapeless.ir.walk import all_stms

PROGRAMS = ("ba", "ba'")  # all of the collection that it changes: `tests/passes/test_firings.py`

LONGEST = 16  # cells of a row
Row = tuple[Var, tuple[Axis, ...]]  # an accumulator and the positions in front of the last axis


def whole_rows(function: Function) -> Function:
    if not any(isinstance(s.exp, UpdateAcc) for s in all_stms(function.body)):
        return function
    return WholeRows().function(function)


class WholeRows(Rewriter):
    def stm(self, stm: Stm) -> None:
        if isinstance(stm.exp, Sweep):
            lam = stm.exp.lam
            body = _with_rows(lam.body, lam.params[0])
            if body is not lam.body:
                stm = Stm(stm.vars, replace(stm.exp, lam=Lambda(lam.params, body)), stm.span)
        super().stm(stm)


def _with_rows(body: Body, index: Var) -> Body:
    """The lambda's body of a sweep with this index."""
    rows: dict[Row, dict[int, list[Stm]]] = {}
    for s in body.stms:
        if isinstance(s.exp, UpdateAcc) and (cell := _cell(s.exp, index)) is not None:
            row, place = cell
            rows.setdefault(row, {}).setdefault(place, []).append(s)
    last: dict[int, tuple[Row, list[Stm]]] = {}  # by the identity of the last update of a row
    gone: set[int] = set()
    for row, cells in rows.items():
        acc, _ = row
        if len(cells) == acc.type.shape[-1] and all(len(many) == 1 for many in cells.values()):
            updates = [cells[k][0] for k in sorted(cells)]
            mine = {id(s) for s in updates}
            gone |= mine
            last[next(id(s) for s in reversed(body.stms) if id(s) in mine)] = row, updates
    if not last:
        return body
    stms: list[Stm] = []
    for s in body.stms:
        if id(s) not in gone:
            stms.append(s)
        elif id(s) in last:
            stms.extend(_row_update(*last[id(s)]))
    return Body(tuple(stms), body.results)


def _cell(update: UpdateAcc, index: Var) -> tuple[Row, int] | None:
    """The row that the update is in, and the place there."""
    acc, (*front, here) = update.acc, update.axes
    length = acc.type.shape[-1]
    if acc.type.acc not in ("add", "set") or not isinstance(length, int) or length > LONGEST or update.value.type.shape:
        return None
    if At(index) not in front or not all(isinstance(a, At) and not a.check for a in front):
        return None
    if not isinstance(here, At) or here.check or not isinstance(here.index, Const):
        return None
    place = int(here.index.value.real)
    return ((acc, tuple(front)), place) if 0 <= place < length else None


def _row_update(row: Row, updates: list[Stm]) -> list[Stm]:
    acc, front = row
    values = tuple(s.exp.value for s in updates if isinstance(s.exp, UpdateAcc))
    made = Var("row", Type(acc.type.dtype, (len(values),)))
    axes = (*front, *full_axes(acc.type.shape[-1:]))
    span = updates[-1].span
    return [Stm((made,), ArrayLit(values), span), Stm((), UpdateAcc(acc, axes, made), span)]
