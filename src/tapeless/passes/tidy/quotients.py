"""Quotients that need not be rounded like a division: by one reciprocal for all with the same divisor.

Takes and gives a verified function; the last step before lowering. Afterwards there are no `quotient` rows.

Note [Loose quotients]
Derivatives are right to a few ulp, so their code writes `quotient` for x / y that may be computed as x * (1 / y):
slopes that have a quotient, and values of the program that are computed again for nothing but slopes (`ad.bodies`).
Where the program's own `div` is there already, `cse` takes that one: values of the program are rounded as they were
written. A division costs as much as a dozen products, so two quotients by one number are worth a reciprocal; a single
one is a division. 1 / y overflows before x / y for divisors below the least normal number, whose own slopes have
overflowed by then.
"""

from __future__ import annotations

from collections import Counter

from tapeless.ir.core import Apply, Body, Exp, Function, Stm, WithRegions
from tapeless.ir.rewrite import Rewriter
from tapeless.ir.types import Atom, Const, Var, const
from tapeless.ir.walk import all_stms


def settle_quotients(function: Function) -> Function:
    if not any(isinstance(s.exp, Apply) and s.exp.op == "quotient" for s in all_stms(function.body)):
        return function
    return Quotients().function(function)


class Quotients(Rewriter):
    def __init__(self) -> None:
        super().__init__()
        self.shared: dict[Atom, Var] = {}  # divisors of several quotients: their reciprocals

    def body(self, body: Body) -> Body:
        outer, self.wanted = self.shared, _divisors(body)
        self.shared = dict(outer)
        new = super().body(body)
        self.shared = outer
        return new

    def stm(self, stm: Stm) -> None:
        exp = self.rename(stm.exp)
        wanted = self.wanted
        if isinstance(exp, WithRegions):
            exp = self.inside(exp)
            self.wanted = wanted
        y = _inverted(exp)
        if y is not None and y in self.shared:
            self.map[stm.vars[0]] = self.shared[y]
            return
        if y is not None and wanted[y] > 1:
            self.shared[y] = stm.vars[0]
            exp = _inverse(y) if isinstance(exp, Apply) and exp.op == "quotient" else exp
        elif isinstance(exp, Apply) and exp.op == "quotient":
            x, y = exp.args
            if y not in self.shared and wanted[y] > 1:
                self.shared[y] = Var("inverse", y.type)
                self.out.append(Stm((self.shared[y],), _inverse(y), stm.span))
            exp = Apply("mul", (x, self.shared[y])) if y in self.shared else Apply("div", (x, y))
        self.emit(stm, exp)


def _inverse(y: Atom) -> Apply:
    dtype = y.type.dtype
    return Apply("div", (const(1.0, dtype), y)) if dtype.is_complex else Apply("reciprocal", (y,))


def _inverted(exp: Exp) -> Atom | None:
    """What a row gives the reciprocal of. That of complex numbers is another row than their quotient."""
    match exp:
        case Apply("reciprocal", (y,)) if not y.type.dtype.is_complex:
            return y
        case Apply("div" | "quotient", (Const(1.0), y)):
            return y
        case _:
            return None


def _divisors(body: Body) -> Counter[Atom]:
    """How often a region divides by a number where a reciprocal does."""
    found: Counter[Atom] = Counter()
    for s in body.stms:
        y = s.exp.args[1] if isinstance(s.exp, Apply) and s.exp.op == "quotient" else _inverted(s.exp)
        if y is not None:
            found[y] += 1
    return found
