"""What is known of the operators of reductions, scans and histograms."""

from __future__ import annotations

import math

from tapeless.ir.core import Apply, Lambda, Reduction, WithRegions
from tapeless.ir.types import Atom, Const, Dim, one_of
from tapeless.ops.table import TABLE

FEW = 16  # factors: multiplied one by one they cost less than divisions
EXTREMA = frozenset(name for name, row in TABLE.items() if row.extremum)


def single_row(reduction: Reduction) -> str:
    """The row of the ops table that an operator on two numbers is, or nothing."""
    op = reduction.op
    if len(op.params) != 2 or len(op.body.stms) != 1 or op.body.results != op.body.stms[0].vars:
        return ""
    exp = op.body.stms[0].exp
    if not isinstance(exp, Apply) or len(exp.args) != 2 or exp.args not in (op.params, op.params[::-1]):
        return ""
    if exp.args != op.params and not TABLE[exp.op].commutative:
        return ""
    return exp.op


def is_sum(reduction: Reduction) -> bool:
    return single_row(reduction) == "add"


def is_product(reduction: Reduction) -> bool:
    return single_row(reduction) == "mul"


def is_infinite(start: Atom) -> bool:
    """Whether an extremum that starts with it has it only where no element beats it."""
    return isinstance(start, Const) and math.isinf(start.value.real)


def has_inverse(operator: Reduction, width: Dim, lam: Lambda) -> bool:
    """Whether a reduction or histogram may go back by division: Note [Other factors] in `ad.rules.reverse_products`."""
    start = operator.neutral[0]
    if not is_product(operator) or not start.type.dtype.is_float or start != one_of(start.type.dtype):
        return False
    few = isinstance(width, int) and width <= FEW
    return not few and not any(isinstance(s.exp, WithRegions) for s in lam.body.stms)
