"""Reductions: sum, prod, min, max, any, all, argmax and the like, with axis and keepdims.

Takes an array and the axes that go away; gives numbers or new arrays, as sweeps with a reduction inside maps over the
axes that stay. The order of a reduction is free, as it is in NumPy, which adds in pairs.
"""

from __future__ import annotations

import ast
from collections.abc import Callable, Sequence

from tapeless.frontend.data.arguments import array, axes, dtype, dtype_of, flag, known, numeric
from tapeless.frontend.data.arrays import broadcast_to, elementwise, read
from tapeless.frontend.data.atoms import apply, convert, lazy_if, select
from tapeless.frontend.data.dimensions import total_size
from tapeless.frontend.data.maps import map_nest
from tapeless.frontend.data.python_operators import binary_values, compare_values
from tapeless.frontend.data.scalars import arithmetic, before
from tapeless.frontend.numpy.batch import lanes_last, over_leading
from tapeless.frontend.numpy.elementwise import extremum
from tapeless.frontend.state.context import Context, type_text
from tapeless.frontend.state.values import Array, Scalar, Sequence_, Value, weak
from tapeless.ir.core import At, Lambda, Reduction, Sweep
from tapeless.ir.types import I64, Atom, Const, DType, Type, Var, const, i64
from tapeless.ops.op import COMPLEX, Nan
from tapeless.ops.table import TABLE
from tapeless.ops.unsigned import UNSIGNED

Element = Callable[..., Atom]  # of one element of each array

# -- the parts


def neutral_of(row: str, dtype: DType) -> Const:
    unit = TABLE[row].unit
    assert unit is not None, f"{row} has no neutral element"
    return unit.of(dtype)


def operator(ctx: Context, row: str, dtype: DType) -> Reduction:
    params = [Var("a", Type(dtype)), Var("b", Type(dtype))]
    return Reduction(ctx.b.lam(params, lambda a, b: [arithmetic(ctx, row, a, b)]), (neutral_of(row, dtype),), True)


def combined_in(ctx: Context, row: str, dtype: DType) -> DType:
    """The type in which many numbers are combined: the row takes it as it is, wherever that gives the same."""
    signed = dtype is not DType.u64 or row not in UNSIGNED
    return dtype.work if signed and not ctx.options.check else dtype


def fold(ctx: Context, row: str, arrays: Sequence[Var], element: Element = lambda x: x) -> Atom:
    """All elements (of arrays of one shape, through `element`) combined by a row of the ops table."""

    kinds: list[DType] = []

    def make(_: Var, *rows: Var) -> list[Atom]:
        found = element(*rows) if rows[0].type.is_scalar else fold(ctx, row, rows, element)
        kinds.append(found.type.dtype)
        return [convert(ctx, found, combined_in(ctx, row, found.type.dtype))]

    lam = _lambda(ctx, arrays, make)
    (result,) = lam.result_types
    var = Var("r", result)
    sweep = Sweep(ctx.canon(arrays[0].type.shape[0]), tuple(arrays), lam, (operator(ctx, row, result.dtype),))
    return convert(ctx, ctx.b.bind([var], sweep)[0], kinds[0])


def _lambda(ctx: Context, arrays: Sequence[Var], make: Callable[..., list[Atom]]) -> Lambda:
    return ctx.b.lam([Var("i", I64), *(Var(a.name, a.type.row()) for a in arrays)], make)


Lane = Callable[[Var], Sequence[Atom]]


def over_lanes(
    ctx: Context, name: str, value: Array, where: Sequence[int], keepdims: Value | None, lane: Lane
) -> Value:
    """`lane` of each part of the array along the axes `where`; gives one number each."""
    if not where:  # axis=(): every element is a lane of its own
        return over_leading(ctx, [(read(ctx, value), 0)], lambda x: lane(ctx.b.array([x])))
    result = over_leading(ctx, [(lanes_last(ctx, read(ctx, value), where), len(where))], lane)
    if not flag(ctx, f"{name}: keepdims", keepdims):
        return result
    shape = [1 if k in where else ctx.canon(d) for k, d in enumerate(value.type.shape)]
    if isinstance(result, Scalar):
        made = ctx.b.full(shape, result.atom, result.dtype)
    else:
        assert isinstance(result, Array)
        made = ctx.b.reshape(read(ctx, result), shape)
    return ctx.new_cell(made)


