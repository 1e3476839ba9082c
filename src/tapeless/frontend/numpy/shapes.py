"""Rearranging arrays: reshape, transpose and their kin as views; joining, repeating and rolling as new arrays.

Takes arrays, gives views (they keep the cell) where NumPy gives views, and new arrays where it copies.
"""

from __future__ import annotations

from collections.abc import Sequence
from itertools import pairwise

from tapeless.frontend.data import scalars
from tapeless.frontend.data.arguments import array, axes, axis, integer, known, numeric, vector
from tapeless.frontend.data.arrays import broadcast_to as broadcast_value
from tapeless.frontend.data.arrays import cast, in_order, make_array, note_point, read, reshape, separate, transpose
from tapeless.frontend.data.atoms import apply, same_size
from tapeless.frontend.data.dimensions import dim_of, total_size
from tapeless.frontend.data.dimensions import shape_of as shape_argument
from tapeless.frontend.data.indexing import get_item
from tapeless.frontend.data.iterables import items_of
from tapeless.frontend.numpy.creation import at_least, check_order
from tapeless.frontend.numpy.elementwise import common_dtype
from tapeless.frontend.numpy.elementwise_options import borrowed
from tapeless.frontend.numpy.small_functions import inline
from tapeless.frontend.state.context import Context, type_text
from tapeless.frontend.state.values import Array, Borrowed, Scalar, Sequence_, SliceValue, Static, Value, weak
from tapeless.ir.core import Range
from tapeless.ir.types import Atom, Const, Dim, DType, Var, i64
from tapeless.prelude import editing, joining

axis_argument = axis  # a parameter of the same name hides it
WHOLE = SliceValue(None, None, None)
FIRST, LAST = weak(0), weak(-1)  # axes


# -- shapes


def reshaped(ctx: Context, value: Array, shape: Sequence[Dim]) -> Array:
    """The same elements in another shape, known to fit."""
    return reshape(ctx, value, tuple(shape))


def flat(ctx: Context, value: Array) -> Array:
    if value.type.rank == 1:
        return value
    return reshaped(ctx, value, [ctx.atom_dim(total_size(ctx, value.type.shape))])


def to_shape(ctx: Context, value: Array, items: Sequence[Value]) -> Array:
    """reshape(*items) with NumPy's rules: one size may be -1, and the number of elements must stay."""
    free = [k for k, item in enumerate(items) if isinstance(item, Scalar) and item.atom == i64(-1)]
    if len(free) > 1:
        ctx.shape_error("TP201", "reshape can only work out one size that is given as -1")
    dims: list[Dim] = [1 if k in free else dim_of(ctx, item, "a size") for k, item in enumerate(items)]
    old, new = _cancelled(ctx, value.type.shape, dims)
    before, after = total_size(ctx, old), total_size(ctx, new)
    if free:
        dims[free[0]] = _quotient(ctx, before, after)
    elif isinstance(before, Const) and isinstance(after, Const):
        if before != after:
            ctx.shape_error("TP201", f"cannot reshape an array of size {before.value} into size {after.value}")
    elif before is not after:
        message = "cannot reshape array of size {0} into size {1}"
        ctx.check(apply(ctx, "eq", before, after), "ShapeError", message, before, after)
    return reshaped(ctx, value, dims)


def _cancelled(ctx: Context, old: Sequence[Dim], new: Sequence[Dim]) -> tuple[list[Dim], list[Dim]]:
    """Both shapes without the symbolic sizes that they share."""
    left, right = [ctx.canon(d) for d in old], [ctx.canon(d) for d in new]
    for d in [d for d in left if isinstance(d, Var)]:
        if d in right:
            left.remove(d)
            right.remove(d)
    return left, right


