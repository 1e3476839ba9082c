"""Snapshots in a fixed number of slots, placed and run again from so that the whole takes the fewest steps (treeverse).

Note [Placing]
Slots are a stack. From the newest snapshot, at `base`, the states up to `end` are to be reversed, with f slots free.
With the binomial numbers beta(s, r) = (s + r)! / (s! r!), r runs over each step are enough for beta(f + 1, r) steps:
the next snapshot is placed so that beta(f, r) steps lie behind it. Without a free slot that is the last step: it is
run to and reversed. The run forwards places the first snapshots on its way.
"""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import replace
from typing import TYPE_CHECKING

from tapeless.ad.recovery.iteration import state_of, trips
from tapeless.ad.recovery.kept import Kept
from tapeless.ad.recovery.sizes import bytes_of
from tapeless.ad.recovery.ways import Found, Way, advance
from tapeless.ir.core import Apply, At, Body, While
from tapeless.ir.hints import How, Recovery
from tapeless.ir.quiet import quiet
from tapeless.ir.types import I64, Atom, Dim, DType, Type, Var, atom_dim, dim_atom, i64
from tapeless.ops.emit import Emit, whole
from tapeless.passes.tidy.dce import live_part

if TYPE_CHECKING:
    from collections.abc import Callable

LEAST = 2  # slots


class Snapshots(Way):
    """`share`: bytes for all slots, unless their number is given."""

    def __init__(self, plain: Kept, share: Atom | None, slots: int = LEAST) -> None:
        super().__init__(plain.reverse, plain.stm, plain.exp, plain.region.copy(), plain.accs)
        self.plan = plain.plan
        self.state = state_of(self.exp, {self.exp.params[k] for k in self.region.needed})
        self.numbers = [self.exp.params.index(p) for p in self.state]
        emit = self.reverse.emit
        self.state_bytes = bytes_of(emit, self.kept_types())
        most: Atom = i64(max(slots, LEAST))
        if share is not None:
            most = emit("max", emit("floordiv", share, self.state_bytes), LEAST)
        length = trips(self.reverse, self.exp.bound)
        self.slots: Dim = atom_dim(emit("max", emit("min", most, dim_atom(length)), 1, label="slots"))

    @property
    def keeps(self) -> bool:
        return True

    def kept_types(self) -> list[Type]:
        """The place of a snapshot (the first one's second number: which is the newest), and the state."""
        return [Type(DType.i64, (2,)), *(p.type for p in self.state)]

    def length(self) -> Dim:
        return self.slots

    # -- forwards

    def forwards(self, vars: Sequence[Var], length: Dim | None = None) -> list[Var]:
        b, emit, exp = self.reverse.b, self.reverse.emit, self.exp
        size = self.slots if length is None else length
        names = ["places", *(p.name for p in self.state)]
        starts = [b.keep((size, *t.shape), t.dtype, name) for name, t in zip(names, self.kept_types(), strict=True)]
        end = dim_atom(trips(self.reverse, exp.bound))
        states = [exp.inits[k] for k in self.numbers]
        stack = _push(self, starts, i64(0), i64(0), states)
        carried = [Var(p.name, p.type) for p in exp.params]
        first = _split(emit, i64(0), end, emit("sub", dim_atom(size), 1))

        def more(newest: Atom, at: Atom, mid: Atom, stack: Sequence[Var], given: Sequence[Var]) -> list[Atom]:
            after = [Var(p.name, p.type) for p in exp.params]
            advance(self.reverse, exp, at, mid, given, after, again=False)
            next = emit("add", newest, 1)
            stack = _push(self, stack, next, mid, [after[k] for k in self.numbers])
            free = emit("sub", emit("sub", dim_atom(size), 1), next)
            return [next, mid, _split(emit, mid, end, free), *stack, *after]

        found = self._while(end, [i64(0), i64(0), first, *stack, *exp.inits], len(stack), carried, more)
        newest, at, stack = found[0], found[1], found[3 : 3 + len(stack)]
        hints = self.plan.hints(Recovery(How.checkpoint), self.numbers)
        advance(self.reverse, exp, at, end, found[3 + len(stack) :], vars, hints, again=False)
        places = b.update(stack[0], (At(i64(0)), At(i64(1))), newest)
        return [places, *stack[1:]]

    def _while(
        self,
        end: Atom,
        inits: Sequence[Atom],
        stacked: int,
        carried: Sequence[Var],
        more: Callable[[Atom, Atom, Atom, Sequence[Var], Sequence[Var]], list[Atom]],
    ) -> list[Var]:
        """While the next snapshot lies before the last step: advances and pushes. Carries the number of the newest, its
        place, the next place, the stack and `carried`.
        """
        b, emit = self.reverse.b, self.reverse.emit
        params = [Var("newest", I64), Var("at", I64), Var("mid", I64)]
        params += [Var(a.name, a.type) for a in inits[3 : 3 + stacked] if isinstance(a, Var)]
        stack = params[3:]
        with b.region() as tests:
            goes_on = emit("lt", params[2], emit("sub", end, 1))
        with b.region() as stms:
            results = more(params[0], params[1], params[2], stack, carried)
        every = (*params, *carried)
        cond = Body(tuple(tests), (goes_on,))
        vars = [Var(p.name, p.type) for p in every]
        return list(b.bind(vars, While(every, tuple(inits), cond, Body(tuple(stms), tuple(results)))))

    # -- backwards

    def backwards(self, kept: Sequence[Var], ends: Mapping[int, Atom], finals: Sequence[Var] = ()) -> Found:
        b, emit, region = self.reverse.b, self.reverse.emit, self.region
        length = dim_atom(trips(self.reverse, self.exp.bound))
        stack = [Var(k.name, k.type) for k in kept]
        newest = Var("newest", I64)
        size = dim_atom(kept[0].type.shape[0])

        def iteration(step: Var) -> list[Atom]:
            end = emit("sub", length, step)
            at, held = self._newest(stack, newest)
            mid = _split(emit, at, end, emit("sub", emit("sub", size, 1), newest))

            def more(n: Atom, at: Atom, mid: Atom, stack: Sequence[Var], given: Sequence[Var]) -> list[Atom]:
                after = self._advance(at, mid, given)
                next = emit("add", n, 1)
                stack = _push(self, stack, next, mid, after)
                free = emit("sub", emit("sub", size, 1), next)
                return [next, mid, _split(emit, mid, end, free), *stack, *after]

            carried = [Var(p.name, p.type) for p in self.state]
            found = self._while(end, [newest, at, mid, *stack, *held], len(stack), carried, more)
            now, at, pushed = found[0], found[1], found[3 : 3 + len(stack)]
            last = emit("sub", end, 1)
            b.bind([region.index], Apply("identity", (last,)))
            after = self._advance(at, last, found[3 + len(stack) :])
            for k, v in zip(self.numbers, after, strict=True):
                b.alias(region.params[k], v)
            for s in region.live.stms:
                b.add(s)
            done = emit("and", emit("eq", at, last), emit("gt", now, 0))
            return [emit("sub", now, emit.convert(done, DType.i64)), *pushed]

        first = b.index(kept[0], (At(i64(0)), At(i64(1))))
        return self.countdown(ends, [newest, *stack], [first, *kept], iteration)[0]

    def _newest(self, stack: Sequence[Var], newest: Atom) -> tuple[Var, list[Var]]:
        b = self.reverse.b
        at = b.index(stack[0], (At(newest), At(i64(0))))
        return at, [b.index(s, (At(newest), *whole(p.type))) for s, p in zip(stack[1:], self.state, strict=True)]

    def _advance(self, first: Atom, last: Atom, states: Sequence[Atom]) -> list[Var]:
        """Only what the state consists of."""
        exp, keep = self.exp, self.numbers
        body, _ = live_part(quiet(Body(exp.body.stms, tuple(exp.body.results[k] for k in keep))))
        loop = replace(exp, params=tuple(self.state), inits=tuple(exp.inits[k] for k in keep), body=body)
        after = [Var(p.name, p.type) for p in self.state]
        advance(self.reverse, loop, first, last, states, after)
        return after


