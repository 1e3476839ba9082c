"""Loops: which names and arrays go around, with what types, and what they are afterwards.

Takes a way to run the body once; gives a Core `for` or `while`. A trial run finds what the body changes; when a
guess (types, written arrays) was too small the body is compiled again with the larger one.

Note [Arrays of the next iteration]
A carried name starts each iteration with a cell of its own. What Python has there is the array that the name got at the
end of the iteration before: an array of before the loop, or one that another name got too. So the cell lists these
among those it `may_be`, and two names that may have got one array share a cell that stands for it. The sets grow until
an iteration adds nothing; a write then makes stale what would miss it, as everywhere (Note [References] in values.py).

Note [The last iteration]
An array that each iteration makes anew, of a size that is only known there, cannot go around: before the first iteration
there is nothing to size it by. But what is read after the loop was made by the last iteration. So the loop makes one
iteration less, and the last one comes after it, if there is one. A name that an iteration may leave as it was has to go
around, and is refused.

Note [The first iteration]
After `s = 0` and `s = s + row` in a loop, `s` is a number in the first iteration and an array in all others. So the first
one comes before the loop, which has the others. Two come before it where the array that one name becomes makes an array of
another name an iteration later. Without them `s` would be a number afterwards: that is an error when it happens, since a
name has one type. What is None before the loop, as in `best = None` and `if best is None or v > best: best = v`, is
compiled in the same way: where it is tested, it is known. So is an array whose element type or number of axes changes, and a
name that has no value before the loop, and is read in it where this is not the first iteration (`if k == 0: y = x`).
"""

from __future__ import annotations

from collections.abc import Callable, Iterable, Mapping
from functools import partial
from itertools import combinations
from typing import Any

from tapeless.errors import CompileError
from tapeless.frontend.data.atoms import apply, lazy_if
from tapeless.frontend.python import exchange
from tapeless.frontend.python.carried import Shape, known_sizes, undefined
from tapeless.frontend.python.flow import NEXT, RETURN, Flow, branch
from tapeless.frontend.python.growth import Unfit
from tapeless.frontend.python.guesses import Becomes, Carried, Live, Place, Retry, Slot, Trial, learn
from tapeless.frontend.python.list_kinds import as_array, is_list
from tapeless.frontend.python.loop_lists import ListsOfLoop
from tapeless.frontend.python.merge import FALSE, TRUE, is_none
from tapeless.frontend.python.sizes_of_loops import rooms
from tapeless.frontend.state.code_copies import attempt as trying
from tapeless.frontend.state.context import Context
from tapeless.frontend.state.parts import cells_of, parts_of
from tapeless.frontend.state.values import LISTS, Array, Cell, Conflict, Key, MaybeUndefined, State, Value
from tapeless.ir.core import Apply, Body, For, While
from tapeless.ir.hints import NONE, Hints
from tapeless.ir.types import BOOL, I64, Atom, Const, DType, Var, i64

FIRST = 2  # iterations that may come before a loop


def compile_loop(
    ctx: Context,
    rebound: Iterable[Key],
    live: Live,
    run: Callable[[Atom | None], None],
    *,
    bound: Atom | None = None,
    test: Callable[[], Atom] | None = None,
    hints: Hints = NONE,
    guess_cells: Iterable[Cell] = (),
    exchanged: Iterable[Key] = (),
    most: Atom | None = None,
    may_unroll: bool = False,
    begun: int = 0,
) -> None:
    """Emits the loop. `run` compiles the body in ctx.state; `test` the condition (a while loop) or `bound` (a
    for loop). `most`: how many iterations there are, where it is known before. `may_unroll`: raises `Lengthens` when the
    length of a list changes. `begun`: iterations that came before.
    """
    before = ctx.state
    written_before = set(ctx.written_cells)
    made, copied = ctx.b.made, ctx.copied
    carried = Carried(cells=[c for c in guess_cells if c in before.cells])
    keys = list(dict.fromkeys(rebound))
    swapped = tuple(k for k in keys if k in set(exchanged))
    if swapped and exchange.exchangeable(before, swapped):
        carried.exchanged = swapped
    most = bound if most is None else most
    depth = ctx.inside_prelude, ctx.transforms, len(ctx.rules), ctx.copying

    attempt: _Attempt

    def compiled(room: Mapping[Place, Atom], searches: bool) -> _Attempt:
        nonlocal attempt
        attempt = _Attempt(ctx, before.copy(), keys, live, carried, rooms=dict(room), searches=searches)
        attempt.may_end_apart = bound is not None and hints == NONE
        attempt.may_begin_apart = attempt.may_end_apart and begun < FIRST
        attempt.lists = ListsOfLoop(ctx, attempt.before, carried, most, bound is not None, may_unroll)
        with attempt.lists.open():
            end = _one_less(ctx, bound) if bound and carried.last else bound
            attempt.runs = isinstance(end, Const) and end.value.real > 0
            attempt.compile(run, end, test, NONE if searches else hints)
        return attempt

    for _ in range(24):
        try:
            with ctx.part() as stms:
                places = list(carried.resized)
                compiled(rooms(ctx, places, lambda tried: compiled(tried, True)) if places else {}, False)
                if bound is not None and carried.last:
                    _run_last(ctx, bound, run)
            ctx.b.stms.extend(stms)
            return
        except (Retry, Unfit, Becomes, CompileError) as problem:
            apart = isinstance(problem, Becomes) or _may_have_a_value(attempt, problem)
            if isinstance(problem, CompileError):
                if not apart:
                    attempt.lists.explain(problem)  # raises it, unless a list is to blame
                ctx.inside_prelude, ctx.transforms, ctx.copying = depth[0], depth[1], depth[3]
                del ctx.rules[depth[2] :]
            ctx.state = before.copy()
            ctx.written_cells = set(written_before)
            ctx.b.made, ctx.copied = made, copied  # what is given up does not count
            if apart:
                assert bound is not None

                def others(run: Callable[[Atom | None], None], count: Atom) -> None:
                    compile_loop(
                        ctx, keys, live, run, bound=count, hints=hints, guess_cells=guess_cells, exchanged=exchanged,
                        may_unroll=may_unroll, begun=begun + 1,
                    )  # fmt: skip

                _begin_apart(ctx, problem, run, others, bound, live, begun)
                return
    ctx.fail(
        "TP104", "the types of the variables of this loop do not settle", "give them their final type before the loop."
    )


