"""Forms over i64 values, what is known about them, and a small prover of inequalities.

Takes scalar statements (`Numbers.define`) and conditions; gives `Form`s and a `Facts` environment whose `prove(form)`
answers yes only if the form is never negative. Relies on Core's types and on the meaning of the rows of the ops table.

Note [Machine integers]
Forms are over the integers, Core's i64 wraps. A variable therefore has up to two forms. `exact` equals its value: a sum
that could leave 64 bits is not expanded but becomes a symbol of its own, and only exact forms make facts. `modular` is
always expanded, so it equals the value modulo 2**64; if it is proved to lie in 0 .. n-1, both bounds by this same form,
the value does too, however often the way there has wrapped. Whether a sum can leave 64 bits is decided with intervals
of numbers. For them, no dimension of an array and no number of its elements is over 2**60: binding of arguments and
allocation refuse more.

Note [Proving]
To prove f >= 0, take the newest symbol s of f; where its coefficient is negative replace it by an upper bound, else
by a lower bound, and go on with the rest. Bounds have the form k*s <= F. The goal is then multiplied by k, and since f
is an integer, k*f + (k - 1) >= 0 is enough. A symbol known to be one of several forms (`select`, `min`, `max`, results
of an `if`) may also be replaced by each of them in turn, under its condition. Depth and number of steps are limited.
"""

from __future__ import annotations

from collections.abc import Iterator
from math import gcd
from typing import TypeAlias

from tapeless.ir.types import LARGEST_SIZE
from tapeless.symbolic.polynomials import Polynomial, number, symbol

Monomial = tuple[int, ...]  # numbers of symbols, ascending; older symbols have smaller numbers

LEAST, GREATEST = -(2**63), 2**63 - 1
LARGEST = LARGEST_SIZE  # Note [Machine integers]
DEGREE, TERMS = 3, 10  # of a form; beyond that a variable stays a symbol
DEPTH, STEPS = 9, 100  # of a proof
BOUNDS = 12  # tried for one symbol in one direction
KNOWN = 6  # kept of them in one scope


Form: TypeAlias = Polynomial[int]


def is_small(form: Form) -> bool:
    return len(form.terms) <= TERMS and all(len(m) <= DEGREE for m in form.terms)


ZERO: Form = number(0)

Bound = tuple[int, Form]  # (k, F), k > 0: k*m <= F or k*m >= F
Case = tuple[Form, tuple[Form, ...]]  # a form that a symbol may be, and what is >= 0 when it is