def reduced_size(ctx: Context, value: Array, where: Sequence[int]) -> Atom:
    return total_size(ctx, [value.type.shape[k] for k in where])


def refuse_empty(ctx: Context, size: Atom, message: str) -> None:
    ctx.check(apply(ctx, "gt", size, i64(0)), "ValueError", message)


def no_complex(ctx: Context, name: str, value: Scalar | Array) -> None:
    if dtype_of(value) in COMPLEX:
        ctx.fail("TP104", f"{name} does not take complex numbers", "use np.abs first.")


def chosen(ctx: Context, name: str, value: Array, where: Value | None, instead: Const) -> Array:
    """where=mask: elements that are not chosen count as `instead`."""
    if where is None or where == weak(True):
        return value
    mask = numeric(ctx, f"{name}: where", where)
    if dtype_of(mask) is not DType.bool:
        ctx.fail("TP104", f"{name}: 'where' must be made of bools, not {type_text(mask)}")
    if isinstance(mask, Array) and mask.type.rank > value.type.rank:
        ctx.fail("TP202", f"{name}: 'where' has more dimensions than the array")
    shape = ctx.dims(value.type.shape)
    flags = broadcast_to(ctx, mask, shape, DType.bool, f"{name}: where")
    operands = [Scalar(flags) if not isinstance(flags, Var) or not shape else flags, read(ctx, value)]
    return ctx.new_cell(map_nest(ctx, lambda m, x: Scalar(select(ctx, m.atom, x.atom, instead)), operands, shape))


Starting = Callable[[Scalar, Scalar], Scalar]


def started(ctx: Context, name: str, initial: Value | None, result: Value, combine: Starting) -> Value:
    """initial=number: what the reduction starts with, in the type of its result."""
    if initial is None:
        return result
    first = numeric(ctx, f"{name}: initial", initial)
    made = numeric(ctx, name, result)
    if not isinstance(first, Scalar):
        ctx.fail("TP104", f"{name}: 'initial' must be a number, not {type_text(first)}")
    if first.dtype.is_complex and not dtype_of(made).is_complex:
        ctx.fail("TP104", f"{name}: a complex 'initial' does not fit {dtype_of(made).numpy.name}")
    start = Scalar(convert(ctx, first.atom, dtype_of(made)))
    return elementwise(ctx, lambda x: combine(start, x), [made], name)


# -- sums and products


def widened(dtype: DType) -> DType:
    """NumPy counts in 64 bits."""
    if dtype.is_unsigned:
        return DType.u64
    return DType.i64 if dtype is DType.bool or dtype.is_int else dtype


def _total(name: str, row: str, missing: bool = False) -> Callable[..., Value]:
    """With `missing`, NaN counts as the neutral element."""

    def body(
        ctx: Context, a: Value, axis: Value | None = None, dtype: Value | None = None, keepdims: Value | None = None,
        initial: Value | None = None, where: Value | None = None,
    ) -> Value:  # fmt: skip
        value = array(ctx, name, a)
        kind = dtype_argument(ctx, dtype) or widened(value.type.dtype)
        value = chosen(ctx, name, value, where, neutral_of(row, value.type.dtype))
        reduced = axes(ctx, name, axis, value.type.rank, lenient=True)

        def element(x: Atom) -> Atom:
            y = convert(ctx, x, kind)
            numbers = x.type.dtype.is_float or x.type.dtype.is_complex
            return select(ctx, apply(ctx, "isnan", x), neutral_of(row, kind), y) if missing and numbers else y

        made = over_lanes(ctx, name, value, reduced, keepdims, lambda lane: [fold(ctx, row, [lane], element)])
        return started(ctx, name, initial, made, lambda x, y: Scalar(arithmetic(ctx, row, x.atom, y.atom)))

    return body


