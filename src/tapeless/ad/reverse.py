"""Reverse mode: a body forwards, then its adjoint backwards, as Core again.

`vjp_body` emits both into a builder. Each statement gives, when it is emitted, what to do in the backward pass: rules
are in modules of their own, and register themselves with `adjoint_of`.

Note [Scopes]
Coming back into a region (a branch, a loop body, the lambda of a sweep), its forward part is run again from values that
are still there or were kept: there is no tape. (Costly scalars of a branch are kept: Note [Kept values].) What the
region adds to the adjoint of a scalar of outside is handed out as a result. Arrays of outside have an accumulator there
(`with_acc` around the region, or one further out), so that adding to an element costs an element. Everything that turns
out not to be needed is dead code.

Note [Adjoints by value]
In the scope where an array is made its adjoint is a value, and adding to an element is an update in place. A branch
that updates an array of the scope in place hands the adjoint through by value too: at that point nothing else has been
added to it, because every other use of the array comes before.

Note [Operands of choices]
`np.where(x > 0, x * np.log(x), 0.0)` computes both operands. The one that is not chosen has the adjoint 0, and infinite
factors on the way from it to `x` must not make NaN of that: products in such operands are guarded too.
"""

from __future__ import annotations

from collections.abc import Callable, Iterable, Mapping, Sequence
from dataclasses import dataclass, field, replace
from functools import partial
from typing import Any

from tapeless.ad.activity import useful, varied
from tapeless.ad.adjoints import Adjoints
from tapeless.ad.bodies import chosen_in, large_in, sizes_in, slopes_in
from tapeless.ad.policy import DEFAULT, Policy
from tapeless.ad.unfold import unfold
from tapeless.ir.builder import Builder
from tapeless.ir.core import (
    Apply,
    Axis,
    Body,
    For,
    Hist,
    If,
    Lambda,
    Scatter,
    Stm,
    Sweep,
    UpdateAcc,
    While,
    WithAcc,
)
from tapeless.ir.operands import regions
from tapeless.ir.quiet import quiet, unchecked
from tapeless.ir.rules import Rules
from tapeless.ir.types import Atom, Type, Var, i64
from tapeless.ir.walk import Substitution, all_stms, free_in_body, map_exp
from tapeless.ops.emit import Emit, differentiable, whole
from tapeless.symbolic.positions import Position

Back = Callable[[], None]
NOTHING: Mapping[Var, Var] = {}


def vjp_body(
    b: Builder,
    body: Body,
    wrt: Sequence[Var],
    seeds: Sequence[Atom | None],
    debug_nans: bool = False,
    policy: Policy = DEFAULT,
    last: bool = False,
    forwards: Callable[[Reverse, Body], list[tuple[Stm, Back]]] | None = None,
) -> tuple[tuple[Atom, ...], tuple[Atom | None, ...]]:
    """Emits the body and its adjoint for the adjoints `seeds` of its results; its results and the adjoints of `wrt`.

    last: what is emitted is not differentiated again. forwards: emits a body that is `ready` already, its own way.
    """
    wanted = [r for r, s in zip(body.results, seeds, strict=True) if s is not None]
    if forwards is None:
        body = ready(body, wrt, wanted, last and policy.memory is None)
    active = varied(body, wrt) & useful(body, wanted)
    budget: Atom | None = None
    if policy.memory is not None:
        budget = i64(policy.memory) if policy.room is None else Emit(b)("add", policy.room, policy.more)
    reverse = Reverse(b, active, Scope(policy, debug_nans, budget, once=True))
    reverse.sizes = sizes_in(body)
    intervals = slopes_in(body)
    reverse.tame, reverse.emit.level = intervals.tame, intervals.level
    backs = reverse.forward(body) if forwards is None else forwards(reverse, body)
    reverse.scope = replace(reverse.scope, once=False)
    for r, seed in zip(body.results, seeds, strict=True):
        if seed is not None and isinstance(r, Var):
            reverse.add(r, seed)
    reverse.backward(backs)
    return body.results, tuple(reverse.adjoint(v) for v in wrt)


def ready(body: Body, wrt: Sequence[Var], wanted: Sequence[Atom], last: bool) -> Body:
    """The body in the form that adjoints are taken of."""
    return unfold(body, varied(body, wrt) & useful(body, wanted), last)


RULES: Rules[type, Callable[[Reverse, Stm, Any], Back]] = Rules()  # for statements that have to do with the derivative
adjoint_of = RULES.of  # a rule emits the statement, and gives what to do in the backward pass
REGIONS = (Sweep, Hist, Scatter, For, While, If)


