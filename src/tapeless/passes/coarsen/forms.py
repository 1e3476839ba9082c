"""Affine forms: scalars of a body as sums of symbols, each times something that does not depend on them.

`Forms` takes statements one by one, and gives for each scalar that depends on the symbols its coefficients, whose
arithmetic it emits. What depends on them in another way is lost.

Note [One and a little]
The coefficient of a value that is carried on is often 1 and something small: w becomes w - r * (a * w - b). Such a sum
would be rounded, and a rounding of the coefficient counts anew in every trip. So a coefficient has two parts, a whole
number and the rest, that are never added up here.
"""

from __future__ import annotations

from collections.abc import Iterable, Mapping, Sequence
from dataclasses import dataclass

from tapeless.ir.core import Apply, If, Stm
from tapeless.ir.types import Atom, Const, DType, Type, Var, const
from tapeless.ir.walk import free_in_exp
from tapeless.ops.emit import Emit
from tapeless.ops.op import FLOATS
from tapeless.ops.table import TABLE


@dataclass(frozen=True)
class Coefficient:
    """`whole` + `rest`: Note [One and a little]."""

    whole: float
    rest: Atom | None = None

    @property
    def is_one(self) -> bool:
        return self.whole == 1 and self.rest is None


Form = Mapping[Var | None, Coefficient]  # by symbol; None has what stands by itself


def total(emit: Emit, c: Coefficient, dtype: DType) -> Atom:
    """As one number."""
    whole = const(c.whole, dtype)
    if c.rest is None:
        return whole
    return c.rest if not c.whole else emit("add", whole, c.rest)


class Forms:
    def __init__(self, emit: Emit, symbols: Iterable[Var]) -> None:
        self.emit = emit
        self.known: dict[Var, Form] = {s: {s: Coefficient(1)} for s in symbols}
        self.lost: set[Var] = set()

    def take(self, stm: Stm) -> bool:
        """Whether the statement has to do with the symbols; if not, it is left to the caller."""
        if not any(v in self.known or v in self.lost for v in free_in_exp(stm.exp)):
            return False
        forms: Sequence[Form | None] = [None] * len(stm.vars)
        if isinstance(stm.exp, Apply):
            forms = [self._form(stm.exp, stm.vars[0].type.dtype)]
        elif isinstance(stm.exp, If):
            forms = self._branches(stm.exp, [v.type for v in stm.vars])
        for v, form in zip(stm.vars, forms, strict=True):
            if form is None:
                self.lost.add(v)
            else:
                self.known[v] = form
        return True

    def _branches(self, exp: If, types: Sequence[Type]) -> Sequence[Form | None]:
        """Of the results of a branch, where both arms hold nothing but arithmetic with the symbols."""
        if not all(isinstance(s.exp, Apply) and self.take(s) for arm in (exp.then, exp.orelse) for s in arm.stms):
            return [None] * len(types)
        return [
            self._choice(exp.cond, self.of(x), self.of(y), t.dtype) if t.is_scalar and t.dtype in FLOATS else None
            for x, y, t in zip(exp.then.results, exp.orelse.results, types, strict=True)
        ]

    def of(self, a: Atom) -> Form | None:
        if isinstance(a, Var) and a in self.lost:
            return None
        found = self.known.get(a) if isinstance(a, Var) else None
        return found if found is not None else {None: Coefficient(0, a)}

    def _form(self, exp: Apply, dtype: DType) -> Form | None:
        if dtype not in FLOATS or any(a.type.dtype not in FLOATS for a in exp.args if exp.op != "select"):
            return None
        row = TABLE[exp.op]
        match exp:
            case Apply("select", (cond, x, y)):
                return self._choice(cond, self.of(x), self.of(y), dtype)
            case Apply("mul", (x, y)):
                return self._product(self.of(x), self.of(y))
            case Apply("div", (x, y)) if isinstance(y, Const) or not (y in self.known or y in self.lost):
                return self._each(
                    self.of(x), lambda c: Coefficient(0, self.emit("div", total(self.emit, c, y.type.dtype), y))
                )
            case _ if row.linear and row.arity == 2:
                return self._sum(exp.op, self.of(exp.args[0]), self.of(exp.args[1]))
            case _ if exp.op == "identity":
                return self.of(exp.args[0])
            case Apply("neg", (x,)):
                return self._each(
                    self.of(x), lambda c: Coefficient(-c.whole, None if c.rest is None else self.emit("neg", c.rest))
                )
        return None

    def _each(self, form: Form | None, change: object) -> Form | None:
        assert callable(change)
        return None if form is None else {s: change(c) for s, c in form.items()}

    def _sum(self, op: str, x: Form | None, y: Form | None) -> Form | None:
        if x is None or y is None:
            return None
        sign = 1.0 if op == "add" else -1.0
        found: dict[Var | None, Coefficient] = dict(x)
        for s, c in y.items():
            before = found.get(s, Coefficient(0))
            rest = before.rest
            if c.rest is not None:
                if rest is not None:
                    rest = self.emit(op, rest, c.rest)
                else:
                    rest = c.rest if sign > 0 else self.emit("neg", c.rest)
            found[s] = Coefficient(before.whole + sign * c.whole, rest)
        return found

    def _product(self, x: Form | None, y: Form | None) -> Form | None:
        if x is None or y is None:
            return None
        if list(x) != [None]:
            x, y = y, x
        factor = x[None].rest if list(x) == [None] else None
        if factor is None or x[None].whole:
            return None
        by: Atom = factor

        def scaled(c: Coefficient) -> Coefficient:
            rest = None if c.rest is None else self.emit("mul", by, c.rest)
            if not c.whole:
                return Coefficient(0, rest)
            whole = self.emit("mul", by, c.whole)
            return Coefficient(0, whole if rest is None else self.emit("add", whole, rest))

        return self._each(y, scaled)

    def _choice(self, cond: Atom, x: Form | None, y: Form | None, dtype: DType) -> Form | None:
        if x is None or y is None or (isinstance(cond, Var) and (cond in self.lost or cond in self.known)):
            return None
        found: dict[Var | None, Coefficient] = {}
        for s in {**x, **y}:
            a, b = x.get(s, Coefficient(0)), y.get(s, Coefficient(0))
            rests = [const(0.0, dtype) if c.rest is None else c.rest for c in (a, b)]
            if a.whole == b.whole:
                found[s] = Coefficient(a.whole, self.emit("select", cond, *rests))
            else:
                found[s] = Coefficient(0, self.emit("select", cond, *(total(self.emit, c, dtype) for c in (a, b))))
        return found
