"""Statements that cost next to nothing, which may be made again instead of being kept."""

from __future__ import annotations

from tapeless.ir.core import Apply, Body, Broadcast, If, Index, Reshape, Stm, Transpose
from tapeless.ir.walk import all_stms

VIEWS = (Index, Transpose, Reshape, Broadcast)  # and single cells


def is_free(stm: Stm) -> bool:
    """A number or a view; a choice between numbers too."""
    if isinstance(stm.exp, If):
        inside = [s for s in all_stms(Body((stm,), ())) if s is not stm]
        return all(isinstance(s.exp, (Apply, Index)) for s in inside) and not any(v.type.shape for v in stm.vars)
    return isinstance(stm.exp, (Apply, *VIEWS))
