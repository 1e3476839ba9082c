"""Sorting and searching: sort, argsort, searchsorted, interp, take.

Takes arrays, gives new arrays. Vectors are sorted by a `library` operation of Core, stably and with NaN last; binary
search is written in the language, in `small_functions.py`.
"""

from __future__ import annotations

from tapeless.frontend.data.arguments import array, axis, known, numeric, text, vector
from tapeless.frontend.data.arrays import cast, elementwise, read, write
from tapeless.frontend.data.atoms import apply, convert, same_size, select
from tapeless.frontend.data.indexing import get_item
from tapeless.frontend.data.maps import map_nest
from tapeless.frontend.numpy import small_functions
from tapeless.frontend.numpy.batch import along, lanes_back, lanes_last, over_leading
from tapeless.frontend.numpy.library_calls import library, ordered, turned
from tapeless.frontend.numpy.reductions import no_complex
from tapeless.frontend.numpy.shapes import LAST, WHOLE, flat
from tapeless.frontend.state.context import Context, type_text
from tapeless.frontend.state.values import Array, Scalar, Sequence_, Value, weak
from tapeless.ir.core import At
from tapeless.ir.types import Atom, DType, Var, i64, zero_of
from tapeless.prelude import ordering

axis_argument = axis  # a parameter of the same name hides it


def _sorted(ctx: Context, name: str, value: Array, place: int) -> Array:
    """Vectors along an axis through a library operation."""
    kind = value.type.dtype
    if kind.is_complex:
        function = ordering.complex_sorted if name == "sort" else ordering.complex_order
        found = small_functions.inline(ctx, function, [value, weak(place)])
        assert isinstance(found, Array)
        return found

    def lane(var: Var) -> Atom:
        (found,) = library(ctx, name, ordered(ctx, var))
        if name != "sort":
            return found
        return cast(ctx, turned(ctx, found) if kind is DType.u64 else found, kind)

    return along(ctx, value, [place], lane)


@known("np.sort")
def sort(ctx: Context, a: Value, axis: Value | None = LAST, kind: Value | None = None) -> Value:
    value = array(ctx, "np.sort", a)
    if axis is None:
        value = flat(ctx, value)
    return _sorted(ctx, "sort", value, axis_argument(ctx, "np.sort", axis, value.type.rank))


@known("np.argsort")
def argsort(
    ctx: Context, a: Value, axis: Value | None = LAST, kind: Value | None = None, *, stable: Value | None = None
) -> Value:
    value = vector(ctx, "np.argsort", a)
    if axis is None:
        value = flat(ctx, value)
    return _sorted(ctx, "argsort", value, axis_argument(ctx, "np.argsort", axis, value.type.rank))


def sort_in_place(ctx: Context, value: Array, axis: Value | None) -> None:
    """a.sort()"""
    made = _sorted(ctx, "sort", value, axis_argument(ctx, "sort", axis, value.type.rank, -1))
    write(ctx, value, read(ctx, made))


@known("np.searchsorted")
def searchsorted(ctx: Context, a: Value, v: Value, side: Value | None = None) -> Value:
    table, wanted = array(ctx, "np.searchsorted", a), numeric(ctx, "np.searchsorted", v)
    for operand in (table, wanted):
        no_complex(ctx, "np.searchsorted", operand)
    where = text(ctx, "np.searchsorted: side", side, "left")
    if table.type.rank != 1 or where not in ("left", "right"):
        ctx.fail("TP112", "np.searchsorted takes a vector, and 'left' or 'right'")
    function = small_functions.search_left if where == "left" else small_functions.search_right
    size = Scalar(ctx.size_atom(table.type.shape[0]), True)

    def find(x: Scalar) -> Scalar:
        found = small_functions.inline(ctx, function, [table, x, size])
        assert isinstance(found, Scalar)
        return Scalar(found.atom)

    return elementwise(ctx, find, [wanted], "np.searchsorted")


