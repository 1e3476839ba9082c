"""What stays true of the integers that a loop carries.

Takes a loop and a way to go through its body under assumptions; gives the last such way, and the assumptions that were
proved. Relies on `affine` for proofs and on `numbers` for the forms of variables.

Note [Invariants]
What holds for carried integers is guessed, then checked. Guesses: a parameter stays above, or below, its initial
value; a counter that goes up by at most c is at most its initial value + c*i; what the test of a `while` says, give or
take one; the bounds of the next value. Those that hold at the start are assumed, the body is gone through, and those
that are not proved for the next values are dropped. That is repeated until all that was assumed is proved, so the
last way through the body is right, and only that one is kept.

A loop inside of it is gone through each time. It begins with what it has found before, and leaves out what it could not prove:
since then fewer things are assumed around it, unless a loop around it has made new guesses (`new_guesses`). So the times that
the loops of a nest are gone through add up, and do not multiply.
"""

from __future__ import annotations

from collections.abc import Callable, Iterable, Mapping, Sequence
from dataclasses import dataclass, field

from tapeless.ir.core import Apply, For, Stm, While
from tapeless.ir.types import Atom, DType, Var
from tapeless.passes.bounds.numbers import Numbers
from tapeless.symbolic.affine import ZERO, Facts, Form, is_small
from tapeless.symbolic.polynomials import symbol

ROUNDS = 4  # tries at the invariants of one loop
GUESSES = 8  # made out of the next value of one parameter


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


@dataclass
class Past:
    """What is known of a loop that has been gone through: its invariants, and what was tried."""

    kept: list[Form]
    tried: set[Form]
    new_guesses: int  # that had been made anywhere


Way = Callable[[Sequence[Form]], Round]  # through a loop, given what is assumed


class Invariants:
    """The search, over the forms of one run."""

    def __init__(self, numbers: Numbers) -> None:
        self.numbers = numbers
        self.past: dict[int, Past] = {}  # by the identity of loops, which stay as they are in one run
        self.new_guesses = 0

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
        go: Way,
        loop: For | While,
        counters: Sequence[Counter],
        hints: Sequence[Form],
        index: Form | None,
        facts: Facts,
    ) -> tuple[Round, list[Form]]:
        """Note [Invariants]. The last round, and what holds whenever a step begins and after the last one."""
        if not counters:
            return go([]), []
        before = {c.symbol: self.numbers.form(c.init) for c in counters}
        if index is not None:
            before[only(index)] = ZERO

        def starts(guesses: Iterable[Form]) -> list[Form]:
            return [g for g in dict.fromkeys(guesses) if g.terms and is_small(g) and facts.prove(g.replace(before))]

        past = self.past.get(id(loop))
        guesses = [] if past is None else list(past.kept)
        guesses += [h for h in hints if self.numbers.available(h.replace(before), facts)]
        for c in counters:
            guesses += self.guesses(c, index, facts)
        futile = set() if past is None or past.new_guesses < self.new_guesses else past.tried.difference(past.kept)
        invariants = [g for g in starts(guesses) if g not in futile]
        tried = futile.union(invariants)
        for attempt in range(ROUNDS):
            last = go(invariants)
            after = self.results(loop.params, loop.body.results)
            if index is not None:
                after[only(index)] = index.shifted(1)
            kept = [g for g in invariants if last.end.prove(g.replace(after))]
            more: list[Form] = []
            if attempt == 0:
                guesses = [g for c in counters for g in self.more_guesses(c, after, index, last.end, facts)]
                more = [g for g in starts(guesses) if g not in tried]
            if len(kept) == len(invariants) and not more:
                self.past[id(loop)] = Past(kept, tried, self.new_guesses)
                return last, kept
            self.new_guesses += bool(more)
            tried.update(more)
            invariants = kept + more
        self.past[id(loop)] = Past([], tried, self.new_guesses)
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
        return {only(self.numbers.form(p)): self.numbers.form(r) for p, r in pairs if is_integer(p)}


def is_integer(v: Var) -> bool:
    return v.type.dtype is DType.i64 and v.type.is_scalar


def only(form: Form) -> int:
    s = form.single
    assert s is not None, f"{form} is not a symbol"
    return s
