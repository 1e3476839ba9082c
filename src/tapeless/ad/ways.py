"""Ways to run a loop forwards and back. A `Way` emits both; in between it has what the forward loop has kept.

`Kept` follows a plan: slots, logs, inverses, arrays that are still there. `Again` runs from the start for each
iteration. `Choice` holds two ways of which sizes at run time choose one.
"""

from __future__ import annotations

from abc import ABC, abstractmethod
from collections.abc import Callable, Mapping, Sequence
from dataclasses import replace
from typing import TYPE_CHECKING

from tapeless.ad.emit import whole
from tapeless.ad.iteration import Region, as_sweep, trips
from tapeless.ad.live import frozen
from tapeless.ad.plan import Plan
from tapeless.ad.sizes import bytes_of
from tapeless.ir.core import Apply, At, Body, For, Hist, If, Index, Lambda, Scatter, Stm, Update, While, WithAcc
from tapeless.ir.plans import KEPT, LIVE, RECOMPUTE, STORE, UNDO
from tapeless.ir.types import I64, Atom, Dim, Type, Var, atom_dim, dim_atom, i64
from tapeless.ir.walk import all_stms, refresh_lambda
from tapeless.passes.dce import live_part

if TYPE_CHECKING:
    from tapeless.ad.reverse import Reverse

Found = tuple[dict[int, Atom], dict[Var, Atom]]  # adjoints of the initial values, and of scalars of outside


class Way(ABC):
    """`active` are the numbers of the carried values with adjoints, `accs` the accumulators of the region."""

    def __init__(self, reverse: Reverse, stm: Stm, exp: For, region: Region, accs: dict[Var, Var]) -> None:
        self.reverse, self.stm, self.exp, self.region, self.accs = reverse, stm, exp, region, accs

    @property
    def active(self) -> list[int]:
        return list(self.region.ends)

    @property
    def scalars(self) -> list[Var]:
        return self.region.scalars

    @property
    def keeps(self) -> bool:
        """Whether the forward loop leaves anything for the way back."""
        return False

    @abstractmethod
    def kept_types(self) -> list[Type]:
        """Of one iteration."""

    def length(self) -> Dim:
        """How many of them are kept."""
        return trips(self.reverse, self.exp.bound)

    @property
    def steps(self) -> Atom:
        """How often the way back goes around."""
        return dim_atom(trips(self.reverse, self.exp.bound))

    @abstractmethod
    def forwards(self, vars: Sequence[Var], length: Dim | None = None) -> list[Var]:
        """Emits the loop, binding its results; what it keeps, `length` of each (all, unless said)."""

    @abstractmethod
    def backwards(self, kept: Sequence[Var], ends: Mapping[int, Atom], finals: Sequence[Var] = ()) -> Found:
        """Emits the way back. `finals`: the loop's results, where they have other names here."""

    def countdown(
        self,
        ends: Mapping[int, Atom],
        carried: Sequence[Var],
        inits: Sequence[Atom],
        iteration: Callable[[Var], Sequence[Atom]],
    ) -> tuple[Found, Sequence[Var]]:
        """The loop backwards. `iteration` emits one, given how many were before it, and gives the next values of `carried`;
        what these end as comes second.
        """
        b, emit, region = self.reverse.b, self.reverse.emit, self.region
        totals = [Var(f"{v.name}_bar", v.type) for v in region.scalars]
        step, count = Var("j", I64), len(region.ends)
        with b.region() as stms:
            nexts = iteration(step)
            found = region.live.results
            sums = [emit("add", t, s) for t, s in zip(totals, found[count:], strict=True)]
        params = (*region.ends.values(), *totals, *carried)
        starts = (*ends.values(), *(emit.zero(t.type) for t in totals), *inits)
        body = Body(tuple(stms), (*found[:count], *sums, *nexts))
        given = b.bind([Var(p.name, p.type) for p in params], For(step, self.steps, params, starts, body))
        adjoints: Found = (
            dict(zip(region.ends, given, strict=False)),
            dict(zip(region.scalars, given[count:], strict=False)),
        )
        return adjoints, given[count + len(totals) :]

    def _bind_index(self, step: Var) -> None:
        last = self.reverse.emit("sub", self.exp.bound, 1)
        self.reverse.b.bind([self.region.index], Apply("sub", (last, step)))


