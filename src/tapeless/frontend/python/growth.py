"""Lists that get longer in a loop over a length that is known when it runs: their items become rows of an array.

`start` makes the array before the loop, `append` writes a row, `rows` gives the array that a list stands for. A list is
`Grown` from the loop on. Used by `loop_trials`, which finds out that a list grows, and by what works on lists.

Note [Lists that grow]
A loop that changes the length of a list is tried again with the list as a `Grown` one. The first of these trials may not know
what the items are, only how many an iteration may append at most (`Growth.most`); the next one has an array for all
iterations. Where each iteration appends the same number the length is a formula of the counter (`exact`), otherwise
it is carried. Items must be numbers of one type or arrays of one shape that is known before the loop; in NumPy's
functions the list is the array. An empty list is of float64 for NumPy: other items are tested there to be some.

Note [Positions known when it runs]
A list of numbers of one type that is written at such a position stays what it is if it is short: each item is chosen,
the new one or the old. A longer one becomes a `Grown` list of its length from there on (`gathered`); in a loop from
before the loop on. A `Grown` list of constant length is taken apart into its items where these are asked for one by one.
"""

from __future__ import annotations

from dataclasses import dataclass, replace
from typing import Any, NoReturn

from tapeless.errors import CompileError
from tapeless.frontend.data import atoms, scalars
from tapeless.frontend.data.arrays import as_numeric, cast, make_array, read
from tapeless.frontend.data.indexing import get_item, set_item
from tapeless.frontend.data.iterables import grown_item, grown_rows
from tapeless.frontend.python.references import change, contents, own_box, set_contents
from tapeless.frontend.python.tables import copies_rows, is_referred_to, is_table, kinds_of, writes_row
from tapeless.frontend.state.context import Context, new_box, type_text
from tapeless.frontend.state.handlers import call_numpy
from tapeless.frontend.state.values import (
    Array,
    Box,
    Cell,
    Columns,
    Grown,
    Length,
    RangeValue,
    Rows,
    Scalar,
    Sequence_,
    SliceValue,
    Static,
    Value,
)
from tapeless.ir.core import Apply, Full
from tapeless.ir.types import Atom, Dim, DType, Type, Var, i64, zero_of
from tapeless.ops.table import TABLE

ANYWHERE = -1  # there is room for all that loops append, one inside of another
ALLOCATE = "allocate an array with np.empty before the loop, and keep a count."


