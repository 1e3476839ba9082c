"""Making arrays: np.zeros and its kind, arange and linspace, eye, diag and triangles, np.array and dtype constructors.

Takes shapes and values, gives new arrays. Sizes known at compile time stay constants in the type. A negative size
raises ValueError when the program runs.
"""

from __future__ import annotations

from collections.abc import Callable

import numpy as np

from tapeless.frontend.data import atoms, scalars
from tapeless.frontend.data.arguments import array, dtype, dtype_of, flag, integer, known, numeric, text
from tapeless.frontend.data.arrays import (
    broadcast_to,
    cast,
    element_of,
    elementwise,
    in_order,
    make_array,
    read,
    separate,
    wrap,
)
from tapeless.frontend.data.atoms import apply, convert, select
from tapeless.frontend.data.dimensions import dim_of, is_size, shape_of
from tapeless.frontend.data.indexing import get_item
from tapeless.frontend.data.iterables import range_count
from tapeless.frontend.state.context import Context, type_text
from tapeless.frontend.state.handlers import register
from tapeless.frontend.state.values import Array, Borrowed, RangeValue, Scalar, Sequence_, Static, Value, weak
from tapeless.ir.types import FROM_NUMPY, Atom, Const, Dim, DType, Var, const, i64, one_of, zero_of
from tapeless.ops.promotion import float_dtype, promote

# -- filled arrays


def full_array(ctx: Context, shape: tuple[Dim, ...], value: Atom | None, dtype: DType) -> Value:
    if not shape:
        return Scalar(value if value is not None else zero_of(dtype))
    return ctx.new_cell(ctx.b.full(shape, value, dtype))


def _filled(name: str, fill: Callable[[DType], Atom | None]) -> None:
    """np.NAME(shape, dtype) and np.NAME_like(a, dtype, shape=)."""

    @known(f"np.{name}")
    def make(ctx: Context, shape: Value, dtype: Value | None = None, order: Value | None = None) -> Value:
        check_order(ctx, f"np.{name}", order)
        kind = dtype_argument(ctx, dtype) or DType.f64
        return full_array(ctx, shape_of(ctx, shape), fill(kind), kind)

    @known(f"np.{name}_like")
    def like(ctx: Context, a: Value, dtype: Value | None = None, *, shape: Value | None = None) -> Value:
        model = numeric(ctx, f"np.{name}_like", a)
        kind = dtype_argument(ctx, dtype) or dtype_of(model)
        if shape is not None:
            dims = shape_of(ctx, shape)
        else:
            dims = ctx.dims(model.type.shape) if isinstance(model, Array) else ()
        return full_array(ctx, dims, fill(kind), kind)


dtype_argument = dtype  # the parameter of the same name hides it

_filled("zeros", zero_of)
_filled("ones", one_of)
_filled("empty", lambda _: None)


def check_order(ctx: Context, name: str, order: Value | None, of: Array | None = None) -> None:
    """`of`: the array whose order 'K' and 'A' go by."""
    wanted = text(ctx, f"{name}: the order", order, "C")
    if wanted not in ("C", "K", "A") or (wanted != "C" and of is not None and not in_order(ctx, of)):
        ctx.fail("TP112", f"{name}: only the order 'C' can be compiled", "leave the order out.")


@known("np.full")
def _full(ctx: Context, shape: Value, fill_value: Value, dtype: Value | None = None) -> Value:
    value = numeric(ctx, "np.full", fill_value)
    kind = dtype_argument(ctx, dtype) or dtype_of(value)
    return _filled_with(ctx, shape_of(ctx, shape), value, kind)


@known("np.full_like")
def _full_like(ctx: Context, a: Value, fill_value: Value, dtype: Value | None = None) -> Value:
    model = numeric(ctx, "np.full_like", a)
    kind = dtype_argument(ctx, dtype) or dtype_of(model)
    dims = ctx.dims(model.type.shape) if isinstance(model, Array) else ()
    return _filled_with(ctx, dims, numeric(ctx, "np.full_like", fill_value), kind)


def _filled_with(ctx: Context, shape: tuple[Dim, ...], value: Scalar | Array, kind: DType) -> Value:
    atom = broadcast_to(ctx, value, shape, kind, "np.full")
    if atom.type.shape:
        assert isinstance(atom, Var)
        return ctx.new_cell(ctx.b.copy(atom))
    return full_array(ctx, shape, atom, kind)


# -- arrays of other values


