"""Lists that get longer in a loop that looks at what is in them: worklists, queues, `while abs(f(xs[-1])) > tol: xs.append(...)`.

`with_room` takes lists and a way to compile the loop; `leaving_when_full` runs the body of each loop inside. Used by
`counted_lists`, where the items cannot be counted without being there.

Note [Worklists]
Nobody knows how many items there will be before the loop has run. So it runs with room for some; if that is too little it
runs again with twice as much, until it comes to its end. What these runs change is forgotten, but for the room. Then
the loop is compiled as it is: it finds room for all. All together take a few times what the loop takes. An iteration begins
only where there is room for all that it may append (`Room.reserve`); otherwise it and the loops around it are left, by
an exit of its own, "full". So is a function that is called by a statement of its own, as `push(stack, v)`; one that gives a value
is not, since there is none to go on with. In a loop that is tried out there may be another one with lists of its own: it is tried
out each time, and may also be left for want of room in the lists of the outer one.
"""

from __future__ import annotations

import ast
from collections.abc import Callable, Sequence
from dataclasses import dataclass, field
from typing import Any, NoReturn

from tapeless.errors import CompileError
from tapeless.frontend.data import atoms
from tapeless.frontend.python.carried import known_sizes
from tapeless.frontend.python.experiments import silent
from tapeless.frontend.python.flow import CODES, FULL, Flow, branch, flow
from tapeless.frontend.python.growth import ANYWHERE, Growth, Unfit, end_of, start, uncounted
from tapeless.frontend.python.references import contents, set_contents
from tapeless.frontend.state.code_copies import Before
from tapeless.frontend.state.context import Context
from tapeless.frontend.state.values import Box, Grown, Sequence_, Static, Value
from tapeless.ir.core import Body, While
from tapeless.ir.types import BOOL, I64, Atom, Const, DType, Var, i64

FIRST = 64  # items for which the first run has room
TRIALS = 16  # what items are, and how many an iteration appends, is learned in some of them


@dataclass(eq=False)
class Room:
    """The lists of a loop that is run to see how much room they need."""

    boxes: dict[Box, Growth]
    outer: Room | None  # of a loop around it, which is tried out, too
    reserve: int = 1  # what all iterations that are open may append
    open: list[ast.stmt] = field(default_factory=list)  # loops
    leaving: set[ast.stmt] = field(default_factory=set)  # those in which something is appended
    depth: int = 0  # of the innermost one that is open
    left: list[Atom] = field(default_factory=list)  # whether the calls of this statement were

    def with_outer(self) -> list[Room]:
        return [self, *(self.outer.with_outer() if self.outer is not None else ())]

    def grows(self, ctx: Context, box: Box | None) -> None:
        """Something is appended to a list here: loops that are open must be left where there is no room for it."""
        for room in self.with_outer():
            if box not in room.boxes:
                continue
            room.leaving.update(room.open)
            if room.depth != ctx.loops:
                reason = "a list gets longer in a loop of a function that is called in the loop around it"
                uncounted(ctx, box, reason)

    def known(self) -> list[Any]:
        return [len(self.leaving), *(growth.known for growth in self.boxes.values())]

    def is_left(self, ctx: Context) -> Atom:
        """Whether there is room for an iteration."""
        found: Atom = Const(True, DType.bool)
        for box in self.boxes:
            now = contents(ctx.state, box.key)
            if not isinstance(now, Grown):
                ctx.fail("TP104", "a list that gets longer in this loop is not one list on all paths")
            if now.array is not None:
                needed = atoms.apply(ctx, "add", end_of(ctx, now), i64(self.reserve))
                fits = atoms.apply(ctx, "le", needed, ctx.size_atom(now.array.type.shape[0]))
                found = atoms.apply(ctx, "and", found, fits)
        return found


def leaving_when_full(ctx: Context, s: ast.stmt, body: Callable[[], Flow]) -> Flow:
    """An iteration of a loop, if there is room for what it appends."""
    return _leaving(ctx, s, body, _open(ctx))


def _open(ctx: Context) -> list[Room]:
    return ctx.worklists.with_outer() if ctx.worklists is not None else []


