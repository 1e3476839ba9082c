"""Python's sum, min, max, any and all.

Takes what can be gone over: of known length it is worked out item by item, otherwise it becomes a loop. Results are
Python numbers where Python gives them.
"""

from __future__ import annotations

from collections.abc import Callable

from tapeless.frontend.data import atoms, scalars
from tapeless.frontend.data.arguments import known, with_signature
from tapeless.frontend.data.arrays import read
from tapeless.frontend.data.atoms import apply
from tapeless.frontend.data.iterables import items_of, iteration
from tapeless.frontend.data.python_operators import binary_values, truth_of
from tapeless.frontend.data.rows import long_constants, rows
from tapeless.frontend.numpy.reductions import NAMES, all_, any_, python_bool
from tapeless.frontend.state.code_copies import SHORT, refuse_beyond
from tapeless.frontend.state.context import Context, type_text
from tapeless.frontend.state.handlers import register
from tapeless.frontend.state.values import Array, RangeValue, Scalar, Value, weak
from tapeless.ir.types import Atom, Const, DType, i64, zero_of

FOLDED = 4096  # a fold of more constants than these is left to the compiled code


@known("sum")
def _sum(ctx: Context, iterable: Value, start: Value | None = None) -> Value:
    return fold_values(ctx, "Add", "sum", iterable, start or weak(0))


def fold_values(ctx: Context, operator: str, what: str, iterable: Value, start: Value) -> Value:
    """start + x0 + x1 + ..., in this order, as Python does it."""
    if not isinstance(iterable, Array | RangeValue):
        items = items_of(ctx, what, iterable)
        folded = isinstance(start, Scalar) and start.static and len(items) <= FOLDED and long_constants(items)
        make = rows(ctx, items) if len(items) > SHORT and not folded else None
        if make is not None and isinstance(start, Scalar):
            return _loop(ctx, i64(len(items)), start, lambda total, k: binary_values(ctx, operator, total, make(k)))
        for k, item in enumerate(items):
            before = ctx.b.made
            start = binary_values(ctx, operator, start, item)
            refuse_beyond(ctx, what, len(items), k + 1, ctx.b.made - before)
        return start
    if isinstance(iterable, Array) and iterable.type.rank > 1:
        if start in (weak(0), weak(1)):
            return NAMES[operator](ctx, iterable, weak(0))
        return binary_values(ctx, operator, start, NAMES[operator](ctx, iterable, weak(0)))
    if not isinstance(start, Scalar):
        ctx.fail("TP104", f"{what} starts with a number here, not {type_text(start)}")
    count, element = iteration(ctx, iterable)
    return _loop(ctx, count, start, lambda total, k: binary_values(ctx, operator, total, element(k)))


def _loop(ctx: Context, count: Atom, start: Scalar, step: Callable[[Scalar, Atom], Value]) -> Scalar:
    """A running value, in the type that it has after the first step."""
    with ctx.b.region():  # a trial, for the type
        trial = step(start, i64(0))
    if not isinstance(trial, Scalar):
        ctx.fail("TP104", f"the elements must be numbers, not {type_text(trial)}")
    dtype, is_weak = scalars.join(ctx, trial, start)

    def body(k: Atom, running: Atom) -> list[Atom]:
        value = step(Scalar(running, is_weak), k)
        assert isinstance(value, Scalar)
        return [scalars.exactly(ctx, value.atom, dtype)]

    (result,) = ctx.b.for_(count, [scalars.exactly(ctx, start.atom, dtype)], body, ["r"])
    return Scalar(result, is_weak)


def _extremum(name: str) -> None:
    def handler(ctx: Context, args: list[Value], keywords: dict[str, Value]) -> Value:
        for key in keywords:
            ctx.fail("TP112", f"{name}: the argument '{key}' cannot be compiled", "write the comparison out.")
        if len(args) == 1:
            if isinstance(args[0], Array):
                return _extremum_of_array(ctx, name, args[0])
            args = items_of(ctx, name, args[0])
        if not args:
            ctx.fail("TP112", f"{name}() of no arguments")
        result = args[0]
        for k, other in enumerate(args[1:]):
            before = ctx.b.made
            if not (isinstance(result, Scalar) and isinstance(other, Scalar)):
                wrong = other if isinstance(result, Scalar) else result
                ctx.fail("TP120", f"{name} compares numbers, not {type_text(wrong)}", f"use np.{name}imum for arrays.")
            result = better(ctx, name, result, other)
            refuse_beyond(ctx, name, len(args), k + 2, ctx.b.made - before)
        return result

    register(name, handler)


def better(ctx: Context, name: str, a: Scalar, b: Scalar) -> Scalar:
    """Python's min and max of two numbers, in a type that holds both."""
    dtype, is_weak = scalars.join(ctx, a, b)
    if dtype.is_complex:
        ctx.fail("TP104", f"{name} does not take complex numbers")
    x, y = scalars.exactly(ctx, a.atom, dtype), scalars.exactly(ctx, b.atom, dtype)
    if dtype is DType.bool:
        return Scalar(apply(ctx, "and" if name == "min" else "or", x, y), is_weak)
    return Scalar(apply(ctx, name, x, y), is_weak)


def _extremum_of_array(ctx: Context, name: str, array: Array) -> Value:
    if array.type.rank != 1:
        ctx.fail("TP120", f"{name} of an array with rows is ambiguous", f"use np.{name}.")
    n = ctx.size_atom(array.type.shape[0])
    ctx.check(apply(ctx, "gt", n, i64(0)), "ValueError", f"{name}() iterable argument is empty")
    var = read(ctx, array)
    first = atoms.lazy_if(
        ctx,
        apply(ctx, "gt", n, i64(0)),
        lambda: ctx.b.row(var, i64(0)),
        lambda: zero_of(var.type.dtype),
        var.type.row(),
    )
    return _loop(ctx, n, Scalar(first), lambda best, k: better(ctx, name, best, Scalar(ctx.b.row(var, k))))


_extremum("min")


_extremum("max")


def _quantifier(name: str, row: str, end: bool) -> None:
    def body(ctx: Context, iterable: Value) -> Value:
        if isinstance(iterable, Array):
            if iterable.type.rank != 1:
                ctx.fail("TP120", f"{name} of an array with rows is ambiguous", f"use np.{name}.")
            return python_bool((any_ if name == "any" else all_)(ctx, iterable))
        result: Atom = Const(not end, DType.bool)
        for item in items_of(ctx, name, iterable):
            result = apply(ctx, row, result, truth_of(ctx, item))
        return Scalar(result, True)

    register(name, with_signature(name, body))


_quantifier("any", "or", True)


_quantifier("all", "and", False)
