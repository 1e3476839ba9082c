"""Functions with derivatives of their own: `tp.custom_vjp` and `tp.custom_jvp`.

While a transform traces, a call of such a function is one statement, so that passes leave it whole; forward and reverse
mode then put the user's rule in its place (`Rule` in `ir.core`). Values of outside that function or rules use are
arguments like the others, without adjoints.

Note [The other mode]
A rule for adjoints is linear in them, as one for tangents is: its transpose, taken by reverse mode of the rule itself,
serves the other mode. A rule that is not linear (a clipped adjoint) has no transpose; what it gives then depends on the
point at which it was taken, and that is refused.

Note [Rules that call their function]
`fwd` often calls the function that it belongs to. Such a call names the function whose rule is being made, so that
second derivatives use the rule again. What the rule uses of outside is known only at its end: `complete` adds it then.
"""

from __future__ import annotations

from collections.abc import Callable, Sequence
from dataclasses import dataclass, replace

from tapeless.ad.forward import Forward
from tapeless.ad.reverse import Back, Reverse, vjp_body
from tapeless.ad.transform import checked, prepared
from tapeless.ir.builder import Builder
from tapeless.ir.calls import Functions, Outside, closed, outside_of
from tapeless.ir.core import Body, Call, Function, Lambda, Rule, Stm
from tapeless.ir.effects import has_effects
from tapeless.ir.types import Atom, Type, Var
from tapeless.ir.walk import free_in_lambda, in_regions
from tapeless.ops.emit import differentiable
from tapeless.passes.tidy.dce import live_part


def complete(
    functions: Functions,
    name: str,
    function: Lambda,
    forward: Lambda | None,
    backward: Lambda | None,
    tangent: Lambda | None,
    inverse: Lambda | None = None,
    open: bool = False,
) -> Outside:
    """Adds the function of this name with its rule, given as lambdas; what they use of outside."""
    lams = {"forward": forward, "backward": backward, "tangent": tangent, "inverse": inverse}
    given = {word: lam for word, lam in lams.items() if lam is not None}
    outside = outside_of([function, *given.values()])

    def on_body(body: Body) -> Body:
        return Body(tuple(map(on_stm, body.stms)), body.results)

    def on_stm(s: Stm) -> Stm:
        if isinstance(s.exp, Call) and s.exp.function == name:
            return Stm(s.vars, replace(s.exp, args=outside.around(s.exp.args)), s.span)
        return in_regions(s, on_body)

    names = {word: functions.reserve(f"{name}.{word}") for word in given}
    for word, lam in given.items():
        functions.add(closed(names[word], Lambda(lam.params, on_body(lam.body)), outside))
    functions.add(closed(name, function, outside, Rule(len(function.params), **names, open=open)))
    return outside


def call(b: Builder, name: str, args: Sequence[Atom], types: Sequence[Type] | None = None) -> tuple[Var, ...]:
    """Calls a function with a rule; with `types` of its results, if the rule is still being made."""
    effects = types is not None or any(has_effects(f.body) for f in _parts(b.functions, name))
    return b.call(name, args, effects, types)


def _parts(functions: Functions, name: str) -> list[Function]:
    """A function and its rule: what either tests is tested."""
    f = functions[name]
    assert f.rule is not None
    return [f, *(functions[part] for part in f.rule.functions)]


@dataclass(frozen=True)
class _Called:
    """A function at a call: its rule, and what each kind of its arguments is there."""

    rule: Rule
    sizes: tuple[Atom, ...]
    args: tuple[Atom, ...]
    outside: tuple[Atom, ...]

    effects: bool

    def run(self, b: Builder, name: str, args: Sequence[Atom]) -> tuple[Atom, ...]:
        """A part of the rule for these arguments; its results."""
        return b.inline_call(name, [*self.sizes, *args, *self.outside], self.effects)


def _called(exp: Call, f: Function, rule: Rule) -> _Called:
    if not rule.backward and not rule.tangent:
        raise NotImplementedError("a rule that calls its function with other constants has no derivatives this high")
    start = len(f.sizes)
    end = start + rule.arguments
    return _Called(rule, exp.args[:start], exp.args[start:end], exp.args[end:], exp.effects)


def bind_results(b: Builder, vars: Sequence[Var], values: Sequence[Atom]) -> None:
    """Other names for values."""
    for v, value in zip(vars, values, strict=True):
        b.alias(v, value)