@dataclass
class Growth:
    """What a loop appends to a list."""

    depth: int  # of the loop among those that are open
    dtype: DType | None = None
    weak: bool = True
    shape: tuple[Dim, ...] = ()
    form: str = ""
    columns: Columns = ()
    count: int = 1  # items of an iteration, if that is `exact`
    most: int = 1  # `append`s in the body: of an iteration there are no more
    exact: bool = True
    seen: int = 0  # in this trial
    mixed: bool = False  # items are of several types, which become one
    shifts: bool = False  # items are taken from the front, too
    box: Box | None = None  # of the list

    @property
    def known(self) -> tuple[Any, ...]:
        """Of the list, wherever it gets longer."""
        return self.dtype, self.weak, self.form, self.columns, self.shifts

    def learn(self, ctx: Context, value: Value) -> bool:
        """Whether an item fits; otherwise what is known of items has grown."""
        inner = grown_rows(ctx, value) if isinstance(value, Grown) else None
        form = self._form(value) if inner is None else "list" if inner.type.rank == 1 else "mixed"
        known = self.columns
        if (joined := self._joined(ctx, value)) is not None:
            self.columns = joined
            form = "tuple" if len(set(joined)) == 1 else "mixed"
            if self.dtype is not None:
                self.form = form
        if self.dtype is not None and form != self.form:
            ctx.fail("TP104", "a list that gets longer in this loop has items of different types", ALLOCATE)
        if isinstance(value, Grown) and inner is not None:
            return self._fits(ctx, inner.type.shape, inner.type.dtype, value.weak, form)
        if isinstance(value, Sequence_) and form:
            numbers = [v for v in value.items if isinstance(v, Scalar)]
            weak = all(v.weak for v in numbers)
            value = as_numeric(ctx, value, "append")
            assert isinstance(value, Array)
            return self._fits(ctx, value.type.shape, value.type.dtype, weak, form) and self.columns == known
        if not isinstance(value, (Scalar, Array)):
            ctx.fail(
                "TP104",
                f"a list that gets longer in this loop holds numbers or arrays, not {type_text(value)}",
                "keep the items of all of them in one list, and where each begins in another one.",
            )
        shape = value.type.shape if isinstance(value, Array) else ()
        dtype = value.type.dtype if isinstance(value, Array) else value.dtype
        return self._fits(ctx, shape, dtype, isinstance(value, Scalar) and value.weak, form)

    def _joined(self, ctx: Context, value: Value) -> Columns | None:
        """The types of the numbers of all tuples, with those of this one."""
        return _columns(ctx, value, self.columns if self.dtype is not None else None)

    def _form(self, value: Value) -> str:
        """Of a short list or tuple of numbers."""
        if not (isinstance(value, Sequence_) and value.kind in ("tuple", "list") and value.items):
            return ""
        kinds = kinds_of(value)
        return "" if None in kinds else value.kind if len(kinds) == 1 else "mixed"

    def _fits(self, ctx: Context, shape: tuple[Dim, ...], dtype: DType, weak: bool, form: str) -> bool:
        if self.dtype is None:
            self.dtype, self.weak, self.shape, self.form = dtype, weak, ctx.dims(shape), form
            return False
        if len(shape) != len(self.shape):
            ctx.fail("TP104", "a list that gets longer in this loop has items of different ranks", ALLOCATE)
        joined, is_weak = scalars.join(ctx, Scalar(zero_of(self.dtype), self.weak), Scalar(zero_of(dtype), weak))
        if joined is not self.dtype and shape and not form:
            ctx.fail("TP104", "a list that gets longer in this loop has items of different types", ALLOCATE)
        if (joined, is_weak) != (dtype, weak):
            self.mixed = True
        if (joined, is_weak) != (self.dtype, self.weak):
            self.dtype, self.weak, self.mixed = joined, is_weak, True
            return False
        return True


def _columns(ctx: Context, value: Value, known: Columns | None) -> Columns | None:
    """The types of the numbers of a tuple, and of others."""
    if not (isinstance(value, Sequence_) and value.kind == "tuple" and value.items):
        return None
    new = tuple((v.dtype, v.weak) for v in value.items if isinstance(v, Scalar))
    old = new if known is None else known
    if len(new) < len(value.items) or len(old) != len(new) or any(d.is_complex for d, _ in {*old, *new}):
        return None
    pairs = zip(old, new, strict=True)
    return tuple(scalars.join(ctx, *(Scalar(zero_of(d), weak) for d, weak in pair)) for pair in pairs)


def _exactly(ctx: Context, item: Sequence_, dtype: DType) -> Sequence_:
    numbers = [v for v in item.items if isinstance(v, Scalar)]
    return replace(item, items=tuple(Scalar(scalars.exactly(ctx, v.atom, dtype)) for v in numbers))