def _leaving(ctx: Context, s: ast.stmt, body: Callable[[], Flow], rooms: Sequence[Room]) -> Flow:
    if not rooms:
        return body()
    room, *others = rooms
    outer, room.depth = room.depth, ctx.loops
    room.open.append(s)

    def run() -> Flow:
        return _leaving(ctx, s, body, others)

    try:
        result = branch(ctx, room.is_left(ctx), run, lambda: flow(FULL)) if s in room.leaving else run()
    finally:
        room.open.pop()
        room.depth = outer
    if room.left:
        _refuse_call(ctx)
    return result


def may_be_full(ctx: Context, s: ast.stmt) -> bool:
    """Whether a loop is left where there is no room."""
    return any(s in room.leaving for room in _open(ctx))


def leave_call(ctx: Context, result: Flow, value: Value) -> None:
    """A called function may have been left since there was no room."""
    room: Room = ctx.worklists
    if room.left or value != Static(None):
        _refuse_call(ctx)
    room.left.append(atoms.apply(ctx, "eq", result.code, i64(CODES[FULL])))


def left_by_call(ctx: Context) -> Flow | None:
    """What comes after a statement that called functions."""
    room: Room | None = ctx.worklists
    if room is None or not room.left:
        return None
    full = room.left.pop()
    return Flow(frozenset({"next", FULL}), atoms.select(ctx, full, i64(CODES[FULL]), i64(0)))


def _refuse_call(ctx: Context) -> NoReturn:
    ctx.fail("TP104", "a list gets longer in a loop of a function that is called here and gives a value")


def with_room(ctx: Context, boxes: Sequence[Box], run: Callable[[], Flow]) -> Flow:
    """Note [Worklists]"""
    before, outer = Before(ctx), ctx.growing
    growths = {box: Growth(ANYWHERE, exact=False) for box in boxes}
    ctx.growing = {**outer, **dict[Box | None, Growth](growths.items())}
    try:
        most = _room(ctx, growths, run, before)
        before.restore(ctx)
        _start(ctx, growths, most)
        return run()
    finally:
        ctx.growing = outer


def _start(ctx: Context, growths: dict[Box, Growth], more: Atom) -> None:
    for box, growth in growths.items():
        old = contents(ctx.state, box.key)
        assert isinstance(old, (Sequence_, Grown))
        set_contents(ctx.state, box, start(ctx, growth, old, more, known_sizes(ctx, ctx.state)))


def _room(
    ctx: Context,
    growths: dict[Box, Growth],
    run: Callable[[], Flow],
    before: Before,
) -> Atom:
    """How many items more than now there are in the longest list while the loop runs, at most."""
    for box in growths.keys() & ctx.appended.keys():
        with ctx.part():
            growths[box].learn(ctx, ctx.appended[box])
    more = Var("room", I64)
    around = ctx.worklists
    ctx.worklists = room = Room(growths, around)
    try:
        for _ in range(TRIALS):
            before.restore(ctx)
            room.left.clear()
            room.open.clear()
            known = room.known()
            room.reserve = max(1, sum(growth.seen for growth in growths.values()))
            for growth in growths.values():
                growth.seen = 0
            try:
                with ctx.part() as stms:
                    _start(ctx, growths, more)
                    result = run()
                    again = atoms.apply(ctx, "eq", result.code, i64(CODES[FULL]))
                    if around is not None:  # which may be what it was left for
                        again = atoms.logical_and(ctx, again, atoms.logical_not(ctx, room.is_left(ctx)))
                    twice = atoms.apply(ctx, "mul", more, i64(2))
            except (Unfit, CompileError):
                if known == room.known():
                    raise
                continue
            enough = sum(growth.seen for growth in growths.values()) <= room.reserve
            if enough and known == room.known():
                break
        else:
            ctx.fail("TP104", "the types of the items of this list do not settle")
    finally:
        ctx.worklists = around
    before.restore(ctx)
    needed, full = (Var("room", I64), Var("full", BOOL)), Var("full", BOOL)
    test = Body((), (full,))
    body = silent(ctx, Body(tuple(stms), (twice, again)))
    ctx.b.bind(needed, While((more, full), (i64(FIRST), Const(True, DType.bool)), test, body))
    return needed[0]