def tightened(form: Form) -> Form:
    """An equivalent of form >= 0 on integers: the coefficients have no common divisor."""
    divisor = gcd(*form.terms.values())  # 0 if there are none
    if divisor <= 1:
        return form
    return Polynomial({m: a // divisor for m, a in form.terms.items()}, form.const // divisor)


class Facts:
    """What is known in one scope, on top of what is known around it: nothing is learned there while this one is in use."""

    __slots__ = ("cases", "failed", "hidden", "high", "known", "level", "low", "lower", "parent", "proved", "upper")

    def __init__(self, parent: Facts | None = None, hidden: bool = False) -> None:
        self.parent = parent
        self.level: int = parent.level + 1 if parent else 0
        self.hidden = hidden  # its variables are not in scope in scopes below: the test of a `while`
        self.lower: dict[Monomial, list[Bound]] = {}
        self.upper: dict[Monomial, list[Bound]] = {}
        # What is asked for all the time, of all scopes around too.
        self.low: dict[Monomial, int] = parent.low.copy() if parent else {}
        self.high: dict[Monomial, int] = parent.high.copy() if parent else {}
        self.cases: dict[int, tuple[Case, ...]] = parent.cases.copy() if parent else {}
        self.proved: set[Form] = set()
        self.failed: dict[Form, int] = {}  # with how many facts were known then
        self.known: int = parent.known if parent else 0

    # -- intervals

    def low_of(self, m: Monomial) -> int:
        found = self.low.get(m)
        if len(m) == 1:
            return LEAST if found is None else found
        product = self._product(m)[0]  # may be out of the range of 64 bits
        return product if found is None else max(product, found)

    def high_of(self, m: Monomial) -> int:
        found = self.high.get(m)
        if len(m) == 1:
            return GREATEST if found is None else found
        product = self._product(m)[1]
        return product if found is None else min(product, found)

    def _product(self, m: Monomial) -> tuple[int, int]:
        low = high = 1
        for s in m:
            a, b = self.low.get((s,), LEAST), self.high.get((s,), GREATEST)
            corners = (low * a, low * b, high * a, high * b)
            low, high = min(corners), max(corners)
        if len(m) == 2 and m[0] == m[1]:
            low = max(low, 0)
        return low, high

    def minimum(self, form: Form) -> int:
        """A number that the form is never below."""
        total = form.const
        for m, a in form.terms.items():
            total += a * (self.low_of(m) if a > 0 else self.high_of(m))
        return total

    def maximum(self, form: Form) -> int:
        total = form.const
        for m, a in form.terms.items():
            total += a * (self.high_of(m) if a > 0 else self.low_of(m))
        return total

    def fits(self, form: Form) -> bool:
        """Never leaves 64 bits."""
        return self.minimum(form) >= LEAST and self.maximum(form) <= GREATEST

    def clamp(self, s: int, low: int, high: int) -> None:
        m = (s,)
        self.low[m] = max(low, self.low_of(m))
        self.high[m] = min(high, self.high_of(m))

    # -- learning

    def assume(self, form: Form) -> None:
        """From here on form >= 0."""
        if not form.terms or len(form.terms) > TERMS:
            return
        form = tightened(form)
        self._note(form)
        for m in form.terms:
            if len(m) == 1 and (cases := self.cases_of(m[0])):
                self._narrow(m[0], cases, form)

    def equate(self, a: Form, b: Form) -> None:
        self.assume(a.plus(b, -1))
        self.assume(b.plus(a, -1))

    def _note(self, form: Form) -> None:
        """The bound on each monomial that form >= 0 means."""
        self.known += 1
        top = self.maximum(form)
        for m, a in form.terms.items():
            if a > 0:
                others = top - a * self.high_of(m)
                self.low[m] = max(self.low_of(m), -(others // a))
            else:
                others = top - a * self.low_of(m)
                self.high[m] = min(self.high_of(m), others // -a)
            if len(form.terms) > 1:  # else the number says it all
                sign = -1 if a > 0 else 1
                rest = Polynomial({n: b * sign for n, b in form.terms.items() if n != m}, form.const * sign)
                bounds = self.lower if a > 0 else self.upper
                known = bounds.setdefault(m, [])
                if len(known) == KNOWN:
                    del known[KNOWN // 2]  # the first ones come from definitions, the last ones from near by
                known.append((abs(a), rest))

    def _narrow(self, s: int, cases: tuple[Case, ...], form: Form) -> None:
        """If form >= 0 leaves one of the cases of s, s is that."""
        left = [case for case in cases if self.maximum(form.replace({s: case[0]})) >= 0]
        if len(left) == 1:
            value, conditions = left[0]
            self.cases[s] = ()
            for fact in (symbol(s).plus(value, -1), value.plus(symbol(s), -1), *conditions):
                self.assume(fact)

    # -- asking

    def bounds(self, m: Monomial, upper: bool) -> Iterator[Bound]:
        """Near ones first, a number last."""
        left = BOUNDS
        facts: Facts | None = self
        while facts is not None and left:
            known = (facts.upper if upper else facts.lower).get(m)
            if known:
                yield from known[: -left - 1 : -1]
                left -= min(left, len(known))
            facts = facts.parent
        limit = self.high_of(m) if upper else self.low_of(m)
        if limit != (GREATEST if upper else LEAST):
            yield 1, number(limit)

    def cases_of(self, s: int) -> tuple[Case, ...]:
        return self.cases.get(s, ())

    def prove(self, form: Form, steps: int = STEPS) -> bool:
        """Is form >= 0 known? Note [Proving]. False means nothing."""
        if self.minimum(form) >= 0 or form in self.proved:
            return True
        if self.failed.get(form) == self.known:
            return False
        if Proof(steps).holds(self, form, DEPTH, set()):
            self.proved.add(form)
            return True
        if steps == STEPS:
            self.failed[form] = self.known
        return False

    def knows(self, facts: Facts) -> bool:
        """Is this scope that one or inside it?"""
        here: Facts | None = self
        while here is not None and here.level > facts.level:
            here = here.parent
        return here is facts


class Proof:
    """One search, with a number of steps to spend."""

    def __init__(self, steps: int) -> None:
        self.steps = steps

    def holds(self, facts: Facts, goal: Form, depth: int, seen: set[object]) -> bool:
        if facts.minimum(goal) >= 0:
            return True
        self.steps -= 1
        if not depth or self.steps < 0 or not goal.terms or len(goal.terms) > TERMS:
            return False
        key = goal.key
        if key in seen or facts.maximum(goal) < 0:
            return False
        seen.add(key)
        m = max(goal.terms, key=_from_the_end)  # the newest symbol is in it
        enough = [tightened(g) for g in _replacements(facts, goal, m)]
        if any(facts.minimum(g) >= 0 for g in enough) or any(self.holds(facts, g, depth - 1, seen) for g in enough):
            return True
        cases = facts.cases_of(m[-1])
        return bool(cases) and all(self.holds_in(facts, goal, m[-1], case, depth - 1) for case in cases)

    def holds_in(self, facts: Facts, goal: Form, s: int, case: Case, depth: int) -> bool:
        value, conditions = case
        inside = Facts(facts)
        inside.cases[s] = ()
        for condition in conditions:
            if condition.terms and len(condition.terms) <= TERMS:
                inside._note(tightened(condition))
        return self.holds(inside, goal.replace({s: value}), depth, set())


def _from_the_end(m: Monomial) -> Monomial:
    return m[::-1]


def _replacements(facts: Facts, goal: Form, m: Monomial) -> Iterator[Form]:
    """Goals that are enough, with a bound in the place of the monomial."""
    a = goal.terms[m]
    for k, bound in facts.bounds(m, a < 0):
        yield _substitute(goal, m, a, k, bound)
    if len(m) > 1:
        for at in range(len(m) - 1, -1, -1):
            rest = m[:at] + m[at + 1 :]
            if all(facts.low_of((s,)) >= 0 for s in rest):
                for k, bound in facts.bounds((m[at],), a < 0):
                    yield _substitute(goal, m, a, k, bound.times(Polynomial({rest: 1}, 0)))


def _substitute(goal: Form, m: Monomial, a: int, k: int, bound: Form) -> Form:
    """The goal that is enough when a*m is replaced by means of k*m <= bound (a < 0) or k*m >= bound (a > 0)."""
    if k == 1:
        terms = goal.terms.copy()
        del terms[m]
        return Polynomial(terms, goal.const).plus(bound, a)
    scale = k // gcd(k, a)
    goal = goal.plus(Polynomial({m: a}, 0), -1).scaled(scale).plus(bound, a * scale // k)
    return goal.shifted(scale - 1)
