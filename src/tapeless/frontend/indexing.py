"""Subscripts: basic slicing as views, integer-array indexing, and assignment to both.

Takes a reference and the items between the brackets; gives a view, an element, a gathered array, or performs the write.
Python's rules: negative positions count from the end, slices are clamped, a position outside raises IndexError.
"""

from __future__ import annotations

from collections.abc import Sequence

from tapeless.frontend import scalars
from tapeless.frontend.arrays import (
    broadcast_shapes,
    broadcast_to,
    is_full,
    map_nest,
    read,
    shape_of,
    view_of,
    wrap,
    write,
)
from tapeless.frontend.context import Context, type_text
from tapeless.frontend.values import Array, Reshaped, Scalar, Sequence_, SliceValue, Static, Step, Strided, Value
from tapeless.ir.builder import full_axes
from tapeless.ir.core import At, Axis, Range
from tapeless.ir.types import Atom, Const, Dim, DType, Type, Var, i64

Item = Scalar | SliceValue | Array | None  # None: a new axis


def items_of(ctx: Context, array: Array, subscript: Value) -> list[Item]:
    """One item an axis, with new axes in between; an Ellipsis filled up."""
    raw = list(subscript.items) if isinstance(subscript, Sequence_) and subscript.kind == "tuple" else [subscript]
    items: list[Item] = []
    ellipsis = False
    used = sum(1 for r in raw if not (isinstance(r, Static) and (r.value is None or r.value is Ellipsis)))
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
                items.extend([whole] * (rank - used))
            case Scalar() if r.dtype is DType.bool:
                ctx.fail(
                    "TP104",
                    "a bool as an index adds an axis in NumPy, which cannot be compiled",
                    "use int(...) for a position.",
                )
            case Scalar() | SliceValue() | Array():
                items.append(r)
            case Sequence_(kind="list"):
                from tapeless.frontend.arrays import make_array

                made = make_array(ctx, r)
                assert isinstance(made, Array)
                items.append(made)
            case _:
                ctx.fail(
                    "TP104", f"an array cannot be indexed by {type_text(r)}", "use integers, slices or integer arrays."
                )
    if not ellipsis:
        items.extend([whole] * (rank - used))
    return items


def get_item(ctx: Context, array: Array, subscript: Value) -> Value:
    items = items_of(ctx, array, subscript)
    if any(isinstance(i, Array) for i in items):
        made = _gather(ctx, array, items)
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
    from tapeless.frontend.arrays import as_numeric

    items = items_of(ctx, array, subscript)
    numeric = as_numeric(ctx, value, "assignment")
    masks = [i for i in items if isinstance(i, Array) and i.type.dtype is DType.bool]
    if masks:
        _masked_write(ctx, array, items, numeric)
    elif any(isinstance(i, Array) for i in items):
        _scatter(ctx, array, items, numeric)
    else:
        view = _basic(ctx, array, items)
        if isinstance(numeric, Array) and _tested(view):
            read(ctx, view)  # a position outside is an error before a size that does not fit is one
        new = broadcast_to(ctx, numeric, ctx.dims(view.type.shape), array.type.dtype, "assignment")
        write(ctx, view, new)


# -- basic indexing


def _basic(ctx: Context, array: Array, items: Sequence[Item]) -> Array:
    """The view, composed with a strided view below it so that a write is one update."""
    below = array.view[-1] if array.view and isinstance(array.view[-1], Strided) else None
    rest = array.view[:-1] if below else array.view
    if below is None:
        below = Strided(tuple(full_axes(array.type.shape)), tuple(range(array.type.rank)))
    base_dims = _base_dims(ctx, array, rest)
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
                axes[place] = _position(ctx, outer, item, length, base_dims[place], k)
            else:
                assert isinstance(item, SliceValue)
                inner = _slice(ctx, item, length)
                axes[place] = _compose(ctx, outer, inner)
                places.append(place)
                dims.append(inner.length)
        k += 1
    final = [a for a in axes if a is not None]
    left = [p for p, a in enumerate(final) if isinstance(a, Range)]
    order = tuple(None if p is None else left.index(p) for p in places)
    return Array(array.cell, Type(array.type.dtype, tuple(dims)), (*rest, Strided(tuple(final), order)))


