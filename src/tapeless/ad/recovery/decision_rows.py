"""The two parts of an iteration with decisions: one that makes them, one that reads them from arrays.

Both functions take the body of an iteration and the truth values that are cut out of it (`ad.recovery.masks`).
`deciding` gives the body with them as further results of the sweeps around them, `reading` the body that expects them.
An array of truth values has an axis for each of these sweeps.
"""

from __future__ import annotations

from collections.abc import Collection
from dataclasses import replace

from tapeless.ir.core import Body, Lambda, Stm, Sweep, WithAcc
from tapeless.ir.types import Type, Var


def reading(body: Body, cuts: Collection[Var]) -> tuple[Body, dict[Var, Var]]:
    """The body without the definitions of the cuts, and the variables that it expects for them."""
    stms, found = list[Stm](), dict[Var, Var]()
    for s in body.stms:
        match s.exp:
            case Sweep(lam=lam) as exp:
                inner, rows = reading(lam.body, cuts)
                arrays = {v: Var(r.name, Type(r.type.dtype, (exp.width, *r.type.shape))) for v, r in rows.items()}
                new = Lambda((*lam.params, *rows.values()), inner)
                s = replace(s, exp=replace(exp, arrays=(*exp.arrays, *arrays.values()), lam=new))
                found.update(arrays)
            case WithAcc(lam=lam) as exp:
                inner, rows = reading(lam.body, cuts)
                s = replace(s, exp=replace(exp, lam=Lambda(lam.params, inner)))
                found.update(rows)
            case _:
                pass
        mine = [v for v in s.vars if v in cuts]
        found.update({v: v for v in mine})
        if not mine or len(mine) < len(s.vars):
            stms.append(replace(s, vars=tuple(Var(v.name, v.type) if v in mine else v for v in s.vars)))
    return Body(tuple(stms), body.results), found


def deciding(body: Body, cuts: Collection[Var]) -> tuple[Body, dict[Var, Var]]:
    """The body with the cuts as further results of the sweeps that they are in, and their names outside."""
    stms, found = list[Stm](), dict[Var, Var]()
    for s in body.stms:
        match s.exp:
            case Sweep(lam=lam) | WithAcc(lam=lam) as exp:
                axes = (exp.width,) if isinstance(exp, Sweep) else ()
                inner, given = deciding(lam.body, cuts)
                more = {v: Var(g.name, Type(g.type.dtype, (*axes, *g.type.shape))) for v, g in given.items()}
                inner = Body(inner.stms, (*inner.results, *given.values()))
                s = Stm((*s.vars, *more.values()), replace(exp, lam=Lambda(lam.params, inner)), s.span)
                found.update(more)
            case _:
                pass
        stms.append(s)
        found.update({v: v for v in s.vars if v in cuts})
    return Body(tuple(stms), body.results), found
