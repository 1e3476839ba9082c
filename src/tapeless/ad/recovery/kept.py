"""The way of a loop that follows its plan: slots, logs, inverses, arrays that are still there.

Note [Put back]
An iteration that runs again in its backward pass may update a logged array again, which then has to be put back once
more. If a loop inside does so, its own backward pass has put the array back to how it was in front of that loop: from
there it goes on, with the updates before the loop, and whatever reads the array on the way reads it there
(`Reverse.restored`). The array that the loop has left would have to be copied if it were used a second time. Otherwise
it is put back from the last update that the backward pass needs; those after it do not run again.
"""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import replace

from tapeless.ad.recovery.by.undo import Stack
from tapeless.ad.recovery.drift import compare_inputs
from tapeless.ad.recovery.iteration import Region, as_sweep
from tapeless.ad.recovery.live import frozen
from tapeless.ad.recovery.plan import Plan
from tapeless.ad.recovery.sizes import bytes_of
from tapeless.ad.recovery.trails import TOTALS, trails
from tapeless.ad.recovery.updates import array_before, trace_updates
from tapeless.ad.recovery.ways import Found, Way
from tapeless.ad.reverse import Reverse
from tapeless.ir.core import At, Body, For, Hist, Index, Scatter, Stm, Update, While, WithAcc
from tapeless.ir.hints import Hints, How
from tapeless.ir.types import F64, I64, Atom, Dim, DType, Type, Var, const, i64
from tapeless.ir.walk import all_stms
from tapeless.ops.emit import whole
from tapeless.passes.tidy.dce import live_part


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
        hints: Hints | None = None,
        strips: Sequence[Atom] = (),
    ) -> None:
        """`hints` are what people read of the plan; `strips` the numbers of iterations in a strip, by level."""
        super().__init__(reverse, stm, exp, region, accs)
        self.plan, self.hints, self.strips = plan, hints or plan.hints(), strips
        self.trails = trails(exp, plan.inverse.state) if plan.inverse else []

    def inside(self, plain: Kept) -> Atom:
        """Bytes that the levels inside the first need: a state per strip, and what the plain loop keeps in the last
        one.
        """
        emit = self.reverse.emit
        last = emit("mul", self.strips[-1], plain.most_bytes())
        between = emit("mul", self.strips[-1], emit("mul", bytes_of(emit, self.kept_types()), len(self.strips) - 1))
        return emit("add", last, between)

    @property
    def keeps(self) -> bool:
        return self.plan.keeps or bool(self.trails)

    def stacks(self) -> list[Stack]:
        return self.plan.stacks()

    def sized(self, when: Atom | None = None) -> None:
        super().sized(when)
        for trail in self.trails:
            trail.sized(self.reverse.emit, self.reverse.sizes)

    def kept_types(self) -> list[Type]:
        types = [p.type for p in self.plan.of(How.store)]
        types += [d.type for d in self.plan.decided]
        types += [r.type for p in self.plan.of(How.undo) for r in self.plan.records[p]]
        return types + [v.type for v, _ in self.plan.exports]

    def forwards(self, vars: Sequence[Var], length: Dim | None = None) -> list[Var]:
        reverse, b, plan = self.reverse, self.reverse.b, self.plan
        exp = replace(self.exp, body=reverse.without_updates(plan.body or self.exp.body), hints=self.hints)
        stored, logged = plan.of(How.store), plan.of(How.undo)
        if not self.keeps:
            b.bind(vars, exp)
            return []
        length = self.length() if length is None else length
        names = [*(p.name for p in stored), *("decisions" for _ in plan.decided)]
        names += [p.name for p in logged for _ in plan.records[p]]
        names += [v.name.removesuffix("_kept") for v, _ in plan.exports]
        starts = [b.keep((length, *t.shape), t.dtype, name) for name, t in zip(names, self.kept_types(), strict=True)]
        params = [Var(s.name, s.type) for s in starts]
        stacks = [v for s in plan.stacks() for v in s.carried]
        tops = [v for p in logged for v in plan.tops[p]]
        empty = self._empty_stacks()
        totals, leasts = self._totals(), [Var("least", F64) for _ in self.trails]
        nothing = [*(i64(0) for _ in totals), *(const(0.0, DType.f64) for _ in leasts)]
        with b.region() as stms:
            written: list[Var] = []
            for p, slot in zip(stored, params, strict=False):
                written.append(b.update(slot, (At(exp.index), *whole(p.type)), p))
            for s in exp.body.stms:
                b.add(s)
            records = [*plan.decided, *(r for p in logged for r in plan.records[p]), *(v for v, _ in plan.exports)]
            for r, slot in zip(records, params[len(stored) :], strict=True):
                written.append(b.update(slot, (At(exp.index), *whole(r.type)), r))
            left = self._leave_trails(exp, totals, leasts)
        new = Body(tuple(stms), (*exp.body.results, *written, *tops, *left))
        ends = [Var(s.name, s.type) for s in (*starts, *stacks)]
        trail = [Var(v.name, v.type) for v in (*totals, *leasts)]
        loop = replace(
            exp,
            params=(*exp.params, *params, *stacks, *totals, *leasts),
            inits=(*exp.inits, *starts, *empty, *nothing),
            body=new,
        )
        b.bind((*vars, *ends, *trail), loop)
        return [*(v for v in ends if v.type.shape), *trail]

    def _totals(self) -> list[Var]:
        return [Var("trail", I64) for _ in range(TOTALS * len(self.trails))]

    def _leave_trails(self, exp: For, totals: Sequence[Var], leasts: Sequence[Var]) -> list[Atom]:
        """At the end of an iteration: the next totals, and the sizes below which nothing counts."""
        emit, found, sizes = self.reverse.emit, list[Atom](), list[Atom]()
        for k, (trail, known) in enumerate(zip(self.trails, leasts, strict=True)):
            start = trail.value
            parts = trail.parts(emit, exp.index, exp.body.results[exp.params.index(start)])
            sizes.append(trail.least(emit, known, exp.index, parts, start))
            found += trail.totals(emit, totals[TOTALS * k :][:TOTALS], exp.index, parts, start, sizes[-1])
        return [*found, *sizes]

    def _empty_stacks(self) -> list[Atom]:
        b = self.reverse.b
        found: list[Atom] = []
        for p in self.plan.of(How.undo):
            for s in self.plan.stacks(p):
                found.append(i64(0))
                found += [b.keep(a.type.shape, a.type.dtype, p.name) for a in s.arrays]
        return found

    # -- backwards

    def backwards(self, kept: Sequence[Var], ends: Mapping[int, Atom], finals: Sequence[Var] = ()) -> Found:
        region, plan = self.region, self.plan
        if region.is_sweep and not plan.keeps and not plan.inverse:
            self._freeze(finals)
            sums = as_sweep(self.reverse, self.exp, self.region, ends)
            return dict(ends), dict(zip(region.scalars, sums, strict=True))
        return self._loop(kept, ends, finals)

    def _final(self, p: Var, finals: Sequence[Var]) -> Var:
        found = (finals or self.stm.vars)[self.exp.params.index(p)]
        return self.reverse.restored.get(found, found)

    def _freeze(self, finals: Sequence[Var]) -> None:
        """Arrays that are still there: every version of them is the final one."""
        for p in self.plan.of(How.live):
            mine = self.region.params[self.exp.params.index(p)]
            self.region = replace(self.region, body=frozen(self.region.body, mine, self._final(p, finals)))

    def _loop(self, kept: Sequence[Var], ends: Mapping[int, Atom], finals: Sequence[Var]) -> Found:
        exp, plan, b = self.exp, self.plan, self.reverse.b
        if plan.decisions:
            self.region = plan.decisions.region
        self._freeze(finals)
        region, body = self.region, self.region.live
        mine = dict(zip(exp.params, region.params, strict=True))
        logged, inverted = plan.of(How.undo), plan.inverse.state if plan.inverse else []
        kept, forth, leasts = self._trailed(kept)
        kept, stacks = self._stacked(kept)
        logs = self._logs(kept)
        changed = {p: self._put_back(p) for p in logged if _consumes(body, mine[p])}
        carried = [*logged, *inverted]
        arrays = {p: Var(p.name, p.type) for p in carried}
        totals = self._totals()

        def slot(log: Var) -> Index:
            return Index(log, (At(region.index), *whole(log.type.row())))

        def iteration(step: Var) -> list[Atom]:
            self._bind_index(step)
            for v, log in self._reads(kept, mine):
                b.bind([v], slot(log))
            records = {p: [b.let(log.type.row(), slot(log), "e") for log in logs[p]] for p in logged}
            for often, array, number in plan.trips:
                plan.logs[array].bind_trips(b, often, records[array], number)
            befores: dict[Var, Atom] = {
                p: plan.logs[p].restore(b, arrays[p], records[p], region.index, stacks[p]) for p in logged
            }
            sums: list[Atom] = []
            if plan.inverse:
                parts = [t.parts(self.reverse.emit, region.index, arrays[t.value]) for t in self.trails]
                starts = plan.inverse.emit(b, region.index, [arrays[p] for p in inverted])
                befores.update(zip(inverted, starts, strict=True))
                for k, t in enumerate(self.trails):
                    so_far = totals[TOTALS * k :][:TOTALS]
                    sums += t.totals(self.reverse.emit, so_far, region.index, parts[k], befores[t.value], leasts[k])
            for p, before in befores.items():
                b.alias(mine[p], before)
            for s in self._with_updates(body, [array for array, _ in changed.values()]).stms:
                b.add(s)
            for p, (array, steps) in changed.items():
                befores[p] = plan.logs[p].restore(b, array, records[p], region.index, stacks[p], steps)
            return [*befores.values(), *sums]

        inits = [self._final(p, finals) for p in carried]
        found, left = self.countdown(ends, [*arrays.values(), *totals], [*inits, *(i64(0) for _ in totals)], iteration)
        self.restored = {exp.params.index(p): v for p, v in zip(logged, left, strict=False)}
        self._compare(dict(zip(carried, left, strict=False)), dict(zip(carried, inits, strict=True)))
        self._compare_trails(forth, left[len(carried) :])
        return found

    def _compare(self, found: Mapping[Var, Var], lasts: Mapping[Var, Var]) -> None:
        """Whether what ran backwards came to the initial values."""
        for trail in self.trails:
            p = trail.value
            start = self.exp.inits[self.exp.params.index(p)]
            compare_inputs(self.reverse.emit, p, start, found[p], lasts[p], self.stm.span)

    def _compare_trails(self, forth: Sequence[Var], back: Sequence[Var]) -> None:
        for k, trail in enumerate(self.trails):
            mine = slice(TOTALS * k, TOTALS * k + TOTALS)
            trail.compare(self.reverse.emit, forth[mine], back[mine], self.steps, self.stm.span)

    def _trailed(self, kept: Sequence[Var]) -> tuple[Sequence[Var], Sequence[Var], Sequence[Var]]:
        """What is kept otherwise, the totals of trails, and what comes with these."""
        count = len(self.trails)
        at = len(kept) - count
        before = at - TOTALS * count
        return kept[:before], kept[before:at], kept[at:]

    def _reads(self, kept: Sequence[Var], mine: Mapping[Var, Var]) -> list[tuple[Var, Var]]:
        """What the iteration finds in slots, logs apart: its names, and the arrays of slots."""
        plan = self.plan
        first = [*(mine[p] for p in plan.of(How.store)), *(plan.decisions.reads if plan.decisions else ())]
        last = [v for _, v in plan.exports]
        return [*zip(first, kept, strict=False), *zip(last, kept[len(kept) - len(last) :], strict=True)]

    def _stacked(self, kept: Sequence[Var]) -> tuple[Sequence[Var], dict[Var, list[Sequence[Var]]]]:
        """Slots, and the arrays of stacks behind them."""
        count = sum(len(s.arrays) for s in self.plan.stacks())
        at = len(kept) - count
        slots, found = kept[:at], dict[Var, list[Sequence[Var]]]()
        for p in self.plan.of(How.undo):
            found[p] = []
            for s in self.plan.stacks(p):
                found[p].append(kept[at : at + len(s.arrays)])
                at += len(s.arrays)
        return slots, found

    def _logs(self, kept: Sequence[Var]) -> dict[Var, Sequence[Var]]:
        at = len(self.plan.of(How.store)) + len(self.plan.decided)
        found: dict[Var, Sequence[Var]] = {}
        for p in self.plan.of(How.undo):
            found[p] = kept[at : at + len(self.plan.records[p])]
            at += len(self.plan.records[p])
        return found

    def _with_updates(self, body: Body, arrays: Sequence[Var]) -> Body:
        """The live part; with it arrays that are updated again."""
        if not arrays:
            return body
        live, _ = live_part(Body(self.region.body.stms, (*self.region.body.results, *arrays)))
        return live

    def _put_back(self, p: Var) -> tuple[Var, int]:
        """An array that the iteration leaves, and the number of its updates that lead to that. Note [Put back]"""
        region, k = self.region, self.exp.params.index(p)
        result = region.again[k]
        assert isinstance(result, Var)
        steps = trace_updates(region.body, result, region.params[k]) or ()
        bound = {v for s in region.body.stms for v in s.vars}
        for count, step in enumerate(steps):
            taken = array_before(step)
            before = None if taken is None else region.restored.get(taken)
            if before in bound and before is not None:
                return before, count
        live = {v for s in region.live.stms for v in s.vars}
        for count, step in reversed(list(enumerate(steps))):
            after = step.stm.vars[step.number]
            if after in live:
                return after, count + 1
        return region.params[k], 0


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
