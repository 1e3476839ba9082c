"""Running sums and products, differences, and integrals along an axis.

Takes an array and an axis, gives a new array: sweeps with a scan inside maps over the other axes.
"""

from __future__ import annotations

from collections.abc import Callable

from tapeless.frontend.data.arguments import array, axis, dtype, integer, known, vector
from tapeless.frontend.data.arrays import cast, elementwise
from tapeless.frontend.data.atoms import apply, convert
from tapeless.frontend.data.indexing import get_item
from tapeless.frontend.data.python_operators import binary_values
from tapeless.frontend.numpy.batch import along
from tapeless.frontend.numpy.elementwise import ROWS, apply_row
from tapeless.frontend.numpy.reductions import combined_in, operator, sum_, widened
from tapeless.frontend.numpy.shapes import flat, reshaped
from tapeless.frontend.state.context import Context
from tapeless.frontend.state.values import Array, Scalar, Sequence_, SliceValue, Value, weak
from tapeless.ir.core import Reduction, Sweep
from tapeless.ir.types import I64, Atom, DType, Type, Var

dtype_argument, axis_argument = dtype, axis  # parameters of the same names hide them


def running(ctx: Context, row: str, lane: Var, kind: DType) -> Atom:
    """All partial results of a reduction of a vector."""
    inner = combined_in(ctx, row, kind)
    element = Var("x", lane.type.row())
    lam = ctx.b.lam([Var("i", I64), element], lambda i, x: [convert(ctx, convert(ctx, x, kind), inner)])
    reduction: Reduction = operator(ctx, row, inner)
    width = ctx.canon(lane.type.shape[0])
    result = Var("m", Type(inner, (width,)))
    return cast(ctx, ctx.b.bind([result], Sweep(width, (lane,), lam, scans=(reduction,)))[0], kind)


def _cumulative(names: tuple[str, ...], row: str) -> Callable[..., Value]:
    name = names[0]

    @known(*names)
    def body(ctx: Context, a: Value, axis: Value | None = None, dtype: Value | None = None) -> Value:
        value = vector(ctx, name, a)
        kind = dtype_argument(ctx, dtype) or widened(value.type.dtype)
        if axis is None:
            value = flat(ctx, value)
        place = axis_argument(ctx, name, axis, value.type.rank)
        return along(ctx, value, [place], lambda lane: running(ctx, row, lane, kind))

    return body


cumsum = _cumulative(("np.cumsum",), "add")
cumprod = _cumulative(("np.cumprod",), "mul")


def part(ctx: Context, value: Array, place: int, start: int | None, stop: int | None) -> Array:
    """value[..., start:stop, ...] along one axis."""
    bounds = [None if b is None else weak(b) for b in (start, stop)]
    whole = SliceValue(None, None, None)
    items: list[Value] = [whole] * value.type.rank
    items[place] = SliceValue(bounds[0], bounds[1], None)
    found = get_item(ctx, value, Sequence_(tuple(items)))
    assert isinstance(found, Array)
    return found


@known("np.diff")
def diff(ctx: Context, a: Value, n: Value | None = None, axis: Value | None = None) -> Value:
    value = array(ctx, "np.diff", a)
    place = axis_argument(ctx, "np.diff", axis, value.type.rank, -1)
    name = "not_equal" if value.type.dtype is DType.bool else "subtract"
    for _ in range(integer(ctx, "np.diff: n", n, 1)):
        later, earlier = part(ctx, value, place, 1, None), part(ctx, value, place, None, -1)

        def rule(x: Scalar, y: Scalar) -> Scalar:
            if name == "not_equal":
                return Scalar(apply(ctx, "xor", x.atom, y.atom))
            return apply_row(ctx, "np.diff", ROWS["subtract"], x, y)

        later = _same_length(ctx, later, earlier)
        made = elementwise(ctx, rule, [later, earlier], "np.diff")
        assert isinstance(made, Array)
        value = made
    return value


def _same_length(ctx: Context, later: Array, earlier: Array) -> Array:
    """Both parts have n - 1 elements (none when n is 0): make that known."""
    for d, e in zip(later.type.shape, earlier.type.shape, strict=True):
        a, b = ctx.canon(d), ctx.canon(e)
        if a is not b and isinstance(a, Var):
            ctx.state.equal[a] = b
    return later


@known("np.trapezoid")
def trapezoid(
    ctx: Context, y: Value, x: Value | None = None, dx: Value | None = None, axis: Value | None = None
) -> Value:
    values = array(ctx, "np.trapezoid", y)
    place = axis_argument(ctx, "np.trapezoid", axis, values.type.rank, -1)
    step: Value = dx or weak(1.0)
    if x is not None:
        step = diff(ctx, x)
        if isinstance(step, Array) and step.type.rank == 1 and values.type.rank > 1:
            shape = [1] * values.type.rank
            step = reshaped(ctx, step, [*shape[:place], step.type.shape[0], *shape[place + 1 :]])
    later, earlier = part(ctx, values, place, 1, None), part(ctx, values, place, None, -1)
    both = binary_values(ctx, "Add", _same_length(ctx, later, earlier), earlier)
    area = binary_values(ctx, "Mult", step, binary_values(ctx, "Div", both, weak(2.0)))
    return sum_(ctx, area, weak(place))
