"""Index tests that stand before a loop instead of in it: Note [Hoisting] in `index_tests`.

`Loop` collects what a body asks for, in groups of accesses to one axis; `Tests` writes the statements.
"""

from __future__ import annotations

from dataclasses import dataclass, field

from tapeless.ir.builder import Builder
from tapeless.ir.core import (
    Apply,
    Check,
    Stm,
)
from tapeless.ir.span import Span
from tapeless.ir.types import BOOL, I64, Atom, Dim, Type, dim_atom, i64
from tapeless.ops.table import TABLE
from tapeless.passes.bounds.numbers import Numbers
from tapeless.symbolic.affine import Facts, Form
from tapeless.symbolic.polynomials import number


@dataclass
class Group:
    """Accesses to an axis that differ by a constant: from factor*i + rest + low to factor*i + rest + high."""

    size: Dim
    axis: int
    factor: Form
    rest: Form
    span: Span
    high: int
    low: int | None = None  # None: nothing to test below

    @property
    def rises(self) -> bool:
        return bool(self.factor.terms) or self.factor.const >= 0


@dataclass
class Loop:
    """A loop in front of which tests may be put, with those asked for so far."""

    index: int
    bound: Atom
    outside: Facts
    groups: dict[object, Group] = field(default_factory=dict)


class Tests:
    """The statements that test one group before its loop. Note [Hoisting]."""

    def __init__(self, numbers: Numbers, loop: Loop, group: Group) -> None:
        self.numbers, self.loop, self.group = numbers, loop, group
        self.b = Builder(group.span)

    def stms(self) -> list[Stm]:
        g, n = self.group, dim_atom(self.group.size)
        high = self.value(g.rest.shifted(g.high))
        low = high if g.low == g.high else None if g.low is None else self.value(g.rest.shifted(g.low))
        if low is not None and g.rises:
            self.check(self.never_or(self.op("le", i64(0), low, BOOL)), low)
        if g.factor == number(1):
            self.check_unit_steps(g.rest.shifted(g.high), high, n)
        elif g.factor.terms or g.factor.const > 0:
            room = self.op("sub", n, self.value(g.rest.shifted(g.high + 1)))
            self.check_steps("add", high, room, self.value(g.factor))
        else:
            self.check(self.never_or(self.op("lt", high, n, BOOL)), high)
        if low is not None and not g.rises:
            self.check_steps("sub", low, low, i64(-g.factor.const))
        return self.b.stms

    def check_unit_steps(self, start: Form, high: Atom, n: Atom) -> None:
        """As below, for steps of one from `start` up to n."""
        steps = self.op("sub", n, high)
        first_outside = n
        outside = self.loop.outside
        if not (outside.fits(start) and outside.prove(self.numbers.form(n).plus(start, -1))):
            steps = self.op("maximum", steps, i64(0))
            first_outside = self.op("maximum", high, n)
        self.check(self.op("le", self.loop.bound, steps, BOOL), first_outside)

    def check_steps(self, way: str, start: Atom, room: Atom, factor: Atom) -> None:
        """Are there no more steps than stay within `room`, when the first one stands at its beginning?"""
        steps = self.op("add", self.op("floordiv", room, factor), i64(1))
        steps = self.op("maximum", steps, i64(0))
        first_outside = self.op(way, start, self.op("mul", factor, steps))
        self.check(self.op("le", self.loop.bound, steps, BOOL), first_outside)

    def never_or(self, cond: Atom) -> Atom:
        """The loop does not run, or `cond`."""
        bound = self.loop.bound
        if self.loop.outside.prove(self.numbers.form(bound).shifted(-1)):
            return cond
        return self.op("or", self.op("le", bound, i64(0), BOOL), cond, BOOL)

    def check(self, cond: Atom, index: Atom) -> None:
        message = f"index {{0}} is out of bounds for axis {self.group.axis} with size {{1}}"
        self.b.effect(Check(cond, "IndexError", message, (index, dim_atom(self.group.size))))

    def value(self, form: Form) -> Atom:
        """The form computed, what is added before what is taken away."""
        total: Atom = i64(max(form.const, 0))
        for m, a in sorted(form.terms.items(), key=lambda term: (term[1] < 0, term)):
            product: Atom = i64(abs(a))
            for s in m:
                product = self.op("mul", product, self.numbers.vars[s])
            total = self.op("add" if a > 0 else "sub", total, product)
        return i64(form.const) if not form.terms else self.op("sub", total, i64(max(-form.const, 0)))

    def op(self, op: str, a: Atom, b: Atom, type: Type = I64) -> Atom:
        """A row of the ops table, unless it does nothing."""
        unit = TABLE[op].unit
        if (unit and b == unit.of(b.type.dtype)) or (op == "floordiv" and b == i64(1)):
            return a
        if unit and unit.left and a == unit.of(a.type.dtype):
            return b
        return self.b.let(type, Apply(op, (a, b)), "t")
