"""Array references: reading and writing through views, and element-wise operations with broadcasting.

Takes front-end values, emits Core. See Note [References] in values.py. Index syntax is taken apart in `indexing.py`.
"""

from __future__ import annotations

from collections.abc import Callable, Iterable, Sequence
from functools import reduce

from tapeless.frontend.data import scalars
from tapeless.frontend.data.atoms import same_size
from tapeless.frontend.data.classes import special
from tapeless.frontend.data.maps import ScalarFunction, broadcast_shapes, map_nest, only_position, repeated
from tapeless.frontend.state import layout
from tapeless.frontend.state.captures import constants
from tapeless.frontend.state.context import Context, type_text
from tapeless.frontend.state.parts import parts_of
from tapeless.frontend.state.values import Array, Borrowed, Cell, Reshaped, Scalar, Sequence_, Static, Strided, Value
from tapeless.ir.builder import full_axes
from tapeless.ir.core import At, Axis, Range
from tapeless.ir.types import Atom, Const, Dim, DType, Type, Var, const, i64, zero_of
from tapeless.ops.promotion import promote
from tapeless.symbolic.positions import Position

Convert = Callable[[Context, Atom, DType], Atom]


ON_STACK = 1024  # a longer row of constants is an array of the surroundings, not part of the code


def wrap(ctx: Context, var: Var, name: str = "") -> Value:
    """A fresh Core result as a value: a NumPy scalar, or a new array."""
    return Scalar(var) if var.type.is_scalar else ctx.new_cell(var, name)


def read(ctx: Context, array: Array) -> Var:
    """The contents seen through a reference, now."""
    cell = array.cell
    if cell in ctx.state.stale:
        ctx.fail("TP105", ctx.state.stale[cell], "copy the array (.copy()) where the name is bound.")
    ctx.read_cells.add(cell)
    var = ctx.state.cells[cell]
    for step in array.view:
        if (var, step) not in ctx.state.views:
            ctx.state.views[var, step] = _follow(ctx, var, step)
        var = ctx.state.views[var, step]
    return var


def _follow(ctx: Context, var: Var, step: Strided | Reshaped) -> Var:
    if isinstance(step, Reshaped):
        return ctx.b.reshape(var, step.shape)
    if not _whole(var.type, step.axes):
        var = ctx.b.index(var, step.axes, var.name)
    kept = [o for o in step.order if o is not None]
    if kept != sorted(kept):
        var = ctx.b.transpose(var, kept)
    if None in step.order:
        shape: list[Dim] = []
        dims = iter(var.type.shape)
        for o in step.order:
            shape.append(1 if o is None else next(dims))
        if not kept:  # a single element
            return ctx.b.full(shape, var, var.type.dtype, var.name)
        var = ctx.b.reshape(var, shape)
    return var


def _whole(type: Type, axes: Sequence[Axis]) -> bool:
    return all(isinstance(a, Range) and is_full(a, d) for a, d in zip(axes, type.shape, strict=True))


def is_full(axis: Range, dim: Dim) -> bool:
    same = axis.length is dim or (isinstance(dim, int) and axis.length == dim)
    return same and axis.start == i64(0) and axis.step == i64(1)


def write(ctx: Context, array: Array, value: Atom) -> None:
    """Replaces everything seen through a reference. `value` has the view's shape and element type, or is a scalar."""
    cell = array.cell
    before_write(ctx, cell)
    ctx.state.cells[cell] = _written(ctx, ctx.state.cells[cell], array.view, value)


def note_point(ctx: Context, array: Array) -> None:
    """A view without axes was made of it, which is the number that is there now: writes that it would miss are refused."""
    if not ctx.inside_prelude:
        ctx.points.setdefault(array.cell, ctx.span.line)


def before_write(ctx: Context, cell: Cell) -> None:
    """Refuses a write whose target is not certain, and marks the references that would miss it."""
    if cell in ctx.points:
        ctx.fail(
            "TP105",
            f"'{cell.name}' is written after line {ctx.points[cell]} made a view of one of its elements, which compiled code does not follow",
            "take the element itself there: x[0] instead of x[0, ...], x.reshape(()) or np.squeeze(x).",
        )
    if cell.readonly:
        ctx.fail("TP115", cell.readonly, "copy the array (.copy()) before writing to it.")
    fixed = sorted(c.name for c in cell.may_be if c.argument or c.readonly)
    if fixed:
        same = f"the same array as '{fixed[0]}'" if fixed[0] != cell.name else "different arrays"
        ctx.fail(
            "TP105",
            f"'{cell.name}' may refer to {same} here, so it is not known which array this writes",
            "copy the array (.copy()) where the name is bound.",
        )
    if cell in ctx.state.stale:
        ctx.fail("TP105", ctx.state.stale[cell])
    ctx.written_cells.add(cell)
    for old in cell.was:  # an expression may have read it before
        ctx.state.stale[old] = f"'{old.name}' may refer to the array '{cell.name}', which has been written since"
    for other_cell in ctx.state.cells if cell.may_be else [c for c in ctx.state.cells if c.may_be]:
        if other_cell is not cell and cell.possible & other_cell.possible:
            which = f"the array '{cell.name}'," if cell.name != other_cell.name else "an array"
            ctx.state.stale[other_cell] = f"'{other_cell.name}' may refer to {which} which has been written since"


