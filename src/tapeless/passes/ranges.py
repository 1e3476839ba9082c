"""Drops tests that cannot fail, and moves index tests of loops in front of them.

Takes a verified function, gives one with fewer `wrap` and `check` flags on its axes and fewer `check` statements; what
intervals of numbers say of a comparison becomes a constant, for `simplify` to go on with. Relies on `passes/affine.py`
for what is known about integers at each point. With `unsafe` every test of an index goes, proved or not.

Note [Wrapping]
`wrap` goes when the index is never negative, `check` when it is in -n .. n-1 with `wrap` and in 0 .. n-1 without. An
index that is always negative becomes n + index. Where `wrap` goes and `check` stays, an index that became negative by
leaving 64 bits raises IndexError, as Python's big one would.

Note [Invariants]
What holds for carried integers is guessed, then checked. Guesses: a parameter stays above, or below, its initial
value; a counter that goes up by at most c is at most its initial value + c*i; what the test of a `while` says, give or
take one; the bounds of the next value. Those that hold at the start are assumed, the body is gone through, and those
that are not proved for the next values are dropped. That is repeated until all that was assumed is proved, so the
last way through the body is right, and only that one is kept.

Note [Hoisting]
A test of index c*i + r in each step of a loop over i, with c, r and the size n from outside the loop, becomes one test
before it: is the bound within the number of steps that stay inside, (n - 1 - r) // c + 1 for c > 0? Put this way,
nothing in it leaves 64 bits. The access must stand directly in the body: not in a branch, nor in a `while`. It is
declined where the index could be negative and wrap, since the program may mean that. The error names the index that
fails first. It may come a little earlier than in Python: before the effects of the steps that would still have been
right, and before another error in them.
"""

from __future__ import annotations

from collections.abc import Callable, Iterable, Mapping, Sequence
from dataclasses import dataclass, field, replace
from itertools import combinations

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
from tapeless.ir.span import Span
from tapeless.ir.types import I64, Atom, Const, Dim, DType, Var, dim_atom, i64
from tapeless.ir.walk import regions
from tapeless.passes.affine import GREATEST, LARGEST, ZERO, Facts, Form, number, symbol
from tapeless.passes.hoisted_tests import Group, Loop, Tests
from tapeless.passes.numbers import COMPARISONS, Numbers

ROUNDS = 4  # tries at the invariants of one loop
PATIENCE = 8  # how often, on average, a statement is gone through for the sake of invariants
GUESSES = 8  # made out of the next value of one parameter


def eliminate_checks(function: Function, unsafe: bool = False) -> Function:
    """The same function with fewer flags; with `unsafe` no `check` is left."""
    return replace(function, body=Ranges(unsafe).function(function))


@dataclass
class Counter:
    """A carried integer: its initial value, and what each iteration adds to it if that is always the same."""

    param: Var
    symbol: int
    init: Atom
    step: Form | None


@dataclass
class Round:
    """One way through a loop: its new form, the tests before it, the scope at its end."""

    exp: For | While
    end: Facts
    tests: list[Stm] = field(default_factory=list)