dtype_argument = dtype  # parameters of the same name hide it

sum_ = known("np.sum")(_total("np.sum", "add"))
prod = known("np.prod")(_total("np.prod", "mul"))
NAMES = {"Add": sum_, "Mult": prod}  # by Python operator


known("np.nansum")(_total("np.nansum", "add", missing=True))
known("np.nanprod")(_total("np.nanprod", "mul", missing=True))


# -- extrema


def _extremum(names: Sequence[str], row: str, on_bool: str, word: str) -> Callable[..., Value]:
    name = names[0]

    @known(*names)
    def body(
        ctx: Context, a: Value, axis: Value | None = None, keepdims: Value | None = None, initial: Value | None = None,
        where: Value | None = None,
    ) -> Value:  # fmt: skip
        value = array(ctx, name, a)
        reduced = axes(ctx, name, axis, value.type.rank, lenient=True)
        message = f"zero-size array to reduction operation {word} which has no identity"
        if initial is None:
            if where not in (None, weak(True)):
                ctx.fail(
                    "TP112", f"{name}: where without initial cannot be compiled", "say what it starts with: initial="
                )
            refuse_empty(ctx, reduced_size(ctx, value, reduced), message)
        else:
            value = chosen(ctx, name, value, where, _worst(row, value.type.dtype))
        used = on_bool if value.type.dtype is DType.bool else row

        def lane(var: Var) -> list[Atom]:
            if not var.type.dtype.is_complex:
                return [fold(ctx, used, [var])]
            var = _flat(ctx, var)  # there is no row for these
            worst, place = _worst(row, var.type.dtype), winner(ctx, row, var)
            if initial is None:
                return [ctx.b.index(var, [At(place)])]
            some, kind = apply(ctx, "ne", place, LAST), Type(var.type.dtype)
            return [lazy_if(ctx, some, lambda: ctx.b.index(var, [At(place)]), lambda: worst, kind)]

        made = over_lanes(ctx, name, value, reduced, keepdims, lane)
        return started(ctx, name, initial, made, lambda x, y: extremum(row)(ctx, x, y))

    return body


max_ = _extremum(["np.max", "np.amax"], "maximum", "or", "maximum")
min_ = _extremum(["np.min", "np.amin"], "minimum", "and", "minimum")
nanmax = _extremum(["np.nanmax"], "fmax", "or", "fmax")
nanmin = _extremum(["np.nanmin"], "fmin", "and", "fmin")


@known("np.ptp")
def ptp(ctx: Context, a: Value, axis: Value | None = None, keepdims: Value | None = None) -> Value:
    high, low = max_(ctx, a, axis, keepdims), min_(ctx, a, axis, keepdims)
    return binary_values(ctx, "Sub", high, low)


def _position(name: str, row: str, word: str) -> Callable[..., Value]:
    """np.argmax and np.argmin: a reduction of pairs, where the earlier of equal elements wins and NaN beats all."""

    @known(name)
    def body(ctx: Context, a: Value, axis: Value | None = None, *, keepdims: Value | None = None) -> Value:
        value = array(ctx, name, a)
        if isinstance(axis, Sequence_):
            ctx.fail("TP104", f"{name} works along one axis or over all of them, not {type_text(axis)}")
        where = axes(ctx, name, axis, value.type.rank, lenient=True)
        refuse_empty(ctx, reduced_size(ctx, value, where), f"attempt to get {word} of an empty sequence")

        return over_lanes(ctx, name, value, where, keepdims, lambda lane: [winner(ctx, row, _flat(ctx, lane))])

    return body


LAST = i64(2**63 - 1)


def _flat(ctx: Context, var: Var) -> Var:
    return ctx.b.reshape(var, [ctx.atom_dim(total_size(ctx, var.type.shape))]) if var.type.rank > 1 else var


