"""`for` and `while`: which names and arrays go around, leaving early, loops over tuples, which are unrolled.

Takes `ast` loops; `loop_trials.compile_loop` makes the Core loop. The body is run by `statements.run_block`.
"""

from __future__ import annotations

import ast
from collections.abc import Callable, Sequence

from tapeless.errors import CompileError
from tapeless.frontend.data import atoms
from tapeless.frontend.data.constants import constant
from tapeless.frontend.data.iterables import anonymous, constants_in, items_of, iteration
from tapeless.frontend.data.leaves import number_of
from tapeless.frontend.data.rows import rows
from tapeless.frontend.python.assignment import assign
from tapeless.frontend.python.choices import truth
from tapeless.frontend.python.counted_lists import with_counted_lists
from tapeless.frontend.python.expressions import subscript
from tapeless.frontend.python.flow import FLOW, RETURN, Flow
from tapeless.frontend.python.guesses import Live
from tapeless.frontend.python.list_items import is_changeable
from tapeless.frontend.python.loop_exits import after_loop, finish_iteration, left_early, still_running
from tapeless.frontend.python.loop_lists import Lengthens
from tapeless.frontend.python.loop_trials import compile_loop
from tapeless.frontend.python.merge import COUNTER
from tapeless.frontend.python.references import OVER, contents, set_contents
from tapeless.frontend.python.rules import evaluate, statement
from tapeless.frontend.python.statements import run_block
from tapeless.frontend.python.unrolled_loops import unrolled, zipped_items
from tapeless.frontend.python.worklists import leaving_when_full, may_be_full
from tapeless.frontend.source.liveness import assigned, bound_in, only_augmented, written_through
from tapeless.frontend.source.sources import nodes
from tapeless.frontend.state.code_copies import SHORT, WORTH, attempt
from tapeless.frontend.state.context import Context
from tapeless.frontend.state.parts import cells_of, is_deque
from tapeless.frontend.state.values import (
    Array,
    Box,
    Cell,
    Conflict,
    Grown,
    Key,
    Planned,
    RangeValue,
    Scalar,
    Sequence_,
    Value,
    Zipped,
)
from tapeless.ir.core import Progress
from tapeless.ir.hints import NONE, Hints
from tapeless.ir.types import Atom, i64


def _keys(ctx: Context, names: frozenset[str]) -> list[Key]:
    return [ctx.key(n) for n in sorted(names)]


def _loop_keys(ctx: Context, s: ast.For | ast.While, extra: frozenset[str] = frozenset()) -> tuple[list[Key], Live]:
    """Names that go around, and which of them somebody reads."""
    liveness = ctx.frames[ctx.frame].liveness
    head, after = liveness.head.get(s, frozenset()), liveness.after.get(s, frozenset())
    names = assigned(s.body)
    if isinstance(s, ast.For):
        names |= bound_in(s.target)
    names = frozenset(n for n in names if n in head or n in after)
    return _keys(ctx, names | extra), Live(ctx.frame, head, after)


def _guess_cells(ctx: Context, s: ast.For | ast.While) -> list[Cell]:
    """Arrays that the body writes, as far as its text shows; what a trial run finds is added."""
    found: list[Cell] = []
    for name in sorted(written_through(s.body) - (assigned(s.body) - only_augmented(s.body))):
        value = ctx.state.names.get(ctx.key(name))
        if value is not None:
            found.extend(cells_of(value))
    return list(dict.fromkeys(found))


def _exchanged(ctx: Context, s: ast.For | ast.While) -> list[Key]:
    """Names that the body exchanges by `a, b = b, a`, or may exchange by `a, b = step(a, b)`."""
    found: set[str] = set()
    for node in (n for b in s.body for n in nodes(b) if isinstance(n, ast.Assign)):
        match node:
            case ast.Assign(targets=[ast.Tuple(elts=left)], value=ast.Tuple(elts=right)):
                names = [n.id for n in left if isinstance(n, ast.Name)]
                values = [n.id for n in right if isinstance(n, ast.Name)]
                if len(names) == len(left) == len(right) and sorted(names) == sorted(values):
                    found.update(names)
            case ast.Assign(targets=[ast.Tuple(elts=left)], value=ast.Call(args=right)):
                given = {n.id for n in right if isinstance(n, ast.Name)}
                names = [n.id for n in left if isinstance(n, ast.Name) and n.id in given]
                found.update(names if len(names) > 1 else ())
            case _:
                pass
    return _keys(ctx, frozenset(found))


