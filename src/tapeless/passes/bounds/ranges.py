"""Drops tests that cannot fail, and moves index tests of loops in front of them.

Takes a verified function, gives one with fewer `wrap` and `check` flags on its axes and fewer `check` statements; what
intervals of numbers say of a comparison becomes a constant, an extremum whose winner is known becomes that one, for
`simplify` to go on with. Relies on `symbolic/affine.py`
for what is known about integers at each point. With `unsafe` every test of an index goes, proved or not.
"""

from __future__ import annotations

from collections.abc import Iterable, Sequence
from dataclasses import replace
from itertools import combinations

from tapeless.ir.contents import TESTS, Kind
from tapeless.ir.core import (
    Apply,
    At,
    Axis,
    Body,
    Check,
    Exp,
    For,
    Function,
    Hist,
    If,
    Index,
    Lambda,
    Reduction,
    Scatter,
    Stm,
    Sweep,
    Update,
    UpdateAcc,
    While,
    WithAcc,
)
from tapeless.ir.operands import regions
from tapeless.ir.types import Atom, Const, Dim, DType, Var, dim_atom
from tapeless.ops.table import INEXACT, TABLE
from tapeless.passes.bounds.hoisted_tests import Loop
from tapeless.passes.bounds.index_tests import IndexTests
from tapeless.passes.bounds.invariants import Counter, Invariants, Round, Way, is_integer, only
from tapeless.passes.bounds.numbers import Numbers, is_ordering
from tapeless.symbolic.affine import GREATEST, LARGEST, ZERO, Facts, Form, is_small
from tapeless.symbolic.polynomials import symbol

# Everything that is ever dropped or decided here.
DECIDED: frozenset[Kind] = frozenset(
    {Check, TESTS, *(name for name, row in TABLE.items() if is_ordering(name) or row.extremum)}
)
PATIENCE = 8  # how often, on average, a statement is gone through for the sake of invariants


def eliminate_checks(function: Function, unsafe: bool = False) -> Function:
    """The same function with fewer flags; with `unsafe` no `check` is left."""
    body = Ranges(unsafe).function(function)
    return function if body is function.body else replace(function, body=body)


