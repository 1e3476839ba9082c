"""What is known about the integer variables of a program: their affine forms, bounds and the conditions that hold.

`Numbers.define` takes scalar statements, `Numbers.assume` conditions; both feed a `Facts` of `affine.py`, which proves.
Notes [Machine integers] and [Proving] are there.
"""

from __future__ import annotations

from collections.abc import Callable

from tapeless.ir.core import Apply
from tapeless.ir.types import Atom, Const, DType, Var
from tapeless.ops.table import TABLE
from tapeless.symbolic.affine import GREATEST, LEAST, STEPS, Case, Facts, Form, is_small
from tapeless.symbolic.polynomials import Polynomial, number, symbol


def is_ordering(op: str) -> bool:
    means = TABLE[op].comparison if op in TABLE else None
    return means is not None and means.order != 0


class Numbers:
    """The forms of the i64 variables and the meaning of the bool variables of one function."""

    def __init__(self) -> None:
        self.exact: dict[Var, Form] = {}  # Note [Machine integers]
        self.modular: dict[Var, Form] = {}  # where it is not the exact one
        self.conditions: dict[Var, tuple[str, tuple[Atom, ...]]] = {}
        self.vars: list[Var] = []  # by symbol
        self.homes: list[Facts] = []  # the scope in which that variable is bound
        self._symbols: dict[Var, int] = {}
        self._sums: dict[Form, int] = {}  # symbols of sums that may leave 64 bits

    # -- forms of operands

    def form(self, atom: Atom | int) -> Form:
        if isinstance(atom, Var):
            return self.exact[atom]
        return number(atom if isinstance(atom, int) else int(atom.value.real))

    def modular_form(self, atom: Atom | int) -> Form:
        return self.modular[atom] if isinstance(atom, Var) and atom in self.modular else self.form(atom)

    def symbol(self, var: Var, facts: Facts) -> int:
        """The variable as a symbol, bound in the scope of `facts`."""
        if var not in self._symbols:
            self._symbols[var] = self._new(var, facts)
        s = self._symbols[var]
        self.vars[s], self.homes[s] = var, facts
        self.exact[var] = symbol(s)
        self.modular.pop(var, None)
        return s

    def alias(self, var: Var, exact: Form) -> None:
        """The variable has the value of that form."""
        self.exact[var] = exact
        self.modular.pop(var, None)

    def _new(self, var: Var, facts: Facts) -> int:
        self.vars.append(var)
        self.homes.append(facts)
        return len(self.vars) - 1

    def available(self, form: Form, facts: Facts) -> bool:
        """Are all its symbols variables in scope there?"""
        for s in form.symbols:
            home = self.homes[s]
            if home is not facts and (home.hidden or not facts.knows(home)):
                return False
        return True

    # -- statements

    def define(self, var: Var, exp: Apply, facts: Facts) -> None:
        """Learns what a scalar statement computes."""
        if var.type.dtype is DType.i64:
            self._define_integer(var, exp.op, exp.args, facts)
        elif var.type.dtype is DType.bool:
            if exp.op == "select":
                self.conditions[var] = ("arms", exp.args)
            elif exp.op == "convert" and exp.args[0].type.dtype is DType.i64:
                self.conditions[var] = ("ne", (exp.args[0], Const(0, DType.i64)))
            elif exp.args[0].type.dtype in (DType.i64, DType.bool):
                self.conditions[var] = (exp.op, exp.args)

    def _define_integer(self, var: Var, op: str, args: tuple[Atom, ...], facts: Facts) -> None:
        if (ring := RING.get(op)) and (op != "shl" or self._shift(args) is not None):
            self._sum(var, ring([self.form(a) for a in args]), ring([self.modular_form(a) for a in args]), facts)
            return
        match op:
            case "select" if (truth := self.decided(args[0], facts, 0)) is not None:
                self.alias(var, self.form(args[1 if truth else 2]))
            case "select":
                self.choose(
                    var,
                    (self.form(args[1]), tuple(self.facts_of(args[0], True, facts))),
                    (self.form(args[2]), tuple(self.facts_of(args[0], False, facts))),
                    facts,
                )
            case "floordiv" | "shr":
                self._quotient(var, op, args, facts)
            case "mod":
                self._remainder(var, self.form(args[0]), self.form(args[1]), facts)
            case "abs":
                a = self.form(args[0])
                if facts.minimum(a) > LEAST:
                    self.choose(var, (a, (a,)), (a.scaled(-1), (a.scaled(-1),)), facts)
                    for side in (a, a.scaled(-1)):
                        facts.assume(self.form(var).plus(side, -1))
                else:
                    self.symbol(var, facts)
            case _ if extremum := TABLE[op].extremum:
                self._extremum(var, -1 if extremum.greatest else 1, self.form(args[0]), self.form(args[1]), facts)
            case _:
                s = self.symbol(var, facts)
                facts.clamp(s, *self._limits(op, args, facts))

    def _shift(self, args: tuple[Atom, ...]) -> int | None:
        """The number of places, if it is a constant that shifts."""
        places = self.form(args[1])
        return places.const if not places.terms and 0 <= places.const < 63 else None

    def _limits(self, op: str, args: tuple[Atom, ...], facts: Facts) -> tuple[int, int]:
        match op, args[0].type.dtype:
            case "convert", DType.bool:
                return 0, 1
            case "convert", source if source.is_int and source is not DType.u64:
                return source.lowest, source.highest
            case "sign", _:
                return -1, 1
            case "and", _:
                tops = [facts.maximum(f) for f in map(self.form, args) if facts.minimum(f) >= 0]
                return (0, min(tops)) if tops else (LEAST, GREATEST)
        return LEAST, GREATEST

    def _sum(self, var: Var, exact: Form, modular: Form, facts: Facts) -> None:
        if is_small(exact) and facts.fits(exact):
            self.exact[var] = exact
        else:
            if exact not in self._sums:
                self._sums[exact] = self._new(var, facts)
            s = self._sums[exact]
            if not facts.knows(self.homes[s]) or self.homes[s].hidden:
                self.vars[s], self.homes[s] = var, facts
            self.exact[var] = symbol(s)
        self.modular.pop(var, None)
        if modular != self.exact[var] and is_small(modular):
            self.modular[var] = modular

    def choose(self, var: Var, first: Case, second: Case, facts: Facts) -> None:
        """The variable is one of two forms."""
        if first[0] == second[0]:
            self.alias(var, first[0])
            return
        s = self.symbol(var, facts)
        facts.cases[s] = (first, second)
        ends = [(facts.minimum(form), facts.maximum(form)) for form, _ in (first, second)]
        facts.clamp(s, min(low for low, _ in ends), max(high for _, high in ends))

    def _extremum(self, var: Var, sign: int, a: Form, b: Form, facts: Facts) -> None:
        """The minimum for sign 1, the maximum for sign -1."""
        gap = b.plus(a, -1).scaled(sign)
        for better, difference in ((a, gap), (b, gap.scaled(-1))):
            if facts.prove(difference, 12):
                self.alias(var, better)
                return
        self.choose(var, (a, (gap,)), (b, (gap.scaled(-1),)), facts)
        for other in (a, b):
            facts.assume(other.plus(self.form(var), -1).scaled(sign))

    def _quotient(self, var: Var, op: str, args: tuple[Atom, ...], facts: Facts) -> None:
        a, divisor = self.form(args[0]), self.form(args[1])
        if op == "shr":
            places = self._shift(args)
            divisor = number(0 if places is None else 2**places)
        c = divisor.const
        if not divisor.terms and c > 0:
            if all(factor % c == 0 for factor in a.terms.values()):
                self.alias(var, Polynomial({m: factor // c for m, factor in a.terms.items()}, a.const // c))
                return
            s = symbol(self.symbol(var, facts))
            facts.assume(a.plus(s, -c))
            facts.assume(s.scaled(c).plus(a, -1).shifted(c - 1))
            return
        s = symbol(self.symbol(var, facts))
        if op == "floordiv" and divisor.terms and facts.prove(divisor) and facts.prove(a):  # x // 0 is 0
            facts.assume(s)
            facts.assume(a.plus(s, -1))

    def _remainder(self, var: Var, a: Form, divisor: Form, facts: Facts) -> None:
        positive = facts.prove(a)
        if positive and facts.prove(divisor.plus(a, -1).shifted(-1), 12):
            self.alias(var, a)
            return
        s = symbol(self.symbol(var, facts))
        if facts.prove(divisor):  # x % 0 is 0
            facts.assume(s)
            if facts.prove(divisor.shifted(-1)):
                facts.assume(divisor.plus(s, -1).shifted(-1))
            if positive:
                facts.assume(a.plus(s, -1))

    # -- conditions

    def facts_of(self, cond: Atom, truth: bool, facts: Facts, depth: int = 16) -> list[Form]:
        """Forms that are >= 0 where the condition is `truth`."""
        if not isinstance(cond, Var) or cond not in self.conditions or not depth:
            return []
        op, args = self.conditions[cond]

        def both(x: tuple[Atom, bool], y: tuple[Atom, bool]) -> list[Form]:
            return [f for c, t in (x, y) for f in self.facts_of(c, t, facts, depth - 1)]

        if args[0].type.dtype is DType.i64:
            return self._comparison(op, self.form(args[0]), self.form(args[1]), truth, facts)
        match op:
            case "identity":
                return self.facts_of(args[0], truth, facts, depth - 1)
            case "not":
                return self.facts_of(args[0], not truth, facts, depth - 1)
            case "and" | "or" if truth == (op == "and"):
                return both((args[0], truth), (args[1], truth))
            case "and" | "or":  # one of them is `truth`, unless the other is known not to be
                for one, other in (args, args[::-1]):
                    if self.decided(one, facts, 12) is (not truth):
                        return self.facts_of(other, truth, facts, depth - 1)
            case "arms":
                test, first, second = args
                if isinstance(second, Const) and bool(second.value) is not truth:
                    return both((test, True), (first, truth))
                if isinstance(first, Const) and bool(first.value) is not truth:
                    return both((test, False), (second, truth))
        return []

    def _comparison(self, op: str, a: Form, b: Form, truth: bool, facts: Facts) -> list[Form]:
        means = TABLE[op].comparison
        if not means:
            return []
        if means.order:
            form = a.scaled(means.order).plus(b, -means.order).shifted(0 if means.reflexive else -1)
            return [form if truth else form.scaled(-1).shifted(-1)]
        sides = [a.plus(b, -1), b.plus(a, -1)]
        if truth == (op == "eq"):
            return sides
        return [side.shifted(-1) for side in sides if facts.prove(side)]

    def decided(self, cond: Atom, facts: Facts, steps: int = STEPS) -> bool | None:
        """The value of a condition, if it is known; with 0 steps only what intervals of numbers say."""
        return self._decided(cond, facts, steps, {})

    def _decided(self, cond: Atom, facts: Facts, steps: int, known: dict[Var, bool | None]) -> bool | None:
        """`known`: of the conditions that this one is made of, each of which is looked at once."""
        if isinstance(cond, Const):
            return bool(cond.value)
        if cond not in known:
            known[cond] = self._found(cond, facts, steps, known)
        return known[cond]

    def _found(self, cond: Var, facts: Facts, steps: int, known: dict[Var, bool | None]) -> bool | None:
        op, args = self.conditions.get(cond, ("", ()))
        if is_ordering(op):
            for truth in (True, False):
                (form,) = self._comparison(op, self.form(args[0]), self.form(args[1]), truth, facts)
                if facts.prove(form, steps) if steps else facts.minimum(form) >= 0:
                    return truth
        elif op in ("eq", "ne") and args[0].type.dtype is DType.i64 and steps:
            sides = self._comparison("eq", self.form(args[0]), self.form(args[1]), True, facts)
            if all(facts.prove(side, steps) for side in sides):
                return op == "eq"
            if any(facts.prove(side.shifted(-1), steps) for side in sides):
                return op == "ne"
        match op:
            case "identity":
                return self._decided(args[0], facts, steps, known)
            case "not":
                value = self._decided(args[0], facts, steps, known)
                return None if value is None else not value
            case "and" | "or":
                values = [self._decided(a, facts, steps, known) for a in args]
                final = op == "or"  # one such value decides
                return final if final in values else None if None in values else values[0]
        return None


def _product(forms: list[Form]) -> Form:
    return forms[0].times(forms[1])


# What holds modulo 2**64 too.
RING: dict[str, Callable[[list[Form]], Form]] = {
    "add": lambda forms: forms[0].plus(forms[1]),
    "sub": lambda forms: forms[0].plus(forms[1], -1),
    "neg": lambda forms: forms[0].scaled(-1),
    "not": lambda forms: forms[0].scaled(-1).shifted(-1),
    "identity": lambda forms: forms[0],
    "mul": _product,
    "square": lambda forms: _product([forms[0], forms[0]]),
    "shl": lambda forms: forms[0].scaled(2 ** forms[1].const),
}
