"""Branches on one condition: the second joins the first, if all that it uses can be there by then. Updates that both arms end
with, of the same cells, follow the branch: loops in which each iteration writes its own cells are seen to be so.

Takes and gives a verified function. Relies on `cse` to find what the arms have in common afterwards. Forward code and
the partials for the backward pass are two such branches, which compute much the same.
"""

from __future__ import annotations

from dataclasses import replace

from tapeless.ir.core import Body, Function, If, Stm, Update
from tapeless.ir.effects import effects_in
from tapeless.ir.types import Atom, Var, i64
from tapeless.ir.walk import Substitution, free_in_exp, in_regions, map_function, with_stms
from tapeless.passes.analysis.dependence import Footprints
from tapeless.passes.analysis.moving import brought_forward


def merge_branches(function: Function) -> Function:
    return map_function(function, Branches().body)


class Branches:
    def __init__(self) -> None:
        self.footprints = Footprints()

    def body(self, body: Body) -> Body:
        conditions = [s.exp.cond for s in body.stms if isinstance(s.exp, If)]
        if len(set(conditions)) < len(conditions):
            body = self.merged(body)
        if conditions:
            body = _updated_after(body)
        return with_stms(body, [in_regions(s, self.body) for s in body.stms])

    def merged(self, body: Body) -> Body:
        stms = list(body.stms)
        first: dict[Var, Stm] = {}
        k = 0
        while k < len(stms):
            stm = stms[k]
            if not isinstance(stm.exp, If) or not isinstance(cond := stm.exp.cond, Var):
                k += 1
                continue
            before, first[cond] = first.get(cond), stm
            j = next((j for j in range(k - 1, -1, -1) if stms[j] is before), k)
            ahead = brought_forward(self.footprints, stms[j:k], stm, {*stms[j].vars}) if j < k else None
            if ahead is None:
                k += 1
                continue
            joined = first[cond] = _joined(stms[j], stm)
            stms[j : k + 1] = [*ahead, joined, *(s for s in stms[j + 1 : k] if not any(s is a for a in ahead))]
        return body if len(stms) == len(body.stms) else Body(tuple(stms), body.results)


def _updated_after(body: Body) -> Body:
    stms = [s for stm in body.stms for s in (_apart(stm) if isinstance(stm.exp, If) else (stm,))]
    return body if len(stms) == len(body.stms) else Body(tuple(stms), body.results)


def _apart(stm: Stm) -> tuple[Stm, ...]:
    """The branch with what is written, and the updates."""
    exp = stm.exp
    assert isinstance(exp, If)
    arms = [exp.then, exp.orelse]
    if not all(any(isinstance(s.exp, Update) for s in arm.stms) for arm in arms):
        return (stm,)
    vars: list[Var] = []
    updates: list[Stm] = []
    for k, v in enumerate(stm.vars):
        ends = [_update_at_end(arm, k) for arm in arms]
        first, second = ends
        if first is None or second is None or (first.array, first.axes) != (second.array, second.axes):
            vars.append(v)
            continue
        if first.value.type != second.value.type:
            vars.append(v)
            continue
        value = Var(v.name, first.value.type)
        arms = [_handing_over(arm, k, end.value) for arm, end in zip(arms, (first, second), strict=True)]
        vars.append(value)
        updates.append(Stm((v,), Update(first.array, first.axes, value), stm.span))
    if not updates:
        return (stm,)
    return Stm(tuple(vars), If(exp.cond, *arms), stm.span), *updates


def _update_at_end(arm: Body, k: int) -> Update | None:
    """What makes result k, if that is all that it is for, and its array and position are those of outside."""
    result = arm.results[k]
    made = [j for j, s in enumerate(arm.stms) if result in s.vars]
    if not made or arm.results.count(result) > 1:
        return None
    update = arm.stms[made[0]].exp
    if not isinstance(update, Update):
        return None
    own = {v for s in arm.stms for v in s.vars}
    others = [*arm.stms[: made[0]], *arm.stms[made[0] + 1 :]]
    used = {v for s in others for v in free_in_exp(s.exp)}
    if result in used or any(v in own for v in free_in_exp(replace(update, value=i64(0)))):
        return None
    if any(effects_in(arm.stms[made[0] + 1 :])) or update.array in used | set(arm.results):
        return None  # a step of the array from itself stays whole: it may be undone
    return update


def _handing_over(arm: Body, k: int, value: Atom) -> Body:
    stms = tuple(s for s in arm.stms if arm.results[k] not in s.vars)
    return Body(stms, (*arm.results[:k], value, *arm.results[k + 1 :]))


def _joined(first: Stm, second: Stm) -> Stm:
    a, b = first.exp, second.exp
    assert isinstance(a, If) and isinstance(b, If)

    def both(x: Body, y: Body) -> Body:
        y = Substitution(dict(zip(first.vars, x.results, strict=True))).body(y)
        return Body((*x.stms, *y.stms), (*x.results, *y.results))

    branch = If(a.cond, both(a.then, b.then), both(a.orelse, b.orelse))
    return Stm((*first.vars, *second.vars), branch, first.span)