@dataclass(frozen=True)
class Scope:
    """Where a region stands, and what it may use."""

    policy: Policy = DEFAULT
    debug_nans: bool = False
    budget: Atom | None = None  # bytes for what is kept
    sharers: int = 0  # loops that share it
    nested: bool = False  # in a loop: fewer ways to choose from, because each is made anew in each way around
    swept: bool = False  # in a sweep
    looped: bool = False  # in the body of a loop
    once: bool = False  # what is emitted runs once, in the forward pass
    accs: Mapping[Var, Var] = field(default_factory=dict)  # arrays of outside: their accumulators
    trips: Mapping[int, Var] = field(default_factory=dict)  # by statement: how often a `while` goes around, if known

    def inside(self, accs: Mapping[Var, Var], swept: bool) -> Scope:
        accs = {**self.accs, **accs}
        return replace(self, swept=self.swept or swept, looped=False, once=False, accs=accs, trips={})


class Reverse:
    """Emits the code of a scope, forwards and backwards."""

    def __init__(self, b: Builder, active: set[Var], scope: Scope) -> None:
        self.b, self.emit, self._active, self.scope = b, Emit(b), active, scope
        self.adjoints = Adjoints(self.emit)
        self.there: set[Var] = set()  # arrays that are still there in the backward pass: Note [Results that are there]
        self.chosen: set[Var] = set()  # Note [Operands of choices]
        self.large: set[Var] = set()
        self.tame: set[Var] = set()  # rows at none of their singular points
        self.forms: dict[Var, Position] = {}  # of integers
        self.sizes: set[Var] = set()  # of arrays: never negative
        self.restored: dict[Var, Var] = {}  # arrays that have been put back on the way: Note [Put back]
        self.sums: dict[Var, Atom | None] = {}  # accumulators of the program: adjoints of the arrays they end as

    def inside(self, accs: Mapping[Var, Var], swept: bool = False) -> Reverse:
        """For a region, whose adjoints start from nothing. `swept`: that of a sweep."""
        return self._in(self.scope.inside(accs, swept))

    def _in(self, scope: Scope) -> Reverse:
        inner = Reverse(self.b, self._active, scope)
        inner.sums, inner.sizes, inner.forms = self.sums, self.sizes, self.forms
        inner.tame, inner.emit.level = self.tame, self.emit.level
        return inner

    def sharing(self) -> Reverse:
        """For loops inside a loop: they have half of what is left of its share."""
        scope = self.scope.inside({}, False)
        if scope.budget is None:
            return self
        budget = self.emit("floordiv", scope.budget, 2 * max(1, scope.sharers))
        return self._in(replace(scope, budget=budget, sharers=1, nested=True))

    def sharers(self, body: Body) -> int:
        """How many statements of a body keep something for the backward pass at a time: of a branch, those of one arm."""
        found = 0
        for s in body.stms:
            if isinstance(s.exp, (For, While)):
                found += self._involved(s)
            elif isinstance(s.exp, If):
                found += max(self.sharers(s.exp.then), self.sharers(s.exp.orelse))
            elif isinstance(s.exp, (Sweep, WithAcc)):
                found += any(self.sharers(r.body) for r in regions(s.exp))
        return found

    def fresh(self, lam: Lambda, loud: bool = False) -> Lambda:
        """A copy to be run again: other names, and nothing tested or printed a second time, unless `loud`. It is shown
        how far it is.
        """
        renamed = Substitution({}, refresh=True)
        copy = renamed.lam(lam if loud else Lambda(lam.params, quiet(lam.body, shown=True)))
        for known in (self._active, self.tame):
            known.update(new for old, new in renamed.map.items() if old in known and isinstance(new, Var))
        level = self.emit.level
        level.update({new: level[old] for old, new in renamed.map.items() if old in level and isinstance(new, Var)})
        return copy

    # -- adjoints

    def active(self, a: Atom) -> bool:
        return isinstance(a, Var) and a in self._active

    def activate(self, old: Var, new: Var) -> None:
        if old in self._active:
            self._active.add(new)

    def adjoint(self, v: Var) -> Atom | None:
        """None stands for zero."""
        return self.adjoints.get(v)

    def full_adjoint(self, v: Var) -> Atom:
        return self.adjoints.full(v)

    def add(self, v: Atom, value: Atom | None) -> None:
        if not isinstance(v, Var) or v not in self._active or value is None:
            return
        if self.scope.debug_nans:
            self._test(value)
        if v in self.scope.accs:
            self.b.effect(UpdateAcc(self.scope.accs[v], whole(v.type), value))
        else:
            self.adjoints.add(v, value)

    def add_scaled(self, v: Atom, factor: Atom, x: Atom) -> None:
        if self.active(v):
            self.add(v, self.emit.scale(factor, x))

    def add_at(self, v: Var, axes: Sequence[Axis], value: Atom) -> None:
        """Adds to the adjoint of an array at some of its cells."""
        if v not in self._active:
            return
        if self.scope.debug_nans:
            self._test(value)
        if v in self.scope.accs:
            self.b.effect(UpdateAcc(self.scope.accs[v], unchecked(axes), value))
        else:
            self.adjoints.add_at(v, axes, value)

    def _test(self, value: Atom) -> None:
        """For debug_nans: an adjoint that this line makes must be a number. Backwards, the first one that is not is
        the cause of all others.
        """
        self.emit.expect_numbers(value, "the adjoint of a value on this line is NaN")

    def free(self, body: Body, params: Iterable[Var]) -> list[Var]:
        """The active variables of outside that a region uses."""
        bound = set(params)
        return [v for v in free_in_body(body) if v in self._active and v not in bound and differentiable(v.type)]

    def with_accumulators(
        self,
        arrays: Sequence[Var],
        make: Callable[[dict[Var, Var]], Sequence[Atom]],
        accs: dict[Var, Var] | None = None,
    ) -> list[Atom]:
        """Runs `make` with accumulators for the adjoints of arrays that have none yet (`accs`, if they have names
        already); what it gives.
        """
        missing = [a for a in arrays if a not in self.scope.accs]
        if not missing:
            return list(make({}))
        starts = [self.full_adjoint(a) for a in missing]
        if accs is None:
            accs = {a: Var(f"{a.name}_acc", Type(a.type.dtype, a.type.shape, "add")) for a in missing}
        with self.b.region() as stms:
            results = tuple(make(accs))
        bound = {v for s in stms for v in s.vars}
        made = {r: Var("t", r.type) for r in results if isinstance(r, Var) and r in bound}
        lam = Lambda(tuple(accs.values()), Body(tuple(stms), tuple(made)))
        ends = [Var(f"{a.name}_adj", a.type) for a in missing]
        self.b.bind([*ends, *made.values()], WithAcc(tuple(s for s in starts if isinstance(s, Var)), lam, slopes=True))
        for a, end in zip(missing, ends, strict=True):
            self.adjoints.put(a, end)
        return [made.get(r, r) if isinstance(r, Var) else r for r in results]

    # -- statements

    def forward(self, body: Body, known: Mapping[Var, Var] = NOTHING) -> list[tuple[Stm, Back]]:
        """Emits the statements; what to do in the backward pass. The values of some may be `known`."""
        backs: list[tuple[Stm, Back]] = []
        self.look_at(body)
        scope = self.scope
        if scope.budget is not None:
            budget = self.emit("floordiv", scope.budget, max(1, scope.sharers))
            self.scope = replace(scope, budget=budget, sharers=self.sharers(body))
        for stm in body.stms:
            value = known.get(stm.vars[0]) if stm.vars else None
            run = self.stm if value is None else partial(self.known, value)
            with_span(self.b, stm, lambda stm=stm, run=run: backs.append((stm, run(stm))))  # type: ignore[misc]
        return backs

    def look_at(self, body: Body) -> None:
        """Before its statements are emitted: Note [Operands of choices]."""
        self.chosen |= chosen_in(body)
        for v in self.chosen:
            self.emit.level.pop(v, None)  # one that is not chosen may be NaN
        self.large |= large_in(body, self.tame) if self.chosen else set()

    def known(self, value: Var, stm: Stm) -> Back:
        """For a statement that need not run, because its value is there."""
        with self.b.region():
            back = self.stm(stm)
        self.b.alias(stm.vars[0], value)
        self.there.add(stm.vars[0])
        return back

    def backward(self, backs: Sequence[tuple[Stm, Back]]) -> None:
        for stm, back in reversed(backs):
            if not self.restored:
                with_span(self.b, stm, back)
                continue
            names = Substitution(dict(self.restored))
            with self.b.region() as stms:
                with_span(self.b, stm, back)
            for s in stms:
                self.b.add(names.stm(s))

    def stm(self, stm: Stm) -> Back:
        if isinstance(stm.exp, REGIONS) and not self._involved(stm):
            self.put(stm)
            return nothing
        return RULES[type(stm.exp)](self, stm, stm.exp)

    def put(self, stm: Stm) -> None:
        """Emits a statement as it is, but for updates of accumulators that have been made already."""
        for s in self.without_updates(Body((stm,), ())).stms:
            self.b.add(s)

    def without_updates(self, body: Body) -> Body:
        if not self.sums:
            return body
        stms: list[Stm] = []
        for s in body.stms:
            if isinstance(s.exp, UpdateAcc) and s.exp.acc in self.sums:
                continue
            if not isinstance(s.exp, Apply):
                new = map_exp(
                    s.exp, lambda a: a, self.without_updates, lambda x: Lambda(x.params, self.without_updates(x.body))
                )
                s = Stm(s.vars, new, s.span)
            stms.append(s)
        return Body(tuple(stms), body.results)

    def _involved(self, stm: Stm) -> bool:
        """Whether a statement with regions has anything to do with the derivative: by a result, or an accumulator."""
        return any(v in self._active for v in stm.vars) or self.accumulates(Body((stm,), ()))

    def accumulates(self, body: Body) -> bool:
        """Whether it adds to, or sets, an array that has an adjoint."""
        return any(isinstance(s.exp, UpdateAcc) and self.sums.get(s.exp.acc) is not None for s in all_stms(body))


def nothing() -> None:
    pass


def with_span(b: Builder, stm: Stm, run: Callable[[], None]) -> None:
    before = b.span
    b.span = stm.span if stm.span.line else before
    run()
    b.span = before
