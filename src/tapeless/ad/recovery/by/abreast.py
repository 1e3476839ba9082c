"""Strips of small scalar loops, several of which run again side by side.

`abreast` takes how a loop runs if everything is kept, and the bytes that it may keep; gives a way that keeps the states
at the starts of strips, or None where the loop does not suit.

Note [Abreast]
A loop of a few scalar operations waits for the result of one iteration before it starts the next. Run forwards a second
time, strips do not wait for each other: their starts are known. So a group of WIDTH strips runs again as one loop with
a copy of the body for each of them, and the machine overlaps the copies. They leave their states in one history of the
group, in the order of the loop, over which one sweep goes back. A last group that is not whole runs again in one go,
from its first start.

Groups of about sqrt(WIDTH n) iterations keep the fewest states, sqrt(WIDTH) times as many as strips that run again one
by one. Where there is no room for them a group is one strip, and runs again in one go: the same code, for as few states
as strips can do with.
"""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import dataclass

from tapeless.ad.recovery.by.strips import ceil_div, part, root_above, strips
from tapeless.ad.recovery.iteration import Region, make_region, state_of
from tapeless.ad.recovery.kept import Kept
from tapeless.ad.recovery.plan import Plan, plan_loop
from tapeless.ad.recovery.sizes import bytes_of
from tapeless.ad.recovery.ways import Found
from tapeless.ad.reverse import Reverse
from tapeless.ir.core import Apply, At, Body, For, If, Index, Lambda
from tapeless.ir.hints import Hints, How, Recovery
from tapeless.ir.quiet import quiet
from tapeless.ir.types import I64, Atom, Var, i64
from tapeless.ir.walk import all_stms, free_in_lambda
from tapeless.passes.tidy.dce import live_part

WIDTH = 4  # strips that run again at a time
SMALL = 64  # statements of a body of which the machine holds several in flight


def abreast(plain: Kept, share: Atom) -> Kept | None:
    exp = plain.exp
    solved = plain.plan.inverse.state if plain.plan.inverse else []
    needed = {*solved, *(exp.params[k] for k in plain.region.needed)}
    state = [exp.params.index(p) for p in state_of(exp, needed)]
    if _step(plain.reverse, exp, plain.plan, state) is None:
        return None
    groups = _grouped(plain, state, share)
    group = _group(plain, groups, state)
    return None if group is None else Abreast(plain, groups, group, state)


@dataclass(frozen=True)
class Groups:
    """`count` of them with `length` iterations, the last one with what is left; `lanes` strips in each, WIDTH or 1."""

    strip: Atom
    lanes: Atom
    length: Atom
    count: Atom


def _grouped(plain: Kept, state: Sequence[int], share: Atom) -> Groups:
    emit, bound = plain.reverse.emit, plain.exp.bound
    start = bytes_of(emit, [plain.exp.params[k].type for k in state])
    slot = bytes_of(emit, plain.kept_types())

    def strip(lanes: int) -> Atom:
        return root_above(emit, emit("max", ceil_div(emit, bound, i64(lanes)), 1), 2)

    of_many, of_one = strip(WIDTH), strip(1)
    starts = emit("mul", ceil_div(emit, bound, of_many), start)
    history = emit("mul", emit("mul", of_many, WIDTH), slot)
    fits = emit("le", emit("add", starts, history), share)
    chosen, lanes = emit("select", fits, of_many, of_one), emit("select", fits, i64(WIDTH), i64(1))
    length = emit("mul", chosen, lanes)
    return Groups(chosen, lanes, length, ceil_div(emit, bound, length))


@dataclass(frozen=True)
class Group:
    """One of them backwards. It reads the number `left` of its iterations, the number `each` of those in a strip (0
    where it runs in one go) and the states at the `starts` of its strips.
    """

    region: Region
    left: Var
    each: Var
    starts: list[list[Var]]


class Abreast(Kept):
    def __init__(self, plain: Kept, groups: Groups, group: Group, state: Sequence[int]) -> None:
        reverse = plain.reverse
        nest = strips(reverse.b, plain.exp, [groups.strip], Hints(alike=True), reverse.activate)
        plan = Plan({p: How.store if k in state else How.none for k, p in enumerate(nest.params)})
        hints = plain.plan.hints(Recovery(How.checkpoint, 2), state)
        super().__init__(reverse, plain.stm, nest, group.region, plan, plain.accs, hints, [groups.length])
        self.groups, self.group, self.trips = groups, group, plain.exp.bound

    @property
    def steps(self) -> Atom:
        return self.groups.count

    def backwards(self, kept: Sequence[Var], ends: Mapping[int, Atom], finals: Sequence[Var] = ()) -> Found:
        b, emit, groups, group = self.reverse.b, self.reverse.emit, self.groups, self.group

        def iteration(step: Var) -> list[Atom]:
            number = self.region.index
            b.bind([number], Apply("sub", (emit("sub", groups.count, 1), step)))
            behind = emit("sub", self.trips, emit("mul", number, groups.length))
            b.bind([group.left], Apply("min", (groups.length, behind)))
            whole = emit("eq", group.left, emit("mul", groups.strip, WIDTH))
            b.bind([group.each], Apply("select", (whole, groups.strip, i64(0))))
            first = emit("mul", number, groups.lanes)
            for lane, starts in enumerate(group.starts):
                at = emit("add", first, emit("select", whole, i64(lane), i64(0)))
                for v, slot in zip(starts, kept, strict=True):
                    b.bind([v], Index(slot, (At(at),)))
            for s in self.region.live.stms:
                b.add(s)
            return []

        return self.countdown(ends, [], [], iteration)[0]


