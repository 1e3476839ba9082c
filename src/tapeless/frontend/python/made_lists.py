"""Lists of a length that is known when it runs, made of others: repeated, joined, spread out, put into another order. Items
in the middle of them that come and go.

`repeated`, `joined` and `spread` give a new list, or None where they are asked for something else. Relies on `growth` for what such a list is.
"""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import replace

from tapeless.frontend.data import atoms, scalars
from tapeless.frontend.data.arrays import make_array
from tapeless.frontend.data.indexing import get_item, set_item
from tapeless.frontend.data.iterables import grown_rows
from tapeless.frontend.python.growth import ANYWHERE, append, gathered, item, length_of, listed
from tapeless.frontend.python.references import change, contents, own_box
from tapeless.frontend.python.tables import is_table, kinds_of, moves_rows
from tapeless.frontend.state.context import Context, new_box, type_text
from tapeless.frontend.state.handlers import call_numpy
from tapeless.frontend.state.values import Array, Grown, RangeValue, Scalar, Sequence_, SliceValue, Static, Value, weak
from tapeless.ir.core import Full
from tapeless.ir.types import Atom, Const, Type, Var, i64

DELETED = "list assignment index out of range"


def repeated(ctx: Context, a: Value, b: Value) -> Grown | None:
    """[x] * n, for a number of times that is known when it runs."""
    values, times = (b, a) if isinstance(a, Scalar) else (a, b)
    if not isinstance(times, Scalar) or isinstance(times.atom, Const) or not times.dtype.is_int:
        return None
    if not isinstance(values, Sequence_) or values.kind != "list":
        return None
    kinds = kinds_of(values)
    first = values.items[0] if values.items else None
    if len(kinds) != 1 or not isinstance(first, Scalar):
        return None
    count = atoms.apply(ctx, "max", atoms.convert(ctx, times.atom, i64(0).dtype), i64(0))
    if len(values.items) > 1:
        made = call_numpy(ctx, "tile", [call_numpy(ctx, "array", [values]), Scalar(count, True)])
        assert isinstance(made, Array)
    else:
        size = ctx.atom_dim(count)
        if isinstance(size, Var):
            ctx.lengths[size] = length_of(ctx, times.atom)  # for loops that make such lists
        made = ctx.new_cell(ctx.b.let(Type(first.dtype, (size,)), Full((size,), first.atom), "items"))
    return _of_array(ctx, made, first.weak)


def joined(ctx: Context, parts: Sequence[Value]) -> Grown | None:
    """One list of the items of several, of which one at least has a length that is known when it runs."""
    pieces = [_piece(ctx, p) for p in parts if not (isinstance(p, Sequence_) and not p.items)]
    found = [p for p in pieces if p is not None]
    if not found or len(found) < len(pieces) or len({array.type.dtype for array, _ in found}) != 1:
        return None
    made = call_numpy(ctx, "concatenate", [Sequence_(tuple(array for array, _ in found), "list")])
    assert isinstance(made, Array)
    return _of_array(ctx, made, all(weak for _, weak in found))


def _piece(ctx: Context, part: Value) -> tuple[Array, bool] | None:
    """The numbers of a list or what can be gone through, and whether they are Python's."""
    if isinstance(part, (Array, RangeValue)):
        part = listed(ctx, part) or part
    if isinstance(part, Sequence_) and part.kind in ("list", "tuple"):
        kinds = kinds_of(part)
        array = call_numpy(ctx, "array", [part]) if len(kinds) == 1 and None not in kinds else None
        weak = all(isinstance(v, Scalar) and v.weak for v in part.items)
    elif isinstance(part, Grown) and part.array is not None and not part.form:
        array, weak = grown_rows(ctx, part), part.weak
    else:
        return None
    return (array, weak) if isinstance(array, Array) and array.type.rank == 1 else None


def spread(ctx: Context, parts: Sequence[tuple[Value, bool]]) -> Grown | None:
    """[x, *y, z], of values and whether they are spread."""
    return joined(ctx, [value if is_spread else Sequence_((value,), "list") for value, is_spread in parts])


def table_of(ctx: Context, values: Sequence_) -> Grown | None:
    """A list of lists whose position is known when it runs, from here on as one array: Note [Lists of lists]"""
    box = values.ref
    if box is None or box.may_be or not is_table(ctx, values):
        return None
    if box.made_in is not ctx.home:  # of a function that is applied by another one: it may be read there
        made = call_numpy(ctx, "array", [values])
        assert isinstance(made, Array)
        return replace(_of_array(ctx, made, _is_weak(values)), form="list", ref=None)
    table = gathered(ctx, "an item", values)
    change(ctx, "an item", values, table)
    return table


def _is_weak(values: Sequence_) -> bool:
    return all(
        isinstance(v, Scalar) and v.weak for row in values.items if isinstance(row, Sequence_) for v in row.items
    )


