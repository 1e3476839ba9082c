"""A carried name as numbers and arrays that go around a loop.

`Shape` flattens the value of a name into slots when the loop is entered, takes their new values at the end of the body,
and makes the value that the name has after the loop. What the guess did not allow for raises `Retry`.
"""

from __future__ import annotations

from collections.abc import Iterator
from dataclasses import replace

from tapeless.errors import CompileError, SizeChanged
from tapeless.frontend.data import scalars
from tapeless.frontend.data.arrays import cast, in_order, read
from tapeless.frontend.data.atoms import same_size
from tapeless.frontend.python.flow import RETURN
from tapeless.frontend.python.guesses import Becomes, Place, Retry, Slot, Trial
from tapeless.frontend.python.list_kinds import as_array, is_list, joined, joined_with
from tapeless.frontend.python.merge import FALSE, TRUE, is_none, is_plain, shown
from tapeless.frontend.python.references import boxes_in, either, is_alone, with_box
from tapeless.frontend.python.sizes_of_loops import Storage, changes
from tapeless.frontend.state.context import Context, new_box, type_text
from tapeless.frontend.state.parts import cells_of, parts_of, same_form, with_parts
from tapeless.frontend.state.values import (
    LISTS,
    Array,
    Box,
    Cell,
    Conflict,
    Grown,
    Key,
    MaybeUndefined,
    Scalar,
    Sequence_,
    State,
    Static,
    Value,
)
from tapeless.ir.core import Full
from tapeless.ir.types import Const, Type, Var, zero_of