def _written(ctx: Context, base: Var, view: tuple[Strided | Reshaped, ...], value: Atom) -> Var:
    """The new contents of `base` after the cells seen through `view` became `value`."""
    if not view:
        if isinstance(value, Var) and value.type.shape:
            return value
        return ctx.b.full(base.type.shape, value, base.type.dtype, base.name)
    step, rest = view[0], view[1:]
    inner = _follow(ctx, base, step) if rest else None
    new = _written(ctx, inner, rest, value) if inner is not None else value
    if isinstance(step, Reshaped):
        if not isinstance(new, Var) or not new.type.shape:
            return ctx.b.full(base.type.shape, new, base.type.dtype, base.name)
        return ctx.b.reshape(new, base.type.shape, base.name)
    if isinstance(new, Var) and new.type.shape:
        lengths = [a.length for a in step.axes if isinstance(a, Range)]
        kept = [o for o in step.order if o is not None]
        if None in step.order and kept:
            new = ctx.b.reshape(new, [lengths[o] for o in kept])
        if kept != sorted(kept):
            new = ctx.b.transpose(new, [kept.index(k) for k in range(len(kept))])
        if not kept:
            new = ctx.b.index(new, [At(i64(0))] * new.type.rank)
        elif _whole(base.type, step.axes):
            return new
    return ctx.b.update(base, step.axes, new, base.name)


def view_of(array: Array, step: Strided | Reshaped, type: Type) -> Array:
    return Array(array.cell, type, (*array.view, step))


def transpose(ctx: Context, array: Array, perm: Sequence[int]) -> Array:
    shape = tuple(array.type.shape[p] for p in perm)
    step = Strided(tuple(full_axes(array.type.shape)), tuple(perm))
    return view_of(array, step, array.type.with_shape(shape))


def reshape(ctx: Context, array: Array, shape: Sequence[Dim]) -> Array:
    """A view where NumPy gives one, else a copy. Where that depends on run-time sizes the result cannot be written."""
    target = array.type.with_shape(shape)
    if not array.type.shape or not shape:
        note_point(ctx, array)
        return ctx.new_cell(ctx.b.reshape(read(ctx, array), shape), array.cell.name)
    try:
        in_place = layout.regrouped(*_strides(ctx, array), [ctx.canon(d) for d in shape]) is not None
    except layout.Unknown:
        return perhaps_view(ctx, array, shape)
    if in_place:
        view = view_of(array, Reshaped(tuple(shape)), target)
        read(ctx, view)  # here, where its sizes have been tested: loops that use it then find it made
        return view
    return separate(ctx, array, shape)


def _strides(ctx: Context, array: Array) -> tuple[list[Dim], list[Position]]:
    shape = ctx.state.cells[array.cell].type.shape
    return layout.view_strides(shape, array.view, ctx.canon, array.cell.scattered)


def in_order(ctx: Context, array: Array) -> bool:
    """Whether it is certain that the elements lie in one run in the order of their indices."""
    return layout.contiguous(*_strides(ctx, array))


def separate(ctx: Context, array: Array, shape: Sequence[Dim], how: Borrowed | None = None) -> Array:
    """What NumPy copies to bring it into this shape, as its elements do not lie in order: only a transposed array is
    certain not to, others may be parts that happen to be whole."""
    complete = all(isinstance(s, Strided) and all(isinstance(a, Range) for a in s.axes) for s in array.view)
    lengths = [set(map(ctx.canon, ctx.state.cells[array.cell].type.shape)), set(map(ctx.canon, array.type.shape))]
    whole = (
        complete
        and lengths[0] == lengths[1]
        and all(d != 1 and (isinstance(d, int) or d in ctx.sizes) for d in map(ctx.canon, array.type.shape))
    )
    if array.cell.scattered or not whole:
        return perhaps_view(ctx, array, shape, how)
    return ctx.new_cell(ctx.b.copy(ctx.b.reshape(read(ctx, array), shape)), array.cell.name)


