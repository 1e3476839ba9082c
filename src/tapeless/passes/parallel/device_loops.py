"""Loops that people wrote in order, and that need none: for targets on which one thread is slow.

Takes and gives a verified function; looks at outer loops first. A loop whose iterations are proved independent becomes a
sweep (`parallelise`), one whose carried numbers are linear becomes a scan and a sweep (`recurrences`). All others stay,
and so do those that are there because powers of their factors may be out of range (Note [Out of range] in
passes/coarsen/closed_loops.py).
Inside of a sweep that may be all that a thread does, so only loops go there that cost it nothing as a sweep: those that
fill arrays or add to those around.
"""

from __future__ import annotations

from collections.abc import Sequence

from tapeless.ir.core import Body, Exp, For, Function, Hist, Scatter, Stm, Sweep, UpdateAcc, WithAcc
from tapeless.ir.types import Atom, Const
from tapeless.ir.walk import all_stms, in_regions, map_function, with_stms
from tapeless.passes.analysis.independence import Dependent
from tapeless.passes.parallel.parallelise import parallelise_proved
from tapeless.passes.parallel.recurrences import FEW, by_scan


def free_loops(function: Function) -> Function:
    return map_function(function, _body)


def _body(body: Body) -> Body:
    return with_stms(body, [new for stm in body.stms for new in _stm(stm)])


def _stm(stm: Stm) -> Sequence[Stm]:
    match stm.exp:
        case Sweep():
            return (in_regions(stm, _inside),)
        case Hist() | Scatter():
            return (stm,)
        case For(bound=bound, hints=hints) if not _makes_few(bound) and not hints.few:
            found = _at_once(stm) or by_scan(stm)
            if found:
                return found
    return (in_regions(stm, _body),)


def _inside(body: Body) -> Body:
    """Of a sweep."""
    return with_stms(body, [new for stm in body.stms for new in _stm_inside(stm)])


def _stm_inside(stm: Stm) -> Sequence[Stm]:
    match stm.exp:
        case Hist() | Scatter():
            return (stm,)
        case For(bound=bound, body=body) if not _makes_few(bound) and not _sets(body):
            found = _at_once(stm)
            if found and all(_fills(s.exp) for s in found):
                return found
    return (in_regions(stm, _inside),)


def _makes_few(bound: Atom) -> bool:
    return isinstance(bound, Const) and bound.value.real <= FEW


def _sets(body: Body) -> bool:
    """Whether cells of arrays around are set: nobody has proved that this loop sets none of them twice."""
    return any(isinstance(s.exp, UpdateAcc) and s.exp.acc.type.acc == "set" for s in all_stms(body))


def _fills(exp: Exp) -> bool:
    """Nothing is added up."""
    match exp:
        case Sweep(reduces=reduces):
            return not reduces
        case WithAcc(lam=lam):
            return all(p.type.acc == "set" for p in lam.params) and all(_fills(s.exp) for s in lam.body.stms)
    return True


def _at_once(stm: Stm) -> list[Stm] | None:
    try:
        return parallelise_proved(stm)
    except Dependent:
        return None
