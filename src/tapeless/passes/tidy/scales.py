"""Factors of 2, 1/2 and -1 on their way out of products: they meet, and are gone.

The slope of a square brings a 2, the loss had a half, differences a minus sign: in `0.5 * (l - rest)**2` none of them
is left in the gradient. Takes and gives verified Core, region by region; the same object where nothing is saved.

Note [Scaled values]
A value may be another one times a power of 2, of either sign, which is not multiplied until somebody needs it as it is.
Products, quotients and sums of values scaled alike hand the factor on, if it makes them greater: what is multiplied
later must not be out of range before. With a smaller factor a product waits: it is made once the factor has met another one
and is at least 1 (`q / 2 * x` twice is `q * x`), and as it was written where it is needed otherwise. That is exact, so all
bits stay: only numbers within a factor of 4 of the ends of the range could tell, where a factor is gone.
"""

from __future__ import annotations

import math
from collections.abc import Callable
from dataclasses import dataclass, field

from tapeless.ir.core import Apply, Body, Function, Stm
from tapeless.ir.types import Atom, Const, Var, const
from tapeless.ir.walk import free_in_exp, in_regions, map_function
from tapeless.ops.op import FLOATS

MOST = 4.0  # or its reciprocal: what is scaled further may be scaled to stay in range


def lift_scales(function: Function) -> Function:
    return map_function(function, _body)


def _body(body: Body) -> Body:
    inner = [in_regions(s, _body) for s in body.stms]
    lifted = _Lifted()
    for s in inner:
        lifted.stm(s)
    for r in body.results:
        lifted.needed(r)
    if len(lifted.out) < len(inner):
        return Body(tuple(lifted.out), body.results)
    return body if all(map(_same, inner, body.stms)) else Body(tuple(inner), body.results)


def _same(x: Stm, y: Stm) -> bool:
    return x is y


Scaled = tuple[Atom, float]


@dataclass
class _Lifted:
    """The statements of a region, made anew. `known` are values that are another one times a factor."""

    out: list[Stm] = field(default_factory=list)
    known: dict[Var, tuple[Atom, float, Stm]] = field(default_factory=dict)
    waiting: dict[Atom, Stm | None] = field(default_factory=dict)  # greater than what was written; None: made by now

    def stm(self, s: Stm) -> None:
        exp = s.exp
        if isinstance(exp, Apply) and s.vars[0].type.dtype in FLOATS:
            rule = RULES.get(exp.op)
            if rule is not None and rule(self, s, *exp.args):
                return
        if self.known:
            for a in free_in_exp(exp):
                self.needed(a)
        self.out.append(s)

    def scaled(self, a: Atom) -> Scaled:
        if isinstance(a, Var) and a in self.known:
            base, factor, _ = self.known[a]
            return base, factor
        return a, 1.0

    def make(self, base: Atom) -> None:
        """What has waited is there from here on."""
        if (made := self.waiting.get(base)) is not None:
            self.waiting[base] = None
            self.emit(made)

    def emit(self, s: Stm) -> None:
        for operand in free_in_exp(s.exp):
            self.make(operand)
        self.out.append(s)

    def needed(self, a: Atom) -> Atom:
        """As it is."""
        found = self.known.pop(a, None) if isinstance(a, Var) else None
        if found is not None:
            base, factor, s = found
            if base in self.waiting and abs(factor) < 1:
                for operand in free_in_exp(s.exp):
                    self.needed(operand)
                self.out.append(s)
                return a
            by = Apply("neg", (base,)) if factor == -1 else Apply("mul", (base, const(factor, base.type.dtype)))
            self.out.append(Stm(s.vars, by, s.span))
        return a

    def put(self, s: Stm, exp: Apply, factor: float) -> bool:
        """The value is this times a factor."""
        if not 1 / MOST <= abs(factor) <= MOST:
            return False
        if factor == 1:
            self.emit(Stm(s.vars, exp, s.span))
            return True
        base = Var(s.vars[0].name, s.vars[0].type)
        made = Stm((base,), exp, s.span)
        if abs(factor) < 1:
            self.waiting[base] = made
        else:
            self.emit(made)
        self.known[s.vars[0]] = base, factor, s
        return True

    def again(self, s: Stm, base: Atom, factor: float) -> bool:
        """The value is another one times a factor."""
        if not 1 / MOST <= abs(factor) <= MOST:
            return False
        if abs(factor) >= 1:
            self.make(base)
        if factor == 1:
            self.out.append(Stm(s.vars, Apply("identity", (base,)), s.span))
        else:
            self.known[s.vars[0]] = base, factor, s
        return True

    # -- rows

    def product(self, s: Stm, x: Atom, y: Atom) -> bool:
        if isinstance(x, Const):
            x, y = y, x
        if isinstance(y, Const) and is_power(y):
            a, f = self.scaled(x)
            return self.again(s, a, f * y.value.real)
        (a, f), (b, g) = self.scaled(x), self.scaled(y)
        return self.put(s, Apply("mul", (a, b)), f * g)

    def quotient(self, s: Stm, x: Atom, y: Atom) -> bool:
        if isinstance(y, Const) and is_power(y):
            a, f = self.scaled(x)
            return self.again(s, a, f / y.value.real)
        (a, f), (b, g) = self.scaled(x), self.scaled(y)
        if isinstance(x, Const) and is_power(x):
            a, f = const(1.0, x.dtype), x.value.real
        return self.put(s, Apply(_name(s), (a, b)), f / g)

    def inverse(self, s: Stm, x: Atom) -> bool:
        a, f = self.scaled(x)
        return self.put(s, Apply("reciprocal", (a,)), 1 / f)

    def squared(self, s: Stm, x: Atom) -> bool:
        a, f = self.scaled(x)
        return self.put(s, Apply("square", (a,)), f * f)

    def negative(self, s: Stm, x: Atom) -> bool:
        a, f = self.scaled(x)
        return self.again(s, a, -f)

    def total(self, s: Stm, x: Atom, y: Atom) -> bool:
        return self.sum(s, x, y, 1.0)

    def difference(self, s: Stm, x: Atom, y: Atom) -> bool:
        return self.sum(s, x, y, -1.0)

    def sum(self, s: Stm, x: Atom, y: Atom, sign: float) -> bool:
        (a, f), (b, g) = self.scaled(x), self.scaled(y)
        g *= sign
        if a is b and isinstance(a, Var) and f == g and f > 0:
            return self.again(s, a, 2 * f)
        if f == g >= 1:  # the sum of negative ones may be a zero of the other sign
            return self.put(s, Apply("add", (a, b)), f)
        if f == -g and abs(f) >= 1:
            return self.put(s, Apply("sub", (a, b) if f > 0 else (b, a)), abs(f))
        if f == -1 and sign > 0:
            return self.put(s, Apply("sub", (self.needed(y), a)), 1.0)
        if g == -1:
            return self.put(s, Apply("sub", (self.needed(x), b)), 1.0)
        return False


def is_power(c: Const) -> bool:
    """Is it a power of 2, of either sign?"""
    return math.isfinite(c.value.real) and abs(math.frexp(c.value.real)[0]) == 0.5


def _name(s: Stm) -> str:
    assert isinstance(s.exp, Apply)
    return s.exp.op


RULES: dict[str, Callable[..., bool]] = {
    "mul": _Lifted.product, "div": _Lifted.quotient, "quotient": _Lifted.quotient, "reciprocal": _Lifted.inverse,
    "square": _Lifted.squared, "neg": _Lifted.negative, "add": _Lifted.total, "sub": _Lifted.difference,
}  # fmt: skip
HANDING_ON = frozenset(RULES)  # rows
