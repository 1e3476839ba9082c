"""Python's sum, min, max, any and all.

Takes what can be gone over: of known length it is worked out item by item, otherwise it becomes a loop. Results are
Python numbers where Python gives them.
"""

from __future__ import annotations

import ast
from collections.abc import Callable, Iterator
from contextlib import contextmanager

from tapeless.frontend.data import atoms, scalars
from tapeless.frontend.data.arguments import known, with_signature
from tapeless.frontend.data.arrays import read
from tapeless.frontend.data.atoms import apply
from tapeless.frontend.data.iterables import grown_item, grown_rows, items_of, iteration, of_unknown_length
from tapeless.frontend.data.python_operators import binary_values, compare_values, truth_of
from tapeless.frontend.data.rows import long_constants, rows
from tapeless.frontend.numpy.reductions import NAMES, all_, any_, python_bool
from tapeless.frontend.numpy.small_functions import inline
from tapeless.frontend.python.growth import listed
from tapeless.frontend.state.code_copies import SHORT, refuse_beyond
from tapeless.frontend.state.context import Context, type_text
from tapeless.frontend.state.handlers import call_value, register
from tapeless.frontend.state.parts import parts_of, same_form, with_parts
from tapeless.frontend.state.values import Array, Grown, RangeValue, Scalar, Sequence_, Static, Value, weak
from tapeless.ir.types import Atom, Const, DType, i64, zero_of
from tapeless.prelude import folding

FOLDED = 4096  # a fold of more constants than these is left to the compiled code


@known("sum")
def _sum(ctx: Context, iterable: Value, start: Value | None = None) -> Value:
    return fold_values(ctx, "Add", "sum", iterable, start or weak(0))


def fold_values(ctx: Context, operator: str, what: str, iterable: Value, start: Value) -> Value:
    """start + x0 + x1 + ..., in this order, as Python does it."""
    if isinstance(iterable, Grown) and iterable.form:
        ctx.fail("TP104", f"{what} adds numbers or arrays here, not lists or tuples", "use np.sum of np.array(...).")
    if isinstance(iterable, Grown) and iterable.array is not None and iterable.array.type.rank > 1:
        iterable = grown_rows(ctx, iterable)
    if not isinstance(iterable, (Array, RangeValue, Grown)):
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
    with _apart(ctx), ctx.b.region():  # a trial, for the type
        trial = step(start, i64(0))
    if not isinstance(trial, Scalar):
        ctx.fail("TP104", f"the elements must be numbers, not {type_text(trial)}")
    dtype, is_weak = scalars.join(ctx, trial, start)

    def body(k: Atom, running: Atom) -> list[Atom]:
        with _apart(ctx):
            value = step(Scalar(running, is_weak), k)
        assert isinstance(value, Scalar)
        return [scalars.exactly(ctx, value.atom, dtype)]

    (result,) = ctx.b.for_(count, [scalars.exactly(ctx, start.atom, dtype)], body, ["r"])
    return Scalar(result, is_weak)


@contextmanager
def _apart(ctx: Context) -> Iterator[None]:
    """What is found out inside, such as elements that were read, is not known outside."""
    before = ctx.state
    ctx.state = before.copy()
    yield
    ctx.state = before


def _extremum(name: str) -> None:
    def handler(ctx: Context, args: list[Value], keywords: dict[str, Value]) -> Value:
        if keywords:
            return chosen(ctx, name, args, keywords)
        if len(args) == 1:
            if isinstance(args[0], Array):
                return _extremum_of_array(ctx, name, args[0])
            if isinstance(args[0], Grown):
                return grown_item(ctx, args[0], _extremum_of_array(ctx, name, grown_rows(ctx, args[0])))
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


def chosen(ctx: Context, name: str, args: list[Value], keywords: dict[str, Value]) -> Value:
    """min and max with a key or a default: the first of the best, as Python goes through them."""
    for unknown in keywords.keys() - {"key", "default"}:
        ctx.call_error(f"{name}() got an unexpected keyword argument '{unknown}'")
    if (
        len(args) == 1
        and of_unknown_length(ctx, args[0])
        and keywords.keys() == {"key"}
        and keywords["key"] != Static(None)
    ):
        over = listed(ctx, args[0]) if isinstance(args[0], RangeValue) else args[0]
        return inline(ctx, folding.best, [over or args[0], keywords["key"], Static(name == "max")])
    items = items_of(ctx, f"{name} with a key or a default", args[0]) if len(args) == 1 else args
    if not items and "default" in keywords:
        return keywords["default"]
    if not items:
        ctx.fail("TP112", f"{name}() iterable argument is empty")
    key = keywords.get("key", Static(None))
    order = ast.Gt() if name == "max" else ast.Lt()
    best, best_key = items[0], _key_of(ctx, key, items[0])
    for item in items[1:]:
        now = _key_of(ctx, key, item)
        better_ = truth_of(ctx, compare_values(ctx, order, now, best_key))
        best, best_key = picked(ctx, better_, item, best), picked(ctx, better_, now, best_key)
    return best


def _key_of(ctx: Context, key: Value, item: Value) -> Value:
    return item if key == Static(None) else call_value(ctx, key, [item])


def picked(ctx: Context, cond: Atom, a: Value, b: Value) -> Value:
    """One of two values of one form, by a test: numbers, and tuples of numbers."""
    if isinstance(cond, Const):
        return a if cond.value else b
    if isinstance(a, Scalar) and isinstance(b, Scalar):
        dtype, is_weak = scalars.join(ctx, a, b)
        x, y = scalars.exactly(ctx, a.atom, dtype), scalars.exactly(ctx, b.atom, dtype)
        return Scalar(atoms.select(ctx, cond, x, y), is_weak)
    if isinstance(a, Sequence_) and a.kind in ("tuple", "namedtuple") and same_form(a, b):
        pairs = zip(parts_of(a), parts_of(b), strict=True)
        return with_parts(a, [picked(ctx, cond, p, q) for p, q in pairs])
    if a == b and isinstance(a, Static):
        return a
    ctx.fail(
        "TP104", f"numbers and tuples of numbers can be chosen by a key that is known when it runs, not {type_text(a)}"
    )


_extremum("min")


_extremum("max")


def _quantifier(name: str, row: str, end: bool) -> None:
    def body(ctx: Context, iterable: Value) -> Value:
        if isinstance(iterable, Grown):
            iterable = grown_rows(ctx, iterable)
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