@known("np.interp")
def interp(
    ctx: Context, x: Value, xp: Value, fp: Value, left: Value | None = None, right: Value | None = None
) -> Value:
    places, values = array(ctx, "np.interp", xp), array(ctx, "np.interp", fp)
    if places.type.rank != 1 or values.type.rank != 1:
        ctx.fail("TP202", "np.interp takes vectors of places and values")
    same_size(ctx, places.type.shape[0], values.type.shape[0], "np.interp")
    size = ctx.size_atom(places.type.shape[0])
    ctx.check(apply(ctx, "gt", size, i64(0)), "ValueError", "array of sample points is empty")
    points = numeric(ctx, "np.interp", x)
    no_complex(ctx, "np.interp: x", points)
    no_complex(ctx, "np.interp: xp", places)
    kind = DType.c128 if values.type.dtype.is_complex else DType.f64
    table, last = cast(ctx, read(ctx, values), kind), apply(ctx, "sub", size, i64(1))
    ends = []
    for given, position in ((left, i64(0)), (right, last)):
        if given is not None and not isinstance(given, Scalar):
            ctx.fail("TP104", f"np.interp: what lies outside must be a number, not {type_text(given)}")
        if given is not None and given.dtype.is_complex and not kind.is_complex:
            ctx.fail("TP104", "np.interp: a complex number cannot lie outside of real values")
        ends.append(convert(ctx, given.atom if given is not None else ctx.b.index(table, [At(position)]), kind))
    xs = ctx.new_cell(cast(ctx, read(ctx, places), DType.f64))
    parts = ("real", "imag") if kind.is_complex else ("identity",)  # each part on its own, as NumPy does it
    tables = [ctx.new_cell(_part(ctx, name, table)) for name in parts]

    def find(point: Scalar) -> Scalar:
        number, count, found = Scalar(convert(ctx, point.atom, DType.f64)), Scalar(size, True), []
        for name, ys in zip(parts, tables, strict=True):
            outside = [Scalar(apply(ctx, name, end)) for end in ends]
            result = small_functions.inline(ctx, small_functions.interpolate, [number, xs, ys, count, *outside])
            assert isinstance(result, Scalar)
            found.append(result.atom)
        if not kind.is_complex:
            return Scalar(found[0])
        unknown = apply(ctx, "and", apply(ctx, "isnan", number.atom), apply(ctx, "gt", size, i64(1)))
        return Scalar(apply(ctx, "complex", found[0], select(ctx, unknown, zero_of(DType.f64), found[1])))

    return elementwise(ctx, find, [points], "np.interp")


def _part(ctx: Context, name: str, table: Var) -> Var:
    return (
        table
        if name == "identity"
        else map_nest(ctx, lambda z: Scalar(apply(ctx, name, z.atom)), [table], table.type.shape)
    )


@known("np.take")
def take(ctx: Context, a: Value, indices: Value, axis: Value | None = None) -> Value:
    value = vector(ctx, "np.take", a)
    if axis is None:
        value = flat(ctx, value)
    place = axis_argument(ctx, "np.take", axis, value.type.rank)
    wanted = numeric(ctx, "np.take", indices)
    return get_item(ctx, value, Sequence_(tuple(wanted if k == place else WHOLE for k in range(value.type.rank))))


@known("np.take_along_axis")
def take_along_axis(ctx: Context, arr: Value, indices: Value, axis: Value | None = LAST) -> Value:
    value, where = array(ctx, "np.take_along_axis", arr), array(ctx, "np.take_along_axis", indices)
    if axis is None:
        value = flat(ctx, value)
    if value.type.rank != where.type.rank or not where.type.dtype.is_int:
        ctx.fail("TP104", "np.take_along_axis takes as many integer indices' dimensions as the array has")
    place = axis_argument(ctx, "np.take_along_axis", axis, value.type.rank)

    def lane(row: Var, positions: Var) -> list[Atom]:
        def element(_: Var, k: Var) -> list[Atom]:
            return [ctx.b.index(row, [At(convert(ctx, k, DType.i64), wrap=True, check=True)])]

        return list(ctx.b.map(ctx.canon(positions.type.shape[0]), [positions], element))

    operands = [(lanes_last(ctx, read(ctx, v), [place]), 1) for v in (value, where)]
    made = over_leading(ctx, operands, lane, "np.take_along_axis")
    assert isinstance(made, Array)
    return ctx.new_cell(lanes_back(ctx, read(ctx, made), [place]))