def start(ctx: Context, growth: Growth, old: Sequence_ | Grown, most: Atom, known: set[Var]) -> Grown:
    """The list at the start of the loop, with room for `most` more items."""
    growth.box = old.ref
    if isinstance(old, Sequence_):
        for item in old.items:
            growth.learn(ctx, item)
    elif old.array is not None:
        growth.dtype, growth.weak = old.array.type.dtype, old.weak
        growth.shape, growth.form, growth.columns = old.array.type.shape[1:], old.form, old.columns
    first: Atom = i64(len(old.items)) if isinstance(old, Sequence_) else old.length.atom
    if growth.dtype is None:
        return Grown(None, Scalar(first, True), ref=old.ref)
    growth.shape = tuple(_outside(ctx, d, known) for d in growth.shape)
    if any(isinstance(d, Var) and d not in known for d in growth.shape):
        ctx.fail("TP104", "a list gets longer by arrays of a size that is known in the loop only", ALLOCATE)
    room = most if most in known and most in ctx.sizes else atoms.apply(ctx, "max", most, i64(0))
    each = growth.count if growth.exact else growth.most
    if each > 1:
        room = atoms.apply(ctx, "mul", room, i64(each))
    if growth.most > each:  # some are taken away again
        room = atoms.apply(ctx, "add", room, i64(growth.most - each))
    size = ctx.atom_dim(room if first == i64(0) else atoms.apply(ctx, "add", first, room))
    if isinstance(size, Var) and each == growth.most == 1 and first == i64(0):
        found = ctx.b.definition(most)
        plain = isinstance(found, Apply) and found.op == "sub" and found.args[1] == i64(0)  # of range(n)
        ctx.lengths[size] = length_of(ctx, found.args[0] if plain and isinstance(found, Apply) else most)
    type = Type(growth.dtype, (size, *growth.shape))
    array = ctx.new_cell(ctx.b.let(type, Full(type.shape, zero_of(growth.dtype)), "items"))
    array.cell.rows = Rows() if growth.form == "list" else None
    before = Scalar(i64(0), True) if growth.shifts else None
    made = Grown(
        array,
        Scalar(first, True),
        growth.weak,
        before,
        form=growth.form,
        columns=growth.columns,
        mixed=growth.mixed,
        ref=old.ref,
    )
    if isinstance(old, Sequence_):
        for k, item in enumerate(old.items):
            _store(ctx, made, i64(k), item)
            _keep(ctx, growth, item, array.cell)
    elif old.array is not None:
        set_item(ctx, grown_rows(ctx, made), Static(Ellipsis), make_array(ctx, grown_rows(ctx, old)))
        if old.array.cell.rows is not None:
            array.cell.rows = old.array.cell.rows
            ctx.state.stale[old.array.cell] = "a list of lists has got longer since one of its rows was looked at"
    return made


def _outside(ctx: Context, size: Dim, known: set[Var]) -> Dim:
    """The size of a list that is made in the loop, as one that is known before it."""
    if not isinstance(size, Var) or size in known:
        return size
    length = ctx.lengths.get(size)
    most = None if length is None else _before(ctx, length, known)
    if most is None:
        return size
    found = ctx.atom_dim(atoms.apply(ctx, "max", most, i64(0)))
    if isinstance(found, Var):
        known.add(found)
    return found


def length_of(ctx: Context, atom: Atom, depth: int = 8) -> Length:
    """A length as it is computed here: of which numbers shows when a loop around it is tried again."""
    made = ctx.b.definition(atom) if isinstance(atom, Var) and depth else None
    if isinstance(made, Apply) and _never_fails(made):
        return Length(atom, made.op, tuple(length_of(ctx, a, depth - 1) for a in made.args))
    return Length(atom)


def _never_fails(exp: Apply) -> bool:
    """Sums, products and extrema of integers may be computed where nobody asks for them; quotients may not."""
    row = TABLE[exp.op]
    known = row.linear or row.commutative or row.extremum is not None
    return known and all(a.type.dtype is DType.i64 for a in exp.args)


def _before(ctx: Context, length: Length, known: set[Var]) -> Atom | None:
    """A length that is computed in a loop, from what is known before it."""
    if not isinstance(length.atom, Var) or length.atom in known:
        return length.atom
    args = [_before(ctx, a, known) for a in length.args]
    found = [a for a in args if a is not None]
    return atoms.apply(ctx, length.op, *found) if length.op and len(found) == len(args) else None


def end_of(ctx: Context, grown: Grown) -> Atom:
    """The row of the array where the next item goes."""
    length = grown.length.atom
    return length if grown.first is None else atoms.apply(ctx, "add", grown.first.atom, length)


def _store(ctx: Context, grown: Grown, at: Atom, item: Value) -> None:
    """A row takes a number, or what an array holds now."""
    assert grown.array is not None
    if grown.columns and isinstance(item, Sequence_):
        item = _exactly(ctx, item, grown.array.type.dtype)
    number = as_numeric(ctx, grown_rows(ctx, item) if isinstance(item, Grown) else item, "append")
    if isinstance(number, Scalar):
        atom = scalars.exactly(ctx, number.atom, grown.array.type.dtype)
        set_item(ctx, grown.array, Scalar(at, True), Scalar(atom))
        return
    for d, e in zip(grown.array.type.shape[1:], number.type.shape, strict=True):
        atoms.same_size(ctx, d, e, "items of a list that gets longer")
    set_item(ctx, grown.array, Scalar(at, True), number)


