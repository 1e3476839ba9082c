"""Calls of functions: their derivatives are functions of the program too, made once for each pattern of arguments that
matter.

Note [Derived functions]
`f.jvp` takes the arguments of f and tangents of those that vary; it gives the results of f and tangents of those that
vary then. Backwards there are two: `f.forward` gives the results, and what is worth keeping for `f.vjp` (Note [Kept
values] in `ad.kept_values`). That takes the arguments, what was kept and adjoints of results; it gives adjoints of the
arguments that are wanted. It runs f again first, silently: entering a function backwards is like entering any other
scope.
"""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass, replace
from functools import partial

from tapeless.ad.activity import useful, varied
from tapeless.ad.forward import Forward, jvp_body, tangent_of
from tapeless.ad.kept_values import Kept, Resume, again, forwards, keeps
from tapeless.ad.reverse import Back, Reverse, adjoint_of, nothing, ready, vjp_body
from tapeless.ad.rules.custom import bind_results, jvp_custom, vjp_custom
from tapeless.ad.transform import checked, prepared
from tapeless.ir.builder import Builder
from tapeless.ir.calls import Functions, operands_of
from tapeless.ir.core import Body, Call, Function, Lambda, Stm
from tapeless.ir.effects import has_effects
from tapeless.ir.quiet import quiet
from tapeless.ir.types import Atom, Dim, Type, Var
from tapeless.ir.walk import refresh_lambda
from tapeless.ops.emit import differentiable


@dataclass(frozen=True)
class Derived:
    """A derived function, and which of the derivatives that it might give it gives: the others are zero."""

    name: str
    effects: bool
    gives: tuple[bool, ...]


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
    if f.rule is not None and not f.rule.open:
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
    if isinstance(known, Derived):
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


@dataclass(frozen=True)
class _Forward:
    """`f.forward`, which also gives what it keeps. Its body once more, over sizes and parameters, is what goes
    backwards.
    """

    name: str
    of: str
    effects: bool
    active: tuple[bool, ...]  # arguments that it is differentiated by
    wanted: tuple[bool, ...]  # results that matter
    lam: Lambda
    kept: Kept


@adjoint_of(Call)
def vjp_call(reverse: Reverse, stm: Stm, exp: Call) -> Back:
    b = reverse.b
    f = _function(b.functions, exp)
    wanted = tuple(reverse.active(v) for v in stm.vars)
    if not any(wanted):
        b.add(stm)
        return nothing
    if f.rule is not None:
        return vjp_custom(reverse, stm, exp, f, f.rule)
    forward, kept = _run(reverse, stm, exp, f, wanted)
    return _going_back(forward, reverse, stm, kept)


@keeps(Call)
def keep_call(reverse: Reverse, stm: Stm) -> tuple[list[Atom], Resume] | None:
    """A call with scalar results need not run again."""
    exp = stm.exp
    assert isinstance(exp, Call)
    f = _function(reverse.b.functions, exp)
    wanted = tuple(reverse.active(v) for v in stm.vars)
    if f.rule is not None or not any(wanted) or any(v.type.shape or not v.type.dtype.is_float for v in stm.vars):
        return None
    forward, kept = _run(reverse, stm, exp, f, wanted)
    return [*stm.vars, *kept], partial(_going_back, forward)


def _run(
    reverse: Reverse, stm: Stm, exp: Call, f: Function, wanted: tuple[bool, ...]
) -> tuple[_Forward, Sequence[Atom]]:
    """Calls `f.forward` in place of f; what it keeps."""
    active = tuple(reverse.active(a) and differentiable(a.type) for a in exp.args)
    forward = _forward(reverse, f, exp.effects, active, wanted)
    kept = [Var(v.name, v.type) for v in forward.kept.outside]
    reverse.b.bind([*stm.vars, *kept], Call(forward.name, exp.args, forward.effects))
    return forward, kept


def _going_back(forward: _Forward, reverse: Reverse, stm: Stm, kept: Sequence[Atom]) -> Back:
    exp, b = stm.exp, reverse.b
    assert isinstance(exp, Call)

    def back() -> None:
        adjs = [reverse.adjoints.take(v) if moves else None for v, moves in zip(stm.vars, forward.wanted, strict=True)]
        seeded = tuple(adj is not None for adj in adjs)
        if not any(seeded):
            return
        derived = _pulled(reverse, forward, seeded)
        args = [*exp.args, *kept, *(adj for adj in adjs if adj is not None)]
        found = iter(b.call(derived.name, args, derived.effects))
        moving = [a for a, moves in zip(exp.args, forward.active, strict=True) if moves]
        for a, given in zip(moving, derived.gives, strict=True):
            if given:
                reverse.add(a, next(found))

    return back


def _forward(
    reverse: Reverse, f: Function, effects: bool, active: tuple[bool, ...], wanted: tuple[bool, ...]
) -> _Forward:
    b, scope = reverse.b, reverse.scope
    key = ("forward", f.name, effects, active, wanted, b.again)
    known = b.functions.derived.get(key)
    if isinstance(known, _Forward):
        return known
    sizes, params, body = _copy(f, effects, b.functions)
    operands = (*sizes, *params)
    wrt = [p for p, moves in zip(operands, active, strict=True) if moves]
    results = [r for r, w in zip(body.results, wanted, strict=True) if w]
    body = ready(body, wrt, results, not b.again)
    inner = Builder(b.span, b.functions)
    inner.again = b.again
    kept = forwards(Reverse(inner, varied(body, wrt) & useful(body, results), replace(scope, accs={})), body)
    name = b.functions.reserve(f"{f.name}.forward")
    made = Function(name, sizes, params, Body(kept.stms, (*body.results, *kept.inside)))
    b.functions.add(made)
    lam = Lambda(operands, kept.body)
    forward = b.functions.derived[key] = _Forward(name, f.name, has_effects(made.body), active, wanted, lam, kept)
    return forward


def _pulled(reverse: Reverse, forward: _Forward, seeded: tuple[bool, ...]) -> Derived:
    b, scope = reverse.b, reverse.scope
    key = ("vjp", forward.name, seeded, scope.policy, scope.debug_nans)
    known = b.functions.derived.get(key)
    if isinstance(known, Derived):
        return known
    lam = refresh_lambda(forward.lam)
    names = {v: Var(v.name, v.type) for v in forward.kept.outside}
    wrt = [p for p, moves in zip(lam.params, forward.active, strict=True) if moves]
    seeds = [Var("adj", r.type) if given else None for r, given in zip(lam.body.results, seeded, strict=True)]
    inner = Builder(b.span, b.functions)
    inner.again = b.again
    kept = forward.kept.named(names)

    def run(reverse: Reverse, body: Body) -> list[tuple[Stm, Back]]:
        return again(reverse, kept, body)

    _, adjoints = vjp_body(inner, lam.body, wrt, seeds, scope.debug_nans, scope.policy, not b.again, run)
    gives = tuple(a is not None for a in adjoints)
    results = tuple(a for a in adjoints if a is not None)
    sizes = lam.params[: len(b.functions[forward.name].sizes)]
    given = [*lam.params[len(sizes) :], *names.values(), *(s for s in seeds if s is not None)]
    return _added(b, key, f"{forward.of}.vjp", sizes, given, inner, results, gives)


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
