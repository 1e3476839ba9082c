"""Derivatives of lambdas: what a transform of the user asks for.

Takes a lambda that may use variables of outside, which count as constants; emits into a builder. The lambda is cleaned
up and fused first, so that rules see few and large statements.
"""

from __future__ import annotations

from collections.abc import Sequence

from tapeless.ad.forward import jvp_body
from tapeless.ad.policy import DEFAULT, Policy
from tapeless.ad.reverse import vjp_body
from tapeless.ir.builder import Builder
from tapeless.ir.core import Function, Lambda
from tapeless.ir.types import Atom, Dim, Var
from tapeless.ir.walk import free_in_lambda, type_vars
from tapeless.passes.fuse import fuse
from tapeless.passes.own_cells import own_cells
from tapeless.passes.parallelise import parallelise_marked
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
    f = eliminate_checks(parallelise_marked(f))
    f = own_cells(whole_rows(optimize(f)))
    f = recognise_products(fuse(optimize(f)))
    return Lambda(lam.params, optimize(f).body)


def vjp(
    b: Builder,
    lam: Lambda,
    wrt: Sequence[Var],
    seeds: Sequence[Atom | None],
    debug_nans: bool = False,
    policy: Policy = DEFAULT,
) -> tuple[tuple[Atom, ...], tuple[Atom | None, ...]]:
    """Results of the lambda, and adjoints of some of its parameters for adjoints of its results (None: zero)."""
    return vjp_body(b, lam.body, wrt, seeds, debug_nans, policy)


def jvp(
    b: Builder, lam: Lambda, tangents: dict[Var, Atom], lanes: tuple[Dim, ...] = ()
) -> tuple[tuple[Atom, ...], tuple[Atom | None, ...]]:
    """Results of the lambda and their tangents, for tangents of some of its parameters (the others: zero)."""
    return jvp_body(b, lam.body, tangents, lanes)