def _keep(ctx: Context, growth: Growth, item: Value, into: Cell | None) -> None:
    """Python keeps a reference to an array or a list: what is in the list now must stay what it holds."""
    if into is not None and into.rows is not None:
        box = item.ref if isinstance(item, (Sequence_, Grown)) else None
        if isinstance(item, Grown) and item.table is not None:
            copies_rows(ctx, item)
        into.rows.own = into.rows.own and box is not None and not is_referred_to(ctx, box, growth.box)
    if isinstance(item, Array):
        for cell in item.cell.possible:
            if not cell.readonly:
                cell.readonly = KEPT.format(cell.name)
                ctx.made_readonly.append(cell)
    elif isinstance(item, (Sequence_, Grown)) and item.ref is not None:
        ctx.kept_lists.update(item.ref.possible)


def uncounted(ctx: Context, box: Box | None, reason: str) -> NoReturn:
    try:
        ctx.fail("TP104", reason, ALLOCATE)
    except CompileError as problem:
        if box is None:
            raise
        raise Uncounted(box, problem) from None


KEPT = "'{}' has been put into a list that gets longer in a loop, and compiled code keeps what it held there"


class Uncounted(Exception):
    """A list gets longer, and nobody knows how long. `problem` is what to say if that cannot be helped."""

    def __init__(self, box: Box, problem: CompileError) -> None:
        super().__init__(problem)
        self.box, self.problem = box, problem


def append(ctx: Context, grown: Grown, item: Value) -> None:
    growth = ctx.growing.get(grown.ref)
    if growth is None:
        _append_once(ctx, grown, item)
        return
    if growth.depth not in (ANYWHERE, ctx.loops):
        reason = "a list gets longer in a loop inside of the loop before which it was made"
        uncounted(ctx, grown.ref, reason)
    if ctx.worklists is not None:
        ctx.worklists.grows(ctx, grown.ref)
    fits = growth.learn(ctx, item)
    _keep(ctx, growth, item, None if grown.array is None else grown.array.cell)
    growth.seen += 1
    known = growth.most
    if growth.depth != ANYWHERE:
        growth.most = max(known, growth.seen)
    if grown.array is not None:
        if not fits or growth.most > known:
            raise Unfit
        _store(ctx, grown, end_of(ctx, grown), item)
    length = Scalar(atoms.apply(ctx, "add", grown.length.atom, i64(1)), True)
    added = grown.added + 1 if growth.exact else 0
    change(ctx, ".append", grown, replace(grown, length=length, added=added, mixed=growth.mixed))


class Unfit(Exception):
    """An item is not what was known of items: the loop is tried again."""


def _append_once(ctx: Context, grown: Grown, item: Value) -> None:
    """After the loop: a longer array."""
    assert grown.array is not None
    own = Growth(ctx.loops, grown.array.type.dtype, grown.weak, grown.array.type.shape[1:], grown.form, grown.columns)
    if not own.learn(ctx, item):
        ctx.fail("TP104", "this list has items of one type, and another one is appended", ALLOCATE)
    made = start(ctx, own, grown, i64(1), set(ctx.sizes))
    _store(ctx, made, made.length.atom, item)
    _keep(ctx, own, item, None if made.array is None else made.array.cell)
    length = Scalar(atoms.apply(ctx, "add", made.length.atom, i64(1)), True)
    change(ctx, ".append", grown, replace(made, length=length))


# -- reading


def rows(ctx: Context, grown: Grown) -> Array:
    """The array that NumPy makes of the list."""
    found = make_array(ctx, grown_rows(ctx, grown))
    assert isinstance(found, Array)
    if found.type.dtype is not DType.f64 or found.type.rank > 1:
        some = atoms.apply(ctx, "gt", grown.length.atom, i64(0))
        ctx.check(some, "ValueError", "a list is empty here, of which NumPy would make an array of float64")
    return found


def item(ctx: Context, grown: Grown, index: Value) -> Value:
    """grown[index]"""
    if isinstance(index, SliceValue):
        copies_rows(ctx, grown)
        part = make_array(ctx, get_item(ctx, grown_rows(ctx, grown), index))
        assert isinstance(part, Array)
        length = Scalar(ctx.size_atom(part.type.shape[0]), True)
        return Grown(part, length, grown.weak, form=grown.form, columns=grown.columns, ref=new_box(ctx))
    if not isinstance(index, Scalar):
        ctx.fail(
            "TP104", f"a list of this kind is indexed by integers, not by {type_text(index)}", "use np.array(...)[...]."
        )
    return grown_item(ctx, grown, get_item(ctx, grown_rows(ctx, grown), index))


