"""Loops that do nothing but test, the same in each iteration, test once.

Takes and gives a verified function, after range analysis. What a backward pass leaves of its forward part is often no
more than the tests of positions. An access whose element nobody uses is replaced by the tests of it, which need no other
position of it (Note [Tests of positions] in `tidy/dce.py`); so those of `x[i, column[e]]` are the same for all i.
"""

from __future__ import annotations

from collections import Counter

from tapeless.ir.builder import Builder
from tapeless.ir.core import Apply, At, Body, Check, For, Function, If, Index, Stm, Sweep
from tapeless.ir.effects import effects_in
from tapeless.ir.types import BOOL, Atom, Var, dim_atom, i64
from tapeless.ir.walk import free_in_body, in_regions, map_function, use_counts, with_stms
from tapeless.passes.tidy.dce import tests_of_position


def test_once(function: Function) -> Function:
    return map_function(function, _Once(use_counts(function.body)).body)


class _Once:
    def __init__(self, uses: Counter[Atom]) -> None:
        self.uses = uses

    def body(self, body: Body) -> Body:
        stms: list[Stm] = []
        for s in body.stms:
            s = in_regions(s, self.body)
            if isinstance(s.exp, Index) and self.only_tests(s, s.exp):
                stms += tests_of_position(s, s.exp)
            elif isinstance(s.exp, (Sweep, For)) and not s.vars and (once := _once(s, s.exp)):
                stms += once
            else:
                stms.append(s)
        return with_stms(body, stms)

    def only_tests(self, stm: Stm, exp: Index) -> bool:
        """And some of its positions need none."""
        if self.uses[stm.vars[0]]:
            return False
        tested = [isinstance(a, At) and a.check for a in exp.axes]
        return any(tested) and any(
            isinstance(a, At) and isinstance(a.index, Var) and not t for a, t in zip(exp.axes, tested, strict=True)
        )


def _once(stm: Stm, exp: Sweep | For) -> list[Stm] | None:
    """The tests of one iteration, if there is one, where those of all are the same."""
    body, params = (exp.lam.body, exp.lam.params) if isinstance(exp, Sweep) else (exp.body, (exp.index, *exp.params))
    effects = list(effects_in(body.stms))
    if not effects or not all(isinstance(e, (Check, Index)) for e in effects):
        return None
    if any(v in params for v in free_in_body(body)):
        return None
    b = Builder(stm.span)
    trips = dim_atom(exp.width) if isinstance(exp, Sweep) else exp.bound
    some = b.let(BOOL, Apply("gt", (trips, i64(0))), "some")
    return [*b.stms, Stm((), If(some, Body(body.stms, ()), Body((), ())), stm.span)]
