"""Snapshots of a loop whose trips nobody knows beforehand: taken while it runs.

Note [Online]
There is a fixed number of slots. A state is kept every `stride` iterations; when the slots are full, every second
snapshot goes and the stride doubles. At the end the snapshots stand at the multiples of the last stride, so the
backward pass is that of strips of this length (`ad.recovery.by.strips`), without a run that only counts. How long they
get nobody knows, so this is not for budgets.
"""

from __future__ import annotations

from collections.abc import Sequence

from tapeless.ad.recovery.by.strips import strips
from tapeless.ad.recovery.iteration import make_region
from tapeless.ad.recovery.kept import Kept
from tapeless.ad.recovery.plan import Plan, plan_loop
from tapeless.ad.reverse import Reverse
from tapeless.ir.core import At, Body, For, If, Stm, While
from tapeless.ir.hints import Hints, How, Recovery
from tapeless.ir.types import I64, Atom, Var, i64
from tapeless.ops.emit import whole

SLOTS = 256  # even, so that every second one is half of them


class Online(Kept):
    """`kept` of a way are the snapshots; `trips` and `stride` are bound by the loop forwards."""

    def __init__(self, reverse: Reverse, stm: Stm, exp: For, trips: Var, plan: Plan, accs: dict[Var, Var]) -> None:
        self.stride, self.trips = Var("stride", I64), trips
        with reverse.b.region() as late:  # uses trips and stride
            nest = strips(reverse.b, exp, [self.stride], Hints(Recovery(How.keep)), reverse.activate)
            region = make_region(reverse.sharing(), nest, accs)
            levels = plan_loop(reverse, nest, region, Recovery(How.store), stm.span)
        self.late = late
        super().__init__(reverse, stm, nest, region, levels, accs, plan.hints(Recovery(How.checkpoint)), [self.stride])

    def run(self, vars: Sequence[Var], exp: While) -> list[Var]:
        """The loop forwards, counting and taking snapshots: Note [Online]."""
        b, emit = self.reverse.b, self.reverse.emit
        stored = self.plan.of(How.store)
        numbers = [self.exp.params.index(p) for p in stored]
        starts = [b.keep((SLOTS, *p.type.shape), p.type.dtype, p.name) for p in stored]
        count, stride, filled = Var("count", I64), Var("stride", I64), Var("filled", I64)
        snaps = [Var(s.name, s.type) for s in starts]
        with b.region() as stms:
            hit = emit("eq", count, emit("mul", filled, stride))
            full = emit("and", hit, emit("eq", filled, SLOTS))
            thin = self._thinned(full, filled, stride, snaps)
            filled_now, stride_now, held = thin[0], thin[1], [v for v in thin[2:] if isinstance(v, Var)]
            pushed = self._pushed(hit, filled_now, held, [exp.params[k] for k in numbers])
            for s in self.reverse.without_updates(exp.body).stms:
                b.add(s)
            more = emit("add", count, 1)
        results = (*exp.body.results, more, stride_now, *pushed)
        params = (*exp.params, count, stride, filled, *snaps)
        inits = (*exp.inits, i64(0), i64(1), i64(0), *starts)
        ends = [Var(s.name, s.type) for s in starts]
        loop = While(params, inits, exp.cond, Body(tuple(stms), results), self.hints)
        b.bind((*vars, self.trips, self.stride, Var("filled", I64), *ends), loop)
        for s in self.late:
            b.add(s)
        return ends

    def _thinned(self, full: Atom, filled: Var, stride: Var, snaps: Sequence[Var]) -> tuple[Var, ...]:
        """(filled, stride, snapshots): every second one gone where the slots are full."""
        b, emit = self.reverse.b, self.reverse.emit
        half = i64(SLOTS // 2)
        arrays = [Var(s.name, s.type) for s in snaps]
        k = Var("k", I64)
        with b.region() as stms:
            with b.region() as moves:
                twice = emit("mul", k, 2)
                moved = []
                for a in arrays:
                    state = b.index(a, (At(twice), *whole(a.type.row())))
                    moved.append(b.update(a, (At(k), *whole(a.type.row())), state))
            ends = [Var(s.name, s.type) for s in snaps]
            b.bind(ends, For(k, half, tuple(arrays), tuple(snaps), Body(tuple(moves), tuple(moved))))
            wider = emit("mul", stride, 2)
        then = Body(tuple(stms), (half, wider, *ends))
        vars = [Var("filled", I64), Var("stride", I64), *(Var(s.name, s.type) for s in snaps)]
        return b.bind(vars, If(full, then, Body((), (filled, stride, *snaps))))

    def _pushed(self, hit: Atom, filled: Var, snaps: Sequence[Var], states: Sequence[Atom]) -> tuple[Var, ...]:
        """(filled, snapshots): with this state, where its turn has come."""
        b, emit = self.reverse.b, self.reverse.emit
        with b.region() as stms:
            written = [b.update(s, (At(filled), *whole(x.type)), x) for s, x in zip(snaps, states, strict=True)]
            more = emit("add", filled, 1)
        vars = [Var("filled", I64), *(Var(s.name, s.type) for s in snaps)]
        return b.bind(vars, If(hit, Body(tuple(stms), (more, *written)), Body((), (filled, *snaps))))