def _quotient(ctx: Context, before: Atom, after: Atom) -> Dim:
    if after == i64(1):
        return ctx.atom_dim(before)
    if isinstance(before, Const) and isinstance(after, Const):
        total, known_part = int(before.value.real), int(after.value.real)
        if known_part == 0 or total % known_part:
            ctx.shape_error("TP201", f"cannot reshape an array of size {total} into rows of {known_part}")
        return total // known_part
    zero = i64(0)
    fits = apply(ctx, "and", apply(ctx, "eq", apply(ctx, "mod", before, after), zero), apply(ctx, "ne", after, zero))
    ctx.check(fits, "ShapeError", "cannot reshape array of size {0} into rows of {1}", before, after)
    return ctx.atom_dim(apply(ctx, "floordiv", before, after))


@known("np.reshape")
def np_reshape(ctx: Context, a: Value, shape: Value, order: Value | None = None) -> Value:
    value = array(ctx, "np.reshape", a)
    check_order(ctx, "np.reshape", order, value)
    items = shape.items if isinstance(shape, Sequence_) else (shape,)
    return to_shape(ctx, value, items)


@known("np.ravel")
def ravel(ctx: Context, a: Value, order: Value | None = None) -> Value:
    value = vector(ctx, "np.ravel", a)
    check_order(ctx, "np.ravel", order, value)
    if in_order(ctx, value):
        return flat(ctx, value)
    return separate(ctx, value, [ctx.atom_dim(total_size(ctx, value.type.shape))])


@known("np.squeeze")
def squeeze(ctx: Context, a: Value, axis: Value | None = None) -> Value:
    value = array(ctx, "np.squeeze", a)
    dims = ctx.dims(value.type.shape)
    if axis is None:
        away = [k for k, d in enumerate(dims) if d == 1 or d in ctx.short]
        for k, d in enumerate(dims):
            if isinstance(d, Var) and k not in away and d not in ctx.sizes:
                message = "np.squeeze: whether an axis goes must be known at compile time, and this one has size 1; give axis="
                ctx.check(apply(ctx, "ne", d, i64(1)), "ShapeError", message)
    else:
        away = list(axes(ctx, "np.squeeze", axis, value.type.rank, lenient=True))
    for k in away:
        size = dims[k]
        message = "cannot select an axis to squeeze out which has size not equal to one"
        if isinstance(size, int) and size != 1:
            ctx.shape_error("TP201", message)
        if isinstance(size, Var):
            ctx.check(apply(ctx, "eq", size, i64(1)), "ShapeError", message)
    found = get_item(ctx, value, Sequence_(tuple(weak(0) if k in away else WHOLE for k in range(len(dims)))))
    if isinstance(found, Scalar):
        note_point(ctx, value)
    return found


@known("np.expand_dims")
def expand_dims(ctx: Context, a: Value, axis: Value) -> Value:
    value = array(ctx, "np.expand_dims", a)
    added = len(axis.items) if isinstance(axis, Sequence_) else 1
    places = axes(ctx, "np.expand_dims", axis, value.type.rank + added)
    items = tuple(Static(None) if k in places else WHOLE for k in range(value.type.rank + added))
    return get_item(ctx, value, Sequence_(items))


# -- orders of axes


@known("np.transpose", "np.permute_dims")
def np_transpose(ctx: Context, a: Value, axes: Value | None = None) -> Value:
    value = array(ctx, "np.transpose", a)
    rank = value.type.rank
    if axes is None:
        return transpose(ctx, value, tuple(reversed(range(rank))))
    items = axes.items if isinstance(axes, Sequence_) else (axes,)
    perm = [axis_argument(ctx, "np.transpose", item, rank) for item in items]
    if sorted(perm) != list(range(rank)):
        ctx.fail("TP202", f"np.transpose: the axes must be an order of all {rank} axes")
    return transpose(ctx, value, perm)


@known("np.swapaxes")
def swapaxes(ctx: Context, a: Value, axis1: Value, axis2: Value) -> Value:
    value = array(ctx, "np.swapaxes", a)
    first, second = (axis_argument(ctx, "np.swapaxes", x, value.type.rank) for x in (axis1, axis2))
    perm = list(range(value.type.rank))
    perm[first], perm[second] = perm[second], perm[first]
    return transpose(ctx, value, perm)


