"""Sums over data inside a loop that hang on the loop's values in a linear way: the data are summed up once, before it.

    for k in range(K):                                  a, b = sum(x * y), sum(x * x)
        d = sum(x * (y - x * w))            becomes     for k in range(K):
        w = w + r * d                                       d = a - b * w
                                                            w = w + r * d

Takes and gives verified Core: sums by sweeps and by loops, of terms that are affine in scalars of the loop around, with
factors made of what does not change. Each trip of that loop then takes a few operations, and not one for each datum.

Note [Digits of moments]
The sum of x - c has all its digits where x and c are close, and the sum of x less n times c has lost them. That does no
harm where the sum only moves c: it is off by roundings of c itself then, which the next trips make good. So sums are
taken apart only if what hangs on them is the next value of what they hang on, linearly: not if they are squared, looked
at after the loop, or added up.

Note [Moments out of range]
The sum of x * x may be infinite though each term that was written, x * (y - w * x), is a number: w is 0 at first. So
where a sum of the data is not finite, the loop runs as it was.
"""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import replace
from functools import reduce

from tapeless.ir.builder import Builder
from tapeless.ir.core import Apply, At, Body, For, Function, If, Index, Lambda, Stm, Sweep
from tapeless.ir.segments import Segment
from tapeless.ir.types import Atom, Const, Type, Var, const, zero_of
from tapeless.ir.walk import all_stms, free_in_exp, refresh_body
from tapeless.ops.emit import Emit, sum_operator
from tapeless.ops.op import FLOATS
from tapeless.passes.coarsen.by_loops import ByLoops, Report
from tapeless.passes.coarsen.forms import Form, Forms, total
from tapeless.passes.coarsen.wording import Words
from tapeless.symbolic.formulas.expressions import add, call, fresh, multiply
from tapeless.symbolic.formulas.text import latex_of, text_of

PROGRAMS = ("coarsening_descent'", "textbook_line_by_descent")  # models that are linear, fitted step by step
MOST = 3  # values of the loop that a term may hang on: each takes a sum of its own


def sum_data_first(function: Function, report: Report = lambda segment: None) -> Function:
    return _Sums(function, report).changed()


class _Sums(ByLoops):
    def loop(self, stm: Stm, exp: For) -> list[Stm]:
        """The sums of its body in front of it."""
        if isinstance(exp.bound, Const) and exp.bound.value.real <= MOST:
            return [stm]
        inside = {exp.index, *exp.params, *(v for s in all_stms(exp.body) for v in s.vars)}
        before = Builder(stm.span)
        stms: list[Stm] = []
        for s in exp.body.stms:
            may = isinstance(s.exp, (Sweep, For)) and _only_drives(s, exp)
            new = self.sum(s, inside, before) if may else None
            stms += [s] if new is None else new
        if not before.stms:
            return [stm]
        totals = [v for s in before.stms for v in s.vars]
        loop = replace(exp, body=Body(tuple(stms), exp.body.results))
        b = Builder(stm.span)
        for s in self.asked_for(exp.bound, before):
            b.add(s)
        emit = Emit(b)
        finite = [emit("isfinite", emit("stop_gradient", v)) for v in totals]
        good = reduce(lambda x, y: emit("and", x, y), finite)
        as_it_was = replace(exp, hints=replace(exp.hints, few=True))
        b.bind(stm.vars, If(good, *(_alone(stm, each) for each in (loop, as_it_was))))
        return b.stms

    def asked_for(self, bound: Atom, before: Builder) -> list[Stm]:
        """Not if the loop makes no trip."""
        if isinstance(bound, Const):
            return before.stms
        b = Builder(before.span)
        made = [v for s in before.stms for v in s.vars]
        renamed = [Var(v.name, v.type) for v in made]
        some = Emit(b)("gt", bound, 0)
        zeros = Body((), tuple(zero_of(v.type.dtype) for v in made))
        names = dict(zip(made, renamed, strict=True))
        stms = tuple(Stm(tuple(names[v] for v in s.vars), s.exp, s.span) for s in before.stms)
        b.bind(made, If(some, Body(stms, tuple(renamed)), zeros))
        return b.stms

    def sum(self, stm: Stm, inside: set[Var], before: Builder) -> list[Stm] | None:
        """A sum as one of what was summed up before."""
        if any(v in self.deciding for v in stm.vars):
            return None
        moving = [v for v in free_in_exp(stm.exp) if v in inside]
        terms = _terms(stm.exp) if isinstance(stm.exp, (Sweep, For)) else None
        if terms is None or not 0 < len(moving) <= MOST or not all(_is_number(v.type) for v in moving):
            return None
        params, body, starts = terms
        inner = Builder(stm.span)
        forms = Forms(Emit(inner), moving)
        summed = {start[0] for start in starts if start is not None}
        with inner.region() as stms:
            for s in body.stms:
                if any(v in summed for v in free_in_exp(s.exp)):
                    forms.lost.update(s.vars)  # it adds a term
                    continue
                if not _may_move(s):
                    return None
                if not forms.take(s):
                    inner.add(s)
        found: list[Form] = []
        for r, start in zip(body.results, starts, strict=True):
            form = forms.of(_added(r, start[0], body)) if start is not None else forms.of(r)
            if form is None:
                return None
            found.append(form)
        if any(s.exp.axes for s in stms if isinstance(s.exp, Index) and any(v in inside for v in free_in_exp(s.exp))):
            return None
        return self.written(stm, params, stms, found, starts, before)

    def written(
        self,
        stm: Stm,
        params: tuple[Var, ...],
        stms: list[Stm],
        found: Sequence[Form],
        starts: Sequence[tuple[Var, Atom] | None],
        before: Builder,
    ) -> list[Stm]:
        exp = stm.exp
        with_totals = Builder(stm.span)
        with with_totals.region() as made:
            for s in stms:
                with_totals.add(s)
            emit = Emit(with_totals)
            parts = [
                (k, symbol, total(emit, c, stm.vars[k].type.dtype))
                for k, form in enumerate(found)
                for symbol, c in form.items()
            ]
        types = [stm.vars[k].type for k, _, _ in parts]
        names = [f"{stm.vars[k].name}_{0 if symbol is None else symbol.name}" for k, symbol, _ in parts]
        totals = [Var(name, t) for name, t in zip(names, types, strict=True)]
        if isinstance(exp, Sweep):
            lam = Lambda(params, Body(tuple(made), tuple(a for _, _, a in parts)))
            sums = tuple(sum_operator(t.dtype) for t in types)
            before.bind(totals, replace(exp, lam=lam, reduces=sums))
        else:
            assert isinstance(exp, For)
            so_far = [Var("moment", t) for t in types]
            inner = Builder(stm.span)
            for s in made:
                inner.add(s)
            more = [Emit(inner)("add", x, a) for x, (_, _, a) in zip(so_far, parts, strict=True)]
            zeros = tuple(zero_of(t.dtype) for t in types)
            loop = For(Var("i", params[0].type), exp.bound, tuple(so_far), zeros, Body(tuple(inner.stms), tuple(more)))
            before.bind(totals, replace(loop, index=params[0]))
        b = Builder(stm.span)
        emit = Emit(b)
        ends: list[Atom] = [
            const(0.0, v.type.dtype) if s is None else s[1] for v, s in zip(stm.vars, starts, strict=True)
        ]
        for (k, symbol, _), summed in zip(parts, totals, strict=True):
            ends[k] = emit("add", ends[k], summed if symbol is None else emit("mul", symbol, summed))
        for v, end in zip(stm.vars, ends, strict=True):
            b.alias(v, end)
        words = Words(made)
        for k, v in enumerate(stm.vars):
            with fresh():
                mine = [(s, call("sum", words.of(a))) for j, s, a in parts if j == k]
                form = add(*(summed if s is None else multiply(words.of(s), summed) for s, summed in mine))
                self.report(Segment(stm.span, v.name, len(stms), 2 * len(mine), text_of(form), latex_of(form)))
        return b.stms


