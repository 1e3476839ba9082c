"""Lists and dicts that a loop changes: contents of one length go around as those of names do, and lists that get longer
become arrays.

`ListsOfLoop` takes part in a trial of a loop (`loop_trials`): it puts the lists into the state when the loop begins, looks at
them at the end of the body, and says what is in them afterwards. Notes [Lists that change] and [Lists that grow].
"""

from __future__ import annotations

from collections.abc import Callable, Iterator, Mapping
from contextlib import contextmanager
from dataclasses import dataclass, field, replace
from functools import partial
from typing import NoReturn

from tapeless.errors import CompileError, InternalError
from tapeless.frontend.data import atoms
from tapeless.frontend.python.carried import known_sizes
from tapeless.frontend.python.growth import Growth, Uncounted, converted, gathered, start, uncounted
from tapeless.frontend.python.guesses import Carried, Retry, Slot
from tapeless.frontend.python.references import boxes_in, contents, refers_to, refuse_kept, set_contents, settle
from tapeless.frontend.state.context import Context, type_text
from tapeless.frontend.state.parts import cells_of, same_form
from tapeless.frontend.state.values import LISTS, Box, Cell, Conflict, Grown, Key, Scalar, Sequence_, State, Value
from tapeless.ir.types import Atom, Var, i64


class Lengthens(Exception):
    """A list gets longer or shorter in a loop that could be unrolled."""