def perhaps_view(ctx: Context, array: Array, shape: Sequence[Dim], how: Borrowed | None = None) -> Array:
    """The elements in another shape, where it shows only at run time whether NumPy copies them. `how`: by another way
    than by reshaping.
    """
    what = "order in memory" if array.cell.scattered else "sizes"
    reason = (
        f"whether this reshaped array is a view depends on its {what}, so it is not known what a write would change"
    )
    cell = Cell(array.cell.name, array.cell.possible, reason, seen_through=(array, how or Reshaped(tuple(shape))))
    ctx.state.cells[cell] = ctx.b.reshape(read(ctx, array), shape)
    return Array(cell, array.type.with_shape(shape))


def turned(array: Array) -> bool:
    """Whether the axes may lie in memory in another order than that of the indices."""
    if array.type.rank < 2:
        return False
    orders = [[o for o in s.order if o is not None] for s in array.view if isinstance(s, Strided)]
    return array.cell.scattered or any(kept != sorted(kept) for kept in orders)


def any_turned(operands: Iterable[Value]) -> bool:
    """Whether NumPy may give a result of these operands another memory order, which it takes over from them."""
    return any(turned(v) if isinstance(v, Array) else any_turned(parts_of(v)) for v in operands)


# -- element-wise operations


def shape_of(value: Value) -> tuple[Dim, ...]:
    return value.type.shape if isinstance(value, Array) else ()


def elementwise(
    ctx: Context,
    function: ScalarFunction,
    operands: Sequence[Value],
    what: str = "operands",
    terms: Sequence[bool] = (),
) -> Value:
    """`function` on each element of the broadcast operands. `terms`: Note [Terms of an expression] of `maps`."""
    numeric = [as_numeric(ctx, v, what) for v in operands]
    if all(isinstance(v, Scalar) for v in numeric):
        return function(*numeric)
    shape = broadcast_shapes(ctx, [shape_of(v) for v in numeric], what, repeat=True)
    values = [read(ctx, v) if isinstance(v, Array) else v for v in numeric]
    made = wrap(ctx, map_nest(ctx, function, values, shape, terms))
    for v, is_term in zip(numeric, terms, strict=False):
        if is_term and isinstance(v, Array):  # nobody has it any more
            ctx.state.cells.pop(v.cell, None)
    if isinstance(made, Array):
        made.cell.scattered = len(shape) > 1 and any_turned(numeric)
    return made


def as_numeric(ctx: Context, value: Value, what: str) -> Scalar | Array:
    """A number or an array; lists and tuples of numbers become arrays, as in NumPy."""
    match value:
        case Array(type=t) if not t.shape:
            return Scalar(read(ctx, value))
        case Scalar() | Array():
            return value
        case Sequence_(kind=kind) if kind in ("tuple", "list"):
            made = make_array(ctx, value)
            assert isinstance(made, Array)
            return made
        case Sequence_() if (converted := special(ctx, "__array__", value)) is not None:
            return as_numeric(ctx, converted, what)
        case Static(value=int() as known):
            return Scalar(const(known, DType.u64))
        case _:
            ctx.fail("TP104", f"{what}: expected a number or an array, found {type_text(value)}")


def make_array(ctx: Context, value: Value, dtype: DType | None = None) -> Value:
    """np.array(value): nested lists and tuples of numbers and arrays are stacked."""
    match value:
        case Scalar():
            return Scalar(element_of(ctx, value, dtype)) if dtype else Scalar(value.atom)
        case Array():
            var = cast(ctx, read(ctx, value), dtype or value.type.dtype)
            return ctx.new_cell(ctx.b.copy(var) if var.type.dtype is value.type.dtype else var)
        case Sequence_() if (converted := special(ctx, "__array__", value)) is not None:
            return make_array(ctx, converted, dtype)
        case Sequence_(items=items, kind=kind) if kind in ("tuple", "list"):
            if not items:
                return ctx.new_cell(ctx.b.full((0,), zero_of(dtype or DType.f64), dtype or DType.f64))
            parts = [make_array(ctx, v, dtype) if isinstance(v, (Sequence_, Array)) else v for v in items]
            scalars_only = [p for p in parts if isinstance(p, Scalar)]
            if len(scalars_only) == len(parts):
                target = dtype or _common_dtype(scalars_only)
                return ctx.new_cell(_stacked(ctx, [element_of(ctx, p, target) for p in scalars_only]))
            for p in parts:
                if not isinstance(p, (Scalar, Array)):
                    ctx.fail(
                        "TP109", f"an array cannot be made of {type_text(p)}", "arrays hold numbers and bools only."
                    )
            rows = [p for p in parts if isinstance(p, Array)]
            if len(rows) != len(parts) or len({r.type.rank for r in rows}) != 1:
                ctx.fail("TP108", "the rows of this array have different lengths or ranks")
            target = dtype or _common_dtype([Scalar(Const(0, r.type.dtype)) for r in rows])
            shape = rows[0].type.shape
            for r in rows[1:]:
                for d, e in zip(shape, r.type.shape, strict=True):
                    if isinstance(d, int) and isinstance(e, int) and d != e:
                        ctx.fail("TP108", f"the rows of this array have different lengths: {d} and {e}")
                shape = tuple(
                    same_size(ctx, d, e, "rows of an array") for d, e in zip(shape, r.type.shape, strict=True)
                )
            return ctx.new_cell(ctx.b.array([cast(ctx, read(ctx, r), target) for r in rows]))
        case _:
            ctx.fail("TP109", f"an array cannot be made of {type_text(value)}", "arrays hold numbers and bools only.")