@statement(ast.While)
def run_while(ctx: Context, s: ast.While) -> Flow:
    return with_counted_lists(ctx, lambda: _run_while(ctx, s))


def _run_while(ctx: Context, s: ast.While) -> Flow:
    if any(
        isinstance(n, ast.NamedExpr) for n in nodes(s.test)
    ):  # others are rewritten: `_Conditions` in source/sources.py
        ctx.fail("TP101", "':=' in this condition is not part of the language", "leave the loop with break, inside.")
    leaves = left_early(s) or may_be_full(ctx, s)
    extra = frozenset({FLOW, RETURN} if leaves else set())
    keys, live = _loop_keys(ctx, s, extra)
    if leaves:
        ctx.bind(FLOW, Scalar(i64(0)))

    def test() -> Atom:
        def condition() -> Atom:
            with ctx.at(s.test):
                return truth(ctx, s.test)

        return still_running(ctx, condition) if leaves else condition()

    def run(_: Atom | None) -> None:
        finish_iteration(ctx, leaving_when_full(ctx, s, lambda: run_block(ctx, s.body)), leaves)

    saved = ctx.state.names.pop(ctx.key(RETURN), None)
    compile_loop(
        ctx,
        _array_keys(ctx, keys, s),
        live,
        run,
        test=test,
        guess_cells=_guess_cells(ctx, s),
        exchanged=_exchanged(ctx, s),
    )
    return after_loop(ctx, s, leaves, saved)


def _array_keys(ctx: Context, keys: list[Key], s: ast.For | ast.While) -> list[Key]:
    """Names that are only augmented stay bound to their array: the array is carried, not the name."""
    augmented = only_augmented(s.body)
    names = ctx.state.names

    def stays(value: Value) -> bool:
        return isinstance(number_of(value), Array) or (is_changeable(value) and value.ref is not None)

    return [k for k in keys if not (k[1] in augmented and k in names and stays(names[k]))]


@statement(ast.For)
def run_for(ctx: Context, s: ast.For) -> Flow:
    with ctx.at(s.iter):
        iterable = evaluate(ctx, s.iter)
    hints = NONE
    if isinstance(iterable, Planned):
        hints, iterable = Hints(iterable.wish, iterable.chosen), iterable.iterable
    held = ctx.key(f"{OVER}{ctx.number()}>")  # what the loop goes over stays referred to, whatever happens to its name
    if cells_of(iterable) or isinstance(iterable, (Sequence_, Grown, Zipped)):
        ctx.state.names[held] = iterable
        ctx.held[s] = held
    box = iterable.ref if is_changeable(iterable) and not is_deque(iterable) else None
    if box is None or box.may_be:
        result = with_counted_lists(ctx, lambda: _run_for_over(ctx, s, iterable, hints))
    else:
        result = _run_for_list(ctx, s, iterable, hints, box)
    ctx.state.names.pop(held, None)
    return result


def _run_for_list(ctx: Context, s: ast.For, over: Value, hints: Hints, box: Box) -> Flow:
    """If the body changes its length, the loop goes on as long as there are items."""
    found = attempt(ctx, lambda: with_counted_lists(ctx, lambda: _run_for_over(ctx, s, over, hints)))
    if isinstance(found, Flow):
        return found
    if box not in ctx.changed_meanwhile or (isinstance(over, Sequence_) and over.kind == "dict"):
        raise found
    ctx.state.names.pop(ctx.held.pop(s), None)

    def now() -> Sequence_ | Grown:
        value = contents(ctx.state, box.key)
        assert isinstance(value, (Sequence_, Grown))
        return value

    def count() -> Atom:
        length = now()
        return i64(len(length.items)) if isinstance(length, Sequence_) else length.length.atom

    return with_counted_lists(
        ctx, lambda: _for_with_exits(ctx, s, count, lambda i: subscript(ctx, now(), Scalar(i)), hints, False, None)
    )