class Shape:
    """A carried name: flattens its value into slots on entry, takes the slots' new values at the end."""

    def __init__(self, attempt: Trial, key: Key, value: Value) -> None:
        self.attempt, self.key, self.value = attempt, key, value
        self.leaves: list[Slot | None] = []
        self.flag: Slot | None = None
        self.storages: dict[Place, Storage] = {}  # arrays that change their size
        self.starts: dict[Place, Cell] = {}  # the arrays at the start of the body, and those at its end
        self.ends: dict[Place, Cell] = {}
        self.weak: list[bool] = []
        self.last: set[Box] = set()  # lists that it may be at the end of the body
        self.count = 0

    def entry(self, entry: State) -> Value:
        value = self._entry(entry)
        if self.key in self.attempt.carried.moving:
            return with_box(value, new_box(self.attempt.ctx))
        return value if self.key not in self.attempt.carried.unsure else self._unsure(value, set())

    def _unsure(self, value: Value, more: set[Box]) -> Value:
        """With lists that may be one of several."""
        return with_box(value, either(self.attempt.ctx, [*self.attempt.carried.unsure[self.key], *more]))

    def _entry(self, entry: State) -> Value:
        value = self.value
        if isinstance(value, MaybeUndefined):
            self.flag = self.attempt.slot(value.defined, "defined")
            inner = self._enter_value(value.value, entry)
            return replace(value, value=inner, defined=self.flag.param)
        return self._enter_value(value, entry)

    def _enter_value(self, value: Value, entry: State) -> Value:
        ctx = self.attempt.ctx
        name = shown(self.key[1])
        match value:
            case Scalar(atom=atom, weak=is_weak):
                place = (self.key, self.count)
                self.count += 1
                dtype, is_weak = self.attempt.carried.dtypes.get(place, (atom.type.dtype, is_weak))
                slot = self.attempt.slot(scalars.exactly(ctx, atom, dtype), name)
                self.leaves.append(slot)
                self.weak.append(is_weak)
                return Scalar(slot.param, is_weak)
            case Array(cell=cell):
                place = (self.key, self.count)
                self.count += 1
                own = cell.argument or self.key[0] == LISTS
                if value is not self.value and own and place not in self.attempt.carried.moved:
                    self.leaves.append(None)  # until it is seen to be another one
                    self.weak.append(False)
                    return value
                may_be = self._may_be(cell) | self.attempt.carried.may_be.get(place, set())
                if self.key[1] == RETURN:
                    may_be = set()
                if cell in self.attempt.before.cells:  # in `entry` it may go around the loop already
                    ctx.state = self.attempt.before
                var = read(ctx, value)
                scattered = place in self.attempt.carried.scattered or not in_order(ctx, value)
                ctx.state = entry
                readonly = cell.readonly or self.attempt.carried.readonly.get(place, "")
                self.starts[place] = new = Cell(name, may_be, readonly, scattered=scattered)
                slot, found = self._slot_of(place, new, var, name)
                self.leaves.append(slot)
                self.weak.append(False)
                entry.cells[new] = slot.param
                return found
            case _:
                return with_parts(value, [self._enter_value(v, entry) for v in parts_of(value)])

    def _slot_of(self, place: Place, cell: Cell, var: Var, name: str) -> tuple[Slot, Array]:
        axes = self.attempt.carried.resized.get(place)
        if axes is None:
            slot = self.attempt.slot(var, name)
            return slot, Array(cell, slot.param.type)
        storage = self.storages[place] = Storage.start(self.attempt, place, var, sorted(axes), name)
        storage.value = Array(cell, *storage.seen(var.type, lambda param: param))
        return storage.slot, storage.value

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
        carried = self.attempt.carried
        if self.key in carried.as_arrays and is_list(value):
            value = self._as_array(value)
        always = isinstance(value, Scalar) and self._may_begin_apart(self.key[1])  # from the first iteration on
        if is_none(self.value) and is_plain(value) and not always:
            assert value is not None
            carried.nones[self.key] = value
            raise Retry
        to_none = is_none(value) or (isinstance(value, MaybeUndefined) and value.none)
        if to_none and is_plain(self.value) and not isinstance(self.value, MaybeUndefined):
            carried.may_be_none.add(self.key)
            raise Retry
        if isinstance(self.value, MaybeUndefined) and self.value.none and is_none(value):
            assert self.flag is not None
            self.flag.result = FALSE
            for slot in self.leaves:
                assert slot is not None
                slot.result = slot.param
            return
        if self.flag is not None:
            self.flag.result = value.defined if isinstance(value, MaybeUndefined) else TRUE
        if isinstance(value, MaybeUndefined):
            value = value.value
        slots = iter(self.leaves)
        places = iter(range(len(self.leaves)))
        target = self.value.value if isinstance(self.value, MaybeUndefined) else self.value
        self._leave_value(target, value, slots, places)
        self._leave_lists(target, value)

    def _as_array(self, value: Sequence_ | Grown) -> Value:
        ctx, kinds = self.attempt.ctx, self.attempt.carried.as_arrays
        kind = joined_with(ctx, kinds[self.key], value)
        if kind is None:
            return value
        if kind != kinds[self.key]:
            kinds[self.key] = kind
            raise Retry
        return as_array(ctx, value, kind)

    def _leave_lists(self, old: Value, new: Value | None) -> None:
        """Which lists the name may have in the next iteration."""
        pairs = list(_list_pairs(old, new))
        carried = self.attempt.carried
        self.last = {b for _, box in pairs if box is not None for b in box.possible}
        if self.key in carried.moving:
            if len(self.last) != 1 or not is_alone(self.attempt.ctx, self.attempt.ctx.state, *self.last):
                carried.moving.discard(self.key)
                carried.unsure[self.key] = {new_box(self.attempt.ctx)}
                raise Retry
            return
        if self.key not in carried.unsure and all(a is b for a, b in pairs):
            return
        if self.key not in carried.unsure and self._is_list_alone(new):
            carried.moving.add(self.key)
            raise Retry
        known = boxes_in(self.attempt.before)
        may_be = {b for a, _ in pairs if a is not None for b in a.possible} | {b for b in self.last if b in known}
        if self.key not in carried.unsure or not may_be <= carried.unsure[self.key]:
            carried.unsure.setdefault(self.key, {new_box(self.attempt.ctx)}).update(may_be)
            raise Retry

    def _is_list_alone(self, new: Value | None) -> bool:
        """Whether it is a list that nothing else refers to, before the loop and after an iteration."""
        ctx, old = self.attempt.ctx, self.value
        if not (is_list(old) and is_list(new)) or any(map(is_list, parts_of(old))):
            return False
        return is_alone(ctx, self.attempt.before, old.ref) and is_alone(ctx, ctx.state, new.ref)

    def _leave_value(self, old: Value, new: Value | None, slots: object, places: object) -> None:
        ctx = self.attempt.ctx
        name = self.key[1]
        if isinstance(new, Conflict):
            ctx.fail("TP104", new.reason, new.hint)
        match old, new:
            case Scalar(), Scalar():
                slot: Slot = next(slots)  # type: ignore[call-overload]
                place: int = next(places)  # type: ignore[call-overload]
                have = Scalar(slot.param, self.weak[place])
                first = ctx.first_of(slot.init)
                base = Scalar(first, have.weak) if isinstance(first, Const) else have
                dtype, is_weak = scalars.join(ctx, base, new)
                if dtype is not slot.param.type.dtype or is_weak != have.weak:
                    self.attempt.carried.dtypes[(self.key, place)] = (dtype, is_weak)
                    raise Retry
                slot.result = scalars.exactly(ctx, new.atom, dtype)
            case Array(), Array():
                moving: Slot | None = next(slots)  # type: ignore[call-overload]
                at = (self.key, next(places))  # type: ignore[call-overload]
                if moving is None:
                    if (new.cell, new.view) != (old.cell, old.view):
                        self.attempt.carried.moved.add(at)
                        raise Retry
                    return
                self.ends[at] = new.cell
                self._leave_array(moving, old, new, at)
                if new.cell.readonly and not self.starts[at].readonly:
                    self.attempt.carried.readonly[at] = new.cell.readonly
                    raise Retry
                if not self.starts[at].scattered and not in_order(ctx, new):
                    self.attempt.carried.scattered.add(at)
                    raise Retry
            case Scalar(), Array() if self._may_begin_apart(name):
                raise Becomes(self.key, "an array", "a number")
            case Static(value=None), Scalar() | Array() if self._may_begin_apart(name):
                raise Becomes(self.key, type_text(new), "None", none=True)
            case _ if new is not None and parts_of(old) and same_form(old, new):
                for p, q in zip(parts_of(old), parts_of(new), strict=True):
                    self._leave_value(p, q, slots, places)
            case _ if new is not None and (old is new or old == new):
                return
            case Conflict(reason=reason, hint=hint), _:
                ctx.fail("TP104", reason, hint)
            case Sequence_() | Grown(), Sequence_() | Grown() if self._become_arrays(old, new):
                raise Retry
            case _:
                text = type_text(new) if new is not None else "unbound"
                ctx.fail(
                    "TP104",
                    f"{label(name)} is {type_text(old)} before the loop and {text} after an iteration",
                    "give it the same type before the loop and in it.",
                )

    def _become_arrays(self, old: Sequence_ | Grown, new: Sequence_ | Grown) -> bool:
        """Whether a name of a list may be one whose length is known when it runs, from before the loop on."""
        carried = self.attempt.carried
        if not (is_list(old) and is_list(new)) or old is not self.value or self.key in carried.as_arrays:
            return False
        kind = joined(self.attempt.ctx, old, new)
        if kind is not None:
            carried.as_arrays[self.key] = kind
        return kind is not None

    def _may_begin_apart(self, name: str) -> bool:
        return self.attempt.may_begin_apart and not name.startswith("<")

    def _leave_array(self, slot: Slot, old: Array, new: Array, place: Place) -> None:
        ctx = self.attempt.ctx
        storage = self.storages.get(place)
        if storage is not None and storage.stays(new):
            return
        want = slot.param.type if storage is None else storage.value.type
        try:
            var = self._alike(new, want)
        except CompileError as refusal:
            if not self._may_begin_apart(self.key[1]):
                raise
            raise Becomes(self.key, type_text(new), type_text(old), refusal=refusal) from None
        resized = self.attempt.carried.resized
        known = known_sizes(ctx, self.attempt.before)
        for k, (d, e) in enumerate(zip(want.shape, new.type.shape, strict=True)):
            a, b = ctx.canon(d), ctx.canon(e)
            if a is b or (isinstance(a, int) and a == b) or k in resized.get(place, ()):
                continue
            if changes(ctx, a, b, known):
                resized.setdefault(place, set()).add(k)
                raise Retry
            same_size(ctx, a, b, f"{label(self.key[1])} must keep its size in a loop", SizeChanged)
        if storage is None:
            slot.result = var
        else:
            storage.leave(var)

    def _alike(self, new: Array, want: Type) -> Var:
        """Of the element type and with the axes of before the loop."""
        ctx = self.attempt.ctx
        if new.type.rank != want.rank:
            ctx.fail(
                "TP104",
                f"{label(self.key[1])} changes its number of dimensions in the loop, from {want.rank} to {new.type.rank}",
                "give it the final number of dimensions before the loop.",
            )
        var = cast(ctx, read(ctx, new), want.dtype)
        if new.type.dtype is not want.dtype:
            ctx.fail(
                "TP104",
                f"{label(self.key[1])} changes its element type in the loop, "
                f"from {want.dtype.numpy.name} to {new.type.dtype.numpy.name}",
                "give it the final element type before the loop.",
            )
        return var

    # -- after the loop

    def after(self, state: State, mapping: dict[Var, Var]) -> Value:
        slots = iter(self.leaves)
        places = iter(range(len(self.leaves)))
        inner = self.value.value if isinstance(self.value, MaybeUndefined) else self.value
        value = self._after_value(inner, slots, places, state, mapping)
        if self.key in self.attempt.carried.moving:
            value = with_box(value, new_box(self.attempt.ctx))
        if self.key in self.attempt.carried.unsure:
            value = self._unsure(value, self.last)
        if self.flag is None or (self.attempt.runs and self.flag.result == TRUE):
            return value
        assert isinstance(self.value, MaybeUndefined)
        return replace(self.value, value=value, defined=mapping[self.flag.param])

    def _after_value(self, old: Value, slots: object, places: object, state: State, mapping: dict[Var, Var]) -> Value:
        match old:
            case Scalar():
                slot: Slot = next(slots)  # type: ignore[call-overload]
                place: int = next(places)  # type: ignore[call-overload]
                return Scalar(mapping[slot.param], self.weak[place])
            case Array(cell=cell):
                moving: Slot | None = next(slots)  # type: ignore[call-overload]
                at = (self.key, next(places))  # type: ignore[call-overload]
                if moving is None:
                    return old
                start, end = self.starts[at], self.ends[at]
                may_be = self._may_be(cell)
                if self.key in self.attempt.carried.exchanged:
                    may_be = {
                        c for key in self.attempt.carried.exchanged for c in cells_of(self.attempt.before.names[key])
                    }
                new = Cell(self.key[1], may_be | end.possible, start.readonly, scattered=start.scattered)
                state.cells[new] = mapping[moving.param]
                storage = self.storages.get(at)
                if storage is None:
                    return Array(new, mapping[moving.param].type)
                if storage.needed is not None:
                    self.attempt.needed[at] = mapping[storage.needed.param]
                return Array(new, *storage.seen(storage.value.type, mapping.__getitem__))
            case _:
                return with_parts(old, [self._after_value(v, slots, places, state, mapping) for v in parts_of(old)])


