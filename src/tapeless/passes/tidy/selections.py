"""When a branch becomes a selection: `may_run_both`.

Note [Branches as selections]
A branch of a few operations is cheaper when both arms run and a `select` picks. Every row of the ops table is total, so
the value is right, but reverse differentiation multiplies the partials of the arm not taken by zero, and a partial may
be infinite. Before differentiation (`speculate=False`) only operations with bounded partials are therefore run
unasked: sums, selections, conversions, and whatever has no derivative.
For the same reason only the last time is a product with 0 taken for 0 without a look at it (`plain_guard`).
"""

from __future__ import annotations

from collections.abc import Sequence

from tapeless.ir.core import Apply, Stm
from tapeless.ir.types import Var
from tapeless.ops.table import TABLE

SELECT_COST = 8  # operations that may run in vain to save a branch


def may_run_both(stms: Sequence[Stm], vars: Sequence[Var], speculate: bool) -> bool:
    """The statements of both arms, for these results. Note [Branches as selections]"""
    if len(stms) > SELECT_COST or not all(v.type.is_scalar for v in vars):
        return False
    cost = len(vars)
    for stm in stms:
        if not isinstance(stm.exp, Apply) or not (speculate or _is_bounded(stm.exp, stm.vars[0])):
            return False
        cost += TABLE[stm.exp.op].cost
    return cost <= SELECT_COST


def _is_bounded(exp: Apply, var: Var) -> bool:
    """Whether its partials are numbers, or those of the operand that it picks."""
    dtype = var.type.dtype
    return TABLE[exp.op].linear or exp.op == "select" or not (dtype.is_float or dtype.is_complex)