@known("np.moveaxis")
def moveaxis(ctx: Context, a: Value, source: Value, destination: Value) -> Value:
    value = array(ctx, "np.moveaxis", a)
    ends = []
    for v in (source, destination):
        items = v.items if isinstance(v, Sequence_) else (v,)
        ends.append([axis_argument(ctx, "np.moveaxis", x, value.type.rank) for x in items])
        if len(set(ends[-1])) != len(items):
            ctx.fail("TP202", "np.moveaxis: an axis is given twice")
    if len(ends[0]) != len(ends[1]):
        ctx.fail("TP112", "np.moveaxis takes as many destinations as sources")
    perm = [k for k in range(value.type.rank) if k not in ends[0]]
    for to, what in sorted(zip(ends[1], ends[0], strict=True)):
        perm.insert(to, what)
    return transpose(ctx, value, perm)


@known("np.flip")
def flip(ctx: Context, m: Value, axis: Value | None = None) -> Value:
    value = array(ctx, "np.flip", m)
    return _flipped(ctx, value, axes(ctx, "np.flip", axis, value.type.rank))


def _flipped(ctx: Context, value: Array, places: Sequence[int]) -> Value:
    backwards = SliceValue(None, None, weak(-1))
    return get_item(ctx, value, Sequence_(tuple(backwards if k in places else WHOLE for k in range(value.type.rank))))


@known("np.flipud")
def flipud(ctx: Context, m: Value) -> Value:
    value = array(ctx, "np.flipud", m)
    return _flipped(ctx, value, [axis_argument(ctx, "np.flipud", FIRST, value.type.rank)])


@known("np.fliplr")
def fliplr(ctx: Context, m: Value) -> Value:
    value = array(ctx, "np.fliplr", m)
    if value.type.rank < 2:
        ctx.fail("TP202", "np.fliplr takes arrays of at least 2 dimensions")
    return _flipped(ctx, value, [1])


# -- joining


def parts_of(ctx: Context, name: str, value: Value, rank: int = 0) -> list[Array]:
    """The arrays of a list, of this rank at least, in their common element type; an array counts as the list of its
    rows.
    """
    found = [numeric(ctx, name, item) for item in items_of(ctx, f"the list of {name}", value)]
    if not found:
        ctx.fail("TP112", f"{name} needs at least one array")
    parts = [array(ctx, name, at_least(ctx, p, rank)) for p in found]
    kind = common_dtype([Scalar(Const(0, p.type.dtype)) for p in parts])
    return [p if p.type.dtype is kind else ctx.new_cell(cast(ctx, read(ctx, p), kind)) for p in parts]


def joined(ctx: Context, name: str, parts: Sequence[Array], place: int) -> Array:
    rank = parts[0].type.rank
    if any(p.type.rank != rank for p in parts):
        ctx.shape_error("TP202", f"{name}: all arrays must have the same number of dimensions")
    for p in parts[1:]:
        for k, (d, e) in enumerate(zip(parts[0].type.shape, p.type.shape, strict=True)):
            if k != place:
                same_size(ctx, d, e, f"{name}: axis {k}")
    length: Atom = i64(0)
    for p in parts:
        size = ctx.size_atom(p.type.shape[place])
        length = size if length == i64(0) else length if size == i64(0) else apply(ctx, "add", length, size)
    return ctx.new_cell(ctx.b.concat([read(ctx, p) for p in parts], place, ctx.atom_dim(length), "array"))


@known("np.concatenate", "np.concat")
def concatenate(ctx: Context, arrays: Value, axis: Value | None = FIRST) -> Value:
    if isinstance(arrays, Array):
        return make_array(ctx, flat(ctx, arrays)) if axis is None else inline(ctx, joining.rows_joined, [arrays, axis])
    parts = parts_of(ctx, "np.concatenate", arrays)
    if axis is None:
        return joined(ctx, "np.concatenate", [flat(ctx, p) for p in parts], 0)
    return joined(ctx, "np.concatenate", parts, axis_argument(ctx, "np.concatenate", axis, parts[0].type.rank))