# -- derivatives


def jvp_custom(forward: Forward, stm: Stm, exp: Call, f: Function, rule: Rule) -> None:
    b = forward.b
    called = _called(exp, f, rule)
    moving = [forward.full_tangent(a) for a in called.args if differentiable(a.type)]
    count = len(stm.vars)
    residuals: Sequence[Atom] = ()
    if not rule.tangent:
        found = called.run(b, rule.forward, called.args)
        bind_results(b, stm.vars, found[:count])
        residuals = found[count:]
    elif forward.lanes:
        b.add(stm)

    def one(lane: Callable[[Atom], Atom]) -> list[Atom | None]:
        if not rule.tangent:
            types = [v.type for v in stm.vars if differentiable(v.type)]
            still = [forward.tangent(a) is None for a in called.args if differentiable(a.type)]
            seeds = [None if s else lane(t) for s, t in zip(still, moving, strict=True)]  # what is still needs no slope
            return _transpose(b, rule.backward, called, residuals, types, seeds, "vjp")
        found = called.run(b, rule.tangent, [*called.args, *map(lane, moving)])
        if not forward.lanes:
            bind_results(b, stm.vars, found[:count])
        return list(found[count:])

    tangents = iter(forward.by_lane(one))
    for v in stm.vars:
        if differentiable(v.type):
            forward.set(v, next(tangents))


def _transpose(
    b: Builder,
    name: str,
    called: _Called,
    before: Sequence[Atom],
    types: Sequence[Type],
    seeds: Sequence[Atom | None],
    kind: str,
) -> list[Atom | None]:
    """Note [The other mode]. `before` are what a rule takes before those arguments, of `types`, that it is linear in."""
    points = [Var("point", t) for t in types]
    inner = Builder(b.span, b.functions)
    results = called.run(inner, name, [*before, *points])
    seeded = [(result, seed) for result, seed in zip(results, seeds, strict=True) if seed is not None]
    needed, _ = live_part(Body(tuple(inner.stms), tuple(result for result, _ in seeded)))
    body = prepared(Lambda(tuple(points), needed), b.functions).body
    inner = Builder(b.span, b.functions)
    _, adjoints = vjp_body(inner, body, points, [seed for _, seed in seeded])
    checked(inner.stms, b.functions)
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


def vjp_custom(reverse: Reverse, stm: Stm, exp: Call, f: Function, rule: Rule) -> Back:
    b = reverse.b
    called = _called(exp, f, rule)
    if not rule.backward:
        return _transposed(reverse, stm, called)
    count = len(stm.vars)
    found = called.run(b, rule.forward, called.args)
    bind_results(b, stm.vars, found[:count])
    residuals = found[count:]

    def back() -> None:
        adjs = [reverse.adjoints.take(v) for v in stm.vars]
        if all(adj is None for adj in adjs):
            return
        given = [
            reverse.emit.zero(v.type) if adj is None else adj
            for v, adj in zip(stm.vars, adjs, strict=True)
            if differentiable(v.type)
        ]
        inner = Builder(b.span, b.functions)
        found = called.run(inner, rule.backward, [*residuals, *given])
        moving = [a for a in called.args if differentiable(a.type)]
        wanted = [(a, adj) for a, adj in zip(moving, found, strict=True) if reverse.active(a)]
        made, _ = live_part(Body(tuple(inner.stms), tuple(adj for _, adj in wanted)))
        for s in made.stms:  # without the adjoints that nobody wants: they would be differentiated again
            b.add(s)
        for a, adj in wanted:
            reverse.add(a, adj)

    return back


def _transposed(reverse: Reverse, stm: Stm, called: _Called) -> Back:
    """The adjoint of a rule for tangents, which is linear in them."""
    reverse.b.add(stm)

    def back() -> None:
        adjs = [reverse.adjoints.take(v) for v in stm.vars]
        if all(adj is None for adj in adjs):
            return
        moving = [a for a in called.args if differentiable(a.type)]
        seeds: list[Atom | None] = [None] * len(stm.vars)
        seeds += [adj for v, adj in zip(stm.vars, adjs, strict=True) if differentiable(v.type)]
        types = [a.type for a in moving]
        adjoints = _transpose(reverse.b, called.rule.tangent, called, called.args, types, seeds, "jvp")
        for a, adj in zip(moving, adjoints, strict=True):
            reverse.add(a, adj)

    return back
