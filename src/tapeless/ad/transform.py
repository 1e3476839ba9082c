"""A lambda made ready for differentiation: cleaned up and fused, so that rules see few and large statements.

It may use variables of outside, which count as constants.
"""

from __future__ import annotations

from tapeless.ir.core import Function, Lambda
from tapeless.ir.walk import free_in_lambda, type_vars
from tapeless.passes.fuse import fuse
from tapeless.passes.own_cells import own_cells
from tapeless.passes.parallelise import parallelise_derivable
from tapeless.passes.pipeline import optimize
from tapeless.passes.ranges import eliminate_checks
from tapeless.passes.recognise import recognise_products
from tapeless.passes.whole_rows import whole_rows


def prepared(lam: Lambda) -> Lambda:
    """The same, in the form that derivatives are taken of."""
    outside = (*free_in_lambda(lam), *lam.params)
    sizes = dict.fromkeys(d for v in outside for d in type_vars(v.type))
    f = Function("region", tuple(sizes), tuple(v for v in outside if v not in sizes), lam.body)
    f = optimize(f)
    f = eliminate_checks(parallelise_derivable(f))
    f = own_cells(whole_rows(optimize(f)))
    f = recognise_products(fuse(optimize(f)))
    return Lambda(lam.params, optimize(f).body)