@known("np.array")
def np_array(
    ctx: Context, object: Value, dtype: Value | None = None, *, copy: Value | None = None, order: Value | None = None,
    ndmin: Value | None = None,
) -> Value:  # fmt: skip
    check_order(ctx, "np.array", order)
    kind = dtype_argument(ctx, dtype)
    keep = copy is not None and not flag(ctx, "np.array: copy", copy, True)
    found = _asarray(ctx, object, kind) if keep else make_array(ctx, _spread(ctx, object), kind)
    return at_least(ctx, found, integer(ctx, "np.array: ndmin", ndmin))


@known("np.asarray", "np.asanyarray")
def _np_asarray(ctx: Context, a: Value, dtype: Value | None = None) -> Value:
    return _asarray(ctx, a, dtype_argument(ctx, dtype))


def _asarray(ctx: Context, value: Value, kind: DType | None) -> Value:
    """An array that has the element type already is not copied."""
    if isinstance(value, Array) and kind in (None, value.type.dtype):
        return value
    return make_array(ctx, _spread(ctx, value), kind)


def _spread(ctx: Context, value: Value) -> Value:
    if isinstance(value, RangeValue):
        return arange_of(ctx, value)
    return value


@known("np.ascontiguousarray")
def _ascontiguousarray(ctx: Context, a: Value, dtype: Value | None = None) -> Value:
    made = _asarray(ctx, a, dtype_argument(ctx, dtype))
    if isinstance(made, Array):
        how = Borrowed("ascontiguousarray")
        return made if in_order(ctx, made) else separate(ctx, made, made.type.shape, how)
    return at_least(ctx, made, 1)


@known("np.copy")
def np_copy(ctx: Context, a: Value) -> Value:
    return make_array(ctx, numeric(ctx, "np.copy", a))


def at_least(ctx: Context, value: Value, rank: int) -> Value:
    """New axes in front until there are `rank` of them."""
    found = numeric(ctx, "np.array", value)
    missing = rank - (found.type.rank if isinstance(found, Array) else 0)
    if missing <= 0:
        return found
    whole = array(ctx, "np.array", found)
    return get_item(ctx, whole, Sequence_((*[Static(None)] * missing, Static(Ellipsis))))


@known("np.atleast_1d")
def _atleast_1d(ctx: Context, a: Value) -> Value:
    return at_least(ctx, a, 1)


@known("np.atleast_2d")
def _atleast_2d(ctx: Context, a: Value) -> Value:
    return at_least(ctx, a, 2)


def _constructor(kind: DType) -> None:
    """np.float32(x) and the like."""
    name = f"np.{kind.numpy.type.__name__}" if kind is not DType.bool else "np.bool_"

    def handler(ctx: Context, args: list[Value], keywords: dict[str, Value]) -> Value:
        if keywords or len(args) > 1:
            ctx.fail("TP112", f"{name} takes one argument")
        if not args:
            return Scalar(zero_of(kind))
        if isinstance(args[0], Static) and isinstance(args[0].value, str):
            return Scalar(const(kind.numpy.type(args[0].value), kind))  # np.float32("inf")
        value = numeric(ctx, name, args[0])
        return elementwise(ctx, lambda s: Scalar(element_of(ctx, s, kind)), [value], name)

    register(name, handler)


for _kind in FROM_NUMPY.values():
    _constructor(_kind)


# -- sequences of numbers


@known("np.arange")
def _arange(
    ctx: Context, start: Value, stop: Value | None = None, step: Value | None = None, dtype: Value | None = None
) -> Value:
    if stop is None:
        start, stop = weak(0), start
    bounds = []
    for v in (start, stop, step or weak(1)):
        if not isinstance(v, Scalar) or v.dtype.is_complex:
            ctx.fail("TP104", f"the bounds of np.arange must be numbers, not {type_text(v)}")
        bounds.append(v)
    natural = DType.bool
    for v in bounds:
        natural, _ = promote(natural, False, v.dtype, False)
    kind = dtype_argument(ctx, dtype) or natural
    if natural.is_int or natural is DType.bool:
        first, last, step = (Scalar(convert(ctx, v.atom, DType.i64), True) for v in bounds)
        scalars.stored(ctx, first, kind)
        return _cast(ctx, arange_of(ctx, RangeValue(first, last, step)), kind)
    low, high, by = (convert(ctx, v.atom, DType.f64) for v in bounds)
    ctx.check(apply(ctx, "ne", by, const(0.0, DType.f64)), "ZeroDivisionError", "division by zero")
    zero, distance = const(0.0, DType.f64), apply(ctx, "sub", high, low)
    steps = apply(ctx, "div", distance, by)
    ctx.check(apply(ctx, "eq", steps, steps), "ValueError", "arange: cannot compute length")
    under = atoms.logical_and(ctx, apply(ctx, "eq", steps, zero), apply(ctx, "ne", distance, zero))
    under = atoms.logical_and(ctx, under, apply(ctx, "not", apply(ctx, "signbit", steps)))  # less than one step
    exact = select(ctx, under, const(1.0, DType.f64), apply(ctx, "ceil", steps))
    usable = apply(ctx, "lt", exact, const(2.0**62, DType.f64))
    ctx.check(usable, "ValueError", "Maximum allowed size exceeded")
    length = select(ctx, usable, apply(ctx, "max", exact, zero), zero)  # a size, even where the test has failed
    count = convert(ctx, length, DType.i64)
    zeroth, second = convert(ctx, low, kind), convert(ctx, apply(ctx, "add", low, by), kind)
    delta = select(ctx, under, zero_of(kind), apply(ctx, "sub", second, zeroth))

    def element(i: Var) -> list[Atom]:  # NumPy writes the first two and goes on from them
        value = apply(ctx, "add", zeroth, apply(ctx, "mul", convert(ctx, i, kind), delta))
        return [select(ctx, apply(ctx, "eq", i, i64(1)), second, value)]

    return wrap(ctx, ctx.b.map(ctx.atom_dim(count), [], element, "m")[0])


