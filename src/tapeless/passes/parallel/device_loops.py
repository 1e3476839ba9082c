"""Loops that people wrote in order, and that need none: for targets on which one thread is slow.

Takes and gives a verified function; looks at loops that the host runs, outer ones first. A loop whose iterations are proved
independent becomes a sweep (`parallelise`), one whose carried numbers are linear becomes a scan and a sweep
(`recurrences`). All others stay.
"""

from __future__ import annotations

from collections.abc import Sequence

from tapeless.ir.core import Body, For, Function, Hist, Scatter, Stm, Sweep
from tapeless.ir.types import Const
from tapeless.ir.walk import in_regions, map_function, with_stms
from tapeless.passes.analysis.independence import Dependent
from tapeless.passes.parallel.parallelise import parallelise_proved
from tapeless.passes.parallel.recurrences import FEW, by_scan


def free_loops(function: Function) -> Function:
    return map_function(function, _body)


def _body(body: Body) -> Body:
    return with_stms(body, [new for stm in body.stms for new in _stm(stm)])


def _stm(stm: Stm) -> Sequence[Stm]:
    match stm.exp:
        case Sweep() | Hist() | Scatter():
            return (stm,)
        case For(bound=bound) if not (isinstance(bound, Const) and bound.value.real <= FEW):
            found = _at_once(stm) or by_scan(stm)
            if found:
                return found
    return (in_regions(stm, _body),)


def _at_once(stm: Stm) -> list[Stm] | None:
    try:
        return parallelise_proved(stm)
    except Dependent:
        return None
