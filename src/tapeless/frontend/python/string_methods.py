"""Methods of strings.

Takes the string, which is known at compile time, and the arguments of the call; Python itself works out what is known, and
`format` may be given numbers that are not.
"""

from __future__ import annotations

from collections.abc import Sequence
from typing import Any

from tapeless.frontend.python.texts import format_method
from tapeless.frontend.state.context import Context, type_text
from tapeless.frontend.state.values import Scalar, Sequence_, Static, Value, weak
from tapeless.ir.types import Const

METHODS = frozenset(name for name in dir(str) if not name.startswith("_")) - {
    "encode",
    "format_map",
    "maketrans",
    "translate",
}


def string_method(ctx: Context, receiver: str, name: str, args: Sequence[Value], keywords: dict[str, Value]) -> Value:
    if name == "format":
        return format_method(ctx, receiver, args, keywords)
    given = [_known(ctx, name, a) for a in args]
    named = {k: _known(ctx, name, v) for k, v in keywords.items()}
    try:
        return _value(getattr(receiver, name)(*given, **named))
    except (TypeError, ValueError) as problem:
        ctx.fail("TP112", f".{name}: {problem}")


def _known(ctx: Context, name: str, value: Value) -> Any:
    match value:
        case Static(value=known) if known is None or isinstance(known, str):
            return known
        case Scalar(atom=Const(value=number), weak=True):
            return number
        case Sequence_(items=items, kind="tuple" | "list" as kind, cls=None):
            return (tuple if kind == "tuple" else list)(_known(ctx, name, v) for v in items)
        case _:
            ctx.fail("TP104", f".{name} of a string takes what is known at compile time, not {type_text(value)}")


def _value(known: Any) -> Value:
    match known:
        case bool() | int():
            return weak(known)
        case tuple() | list():
            return Sequence_(tuple(map(_value, known)), "tuple" if isinstance(known, tuple) else "list")
        case _:
            return Static(known)