class Kept(Way):
    """By the plan."""

    def __init__(
        self,
        reverse: Reverse,
        stm: Stm,
        exp: For,
        region: Region,
        plan: Plan,
        accs: dict[Var, Var],
        text: str = "",
        strips: Sequence[Atom] = (),
    ) -> None:
        """`text` is what people read of the plan; `strips` the numbers of iterations in a strip, by level."""
        super().__init__(reverse, stm, exp, region, accs)
        self.plan, self.text, self.strips = plan, text or plan.text(), strips

    def inside(self, plain: Kept) -> Atom:
        """Bytes that the levels inside the first need: a state a strip, and what the plain loop keeps in the last one."""
        emit = self.reverse.emit
        last = emit("mul", self.strips[-1], bytes_of(emit, plain.kept_types()))
        between = emit("mul", self.strips[-1], emit("mul", bytes_of(emit, self.kept_types()), len(self.strips) - 1))
        return emit("add", last, between)

    @property
    def keeps(self) -> bool:
        return self.plan.keeps

    def kept_types(self) -> list[Type]:
        types = [p.type for p in self.plan.of(STORE)]
        types += [d.type for d in self.plan.decided]
        types += [r.type for p in self.plan.of(UNDO) for r in self.plan.records[p]]
        return types + [v.type for v, _ in self.plan.exports]

    def forwards(self, vars: Sequence[Var], length: Dim | None = None) -> list[Var]:
        reverse, b, plan = self.reverse, self.reverse.b, self.plan
        exp = replace(self.exp, body=reverse.without_updates(plan.body or self.exp.body), plan=self.text)
        stored, logged = plan.of(STORE), plan.of(UNDO)
        if not plan.keeps:
            b.bind(vars, exp)
            return []
        length = self.length() if length is None else length
        names = [*(p.name for p in stored), *("decisions" for _ in plan.decided)]
        names += [p.name for p in logged for _ in plan.records[p]]
        names += [v.name.removesuffix(KEPT) for v, _ in plan.exports]
        starts = [
            b.full((length, *t.shape), None, t.dtype, f"{name}{KEPT}")
            for name, t in zip(names, self.kept_types(), strict=True)
        ]
        params = [Var(s.name, s.type) for s in starts]
        with b.region() as stms:
            written: list[Var] = []
            for p, slot in zip(stored, params, strict=False):
                written.append(b.update(slot, (At(exp.index), *whole(p.type)), p))
            for s in exp.body.stms:
                b.add(s)
            records = [*plan.decided, *(r for p in logged for r in plan.records[p]), *(v for v, _ in plan.exports)]
            for r, slot in zip(records, params[len(stored) :], strict=True):
                written.append(b.update(slot, (At(exp.index), *whole(r.type)), r))
        new = Body(tuple(stms), (*exp.body.results, *written))
        ends = [Var(s.name, s.type) for s in starts]
        loop = replace(exp, params=(*exp.params, *params), inits=(*exp.inits, *starts), body=new)
        b.bind((*vars, *ends), loop)
        return ends

    # -- backwards

    def backwards(self, kept: Sequence[Var], ends: Mapping[int, Atom], finals: Sequence[Var] = ()) -> Found:
        region, plan = self.region, self.plan
        if region.is_sweep and not plan.keeps and not plan.inverse:
            self._freeze(finals)
            sums = as_sweep(self.reverse, self.exp, self.region, ends)
            return dict(ends), dict(zip(region.scalars, sums, strict=True))
        return self._loop(kept, ends, finals)

    def _final(self, p: Var, finals: Sequence[Var]) -> Var:
        return (finals or self.stm.vars)[self.exp.params.index(p)]

    def _freeze(self, finals: Sequence[Var]) -> None:
        """Arrays that are still there: every version of them is the final one."""
        for p in self.plan.of(LIVE):
            mine = self.region.params[self.exp.params.index(p)]
            self.region = replace(self.region, body=frozen(self.region.body, mine, self._final(p, finals)))

    def _loop(self, kept: Sequence[Var], ends: Mapping[int, Atom], finals: Sequence[Var]) -> Found:
        exp, plan, b = self.exp, self.plan, self.reverse.b
        if plan.decisions:
            self.region = plan.decisions.region
        self._freeze(finals)
        region, body = self.region, self.region.live
        mine = dict(zip(exp.params, region.params, strict=True))
        logged, inverted = plan.of(UNDO), plan.inverse.state if plan.inverse else []
        logs = self._logs(kept)
        changed = [p for p in logged if _consumes(body, mine[p])]
        carried = [*logged, *inverted]
        arrays = {p: Var(p.name, p.type) for p in carried}

        def slot(log: Var) -> Index:
            return Index(log, (At(region.index), *whole(log.type.row())))

        def iteration(step: Var) -> list[Atom]:
            self._bind_index(step)
            for v, log in self._reads(kept, mine):
                b.bind([v], slot(log))
            records = {p: [b.let(log.type.row(), slot(log), "e") for log in logs[p]] for p in logged}
            befores: dict[Var, Atom] = {p: plan.logs[p].restore(b, arrays[p], records[p], region.index) for p in logged}
            if plan.inverse:
                starts = plan.inverse.emit(b, region.index, [arrays[p] for p in inverted])
                befores.update(zip(inverted, starts, strict=True))
            for p, before in befores.items():
                b.alias(mine[p], before)
            for s in self._with_updates(body, changed).stms:
                b.add(s)
            for p in changed:
                result = region.again[exp.params.index(p)]
                assert isinstance(result, Var)
                befores[p] = plan.logs[p].restore(b, result, records[p], region.index)
            return list(befores.values())

        inits = [self._final(p, finals) for p in carried]
        found, left = self.countdown(ends, list(arrays.values()), inits, iteration)
        if plan.inverse:
            plan.inverse.test(self.reverse, exp, left[len(logged) :], self.stm.span)
        return found

    def _reads(self, kept: Sequence[Var], mine: Mapping[Var, Var]) -> list[tuple[Var, Var]]:
        """What the iteration finds in slots, logs apart: its names, and the arrays of slots."""
        plan = self.plan
        first = [*(mine[p] for p in plan.of(STORE)), *(plan.decisions.reads if plan.decisions else ())]
        last = [v for _, v in plan.exports]
        return [*zip(first, kept, strict=False), *zip(last, kept[len(kept) - len(last) :], strict=True)]

    def _logs(self, kept: Sequence[Var]) -> dict[Var, Sequence[Var]]:
        at = len(self.plan.of(STORE)) + len(self.plan.decided)
        found: dict[Var, Sequence[Var]] = {}
        for p in self.plan.of(UNDO):
            found[p] = kept[at : at + len(self.plan.records[p])]
            at += len(self.plan.records[p])
        return found

    def _with_updates(self, body: Body, kept: list[Var]) -> Body:
        """The live part; with it the arrays that are updated again, where they have to be put back afterwards."""
        if not kept:
            return body
        more = tuple(self.region.again[self.exp.params.index(p)] for p in kept)
        live, _ = live_part(Body(self.region.body.stms, (*self.region.body.results, *more)))
        return live


