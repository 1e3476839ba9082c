"""Long tuples and lists of numbers as arrays, so that what goes over them is compiled once and not for each item.

`rows` takes the items and gives the item at a position that is known at run time, or None where they differ in more
than their numbers. `constants` makes a hidden argument of numbers that are known.

Note [Rows]
Items are alike when they are numbers of one type (Python's or NumPy's), or tuples and the like that are alike part by
part: then each part is a column, an array of its own. The item that is read back has the type that the items have in
Python: an int stays one. Constants are not written into the code, which would be as long as they are: they come as an
array of the surroundings does. Their values are watched where they were read.
"""

from __future__ import annotations

from collections.abc import Callable, Sequence

from tapeless.frontend.data.indexing import row_view
from tapeless.frontend.state.captures import constants
from tapeless.frontend.state.code_copies import SHORT
from tapeless.frontend.state.context import Context
from tapeless.frontend.state.parts import with_parts
from tapeless.frontend.state.values import Scalar, Sequence_, Value
from tapeless.ir.types import Atom, Const

Element = Callable[[Atom], Value]


def rows(ctx: Context, items: Sequence[Value]) -> Element | None:
    """The item at a position, or None if the items are not alike."""
    first = items[0]
    match first:
        case Scalar(weak=weak):
            dtype = first.dtype
            if not all(isinstance(v, Scalar) and v.weak == weak and v.dtype is dtype for v in items):
                return None
            return _column(ctx, [v.atom for v in items if isinstance(v, Scalar)], weak)
        case Sequence_(items=parts, kind=kind, keys=keys, cls=cls) if parts:
            form = (len(parts), kind, keys, cls)
            if not all(isinstance(v, Sequence_) and (len(v.items), v.kind, v.keys, v.cls) == form for v in items):
                return None
            columns = zip(*(v.items for v in items if isinstance(v, Sequence_)), strict=True)
            found = [rows(ctx, column) for column in columns]
            made = [make for make in found if make is not None]
            return (lambda i: with_parts(first, [make(i) for make in made])) if len(made) == len(found) else None
        case _:
            return None


def _column(ctx: Context, atoms: Sequence[Atom], weak: bool) -> Element:
    known = [a for a in atoms if isinstance(a, Const)]
    array = constants(ctx, known) if len(known) == len(atoms) else ctx.new_cell(ctx.b.array(atoms))

    def element(i: Atom) -> Value:
        item = row_view(ctx, array, i)
        assert isinstance(item, Scalar)
        return Scalar(item.atom, weak)

    return element


def long_constants(items: Sequence[Value]) -> bool:
    """Whether these are many numbers, all of them known."""
    return len(items) > SHORT and all(isinstance(v, Scalar) and v.static for v in items)