# -- a group


def _group(plain: Kept, groups: Groups, state: Sequence[int]) -> Group | None:
    reverse, exp = plain.reverse, plain.exp
    index, left, each = Var("group", I64), Var("left", I64), Var("each", I64)
    reverse.sizes.add(left)
    starts = [[Var(exp.params[k].name, exp.params[k].type) for k in state] for _ in range(WIDTH)]
    with reverse.b.region() as stms:
        first, hints = reverse.emit("mul", index, groups.length), Hints(Recovery(How.keep))
        loop = part(reverse.b, exp, first, left, exp.inits, hints, reverse.activate)
        region = make_region(reverse.sharing(), loop, plain.accs)
        plan = plan_loop(reverse, loop, region, Recovery(How.keep), plain.stm.span)
        step = _step(reverse, loop, plan, state)
        if step is None:
            return None
        sweep = Kept(reverse, plain.stm, loop, region, plan, plain.accs)
        kept, after = _run_again(sweep, step, left, each, starts)
        finals = list(plain.stm.vars)
        for k, v in zip(state, after, strict=True):
            finals[k] = v
        ends = {k: Var(v.name, v.type) for k, v in region.ends.items()}
        found, sums = sweep.backwards(kept, ends, finals)
    body = Body(tuple(stms), (*found.values(), *sums.values()))
    whole = Region(index, loop.params, ends, region.scalars, body, (), Body((), ()))
    return Group(whole, left, each, starts)


def _run_again(
    sweep: Kept, step: Lambda, left: Var, each: Var, starts: Sequence[Sequence[Var]]
) -> tuple[Sequence[Var], Sequence[Var]]:
    """The strips of a group, from their starts: what the sweep reads, and the state at the end."""
    reverse, stored = sweep.reverse, sweep.plan.of(How.store)
    b, emit = reverse.b, reverse.emit
    names = [*(p.name for p in stored), *("decisions" for _ in sweep.plan.decided)]
    slots: Sequence[Var] = [b.keep((left,), t.dtype, name) for name, t in zip(names, sweep.kept_types(), strict=True)]
    keep = [step.params[1:].index(p) for p in stored]
    places = [emit("mul", each, lane) for lane in range(WIDTH)]
    slots, states = _side_by_side(reverse, step, keep, each, places, starts, slots)
    done = emit("mul", each, WIDTH)
    slots, states = _side_by_side(reverse, step, keep, emit("sub", left, done), [done], states[-1:], slots)
    return slots, states[0]


def _side_by_side(
    reverse: Reverse,
    step: Lambda,
    keep: Sequence[int],
    count: Atom,
    places: Sequence[Atom],
    states: Sequence[Sequence[Var]],
    slots: Sequence[Var],
) -> tuple[Sequence[Var], Sequence[Sequence[Var]]]:
    """One loop over so many iterations of several strips, which begin at `places` of the slots with these states.

    What it leaves in the slots, and the states at the ends. `keep`: numbers of the values of a state that have a slot.
    """
    b, emit = reverse.b, reverse.emit
    size = len(step.params) - 1
    index, carried = Var("i", I64), [Var(v.name, v.type) for state in states for v in state]
    params = [Var(s.name, s.type) for s in slots]
    with b.region() as stms:
        now, results = list(params), list[Atom]()
        for lane, place in enumerate(places):
            at, mine = emit("add", place, index), carried[lane * size : (lane + 1) * size]
            next = b.inline(step, [at, *mine])
            values = [*(mine[k] for k in keep), *next[size:]]
            now = [b.update(s, (At(at),), v) for s, v in zip(now, values, strict=True)]
            results += next[:size]
    inits = [v for state in states for v in state]
    ends = [Var(p.name, p.type) for p in (*carried, *params)]
    body = Body(tuple(stms), (*results, *now))
    b.bind(ends, For(index, count, (*carried, *params), (*inits, *slots), body, Hints(alike=True)))
    return ends[len(carried) :], [ends[k * size : (k + 1) * size] for k in range(len(places))]


# -- what suits


def _step(reverse: Reverse, exp: For, plan: Plan, state: Sequence[int]) -> Lambda | None:
    """One iteration from the index and the state to the next state and the decisions; None where it is not small, or
    has more than scalars to do with.
    """
    if (
        any(how not in (How.none, How.store, How.invert, How.decisions) for how in plan.recovery.values())
        or plan.exports
    ):
        return None
    whole = reverse.without_updates(plan.body or exp.body)
    results = (*(whole.results[k] for k in state), *plan.decided)
    body, _ = live_part(quiet(Body(whole.stms, results)))
    step = Lambda((exp.index, *(exp.params[k] for k in state)), body)
    stms = list(all_stms(body))
    if len(stms) > SMALL or not all(isinstance(s.exp, (Apply, If, Index)) for s in stms):
        return None
    if any(v.type.shape for v in (*step.params, *plan.decided, *(v for s in stms for v in s.vars))):
        return None
    return None if any(p in free_in_lambda(step) for p in exp.params) else step