class Ranges:
    """One run. A body is gone through in order; `facts` is what holds at the statement at hand."""

    def __init__(self, unsafe: bool) -> None:
        self.unsafe = unsafe
        self.numbers = Numbers()
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
            sizes = [self.numbers.form(d) for d in v.type.shape if isinstance(d, Var)]
            for size in sizes:
                if facts.minimum(size) < 0:
                    facts.assume(size)
                if facts.maximum(size) > LARGEST:
                    facts.assume(number(LARGEST).plus(size, -1))
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
                if stm.exp.op in COMPARISONS and (truth := self.numbers.decided(stm.vars[0], facts, 0)) is not None:
                    stm = Stm(stm.vars, Apply("identity", (Const(truth, DType.bool),)), stm.span)
                out.append(stm)
            elif isinstance(stm.exp, Check) and self.numbers.decided(stm.exp.cond, facts):
                pass  # never fails
            else:
                exp = self.expression(stm, facts, out, loop)
                out.append(stm if exp is stm.exp else Stm(stm.vars, exp, stm.span))
        if len(out) == len(body.stms) and all(map(_same, out, body.stms)):
            return body
        return Body(tuple(out), body.results)

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
                    self.position(axis, array.type.shape[k], k, stm.span, facts, out, loop)
                    if isinstance(axis, At) and (axis.wrap or axis.check)
                    else axis
                    for k, axis in enumerate(axes)
                )
                exp = _with_axes(exp, new_axes)
            case Check(cond):
                for form in self.numbers.facts_of(cond, True, facts):
                    facts.assume(form)
            case Sweep(width, arrays, lam, reduces, scans):
                lam = self.elements(width, arrays, lam, facts, out)
                exp = Sweep(width, arrays, lam, self.operators(reduces, facts), self.operators(scans, facts))
            case Hist(op, _, width, arrays, lam):
                lam = self.elements(width, arrays, lam, facts, out)
                exp = replace(exp, op=self.operators((op,), facts)[0], lam=lam)
            case Scatter(_, width, arrays, lam):
                exp = replace(exp, lam=self.elements(width, arrays, lam, facts, out))
            case WithAcc(_, lam):
                exp = replace(exp, lam=self.lam(lam, facts, loop))
            case _:
                pass  # neither regions nor tests
        self.bind(stm.vars, facts)
        return exp

    def operators(self, many: Sequence[Reduction], facts: Facts) -> tuple[Reduction, ...]:
        return tuple(Reduction(self.lam(r.op, facts), r.neutral, r.commutative) for r in many)

    def elements(self, width: Dim, arrays: Sequence[Var], lam: Lambda, facts: Facts, out: list[Stm]) -> Lambda:
        """The lambda of a sweep, a histogram or a scatter: its first parameter counts to the width."""
        inside = Facts(facts)
        self.bind(lam.params, inside)
        for array in arrays:
            if array.type.shape[0] is not width:
                inside.equate(self.numbers.form(array.type.shape[0]), self.numbers.form(width))
        loop = self.count_to(lam.params[0], dim_atom(width), inside, facts)
        body = self.body(lam.body, inside, loop)
        out.extend(self.tests(loop))
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
        counters = self.counters(exp, facts)
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
                    if line.is_small:
                        self.numbers.modular[c.param] = line
            body = self.body(exp.body, inside, loop)
            return Round(exp if body is exp.body else replace(exp, body=body), inside, self.tests(loop))

        last, invariants = self.induct(go, exp, counters, [], i, facts)
        out.extend(last.tests)
        self.bind(stm.vars, facts)
        values = self.results(exp.params, stm.vars)
        bound = self.numbers.form(exp.bound)
        if facts.prove(bound):
            values[_only(i)] = bound
        self.keep(invariants, values, facts)
        return last.exp

    def while_loop(self, exp: While, stm: Stm, facts: Facts) -> Exp:
        counters = self.counters(exp, facts)

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
        self.keep([*invariants, *over], self.results(exp.params, stm.vars), facts)
        return last.exp

    def counters(self, loop: For | While, facts: Facts) -> list[Counter]:
        found = [(p, a, r) for p, a, r in zip(loop.params, loop.inits, loop.body.results, strict=True) if is_integer(p)]
        if not found:
            return []
        made: dict[Atom, Apply] = {s.vars[0]: s.exp for s in loop.body.stms if isinstance(s.exp, Apply)}
        inner: set[Atom] = {*loop.params, *(v for s in loop.body.stms for v in s.vars)}
        if isinstance(loop, For):
            inner.add(loop.index)

        def step(p: Var, result: Atom) -> Form | None:
            match made.get(result):
                case _ if result is p:
                    return ZERO
                case Apply("add", (a, b)) if a is p and b not in inner:
                    return self.numbers.modular_form(b)
                case Apply("add", (a, b)) if b is p and a not in inner:
                    return self.numbers.modular_form(a)
                case Apply("sub", (a, b)) if a is p and b not in inner:
                    return self.numbers.modular_form(b).scaled(-1)
            return None

        return [Counter(p, self.numbers.symbol(p, facts), a, step(p, result)) for p, a, result in found]

    def induct(
        self,
        go: Callable[[Sequence[Form]], Round],
        loop: For | While,
        counters: Sequence[Counter],
        hints: Sequence[Form],
        index: Form | None,
        facts: Facts,
    ) -> tuple[Round, list[Form]]:
        """Note [Invariants]. The last round, and what holds whenever a step begins and after the last one."""
        if not counters or self.work > self.patience:
            return go([]), []
        before = {c.symbol: self.numbers.form(c.init) for c in counters}
        if index is not None:
            before[_only(index)] = ZERO

        def starts(guesses: Iterable[Form]) -> list[Form]:
            return [g for g in dict.fromkeys(guesses) if g.terms and g.is_small and facts.prove(g.replace(before))]

        guesses = [h for h in hints if self.numbers.available(h.replace(before), facts)]
        for c in counters:
            guesses += self.guesses(c, index, facts)
        invariants = starts(guesses)
        for attempt in range(ROUNDS):
            last = go(invariants)
            after = self.results(loop.params, loop.body.results)
            if index is not None:
                after[_only(index)] = index.shifted(1)
            kept = [g for g in invariants if last.end.prove(g.replace(after))]
            more: list[Form] = []
            if attempt == 0:
                guesses = [g for c in counters for g in self.more_guesses(c, after, index, last.end, facts)]
                more = [g for g in starts(guesses) if g not in invariants]
            if len(kept) == len(invariants) and not more:
                return last, kept
            invariants = kept + more
        return go([]), []

    def guesses(self, c: Counter, index: Form | None, facts: Facts) -> list[Form]:
        here = symbol(c.symbol)
        above = here.plus(self.numbers.form(c.init), -1)
        below = above.scaled(-1)
        if c.step is None:
            return [here, above, below]
        ways = [way for way, by in ((above, c.step), (below, c.step.scaled(-1))) if facts.prove(by)]
        if index is None:
            return [here, *ways]
        exact = above.plus(c.step.times(index), -1)
        return [here, *ways, exact, exact.scaled(-1)]

    def more_guesses(
        self, c: Counter, after: Mapping[int, Form], index: Form | None, end: Facts, facts: Facts
    ) -> list[Form]:
        """From what the next value may be, or is bounded by."""
        if c.step is not None:
            return []
        here, init = symbol(c.symbol), self.numbers.form(c.init)
        near = [after[c.symbol]]
        for form in near:  # what is added to the list in the loop gets its turn
            s = form.single
            if s is not None and s != c.symbol and len(near) < GUESSES:
                near += [value for value, _ in end.cases_of(s)]
                near += [bound for upper in (True, False) for k, bound in end.bounds((s,), upper) if k == 1]
        found: list[Form] = []
        for form in near:
            by = form.plus(here, -1)
            if by.terms:
                if self.numbers.available(form, facts):
                    found += [by, by.scaled(-1)]
            elif index is not None and by.const:
                line = init.plus(index, by.const).plus(here, -1)
                found.append(line if by.const > 0 else line.scaled(-1))
        return found

    def keep(self, invariants: Iterable[Form], values: Mapping[int, Form], facts: Facts) -> None:
        """After a loop: what its results have kept of the invariants."""
        for form in invariants:
            after = form.replace(values)
            if self.numbers.available(after, facts):
                facts.assume(after)

    def results(self, params: Sequence[Var], results: Sequence[Atom]) -> dict[int, Form]:
        """The forms of results, by the symbols of the integer parameters that they belong to."""
        pairs = zip(params, results, strict=True)
        return {_only(self.numbers.form(p)): self.numbers.form(r) for p, r in pairs if is_integer(p)}

    # -- accesses

    def position(self, at: At, size: Dim, axis: int, span: Span, facts: Facts, out: list[Stm], loop: Loop | None) -> At:
        """Note [Wrapping]."""
        n = self.numbers.form(size)
        exact, modular = self.numbers.form(at.index), self.numbers.modular_form(at.index)
        below = True
        for form in (exact, modular) if at.check and modular != exact else (exact,):
            inside = not at.check or facts.prove(n.plus(form, -1).shifted(-1))
            if facts.prove(form):
                below = False
                if inside:
                    return At(at.index)
            elif inside and at.wrap and (not at.check or facts.prove(form.plus(n))):
                if facts.prove(form.scaled(-1).shifted(-1)):
                    return At(self.from_end(at.index, size, span, facts, out))
                return At(at.index, wrap=True)
        wrap = at.wrap and below
        if self.unsafe or not at.check:
            return At(at.index, wrap)
        hoisted = not wrap and loop is not None and self.hoist(loop, modular, size, axis, span, below, facts)
        facts.assume(exact.plus(n) if wrap else exact)  # the test has passed
        facts.assume(n.plus(exact, -1).shifted(-1))
        facts.assume(n.shifted(-1))
        return At(at.index) if hoisted else At(at.index, wrap, True)

    def from_end(self, index: Atom, size: Dim, span: Span, facts: Facts, out: list[Stm]) -> Atom:
        """size + index"""
        form = self.numbers.form(index)
        if isinstance(size, int) and not form.terms:
            return i64(size + form.const)
        add = Apply("add", (dim_atom(size), index))
        at = Var("at", I64)
        self.numbers.define(at, add, facts)
        out.append(Stm((at,), add, span))
        return at

    # -- hoisting

    def hoist(self, loop: Loop, index: Form, size: Dim, axis: int, span: Span, below: bool, facts: Facts) -> bool:
        """Asks for a test before the loop instead of one here. `below`: the index is not known to be >= 0."""
        n = self.numbers.form(size)
        parts = index.split(loop.index)
        if parts is None or not all(self.numbers.available(f, loop.outside) for f in (*parts, n)):
            return False
        factor, start = parts
        if factor.terms and not (loop.outside.fits(factor) and loop.outside.prove(factor.shifted(-1))):
            return False  # its sign is not known
        # A start that may have left 64 bits is tested by itself, and at both ends whatever is known of the index.
        fits = loop.outside.fits(start)
        key = (size, axis, factor, start.shifted(-start.const), None if fits else start.const)
        if key not in loop.groups:
            loop.groups[key] = Group(size, axis, factor, start.shifted(-start.const), span, start.const)
        group = loop.groups[key]
        group.high = max(group.high, start.const)
        tested = not fits or (not facts.prove(start) if group.rises else below)
        if tested:
            group.low = start.const if group.low is None else min(group.low, start.const)
        if fits:
            last = start.plus(factor.times(self.numbers.form(loop.bound).shifted(-1)))
            if tested:
                facts.assume(start if group.rises else last)
            facts.assume(n.plus(last if group.rises else start, -1).shifted(-1))
        return True

    def tests(self, loop: Loop) -> list[Stm]:
        return [stm for group in loop.groups.values() for stm in Tests(self.numbers, loop, group).stms()]


def is_integer(v: Var) -> bool:
    return v.type.dtype is DType.i64 and v.type.is_scalar


def count(body: Body) -> int:
    """How many statements there are, those of inner regions included."""
    inner = (s.exp for s in body.stms if not isinstance(s.exp, Apply | Index | Update))
    return len(body.stms) + sum(count(r.body) for exp in inner for r in regions(exp))


def _same(a: object, b: object) -> bool:
    return a is b


def _only(form: Form) -> int:
    s = form.single
    assert s is not None, f"{form} is not a symbol"
    return s


def _with_axes(exp: Index | Update | UpdateAcc, axes: tuple[Axis, ...]) -> Index | Update | UpdateAcc:
    return exp if all(map(_same, axes, exp.axes)) else replace(exp, axes=axes)
