"""Loops: which names and arrays go around, with what types, and what they are afterwards.

Takes a way to run the body once; gives a Core `for` or `while`. A trial run finds what the body changes; when a
guess (types, written arrays) was too small the body is compiled again with the larger one.

Note [Arrays of the next iteration]
A carried name starts each iteration with a cell of its own. What Python has there is the array that the name got at the end
of the iteration before: an array of before the loop, or one that another name got too. So the cell lists these
among those it `may_be`, and two names that may have got one array share a cell that stands for it. The sets grow until an
iteration adds nothing; a write then makes stale what would miss it, as everywhere (Note [References] in values.py).
"""

from __future__ import annotations

from collections.abc import Callable, Iterable
from dataclasses import dataclass, field
from itertools import combinations

from tapeless.frontend import exchange, scalars
from tapeless.frontend.arrays import cast, in_order, read
from tapeless.frontend.atoms import same_size
from tapeless.frontend.context import Context, type_text
from tapeless.frontend.flow import RETURN
from tapeless.frontend.merge import FALSE, TRUE, shown
from tapeless.frontend.values import (
    Array,
    Cell,
    Conflict,
    Key,
    MaybeUndefined,
    Scalar,
    State,
    Value,
    cells_of,
    parts_of,
    same_form,
    with_parts,
)
from tapeless.ir.core import Body, For, Full, While
from tapeless.ir.hints import NONE, Hints
from tapeless.ir.types import I64, Atom, Const, DType, Type, Var, i64, zero_of

Place = tuple[Key, int]  # a number or an array of a carried value: its name, its position there


@dataclass
class Slot:
    """One carried variable: its parameter, the value before the loop, how to read it at the end of the body."""

    param: Var
    init: Atom
    result: Atom | None = None


@dataclass
class Carried:
    """The guess of one attempt."""

    cells: list[Cell] = field(default_factory=list)  # arrays written in place
    dtypes: dict[Place, tuple[DType, bool]] = field(default_factory=dict)  # widened scalars
    fresh: dict[Key, Value] = field(default_factory=dict)  # first bound inside: shape of the value, as seen in a trial
    stale: dict[Cell, str] = field(default_factory=dict)  # what an iteration leaves unreadable for the next one
    may_be: dict[Place, set[Cell]] = field(default_factory=dict)  # Note [Arrays of the next iteration]
    scattered: set[Place] = field(default_factory=set)  # arrays that an iteration leaves so: Note [Memory order]
    exchanged: tuple[Key, ...] = ()  # names that hand their arrays around: Note [Exchanged arrays]


class Retry(Exception):
    """The guess was too small."""


def compile_loop(
    ctx: Context,
    rebound: Iterable[Key],
    live_after: Callable[[Key], bool],
    run: Callable[[Var | None], None],
    *,
    bound: Atom | None = None,
    test: Callable[[], Atom] | None = None,
    hints: Hints = NONE,
    guess_cells: Iterable[Cell] = (),
    exchanged: Iterable[Key] = (),
) -> None:
    """Emits the loop. `run` compiles the body in ctx.state; `test` the condition (a while loop) or `bound` (a
    for loop).
    """
    before = ctx.state
    written_before = set(ctx.written_cells)
    made, copied = ctx.b.made, ctx.copied
    carried = Carried(cells=[c for c in guess_cells if c in before.cells])
    keys = list(dict.fromkeys(rebound))
    swapped = tuple(k for k in keys if k in set(exchanged))
    if swapped and exchange.exchangeable(before, swapped):
        carried.exchanged = swapped
    for _ in range(24):
        attempt = _Attempt(ctx, before.copy(), keys, live_after, carried)
        try:
            attempt.compile(run, bound, test, hints)
            return
        except Retry:
            ctx.state = before.copy()
            ctx.written_cells = set(written_before)
            ctx.b.made, ctx.copied = made, copied  # what is given up does not count
    ctx.fail(
        "TP104", "the types of the variables of this loop do not settle", "give them their final type before the loop."
    )


