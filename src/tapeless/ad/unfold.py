"""Reductions, scans and histograms as sequential loops, for operators that have no adjoint rule of their own.

`unfold` takes a body and tells which variables have derivatives; gives the same body with those statements replaced.
The loop's rule keeps the running value, so every operand meets the partner it had: that is right for operators that do
not commute, for products with zeros to any order, and for what an operator reads from outside. Of products whose
derivative is the `last` one only those are replaced that cannot go back by division: Note [Other factors] in
`ad.rules.reverse_products`.
"""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import replace

from tapeless.ad.reductions import EXTREMA, has_inverse, is_sum, single_row
from tapeless.ir.builder import Builder, full_axes
from tapeless.ir.core import Apply, At, Body, Exp, For, Full, Hist, If, Lambda, Reduction, Stm, Sweep
from tapeless.ir.types import BOOL, I64, Atom, Var, dim_atom, i64, one_of
from tapeless.ir.walk import map_exp


def unfold(body: Body, active: set[Var], last: bool) -> Body:
    stms: list[Stm] = []
    for stm in body.stms:
        exp = stm.exp
        if not isinstance(exp, Apply):
            exp = map_exp(
                exp,
                lambda a: a,
                lambda b: unfold(b, active, last),
                lambda lam: Lambda(lam.params, unfold(lam.body, active, last)),
            )
        stm = Stm(stm.vars, exp, stm.span)
        match exp:
            case Sweep():
                stms.extend(_sweep(stm, exp, active, last))
            case Hist(op=op) if not is_sum(op) and any(v in active for v in stm.vars):
                product = last and has_inverse(op, exp.width, exp.lam)
                stms.extend(_into_ones(stm, exp) if product else [_hist(stm, exp)])
            case _:
                stms.append(stm)
    return Body(tuple(stms), body.results)


def _has_rule(exp: Sweep, reduction: Reduction, scan: bool, last: bool) -> bool:
    if scan or is_sum(reduction):
        return is_sum(reduction)
    return single_row(reduction) in EXTREMA or (last and has_inverse(reduction, exp.width, exp.lam))


def _sweep(stm: Stm, exp: Sweep, active: set[Var], last: bool) -> list[Stm]:
    """A sweep of the operators that may stay, and a loop for each other."""
    at = 0
    kept: list[int] = []
    loops: list[tuple[Reduction, bool, list[int]]] = []
    operators: dict[bool, list[Reduction]] = {False: [], True: []}
    for r, scan in [*((r, False) for r in exp.reduces), *((s, True) for s in exp.scans)]:
        places = list(range(at, at + len(r.neutral)))
        at += len(places)
        if _has_rule(exp, r, scan, last) or not any(stm.vars[k] in active for k in places):
            kept.extend(places)
            operators[scan].append(r)
        else:
            loops.append((r, scan, places))
    if not loops:
        return [stm]
    kept.extend(range(at, len(stm.vars)))
    parts: list[Stm] = []
    if kept:
        lam = Lambda(exp.lam.params, Body(exp.lam.body.stms, tuple(exp.lam.body.results[k] for k in kept)))
        new: Exp = Sweep(exp.width, exp.arrays, lam, tuple(operators[False]), tuple(operators[True]))
        parts.append(Stm(tuple(stm.vars[k] for k in kept), new, stm.span))
    for r, scan, places in loops:
        parts.extend(_loop(stm, exp, r, scan, places))
    return parts


def _loop(stm: Stm, exp: Sweep, r: Reduction, scan: bool, places: Sequence[int]) -> list[Stm]:
    """The running value of one operator from the first element to the last; a scan notes it at each."""
    b = Builder(stm.span)
    i = Var("i", I64)
    results = [stm.vars[k] for k in places]
    totals = [Var("total", n.type) for n in r.neutral]
    outs = [Var(v.name, v.type) for v in results] if scan else []
    with b.region() as stms:
        operands = b.inline(exp.lam, [i, *_rows(b, exp.arrays, i)])
        new = b.inline(r.op, [*totals, *(operands[k] for k in places)])
        written = [b.update(o, (At(i), *full_axes(n.type.shape)), n) for o, n in zip(outs, new, strict=False)]
    body = Body(tuple(stms), (*new, *written))
    inits: list[Atom] = list(r.neutral)
    before: list[Stm] = []
    for v in results if scan else ():
        start = Var(v.name, v.type)
        before.append(Stm((start,), Full(v.type.shape, None), stm.span))
        inits.append(start)
    ends = [Var("total", n.type) for n in r.neutral] if scan else []
    loop = For(i, dim_atom(exp.width), (*totals, *outs), tuple(inits), body)
    return [*before, Stm((*ends, *results), loop, stm.span)]


def _hist(stm: Stm, exp: Hist) -> Stm:
    """One element after the other combined into its bin."""
    b = Builder(stm.span)
    i = Var("i", I64)
    dests = tuple(Var(d.name, d.type) for d in exp.dests)
    with b.region() as stms:
        key, *values = b.inline(exp.lam, [i, *_rows(b, exp.arrays, i)])
        size = dim_atom(exp.dests[0].type.shape[0])
        low = b.let(BOOL, Apply("ge", (key, i64(0))))
        high = b.let(BOOL, Apply("lt", (key, size)))
        inside = b.let(BOOL, Apply("and", (low, high)))
        with b.region() as then:
            old = [b.index(d, (At(key), *full_axes(d.type.row().shape))) for d in dests]
            new = b.inline(exp.op.op, [*old, *values])
            put = [b.update(d, (At(key), *full_axes(n.type.shape)), n) for d, n in zip(dests, new, strict=True)]
        vars = [Var(d.name, d.type) for d in dests]
        found = b.bind(vars, If(inside, Body(tuple(then), tuple(put)), Body((), dests)))
    return Stm(stm.vars, For(i, dim_atom(exp.width), dests, exp.dests, Body(tuple(stms), found)), stm.span)


def _into_ones(stm: Stm, exp: Hist) -> list[Stm]:
    """A histogram of products that starts from ones, times what it started from."""
    b = Builder(stm.span)
    (dest,) = exp.dests
    size, item = dest.type.shape[0], dest.type.row()
    ones = b.full((size,), one_of(item.dtype), item.dtype, dest.name)
    products = b.bind([Var(dest.name, dest.type)], replace(exp, dests=(ones,)))[0]
    i, x, y, t = Var("i", I64), Var("x", item), Var("y", item), Var("t", item)
    times = Lambda((i, x, y), Body((Stm((t,), Apply("mul", (x, y)), stm.span),), (t,)))
    b.bind(stm.vars, Sweep(size, (dest, products), times))
    return b.stms


def _rows(b: Builder, arrays: Sequence[Var], i: Var) -> list[Var]:
    return [b.row(a, i, a.name) for a in arrays]
