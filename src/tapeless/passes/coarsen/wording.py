"""Closed forms for reports, as formulae that are printed as text and in LaTeX."""

from __future__ import annotations

from collections.abc import Mapping, Sequence

from tapeless.ir.core import Apply, Stm
from tapeless.ir.types import Atom, Const, Var
from tapeless.symbolic.formulas.expressions import (
    Expression,
    add,
    call,
    constant,
    multiply,
    number,
    power,
    symbol,
    total,
)
from tapeless.symbolic.formulas.reading import RULES

DEEP = 4  # rows in each other that a reader follows
COUNTER = "i"


class Words:
    """`made` are the statements to look through; all other variables are named."""

    def __init__(self, made: Sequence[Stm]) -> None:
        self.defs: Mapping[Var, Apply] = {s.vars[0]: s.exp for s in made if isinstance(s.exp, Apply)}
        self.names: dict[Var, str] = {}

    def name(self, v: Var) -> str:
        """No two variables have one name, and none that of the counter."""
        if v not in self.names:
            taken = {COUNTER, *self.names.values()}
            name, k = v.name, 0
            while name in taken:
                k += 1
                name = f"{v.name}_{k}"
            self.names[v] = name
        return self.names[v]

    def of(self, a: Atom | float, depth: int = DEEP) -> Expression:
        if isinstance(a, Const) and a.value and not 1e-6 < abs(a.value) < 1e15:
            return symbol(f"{a.value.real:.6g}")
        if isinstance(a, Const):
            return constant(a.value)
        if not isinstance(a, Var):
            return number(a)
        exp = self.defs.get(a)
        if exp is None:
            return symbol(self.name(a))
        if not depth:
            return symbol("...")
        args = [self.of(x, depth - 1) for x in exp.args]
        if exp.op == "convert":
            return args[0]
        return RULES[exp.op](*args) if exp.op in RULES else call(exp.op, *args)

    def sum_of(self, start: Expression, trips: Expression, step: Atom | None, slope: Expression | None) -> Expression:
        """start + step and slope times the number of the trip, in each of them."""
        counter = symbol(COUNTER)
        parts = [] if step is None else [multiply(trips, self.of(step))]
        parts += [] if slope is None else [total(counter, trips, multiply(slope, counter))]
        return add(start, *parts)

    def powers_of(self, factor: Expression, start: Expression, trips: Expression, step: Atom | None) -> Expression:
        """What becomes of start if each trip multiplies by the factor and adds the step."""
        power_of = multiply(power(factor, trips), start)
        if step is None:
            return power_of
        counter = symbol(COUNTER)
        return add(power_of, multiply(self.of(step), total(counter, trips, power(factor, counter))))
