"""Mean, variance, weighted average, and sums of exponentials that do not overflow.

Takes an array with axis and keepdims, gives floats: one small program for each lane, built from `reductions.fold`.
"""

from __future__ import annotations

from collections.abc import Callable
from typing import Any

from tapeless.frontend.data.arguments import array, axes, axis, dtype, known, numeric, optional_number, vector
from tapeless.frontend.data.arrays import elementwise
from tapeless.frontend.data.atoms import apply, convert, same_size, select
from tapeless.frontend.data.dimensions import total_size
from tapeless.frontend.data.maps import map_nest
from tapeless.frontend.data.python_operators import binary_values
from tapeless.frontend.numpy.batch import along
from tapeless.frontend.numpy.elementwise import divide
from tapeless.frontend.numpy.reductions import fold, no_complex, over_lanes, reduced_size, refuse_empty, sum_
from tapeless.frontend.numpy.shapes import reshaped
from tapeless.frontend.numpy.small_functions import inline
from tapeless.frontend.state.context import Context
from tapeless.frontend.state.values import Scalar, Static, Value, weak
from tapeless.ir.types import Atom, DType, Var, const, one_of, zero_of
from tapeless.ops.promotion import float_dtype
from tapeless.prelude import chosen
from tapeless.prelude.exponentials import weighted_logsumexp

dtype_argument, axis_argument = dtype, axis  # parameters of the same names hide them
NO, YES = weak(False), weak(True)


def mean_of(ctx: Context, lane: Var, kind: DType) -> Atom:
    total = fold(ctx, "add", [lane], lambda x: convert(ctx, x, kind))
    return apply(ctx, "div", total, convert(ctx, total_size(ctx, lane.type.shape), kind))


def _inlined(ctx: Context, function: Callable[..., Any], *args: Value | None) -> Value:
    return inline(ctx, function, [Static(None) if a is None else a for a in args])


@known("np.mean")
def mean(
    ctx: Context, a: Value, axis: Value | None = None, dtype: Value | None = None, keepdims: Value | None = None, *,
    where: Value | None = None,
) -> Value:  # fmt: skip
    if where not in (None, YES):
        return _inlined(ctx, chosen.mean, a, axis, dtype, keepdims or NO, where)
    value = array(ctx, "np.mean", a)
    kind = dtype_argument(ctx, dtype) or float_dtype(value.type.dtype)
    reduced = axes(ctx, "np.mean", axis, value.type.rank)
    return over_lanes(ctx, "np.mean", value, reduced, keepdims, lambda lane: [mean_of(ctx, lane, kind)])


@known("np.nanmean")
def nanmean(
    ctx: Context, a: Value, axis: Value | None = None, dtype: Value | None = None, keepdims: Value | None = None, *,
    where: Value | None = None,
) -> Value:  # fmt: skip
    if where not in (None, YES):
        return _inlined(ctx, chosen.nanmean, a, axis, dtype, keepdims or NO, where)
    value = array(ctx, "np.nanmean", a)
    kind = dtype_argument(ctx, dtype) or float_dtype(value.type.dtype)

    def there(x: Atom, y: Atom) -> Atom:
        return select(ctx, apply(ctx, "isnan", x), zero_of(kind), y)

    def lane(row: Var) -> list[Atom]:
        total = fold(ctx, "add", [row], lambda x: there(convert(ctx, x, kind), convert(ctx, x, kind)))
        count = fold(ctx, "add", [row], lambda x: there(convert(ctx, x, kind), one_of(kind)))
        return [apply(ctx, "div", total, count)]

    reduced = axes(ctx, "np.nanmean", axis, value.type.rank, lenient=True)
    return over_lanes(ctx, "np.nanmean", value, reduced, keepdims, lane)


def variance(ctx: Context, lane: Var, kind: DType, ddof: float) -> Atom:
    """In two passes, as NumPy does it."""
    center = mean_of(ctx, lane, kind)

    def square(x: Atom) -> Atom:
        return absolute_square(ctx, apply(ctx, "sub", convert(ctx, x, kind), center))

    total = fold(ctx, "add", [lane], square)
    count = convert(ctx, total_size(ctx, lane.type.shape), kind.real)
    if ddof:
        count = apply(ctx, "max", apply(ctx, "sub", count, const(ddof, kind.real)), zero_of(kind.real))
    return apply(ctx, "div", total, count)


