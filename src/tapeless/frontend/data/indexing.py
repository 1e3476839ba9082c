"""Subscripts: basic slicing as views, and assignment to them; `index_arrays` does the rest.

Takes a reference and the items between the brackets; gives a view, an element, a gathered array, or performs the write.
"""

from __future__ import annotations

from collections.abc import Sequence

from tapeless.frontend.data.arrays import as_numeric, broadcast_to, make_array, read, view_of, write
from tapeless.frontend.data.atoms import apply
from tapeless.frontend.data.index_arrays import Item, gather, masked_write, scatter
from tapeless.frontend.data.slices import compose, position, position_of, slice_of
from tapeless.frontend.state.context import Context, type_text
from tapeless.frontend.state.handlers import call_numpy
from tapeless.frontend.state.values import Array, Reshaped, Scalar, Sequence_, SliceValue, Static, Step, Strided, Value
from tapeless.ir.builder import full_axes
from tapeless.ir.core import At, Axis, Range
from tapeless.ir.types import SCALAR, Atom, Const, Dim, DType, Type, i64


def _items(ctx: Context, array: Array, subscript: Value) -> list[Item]:
    """One item per axis, with new axes in between; an Ellipsis filled up."""
    raw = list(subscript.items) if isinstance(subscript, Sequence_) and subscript.kind == "tuple" else [subscript]
    items: list[Item] = []
    ellipsis = False
    raw = [make_array(ctx, r) if isinstance(r, Sequence_) and r.kind == "list" else r for r in raw]
    used = sum(_axes_of(r) for r in raw)
    rank = array.type.rank
    if used > rank:
        ctx.fail("TP202", f"too many indices: the array has {rank} dimensions, but {used} were given")
    whole = SliceValue(None, None, None)
    for r in raw:
        match r:
            case Static(value=None):
                items.append(None)
            case Static() if r.value is Ellipsis:
                if ellipsis:
                    ctx.fail("TP112", "an index can only have a single ellipsis ('...')")
                ellipsis = True
                if used == rank and _are_apart(raw, r):
                    ctx.fail(
                        "TP104",
                        "'...' between arrays of indices stands for no axis here",
                        "leave '...' out, and move axes with np.transpose.",
                    )
                items.extend([whole] * (rank - used))
            case Scalar() if r.dtype is DType.bool:
                ctx.fail(
                    "TP104",
                    "a bool as an index adds an axis in NumPy, which cannot be compiled",
                    "use int(...) for a position.",
                )
            case Array(type=type) if type.dtype is DType.bool:
                items.extend(_chosen(ctx, array, r, sum(i is not None for i in items)))
            case Scalar() | SliceValue() | Array():
                items.append(r)
            case _:
                ctx.fail(
                    "TP104", f"an array cannot be indexed by {type_text(r)}", "use integers, slices or integer arrays."
                )
    if not ellipsis:
        items.extend([whole] * (rank - used))
    return items


def _axes_of(item: Value) -> int:
    """How many axes of the array it is an index of."""
    if isinstance(item, Static) and (item.value is None or item.value is Ellipsis):
        return 0
    return item.type.rank if isinstance(item, Array) and item.type.dtype is DType.bool else 1


def _chosen(ctx: Context, array: Array, mask: Array, axis: int) -> list[Item]:
    """A mask as arrays of positions, one for each of its axes. Their size is known when the program runs."""
    message = "boolean index did not match indexed array along axis {0}; size of axis is {1} but size of corresponding boolean axis is {2}"
    for k, size in enumerate(mask.type.shape):
        there, here = (ctx.size_atom(d) for d in (array.type.shape[axis + k], size))
        if there != here:
            ctx.check(apply(ctx, "eq", there, here), "IndexError", message, i64(axis + k), there, here)
    found = call_numpy(ctx, "nonzero", [mask])
    assert isinstance(found, Sequence_)
    return [item for item in found.items if isinstance(item, Array)]


def _are_apart(raw: list[Value], ellipsis: Value) -> bool:
    """Whether there are arrays of indices, and the ellipsis parts them, or one from a position."""
    at = raw.index(ellipsis)
    arrays = [isinstance(r, (Array, Sequence_)) for r in raw]
    sides = [any(isinstance(r, (Array, Sequence_, Scalar)) for r in part) for part in (raw[:at], raw[at + 1 :])]
    return any(arrays) and all(sides)


def get_item(ctx: Context, array: Array, subscript: Value) -> Value:
    element = _element(ctx, array, subscript)
    if element is not None:
        return Scalar(read(ctx, element))
    items = _items(ctx, array, subscript)
    if any(isinstance(i, Array) for i in items):
        made = gather(ctx, array, items)
        if isinstance(made, Array) and made.type.rank > 1:
            made.cell.scattered = True  # NumPy makes no promise about their order in memory
        return made
    view = _basic(ctx, array, items)
    if not view.type.shape:
        return Scalar(read(ctx, view))
    if any(isinstance(i, Scalar) for i in items) and _tested(view):
        read(ctx, view)  # a position outside is an error here, not where the view is used
    return view


def _tested(view: Array) -> bool:
    last = view.view[-1]
    return isinstance(last, Strided) and any(isinstance(a, At) and a.check for a in last.axes)