@dataclass
class ListsOfLoop:
    """Those of one trial."""

    ctx: Context
    before: State
    carried: Carried
    most: Atom | None  # iterations
    counted: bool  # there are no fewer
    may_unroll: bool
    made: dict[Key, Grown] = field(default_factory=dict)
    given: State = field(init=False)  # the state before, without what this trial makes of lists
    since: int = 0
    depth: int = 0

    @contextmanager
    def open(self) -> Iterator[None]:
        ctx = self.ctx
        growing, self.since = ctx.growing, len(ctx.lengthened)
        ctx.growing = dict(growing)
        self.given = self.before.copy()
        self.depth = ctx.loops = ctx.loops + 1
        try:
            yield
        finally:
            ctx.growing = growing
            ctx.loops -= 1

    # -- before the loop

    def start(self) -> list[Cell]:
        """The lists of the guess are in the state before the loop; gives the arrays of those that get longer."""
        ctx = self.ctx
        for key, value in self.carried.lists.items():
            self.before.names.setdefault(key, value)
        written: list[Cell] = []
        for key in self.carried.gathered:
            old = self.before.names[key]
            if isinstance(old, Grown):  # it is one already
                continue
            assert isinstance(old, Sequence_) and old.ref is not None
            array = gathered(ctx, "assignment to an item", old)
            set_contents(self.before, old.ref, array)
            written += cells_of(array)
        for key, kind in self.carried.kinds.items():
            now = self.before.names[key]
            assert isinstance(now, Grown) and now.ref is not None
            changed = converted(ctx, now, kind)
            set_contents(self.before, now.ref, changed)
            written += cells_of(changed)
        for key, growth in self.carried.growing.items():
            old = self.before.names[key]
            assert isinstance(old, (Sequence_, Grown)) and old.ref is not None and self.most is not None
            growth.seen = 0
            self.made[key] = made = start(ctx, growth, old, self.most, known_sizes(ctx, self.before))
            set_contents(self.before, old.ref, made)
            ctx.growing[old.ref] = growth
        return [*written, *(made.array.cell for made in self.made.values() if made.array is not None)]

    def carried_lengths(self) -> dict[Key, Atom]:
        """Of lists whose length is no formula of the counter."""
        inexact = (k for k, growth in self.carried.growing.items() if not growth.exact)
        return {key: self.made[key].length.atom for key in inexact}

    def enter(self, entry: State, lengths: Mapping[Key, Slot]) -> None:
        for key, slot in lengths.items():
            self._put(entry, key, slot.param)
        if self.carried.lists:
            settle(entry, self.carried.lists)

    def count(self, head: State, index: Var) -> None:
        """At the start of the body: the lengths that are formulas of the counter."""
        ctx = self.ctx
        for key, made in self.made.items():
            growth = self.carried.growing[key]
            if growth.exact and made.array is not None:
                added = atoms.apply(ctx, "mul", index, i64(growth.count))
                self._put(head, key, atoms.apply(ctx, "add", made.length.atom, added))

    def _put(self, state: State, key: Key, length: Atom) -> None:
        made = self.made[key]
        assert made.ref is not None
        set_contents(state, made.ref, replace(made, length=Scalar(length, True)))

    # -- at the end of the body

    def leave(self, end: State, entry: State, lengths: Mapping[Key, Slot]) -> Iterator[Callable[[], None]]:
        """The steps of it."""
        yield partial(self._leave_kept, end, entry)
        for key in [k for k in end.names if k[0] == LISTS]:
            yield partial(self._leave_list, key, end, entry, lengths)

    def _leave_list(self, key: Key, end: State, entry: State, lengths: Mapping[Key, Slot]) -> None:
        self._leave_numbers(key, end)
        if key in self.made:
            self._leave_growing(key, self.made[key], end, entry, lengths)
        elif key in self.carried.stay:
            self._leave_stay(key, end)
        else:
            self._leave_changed(key, end, entry)

    def _leave_stay(self, key: Key, end: State) -> None:
        if end.names[key] != self.before.names[key]:
            self.carried.gathered.discard(key)
            self.carried.kinds.pop(key, None)
            self._grow(key)
            raise Retry

    def _leave_changed(self, key: Key, end: State, entry: State) -> None:
        old = contents(self.before, key)
        if old is None or _moves(key, old, entry, end):  # made in the body, or given to another name
            return
        if key not in self.carried.lists and end.names[key] is not entry.names.get(key):
            self.carried.lists[key] = contents(self.given, key) or old
            raise Retry
        if key in self.carried.lists and (not same_form(old, end.names[key]) or self._grew(key)):
            if _is_gathered(old, end.names[key]):
                self.carried.gathered.add(key)
            else:
                self._grow(key)
            raise Retry

    def _leave_kept(self, end: State, entry: State) -> None:
        """What has been put into a list in this iteration may have been changed in it before, and is again in the next one."""
        for cell, var in entry.cells.items():
            if cell.readonly and end.cells.get(cell) is not var:
                self.ctx.fail("TP105", cell.readonly, "append a copy of it: .copy().")
        for box in self.ctx.kept_lists:
            now, was = end.names.get(box.key), entry.names.get(box.key)
            if was is None or now is None or contents(self.before, box.key) is None:  # made in the body
                continue
            if now is not was or any(end.cells.get(cell) is not entry.cells.get(cell) for cell in cells_of(now)):
                refuse_kept(self.ctx, "this loop", now.kind if isinstance(now, Sequence_) else "list")

    def _leave_numbers(self, key: Key, end: State) -> None:
        """A list into which numbers of another type are put has these from before the loop on."""
        now = end.names[key]
        old = contents(self.before, key)
        if not isinstance(old, Grown) or not isinstance(now, Grown) or old.array is None or now.array is None:
            return
        kind = now.array.type.dtype, now.weak
        if kind == (old.array.type.dtype, old.weak):
            return
        if key in self.made:
            growth = self.carried.growing[key]
            growth.dtype, growth.weak = kind
        elif now.ref in self.ctx.growing:  # with room for all that loops append: begins again
            outer = self.ctx.growing[now.ref]
            outer.dtype, outer.weak = kind
            self._refuse("its items become numbers of another type")
        else:
            self.carried.lists.setdefault(key, contents(self.given, key) or old)
            self.carried.kinds[key] = kind
        raise Retry

    def _grew(self, key: Key) -> bool:
        """Whether a list of run-time length got longer, without room that was made for it before."""
        grown = [b for b in self.ctx.lengthened[self.since :] if b.key == key and b not in self.ctx.growing]
        return bool(grown) and isinstance(contents(self.before, key), Grown)

    def _leave_growing(self, key: Key, made: Grown, end: State, entry: State, lengths: Mapping[Key, Slot]) -> None:
        growth, now = self.carried.growing[key], end.names[key]
        if growth.dtype is None:
            self._refuse("it is not known what its items are")
        if made.array is None:
            raise Retry  # now it is known what the items are
        if isinstance(now, Conflict) and growth.exact:
            growth.exact = False
            raise Retry
        if not isinstance(now, Grown) or now.array is None or now.array.cell is not made.array.cell:
            self._refuse(f"it is {type_text(now)} after an iteration")
        assert now.first == made.first
        if key in lengths:
            lengths[key].result = now.length.atom
        elif now.added != growth.count:
            growth.exact = now.added > 0
            growth.count = max(now.added, 1)
            raise Retry

    def _grow(self, key: Key) -> None:
        if self.may_unroll:
            raise Lengthens
        if self.most is None:
            box = next((b for b in boxes_in(self.before) if b.key == key), None)
            reason = (
                "the length of a list or dict changes in this loop, and the number of iterations is not known before"
            )
            uncounted(self.ctx, box, reason)
        old = self.carried.lists[key]
        if not (isinstance(old, Grown) or (isinstance(old, Sequence_) and old.kind == "list")):
            self._refuse("it is a dict")
        self.carried.growing[key] = growth = Growth(self.depth, exact=self.counted)
        if old.ref in self.ctx.appended:
            with self.ctx.part():
                growth.learn(self.ctx, self.ctx.appended[old.ref])

    def _refuse(self, why: str) -> NoReturn:
        self.ctx.fail(
            "TP104",
            f"the length of a list or dict changes in this loop, and {why}",
            "allocate an array with np.empty before the loop, and keep a count.",
        )

    def explain(self, problem: CompileError) -> None:
        """Raises what is wrong with the body, unless it may come from a list of which only the length changes."""
        if problem.code == "TP116" or isinstance(problem, InternalError):
            raise problem
        for key, growth in self.carried.growing.items():
            if growth.exact and self.made.get(key) is not None:
                growth.exact = False
                return
        known: dict[Key, Box] = {b.key: b for b in boxes_in(self.before)}
        fixed = self.carried.growing.keys() | {b.key for b in self.ctx.growing if b is not None}
        grown = [b.key for b in self.ctx.lengthened[self.since :] if b.key in known and b.key not in fixed]
        if not grown:
            raise problem
        for key in dict.fromkeys(grown):
            old = contents(self.given, key)
            assert old is not None
            self.carried.lists[key] = old
            if self.may_unroll:
                raise Lengthens from problem
            if not (isinstance(old, Grown) or (isinstance(old, Sequence_) and old.kind == "list")):
                raise problem
            if self.most is None:
                raise Uncounted(known[key], problem) from None
            self._grow(key)

    # -- after the loop

    def after(self, after: State, lengths: Mapping[Key, Atom]) -> None:
        for key, made in self.made.items():
            assert made.array is not None
            self._put(after, key, lengths[key] if key in lengths else self._length(key, made))
        if self.carried.lists:
            settle(after, self.carried.lists)

    def _length(self, key: Key, made: Grown) -> Atom:
        """Of a list that each iteration makes longer by the same number of items."""
        growth = self.carried.growing[key]
        assert made.array is not None and self.most is not None
        if growth.most == growth.count:
            return self.ctx.size_atom(made.array.type.shape[0])
        trips = atoms.apply(self.ctx, "max", self.most, i64(0))
        added = atoms.apply(self.ctx, "mul", trips, i64(growth.count))
        return atoms.apply(self.ctx, "add", made.length.atom, added)


def _moves(key: Key, value: Value, entry: State, end: State) -> bool:
    """Whether names that refer to a list at the start of the body refer to others at its end. `key` is its hidden name."""
    box = value.ref if isinstance(value, (Sequence_, Grown)) else None
    if box is None:
        return False
    names = [k for k, v in entry.names.items() if k != key and refers_to(v, box)]
    after = [end.names.get(k) for k in names]
    return not any(v is None or isinstance(v, Conflict) or refers_to(v, box) for v in after)


def _is_gathered(old: Value, new: Value) -> bool:
    """Whether a list has become one whose items are known when it runs, of the same length."""
    if not isinstance(old, Sequence_) or not isinstance(new, Grown) or new.array is None:
        return False
    return new.length.atom == i64(len(old.items))