def arange_of(ctx: Context, r: RangeValue) -> Array:
    """The numbers of a range."""
    if r.step.atom == i64(0):
        ctx.check(Const(False, DType.bool), "ZeroDivisionError", "division by zero")
        r = RangeValue(r.start, r.start, weak(1))
    if isinstance(r.step.atom, Var):
        ctx.check(apply(ctx, "ne", r.step.atom, i64(0)), "ZeroDivisionError", "division by zero")
    plain, end = (r.start.atom, r.step.atom) == (i64(0), i64(1)), r.stop.atom
    count = end if plain and isinstance(end, Var) and is_size(ctx, end) else range_count(ctx, r)
    if isinstance(count, Const) or not is_size(ctx, count):
        count = apply(ctx, "max", count, i64(0))
    width = ctx.atom_dim(count)
    if plain:
        return ctx.new_cell(ctx.b.iota(width, "array"))

    def element(i: Var) -> list[Atom]:
        value: Atom = i
        if r.step.atom != i64(1):
            value = apply(ctx, "mul", value, r.step.atom)
        return [apply(ctx, "add", r.start.atom, value) if r.start.atom != i64(0) else value]

    return ctx.new_cell(ctx.b.map(width, [], element, "m")[0])


def _cast(ctx: Context, made: Array, kind: DType) -> Array:
    return made if kind is made.type.dtype else ctx.new_cell(cast(ctx, read(ctx, made), kind))


@known("np.linspace")
def _linspace(
    ctx: Context, start: Value, stop: Value, num: Value | None = None, endpoint: Value | None = None,
    retstep: Value | None = None, dtype: Value | None = None,
) -> Value:  # fmt: skip
    if not (isinstance(start, Scalar) and isinstance(stop, Scalar)):
        ctx.fail("TP104", "np.linspace takes two numbers", "use broadcasting for arrays of ends.")
    common, _ = promote(start.dtype, start.weak, stop.dtype, stop.weak)
    inner = float_dtype(common)
    kind = dtype_argument(ctx, dtype) or inner
    closed = flag(ctx, "np.linspace: endpoint", endpoint, True)
    width = dim_of(ctx, num or weak(50), "np.linspace: num")
    count = ctx.size_atom(width)
    first, last = convert(ctx, start.atom, inner), convert(ctx, stop.atom, inner)
    delta = apply(ctx, "sub", last, first)
    parts = apply(ctx, "sub", count, i64(1)) if closed else count
    several = apply(ctx, "gt", parts, i64(0))
    divisor = convert(ctx, apply(ctx, "max", parts, i64(1)), inner)
    step = apply(ctx, "div", delta, divisor)
    tiny = apply(ctx, "eq", step, zero_of(inner))  # it underflowed, if there is a distance
    step = select(ctx, several, step, delta)

    def element(i: Var) -> list[Atom]:
        number = convert(ctx, i, inner)
        far = select(
            ctx, tiny, apply(ctx, "mul", apply(ctx, "div", number, divisor), delta), apply(ctx, "mul", number, step)
        )
        value = apply(ctx, "add", far, first)
        if closed:  # the last one is exactly `stop`
            at_end = apply(ctx, "and", apply(ctx, "eq", i, parts), several)
            value = select(ctx, at_end, last, value)
        if kind.is_int:
            value = apply(ctx, "floor", value)
        return [convert(ctx, value, kind)]

    made = wrap(ctx, ctx.b.map(width, [], element, "m")[0])
    if flag(ctx, "np.linspace: retstep", retstep):
        nothing = const(np.nan, inner)
        return Sequence_((made, Scalar(select(ctx, several, step, nothing))))
    return made