def _base_dims(ctx: Context, array: Array, rest: tuple[Step, ...]) -> tuple[Dim, ...]:
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


def _position(ctx: Context, outer: Range, item: Scalar, length: Dim, base: Dim, axis: int) -> At:
    index = scalars.to_index(ctx, item, "an index")
    if is_full(outer, base):
        if isinstance(index, Const) and isinstance(length, int):
            at = int(index.value.real)
            if not -length <= at < length:
                ctx.fail("TP203", f"index {at} is out of bounds for axis {axis} with size {length}")
            return At(i64(at % length))
        negative_possible = not (isinstance(index, Const) and int(index.value.real) >= 0)
        return At(index, wrap=negative_possible, check=True)
    inside = checked_position(ctx, index, length, axis)
    return At(_affine(ctx, outer.start, inside, outer.step))


def checked_position(ctx: Context, index: Atom, length: Dim, axis: int) -> Atom:
    """A position of an axis of this length, wrapped and tested by explicit statements."""
    n = ctx.size_atom(length)
    zero = i64(0)
    if isinstance(index, Const) and int(index.value.real) >= 0:
        wrapped: Atom = index
    elif isinstance(index, Const):
        wrapped = scalars.apply(ctx, "add", index, n)
    else:
        negative = scalars.apply(ctx, "lt", index, zero)
        wrapped = scalars.select(ctx, negative, scalars.apply(ctx, "add", index, n), index)
    if not ctx.options.unsafe:
        low = scalars.apply(ctx, "ge", wrapped, zero)
        high = scalars.apply(ctx, "lt", wrapped, n)
        message = f"index {{0}} is out of bounds for axis {axis} with size {{1}}"
        ctx.check(scalars.logical_and(ctx, low, high), "IndexError", message, index, n)
    return wrapped


def _affine(ctx: Context, start: Atom, index: Atom, step: Atom) -> Atom:
    """start + index * step."""
    if step != i64(1):
        index = scalars.apply(ctx, "mul", index, step)
    return index if start == i64(0) else scalars.apply(ctx, "add", start, index)


def _compose(ctx: Context, outer: Range, inner: Range) -> Range:
    if outer.start == i64(0) and outer.step == i64(1):
        return inner
    start = _affine(ctx, outer.start, inner.start, outer.step)
    return Range(start, inner.length, scalars.apply(ctx, "mul", outer.step, inner.step))


def _slice(ctx: Context, item: SliceValue, length: Dim) -> Range:
    """Python's clamping: start, number of elements, step."""
    n = ctx.size_atom(length)
    step = _bound(ctx, item.step) or i64(1)
    start, stop = _bound(ctx, item.start), _bound(ctx, item.stop)
    if not isinstance(step, Const):
        return _slice_by(ctx, start, stop, step, n)
    by = int(step.value.real)
    if by == 0:
        ctx.fail("TP112", "slice step cannot be zero")
    if start is None and stop is None and abs(by) == 1:  # the length stays
        return Range(i64(0) if by == 1 else scalars.size_op(ctx, "sub", n, i64(1)), length, step)
    simple = _simple_slice(ctx, start, stop, n) if by == 1 else None
    if simple is not None:
        return simple
    low, span = _rising(ctx, start, stop, n) if by > 0 else _falling(ctx, start, stop, n)
    return Range(low, _steps(ctx, span, i64(abs(by))), step)


def _slice_by(ctx: Context, start: Atom | None, stop: Atom | None, step: Atom, n: Atom) -> Range:
    """A step that is only known at run time: both directions, and the one that applies."""
    ctx.check(scalars.apply(ctx, "ne", step, i64(0)), "ValueError", "slice step cannot be zero")
    up = scalars.apply(ctx, "gt", step, i64(0))
    rising, falling = _rising(ctx, start, stop, n), _falling(ctx, start, stop, n)
    low, span = (scalars.select(ctx, up, a, b) for a, b in zip(rising, falling, strict=True))
    return Range(low, _steps(ctx, span, scalars.apply(ctx, "abs", step)), step)


