"""What can be looped over: how many iterations, and the element at a position."""

from __future__ import annotations

from collections.abc import Callable

from tapeless.frontend import scalars
from tapeless.frontend.context import Context, type_text
from tapeless.frontend.indexing import row_view
from tapeless.frontend.values import (
    Array,
    RangeValue,
    Scalar,
    Sequence_,
    Value,
    Zipped,
)
from tapeless.ir.types import Atom, Const, i64


def iteration(ctx: Context, iterable: Value) -> tuple[Atom, Callable[[Atom], Value]]:
    """How many iterations, and the element at a position."""
    match iterable:
        case RangeValue(start=start, step=step):
            return range_count(ctx, iterable), lambda i: _range_element(ctx, start, step, i)
        case Array(type=t):
            return ctx.size_atom(t.shape[0]), lambda i: row_view(ctx, iterable, i)
        case Zipped(parts=parts, start=first):
            found = [iteration(ctx, p) for p in parts]
            count = found[0][0]
            for other, _ in found[1:]:
                if other is not count and other != count:
                    count = scalars.apply(ctx, "min", count, other)

            def element(i: Atom) -> Value:
                items = [make(i) for _, make in found]
                if first is not None:
                    number = (
                        Scalar(i, True) if first.atom == i64(0) else scalars.binary(ctx, "Add", first, Scalar(i, True))
                    )
                    return Sequence_((number, *items))
                return Sequence_(tuple(items))

            return count, element
        case Sequence_(items=items):
            from tapeless.frontend.arrays import make_array

            made = make_array(ctx, Sequence_(items, "list"))
            return iteration(ctx, made)
        case _:
            ctx.fail(
                "TP104", f"cannot loop over {type_text(iterable)}", "loop over range, arrays, zip, enumerate or tuples."
            )


def range_count(ctx: Context, r: RangeValue) -> Atom:
    op = scalars.apply
    start, stop, step = (scalars.to_index(ctx, x, "an argument of range") for x in (r.start, r.stop, r.step))
    if isinstance(step, Const):
        k = int(step.value.real)
        if k == 0:
            ctx.fail("TP112", "range() step must not be zero")
        span = op(ctx, "sub", stop, start) if k > 0 else op(ctx, "sub", start, stop)
        if abs(k) != 1:
            span = op(ctx, "floordiv", op(ctx, "add", span, i64(abs(k) - 1)), i64(abs(k)))
        if start == i64(0) and k == 1:
            return span  # a negative count runs no iteration
        return op(ctx, "max", span, i64(0))
    ctx.check(op(ctx, "ne", step, i64(0)), "ValueError", "range() arg 3 must not be zero")
    up = op(ctx, "gt", step, i64(0))
    distance = scalars.select(ctx, up, op(ctx, "sub", stop, start), op(ctx, "sub", start, stop))
    size = op(ctx, "abs", step)
    count = op(ctx, "floordiv", op(ctx, "add", distance, op(ctx, "sub", size, i64(1))), size)
    return op(ctx, "max", count, i64(0))


def _range_element(ctx: Context, start: Scalar, step: Scalar, i: Atom) -> Scalar:
    value = i
    if step.atom != i64(1):
        value = scalars.apply(ctx, "mul", value, scalars.to_index(ctx, step))
    if start.atom != i64(0):
        value = scalars.apply(ctx, "add", scalars.to_index(ctx, start), value)
    return Scalar(value, True)