@known("np.stack")
def stack(ctx: Context, arrays: Value, axis: Value | None = None) -> Value:
    if isinstance(arrays, Array):
        return inline(ctx, joining.stack_of_rows, [arrays, axis or weak(0)])
    items = tuple(items_of(ctx, "the list of np.stack", arrays))
    if not items:
        ctx.fail("TP112", "np.stack needs at least one array")
    made = make_array(ctx, Sequence_(items, "list"))
    assert isinstance(made, Array)
    place = axis_argument(ctx, "np.stack", axis, made.type.rank)
    if place == 0:
        return made
    perm = list(range(1, made.type.rank))
    perm.insert(place, 0)
    return ctx.new_cell(ctx.b.transpose(read(ctx, made), perm))


@known("np.hstack")
def hstack(ctx: Context, tup: Value) -> Value:
    if isinstance(tup, Array):
        return inline(ctx, joining.hstack_of_rows, [tup])
    parts = parts_of(ctx, "np.hstack", tup, 1)
    return joined(ctx, "np.hstack", parts, 0 if parts[0].type.rank == 1 else 1)


@known("np.vstack")
def vstack(ctx: Context, tup: Value) -> Value:
    if isinstance(tup, Array):
        return inline(ctx, joining.vstack_of_rows, [tup])
    return joined(ctx, "np.vstack", parts_of(ctx, "np.vstack", tup, 2), 0)


@known("np.column_stack")
def column_stack(ctx: Context, tup: Value) -> Value:
    if isinstance(tup, Array):
        return inline(ctx, joining.column_stack_of_rows, [tup])
    columns = []
    for p in parts_of(ctx, "np.column_stack", tup, 1):
        columns.append(array(ctx, "", get_item(ctx, p, Sequence_((WHOLE, Static(None))))) if p.type.rank == 1 else p)
    return joined(ctx, "np.column_stack", columns, 1)


@known("np.append")
def append(ctx: Context, arr: Value, values: Value, axis: Value | None = None) -> Value:
    parts = parts_of(ctx, "np.append", Sequence_((arr, values)))
    if axis is None:
        return joined(ctx, "np.append", [flat(ctx, p) for p in parts], 0)
    return joined(ctx, "np.append", parts, axis_argument(ctx, "np.append", axis, parts[0].type.rank))


@known("np.split")
def split(ctx: Context, ary: Value, indices_or_sections: Value, axis: Value | None = None) -> Value:
    value = array(ctx, "np.split", ary)
    place = axis_argument(ctx, "np.split", axis, value.type.rank)
    n = ctx.size_atom(value.type.shape[place])
    if isinstance(indices_or_sections, Sequence_):
        inner: list[Value] = list(indices_or_sections.items)
    else:
        count = integer(ctx, "np.split: the number of parts", indices_or_sections)
        if count < 1:
            ctx.fail("TP112", "np.split: the number of parts must be larger than 0")
        even = apply(ctx, "eq", apply(ctx, "mod", n, i64(count)), i64(0))
        ctx.check(even, "ShapeError", "array split does not result in an equal division")
        size = apply(ctx, "floordiv", n, i64(count))
        inner = [Scalar(apply(ctx, "mul", size, i64(k)), True) for k in range(1, count)]
    bounds: list[Value | None] = [None, *inner, None]
    found = []
    for low, high in pairwise(bounds):
        cut = tuple(SliceValue(low, high, None) if k == place else WHOLE for k in range(value.type.rank))
        found.append(get_item(ctx, value, Sequence_(cut)))
    return Sequence_(tuple(found), "list")


# -- repeating and rolling


@known("np.broadcast_to")
def np_broadcast_to(ctx: Context, a: Value, shape: Value) -> Value:
    value = numeric(ctx, "np.broadcast_to", a)
    dims = shape_argument(ctx, shape)
    kind = value.type.dtype if isinstance(value, Array) else value.dtype
    atom = broadcast_value(ctx, value, dims, kind, "np.broadcast_to")
    if not dims:
        return Scalar(atom)
    made = ctx.new_cell(atom if isinstance(atom, Var) and atom.type.shape else ctx.b.full(dims, atom, kind))
    if isinstance(value, Scalar):
        return made
    how = Borrowed("broadcast_to", tuple(ctx.size_atom(d) for d in dims))
    return borrowed(ctx, made, value, "the result of np.broadcast_to cannot be written", how)