def _push(way: Snapshots, stack: Sequence[Var], slot: Atom, place: Atom, states: Sequence[Atom]) -> list[Var]:
    b = way.reverse.b
    found = [b.update(stack[0], (At(slot), At(i64(0))), place)]
    for array, p, value in zip(stack[1:], way.state, states, strict=True):
        found.append(b.update(array, (At(slot), *whole(p.type)), value))
    return found


def _split(emit: Emit, base: Atom, end: Atom, free: Atom) -> Atom:
    """Where the next snapshot goes: Note [Placing]."""
    b = emit.b
    left = emit("sub", end, base)
    r, wide, narrow = Var("r", I64), Var("wide", I64), Var("narrow", I64)
    with b.region() as tests:
        short = emit("lt", wide, left)
    with b.region() as stms:
        times = emit("add", r, 1)
        wider = emit("floordiv", emit("mul", wide, emit("add", emit("add", free, 1), times)), times)
        narrower = emit("floordiv", emit("mul", narrow, emit("add", free, times)), times)
    loop = While(
        (r, wide, narrow),
        (i64(0), i64(1), i64(1)),
        Body(tuple(tests), (short,)),
        Body(tuple(stms), (times, wider, narrower)),
    )
    found = b.bind([Var("r", I64), Var("wide", I64), Var("narrow", I64)], loop)
    behind = emit("min", found[2], emit("sub", left, 1))
    return emit("sub", end, emit("max", behind, 1), label="mid")
