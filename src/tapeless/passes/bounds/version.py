"""Innermost loops with index tests get a version without them, for when one test before the loop covers all iterations.

Takes Core after range analysis; gives Core in which such a loop is an `if`: all positions c*i + r inside, then the loop
without those tests, else the loop as it was. Unlike hoisting a test this changes nothing about errors, and negative
positions may wrap. So do sweeps that only test: often there is nothing left of them then.
"""

from __future__ import annotations

from dataclasses import replace

from tapeless.ir.builder import Builder
from tapeless.ir.core import (
    Apply,
    At,
    Atom,
    Axis,
    Body,
    Exp,
    For,
    Function,
    If,
    Index,
    Lambda,
    Stm,
    Sweep,
    Update,
    UpdateAcc,
)
from tapeless.ir.effects import effects_in
from tapeless.ir.operands import regions
from tapeless.ir.types import BOOL, I64, Dim, Var, dim_atom, i64
from tapeless.ir.walk import in_regions, map_function, refresh_body, with_stms
from tapeless.symbolic.positions import Position, combined, form_of

LARGEST = 60  # statements of a loop that is worth having twice


def version_loops(function: Function) -> Function:
    return map_function(function, _body)


def _body(body: Body) -> Body:
    stms: list[Stm] = []
    for s in body.stms:
        if isinstance(s.exp, For) and _innermost(s.exp.body):
            stms.extend(_versioned(s, s.exp, s.exp.bound, s.exp.body, (s.exp.index, *s.exp.params)))
        elif isinstance(s.exp, Sweep) and _only_tests(s) and _innermost(s.exp.lam.body):
            stms.extend(_versioned(s, s.exp, dim_atom(s.exp.width), s.exp.lam.body, s.exp.lam.params))
        else:
            stms.append(in_regions(s, _body))
    return with_stms(body, stms)


def _only_tests(stm: Stm) -> bool:
    return not stm.vars and not any(isinstance(e, UpdateAcc) for e in effects_in((stm,)))


def _innermost(body: Body) -> bool:
    return len(body.stms) <= LARGEST and not any(regions(s.exp) for s in body.stms)


def _versioned(stm: Stm, loop: For | Sweep, bound: Atom, body: Body, params: tuple[Var, ...]) -> list[Stm]:
    """The tests that one comparison before the loop can answer, and the loop twice; just the loop when there are none."""
    forms, index = _forms(body), params[0]
    inside = {v for s in body.stms for v in s.vars} | {*params}
    covered: dict[tuple[Atom, Dim], Position] = {}
    for s in body.stms:
        for axis, size in _tested(s.exp):
            form = form_of(axis.index, forms)
            rest = form.without(index)
            if rest.symbols & inside or (isinstance(size, Var) and size in inside):
                continue
            covered[axis.index, size] = form
    if not covered:
        return [stm]
    b = Builder(stm.span)
    all_inside: Atom = b.let(BOOL, Apply("gt", (bound, i64(0))), "runs")
    last = b.let(I64, Apply("sub", (bound, i64(1))), "last")
    for (_, size), form in covered.items():
        all_inside = _and(b, all_inside, _fits(b, form, index, last, size))
    free = _with_body(loop, _untested(body, covered))
    return [*b.stms, Stm(stm.vars, _choice(stm, all_inside, free, loop), stm.span)]


def _with_body(loop: For | Sweep, body: Body) -> For | Sweep:
    if isinstance(loop, For):
        return replace(loop, body=body)
    return replace(loop, lam=Lambda(loop.lam.params, body))


def _choice(stm: Stm, cond: Atom, free: For | Sweep, tested: For | Sweep) -> If:
    def arm(loop: For | Sweep) -> Body:
        outs = tuple(Var(v.name, v.type) for v in stm.vars)
        return refresh_body(Body((Stm(outs, loop, stm.span),), outs))

    return If(cond, arm(free), arm(tested))


def _forms(body: Body) -> dict[Var, Position]:
    forms: dict[Var, Position] = {}
    for s in body.stms:
        if isinstance(s.exp, Apply) and s.vars[0].type == I64:
            form = combined(s.exp, forms)
            if form is not None:
                forms[s.vars[0]] = form
    return forms


def _tested(exp: Exp) -> list[tuple[At, Dim]]:
    match exp:
        case Index(array=a, axes=axes) | Update(array=a, axes=axes) | UpdateAcc(acc=a, axes=axes):
            return [
                (x, d) for x, d in zip(axes, a.type.shape, strict=True) if isinstance(x, At) and (x.check or x.wrap)
            ]
        case _:
            return []


def _fits(b: Builder, form: Position, index: Var, last: Atom, size: Dim) -> Atom:
    """0 <= form < size at both ends of the loop, and so in between. Ends that overflow do not pass for inside:
    a product or sum of i64 is compared with the numbers it came from."""
    scale = form.coefficient(index)
    start: Atom = i64(form.const)
    for (v,), c in form.terms.items():
        if v is not index:
            part: Atom = v if c == 1 else b.let(I64, Apply("mul", (v, i64(c))))
            start = part if start == i64(0) else b.let(I64, Apply("add", (start, part)))
    n = dim_atom(size)
    low, high = b.let(BOOL, Apply("ge", (start, i64(0)))), b.let(BOOL, Apply("lt", (start, n)))
    ok = _and(b, low, high)
    if scale == 0:
        return ok
    # room = how many steps fit between the start and the end of the axis in the direction of the loop
    room: Atom = start
    if scale > 0:
        room = b.let(I64, Apply("sub", (b.let(I64, Apply("sub", (n, i64(1)))), start)))
    steps = room if abs(scale) == 1 else b.let(I64, Apply("floordiv", (room, i64(abs(scale)))))
    return _and(b, ok, b.let(BOOL, Apply("le", (last, steps))))


def _and(b: Builder, x: Atom, y: Atom) -> Atom:
    return b.let(BOOL, Apply("and", (x, y)), "inside")


def _untested(body: Body, covered: dict[tuple[Atom, Dim], Position]) -> Body:
    def axis(x: Axis, d: Dim) -> Axis:
        return At(x.index) if isinstance(x, At) and (x.index, d) in covered else x

    stms: list[Stm] = []
    for s in body.stms:
        exp = s.exp
        match exp:
            case Index(array=a, axes=axes) | Update(array=a, axes=axes) | UpdateAcc(acc=a, axes=axes):
                new = tuple(axis(x, d) for x, d in zip(axes, a.type.shape, strict=True))
                stms.append(Stm(s.vars, replace(exp, axes=new), s.span))
            case _:
                stms.append(s)
    return Body(tuple(stms), body.results)
