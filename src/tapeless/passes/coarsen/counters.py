"""Carried integers that count: their value in each iteration by its number, so that iterations need not be in order.

Takes and gives a verified function. An integer to which each iteration adds c + d i, where c and d do not change and i is
the number of the iteration, is what it was at first plus i c + d i (i - 1) / 2. All of it is arithmetic modulo 2**64, as the
loop's; the half is taken of the even one of i and i - 1.
"""

from __future__ import annotations

from dataclasses import replace

from tapeless.ir.builder import Builder
from tapeless.ir.core import Apply, Body, For, Function, Stm
from tapeless.ir.types import I64, Atom, Var, i64
from tapeless.ir.walk import in_regions, map_function, with_stms
from tapeless.symbolic.polynomials import symbol
from tapeless.symbolic.positions import Position, combined, form_of


def count_at_once(function: Function) -> Function:
    return map_function(function, _body)


def _body(body: Body) -> Body:
    """Inner loops first: what they add up is a step of the loop around."""
    stms: list[Stm] = []
    for s in body.stms:
        s = in_regions(s, _body)
        stms += _loop(s, s.exp) if isinstance(s.exp, For) else [s]
    return with_stms(body, stms)


def _loop(stm: Stm, exp: For) -> list[Stm]:
    steps = {} if exp.hints.wish is not None else _steps(exp)
    if not steps:
        return [stm]
    inside, after = Builder(stm.span), Builder(stm.span)
    trips = after.let(I64, Apply("max", (exp.bound, i64(0))))
    for k, (slope, base) in steps.items():
        inside.stms.append(Stm((exp.params[k],), _value(inside, exp.inits[k], slope, base, exp.index), stm.span))
        after.stms.append(Stm((stm.vars[k],), _value(after, exp.inits[k], slope, base, trips), stm.span))
    left = [k for k in range(len(exp.params)) if k not in steps]
    body = Body((*inside.stms, *exp.body.stms), tuple(exp.body.results[k] for k in left))
    params, inits = tuple(exp.params[k] for k in left), tuple(exp.inits[k] for k in left)
    loop = replace(exp, params=params, inits=inits, body=body)
    return [Stm(tuple(stm.vars[k] for k in left), loop, stm.span), *after.stms]


def _steps(exp: For) -> dict[int, tuple[Position, Position]]:
    """By the position of a carried integer, d and c."""
    forms: dict[Var, Position] = {}
    for s in exp.body.stms:
        form = combined(s.exp, forms, linear=False) if isinstance(s.exp, Apply) and s.vars[0].type == I64 else None
        if form is not None:
            forms[s.vars[0]] = form
    bound = {*exp.params, *(v for s in exp.body.stms for v in s.vars)}
    steps: dict[int, tuple[Position, Position]] = {}
    for k, (p, result) in enumerate(zip(exp.params, exp.body.results, strict=True)):
        if p.type != I64:
            continue
        parts = (form_of(result, forms) - symbol(p)).split(exp.index)
        if parts is not None and not (parts[0].symbols | parts[1].symbols) & bound:
            steps[k] = parts
    return steps


def _value(b: Builder, init: Atom, slope: Position, base: Position, i: Atom) -> Apply:
    total = init
    if base.terms or base.const:
        total = b.let(I64, Apply("add", (total, b.let(I64, Apply("mul", (_emitted(b, base), i))))))
    if slope.terms or slope.const:
        half = b.let(I64, Apply("shr", (i, i64(1))))
        odd = b.let(I64, Apply("or", (b.let(I64, Apply("sub", (i, i64(1)))), i64(1))))
        pairs = b.let(I64, Apply("mul", (half, odd)))
        total = b.let(I64, Apply("add", (total, b.let(I64, Apply("mul", (_emitted(b, slope), pairs))))))
    return Apply("identity", (total,))


def _emitted(b: Builder, form: Position) -> Atom:
    total: Atom = i64(form.const)
    for monomial, factor in form.terms.items():
        product: Atom = i64(factor)
        for s in monomial:
            product = b.let(I64, Apply("mul", (product, s)))
        total = b.let(I64, Apply("add", (total, product)))
    return total