class Ranges:
    """One run. A body is gone through in order; `facts` is what holds at the statement at hand."""

    def __init__(self, unsafe: bool) -> None:
        self.numbers = Numbers()
        self.invariants = Invariants(self.numbers)
        self.index_tests = IndexTests(self.numbers, unsafe)
        self.work = 0
        self.patience = 0

    def function(self, f: Function) -> Body:
        facts = Facts()
        for size in f.sizes:
            facts.clamp(self.numbers.symbol(size, facts), 0, LARGEST)
        self.bind(f.params, facts)
        self.patience = PATIENCE * (count(f.body) + 10)
        return self.body(f.body, facts)

    # -- statements

    def bind(self, vars: Sequence[Var], facts: Facts) -> None:
        """New variables, of which nothing but the type is known."""
        for v in vars:
            if is_integer(v):
                self.numbers.symbol(v, facts)
        self.learn_sizes(vars, facts)

    def learn_sizes(self, vars: Iterable[Var], facts: Facts) -> None:
        for v in vars:
            if not v.type.shape:
                continue
            sizes = [self.numbers.form(d) for d in v.type.shape if isinstance(d, Var)]
            for size in sizes:
                if facts.minimum(size) < 0:
                    facts.assume(size)
                if facts.maximum(size) > LARGEST:
                    facts.assume(size.scaled(-1).shifted(LARGEST))
            symbols = sorted(s for size in sizes if (s := size.single) is not None)
            for length in range(2, len(symbols) + 1):
                for m in combinations(symbols, length):
                    facts.high[m] = min(LARGEST, facts.high_of(m))

    def body(self, body: Body, facts: Facts, loop: Loop | None = None) -> Body:
        """`loop` is the loop of which this is the body."""
        out: list[Stm] = []
        self.work += len(body.stms)
        for stm in body.stms:
            if isinstance(stm.exp, Apply):
                self.numbers.define(stm.vars[0], stm.exp, facts)
                known = self.known(stm.vars[0], stm.exp, facts)
                out.append(stm if known is None else Stm(stm.vars, Apply("identity", (known,)), stm.span))
            elif isinstance(stm.exp, Check) and self.numbers.decided(stm.exp.cond, facts):
                pass  # never fails
            else:
                exp = self.expression(stm, facts, out, loop)
                out.append(stm if exp is stm.exp else Stm(stm.vars, exp, stm.span))
        if len(out) == len(body.stms) and all(map(_same, out, body.stms)):
            return body
        return Body(tuple(out), body.results)

    def known(self, var: Var, exp: Apply, facts: Facts) -> Atom | None:
        """The truth of a comparison, or the operand that is the extremum: a length is its maximum with 0."""
        if is_ordering(exp.op):
            truth = self.numbers.decided(var, facts, 0)
            return None if truth is None else Const(truth, DType.bool)
        if is_integer(var) and TABLE[exp.op].extremum:
            form = self.numbers.form(var)
            return next((a for a in exp.args if self.numbers.form(a) == form), None)
        return None

    def lam(self, lam: Lambda, facts: Facts, loop: Loop | None = None) -> Lambda:
        inside = Facts(facts)
        self.bind(lam.params, inside)
        body = self.body(lam.body, inside, loop)
        return lam if body is lam.body else Lambda(lam.params, body)

    def expression(self, stm: Stm, facts: Facts, out: list[Stm], loop: Loop | None) -> Exp:
        """The new expression; what must come before it goes to `out`, what is known after it to `facts`."""
        exp = stm.exp
        match exp:
            case For():
                return self.for_loop(exp, stm, facts, out)
            case While():
                return self.while_loop(exp, stm, facts)
            case If():
                return self.branches(exp, stm, facts)
            case Index(array, axes) | Update(array, axes) | UpdateAcc(array, axes):
                new_axes = tuple(
                    self.index_tests.position(axis, array.type.shape[k], k, stm.span, facts, out, loop)
                    if isinstance(axis, At) and (axis.wrap or axis.check)
                    else axis
                    for k, axis in enumerate(axes)
                )
                exp = _with_axes(exp, new_axes)
                if isinstance(exp, Update) and stm.vars[0].type == array.type:  # nothing new
                    return exp
            case Check(cond):
                for form in self.numbers.facts_of(cond, True, facts):
                    facts.assume(form)
            case Sweep(width, arrays, lam, reduces, scans):
                lam = self.elements(width, arrays, lam, facts, out)
                operators = tuple(self.operator(r, facts) for r in (*reduces, *scans))
                if lam is not exp.lam or not all(map(_same, operators, (*reduces, *scans))):
                    exp = Sweep(width, arrays, lam, operators[: len(reduces)], operators[len(reduces) :])
            case Hist(op, _, width, arrays, lam):
                lam, operator = self.elements(width, arrays, lam, facts, out), self.operator(op, facts)
                if lam is not exp.lam or operator is not op:
                    exp = replace(exp, op=operator, lam=lam)
            case Scatter(_, width, arrays, lam):
                lam = self.elements(width, arrays, lam, facts, out)
                exp = exp if lam is exp.lam else replace(exp, lam=lam)
            case WithAcc(_, lam):
                lam = self.lam(lam, facts, loop)
                exp = exp if lam is exp.lam else replace(exp, lam=lam)
            case _:
                pass  # neither regions nor tests
        self.bind(stm.vars, facts)
        return exp

    def operator(self, r: Reduction, facts: Facts) -> Reduction:
        op = r.op if _has_only_floats(r.op.body) else self.lam(r.op, facts)
        return r if op is r.op else Reduction(op, r.neutral, r.commutative)

    def elements(self, width: Dim, arrays: Sequence[Var], lam: Lambda, facts: Facts, out: list[Stm]) -> Lambda:
        """The lambda of a sweep, a histogram or a scatter: its first parameter counts to the width."""
        if _has_only_floats(lam.body):
            return lam
        inside = Facts(facts)
        self.bind(lam.params, inside)
        for array in arrays:
            if array.type.shape[0] is not width:
                inside.equate(self.numbers.form(array.type.shape[0]), self.numbers.form(width))
        loop = self.count_to(lam.params[0], dim_atom(width), inside, facts)
        body = self.body(lam.body, inside, loop)
        out.extend(self.index_tests.tests(loop))
        return lam if body is lam.body else Lambda(lam.params, body)

    def count_to(self, index: Var, bound: Atom, inside: Facts, outside: Facts) -> Loop:
        """0 <= index < bound, inside."""
        i = self.numbers.symbol(index, inside)
        inside.clamp(i, 0, GREATEST - 1)
        inside.assume(self.numbers.form(bound).plus(symbol(i), -1).shifted(-1))
        return Loop(i, bound, outside)

    def branches(self, exp: If, stm: Stm, facts: Facts) -> Exp:
        conditions = [tuple(self.numbers.facts_of(exp.cond, truth, facts)) for truth in (True, False)]
        scopes = [Facts(facts), Facts(facts)]
        bodies: list[Body] = []
        for body, scope, known in zip((exp.then, exp.orelse), scopes, conditions, strict=True):
            for form in known:
                scope.assume(form)
            bodies.append(self.body(body, scope))
        for v, *arms in zip(stm.vars, bodies[0].results, bodies[1].results, strict=True):
            if is_integer(v):
                self.join(v, arms, scopes, conditions, facts)
            elif v.type.is_scalar and v.type.dtype is DType.bool:
                self.numbers.conditions[v] = ("arms", (exp.cond, *arms))
        self.learn_sizes(stm.vars, facts)
        if bodies[0] is exp.then and bodies[1] is exp.orelse:
            return exp
        return If(exp.cond, bodies[0], bodies[1])

    def join(
        self,
        v: Var,
        arms: Sequence[Atom],
        scopes: Sequence[Facts],
        conditions: Sequence[tuple[Form, ...]],
        facts: Facts,
    ) -> None:
        """What is known about an integer that comes out of two branches."""
        ends = [(self.numbers.form(a), scope) for a, scope in zip(arms, scopes, strict=True)]
        if all(self.numbers.available(form, facts) for form, _ in ends):
            self.numbers.choose(v, (ends[0][0], conditions[0]), (ends[1][0], conditions[1]), facts)
        else:
            result = symbol(self.numbers.symbol(v, facts))
            for sign in (1, -1):  # bounds from below, from above
                for bound in {b: None for form, scope in ends for b in self.near(form, scope, facts, sign < 0)}:
                    if all(scope.prove(form.plus(bound, -1).scaled(sign)) for form, scope in ends):
                        facts.assume(result.plus(bound, -1).scaled(sign))
        if (s := self.numbers.form(v).single) is not None:
            low = min(scope.minimum(form) for form, scope in ends)
            facts.clamp(s, low, max(scope.maximum(form) for form, scope in ends))

    def near(self, form: Form, scope: Facts, facts: Facts, upper: bool) -> list[Form]:
        """Bounds of a form of an inner scope, in terms of an outer one."""
        found = [form, ZERO]
        if (s := form.single) is not None:
            found += [bound for k, bound in scope.bounds((s,), upper) if k == 1 and bound.terms]
        return [f for f in found if self.numbers.available(f, facts)]

    # -- loops

    def for_loop(self, exp: For, stm: Stm, facts: Facts, out: list[Stm]) -> Exp:
        counters = self.invariants.counters(exp, facts)
        i = symbol(self.numbers.symbol(exp.index, facts))

        def go(invariants: Sequence[Form]) -> Round:
            inside = Facts(facts)
            self.bind(exp.params, inside)
            loop = self.count_to(exp.index, exp.bound, inside, facts)
            for form in invariants:
                inside.assume(form)
            for c in counters:
                if c.step is not None:
                    line = self.numbers.modular_form(c.init).plus(c.step.times(i))
                    if is_small(line):
                        self.numbers.modular[c.param] = line
            body = self.body(exp.body, inside, loop)
            return Round(exp if body is exp.body else replace(exp, body=body), inside, self.index_tests.tests(loop))

        last, invariants = self.induct(go, exp, counters, [], i, facts)
        out.extend(last.tests)
        self.bind(stm.vars, facts)
        values = self.invariants.results(exp.params, stm.vars)
        bound = self.numbers.form(exp.bound)
        if facts.prove(bound):
            values[only(i)] = bound
        self.invariants.keep(invariants, values, facts)
        return last.exp

    def while_loop(self, exp: While, stm: Stm, facts: Facts) -> Exp:
        counters = self.invariants.counters(exp, facts)

        def begin(invariants: Sequence[Form]) -> tuple[Body, Facts, list[Form]]:
            """The test, its scope, and what holds where it does."""
            inside = Facts(facts)
            self.bind(exp.params, inside)
            for form in invariants:
                inside.assume(form)
            test = Facts(inside, hidden=True)
            cond = self.body(exp.cond, test)
            return cond, test, self.numbers.facts_of(cond.results[0], True, test)

        def go(invariants: Sequence[Form]) -> Round:
            cond, test, holds = begin(invariants)
            inside = Facts(test)
            for form in holds:
                inside.assume(form)
            body = self.body(exp.body, inside)
            new = exp if cond is exp.cond and body is exp.body else replace(exp, cond=cond, body=body)
            return Round(new, inside)

        hints = [form.shifted(1) for form in begin([])[2]] if counters else []
        last, invariants = self.induct(go, exp, counters, hints, None, facts)
        self.bind(stm.vars, facts)
        over = self.numbers.facts_of(exp.cond.results[0], False, facts)
        self.invariants.keep([*invariants, *over], self.invariants.results(exp.params, stm.vars), facts)
        return last.exp

    def induct(
        self,
        go: Way,
        loop: For | While,
        counters: Sequence[Counter],
        hints: Sequence[Form],
        i: Form | None,
        facts: Facts,
    ) -> tuple[Round, list[Form]]:
        """The last way through a loop, and its invariants: none any more once too much has been gone through."""
        if self.work > self.patience:
            return go([]), []
        return self.invariants.induct(go, loop, counters, hints, i, facts)


def count(body: Body) -> int:
    """How many statements there are, those of inner regions included."""
    inner = (s.exp for s in body.stms if not isinstance(s.exp, (Apply, Index, Update)))
    return len(body.stms) + sum(count(r.body) for exp in inner for r in regions(exp))


def _has_only_floats(body: Body) -> bool:
    """Whether there is nothing in it to learn from, or to test."""
    return all(isinstance(s.exp, Apply) and s.vars[0].type.dtype in INEXACT for s in body.stms)


def _same(a: object, b: object) -> bool:
    return a is b


def _with_axes(exp: Index | Update | UpdateAcc, axes: tuple[Axis, ...]) -> Index | Update | UpdateAcc:
    return exp if axes == exp.axes else replace(exp, axes=axes)