def flat_at_ends(ctx: Context, x: Atom, rising: bool, power: Callable[[Atom], Atom]) -> Atom:
    """A power of a number from 0 to infinity. Like |x|, it has slope 0 where that is 0, and where it is infinite too;
    the power alone would have inf times 0 with the slopes of what it is taken of.
    """
    if not ctx.transforms:
        return power(x)
    end = apply(ctx, "or", apply(ctx, "eq", x, zero_of(x.type.dtype)), apply(ctx, "isinf", x))
    there = apply(ctx, "stop_gradient", x if rising else apply(ctx, "reciprocal", x))
    return select(ctx, end, there, power(select(ctx, end, one_of(x.type.dtype), x)))


def root(ctx: Context, squares: Atom) -> Atom:
    """The square root of a sum of squares."""
    return flat_at_ends(ctx, squares, True, lambda x: apply(ctx, "sqrt", x))


def absolute_square(ctx: Context, x: Atom, product: str = "mul") -> Atom:
    parts = [apply(ctx, p, x) for p in ("real", "imag")] if x.type.dtype.is_complex else [x]
    squares = [apply(ctx, product, p, p) for p in parts]
    return squares[0] if len(squares) == 1 else apply(ctx, "add", *squares)


def _spread(name: str, finish: Callable[[Context, Atom], Atom], masked: Callable[..., Any]) -> Callable[..., Value]:
    @known(name)
    def body(
        ctx: Context, a: Value, axis: Value | None = None, dtype: Value | None = None, ddof: Value | None = None,
        keepdims: Value | None = None, *, where: Value | None = None,
    ) -> Value:  # fmt: skip
        if where not in (None, YES):
            return _inlined(ctx, masked, a, axis, dtype, ddof or weak(0), keepdims or NO, where)
        value = array(ctx, name, a)
        kind = dtype_argument(ctx, dtype) or float_dtype(value.type.dtype)
        less = float(optional_number(ctx, f"{name}: ddof", ddof) or 0)
        reduced = axes(ctx, name, axis, value.type.rank)
        return over_lanes(
            ctx, name, value, reduced, keepdims, lambda lane: [finish(ctx, variance(ctx, lane, kind, less))]
        )

    return body


var = _spread("np.var", lambda ctx, x: x, chosen.var)
std = _spread("np.std", root, chosen.std)


@known("np.average")
def average(ctx: Context, a: Value, axis: Value | None = None, weights: Value | None = None) -> Value:
    if weights is None:
        return mean(ctx, a, axis)
    value, factor = array(ctx, "np.average", a), array(ctx, "np.average", weights)
    if value.type.rank != factor.type.rank:
        if axis is None or factor.type.rank != 1:
            ctx.fail("TP202", "np.average: the weights must have the shape of the array, or be a vector along the axis")
        place = axis_argument(ctx, "np.average", axis, value.type.rank)
        shape = [1] * value.type.rank
        same_size(ctx, value.type.shape[place], factor.type.shape[0], "np.average")
        factor = reshaped(ctx, factor, [*shape[:place], ctx.canon(factor.type.shape[0]), *shape[place + 1 :]])
    total, weight = sum_(ctx, binary_values(ctx, "Mult", value, factor), axis), sum_(ctx, factor, axis)

    def quotient(x: Scalar, y: Scalar) -> Scalar:
        there = apply(ctx, "ne", y.atom, zero_of(y.dtype))
        ctx.check(there, "ZeroDivisionError", "Weights sum to zero, can't be normalized")
        return divide(ctx, x, y)

    return elementwise(ctx, quotient, [total, weight])


# -- exponentials


def largest(ctx: Context, lane: Var, kind: DType) -> Atom:
    """The largest element. What is made with it below does not depend on it, so it counts as constant."""
    top = fold(ctx, "maximum", [lane], lambda x: convert(ctx, x, kind))
    return apply(ctx, "stop_gradient", top) if ctx.transforms else top


