"""Statements that come earlier than where they stand, with those that they need.

`brought_forward` takes the statements between two places and one that comes after them; gives those of them that have to
come along. Relies on `dependence`: Note [Trading places].
"""

from __future__ import annotations

from collections.abc import Sequence
from collections.abc import Set as AbstractSet

from tapeless.ir.core import Full, Stm
from tapeless.ir.types import Var
from tapeless.ir.walk import type_vars
from tapeless.passes.analysis.dependence import Footprint, Footprints


def brought_forward(
    footprints: Footprints, stms: Sequence[Stm], wanted: Stm, inside: AbstractSet[Var] = frozenset()
) -> list[Stm] | None:
    """Which of `stms` have to be in front of the first of them, so that `wanted` can take its place. None if it cannot.

    `inside`: what its regions may use all the same.
    """
    known = [footprints.stm(s) for s in stms]
    mine = footprints.stm(wanted)
    sizes = {d for v in wanted.vars for d in type_vars(v.type)}
    needed = {v for v in mine.free if v not in inside or v in sizes}
    moved: list[int] = []
    for k in range(len(stms) - 1, 0, -1):
        if any(v in needed for v in stms[k].vars):
            moved.append(k)
            needed.update(known[k].free)
    if any(v in needed for v in stms[0].vars):
        return None
    ahead = moved[::-1]
    behind = [k for k in range(len(stms)) if k not in set(ahead)]
    if not all(_may_pass(known[k], [known[o] for o in behind if o < k]) for k in ahead):
        return None
    own = {v for k in ahead if isinstance(stms[k].exp, Full) for v in stms[k].vars}
    return [stms[k] for k in ahead] if _may_pass(mine, [known[o] for o in behind], own) else None


def _may_pass(mine: Footprint, others: Sequence[Footprint], own: AbstractSet[Var] = frozenset()) -> bool:
    """`own`: arrays that come along, made for it."""
    if mine.ordered or any(o.consumed or o.must_precede(mine) for o in others):
        return False
    taken = mine.consumed & mine.free.keys()
    return not taken or (taken <= own and not any(v in o.free for v in taken for o in others))