def _rising(ctx: Context, start: Atom | None, stop: Atom | None, n: Atom) -> tuple[Atom, Atom]:
    """First position and distance to the end, for a positive step."""
    low = i64(0) if start is None else _clamp(ctx, start, n, i64(0), n)
    high = n if stop is None else _clamp(ctx, stop, n, i64(0), n)
    return low, scalars.size_op(ctx, "sub", high, low)


def _falling(ctx: Context, start: Atom | None, stop: Atom | None, n: Atom) -> tuple[Atom, Atom]:
    """The same for a negative step."""
    last = scalars.size_op(ctx, "sub", n, i64(1))
    low = last if start is None else _clamp(ctx, start, n, i64(-1), last)
    high = i64(-1) if stop is None else _clamp(ctx, stop, n, i64(-1), last)
    return low, scalars.size_op(ctx, "sub", low, high)


def _steps(ctx: Context, span: Atom, by: Atom) -> Dim:
    """How many steps it takes."""
    op = scalars.size_op
    if by != i64(1):
        span = op(ctx, "floordiv", op(ctx, "add", span, op(ctx, "sub", by, i64(1))), by)
    return ctx.atom_dim(op(ctx, "max", span, i64(0)))


def _simple_slice(ctx: Context, start: Atom | None, stop: Atom | None, n: Atom) -> Range | None:
    """a[c:], a[:-d] and a[c:-d]: max(n - c - d, 0) elements from c, whatever n is. Equal lengths are one variable."""
    first = 0 if start is None else int(start.value.real) if isinstance(start, Const) else -1
    left = 0 if stop is None else -int(stop.value.real) if isinstance(stop, Const) else -1
    if first < 0 or left < 0 or (left == 0 and stop is not None):
        return None
    rest = scalars.size_op(ctx, "add", n, i64(-first - left))
    return Range(i64(first), ctx.atom_dim(scalars.size_op(ctx, "max", rest, i64(0))), i64(1))


def _bound(ctx: Context, value: Value | None) -> Atom | None:
    if value is None or (isinstance(value, Static) and value.value is None):
        return None
    if not isinstance(value, Scalar):
        ctx.fail("TP104", f"slice bounds must be integers, not {type_text(value)}")
    return scalars.to_index(ctx, value, "a slice bound")


def _clamp(ctx: Context, bound: Atom, n: Atom, low: Atom, high: Atom) -> Atom:
    op = scalars.size_op
    if isinstance(bound, Const):
        value = int(bound.value.real)
        if value >= 0:
            return low if bound == low else op(ctx, "min", bound, high)
        return op(ctx, "max", op(ctx, "add", n, bound), low)
    negative = op(ctx, "lt", bound, i64(0))
    wrapped = scalars.select(ctx, negative, op(ctx, "add", bound, n), bound)
    return op(ctx, "min", op(ctx, "max", wrapped, low), high)


# -- integer-array indexing


def _gather(ctx: Context, array: Array, items: Sequence[Item]) -> Value:
    if any(isinstance(i, Array) and i.type.dtype is DType.bool for i in items):
        ctx.fail(
            "TP113",
            "reading with a boolean mask gives an array whose size depends on the data",
            "use np.where(mask, a, 0) and keep the shape, or loop over the elements.",
        )
    if None in items:
        ctx.fail("TP101", "None cannot be mixed with integer-array indices", "index first, then add the axis.")
    shape, leading = _index_shape(ctx, items)
    source = read(ctx, array)
    indices = [i for i in items if isinstance(i, Array | Scalar)]
    ranges = {k: _slice(ctx, i, array.type.shape[k]) for k, i in enumerate(items) if isinstance(i, SliceValue)}

    def element(*positions: Scalar) -> Scalar:
        axes = _axes_at(ctx, items, ranges, positions)
        return Scalar(ctx.b.index(source, axes))

    values = [read(ctx, i) if isinstance(i, Array) else i for i in indices]
    _check_integers(ctx, values)
    if not ranges:
        return wrap(ctx, map_nest(ctx, element, values, shape))
    var = map_rows(ctx, lambda *p: ctx.b.index(source, _axes_at(ctx, items, ranges, p)), values, shape)
    if leading:
        total = len(shape)
        kept = var.type.rank - total
        perm = [*range(total, total + leading), *range(total), *range(total + leading, total + kept)]
        var = ctx.b.transpose(var, perm)
    return wrap(ctx, var)