def sum_of_exponentials(ctx: Context, lane: Var, kind: DType, top: Atom, finite: bool = True) -> tuple[Atom, Atom]:
    """The largest element (with `finite`, 0 where it is not), and sum(exp(x - it))."""
    if finite:
        top = select(ctx, apply(ctx, "isfinite", top), top, zero_of(kind))
    total = fold(ctx, "add", [lane], lambda x: apply(ctx, "exp", apply(ctx, "sub", convert(ctx, x, kind), top)))
    return top, total


@known("special.logsumexp")
def logsumexp(
    ctx: Context,
    a: Value,
    axis: Value | None = None,
    b: Value | None = None,
    keepdims: Value | None = None,
    return_sign: Value | None = None,
) -> Value:
    name = "scipy.special.logsumexp"
    if return_sign not in (None, NO):
        ctx.fail(
            "TP112", f"{name}: the argument 'return_sign' cannot be compiled", "leave it out if its default is meant."
        )
    if b not in (None, Static(None)):
        return inline(ctx, weighted_logsumexp, [a, axis or Static(None), b, keepdims or NO])
    value = array(ctx, name, a)
    no_complex(ctx, name, value)
    kind = float_dtype(value.type.dtype)

    def lane(row: Var) -> list[Atom]:
        top = largest(ctx, row, kind)
        near, total = sum_of_exponentials(ctx, row, kind, top)
        usual = apply(ctx, "add", near, apply(ctx, "log", total))
        return [_shared(ctx, row, kind, top, usual) if ctx.transforms else usual]

    return over_lanes(ctx, name, value, axes(ctx, name, axis, value.type.rank), keepdims, lane)


def _shared(ctx: Context, lane: Var, kind: DType, top: Atom, usual: Atom) -> Atom:
    """Where the largest element is infinite, the mean of those that are equal to it: they share the slope, as in
    `logaddexp`. The exponentials have 0 times infinity there.
    """

    def those(x: Atom, y: Atom) -> Atom:
        return select(ctx, apply(ctx, "eq", x, top), y, zero_of(kind))

    total = fold(ctx, "add", [lane], lambda x: those(convert(ctx, x, kind), convert(ctx, x, kind)))
    count = fold(ctx, "add", [lane], lambda x: those(convert(ctx, x, kind), one_of(kind)))
    return select(ctx, apply(ctx, "isinf", top), apply(ctx, "div", total, count), usual)


def _normalised(name: str, finite: bool, finish: Callable[[Context, Atom, Atom], Atom]) -> None:
    """`finish` takes x - top and the sum of exponentials."""

    @known(f"special.{name}")
    def body(ctx: Context, x: Value, axis: Value | None = None) -> Value:
        full = f"scipy.special.{name}"
        number = isinstance(numeric(ctx, full, x), Scalar)
        value = vector(ctx, full, x)
        no_complex(ctx, full, value)
        if value.type.dtype is DType.bool:
            ctx.fail("TP104", f"{full} does not take bools", "convert them to numbers first.")
        kind = float_dtype(value.type.dtype)
        where = axes(ctx, full, axis, value.type.rank)
        message = "zero-size array to reduction operation maximum which has no identity"
        refuse_empty(ctx, reduced_size(ctx, value, where), message)

        def lane(row: Var) -> Atom:
            top, total = sum_of_exponentials(ctx, row, kind, largest(ctx, row, kind), finite)

            def element(v: Scalar) -> Scalar:
                return Scalar(finish(ctx, apply(ctx, "sub", convert(ctx, v.atom, kind), top), total))

            return map_nest(ctx, element, [row], row.type.shape)

        result = along(ctx, value, where, lane)
        return reshaped(ctx, result, ()) if number else result


_normalised("softmax", False, lambda ctx, x, total: apply(ctx, "div", apply(ctx, "exp", x), total))
_normalised("log_softmax", True, lambda ctx, x, total: apply(ctx, "sub", x, apply(ctx, "log", total)))
