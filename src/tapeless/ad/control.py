"""Reverse mode of branches: the arm that was taken, run again and backwards. The other one contributes nothing."""

from __future__ import annotations

from typing import TYPE_CHECKING

from tapeless.ir.core import Body, If, Lambda, Stm
from tapeless.ir.types import Atom, Var
from tapeless.passes.places import roots_of

if TYPE_CHECKING:
    from tapeless.ad.reverse import Reverse


def vjp_if(reverse: Reverse, stm: Stm, exp: If) -> None:
    bars = [reverse.adjoints.pop(v, None) for v in stm.vars]
    arms = [reverse.fresh(Lambda((), arm)).body for arm in (exp.then, exp.orelse)]
    free = list(dict.fromkeys(v for arm in arms for v in reverse.free(arm, ())))
    handed = [
        v for v in free if v.type.shape and v not in reverse.accs and _updated_by(v, arms)
    ]  # Note [Adjoints by value]
    scalars = [v for v in free if not v.type.shape]
    arrays = [v for v in free if v.type.shape and v not in handed]

    def arm_adjoint(arm: Body, accs: dict[Var, Var]) -> Body:
        inner = reverse.inside(accs)
        with reverse.b.region() as stms:
            backs = inner.forward(arm)
            for r, bar in zip(arm.results, bars, strict=True):
                inner.add(r, bar)
            inner.backward(backs)
            results: list[Atom] = [inner.full_adjoint(v) for v in (*scalars, *handed)]
        return Body(tuple(stms), tuple(results))

    def both(accs: dict[Var, Var]) -> list[Atom]:
        then, orelse = (arm_adjoint(arm, accs) for arm in arms)
        vars = [Var(f"{v.name}_bar", v.type) for v in (*scalars, *handed)]
        return list(reverse.b.bind(vars, If(exp.cond, then, orelse)))

    given = reverse.with_accumulators(arrays, both)
    for v, bar in zip((*scalars, *handed), given, strict=True):
        reverse.add(v, bar)


def _updated_by(v: Var, arms: list[Body]) -> bool:
    """Whether an arm gives the array back, changed in place or as it is."""
    return any(root is v for arm in arms for root, _ in roots_of(arm, arm.results))