def _run_for_over(ctx: Context, s: ast.For, iterable: Value, hints: Hints) -> Flow:
    if isinstance(iterable, RangeValue) and iterable.parallel:
        if left_early(s):
            ctx.fail("TP111", "a parallel loop cannot be left early", "use range, or an if around the work.")
        with ctx.showing_nothing():
            ctx.in_parallel += 1
            try:
                run_plain_for(ctx, s, iterable, Hints(parallel=True))
            finally:
                ctx.in_parallel -= 1
        return after_loop(ctx, s, False, None)
    if isinstance(iterable, Sequence_) and iterable.kind in ("tuple", "list", "namedtuple"):
        return _over_items(ctx, s, iterable.items, hints, iterable)
    if isinstance(iterable, Sequence_) and iterable.kind == "dict":
        return _over_items(ctx, s, [constant(k) for k in iterable.keys], hints, iterable)
    if isinstance(iterable, Zipped) and all(isinstance(p, Sequence_) for p in iterable.parts):
        return _over_items(ctx, s, zipped_items(ctx, iterable), hints, iterable)
    if isinstance(iterable, RangeValue) and not iterable.shown and 0 < len(constants_in(iterable) or ()) <= SHORT:
        return _rolled_or_not(ctx, s, iterable, hints)
    count, element = iteration(ctx, iterable, may_stop=left_early(s))
    if ctx.unseen or not _is_shown(iterable):
        return _rolled(ctx, s, count, element, hints)

    def shown(i: Atom) -> Value:
        ctx.b.effect(Progress(i, count))
        return element(i)

    with ctx.showing_nothing():
        return _rolled(ctx, s, count, shown, hints)


def _rolled_or_not(ctx: Context, s: ast.For, iterable: RangeValue, hints: Hints) -> Flow:
    """A short loop over constants is unrolled if it changes the length of a list: the items are known then, and may be of
    any kind. Not if that makes much code, and the items are floats or arrays of them, nor if it does not go: where an
    iteration appends or not, for example.
    """
    before, made, copied = ctx.state.copy(), ctx.b.made, ctx.copied
    written = set(ctx.written_cells)
    count, element = iteration(ctx, iterable, may_stop=left_early(s))
    try:
        return _rolled(ctx, s, count, element, hints, may_unroll=True)
    except Lengthens:
        each = ctx.b.made - made
        ctx.state, ctx.b.made, ctx.copied, ctx.written_cells = before, made, copied, written
    items = items_of(ctx, "this loop", iterable)

    def in_copies() -> Flow:
        outer, ctx.lists_may_meet = ctx.lists_may_meet, False
        since = len(ctx.lengthened)
        try:
            found = unrolled(ctx, s, items, "the length of a list changes in it")
        finally:
            ctx.lists_may_meet = outer
        for box in ctx.lengthened[since:]:
            if isinstance(value := ctx.state.names.get(box.key), Conflict):
                ctx.fail("TP104", value.reason, value.hint)
        return found

    ways: list[Callable[[], Flow]] = [
        in_copies,
        lambda: _rolled(ctx, s, count, element, hints),
    ]
    if each * len(items) > WORTH and not left_early(s):
        ways.insert(0, lambda: _with_floats(ctx, s, count, element, hints))
    problems: list[CompileError] = []
    for way in ways:
        found = attempt(ctx, way)
        if isinstance(found, Flow):
            return found
        problems.append(found)
    raise problems[-2]


def _with_floats(ctx: Context, s: ast.For, count: Atom, element: Callable[[Atom], Value], hints: Hints) -> Flow:
    """The loop, if all lists that get longer in it are of floats of one type, or of arrays of them. Others may have to be
    known when it is compiled. Their lengths are known.
    """
    since = len(ctx.lengthened)
    found = _rolled(ctx, s, count, element, hints)
    for box in dict.fromkeys(ctx.lengthened[since:]):
        value = ctx.state.names.get(box.key)
        if value is None:
            continue
        if not isinstance(value, Grown) or value.array is None or value.form or value.mixed:
            ctx.fail("TP104", "a list that gets longer in this loop has items of several kinds")
        if not (value.array.type.dtype.is_float or value.array.type.dtype.is_complex):
            ctx.fail("TP104", "a list that gets longer in this loop has items that are no floats")
        set_contents(ctx.state, box, Sequence_(tuple(items_of(ctx, "this loop", value)), "list", ref=box))
    return found


