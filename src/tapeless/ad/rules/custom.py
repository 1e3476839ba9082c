"""Functions with derivatives of their own: `tp.custom_vjp` and `tp.custom_jvp`.

While a transform traces, a call of such a function is one opaque statement (`Library("custom")`), so that passes leave
it whole; forward and reverse mode then put the user's rule in its place. What no derivative was taken of is put in as the
function itself before the program leaves the transform. Values of outside that function or rules use are arguments
like the others, without adjoints.

Note [The other mode]
A rule for adjoints is linear in them, as one for tangents is: its transpose, taken by reverse mode of the rule itself, serves the
other mode. A rule that is not linear (a clipped adjoint) has no transpose; what it gives then depends on the point at
which it was taken, and that is refused.

Note [Rules that call their function]
`fwd` often calls the function that it belongs to. Such a call refers to the rule that is being made, so that second
derivatives use the rule again. What the rule uses of outside is known only at its end: `complete` adds it then.
"""

from __future__ import annotations

import itertools
import weakref
from collections.abc import Callable, Sequence
from dataclasses import dataclass

from tapeless.ad.emit import differentiable
from tapeless.ad.forward import Forward
from tapeless.ad.reverse import Back, Reverse, vjp_body
from tapeless.ad.transform import checked, prepared
from tapeless.ir.builder import Builder
from tapeless.ir.core import Apply, Body, Lambda, Library, Stm
from tapeless.ir.types import Atom, Type, Var
from tapeless.ir.walk import Substitution, apply_lambda, free_in_lambda, map_exp, map_regions
from tapeless.ops.library import ANY, LIBRARY, Attrs, LibraryOp
from tapeless.passes.tidy.dce import live_part

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


RULES: weakref.WeakValueDictionary[int, Rule] = weakref.WeakValueDictionary()  # of traces that are still going on


def new_number() -> int:
    """Of a rule to come."""
    return next(_numbers)


def call(b: Builder, number: int, args: Sequence[Atom], results: Sequence[Type]) -> tuple[Var, ...]:
    """A statement that calls the function of this rule."""
    rule = RULES.get(number)
    vars = [Var("c", t) for t in results]
    return b.bind(vars, Library("custom", (*args, *(rule.outside if rule else ())), (("rule", number),)))


def complete(number: int, function: Lambda, lams: Sequence[Lambda | None]) -> Rule:
    """The rule of this number: lambdas for the way forward, backward and for tangents. It is there as long as somebody holds
    it.
    """
    outside = free_of([function, *lams])
    arguments = len(function.params)

    def on_body(body: Body) -> Body:
        return Body(tuple(map(on_stm, body.stms)), body.results)

    def on_stm(s: Stm) -> Stm:
        if isinstance(s.exp, Library) and s.exp.attrs == (("rule", number),):
            return Stm(s.vars, Library("custom", (*s.exp.args, *outside), s.exp.attrs), s.span)
        return Stm(s.vars, map_regions(s.exp, on_body), s.span)

    forward, backward, tangent = (
        None if lam is None else closed(Lambda(lam.params, on_body(lam.body)), outside) for lam in lams
    )
    rule = RULES[number] = Rule(closed(function, outside), arguments, forward, backward, tangent, outside)
    return rule


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
    if number not in RULES:
        raise NotImplementedError("a rule cannot take derivatives of the function that it belongs to")
    return RULES[number]


def bind_results(b: Builder, vars: Sequence[Var], values: Sequence[Atom]) -> None:
    """Other names for values."""
    for v, value in zip(vars, values, strict=True):
        b.alias(v, value)


# -- derivatives


def _has_rule(rule: Rule) -> None:
    if rule.backward is None and rule.tangent is None:
        raise NotImplementedError("a rule that calls its function with other constants has no derivatives this high")