def _alone(stm: Stm, exp: For) -> Body:
    """This in place of the statement, in an arm of a branch."""
    made = tuple(Var(v.name, v.type) for v in stm.vars)
    return refresh_body(Body((Stm(made, exp, stm.span),), made))


Terms = tuple[tuple[Var, ...], Body, list[tuple[Var, Atom] | None]]


def _terms(exp: Sweep | For) -> Terms | None:
    """Of a sum: the parameters of a term, its body, and, for a loop, the values summed up and where they start."""
    if isinstance(exp, Sweep):
        sums = all(len(r.neutral) == 1 and _is_addition(r.op) and _is_zero(r.neutral[0]) for r in exp.reduces)
        number = len(exp.reduces)
        if exp.scans or not number or not sums or number != len(exp.lam.body.results):
            return None
        return exp.lam.params, exp.lam.body, [None] * number
    if not exp.params or exp.hints.wish is not None or not all(_is_number(p.type) for p in exp.params):
        return None
    starts: list[tuple[Var, Atom] | None] = []
    for p, init, r in zip(exp.params, exp.inits, exp.body.results, strict=True):
        if _added(r, p, exp.body) is p:
            return None
        starts.append((p, init))
    uses = [a for s in all_stms(exp.body) for a in free_in_exp(s.exp) if a in exp.params]
    return ((exp.index,), exp.body, starts) if len(uses) == len(exp.params) else None


def _added(result: Atom, param: Var, body: Body) -> Atom:
    """What is added to a parameter to make the result; the parameter, if that is not how it is made."""
    made = next((s.exp for s in body.stms if result in s.vars), None)
    match made:
        case Apply("add", (x, y)) if x is param and y is not param:
            return y
        case Apply("add", (x, y)) if y is param and x is not param:
            return x
    return param


def _only_drives(stm: Stm, loop: For) -> bool:
    """Do the sums only move the values of the loop that they hang on, linearly? Note [Digits of moments]"""
    if not all(_is_number(v.type) for v in stm.vars):
        return False
    moving, reached = set(free_in_exp(stm.exp)), set(stm.vars)
    forms = Forms(Emit(Builder()), [*stm.vars, *(p for p in loop.params if _is_number(p.type))])
    for s in loop.body.stms:
        if s is stm:
            continue
        forms.take(s)
        if any(v in reached for v in free_in_exp(s.exp)):
            reached.update(s.vars)
            if not s.vars or any(v in forms.lost for v in s.vars):
                return False
    for p, r in zip(loop.params, loop.body.results, strict=True):
        form = forms.of(r) or {}
        if any(v in form for v in stm.vars) and not (p in moving and p in form):
            return False
    return True


def _is_addition(op: Lambda) -> bool:
    match op:
        case Lambda((x, y), Body((Stm((t,), Apply("add", args)),), (r,))):
            return r is t and set(args) == {x, y}
    return False


def _is_number(type: Type) -> bool:
    return type.is_scalar and type.dtype in FLOATS


def _is_zero(a: Atom) -> bool:
    return isinstance(a, Const) and a.value == 0


def _may_move(s: Stm) -> bool:
    """Rows, and elements that are known to be there."""
    if isinstance(s.exp, Index):
        return all(isinstance(a, At) and not a.check for a in s.exp.axes)
    return isinstance(s.exp, Apply)