class Again(Way):
    """Running from the start, for each iteration: no memory, quadratic work."""

    def __init__(self, reverse: Reverse, stm: Stm, exp: For, region: Region, plan: Plan, accs: dict[Var, Var]) -> None:
        super().__init__(reverse, stm, exp, region, accs)
        self.plan = plan

    def kept_types(self) -> list[Type]:
        return []

    def forwards(self, vars: Sequence[Var], length: Dim | None = None) -> list[Var]:
        exp = replace(self.exp, body=self.reverse.without_updates(self.exp.body), plan=self.plan.text(RECOMPUTE))
        self.reverse.b.bind(vars, exp)
        return []

    def backwards(self, kept: Sequence[Var], ends: Mapping[int, Atom], finals: Sequence[Var] = ()) -> Found:
        def iteration(step: Var) -> list[Atom]:
            self._bind_index(step)
            advance(self.reverse, self.exp, i64(0), self.region.index, self.exp.inits, self.region.params)
            for s in self.region.live.stms:
                self.reverse.b.add(s)
            return []

        return self.countdown(ends, [], [], iteration)[0]


def advance(
    reverse: Reverse,
    exp: For,
    first: Atom,
    last: Atom,
    inits: Sequence[Atom],
    vars: Sequence[Var],
    plan: str = "",
    again: bool = True,
) -> None:
    """Iterations `first` to before `last`, from these values, forwards only; binds the values they lead to.

    The first time (not `again`) with their tests and output.
    """
    b = reverse.b
    lam = Lambda((exp.index, *exp.params), reverse.without_updates(exp.body))
    lam = reverse.fresh(lam) if again else refresh_lambda(lam)
    r = Var(exp.index.name, I64)
    with b.region() as stms:
        b.bind([lam.params[0]], Apply("add", (first, r)))
        for s in lam.body.stms:
            b.add(s)
    count = reverse.emit("sub", last, first)
    b.bind(vars, For(r, count, lam.params[1:], tuple(inits), Body(tuple(stms), lam.body.results), plan))


