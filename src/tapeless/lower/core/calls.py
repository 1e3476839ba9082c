"""Lowering of calls: the function is one of the program's own, which is given its arrays by their addresses and memory
for its results.
"""

from __future__ import annotations

from tapeless.ir.core import Call
from tapeless.ir.types import Atom, Var
from tapeless.lower.core.code import Loc
from tapeless.lower.core.lowerer import Lowerer, lowers
from tapeless.lower.ir.loopir import Invoke, Pointer


@lowers(Call)
def lower_call(lo: Lowerer, vars: tuple[Var, ...], exp: Call) -> None:
    callee = lo.callees[exp.function]
    args: list[Atom | Pointer] = [_given(lo, a) for a in exp.args]
    places: dict[Var, Loc] = {}
    for k in callee.array_results:
        place = lo.place(vars[k])
        places[vars[k]] = place if place.ordered else lo.allocate(vars[k].type, vars[k].name)
        args.append(_pointer(places[vars[k]]))
        lo.arrays[vars[k]] = place
    results = {k: Var(vars[k].name, vars[k].type) for k in callee.scalar_results}
    lo.code.emit(Invoke(callee.program.name, tuple(args), tuple(results.values())))
    for k, result in results.items():
        lo.scalars[vars[k]] = result
    for v, made in places.items():
        lo.code.copy(made, lo.arrays[v])
    if callee.blas:
        lo.note_blas(callee.blas == "inside")


def _given(lo: Lowerer, a: Atom) -> Atom | Pointer:
    if not a.type.shape:
        return lo.atom(a)
    loc = lo.loc(a)
    if not loc.ordered:
        whole = lo.allocate(a.type, "whole")
        lo.code.copy(loc, whole)
        loc = whole
    return _pointer(loc)


def _pointer(loc: Loc) -> Pointer:
    return Pointer(loc.buffer, loc.offset)
