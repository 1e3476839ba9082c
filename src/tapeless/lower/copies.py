"""Copies of whole arrays by several threads.

Takes two arrays of one shape. Rows go to the threads as those of a sweep do: what a thread copies is in its cache when
the sweeps that follow read it, or has been left there by those before. That is for loops that are known to sweep over
rows (`passes/jam.py`): for others it costs more time to compile than it saves.
"""

from __future__ import annotations

from typing import TYPE_CHECKING

from tapeless.ir.core import Body, For
from tapeless.ir.plans import JAMMED
from tapeless.ir.target import Target
from tapeless.ir.types import Var
from tapeless.lower.code import ONE, Loc
from tapeless.lower.work import pieces_for, share

if TYPE_CHECKING:
    from tapeless.lower.lowering import Lowerer


def swept_by_rows(body: Body) -> set[Var]:
    """The arrays that loops of this body take and give row by row."""
    found: set[Var] = set()
    for stm in body.stms:
        if isinstance(stm.exp, For) and stm.exp.plan == JAMMED:
            found.update(stm.vars)
            found.update(a for a in stm.exp.inits if isinstance(a, Var))
    return found


def copy_by_rows(lo: Lowerer, source: Loc, target: Loc) -> None:
    code = lo.code
    alike = source.ordered and target.ordered and not source.same_place(target)
    if not alike or lo.parallel or lo.alone or lo.target != Target.cpu:
        code.copy(source, target)
        return
    rows, row = source.shape[0], code.size(source.shape[1:])
    pieces = pieces_for(lo, rows, code.mul(rows, row))
    with code.loop(pieces, tag="threads", label="piece") as piece:
        start, stop = share(lo, piece, rows, pieces)
        first, length = code.mul(start, row), code.mul(code.sub(stop, start), row)

        def part(loc: Loc) -> Loc:
            return Loc(loc.buffer, loc.dtype, (length,), (ONE,), code.add(loc.offset, first))

        code.copy(part(source), part(target))