class _Attempt:
    def __init__(
        self, ctx: Context, before: State, keys: list[Key], live_after: Callable[[Key], bool], carried: Carried
    ) -> None:
        self.ctx, self.before, self.keys, self.live_after, self.carried = ctx, before, keys, live_after, carried
        self.slots: list[Slot] = []
        self.rebuild: list[Callable[[list[Var]], None]] = []

    def compile(
        self, run: Callable[[Var | None], None], bound: Atom | None, test: Callable[[], Atom] | None, hints: Hints
    ) -> None:
        ctx = self.ctx
        ctx.state = entry = self.before.copy()
        entry.stale.update(self.carried.stale)
        cell_slots = [(cell, self._slot(entry.cells[cell], cell.name)) for cell in self.carried.cells]
        for cell, slot in cell_slots:
            entry.cells[cell] = slot.param
        shapes: dict[Key, _Shape] = {}
        for key in self.keys:
            shape = self._enter(key, entry)
            if shape is not None:
                shapes[key] = shape
        numbers = {key: self._slot(i64(k), "which") for k, key in enumerate(self.carried.exchanged)}
        away = exchange.seen_by_others(self.before, self.carried.exchanged)
        for cell in away:
            entry.stale.setdefault(cell, f"'{cell.name}' goes from name to name in this loop")
        head = entry.copy()
        test_body: Body | None = None
        if test is not None:
            with ctx.b.region() as stms:
                cond = test()
            test_body = Body(tuple(stms), (cond,))
            self._no_writes(head)
        ctx.state = head
        index = Var("i", I64)
        with ctx.b.region() as body:
            run(index if bound is not None else None)
            end = ctx.state
            for cell, slot in cell_slots:
                slot.result = end.cells[cell]
            missed = [
                c for c in self.before.cells if c not in self.carried.cells and end.cells.get(c) is not entry.cells[c]
            ]
            if missed:
                self.carried.cells.extend(missed)
                raise Retry
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
            for shape in shapes.values():
                shape.leave(end)
            self._next_iteration(list(shapes.values()))
            for key in self.keys:
                if key not in shapes and key in end.names:
                    self._first_bound(key, end.names[key])
        results = tuple(s.result for s in self.slots if s.result is not None)
        assert len(results) == len(self.slots)
        params = tuple(s.param for s in self.slots)
        inits = tuple(s.init for s in self.slots)
        outs = tuple(Var(p.name, p.type) for p in params)
        if bound is not None:
            ctx.b.bind(outs, For(index, bound, params, inits, Body(tuple(body), results), hints))
        else:
            assert test_body is not None
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

    def _next_iteration(self, shapes: list[_Shape]) -> None:
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
        self, shapes: dict[Key, _Shape], numbers: dict[Key, Slot], mapping: dict[Var, Var], away: list[Cell]
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

    def _slot(self, init: Atom, name: str) -> Slot:
        slot = Slot(Var(name, init.type), init)
        self.slots.append(slot)
        return slot

    def _enter(self, key: Key, entry: State) -> _Shape | None:
        value = entry.names.get(key)
        if value is None:
            if key not in self.carried.fresh:
                return None
            value = _undefined(self.ctx, self.carried.fresh[key], self.before, key[1])
            if not key[1].startswith("<"):
                value = MaybeUndefined(value, FALSE)
        shape = _Shape(self, key, value)
        entry.names[key] = shape.entry(entry)
        return shape

    def _first_bound(self, key: Key, value: Value) -> None:
        """A name that the body binds first: carried out only when somebody reads it afterwards."""
        if self.live_after(key):
            self.carried.fresh[key] = value
            raise Retry

    def _no_writes(self, head: State) -> None:
        for cell, var in head.cells.items():
            if self.ctx.state.cells.get(cell) is not var:
                self.ctx.fail(
                    "TP101", "the condition of a loop must not write arrays", "write in the body of the loop."
                )