def element_of(ctx: Context, value: Scalar, dtype: DType) -> Atom:
    """A number as one of this element type, asked for by name: Python's numbers must fit, NumPy's are cast."""
    if not value.weak:
        return scalars.narrowed(ctx, value.atom, dtype)
    if value.dtype.is_complex and not (dtype.is_complex or dtype is DType.bool):
        ctx.fail("TP104", f"a complex number does not fit into {dtype.numpy.name}", "take .real first.")
    return scalars.stored(ctx, value, dtype)


def _stacked(ctx: Context, atoms: Sequence[Atom]) -> Var:
    known = [a for a in atoms if isinstance(a, Const)]
    if len(known) < len(atoms) or len(known) <= ON_STACK:
        return ctx.b.array(atoms)
    return ctx.b.copy(read(ctx, constants(ctx, known)))


def _common_dtype(values: Sequence[Scalar]) -> DType:
    """The type of an array of these numbers: np.array finds one for each before it joins them, so none is weak."""
    return reduce(lambda a, b: promote(a, False, b, False)[0], (v.dtype for v in values))


def cast(ctx: Context, var: Var, dtype: DType, convert: Convert = scalars.narrowed) -> Var:
    """An array in another element type; itself when it has that type."""
    if var.type.dtype is dtype:
        return var
    return map_nest(ctx, lambda s: Scalar(convert(ctx, s.atom, dtype)), [var], var.type.shape)


def broadcast_to(ctx: Context, value: Scalar | Array, shape: tuple[Dim, ...], dtype: DType, what: str) -> Atom:
    """A value converted to `dtype`, of exactly this shape (a scalar stays one: it fills)."""
    if isinstance(value, Scalar):
        if value.dtype.is_complex and not dtype.is_complex:
            ctx.fail("TP104", f"{what}: a complex number does not fit into {dtype.numpy.name}", "take .real first.")
        return scalars.stored(ctx, value, dtype)
    if value.type.dtype.is_complex and not dtype.is_complex:
        ctx.fail("TP104", f"{what}: complex numbers do not fit into {dtype.numpy.name}", "take .real first.")
    var = cast(ctx, read(ctx, value), dtype)
    have = list(var.type.shape)
    while len(have) > len(shape) and isinstance(have[0], int) and have[0] == 1:
        have.pop(0)
    if len(have) > len(shape):
        ctx.shape_error("TP202", f"{what}: an array of rank {len(have)} does not fit into rank {len(shape)}")
    if len(have) != var.type.rank:
        var = ctx.b.reshape(var, have)
    axes: list[int] = []
    keep: list[Dim] = []
    short: list[int] = []
    for k, d in enumerate(have):
        place = len(shape) - len(have) + k
        if d in ctx.short and shape[place] != 1 and ctx.canon(shape[place]) not in {ctx.canon(d), *ctx.short}:
            repeated(ctx, d, shape[place], what)
            short.append(k)
            continue
        if isinstance(d, int) and d == 1 and not (isinstance(shape[place], int) and shape[place] == 1):
            continue
        same_size(ctx, shape[place], d, what)
        axes.append(place)
        keep.append(d)
    if short:
        var = only_position(ctx, var, short)
        if not var.type.shape:
            return var
    if len(keep) != var.type.rank:
        if not keep:
            return ctx.b.index(var, [At(i64(0))] * var.type.rank)
        var = ctx.b.reshape(var, keep)
    if len(axes) == len(shape):
        return var
    return ctx.b.broadcast(var, shape, axes)
