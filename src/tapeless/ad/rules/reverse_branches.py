"""Reverse mode of branches: the arm that was taken, run again and backwards. The other one contributes nothing.

Note [Kept values]
Running an arm again costs the most where it divides or calls functions. Such scalars, and the slopes there, are results
of the branch in the forward pass, 0 where the other arm is taken, and are not computed again. Those that the backward pass
does not need are dead code.

Note [Branches in branches]
An arm that is run again holds other branches. One whose results the arm only hands on need not run again: its own backward pass
runs the arm that was taken. Else each level of a nest would hold a copy of all levels below, and a chain of `elif` would grow
with the square of its length.
"""

from __future__ import annotations

from dataclasses import dataclass, field

from tapeless.ad.reverse import Back, Reverse, adjoint_of, with_span
from tapeless.ir.core import Apply, Body, If, Lambda, Stm
from tapeless.ir.quiet import quiet
from tapeless.ir.types import Atom, Const, Var, zero_of
from tapeless.ir.walk import free_in_exp
from tapeless.ops.table import CHEAP, TABLE, unbounded
from tapeless.passes.analysis.places import roots_of


@dataclass
class Arm:
    """An arm forwards, with what it keeps: variables inside, and those they are results of the branch as."""

    body: Body  # to be run again
    stms: tuple[Stm, ...] = ()  # to be run forwards
    inside: list[Atom] = field(default_factory=list)
    outside: list[Var] = field(default_factory=list)
    values: dict[int, Atom] = field(default_factory=dict)  # by the number of the statement in `body`
    slopes: dict[int, dict[int, Atom]] = field(default_factory=dict)  # and by that of the operand

    def keep(self, value: Atom) -> Atom:
        """The value as it is seen outside."""
        if isinstance(value, Const):
            return value
        self.inside.append(value)
        self.outside.append(Var(value.name, value.type))
        return self.outside[-1]


@adjoint_of(If)
def vjp_if(reverse: Reverse, stm: Stm, exp: If) -> Back:
    then, orelse = (_forwards(reverse, arm) for arm in (exp.then, exp.orelse))
    results = (*exp.then.results, *then.inside, *(zero_of(v.type.dtype) for v in orelse.outside))
    others = (*exp.orelse.results, *(zero_of(v.type.dtype) for v in then.outside), *orelse.inside)
    new = If(exp.cond, Body(then.stms, results), Body(orelse.stms, others))
    reverse.put(Stm((*stm.vars, *then.outside, *orelse.outside), new, stm.span))
    return lambda: _back(reverse, stm, exp, then, orelse)


def _forwards(reverse: Reverse, body: Body) -> Arm:
    b, arm = reverse.b, Arm(quiet(body))
    with b.region() as stms:
        for s in body.stms:
            b.add(s)
        for k, s in enumerate(arm.body.stms):
            if not _worth_keeping(s):
                continue
            v, e = s.vars[0], s.exp
            assert isinstance(e, Apply)
            arm.values[k] = arm.keep(v)
            if reverse.active(v):
                slopes = {
                    n: reverse.emit.partial(e.op, n, v, e.args) for n, a in enumerate(e.args) if reverse.active(a)
                }
                arm.slopes[k] = {n: arm.keep(slope) for n, slope in slopes.items() if slope is not None}
    arm.stms = tuple(stms)
    return arm


def _worth_keeping(s: Stm) -> bool:
    if not isinstance(s.exp, Apply) or TABLE[s.exp.op].extremum or not s.vars[0].type.dtype.is_float:
        return False
    return TABLE[s.exp.op].cost > CHEAP and all(a.type.dtype.is_float for a in s.exp.args)


def _again(inner: Reverse, arm: Arm, body: Body) -> list[tuple[Stm, Back]]:
    """The arm forwards once more, with the values that were kept."""
    backs: list[tuple[Stm, Back]] = []

    def sloped(s: Stm, slopes: dict[int, Atom]) -> None:
        adj = inner.adjoints.take(s.vars[0])
        if adj is not None and isinstance(s.exp, Apply):
            guarded = unbounded(s.exp.op, s.exp.args)
            for n, slope in slopes.items():
                inner.add(s.exp.args[n], inner.emit.slope_times(slope, adj, guarded))

    read = {v for s in body.stms for v in free_in_exp(s.exp)}
    for k, s in enumerate(body.stms):
        if isinstance(s.exp, If) and _only_handed_on(inner, s, read):
            backs.append((s, lambda s=s, exp=s.exp: _back(inner, s, exp, Arm(exp.then), Arm(exp.orelse), fresh=False)))  # type: ignore[misc]
        elif k in arm.values:
            inner.b.bind(s.vars, Apply("identity", (arm.values[k],)))
            slopes = arm.slopes.get(k, {})
            backs.append((s, lambda s=s, slopes=slopes: sloped(s, slopes)))  # type: ignore[misc]
        else:
            with_span(inner.b, s, lambda s=s: backs.append((s, inner.stm(s))))  # type: ignore[misc]
    return backs


def _only_handed_on(inner: Reverse, stm: Stm, read: set[Var]) -> bool:
    """Note [Branches in branches]. One that adds to accumulators has effects."""
    if not read.isdisjoint(stm.vars) or not any(inner.active(v) for v in stm.vars):
        return False
    return not any(v.type.acc for v in free_in_exp(stm.exp))


def _back(reverse: Reverse, stm: Stm, exp: If, *given: Arm, fresh: bool = True) -> None:
    """`fresh`: the branch has run forwards, so that its names are taken."""
    adjs = [reverse.adjoints.take(v) for v in stm.vars]
    arms = [reverse.fresh(Lambda((), arm.body)).body if fresh else arm.body for arm in given]
    free = list(dict.fromkeys(v for arm in arms for v in reverse.free(arm, ())))
    handed = [
        v for v in free if v.type.shape and v not in reverse.scope.accs and _updated_by(v, arms)
    ]  # Note [Adjoints by value]
    scalars = [v for v in free if not v.type.shape]
    arrays = [v for v in free if v.type.shape and v not in handed]

    def arm_adjoint(arm: Body, kept: Arm, accs: dict[Var, Var]) -> Body:
        inner = reverse.inside(accs)
        with reverse.b.region() as stms:
            backs = _again(inner, kept, arm)
            for r, adj in zip(arm.results, adjs, strict=True):
                inner.add(r, adj)
            inner.backward(backs)
            results: list[Atom] = [inner.full_adjoint(v) for v in (*scalars, *handed)]
        return Body(tuple(stms), tuple(results))

    def both(accs: dict[Var, Var]) -> list[Atom]:
        then, orelse = (arm_adjoint(arm, kept, accs) for arm, kept in zip(arms, given, strict=True))
        vars = [Var(f"{v.name}_adj", v.type) for v in (*scalars, *handed)]
        return list(reverse.b.bind(vars, If(exp.cond, then, orelse)))

    adjoints = reverse.with_accumulators(arrays, both)
    for v, adj in zip((*scalars, *handed), adjoints, strict=True):
        reverse.add(v, adj)


def _updated_by(v: Var, arms: list[Body]) -> bool:
    """Whether an arm gives the array back, changed in place or as it is."""
    return any(root is v for arm in arms for root, _ in roots_of(arm, arm.results))
