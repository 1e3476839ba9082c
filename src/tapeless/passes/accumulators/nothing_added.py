"""Loops that add multiples of one number to accumulators: they do not run where it is 0.

Takes and gives a verified function. The adjoint of what a minimum, a `where` or a branch has not taken is exactly 0, and
all that a loop does with it is to add zeros: of the distances to all centres only one has a slope. A multiple of 0 is 0
here even where the other factor is infinite: Note [Zero times infinity] in `ops/partials.py`. Sums of the program itself are
left alone.
"""

from __future__ import annotations

from tapeless.ir.core import Apply, Body, For, Function, If, Stm, Sweep, UpdateAcc, WithAcc
from tapeless.ir.effects import effects_in
from tapeless.ir.operands import regions
from tapeless.ir.types import BOOL, Atom, Const, DType, Var, dim_atom, zero_of
from tapeless.ir.walk import all_stms, in_regions, map_function, with_stms
from tapeless.ops.table import TABLE
from tapeless.passes.analysis.dependence import is_ordered

FEW = 4  # iterations that are not worth a test
DEEP = 4  # products between a choice and what is tested
PRODUCTS = frozenset({"mul", "times"})
QUOTIENTS = frozenset({"div", "quotient"})

Made = dict[Var, Apply]
Factors = dict[Var, None]  # a set that keeps its order


def skip_additions_of_nothing(function: Function) -> Function:
    found = (s.exp for s in all_stms(function.body) if isinstance(s.exp, WithAcc) and s.exp.slopes)
    accs = {p for exp in found for p in exp.lam.params if p.type.acc == "add"}
    return map_function(function, _Skipping(accs).body) if accs else function


class _Skipping:
    def __init__(self, accs: set[Var]) -> None:
        self.accs = accs  # of slopes

    def body(self, body: Body) -> Body:
        made: Made = {}
        stms: list[Stm] = []
        for s in body.stms:
            if isinstance(s.exp, Apply):
                made[s.vars[0]] = s.exp
            elif isinstance(s.exp, (Sweep, For, If)) and not s.vars and _is_long(s.exp):
                factors = self.factors(s, made)
                if factors:
                    stms += _guarded(in_regions(s, self.body), factors)
                    continue
            stms.append(in_regions(s, self.body))
        return with_stms(body, stms)

    def factors(self, stm: Stm, outside: Made) -> list[Var] | None:
        """Numbers that may be 0: each number that is added is a sum of multiples of them."""
        if any(not isinstance(e, UpdateAcc) or is_ordered(e) for e in effects_in((stm,))):
            return None
        inside = {v: s.exp for s in all_stms(Body((stm,), ())) if isinstance(s.exp, Apply) for v in s.vars}
        roots = _Roots(inside, outside)
        found: Factors = {}
        for s in all_stms(Body((stm,), ())):
            if isinstance(s.exp, UpdateAcc):
                factors = roots.of(s.exp.value)
                if s.exp.acc not in self.accs or factors is None:
                    return None
                found.update(factors)
        return list(found)


def _is_long(exp: Sweep | For | If) -> bool:
    if isinstance(exp, If):
        loops = (s.exp for r in regions(exp) for s in all_stms(r.body))
        return any(_is_long(loop) for loop in loops if isinstance(loop, (Sweep, For)))
    trips = dim_atom(exp.width) if isinstance(exp, Sweep) else exp.bound
    return not isinstance(trips, Const) or trips.value.real > FEW


def _guarded(stm: Stm, factors: list[Var]) -> list[Stm]:
    found: list[Stm] = []
    some: Var | None = None
    for f in factors:
        test = Var("some", BOOL)
        found.append(Stm((test,), Apply("ne", (f, zero_of(f.type.dtype))), stm.span))
        if some is not None:
            both = Var("some", BOOL)
            found.append(Stm((both,), Apply("or", (some, test)), stm.span))
            test = both
        some = test
    assert some is not None
    return [*found, Stm((), If(some, Body((stm,), ()), Body((), ())), stm.span)]


class _Roots:
    """The numbers from outside of which a number is a sum of multiples; None where it is not. Each is found once."""

    def __init__(self, inside: Made, outside: Made) -> None:
        self.inside, self.outside = inside, outside
        self.known: dict[Var, Factors | None] = {}

    def of(self, value: Atom) -> Factors | None:
        if isinstance(value, Const):
            return {} if value.value == 0 else None
        if value not in self.known:
            self.known[value] = self.found(value)
        return self.known[value]

    def found(self, value: Var) -> Factors | None:
        exp = self.inside.get(value)
        if exp is None:
            return {value: None} if not value.type.shape and _may_be_zero(value, self.outside) else None
        several = [self.of(a) for a in _carried(exp)]
        if exp.op in PRODUCTS:
            return min((r for r in several if r is not None), key=len, default=None)
        return {v: None for r in several if r for v in r} if several and None not in several else None


def _carried(exp: Apply) -> tuple[Atom, ...]:
    """Operands that the result is a multiple of: of a product each, of others all together."""
    if exp.op in PRODUCTS or TABLE[exp.op].linear:
        return exp.args
    return exp.args[:1] if exp.op in QUOTIENTS else exp.args[1:] if exp.op == "select" else ()


def _may_be_zero(v: Atom, made: Made, deep: int = DEEP) -> bool:
    """Whether it is a choice of 0 or something, or a multiple of one."""
    exp = made.get(v) if isinstance(v, Var) and v.type.dtype is not DType.bool else None
    if exp is None or not deep:
        return False
    if exp.op == "select":
        return any(isinstance(a, Const) and a.value == 0 for a in exp.args[1:])
    found = [_may_be_zero(a, made, deep - 1) for a in _carried(exp)]
    return any(found) if exp.op in PRODUCTS else bool(found) and all(found)
