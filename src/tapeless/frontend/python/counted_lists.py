"""Lists that get longer in loops that cannot say how many items there will be: `while`, and loops inside of loops.

`with_counted_lists` takes a way to compile a loop and gives what that gives.

Note [Counted lists]
The items are counted first: the loop is compiled with the list as a `Grown` one without an array, which has a length and
nothing else, and what it changes is forgotten, but for the length. Then there is room for so many, and the loop is
compiled as it is. So it runs twice. The first time it prints nothing, and what it tests it tests as it would anyway. Not
where the loop looks at the items, since they are not there when they are counted, nor where it calls back into Python.
The loop is the outermost one before which the list was there.
"""

from __future__ import annotations

from collections.abc import Callable, Mapping, Sequence

from tapeless.errors import CompileError
from tapeless.frontend.data import atoms
from tapeless.frontend.python.carried import known_sizes
from tapeless.frontend.python.experiments import silent
from tapeless.frontend.python.flow import Flow
from tapeless.frontend.python.growth import ANYWHERE, Growth, Uncounted, start
from tapeless.frontend.python.references import contents, set_contents
from tapeless.frontend.python.worklists import with_room
from tapeless.frontend.state.code_copies import Before
from tapeless.frontend.state.context import Context
from tapeless.frontend.state.values import Box, Grown, Sequence_, weak
from tapeless.ir.core import Body
from tapeless.ir.types import Atom, i64


def with_counted_lists(ctx: Context, run: Callable[[], Flow]) -> Flow:
    """Note [Counted lists]"""
    boxes: dict[Box, CompileError] = {}
    looks = False  # at the items
    before = Before(ctx)
    ctx.starts.append(before.state)
    try:
        while True:
            try:
                with ctx.part() as stms:
                    if looks:
                        result = with_room(ctx, list(boxes), run)
                    else:
                        result = _counted(ctx, list(boxes), run) if boxes else run()
                ctx.b.stms.extend(stms)
                return result
            except Uncounted as found:
                known = any(contents(s, found.box.key) is not None for s in ctx.starts[:-1])
                if found.box in boxes or known or ctx.in_parallel:
                    raise
                boxes[found.box] = found.problem
            except CompileError as problem:
                if not boxes or problem.code == "TP116":
                    raise
                if looks:
                    raise
                looks = True
            before.restore(ctx)
    except Uncounted as found:
        if len(ctx.starts) == 1 or ctx.in_parallel:
            raise found.problem from None
        raise
    finally:
        ctx.starts.pop()


def _counted(ctx: Context, boxes: Sequence[Box], run: Callable[[], Flow]) -> Flow:
    before, outer = Before(ctx), ctx.growing
    growths = {box: Growth(ANYWHERE, exact=False) for box in boxes}
    ctx.growing = {**outer, **dict[Box | None, Growth](growths.items())}
    try:
        lengths = _lengths(ctx, growths, run)
        before.restore(ctx)
        for box, growth in growths.items():
            old = contents(ctx.state, box.key)
            assert isinstance(old, (Sequence_, Grown))
            first = i64(len(old.items)) if isinstance(old, Sequence_) else old.length.atom
            more = atoms.apply(ctx, "sub", lengths[box], first)
            set_contents(ctx.state, box, start(ctx, growth, old, more, known_sizes(ctx, ctx.state)))
        return run()
    finally:
        ctx.growing = outer


def _lengths(ctx: Context, growths: Mapping[Box, Growth], run: Callable[[], Flow]) -> dict[Box, Atom]:
    """Of the lists after the loop, which runs for that."""
    for box, growth in growths.items():
        old = contents(ctx.state, box.key)
        assert isinstance(old, (Sequence_, Grown))
        for item in old.items if isinstance(old, Sequence_) else ():
            growth.learn(ctx, item)
        length = weak(len(old.items)) if isinstance(old, Sequence_) else old.length
        set_contents(ctx.state, box, Grown(None, length, ref=box))
    with ctx.part() as stms:
        run()
    body = Body(tuple(stms), ())
    ctx.b.stms.extend(silent(ctx, body).stms)
    found = {box: contents(ctx.state, box.key) for box in growths}
    return {box: value.length.atom for box, value in found.items() if isinstance(value, Grown)}
