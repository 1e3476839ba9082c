"""The operators of the package inside compiled functions, by name; ranges of parallel loops, and of those that show how far they are.

Takes arguments as front-end values. What is more than a line or two is in a module of its own.
"""

from __future__ import annotations

from dataclasses import replace

from tapeless.frontend.operators.applied import bound_arguments, need, no_keywords
from tapeless.frontend.state.context import Context, type_text
from tapeless.frontend.state.handlers import operator
from tapeless.frontend.state.values import Planned, RangeValue, Scalar, Static, Value, weak
from tapeless.ir.hints import How, unknown, wish_of
from tapeless.ir.types import DType


@operator("prange")
def op_prange(ctx: Context, args: list[Value], keywords: dict[str, Value]) -> Value:
    no_keywords(ctx, "tp.prange", keywords)
    bounds: list[Scalar] = []
    for a in args:
        if not isinstance(a, Scalar) or not (a.dtype.is_int or a.dtype is DType.bool):
            ctx.fail("TP104", f"tp.prange takes integers, not {type_text(a)}")
        bounds.append(a)
    match bounds:
        case [stop]:
            return RangeValue(weak(0), stop, weak(1), parallel=True)
        case [start, stop]:
            return RangeValue(start, stop, weak(1), parallel=True)
        case [start, stop, step]:
            return RangeValue(start, stop, step, parallel=True)
    ctx.fail("TP112", "tp.prange takes one to three arguments")


@operator("loop")
def op_loop(ctx: Context, args: list[Value], keywords: dict[str, Value]) -> Value:
    a = bound_arguments(ctx, "tp.loop", args, keywords, ("iterable", "recover"))
    recover = a.get("recover", Static("auto"))
    if not (isinstance(recover, Static) and isinstance(recover.value, str)):
        ctx.fail("TP104", "tp.loop: recover must be a constant string")
    wish = wish_of(recover.value)
    if wish is None:
        ctx.fail("TP112", f"tp.loop: {unknown(recover.value)}")
    source = a["iterable"]
    if isinstance(source, RangeValue) and source.parallel and wish.kind != How.auto:
        ctx.fail(
            "TP112", "the iterations of tp.prange carry nothing that would have to come back", "leave tp.loop out."
        )
    return Planned(source, wish)


@operator("progress")
def op_progress(ctx: Context, args: list[Value], keywords: dict[str, Value]) -> Value:
    a = bound_arguments(ctx, "tp.progress", args, keywords, ("iterable",))
    need(ctx, "tp.progress", a, ("iterable",))
    return _shown(ctx, a["iterable"])


def _shown(ctx: Context, iterable: Value) -> Value:
    match iterable:
        case RangeValue(parallel=True):
            ctx.fail("TP112", "the iterations of tp.prange come in no order that a bar could show", "use range.")
        case RangeValue():
            return replace(iterable, shown=True)
        case Planned(iterable=inner):
            return replace(iterable, iterable=_shown(ctx, inner))
        case _:
            hint = "use tp.progress(range(len(...))), and zip or enumerate around it."
            ctx.fail("TP104", f"tp.progress takes a range, not {type_text(iterable)}", hint)


@operator("function")
def op_function(ctx: Context, args: list[Value], keywords: dict[str, Value]) -> Value:
    """tp.function inside compiled code: the function itself, which is compiled in any case."""
    if len(args) != 1 or keywords:
        ctx.fail(
            "TP112", "tp.function with options inside compiled code is not part of the language", "decorate it outside."
        )
    return args[0]