def _is_shown(iterable: Value) -> bool:
    """Whether tp.progress is in it."""
    match iterable:
        case RangeValue(shown=shown):
            return shown
        case Planned(iterable=inner):
            return _is_shown(inner)
        case Zipped(parts=parts):
            return any(map(_is_shown, parts))
        case _:
            return False


def _rolled(
    ctx: Context, s: ast.For, count: Atom, element: Callable[[Atom], Value], hints: Hints, may_unroll: bool = False
) -> Flow:
    if left_early(s) or may_be_full(ctx, s):
        return _for_with_exits(ctx, s, lambda: count, element, hints, may_unroll, count)
    _plain_for(ctx, s, count, element, hints, may_unroll)
    return after_loop(ctx, s, False, None)


def run_plain_for(ctx: Context, s: ast.For, iterable: Value, hints: Hints = NONE) -> None:
    """A `for` that runs to its end: one Core loop. `hints.parallel` asks a later pass to make it parallel."""
    _plain_for(ctx, s, *iteration(ctx, iterable), hints)


def _plain_for(
    ctx: Context, s: ast.For, count: Atom, element: Callable[[Atom], Value], hints: Hints, may_unroll: bool = False
) -> None:
    keys, live = _loop_keys(ctx, s)

    def run(index: Atom | None) -> None:
        assert index is not None
        with ctx.at(s.target):
            assign(ctx, s.target, element(index))
        leaving_when_full(ctx, s, lambda: run_block(ctx, s.body))

    compile_loop(
        ctx,
        _array_keys(ctx, keys, s),
        live,
        run,
        bound=count,
        hints=hints,
        guess_cells=_guess_cells(ctx, s),
        exchanged=_exchanged(ctx, s),
        may_unroll=may_unroll,
    )


def _for_with_exits(
    ctx: Context,
    s: ast.For,
    count: Callable[[], Atom],
    element: Callable[[Atom], Value],
    hints: Hints,
    may_unroll: bool,
    most: Atom | None,
) -> Flow:
    """A `for` that may be left early: a `while` that counts. `most`: how many iterations there are, where it is known before."""
    counts = isinstance(s.iter, ast.Call) and isinstance(s.iter.func, ast.Name) and s.iter.func.id == "range"
    counter = COUNTER.format(s.target.id if counts and isinstance(s.target, ast.Name) else "i", ctx.number())
    keys, live = _loop_keys(ctx, s, frozenset({FLOW, RETURN, counter}))
    ctx.bind(FLOW, Scalar(i64(0)))
    ctx.bind(counter, Scalar(i64(0)))

    def position() -> Atom:
        value = ctx.state.names[ctx.key(counter)]
        assert isinstance(value, Scalar)
        return value.atom

    def test() -> Atom:
        return still_running(ctx, lambda: atoms.apply(ctx, "lt", position(), count()))

    def run(_: Atom | None) -> None:
        at = position()

        def once() -> Flow:
            with ctx.at(s.target):
                assign(ctx, s.target, element(at))
            return run_block(ctx, s.body)

        finish_iteration(ctx, leaving_when_full(ctx, s, once), True)
        ctx.bind(counter, Scalar(atoms.apply(ctx, "add", at, i64(1))))

    saved = ctx.state.names.pop(ctx.key(RETURN), None)
    compile_loop(
        ctx,
        _array_keys(ctx, keys, s),
        live,
        run,
        test=test,
        hints=hints,
        guess_cells=_guess_cells(ctx, s),
        exchanged=_exchanged(ctx, s),
        most=most,
        may_unroll=may_unroll,
    )
    ctx.state.names.pop(ctx.key(counter), None)
    return after_loop(ctx, s, True, saved)


def _over_items(ctx: Context, s: ast.For, items: Sequence[Value], hints: Hints, over: Value) -> Flow:
    """A loop over a tuple: over many items that are alike it is a loop over an array, if its body does not need to know
    them.
    """
    element = rows(ctx, items) if len(items) > SHORT else None
    if element is None:
        return unrolled(ctx, s, items, "the items are of several types" if len(items) > SHORT else "", over)
    found = attempt(ctx, lambda: _rolled(ctx, s, i64(len(items)), lambda i: anonymous(element(i)), hints))
    return found if isinstance(found, Flow) else unrolled(ctx, s, items, found.reason, over)
