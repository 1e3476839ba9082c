"""What lowering asks of a region before it begins: which arrays are only made to be put into others, which sizes are tested.

Takes a Core body; gives positions of its statements.
"""

from __future__ import annotations

from tapeless.ir.core import Apply, Body, Check, Sweep, Update
from tapeless.ir.types import Atom, Var
from tapeless.ir.walk import free_in_exp


def single_updates(body: Body) -> dict[Var, int]:
    """Results of sweeps whose only use is to be written into another array: the position of that update."""
    uses: dict[Var, int] = {}
    for stm in body.stms:
        for v in free_in_exp(stm.exp):
            uses[v] = uses.get(v, 0) + 1
    for r in body.results:
        if isinstance(r, Var):
            uses[r] = uses.get(r, 0) + 1
    mapped = {v for s in body.stms if isinstance(s.exp, Sweep) for v in s.vars if v.type.shape and uses.get(v) == 1}
    return {
        s.exp.value: k
        for k, s in enumerate(body.stms)
        if isinstance(s.exp, Update) and isinstance(s.exp.value, Var) and s.exp.value in mapped
    }


def size_test(body: Body, d: Atom, e: Atom, last: int) -> list[int]:
    """Positions before `last` of the statements that make sure that two sizes are equal; none when nothing does."""
    for k, stm in enumerate(body.stms[:last]):
        if isinstance(stm.exp, Check) and isinstance(stm.exp.cond, Var):
            for j, maker in enumerate(body.stms[:k]):
                if stm.exp.cond in maker.vars and maker.exp in (Apply("eq", (d, e)), Apply("eq", (e, d))):
                    return [j, k]
    return []