def _index_shape(ctx: Context, items: Sequence[Item]) -> tuple[tuple[Dim, ...], int]:
    """The broadcast shape of the index arrays, and how many kept axes stand before it in the result."""
    arrays = [i for i in items if isinstance(i, Array | Scalar)]
    shape = broadcast_shapes(ctx, [shape_of(a) for a in arrays], "index arrays")
    places = [k for k, i in enumerate(items) if isinstance(i, Array | Scalar)]
    adjacent = places[-1] - places[0] + 1 == len(places)
    return shape, places[0] if adjacent else 0


def _check_integers(ctx: Context, values: Sequence[Var | Scalar]) -> None:
    for v in values:
        dtype = v.dtype if isinstance(v, Scalar) else v.type.dtype
        if not dtype.is_int:
            ctx.fail("TP104", f"arrays used as indices must hold integers, not {dtype.numpy.name}")


def _axes_at(ctx: Context, items: Sequence[Item], ranges: dict[int, Range], positions: Sequence[Scalar]) -> list[Axis]:
    rest = iter(positions)
    axes: list[Axis] = []
    for k, _ in enumerate(items):
        axes.append(ranges[k] if k in ranges else At(scalars.to_index(ctx, next(rest)), wrap=True, check=True))
    return axes


def map_rows(ctx: Context, function: object, values: Sequence[Var | Scalar], shape: tuple[Dim, ...]) -> Var:
    """Like `map_nest`, for a function of scalars that gives a Core variable of any rank."""
    if not shape:
        result = function(*(v if isinstance(v, Scalar) else Scalar(v) for v in values))  # type: ignore[operator]
        assert isinstance(result, Var)
        return result
    moving = [
        (k, v)
        for k, v in enumerate(values)
        if isinstance(v, Var) and v.type.rank == len(shape) and v.type.shape[0] != 1
    ]
    if isinstance(shape[0], int) and shape[0] == 1:
        moving = [(k, v) for k, v in enumerate(values) if isinstance(v, Var) and v.type.rank == len(shape)]
    still = {
        k: (ctx.b.row(v, i64(0)) if isinstance(v, Var) and v.type.rank == len(shape) else v)
        for k, v in enumerate(values)
        if k not in dict(moving)
    }

    def body(index: Var, *rows: Var) -> list[Atom]:
        inner = [still.get(k, v) for k, v in enumerate(values)]
        for (k, _), row in zip(moving, rows, strict=True):
            inner[k] = Scalar(row) if row.type.is_scalar else row
        return [map_rows(ctx, function, inner, shape[1:])]

    return ctx.b.map(shape[0], [v for _, v in moving], body, "g")[0]


