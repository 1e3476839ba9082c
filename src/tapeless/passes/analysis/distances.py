"""Indices that are an iteration index plus a constant.

Takes an operand and the statements around it; gives the iteration index and the distance from it. Relies on sums of
iteration indices and constants being written as `add` and `sub`, which is what simplification leaves.
"""

from __future__ import annotations

from collections.abc import Mapping

from tapeless.ir.core import Apply, At, Exp, Lambda, UpdateAcc
from tapeless.ir.types import Atom, Const, DType, Var
from tapeless.ir.walk import all_stms

FARTHEST = 64  # a larger distance is no neighbourhood


def distance(index: Atom, defs: Mapping[Var, Exp]) -> tuple[Var, int] | None:
    """(v, c) where the index is v + c and v is not a sum of this kind itself."""
    total = 0
    while isinstance(index, Var):
        match defs.get(index):
            case Apply("add", (Var() as rest, Const(value=int(c), dtype=DType.i64))):
                index, total = rest, total + c
            case Apply("add", (Const(value=int(c), dtype=DType.i64), Var() as rest)):
                index, total = rest, total + c
            case Apply("sub", (Var() as rest, Const(value=int(c), dtype=DType.i64))):
                index, total = rest, total - c
            case _:
                return (index, total) if abs(total) <= FARTHEST else None
    return None


def owns_rows(lam: Lambda, acc: Var) -> bool:
    """Whether iterations of a sweep update different rows of an accumulator, along one of its axes."""
    defs = {v: s.exp for s in all_stms(lam.body) for v in s.vars}
    common: set[tuple[int, int]] | None = None  # axes, with the distance from the iteration's index
    for stm in all_stms(lam.body):
        if not isinstance(stm.exp, UpdateAcc) or stm.exp.acc is not acc:
            continue
        mine: set[tuple[int, int]] = set()
        for k, axis in enumerate(stm.exp.axes):
            found = distance(axis.index, defs) if isinstance(axis, At) and not axis.wrap else None
            if found is not None and found[0] is lam.params[0]:
                mine.add((k, found[1]))
        common = mine if common is None else common & mine
    return bool(common)