def _list_pairs(old: Value, new: Value | None) -> Iterator[tuple[Box | None, Box | None]]:
    """The lists of a name before and after an iteration, which has left their form as it was."""
    if new is None:
        return
    if isinstance(old, (Sequence_, Grown)) and isinstance(new, (Sequence_, Grown)):
        yield old.ref, new.ref
    for p, q in zip(parts_of(old), parts_of(new), strict=True):
        yield from _list_pairs(p, q)


def label(name: str) -> str:
    if name.startswith("<list"):
        return "a list"
    return "the result" if name.startswith("<") else f"'{name}'"


def undefined(ctx: Context, value: Value, before: State) -> Value:
    """A stand-in, of the type that the body gives it, for a name that is not bound before the loop."""
    match value:
        case MaybeUndefined(value=inner):
            return undefined(ctx, inner, before)
        case Scalar(atom=atom, weak=is_weak):
            return Scalar(zero_of(atom.type.dtype), is_weak)
        case Array(cell=cell, type=type):
            if cell in before.cells and not value.view:
                return value
            known = known_sizes(ctx, before)
            dims = tuple(0 if isinstance(d, Var) and d not in known else d for d in ctx.dims(type.shape))
            return ctx.new_cell(ctx.b.let(Type(type.dtype, dims), Full(dims, zero_of(type.dtype)), cell.name))
        case _:
            return with_parts(value, [undefined(ctx, v, before) for v in parts_of(value)])


def known_sizes(ctx: Context, before: State) -> set[Var]:
    known: set[Var] = set(ctx.sizes)
    for var in before.cells.values():
        known.update(d for d in var.type.shape if isinstance(d, Var))
    for v in before.names.values():
        if isinstance(v, Scalar) and isinstance(v.atom, Var):
            known.add(v.atom)
    return known