def _begin_apart(
    ctx: Context, problem: Exception, run: Callable[[Atom | None], None],
    others: Callable[[Callable[[Atom | None], None], Atom], None], bound: Atom, live: Live, begun: int,
) -> None:  # fmt: skip
    """Note [The first iteration]. `others` compiles the loop of all others."""
    if isinstance(bound, Const) and bound.value.real <= 0:
        return
    some = apply(ctx, "gt", bound, i64(0))

    def begun_apart() -> Flow:
        run(i64(0))
        others(partial(_run_next, ctx, run), apply(ctx, "sub", bound, i64(1)))
        return NEXT

    becomes = problem if isinstance(problem, Becomes) else None
    two_types = becomes is not None and live.after(becomes.key) and not becomes.none
    if not two_types and _if_there_are_some(ctx, some, begun_apart, live):
        return
    if becomes is not None:
        ctx.check(some, "ValueError", becomes.reason(begun))
    elif some != TRUE:
        raise problem
    try:
        begun_apart()
    except CompileError as again:
        if again.code == "TP104" and becomes is not None and becomes.refusal is not None:
            raise becomes.refusal from None
        raise


def _may_have_a_value(attempt: _Attempt, problem: Exception) -> bool:
    """Whether a name that has none in a loop may have one after its first iteration. That is tried once."""
    if not (isinstance(problem, CompileError) and problem.unbound in attempt.keys and attempt.may_begin_apart):
        return False
    problem.unbound = None
    return True


def _element_types(value: Value) -> list[DType]:
    """Of the arrays in it."""
    return [value.type.dtype] if isinstance(value, Array) else [t for v in parts_of(value) for t in _element_types(v)]


def _one_less(ctx: Context, bound: Atom) -> Atom:
    return apply(ctx, "max", apply(ctx, "sub", bound, i64(1)), i64(0))


def _if_there_are_some(ctx: Context, some: Atom, run: Callable[[], Flow], live: Live) -> bool:
    """Runs the iterations, if there are some. False, and nothing done, if what is read afterwards would be of two types."""

    def either() -> None:
        before = dict(ctx.state.names)
        branch(ctx, some, run, lambda: NEXT)
        for key, value in ctx.state.names.items():
            if isinstance(value, Conflict) and (key[0] == LISTS or live.after(key)):
                ctx.fail("TP104", value.reason, value.hint)
            if live.after(key) and _element_types(value) != _element_types(before.get(key, value)):
                ctx.fail("TP104", f"'{key[1]}' changes its element type in this loop")

    return some != TRUE and not isinstance(trying(ctx, either), CompileError)


def _run_next(ctx: Context, run: Callable[[Atom | None], None], index: Atom | None) -> None:
    assert index is not None
    run(apply(ctx, "add", index, i64(1)))


def _run_last(ctx: Context, bound: Atom, run: Callable[[Atom | None], None]) -> None:
    """Note [The last iteration]"""

    def last() -> Flow:
        run(ctx.b.let(I64, Apply("sub", (bound, i64(1))), "i"))
        return NEXT

    there_is_one = apply(ctx, "gt", bound, i64(0))
    if there_is_one == TRUE:
        last()
    else:
        branch(ctx, there_is_one, last, lambda: NEXT)


