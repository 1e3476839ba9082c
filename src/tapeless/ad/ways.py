"""Ways to run a loop forwards and back. A `Way` emits both; in between it has what the forward loop has kept.

`Kept` follows a plan: slots, logs, inverses, arrays that are still there. `Again` runs from the start for each
iteration. `Choice` holds two ways of which sizes at run time choose one.
"""

from __future__ import annotations

from abc import ABC, abstractmethod
from collections.abc import Iterable, Mapping, Sequence
from dataclasses import replace
from typing import TYPE_CHECKING

from tapeless.ad.emit import whole
from tapeless.ad.iteration import Region, as_sweep, trips
from tapeless.ad.live import frozen
from tapeless.ad.plan import Plan
from tapeless.ir.core import Apply, At, Body, For, Hist, If, Index, Lambda, Scatter, Stm, Update, While, WithAcc
from tapeless.ir.plans import LIVE, STORE, UNDO
from tapeless.ir.types import I64, Atom, Dim, Type, Var, dim_atom, i64
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

    @abstractmethod
    def forwards(self, vars: Sequence[Var], length: Dim | None = None) -> list[Var]:
        """Emits the loop, binding its results; what it keeps, `length` of each (all, unless said)."""

    @abstractmethod
    def backwards(self, kept: Sequence[Var], ends: Mapping[int, Atom], finals: Sequence[Var] = ()) -> Found:
        """Emits the way back. `finals`: the loop's results, where they have other names here."""


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
        last = emit("mul", self.strips[-1], bytes_of(self.reverse, plain.kept_types()))
        between = emit(
            "mul", self.strips[-1], emit("mul", bytes_of(self.reverse, self.kept_types()), len(self.strips) - 1)
        )
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
        names += [v.name.removesuffix("_kept") for v, _ in plan.exports]
        starts = [
            b.full((length, *t.shape), None, t.dtype, f"{name}_kept")
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
        reverse, exp, plan = self.reverse, self.exp, self.plan
        b, emit = reverse.b, reverse.emit
        if plan.decisions:
            self.region = plan.decisions.region
        self._freeze(finals)
        region, body = self.region, self.region.live
        mine = dict(zip(exp.params, region.params, strict=True))
        stored, logged = plan.of(STORE), plan.of(UNDO)
        inverted = plan.inverse.state if plan.inverse else []
        slots = dict(zip(stored, kept, strict=False))
        logs = self._logs(kept)
        changed = {p: _consumes(body, mine[p]) for p in logged}
        carried = [*logged, *inverted]
        arrays = [Var(p.name, p.type) for p in carried]
        totals = [Var(f"{v.name}_bar", v.type) for v in region.scalars]
        step = Var("j", I64)
        with b.region() as stms:
            last = emit("sub", exp.bound, 1)
            b.bind([region.index], Apply("sub", (last, step)))
            for p, slot in slots.items():
                b.bind([mine[p]], Index(slot, (At(region.index), *whole(p.type))))
            if plan.decisions:
                for read, slot in zip(plan.decisions.reads, kept[len(stored) :], strict=False):
                    b.bind([read], Index(slot, (At(region.index), *whole(read.type))))
            for (_, v), slot in zip(plan.exports, kept[len(kept) - len(plan.exports) :], strict=True):
                b.bind([v], Index(slot, (At(region.index), *whole(v.type))))
            records = {p: [b.index(log, (At(region.index), *whole(log.type.row()))) for log in logs[p]] for p in logged}
            befores: list[Atom] = []
            for p, array in zip(logged, arrays, strict=False):
                before = plan.logs[p].restore(b, array, records[p], region.index)
                befores.append(before)
                b.alias(mine[p], before)
            if plan.inverse:
                starts = plan.inverse.emit(b, region.index, arrays[len(logged) :])
                befores.extend(starts)
                for p, start in zip(inverted, starts, strict=True):
                    b.alias(mine[p], start)
            for s in self._with_updates(body, [p for p in logged if changed[p]]).stms:
                b.add(s)
            count = len(region.ends)
            sums = [emit("add", t, s) for t, s in zip(totals, body.results[count:], strict=True)]
            for k, p in enumerate(logged):
                if changed[p]:
                    result = region.again[exp.params.index(p)]
                    assert isinstance(result, Var)
                    befores[k] = plan.logs[p].restore(b, result, records[p], region.index)
        results = (*body.results[:count], *sums, *befores)
        params = (*region.ends.values(), *totals, *arrays)
        inits = (
            *ends.values(),
            *(emit.zero(t.type) for t in totals),
            *(self._final(p, finals) for p in carried),
        )
        vars = [Var(p.name, p.type) for p in params]
        length = trips(reverse, exp.bound)
        bound = length if isinstance(length, Var) else i64(length)
        found = b.bind(vars, For(step, bound, params, inits, Body(tuple(stms), results)))
        if plan.inverse:
            plan.inverse.test(reverse, self.exp, found[count + len(totals) + len(logged) :], self.stm.span)
        return dict(zip(region.ends, found, strict=False)), dict(zip(region.scalars, found[count:], strict=False))

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
        exp = replace(self.exp, body=self.reverse.without_updates(self.exp.body), plan=self.plan.text("recompute"))
        self.reverse.b.bind(vars, exp)
        return []

    def backwards(self, kept: Sequence[Var], ends: Mapping[int, Atom], finals: Sequence[Var] = ()) -> Found:
        reverse, region = self.reverse, self.region
        b, emit, body = reverse.b, reverse.emit, region.live
        totals = [Var(f"{v.name}_bar", v.type) for v in region.scalars]
        step, count = Var("j", I64), len(region.ends)
        with b.region() as stms:
            last = emit("sub", self.exp.bound, 1)
            b.bind([region.index], Apply("sub", (last, step)))
            advance(reverse, self.exp, i64(0), region.index, self.exp.inits, region.params)
            for s in body.stms:
                b.add(s)
            sums = [emit("add", t, s) for t, s in zip(totals, body.results[count:], strict=True)]
        params = (*region.ends.values(), *totals)
        inits = (*ends.values(), *(emit.zero(t.type) for t in totals))
        vars = [Var(p.name, p.type) for p in params]
        length = trips(reverse, self.exp.bound)
        bound = length if isinstance(length, Var) else i64(length)
        found = b.bind(vars, For(step, bound, params, inits, Body(tuple(stms), (*body.results[:count], *sums))))
        return dict(zip(region.ends, found, strict=False)), dict(zip(region.scalars, found[count:], strict=False))


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
            _size(emit("select", c, _atom(way.length()), i64(0))) for c, way in zip(both, ways, strict=True)
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


def bytes_of(reverse: Reverse, types: Iterable[Type]) -> Atom:
    """Of one value of each."""
    total: Atom = i64(0)
    for t in types:
        size: Atom = i64(t.dtype.bytes)
        for d in t.shape:
            size = reverse.emit("mul", size, dim_atom(d))
        total = reverse.emit("add", total, size)
    return total


def _atom(length: Dim) -> Atom:
    return length if isinstance(length, Var) else i64(length)


def _size(a: Atom) -> Dim:
    return a if isinstance(a, Var) else int(a.value.real)


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
