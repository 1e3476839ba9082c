"""Comparisons of floats that come out one way whatever the arguments are: the argument of `sqrt(x*x + 1)` is not
negative, and nobody need ask.

Takes a verified function, gives one in which they are constants, for `simplify` to go on with: tests of domains vanish,
and loops that were run for their sake alone. Relies on `analysis/intervals.py`.
"""

from __future__ import annotations

from tapeless.ir.core import Apply, Body, Function, Stm
from tapeless.ir.types import Const, DType, Var
from tapeless.ir.walk import in_regions, map_function
from tapeless.ops.table import TABLE
from tapeless.passes.analysis.intervals import Intervals

SETTLED = frozenset({"isinf", *(name for name, row in TABLE.items() if row.comparison)})


def settle_comparisons(function: Function) -> Function:
    decided = Intervals(function.body).decided
    return map_function(function, lambda body: _settled(body, decided)) if decided else function


def _settled(body: Body, decided: dict[Var, bool]) -> Body:
    def on(s: Stm) -> Stm:
        if not isinstance(s.exp, Apply):
            return in_regions(s, lambda inner: _settled(inner, decided))
        if s.vars[0] not in decided:
            return s
        return Stm(s.vars, Apply("identity", (Const(decided[s.vars[0]], DType.bool),)), s.span)

    return Body(tuple(map(on, body.stms)), body.results)
