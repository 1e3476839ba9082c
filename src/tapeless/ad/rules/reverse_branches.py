"""Reverse mode of branches: the arm that was taken, run again and backwards. The other one contributes nothing.

What an arm keeps (Note [Kept values] in `ad.kept_values`) are results of the branch in the forward pass, 0 where the
other arm is taken.

Note [Branches in branches]
An arm that is run again holds other branches. One whose results the arm only hands on need not run again: its own
backward pass runs the arm that was taken. Else each level of a nest would hold a copy of all levels below, and a chain
of `elif` would grow with the square of its length.
"""

from __future__ import annotations

from functools import partial

from tapeless.ad.kept_values import Kept, again, forwards
from tapeless.ad.reverse import Back, Reverse, adjoint_of
from tapeless.ir.core import Body, If, Lambda, Stm
from tapeless.ir.types import Atom, Var, zero_of
from tapeless.ir.walk import free_in_exp
from tapeless.passes.analysis.places import roots_of


@adjoint_of(If)
def vjp_if(reverse: Reverse, stm: Stm, exp: If) -> Back:
    then, orelse = (forwards(reverse, arm) for arm in (exp.then, exp.orelse))
    results = (*exp.then.results, *then.inside, *(zero_of(v.type.dtype) for v in orelse.outside))
    others = (*exp.orelse.results, *(zero_of(v.type.dtype) for v in then.outside), *orelse.inside)
    new = If(exp.cond, Body(then.stms, results), Body(orelse.stms, others))
    reverse.put(Stm((*stm.vars, *then.outside, *orelse.outside), new, stm.span))
    return lambda: _back(reverse, stm, exp, then, orelse)


def _handed_on(inner: Reverse, read: set[Var], stm: Stm) -> Back | None:
    """Note [Branches in branches]. One that adds to accumulators has effects."""
    exp = stm.exp
    if not isinstance(exp, If) or not read.isdisjoint(stm.vars) or not any(inner.active(v) for v in stm.vars):
        return None
    if any(v.type.acc for v in free_in_exp(exp)):
        return None
    return lambda: _back(inner, stm, exp, Kept(exp.then), Kept(exp.orelse), fresh=False)


def _back(reverse: Reverse, stm: Stm, exp: If, *given: Kept, fresh: bool = True) -> None:
    """`fresh`: the branch has run forwards, so that its names are taken."""
    adjs = [reverse.adjoints.take(v) for v in stm.vars]
    arms = [reverse.fresh(Lambda((), arm.body)).body if fresh else arm.body for arm in given]
    free = list(dict.fromkeys(v for arm in arms for v in reverse.free(arm, ())))
    handed = [
        v for v in free if v.type.shape and v not in reverse.scope.accs and _updated_by(v, arms)
    ]  # Note [Adjoints by value]
    scalars = [v for v in free if not v.type.shape]
    arrays = [v for v in free if v.type.shape and v not in handed]

    def arm_adjoint(arm: Body, kept: Kept, accs: dict[Var, Var]) -> Body:
        inner = reverse.inside(accs)
        with reverse.b.region() as stms:
            read = {v for s in arm.stms for v in free_in_exp(s.exp)}
            backs = again(inner, kept, arm, partial(_handed_on, inner, read))
            for r, adj in zip(arm.results, adjs, strict=True):
                inner.add(r, adj)
            inner.backward(backs)
            results: list[Atom] = [inner.full_adjoint(v) for v in (*scalars, *handed)]
        return Body(tuple(stms), tuple(results))

    def both(accs: dict[Var, Var]) -> list[Atom]:
        then, orelse = (arm_adjoint(arm, kept, accs) for arm, kept in zip(arms, given, strict=True))
        vars = [Var(f"{v.name}_adj", v.type) for v in (*scalars, *handed)]
        return list(reverse.b.bind(vars, If(exp.cond, then, orelse)))

    adjoints = reverse.with_accumulators(arrays, both)
    for v, adj in zip((*scalars, *handed), adjoints, strict=True):
        reverse.add(v, adj)


def _updated_by(v: Var, arms: list[Body]) -> bool:
    """Whether an arm gives the array back, changed in place or as it is."""
    return any(root is v for arm in arms for root, _ in roots_of(arm, arm.results))