def set_item_of(ctx: Context, grown: Grown, index: Value, value: Value) -> None:
    """grown[index] = value"""
    array = grown_rows(ctx, grown)
    if grown.columns and isinstance(value, Sequence_) and grown.columns == _columns(ctx, value, grown.columns):
        own_box(ctx, "assignment", grown)
        set_item(ctx, array, index, as_numeric(ctx, _exactly(ctx, value, array.type.dtype), "assignment"))
        return
    joins = (DType.i64, DType.f64)  # an int beside floats becomes one, as after a branch
    fits = isinstance(value, Scalar) and (
        value.dtype is array.type.dtype or {value.dtype, array.type.dtype} == {*joins}
    )
    if array.type.rank != 1 or not fits or not isinstance(index, Scalar) or not isinstance(value, Scalar):
        ctx.fail(
            "TP104",
            "items of a list whose length or positions are known when it runs are replaced one by one, by numbers of their type",
            "convert the number, float(x) or int(x), or use an array.",
        )
    if grown.table is not None:
        writes_row(ctx, array.cell)
    box = own_box(ctx, "assignment", grown if grown.table is None else replace(grown, ref=grown.table))
    dtype = joins[1] if value.dtype is not array.type.dtype else value.dtype
    old = contents(ctx.state, box.key) or grown
    is_weak = old.weak if isinstance(old, Grown) else grown.weak
    if (is_weak and not value.weak) or dtype is not array.type.dtype:
        if not isinstance(old, Grown):
            ctx.fail("TP104", "a row of a list gets numbers of another type than the others", "convert them before.")
        now = converted(ctx, old, (dtype, old.weak and value.weak))
        assert now.array is not None
        ctx.changed.append(box)
        set_contents(ctx.state, box, now)
        array = Array(now.array.cell, Type(dtype, array.type.shape), array.view)
    set_item(ctx, array, index, Scalar(scalars.exactly(ctx, value.atom, dtype)))


def converted(ctx: Context, grown: Grown, kind: tuple[DType, bool]) -> Grown:
    """The list with numbers of another type from here on, whether they are Python's or NumPy's."""
    dtype, weak = kind
    array = grown.array
    assert array is not None
    if dtype is array.type.dtype:
        return replace(grown, weak=weak)
    found = array if grown.ref in ctx.growing else grown_rows(ctx, grown)  # room stays
    new = ctx.new_cell(cast(ctx, read(ctx, found), dtype, scalars.exactly))
    new.cell.rows = array.cell.rows
    ctx.state.stale[array.cell] = (
        "this list held integers when it was looked at, and gets floats: begin with floats, 0.0 in place of 0"
    )
    return replace(grown, array=new, weak=weak)


def gathered(ctx: Context, what: str, values: Sequence_) -> Grown:
    """A list of numbers as one whose items are known when it runs: a position of it is, that is written."""
    types = {kind and kind[0] for kind in kinds_of(values)}
    tuples = values.items and all(_columns(ctx, v, _columns(ctx, values.items[0], None)) for v in values.items)
    if (None in types or len(types) != 1) and not tuples and not is_table(ctx, values):
        ctx.fail(
            "TP104",
            f"{what}: the position in a list must be known at compile time, unless it holds numbers of one type",
            "use an array.",
        )
    return start(ctx, Growth(ctx.loops), values, i64(0), set(ctx.sizes))


def listed(ctx: Context, value: Array | RangeValue) -> Grown | None:
    """list(value), where the items are numbers."""
    array = call_numpy(ctx, "arange", [value.start, value.stop, value.step]) if isinstance(value, RangeValue) else value
    made = make_array(ctx, array)
    if not isinstance(made, Array) or made.type.rank != 1:
        return None
    length = Scalar(ctx.size_atom(made.type.shape[0]), True)
    return Grown(made, length, isinstance(value, RangeValue), ref=new_box(ctx))


def copied(ctx: Context, grown: Grown) -> Grown:
    """list(grown)"""
    copies_rows(ctx, grown)
    array = make_array(ctx, grown_rows(ctx, grown))
    assert isinstance(array, Array)
    return replace(grown, array=array, first=None, added=0, table=None, ref=new_box(ctx))