@known("np.repeat")
def repeat(ctx: Context, a: Value, repeats: Value, axis: Value | None = None) -> Value:
    value = vector(ctx, "np.repeat", a)
    if axis is None:
        value = flat(ctx, value)
    place = axis_argument(ctx, "np.repeat", axis, value.type.rank)
    if not isinstance(repeats, Scalar):
        counts = array(ctx, "np.repeat", repeats)
        if not counts.type.dtype.is_int:
            ctx.fail("TP104", "np.repeat: the counts must be integers")
        if counts.type.dtype is DType.u64:
            ctx.fail(
                "TP104", "np.repeat: counts of uint64 are not converted to int64", "write counts.astype(np.int64)."
            )
        return inline(ctx, editing.repeat_each, [value, counts, weak(place)])
    count = dim_of(ctx, repeats, "np.repeat: the count")
    dims = ctx.dims(value.type.shape)
    wide = ctx.b.broadcast(
        read(ctx, value), (*dims[: place + 1], count, *dims[place + 1 :]),
        [k if k <= place else k + 1 for k in range(len(dims))],
    )  # fmt: skip
    longer = ctx.atom_dim(total_size(ctx, [dims[place], count]))
    return ctx.new_cell(ctx.b.reshape(wide, (*dims[:place], longer, *dims[place + 1 :])))


@known("np.tile")
def tile(ctx: Context, A: Value, reps: Value) -> Value:
    items = reps.items if isinstance(reps, Sequence_) else (reps,)
    value = array(ctx, "np.tile", at_least(ctx, A, len(items)))
    counts: list[Dim] = [*[1] * (value.type.rank - len(items)), *(dim_of(ctx, r, "np.tile: a count") for r in items)]
    dims = ctx.dims(value.type.shape)
    pairs = [d for pair in zip(counts, dims, strict=True) for d in pair]
    wide = ctx.b.broadcast(read(ctx, value), pairs, range(1, len(pairs), 2))
    longer = [ctx.atom_dim(total_size(ctx, pair)) for pair in zip(counts, dims, strict=True)]
    return ctx.new_cell(ctx.b.reshape(wide, longer))


@known("np.roll")
def roll(ctx: Context, a: Value, shift: Value, axis: Value | None = None) -> Value:
    value = array(ctx, "np.roll", a)
    if axis is None:
        rolled = ctx.b.reshape(_rolled(ctx, read(ctx, flat(ctx, value)), shift, 0), ctx.dims(value.type.shape))
        return ctx.new_cell(rolled)
    places = axis.items if isinstance(axis, Sequence_) else (axis,)
    shifts = shift.items if isinstance(shift, Sequence_) else (shift,) * len(places)
    places = places * len(shifts) if len(places) == 1 else places
    if len(places) != len(shifts):
        ctx.fail("TP112", "np.roll takes as many shifts as axes")
    var = read(ctx, value)
    for s, p in zip(shifts, places, strict=True):
        var = _rolled(ctx, var, s, axis_argument(ctx, "np.roll", p, value.type.rank))
    return ctx.new_cell(var)


def _rolled(ctx: Context, var: Var, shift: Value, place: int) -> Var:
    """The last `shift` elements, then the others."""
    if not isinstance(shift, Scalar):
        ctx.fail("TP104", f"np.roll: the shift must be an integer, not {type_text(shift)}")
    size = ctx.canon(var.type.shape[place])
    n = ctx.size_atom(size)
    k = apply(ctx, "mod", scalars.to_index(ctx, shift, "np.roll: the shift"), n)
    rest = apply(ctx, "sub", n, k)
    pieces = []
    for start, length in ((rest, k), (i64(0), rest)):
        cut = [Range(i64(0), d, i64(1)) for d in var.type.shape]
        cut[place] = Range(start, ctx.atom_dim(length), i64(1))
        pieces.append(ctx.b.index(var, cut))
    return ctx.b.concat(pieces, place, size, "array")