class Choice(Way):
    """Two ways, the first where `cond` holds."""

    def __init__(self, cond: Atom, first: Way, second: Way) -> None:
        super().__init__(first.reverse, first.stm, first.exp, first.region, first.accs)
        self.cond, self.first, self.second = cond, first, second
        self.limit(None)

    def limit(self, when: Atom | None) -> None:
        """Lengths are 0 where the way is not taken; this one is only `when` that holds."""
        emit = self.reverse.emit
        other = emit("not", self.cond)
        both = [c if when is None else emit("and", c, when) for c in (self.cond, other)]
        if isinstance(self.second, Choice):
            self.second.limit(both[1])
        ways = (self.first, self.second)
        self.lengths = [
            atom_dim(emit("select", c, dim_atom(way.length()), 0)) for c, way in zip(both, ways, strict=True)
        ]

    @property
    def keeps(self) -> bool:
        return True

    def kept_types(self) -> list[Type]:
        return []

    def forwards(self, vars: Sequence[Var], length: Dim | None = None) -> list[Var]:
        b = self.reverse.b
        kept: list[list[Var]] = []
        arms: list[tuple[list[Stm], list[Var]]] = []
        for way, length in zip((self.first, self.second), self.lengths, strict=True):
            mine = [Var(v.name, v.type) for v in vars]
            with b.region() as stms:
                kept.append(way.forwards(mine, length))
            arms.append((stms, mine))
        bodies = []
        for which, (stms, mine) in enumerate(arms):
            with b.region() as blanks:
                others = [b.full(v.type.shape, None, v.type.dtype, v.name) for v in kept[1 - which]]
            results = [*kept[0], *others] if which == 0 else [*others, *kept[1]]
            bodies.append(Body((*stms, *blanks), (*mine, *results)))
        outside = [Var(v.name, v.type) for many in kept for v in many]
        b.bind((*vars, *outside), If(self.cond, bodies[0], bodies[1]))
        self.split = len(kept[0])
        return outside

    def backwards(self, kept: Sequence[Var], ends: Mapping[int, Atom], finals: Sequence[Var] = ()) -> Found:
        b = self.reverse.b
        parts = (kept[: self.split], kept[self.split :])
        bodies = []
        for way, mine in zip((self.first, self.second), parts, strict=True):
            with b.region() as stms:
                starts, sums = way.backwards(mine, ends, finals or self.stm.vars)
            bodies.append(Body(tuple(stms), (*(starts[k] for k in ends), *(sums[v] for v in self.scalars))))
        names = [*(f"{self.exp.params[k].name}_bar" for k in ends), *(f"{v.name}_bar" for v in self.scalars)]
        vars = [Var(name, r.type) for name, r in zip(names, bodies[0].results, strict=True)]
        found = b.bind(vars, If(self.cond, bodies[0], bodies[1]))
        return dict(zip(ends, found, strict=False)), dict(zip(self.scalars, found[len(ends) :], strict=True))


def _consumes(body: Body, array: Var) -> bool:
    """Whether the array is written in the body."""
    for s in all_stms(body):
        match s.exp:
            case Update(array=a) if a is array:
                return True
            case For(inits=inits) | While(inits=inits) if array in inits:
                return True
            case Hist(dests=arrays) | Scatter(dests=arrays) | WithAcc(arrays=arrays) if array in arrays:
                return True
            case _:
                pass
    return False