class _Attempt(Trial):
    may_end_apart = False  # whether the last iteration may come after the loop
    lists: ListsOfLoop

    def __init__(
        self, ctx: Context, before: State, keys: list[Key], live: Live, carried: Carried,
        **options: Any,
    ) -> None:  # fmt: skip
        super().__init__(ctx, before, carried, **options)
        self.keys, self.live = keys, live

    def compile(
        self,
        run: Callable[[Atom | None], None],
        bound: Atom | None,
        test: Callable[[], Atom] | None,
        hints: Hints,
    ) -> None:
        ctx, lists = self.ctx, self.lists
        ctx.state = self.before
        for key, kind in self.carried.as_arrays.items():
            value = self.before.names[key]
            if is_list(value):
                self.before.names[key] = as_array(ctx, value, kind)
        own_cells = [*self.carried.cells, *lists.start()]
        arrays = self.carried.growing.keys() | self.carried.stay
        self.keys = [*self.keys, *(k for k in self.carried.lists if k not in arrays)]
        ctx.state = entry = self.before.copy()
        entry.stale.update(self.carried.stale)
        cell_slots = [(cell, self.slot(entry.cells[cell], cell.name)) for cell in own_cells]
        for cell, slot in cell_slots:
            entry.cells[cell] = slot.param
        shapes: dict[Key, Shape] = {}
        for key in self.keys:
            shape = self._enter(key, entry)
            if shape is not None:
                shapes[key] = shape
        lengths = {key: self.slot(first, "length") for key, first in lists.carried_lengths().items()}
        lists.enter(entry, lengths)
        numbers = {key: self.slot(i64(k), "which") for k, key in enumerate(self.carried.exchanged)}
        away = exchange.seen_by_others(self.before, self.carried.exchanged)
        for cell in away:
            entry.stale.setdefault(cell, f"'{cell.name}' goes from name to name in this loop")
        head = entry.copy()
        test_body: Body | None = None
        count = self.slot(i64(0), "i") if self.searches and bound is not None else None
        enough = self.slot(TRUE, "enough") if self.searches else None
        if enough is not None:
            test = self._unless_full(enough.param, test, None if count is None else (count.param, bound))
        if test is not None:
            with ctx.part() as stms:
                cond = test()
            test_body = Body(tuple(stms), (cond,))
            self._no_writes(head)
            if cond == FALSE and all(isinstance(s.exp, Apply) for s in stms):
                ctx.state = self.before  # it never begins: what its body does with an empty list, say, is no error
                return
        ctx.state = head
        index = Var("i", I64) if count is None else count.param
        with ctx.part() as body:
            lists.count(head, index)
            run(index if bound is not None else None)
            end = ctx.state
            learn([*lists.leave(end, entry, lengths), partial(self._leave_cells, cell_slots, entry)])
            handed = exchange.owners(tuple(numbers), {key: shapes[key].starts[key, 0] for key in numbers}, end)
            if handed is None:
                self.carried.exchanged = ()
                raise Retry
            for key, owner in handed.items():
                numbers[key].result = numbers[owner].param
            stale = {c: reason for c, reason in end.stale.items() if c in self.before.cells and c not in entry.stale}
            if stale:
                self.carried.stale.update(stale)
                raise Retry
            learn(partial(shape.leave, end) for shape in shapes.values())
            if enough is not None:
                enough.result = self.fits
            if count is not None:
                count.result = apply(ctx, "add", index, i64(1))
            self._next_iteration(list(shapes.values()))
            first_bound = (k for k in self.keys if k not in shapes and k in end.names)
            learn(partial(self._first_bound, key, end.names[key]) for key in first_bound)
        results = tuple(s.result for s in self.slots if s.result is not None)
        assert len(results) == len(self.slots)
        params = tuple(s.param for s in self.slots)
        inits = tuple(s.init for s in self.slots)
        outs = tuple(Var(p.name, p.type) for p in params)
        if test_body is None:
            assert bound is not None
            ctx.b.bind(outs, For(index, bound, params, inits, Body(tuple(body), results), hints))
        else:
            ctx.b.bind(outs, While(params, inits, test_body, Body(tuple(body), results), hints))
        after = self.before.copy()
        after.stale.update({c: reason for c, reason in end.stale.items() if c not in away})
        mapping = dict(zip(params, outs, strict=True))
        for cell, slot in cell_slots:
            after.cells[cell] = mapping[slot.param]
        ctx.state = after
        self._bring_home(shapes, numbers, mapping, away)
        for key, shape in shapes.items():
            after.names[key] = shape.after(after, mapping)
        lists.after(after, {key: mapping[slot.param] for key, slot in lengths.items()})
        if enough is not None:
            self.fits = mapping[enough.param]

    def _leave_cells(self, slots: list[tuple[Cell, Slot]], entry: State) -> None:
        end = self.ctx.state
        for cell, slot in slots:
            slot.result = end.cells[cell]
        own = {cell for cell, _ in slots}
        missed = [c for c in self.before.cells if c not in own and end.cells.get(c) is not entry.cells[c]]
        if missed:
            self.carried.cells.extend(missed)
            raise Retry

    def _unless_full(
        self, enough: Var, test: Callable[[], Atom] | None, counter: tuple[Var, Atom | None] | None
    ) -> Callable[[], Atom]:
        """The condition of a loop that looks for the room it needs, and ends where there is too little."""
        ctx = self.ctx

        def goes_on() -> Atom:
            if test is not None:
                return test()
            assert counter is not None and counter[1] is not None
            return apply(ctx, "lt", counter[0], counter[1])

        return lambda: lazy_if(ctx, enough, goes_on, lambda: FALSE, BOOL)

    def _next_iteration(self, shapes: list[Shape]) -> None:
        """Note [Arrays of the next iteration]: what was taken for another array than it may be."""
        read = [s for s in shapes if s.key[1] != RETURN]  # nobody reads a result before the loop has been left
        starts = {place: cell for s in read for place, cell in s.starts.items()}
        ends = {place: cell for s in read for place, cell in s.ends.items()}
        more: dict[Place, set[Cell]] = {}
        for place, end in ends.items():
            more[place] = {c for c in end.possible if c in self.before.cells} - starts[place].possible
        for (p, end), (q, other) in combinations(ends.items(), 2):
            if end.possible & other.possible and not starts[p].possible & starts[q].possible:
                either = Cell(end.name)
                more[p].add(either)
                more[q].add(either)
        if any(more.values()):
            for place, cells in more.items():
                self.carried.may_be.setdefault(place, set()).update(cells)
            raise Retry

    def _bring_home(
        self, shapes: dict[Key, Shape], numbers: dict[Key, Slot], mapping: dict[Var, Var], away: list[Cell]
    ) -> None:
        """Note [Exchanged arrays]: what the arrays of before hold after the loop."""
        ctx = self.ctx
        if not any(shapes[key].starts[key, 0] in ctx.written_cells for key in numbers):
            return
        holders: list[tuple[Atom, Var]] = []
        for key, number in numbers.items():
            slot = shapes[key].leaves[0]
            assert slot is not None
            holders.append((mapping[number.param], mapping[slot.param]))
        for k, key in enumerate(numbers):
            (cell,) = cells_of(self.before.names[key])
            if cell.argument or cell in away:
                ctx.written_cells.add(cell)
                ctx.state.cells[cell] = exchange.contents(ctx, k, holders)

    # -- entering

    def _enter(self, key: Key, entry: State) -> Shape | None:
        value = entry.names.get(key)
        if is_none(value) and key in self.carried.nones:
            stand_in = undefined(self.ctx, self.carried.nones[key], self.before)
            value = MaybeUndefined(stand_in, FALSE, none=True)
        if value is not None and key in self.carried.may_be_none:
            value = MaybeUndefined(value, TRUE, none=True)
        if value is None:
            if key not in self.carried.fresh:
                return None
            bound = self.carried.fresh[key]
            value = undefined(self.ctx, bound, self.before)
            only_after = self.may_end_apart and not self.live.again(key)
            if only_after and not isinstance(bound, MaybeUndefined) and self._is_sized_inside(bound):
                del self.carried.fresh[key]
                self.carried.last.add(key)
                raise Retry
            if not key[1].startswith("<"):
                value = MaybeUndefined(value, FALSE)
        shape = Shape(self, key, value)
        entry.names[key] = shape.entry(entry)
        return shape

    def _is_sized_inside(self, value: Value) -> bool:
        """Whether an array has a size that only an iteration knows."""
        known = known_sizes(self.ctx, self.before)
        if isinstance(value, Array):
            here = value.cell in self.before.cells and not value.view
            return not here and any(isinstance(d, Var) and d not in known for d in self.ctx.dims(value.type.shape))
        return any(map(self._is_sized_inside, parts_of(value)))

    def _first_bound(self, key: Key, value: Value) -> None:
        """A name that the body binds first: carried only when somebody reads it, afterwards or in the next iteration where
        that may not have bound it.
        """
        again = self.live.again(key) and key in self.ctx.doubted
        if (self.live.after(key) or again) and key not in self.carried.last:
            self.carried.fresh[key] = value
            raise Retry

    def _no_writes(self, head: State) -> None:
        for cell, var in head.cells.items():
            if self.ctx.state.cells.get(cell) is not var:
                self.ctx.fail(
                    "TP101", "the condition of a loop must not write arrays", "write in the body of the loop."
                )