def jvp_custom(forward: Forward, stm: Stm, exp: Library) -> None:
    rule = rule_of(exp)
    args, outside = exp.args[: rule.arguments], exp.args[rule.arguments :]
    if not any(forward.active(args)):
        forward.b.add(stm)
        return
    _has_rule(rule)
    moving = [forward.full_tangent(a) for a in args if differentiable(a.type)]
    count = len(stm.vars)
    residuals: Sequence[Atom] = ()
    if rule.forward is not None:
        found = forward.b.inline(rule.forward, [*args, *outside])
        bind_results(forward.b, stm.vars, found[:count])
        residuals = found[count:]
    elif forward.lanes:
        forward.b.add(stm)

    def one(lane: Callable[[Atom], Atom]) -> list[Atom | None]:
        if rule.backward is not None:
            types = [v.type for v in stm.vars if differentiable(v.type)]
            return _transpose(forward.b, rule.backward, residuals, types, outside, [*map(lane, moving)], "vjp")
        assert rule.tangent is not None
        found = forward.b.inline(rule.tangent, [*args, *map(lane, moving), *outside])
        if not forward.lanes:
            bind_results(forward.b, stm.vars, found[:count])
        return list(found[count:])

    tangents = iter(forward.by_lane(one))
    for v in stm.vars:
        if differentiable(v.type):
            forward.set(v, next(tangents))


def _transpose(
    b: Builder,
    lam: Lambda,
    before: Sequence[Atom],
    types: Sequence[Type],
    outside: Sequence[Atom],
    seeds: Sequence[Atom | None],
    kind: str,
) -> list[Atom | None]:
    """Note [The other mode]. `before` are what a rule takes before those arguments, of `types`, that it is linear in."""
    points = [Var("point", t) for t in types]
    body = prepared(Lambda(tuple(points), apply_lambda(lam, [*before, *points, *outside]))).body
    inner = Builder(b.span)
    _, adjoints = vjp_body(inner, body, points, seeds)
    checked(inner.stms)
    found = [a for a in adjoints if a is not None]
    made, _ = live_part(Body(tuple(inner.stms), tuple(found)))
    if any(p in free_in_lambda(Lambda((), made)) for p in points):
        raise NotImplementedError(
            f"the rule of tp.custom_{kind} is not linear in its {'adjoints' if kind == 'vjp' else 'tangents'}, "
            f"so it does not serve {'forward' if kind == 'vjp' else 'reverse'} mode"
        )
    for s in made.stms:
        b.add(s)
    return list(adjoints)


def vjp_custom(reverse: Reverse, stm: Stm, exp: Library) -> Back:
    rule = rule_of(exp)
    args, outside = exp.args[: rule.arguments], exp.args[rule.arguments :]
    count = len(stm.vars)
    if not any(reverse.active(v) for v in stm.vars):
        reverse.b.add(stm)
        return lambda: None
    _has_rule(rule)
    if rule.backward is None:
        return _transposed(reverse, stm, rule, args, outside)
    assert rule.forward is not None
    found = reverse.b.inline(rule.forward, [*args, *outside])
    bind_results(reverse.b, stm.vars, found[:count])
    residuals = found[count:]
    backward = rule.backward

    def back() -> None:
        adjs = [reverse.adjoints.take(v) for v in stm.vars]
        if all(adj is None for adj in adjs):
            return
        given = [
            reverse.emit.zero(v.type) if adj is None else adj
            for v, adj in zip(stm.vars, adjs, strict=True)
            if differentiable(v.type)
        ]
        adjoints = iter(reverse.b.inline(backward, [*residuals, *given, *outside]))
        for a in args:
            if differentiable(a.type):
                reverse.add(a, next(adjoints))

    return back


def _transposed(reverse: Reverse, stm: Stm, rule: Rule, args: Sequence[Atom], outside: Sequence[Atom]) -> Back:
    """The adjoint of a rule for tangents, which is linear in them."""
    assert rule.tangent is not None
    reverse.b.add(stm)
    tangent = rule.tangent

    def back() -> None:
        adjs = [reverse.adjoints.take(v) for v in stm.vars]
        if all(adj is None for adj in adjs):
            return
        moving = [a for a in args if differentiable(a.type)]
        seeds: list[Atom | None] = [None] * len(stm.vars)
        seeds += [adj for v, adj in zip(stm.vars, adjs, strict=True) if differentiable(v.type)]
        adjoints = _transpose(reverse.b, tangent, args, [a.type for a in moving], outside, seeds, "jvp")
        for a, adj in zip(moving, adjoints, strict=True):
            reverse.add(a, adj)

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