def winner(ctx: Context, row: str, var: Var) -> Atom:
    """The position of the extremum of a vector, by a row of extrema."""
    dtype = DType.i32 if var.type.dtype is DType.bool else combined_in(ctx, row, var.type.dtype)
    number, place = Type(dtype), I64
    means = TABLE[row].extremum
    assert means is not None

    def better(a: Var, i: Var, b: Var, j: Var) -> list[Atom]:
        beats, same = before(ctx, "gt" if means.greatest else "lt", b, a), apply(ctx, "eq", a, b)
        if dtype.is_float or dtype.is_complex:
            nan_a, nan_b = apply(ctx, "isnan", a), apply(ctx, "isnan", b)
            ahead, behind = (nan_b, nan_a) if means.nan is Nan.wins else (nan_a, nan_b)
            beats = apply(ctx, "or", beats, apply(ctx, "and", ahead, apply(ctx, "not", behind)))
            same = apply(ctx, "or", same, apply(ctx, "and", nan_a, nan_b))
        earlier = apply(ctx, "and", same, apply(ctx, "lt", j, i))
        right = apply(ctx, "or", beats, earlier)
        return [select(ctx, right, b, a), select(ctx, right, j, i)]

    params = [Var("a", number), Var("i", place), Var("b", number), Var("j", place)]
    reduction = Reduction(ctx.b.lam(params, better), (_worst(row, dtype), LAST), True)
    lam = ctx.b.lam([Var("i", I64), Var("x", var.type.row())], lambda i, x: [convert(ctx, x, dtype), i])
    results = [Var("r", number), Var("k", place)]
    return ctx.b.bind(results, Sweep(ctx.canon(var.type.shape[0]), (var,), lam, (reduction,)))[1]


def _worst(row: str, dtype: DType) -> Const:
    if dtype is DType.bool:
        means = TABLE[row].extremum
        return const(means is not None and not means.greatest, dtype)
    part = neutral_of(row, dtype.real)
    return const(complex(part.value, part.value), dtype) if dtype.is_complex else part


argmax = _position("np.argmax", "maximum", "argmax")
argmin = _position("np.argmin", "minimum", "argmin")


# -- truth


def _truth(name: str, row: str) -> Callable[..., Value]:
    @known(name)
    def body(
        ctx: Context, a: Value, axis: Value | None = None, *, keepdims: Value | None = None, where: Value | None = None
    ) -> Value:
        value = array(ctx, name, a)
        value = chosen(ctx, name, value, where, const(row == "and", value.type.dtype))
        reduced = axes(ctx, name, axis, value.type.rank, lenient=True)
        return over_lanes(
            ctx,
            name,
            value,
            reduced,
            keepdims,
            lambda lane: [fold(ctx, row, [lane], lambda x: convert(ctx, x, DType.bool))],
        )

    return body


any_ = _truth("np.any", "or")
all_ = _truth("np.all", "and")


@known("np.count_nonzero")
def count_nonzero(ctx: Context, a: Value, axis: Value | None = None, *, keepdims: Value | None = None) -> Value:
    value = array(ctx, "np.count_nonzero", a)
    where = axes(ctx, "np.count_nonzero", axis, value.type.rank, lenient=True)

    def one(x: Atom) -> Atom:
        return convert(ctx, convert(ctx, x, DType.bool), DType.i64)

    return over_lanes(ctx, "np.count_nonzero", value, where, keepdims, lambda lane: [fold(ctx, "add", [lane], one)])


@known("np.array_equal")
def array_equal(ctx: Context, a1: Value, a2: Value) -> Value:
    x, y = numeric(ctx, "np.array_equal", a1), numeric(ctx, "np.array_equal", a2)
    shapes = [ctx.dims(v.type.shape) if isinstance(v, Array) else () for v in (x, y)]
    if len(shapes[0]) != len(shapes[1]):
        return weak(False)
    if shapes[0] != shapes[1]:
        ctx.fail("TP201", "np.array_equal needs arrays whose sizes are known to be equal", "compare the shapes first.")
    return python_bool(all_(ctx, compare_values(ctx, ast.Eq(), x, y)))


def python_bool(value: Value) -> Value:
    """The same answer as a bool of Python."""
    assert isinstance(value, Scalar)
    return Scalar(value.atom, True)