class _Shape:
    """A carried name: flattens its value into slots on entry, takes the slots' new values at the end."""

    def __init__(self, attempt: _Attempt, key: Key, value: Value) -> None:
        self.attempt, self.key, self.value = attempt, key, value
        self.leaves: list[Slot | None] = []
        self.flag: Slot | None = None
        self.starts: dict[Place, Cell] = {}  # the arrays at the start of the body, and those at its end
        self.ends: dict[Place, Cell] = {}
        self.template: Value = value
        self.weak: list[bool] = []
        self.count = 0

    def entry(self, entry: State) -> Value:
        value = self.value
        if isinstance(value, MaybeUndefined):
            self.flag = self.attempt._slot(value.defined, "defined")
            inner = self._enter_value(value.value, entry)
            return MaybeUndefined(inner, self.flag.param)
        return self._enter_value(value, entry)

    def _enter_value(self, value: Value, entry: State) -> Value:
        ctx = self.attempt.ctx
        name = shown(self.key[1])
        match value:
            case Scalar(atom=atom, weak=is_weak):
                place = (self.key, self.count)
                self.count += 1
                dtype, is_weak = self.attempt.carried.dtypes.get(place, (atom.type.dtype, is_weak))
                slot = self.attempt._slot(scalars.exactly(ctx, atom, dtype), name)
                self.leaves.append(slot)
                self.weak.append(is_weak)
                return Scalar(slot.param, is_weak)
            case Array(cell=cell):
                place = (self.key, self.count)
                self.count += 1
                may_be = self._may_be(cell) | self.attempt.carried.may_be.get(place, set())
                if self.key[1] == RETURN:
                    may_be = set()
                if cell in self.attempt.before.cells:  # in `entry` it may go around the loop already
                    ctx.state = self.attempt.before
                var = read(ctx, value)
                scattered = place in self.attempt.carried.scattered or not in_order(ctx, value)
                ctx.state = entry
                slot = self.attempt._slot(var, name)
                self.leaves.append(slot)
                self.weak.append(False)
                self.starts[place] = new = Cell(name, may_be, cell.readonly, scattered=scattered)
                entry.cells[new] = slot.param
                return Array(new, slot.param.type)
            case _:
                return with_parts(value, [self._enter_value(v, entry) for v in parts_of(value)])

    def _may_be(self, cell: Cell) -> set[Cell]:
        """The arrays of before that this may be, when anything else can see one of them during the loop."""
        if self.key in self.attempt.carried.exchanged:
            return set()
        if any(c.argument for c in cell.possible) or cell in self.attempt.carried.cells:
            return cell.possible
        values = {**self.attempt.before.names, self.key: self.value}.values()
        seen = sum(not cell.possible.isdisjoint(c.possible) for v in values for c in cells_of(v))
        return cell.possible if seen > 1 else set()

    # -- at the end of the body

    def leave(self, end: State) -> None:
        value = end.names.get(self.key)
        if self.flag is not None:
            self.flag.result = value.defined if isinstance(value, MaybeUndefined) else TRUE
        if isinstance(value, MaybeUndefined):
            value = value.value
        slots = iter(self.leaves)
        places = iter(range(len(self.leaves)))
        target = self.value.value if isinstance(self.value, MaybeUndefined) else self.value
        self._leave_value(target, value, slots, places)

    def _leave_value(self, old: Value, new: Value | None, slots: object, places: object) -> None:
        ctx = self.attempt.ctx
        name = self.key[1]
        label = _label(name)
        if isinstance(new, Conflict):
            ctx.fail("TP104", new.reason, new.hint)
        match old, new:
            case Scalar(), Scalar():
                slot: Slot = next(slots)  # type: ignore[call-overload]
                place: int = next(places)  # type: ignore[call-overload]
                have = Scalar(slot.param, self.weak[place])
                base = Scalar(slot.init, have.weak) if isinstance(slot.init, Const) else have
                dtype, is_weak = scalars.join(ctx, base, new)
                if dtype is not slot.param.type.dtype or is_weak != have.weak:
                    self.attempt.carried.dtypes[(self.key, place)] = (dtype, is_weak)
                    raise Retry
                slot.result = scalars.exactly(ctx, new.atom, dtype)
            case Array(), Array():
                slot = next(slots)  # type: ignore[call-overload]
                at = (self.key, next(places))  # type: ignore[call-overload]
                self.ends[at] = new.cell
                self._leave_array(slot, new)
                if not self.starts[at].scattered and not in_order(ctx, new):
                    self.attempt.carried.scattered.add(at)
                    raise Retry
            case _ if new is not None and parts_of(old) and same_form(old, new):
                for p, q in zip(parts_of(old), parts_of(new), strict=True):
                    self._leave_value(p, q, slots, places)
            case _ if new is not None and (old is new or old == new):
                return
            case Conflict(reason=reason, hint=hint), _:
                ctx.fail("TP104", reason, hint)
            case _:
                text = type_text(new) if new is not None else "unbound"
                ctx.fail(
                    "TP104",
                    f"{label} is {type_text(old)} before the loop and {text} after an iteration",
                    "give it the same type before the loop and in it.",
                )

    def _leave_array(self, slot: Slot, new: Array) -> None:
        ctx = self.attempt.ctx
        want = slot.param.type
        if new.type.rank != want.rank:
            ctx.fail(
                "TP104",
                f"'{self.key[1]}' changes its number of dimensions in the loop, from {want.rank} to {new.type.rank}",
            )
        var = cast(ctx, read(ctx, new), want.dtype)
        if new.type.dtype is not want.dtype:
            ctx.fail(
                "TP104",
                f"'{self.key[1]}' changes its element type in the loop, "
                f"from {want.dtype.numpy.name} to {new.type.dtype.numpy.name}",
                "give it the final element type before the loop.",
            )
        for d, e in zip(want.shape, new.type.shape, strict=True):
            a, b = ctx.canon(d), ctx.canon(e)
            if a is b or (isinstance(a, int) and a == b):
                continue
            if isinstance(a, int) and isinstance(b, int):
                ctx.shape_error(
                    "TP204", f"'{self.key[1]}' changes its size in the loop, from {a} to {b}",
                    "allocate the largest size before the loop and keep a count.",
                )  # fmt: skip
            same_size(ctx, a, b, f"'{self.key[1]}' must keep its size in a loop")
        slot.result = var

    # -- after the loop

    def after(self, state: State, mapping: dict[Var, Var]) -> Value:
        slots = iter(self.leaves)
        places = iter(range(len(self.leaves)))
        inner = self.value.value if isinstance(self.value, MaybeUndefined) else self.value
        value = self._after_value(inner, slots, places, state, mapping)
        if self.flag is None:
            return value
        return MaybeUndefined(value, mapping[self.flag.param])

    def _after_value(self, old: Value, slots: object, places: object, state: State, mapping: dict[Var, Var]) -> Value:
        match old:
            case Scalar():
                slot: Slot = next(slots)  # type: ignore[call-overload]
                place: int = next(places)  # type: ignore[call-overload]
                return Scalar(mapping[slot.param], self.weak[place])
            case Array(cell=cell):
                slot = next(slots)  # type: ignore[call-overload]
                at = (self.key, next(places))  # type: ignore[call-overload]
                start, end = self.starts[at], self.ends[at]
                may_be = self._may_be(cell)
                if self.key in self.attempt.carried.exchanged:
                    may_be = {
                        c for key in self.attempt.carried.exchanged for c in cells_of(self.attempt.before.names[key])
                    }
                new = Cell(self.key[1], may_be | end.possible, cell.readonly, scattered=start.scattered)
                state.cells[new] = mapping[slot.param]
                return Array(new, mapping[slot.param].type)
            case _:
                return with_parts(old, [self._after_value(v, slots, places, state, mapping) for v in parts_of(old)])


