"""A lambda made ready for differentiation: cleaned up and fused, so that rules see few and large statements.

It may use variables of outside, which count as constants.
"""

from __future__ import annotations

from tapeless.ir.core import Function, Lambda
from tapeless.ir.walk import free_in_lambda, type_vars
from tapeless.passes.pipeline import PREPARING, Pipeline


def prepared(lam: Lambda) -> Lambda:
    """The same, in the form that derivatives are taken of."""
    outside = (*free_in_lambda(lam), *lam.params)
    sizes = dict.fromkeys(d for v in outside for d in type_vars(v.type))
    f = Function("region", tuple(sizes), tuple(v for v in outside if v not in sizes), lam.body)
    return Lambda(lam.params, Pipeline().run(PREPARING, f).body)
