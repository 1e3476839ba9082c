"""Calls of functions: their derivatives are functions of the program too, made once for each pattern of arguments that matter.

Note [Derived functions]
`f.jvp` takes the arguments of f and tangents of those that vary; it gives the results of f and tangents of those that vary then. `f.vjp` takes the
arguments and adjoints of results; it gives adjoints of the arguments that are wanted. It runs f again first, silently: entering a function
backwards is like entering any other scope.
"""

from __future__ import annotations

from collections.abc import Sequence

from tapeless.ad.emit import differentiable
from tapeless.ad.forward import Forward, jvp_body, tangent_of
from tapeless.ad.reverse import Back, Reverse, adjoint_of, nothing, vjp_body
from tapeless.ad.rules.custom import bind_results, jvp_custom, vjp_custom
from tapeless.ad.transform import checked, prepared
from tapeless.ir.builder import Builder
from tapeless.ir.calls import Derived, Functions, operands_of
from tapeless.ir.core import Body, Call, Function, Lambda, Stm
from tapeless.ir.quiet import quiet
from tapeless.ir.types import Atom, Dim, Type, Var
from tapeless.ir.walk import refresh_lambda
from tapeless.passes.analysis.facts import has_effects


def _function(functions: Functions, exp: Call) -> Function:
    if exp.function not in functions:
        raise NotImplementedError("a rule cannot take derivatives of the function that it belongs to")
    return functions[exp.function]


# -- forwards


@tangent_of(Call)
def jvp_call(forward: Forward, stm: Stm, exp: Call) -> None:
    b = forward.b
    f = _function(b.functions, exp)
    active = forward.active(exp.args)
    if not any(active):
        b.add(stm)
        return
    if f.rule is not None:
        jvp_custom(forward, stm, exp, f, f.rule)
        return
    lanes = [d for d in forward.lanes if isinstance(d, Var)]
    derived = _pushed(b, f, exp.effects, tuple(active), forward)
    tangents = [forward.full_tangent(a) for a, moves in zip(exp.args, active, strict=True) if moves]
    count = len(stm.vars)
    found = b.call(derived.name, [*lanes, *exp.args, *tangents], derived.effects)
    bind_results(b, stm.vars, found[:count])
    made = iter(found[count:])
    for v, given in zip(stm.vars, derived.gives, strict=True):
        forward.set(v, next(made) if given else None)


def _pushed(b: Builder, f: Function, effects: bool, active: tuple[bool, ...], forward: Forward) -> Derived:
    shape = tuple(None if isinstance(d, Var) else d for d in forward.lanes)
    key = ("jvp", f.name, effects, active, shape, b.again, forward.guarded)
    known = b.functions.derived.get(key)
    if known is not None:
        return known
    sizes, params, body = _copy(f, effects, b.functions)
    lanes: list[Dim] = [Var(d.name, d.type) if isinstance(d, Var) else d for d in forward.lanes]
    moving = [p for p, moves in zip((*sizes, *params), active, strict=True) if moves]
    tangents = {p: Var(f"{p.name}_t", Type(p.type.dtype, (*p.type.shape, *lanes))) for p in moving}
    inner = Builder(b.span, b.functions)
    inner.again = b.again
    results, found = jvp_body(inner, body, dict(tangents), tuple(lanes), forward.guarded)
    gives = tuple(t is not None for t in found)
    all_results = (*results, *(t for t in found if t is not None))
    named = [d for d in lanes if isinstance(d, Var)]
    return _added(b, key, f"{f.name}.jvp", (*named, *sizes), (*params, *tangents.values()), inner, all_results, gives)


# -- backwards


@adjoint_of(Call)
def vjp_call(reverse: Reverse, stm: Stm, exp: Call) -> Back:
    f = _function(reverse.b.functions, exp)
    if not any(reverse.active(v) for v in stm.vars):
        reverse.b.add(stm)
        return nothing
    if f.rule is not None:
        return vjp_custom(reverse, stm, exp, f, f.rule)
    reverse.b.add(stm)
    active = tuple(reverse.active(a) and differentiable(a.type) for a in exp.args)

    def back() -> None:
        adjs = [reverse.adjoints.take(v) if reverse.active(v) else None for v in stm.vars]
        seeded = tuple(adj is not None for adj in adjs)
        if not any(seeded):
            return
        derived = _pulled(reverse, f, active, seeded)
        args = [*exp.args, *(adj for adj in adjs if adj is not None)]
        found = iter(reverse.b.call(derived.name, args, derived.effects))
        wanted = [a for a, moves in zip(exp.args, active, strict=True) if moves]
        for a, given in zip(wanted, derived.gives, strict=True):
            if given:
                reverse.add(a, next(found))

    return back


def _pulled(reverse: Reverse, f: Function, active: tuple[bool, ...], seeded: tuple[bool, ...]) -> Derived:
    b, scope = reverse.b, reverse.scope
    key = ("vjp", f.name, active, seeded, b.again, scope.policy, scope.debug_nans)
    known = b.functions.derived.get(key)
    if known is not None:
        return known
    sizes, params, body = _copy(f, False, b.functions)
    wrt = [p for p, moves in zip((*sizes, *params), active, strict=True) if moves]
    seeds = [Var("adj", r.type) if given else None for r, given in zip(body.results, seeded, strict=True)]
    inner = Builder(b.span, b.functions)
    inner.again = b.again
    _, adjoints = vjp_body(inner, body, wrt, seeds, scope.debug_nans, scope.policy, not b.again)
    gives = tuple(a is not None for a in adjoints)
    results = tuple(a for a in adjoints if a is not None)
    given = tuple(s for s in seeds if s is not None)
    return _added(b, key, f"{f.name}.vjp", sizes, (*params, *given), inner, results, gives)


# -- both


def _copy(f: Function, effects: bool, functions: Functions) -> tuple[tuple[Var, ...], tuple[Var, ...], Body]:
    """Sizes, parameters and body of a function with names of their own, ready for differentiation."""
    lam = refresh_lambda(Lambda(operands_of(f), f.body if effects else quiet(f.body)))
    count = len(f.sizes)
    return lam.params[:count], lam.params[count:], prepared(lam, functions).body


def _added(
    b: Builder,
    key: tuple[object, ...],
    name: str,
    sizes: tuple[Var, ...],
    params: Sequence[Var],
    inner: Builder,
    results: tuple[Atom, ...],
    gives: tuple[bool, ...],
) -> Derived:
    checked(inner.stms, b.functions)
    made = Function(b.functions.reserve(name), sizes, tuple(params), Body(tuple(inner.stms), results))
    b.functions.add(made)
    derived = b.functions.derived[key] = Derived(made.name, has_effects(made.body), gives)
    return derived
