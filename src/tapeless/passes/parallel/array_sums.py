"""Whole arrays and rows that are added to: `c += a` as the addend alone.

`addend_of` takes the statement that adds something to every element of an array, and gives the statement that makes
what was added. Parallel loops then add it to an accumulator.
"""

from __future__ import annotations

from tapeless.ir.core import Apply, Atom, Body, Lambda, Stm, Sweep
from tapeless.ir.types import Var
from tapeless.ir.walk import free_in_exp, free_in_lambda


def addend_of(stm: Stm, old: Var) -> Stm | None:
    """The same without `old`, negative where it was subtracted from; None when it is no sum of `old` and other things."""
    exp = _without(stm.exp, old) if isinstance(stm.exp, Sweep) else None
    return None if exp is None else Stm((Var(stm.vars[0].name, stm.vars[0].type),), exp, stm.span)


def _without(exp: Sweep, old: Var) -> Sweep | None:
    if exp.reduces or exp.scans or len(exp.lam.body.results) != 1 or exp.arrays.count(old) != 1:
        return None
    if old in free_in_lambda(exp.lam):
        return None
    k = exp.arrays.index(old)
    element = exp.lam.params[1 + k]
    *before, last = exp.lam.body.stms or (None,)
    if last is None or last.vars != exp.lam.body.results or any(element in free_in_exp(s.exp) for s in before if s):
        return None
    found = _other(last, element)
    if found is None:
        return None
    stms, value = found
    params = tuple(p for p in exp.lam.params if p is not element)
    body = Body((*(s for s in before if s), *stms), (value,))
    return Sweep(exp.width, (*exp.arrays[:k], *exp.arrays[k + 1 :]), Lambda(params, body))


def _other(stm: Stm, element: Var) -> tuple[list[Stm], Atom] | None:
    """What is added to the element."""
    match stm.exp:
        case Apply(op="add", args=(a, b)) if (a is element) != (b is element):
            return [], b if a is element else a
        case Apply(op="sub", args=(a, b)) if a is element and b is not element:
            negative = Var(stm.vars[0].name, stm.vars[0].type)
            return [Stm((negative,), Apply("neg", (b,)), stm.span)], negative
        case Sweep():
            inner = addend_of(stm, element)
            return None if inner is None else ([inner], inner.vars[0])
    return None
