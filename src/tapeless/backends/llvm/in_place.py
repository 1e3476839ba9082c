"""Operations whose result goes over their own first operand.

Takes a block of Loop IR; gives the variables of its extrema that are stored where their first operand was loaded from.

Note [Extrema in place]
A cell that holds the least of what it has met is seldom written in the end. LLVM makes a masked store of a choice
between what the cell holds and something else, and cells that keep their value leave the cache as clean as it was. With
the processor's instruction for the extremum there is less to compute, but everything is written, which takes longer
where arrays do not fit into the nearest cache.
"""

from __future__ import annotations

from tapeless.ir.types import Atom, Var
from tapeless.lower.ir.loopir import Let, Load, Store
from tapeless.lower.ir.walk import Block
from tapeless.ops.op import Nan
from tapeless.ops.table import TABLE


def _looks_for_nan(op: str) -> bool:
    """Python's own extrema are a choice by one comparison anyway."""
    extremum = TABLE[op].extremum
    return extremum is not None and extremum.nan is not Nan.first_wins


def extrema_in_place(block: Block) -> frozenset[Var]:
    """Note [Extrema in place]."""
    extrema = [s for s in block if isinstance(s, Let) and _looks_for_nan(s.op)]
    if not extrema:
        return frozenset()
    defined = {s.var: s for s in block if isinstance(s, Let)}
    loads = {s.var: s for s in block if isinstance(s, Load)}
    stores = {s.value: s for s in block if isinstance(s, Store)}

    def is_over(let: Let) -> bool:
        first = let.args[0]
        load, store = loads.get(first) if isinstance(first, Var) else None, stores.get(let.var)
        return bool(load and store and load.buffer is store.buffer and same(load.index, store.index))

    def same(a: Atom, b: Atom) -> bool:
        if a == b:
            return True
        first, second = (defined.get(x) if isinstance(x, Var) else None for x in (a, b))
        if first is None or second is None or first.op != second.op:
            return False
        return all(map(same, first.args, second.args))

    return frozenset(s.var for s in extrema if is_over(s))
