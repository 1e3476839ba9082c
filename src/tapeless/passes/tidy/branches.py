"""Branches on one condition: the second joins the first, if all that it uses is there by then.

Takes and gives a verified function. Relies on `cse` to find what the arms have in common afterwards. Forward code and
the partials for the backward pass are two such branches, which compute much the same.
"""

from __future__ import annotations

from collections.abc import Sequence

from tapeless.ir.core import Body, Function, If, Stm
from tapeless.ir.rewrite import Rewriter
from tapeless.ir.types import Var
from tapeless.passes.analysis.dependence import Footprint, Footprints


def merge_branches(function: Function) -> Function:
    return Branches().function(function)


class Branches(Rewriter):
    def __init__(self) -> None:
        super().__init__()
        self.footprints = Footprints()

    def body(self, body: Body) -> Body:
        conditions = [s.exp.cond for s in body.stms if isinstance(s.exp, If)]
        if len(set(conditions)) < len(conditions):
            body = self.merged(body)
        return super().body(body)

    def merged(self, body: Body) -> Body:
        places = {v: k for k, s in enumerate(body.stms) for v in s.vars}  # statements that join others: of these
        stms: list[Stm | None] = list(body.stms)
        first: dict[Var, int] = {}
        for k, stm in enumerate(body.stms):
            if not isinstance(stm.exp, If) or not isinstance(stm.exp.cond, Var):
                continue
            j = first.setdefault(stm.exp.cond, k)
            before = stms[j]
            if j == k or before is None:
                continue
            mine = self.footprints.stm(stm)
            known = all(places.get(v, -1) < j for v in mine.free)
            if known and self.may_move(mine, [s for s in stms[j + 1 : k] if s is not None]):
                stms[j], stms[k] = _joined(before, stm), None
                places.update(dict.fromkeys(stm.vars, j))
            else:
                first[stm.exp.cond] = k
        left = tuple(s for s in stms if s is not None)
        return body if len(left) == len(stms) else Body(left, body.results)

    def may_move(self, mine: Footprint, between: Sequence[Stm]) -> bool:
        """Note [Trading places] in `dependence`."""
        if mine.ordered or mine.consumed:
            return False
        others = [self.footprints.stm(s) for s in between]
        return not any(o.consumed or o.must_precede(mine) for o in others)


def _joined(first: Stm, second: Stm) -> Stm:
    a, b = first.exp, second.exp
    assert isinstance(a, If) and isinstance(b, If)

    def both(x: Body, y: Body) -> Body:
        return Body((*x.stms, *y.stms), (*x.results, *y.results))

    branch = If(a.cond, both(a.then, b.then), both(a.orelse, b.orelse))
    return Stm((*first.vars, *second.vars), branch, first.span)