def set_item(ctx: Context, array: Array, subscript: Value, value: Value) -> None:
    numeric = as_numeric(ctx, value, "assignment")
    if is_mask(subscript, array) and isinstance(numeric, Scalar):
        assert isinstance(subscript, Array)
        masked_write(ctx, array, subscript, numeric)
        return
    element = _element(ctx, array, subscript) if isinstance(numeric, Scalar) else None
    if element is not None:
        write(ctx, element, broadcast_to(ctx, numeric, (), array.type.dtype, "assignment"))
        return
    items = _items(ctx, array, subscript)
    if any(isinstance(i, Array) for i in items):
        scatter(ctx, array, items, numeric)
    else:
        view = _basic(ctx, array, items)
        if isinstance(numeric, Array) and _tested(view):
            read(ctx, view)  # a position outside is an error before a size that does not fit is one
        new = broadcast_to(ctx, numeric, ctx.dims(view.type.shape), array.type.dtype, "assignment")
        write(ctx, view, new)


def is_mask(subscript: Value, array: Array) -> bool:
    """Of all of the array: a single number needs no positions."""
    return (
        isinstance(subscript, Array) and subscript.type.dtype is DType.bool and subscript.type.rank == array.type.rank
    )


# -- basic indexing


def _element(ctx: Context, array: Array, subscript: Value) -> Array | None:
    """One element of a whole array, by a position for each axis: what most subscripts are, in one step."""
    items = subscript.items if isinstance(subscript, Sequence_) and subscript.kind == "tuple" else (subscript,)
    shape = array.type.shape
    if array.view or len(items) != len(shape) or ctx.state.cells[array.cell].type.shape != shape:
        return None
    positions = [item for item in items if isinstance(item, Scalar) and item.dtype is not DType.bool]
    if len(positions) != len(shape):
        return None
    axes = [position(ctx, item, shape[k], k) for k, item in enumerate(positions)]
    return Array(array.cell, SCALAR[array.type.dtype], (Strided(tuple(axes), ()),))


def _basic(ctx: Context, array: Array, items: Sequence[Item]) -> Array:
    """The view, composed with a strided view below it so that a write is one update."""
    below = array.view[-1] if array.view and isinstance(array.view[-1], Strided) else None
    rest = array.view[:-1] if below else array.view
    if below is None:
        below = Strided(tuple(full_axes(array.type.shape)), tuple(range(array.type.rank)))
    lengths = base_dims(ctx, array, rest)
    axes: list[Axis | None] = list(below.axes)
    ranges = [p for p, a in enumerate(below.axes) if isinstance(a, Range)]
    places: list[int | None] = []  # for each axis of the result: the position in `axes`, or None
    dims: list[Dim] = []
    k = 0
    for item in items:
        if item is None:
            places.append(None)
            dims.append(1)
            continue
        source = below.order[k]
        length = array.type.shape[k]
        if source is None:
            _index_new_axis(ctx, item, places, dims)
        else:
            place = ranges[source]
            outer = axes[place]
            assert isinstance(outer, Range)
            if isinstance(item, Scalar):
                axes[place] = position_of(ctx, outer, item, length, lengths[place], k)
            else:
                assert isinstance(item, SliceValue)
                inner = slice_of(ctx, item, length)
                axes[place] = compose(ctx, outer, inner)
                places.append(place)
                dims.append(inner.length)
        k += 1
    final = [a for a in axes if a is not None]
    left = [p for p, a in enumerate(final) if isinstance(a, Range)]
    order = tuple(None if p is None else left.index(p) for p in places)
    return Array(array.cell, Type(array.type.dtype, tuple(dims)), (*rest, Strided(tuple(final), order)))


def base_dims(ctx: Context, array: Array, rest: tuple[Step, ...]) -> tuple[Dim, ...]:
    """The shape that the last step of a view starts from: what the steps before it leave."""
    match rest:
        case ():
            return ctx.state.cells[array.cell].type.shape
        case (*_, Reshaped(shape=shape)):
            return shape
        case (*_, Strided(axes=axes, order=order)):
            lengths = [a.length for a in axes if isinstance(a, Range)]
            return tuple(1 if o is None else lengths[o] for o in order)
    raise AssertionError("a step is strided or reshaped")


def _index_new_axis(ctx: Context, item: Item, places: list[int | None], dims: list[Dim]) -> None:
    if isinstance(item, Scalar) and isinstance(item.atom, Const):
        if item.atom.value in (0, -1):
            return
    elif isinstance(item, SliceValue) and item == SliceValue(None, None, None):
        places.append(None)
        dims.append(1)
        return
    ctx.fail(
        "TP101", "an axis made by None or np.newaxis can only be indexed by 0 or ':'", "index before adding the axis."
    )


def row_view(ctx: Context, array: Array, index: Atom) -> Value:
    """array[index] for an index known to be inside: what `for row in array` binds."""
    step = Strided((At(index), *full_axes(array.type.shape[1:])), tuple(range(array.type.rank - 1)))
    if array.view and isinstance(array.view[-1], Strided):
        items: list[Item] = [Scalar(index), *[SliceValue(None, None, None)] * (array.type.rank - 1)]
        view = _basic(ctx, array, items)
    else:
        view = view_of(array, step, array.type.row())
    return view if view.type.shape else Scalar(read(ctx, view))