def _of_array(ctx: Context, made: Array, weak: bool) -> Grown:
    return Grown(made, Scalar(ctx.size_atom(made.type.shape[0]), True), weak, ref=new_box(ctx))


def position_of(ctx: Context, values: Sequence_ | Grown, value: Value, otherwise: str) -> Scalar:
    """Where a list of numbers has this one first. Raises ValueError(otherwise) where it has not."""
    equal = _equal(ctx, values, value)
    some = call_numpy(ctx, "any", [equal])
    assert isinstance(some, Scalar)
    shown = (value.atom,) if "{" in otherwise and isinstance(value, Scalar) else ()
    ctx.check(some.atom, "ValueError", otherwise.replace("{}", "{0}"), *shown)
    found = call_numpy(ctx, "argmax", [equal])
    assert isinstance(found, Scalar)
    return Scalar(found.atom, True)


def number_of(ctx: Context, values: Sequence_ | Grown, value: Value) -> Scalar:
    """How often a list of numbers has this one."""
    found = call_numpy(ctx, "count_nonzero", [_equal(ctx, values, value)])
    assert isinstance(found, Scalar)
    return Scalar(found.atom, True)


def _equal(ctx: Context, values: Sequence_ | Grown, value: Value) -> Value:
    piece = _piece(ctx, values)
    if piece is None or not isinstance(value, Scalar):
        ctx.fail(
            "TP104",
            f"only numbers are looked for in lists of numbers, not {type_text(value)} in {type_text(values)}",
            "go over the list with a loop.",
        )
    return call_numpy(ctx, "equal", [piece[0], value])


def taken_out(ctx: Context, grown: Grown, index: Scalar, what: str = "pop") -> Value:
    """grown.pop(index): what comes after it moves up."""
    moves_rows(ctx, ".pop", grown)
    length = grown.length.atom
    ctx.check(atoms.apply(ctx, "gt", length, i64(0)), "IndexError", "pop from empty list" if what == "pop" else DELETED)
    at = _from_start(ctx, index, length)
    inside = atoms.apply(ctx, "and", atoms.apply(ctx, "ge", at, i64(0)), atoms.apply(ctx, "lt", at, length))
    ctx.check(inside, "IndexError", "pop index out of range" if what == "pop" else DELETED)
    found = item(ctx, grown, Scalar(at, True))
    last = atoms.apply(ctx, "sub", length, i64(1))
    growth = ctx.growing.get(grown.ref)
    if growth is not None and growth.depth == ANYWHERE and index == weak(0):
        growth.shifts = True
        if grown.first is not None:
            one_on = Scalar(atoms.apply(ctx, "add", grown.first.atom, i64(1)), True)
            change(ctx, ".pop", grown, replace(grown, length=Scalar(last, True), first=one_on, added=0))
            return found
    _move(ctx, grown, (atoms.apply(ctx, "add", at, i64(1)), length), (at, last))
    exact = growth is not None and growth.exact
    less = replace(grown, length=Scalar(last, True), added=grown.added - 1 if exact else 0)
    change(ctx, ".pop", grown, less)
    return found


def put_between(ctx: Context, grown: Grown, index: Scalar, new: Value) -> None:
    """grown.insert(index, new): what comes after it moves down."""
    length = grown.length.atom
    append(ctx, grown, new)
    now = None if grown.ref is None else contents(ctx.state, grown.ref.key)
    if not isinstance(now, Grown) or now.array is None:  # its items are being counted
        return
    moves_rows(ctx, ".insert", now)
    at = atoms.apply(ctx, "max", _from_start(ctx, index, length), i64(0))
    at = atoms.apply(ctx, "min", at, length)
    after, end = atoms.apply(ctx, "add", at, i64(1)), now.length.atom
    made = make_array(ctx, get_item(ctx, grown_rows(ctx, now), _slice((length, end))))
    _move(ctx, now, (at, length), (after, end))
    set_item(ctx, grown_rows(ctx, now), _slice((at, after)), made)


def _from_start(ctx: Context, index: Scalar, length: Atom) -> Atom:
    at = scalars.to_index(ctx, index)
    return atoms.select(ctx, atoms.apply(ctx, "lt", at, i64(0)), atoms.apply(ctx, "add", at, length), at)


def _move(ctx: Context, grown: Grown, source: tuple[Atom, Atom], target: tuple[Atom, Atom]) -> None:
    rows = grown_rows(ctx, grown)
    set_item(ctx, rows, _slice(target), make_array(ctx, get_item(ctx, rows, _slice(source))))


def _slice(bounds: tuple[Atom, Atom]) -> SliceValue:
    first, end = bounds
    return SliceValue(Scalar(first, True), Scalar(end, True), None)


def put_in_order(ctx: Context, what: str, grown: Grown, items: Value) -> None:
    """The list has these items from here on, which are its own in another order."""
    own_box(ctx, what, grown)
    set_item(ctx, grown_rows(ctx, grown), Static(Ellipsis), items)
