"""Cells that are read once and then cleared, as reverse mode does with adjoints of an array that a loop filled.

Takes and gives verified Core. Where nobody looks at the array after the loop, all iterations together write each of its
cells at most once, and each read is of a cell that is written right behind it, what is written is never seen. The loop then
only reads the array, and does not carry it: its iterations may be independent.
"""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import replace

from tapeless.ir.core import At, Axis, Body, For, Function, Index, Stm, Update
from tapeless.ir.operands import regions
from tapeless.ir.types import Var
from tapeless.ir.walk import free_in_exp, in_regions, map_function, with_stms
from tapeless.passes.analysis.independence import Accesses, Dependent, forms_of, same_axes
from tapeless.passes.analysis.written_once import written_once_by_all
from tapeless.passes.parallel.uncarried import Uncarried


def leave_cleared(function: Function) -> Function:
    return map_function(function, _body)


def _body(body: Body) -> Body:
    used = {r for r in body.results if isinstance(r, Var)}
    stms: list[Stm] = []
    for s in reversed(body.stms):
        if isinstance(s.exp, For):
            s = _loop(s, s.exp, used)
        used.update(free_in_exp(s.exp))
        stms.append(in_regions(s, _body))
    return with_stms(body, stms[::-1])


def _loop(stm: Stm, loop: For, used: set[Var]) -> Stm:
    found: dict[Var, Var] = {}
    for k, (p, init) in enumerate(zip(loop.params, loop.inits, strict=True)):
        if p.type.shape and isinstance(init, Var) and stm.vars[k] not in used and _is_only_cleared(stm, loop, k):
            found[p] = init
    if not found:
        return stm
    keep = [k for k, p in enumerate(loop.params) if p not in found]
    body = _Reading(found).body(loop.body, keep)
    params, inits = tuple(loop.params[k] for k in keep), tuple(loop.inits[k] for k in keep)
    return Stm(tuple(stm.vars[k] for k in keep), replace(loop, params=params, inits=inits, body=body), stm.span)


class _Reading(Uncarried):
    """Reads the array as it was before the loop."""

    def stm(self, s: Stm) -> list[Stm]:
        match s.exp:
            case Index(array=a, axes=axes) if a in self.stands_for:
                return [Stm(s.vars, Index(self.stands_for[a], axes), s.span)]
            case Update(array=a) if a in self.stands_for:
                self.stands_for[s.vars[0]] = self.stands_for[a]
                return []
        return super().stm(s)


def _is_only_cleared(stm: Stm, loop: For, k: int) -> bool:
    accesses = Accesses(loop.params[k])
    try:
        accesses.collect(loop.body)
    except Dependent:
        return False
    inside = [r in accesses.versions for r in loop.body.results]
    if accesses.sums or not accesses.reads or not inside[k] or sum(inside) > 1:
        return False
    if not _read_before_written(loop.body, accesses.versions):
        return False
    return written_once_by_all(stm, loop, accesses.versions, forms_of(loop))


def _read_before_written(body: Body, versions: set[Var]) -> bool:
    """Each read is in a body that then writes the same cell of the same version."""
    writes: Mapping[Var, tuple[Axis, ...]] = {
        s.exp.array: s.exp.axes for s in body.stms if isinstance(s.exp, Update) and s.exp.array in versions
    }
    for s in body.stms:
        if isinstance(s.exp, Index) and s.exp.array in versions:
            axes = writes.get(s.exp.array)
            if axes is None or not _as_tested(s.exp.axes, axes):
                return False
        if not all(_read_before_written(r.body, versions) for r in regions(s.exp)):
            return False
    return True


def _as_tested(read: tuple[Axis, ...], written: tuple[Axis, ...]) -> bool:
    """The same cell, and no test of its place goes with the write."""
    tested = all(
        a.check or not b.check for a, b in zip(read, written, strict=True) if isinstance(a, At) and isinstance(b, At)
    )
    return tested and same_axes(read, written)