def _scatter(ctx: Context, array: Array, items: Sequence[Item], value: Scalar | Array) -> None:
    """a[idx] = v in order, so that the last of equal positions wins, as in NumPy."""
    if None in items:
        ctx.fail("TP101", "None cannot be mixed with integer-array indices", "index first, then add the axis.")
    shape, leading = _index_shape(ctx, items)
    ranges = {k: _slice(ctx, i, array.type.shape[k]) for k, i in enumerate(items) if isinstance(i, SliceValue)}
    kept = [r.length for r in ranges.values()]
    region = (*kept[:leading], *shape, *kept[leading:])
    new = broadcast_to(ctx, value, ctx.dims(region), array.type.dtype, "assignment")
    if isinstance(new, Var) and new.type.shape and leading:
        total = len(shape)
        perm = [*range(leading, leading + total), *range(leading), *range(leading + total, len(region))]
        new = ctx.b.transpose(new, perm)
    indices = [read(ctx, i) if isinstance(i, Array) else i for i in items if isinstance(i, Array | Scalar)]
    _check_integers(ctx, indices)
    base = array if not array.view else None
    from tapeless.frontend.arrays import before_write

    before_write(ctx, array.cell)
    start = ctx.state.cells[array.cell] if base else read(ctx, array)

    def level(target: Var, where: Sequence[Var | Scalar], source: Atom, dims: tuple[Dim, ...]) -> Var:
        if not dims:
            positions = [w if isinstance(w, Scalar) else Scalar(w) for w in where]
            return ctx.b.update(target, _axes_at(ctx, items, ranges, positions), source)

        def body(i: Var, carried: Var) -> list[Atom]:
            inner: list[Var | Scalar] = []
            for w in where:
                if isinstance(w, Var) and w.type.rank == len(dims):
                    at = i64(0) if w.type.shape[0] == 1 else i
                    row = ctx.b.row(w, at)
                    inner.append(Scalar(row) if row.type.is_scalar else row)
                else:
                    inner.append(w)
            part = ctx.b.row(source, i) if isinstance(source, Var) and source.type.shape else source
            return [level(carried, inner, part, dims[1:])]

        return ctx.b.for_(ctx.size_atom(dims[0]), [target], body)[0]

    result = level(start, indices, new, shape)
    write(ctx, array, result)


def _masked_write(ctx: Context, array: Array, items: Sequence[Item], value: Scalar | Array) -> None:
    """a[mask] = scalar, as a choice between old and new."""
    mask = items[0]
    if not (isinstance(mask, Array) and all(i == SliceValue(None, None, None) for i in items[1:])):
        ctx.fail("TP113", "a boolean mask cannot be mixed with other indices here", "use np.where.")
    if mask.type.rank != array.type.rank or not isinstance(value, Scalar):
        ctx.fail("TP113", "assignment by a mask takes a mask of the array's shape and a single number", "use np.where.")
    new = scalars.convert(ctx, value.atom, array.type.dtype)
    shape = broadcast_shapes(ctx, [array.type.shape, mask.type.shape], "mask")

    def choose(m: Scalar, old: Scalar) -> Scalar:
        return Scalar(scalars.select(ctx, m.atom, new, old.atom))

    write(ctx, array, map_nest(ctx, choose, [read(ctx, mask), read(ctx, array)], shape))


def masked_update(ctx: Context, array: Array, mask: Array, new: Value) -> None:
    """a[mask] op= number, where `new` is a op number: kept where the mask is true."""
    assert isinstance(new, Array)
    if mask.type.rank != array.type.rank:
        ctx.fail("TP113", "assignment by a mask takes a mask of the array's shape", "use np.where.")
    shape = broadcast_shapes(ctx, [array.type.shape, mask.type.shape], "mask")
    values = broadcast_to(ctx, new, ctx.dims(array.type.shape), array.type.dtype, "assignment")
    assert isinstance(values, Var)

    def choose(m: Scalar, x: Scalar, old: Scalar) -> Scalar:
        return Scalar(scalars.select(ctx, m.atom, x.atom, old.atom))

    write(ctx, array, map_nest(ctx, choose, [read(ctx, mask), values, read(ctx, array)], shape))


def row_view(ctx: Context, array: Array, index: Atom) -> Value:
    """array[index] for an index known to be inside: what `for row in array` binds."""
    step = Strided((At(index), *full_axes(array.type.shape[1:])), tuple(range(array.type.rank - 1)))
    if array.view and isinstance(array.view[-1], Strided):
        items: list[Item] = [Scalar(index), *[SliceValue(None, None, None)] * (array.type.rank - 1)]
        view = _basic(ctx, array, items)
    else:
        view = view_of(array, step, array.type.row())
    return view if view.type.shape else Scalar(read(ctx, view))