def _label(name: str) -> str:
    return "the result" if name.startswith("<") else f"'{name}'"


def _undefined(ctx: Context, value: Value, before: State, name: str) -> Value:
    """A stand-in, of the type that the body gives it, for a name that is not bound before the loop."""
    match value:
        case MaybeUndefined(value=inner):
            return _undefined(ctx, inner, before, name)
        case Scalar(atom=atom, weak=is_weak):
            return Scalar(zero_of(atom.type.dtype), is_weak)
        case Array(cell=cell, type=type):
            if cell in before.cells and not value.view:
                return value
            dims = tuple(ctx.canon(d) for d in type.shape)
            if any(isinstance(d, Var) and d not in _known(ctx, before) for d in dims):
                return Conflict(
                    f"{_label(name)} is made inside the loop with a size that is only known there, and used after it",
                    "allocate it before the loop.",
                )
            return ctx.new_cell(ctx.b.let(Type(type.dtype, dims), Full(dims, zero_of(type.dtype)), cell.name))
        case _:
            return with_parts(value, [_undefined(ctx, v, before, name) for v in parts_of(value)])


def _known(ctx: Context, before: State) -> set[Var]:
    known: set[Var] = set(ctx.sizes)
    for var in before.cells.values():
        known.update(d for d in var.type.shape if isinstance(d, Var))
    for v in before.names.values():
        if isinstance(v, Scalar) and isinstance(v.atom, Var):
            known.add(v.atom)
    return known
