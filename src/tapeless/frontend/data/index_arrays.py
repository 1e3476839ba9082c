"""Subscripts that are arrays: integer positions, read and written, and masks that choose what is written.

Takes the items between the brackets; gives a gathered array, or performs the write. NumPy's rules: index arrays are
broadcast together, and their axes come first unless they stand side by side.
"""

from __future__ import annotations

from collections.abc import Sequence

from tapeless.frontend.data import atoms, scalars
from tapeless.frontend.data.arrays import (
    before_write,
    broadcast_to,
    read,
    shape_of,
    wrap,
    write,
)
from tapeless.frontend.data.maps import broadcast_shapes, map_nest
from tapeless.frontend.data.slices import slice_of
from tapeless.frontend.state.context import Context
from tapeless.frontend.state.values import Array, Scalar, SliceValue, Value
from tapeless.ir.core import At, Axis, Range
from tapeless.ir.types import Atom, Dim, Var, i64

Item = Scalar | SliceValue | Array | None  # None: a new axis

# -- reading


def gather(ctx: Context, array: Array, items: Sequence[Item]) -> Value:
    if None in items:
        ctx.fail("TP101", "None cannot be mixed with integer-array indices", "index first, then add the axis.")
    shape, leading = _index_shape(ctx, items)
    source = read(ctx, array)
    indices = [i for i in items if isinstance(i, (Array, Scalar))]
    ranges = {k: slice_of(ctx, i, array.type.shape[k]) for k, i in enumerate(items) if isinstance(i, SliceValue)}

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
    arrays = [i for i in items if isinstance(i, (Array, Scalar))]
    shape = broadcast_shapes(ctx, [shape_of(a) for a in arrays], "index arrays")
    places = [k for k, i in enumerate(items) if isinstance(i, (Array, Scalar))]
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


# -- writing


def scatter(ctx: Context, array: Array, items: Sequence[Item], value: Scalar | Array) -> None:
    """a[idx] = v in order, so that the last of equal positions wins, as in NumPy."""
    if None in items:
        ctx.fail("TP101", "None cannot be mixed with integer-array indices", "index first, then add the axis.")
    shape, leading = _index_shape(ctx, items)
    ranges = {k: slice_of(ctx, i, array.type.shape[k]) for k, i in enumerate(items) if isinstance(i, SliceValue)}
    kept = [r.length for r in ranges.values()]
    region = (*kept[:leading], *shape, *kept[leading:])
    new = broadcast_to(ctx, value, ctx.dims(region), array.type.dtype, "assignment")
    if isinstance(new, Var) and new.type.shape and leading:
        total = len(shape)
        perm = [*range(leading, leading + total), *range(leading), *range(leading + total, len(region))]
        new = ctx.b.transpose(new, perm)
    indices = [read(ctx, i) if isinstance(i, Array) else i for i in items if isinstance(i, (Array, Scalar))]
    _check_integers(ctx, indices)
    base = array if not array.view else None
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


def masked_write(ctx: Context, array: Array, mask: Array, value: Scalar) -> None:
    """a[mask] = number, as a choice between old and new."""
    new = broadcast_to(ctx, value, (), array.type.dtype, "assignment")
    shape = broadcast_shapes(ctx, [array.type.shape, mask.type.shape], "mask")

    def choose(m: Scalar, old: Scalar) -> Scalar:
        return Scalar(atoms.select(ctx, m.atom, new, old.atom))

    write(ctx, array, map_nest(ctx, choose, [read(ctx, mask), read(ctx, array)], shape))


def masked_update(ctx: Context, array: Array, mask: Array, new: Value) -> None:
    """a[mask] op= number, where `new` is a op number: kept where the mask is true."""
    assert isinstance(new, Array) and mask.type.rank == array.type.rank
    shape = broadcast_shapes(ctx, [array.type.shape, mask.type.shape], "mask")
    values = broadcast_to(ctx, new, ctx.dims(array.type.shape), array.type.dtype, "assignment")
    assert isinstance(values, Var)

    def choose(m: Scalar, x: Scalar, old: Scalar) -> Scalar:
        return Scalar(atoms.select(ctx, m.atom, x.atom, old.atom))

    write(ctx, array, map_nest(ctx, choose, [read(ctx, mask), values, read(ctx, array)], shape))
