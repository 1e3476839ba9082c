"""Functions with derivatives of their own: `tp.custom_vjp` and `tp.custom_jvp`.

While a transform traces, a call of such a function is one opaque statement (`Library("custom")`), so that passes leave
it whole; forward and reverse mode then put the user's rule in its place. What no derivative was taken of is put in as the
function itself before the program leaves the transform. Values of outside that function or rules use are arguments
like the others, without adjoints.
"""

from __future__ import annotations

import itertools
from collections.abc import Callable, Sequence
from dataclasses import dataclass
from typing import TYPE_CHECKING

from tapeless.ad.emit import differentiable
from tapeless.ir.builder import Builder
from tapeless.ir.core import Apply, Body, Lambda, Library, Stm
from tapeless.ir.types import Atom, Type, Var
from tapeless.ir.walk import Substitution, apply_lambda, free_in_lambda, map_exp
from tapeless.ops.library import ANY, LIBRARY, Attrs, LibraryOp

if TYPE_CHECKING:
    from tapeless.ad.forward import Forward
    from tapeless.ad.reverse import Back, Reverse

_numbers = itertools.count()


@dataclass(frozen=True)
class Rule:
    """Lambdas over the same first parameters: the arguments, then what is used of outside.

    forward:  also gives residuals, after the results
    backward: takes residuals and adjoints of the results, then what is used of outside; gives adjoints of the arguments
    tangent:  takes the arguments, their tangents, then what is used of outside; gives results and their tangents
    """

    function: Lambda
    arguments: int
    forward: Lambda | None = None
    backward: Lambda | None = None
    tangent: Lambda | None = None
    outside: tuple[Var, ...] = ()


RULES: dict[int, Rule] = {}


def call(b: Builder, rule: Rule, args: Sequence[Atom], results: Sequence[Type]) -> tuple[Var, ...]:
    """A statement that calls a function with a rule."""
    number = next(_numbers)
    RULES[number] = rule
    vars = [Var("c", t) for t in results]
    return b.bind(vars, Library("custom", (*args, *rule.outside), (("rule", number),)))


def closed(lam: Lambda, outside: Sequence[Var]) -> Lambda:
    """The lambda with what it uses of outside as further parameters."""
    fresh = [Var(v.name, v.type) for v in outside]
    renamed = Substitution(dict(zip(outside, fresh, strict=True)), refresh=True)
    params = tuple(renamed.bind(p) for p in lam.params)
    return Lambda((*params, *fresh), renamed.body(lam.body))


def free_of(lams: Sequence[Lambda | None]) -> tuple[Var, ...]:
    return tuple(dict.fromkeys(v for lam in lams if lam is not None for v in free_in_lambda(lam)))


def rule_of(exp: Library) -> Rule:
    number = exp.attr("rule")
    assert isinstance(number, int)
    return RULES[number]


def bind_results(b: Builder, vars: Sequence[Var], values: Sequence[Atom]) -> None:
    """Other names for values."""
    for v, value in zip(vars, values, strict=True):
        b.alias(v, value)


# -- derivatives


def jvp_custom(forward: Forward, stm: Stm, exp: Library) -> None:
    rule = rule_of(exp)
    args, outside = exp.args[: rule.arguments], exp.args[rule.arguments :]
    if not any(forward.active(args)):
        forward.b.add(stm)
        return
    if rule.tangent is None:
        raise NotImplementedError("a function with tp.custom_vjp has no forward derivative; give it tp.custom_jvp")
    moving = [forward.full_tangent(a) for a in args if differentiable(a.type)]
    count = len(stm.vars)
    tangent = rule.tangent

    def one(lane: Callable[[Atom], Atom]) -> list[Atom | None]:
        found = forward.b.inline(tangent, [*args, *map(lane, moving), *outside])
        if not forward.lanes:
            bind_results(forward.b, stm.vars, found[:count])
        return list(found[count:])

    if forward.lanes:
        forward.b.add(stm)
    tangents = iter(forward.by_lane(one))
    for v in stm.vars:
        if differentiable(v.type):
            forward.set(v, next(tangents))


def vjp_custom(reverse: Reverse, stm: Stm, exp: Library) -> Back:
    rule = rule_of(exp)
    args, outside = exp.args[: rule.arguments], exp.args[rule.arguments :]
    count = len(stm.vars)
    if not any(reverse.active(v) for v in stm.vars):
        reverse.b.add(stm)
        return lambda: None
    if rule.backward is None:
        return _transposed(reverse, stm, rule, args, outside)
    assert rule.forward is not None
    found = reverse.b.inline(rule.forward, [*args, *outside])
    bind_results(reverse.b, stm.vars, found[:count])
    residuals = found[count:]
    backward = rule.backward

    def back() -> None:
        bars = [reverse.adjoints.pop(v, None) for v in stm.vars]
        if all(bar is None for bar in bars):
            return
        given = [
            reverse.emit.zero(v.type) if bar is None else bar
            for v, bar in zip(stm.vars, bars, strict=True)
            if differentiable(v.type)
        ]
        adjoints = iter(reverse.b.inline(backward, [*residuals, *given, *outside]))
        for a in args:
            if differentiable(a.type):
                reverse.add(a, next(adjoints))

    return back


def _transposed(reverse: Reverse, stm: Stm, rule: Rule, args: Sequence[Atom], outside: Sequence[Atom]) -> Back:
    """The adjoint of a rule for tangents, which is linear in them."""
    from tapeless.ad.reverse import vjp_body

    assert rule.tangent is not None
    reverse.b.add(stm)
    tangent = rule.tangent

    def back() -> None:
        bars = [reverse.adjoints.pop(v, None) for v in stm.vars]
        if all(bar is None for bar in bars):
            return
        emit = reverse.emit
        moving = [a for a in args if differentiable(a.type)]
        zeros = [Var("zero", a.type) for a in moving]
        bind_results(reverse.b, zeros, [emit.zero(a.type) for a in moving])
        body = apply_lambda(tangent, [*args, *zeros, *outside])
        seeds: list[Atom | None] = [None] * len(stm.vars)
        seeds += [bar for v, bar in zip(stm.vars, bars, strict=True) if differentiable(v.type)]
        _, adjoints = vjp_body(reverse.b, body, zeros, seeds)
        for a, bar in zip(moving, adjoints, strict=True):
            reverse.add(a, bar)

    return back


# -- what is left


def inlined(body: Body) -> Body:
    """The functions themselves in place of calls that no derivative was taken of."""
    stms: list[Stm] = []
    for s in body.stms:
        if isinstance(s.exp, Library) and s.exp.name == "custom":
            b = Builder(s.span)
            found = b.inline(rule_of(s.exp).function, s.exp.args)
            bind_results(b, s.vars, found)
            stms.extend(inlined(Body(tuple(b.stms), ())).stms)
        elif isinstance(s.exp, Apply):
            stms.append(s)
        else:
            new = map_exp(s.exp, lambda a: a, inlined, lambda lam: Lambda(lam.params, inlined(lam.body)))
            stms.append(Stm(s.vars, new, s.span))
    return Body(tuple(stms), body.results)


def _result_types(types: Sequence[Type], attrs: Attrs) -> tuple[Type, ...]:
    number = attrs["rule"]
    assert isinstance(number, int)
    return RULES[number].function.result_types


def _evaluate(args: Sequence[object], attrs: Attrs) -> tuple[object, ...]:
    raise AssertionError("calls with rules of their own are inlined before they run")


LIBRARY["custom"] = LibraryOp("custom", ANY, _result_types, _evaluate, "that of the function")
