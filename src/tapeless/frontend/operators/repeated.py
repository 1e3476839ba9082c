"""`tp.bennett` and `tp.treeverse` in compiled code: loops that say how their states come back."""

from __future__ import annotations

import math
from collections.abc import Iterable
from typing import Any

from tapeless.frontend.operators.applied import bound_arguments, need
from tapeless.frontend.source.origins import made_here
from tapeless.frontend.state.context import Context, type_text
from tapeless.frontend.state.handlers import call_value, operator
from tapeless.frontend.state.surroundings import python_function
from tapeless.frontend.state.values import Planned, RangeValue, Scalar, Value, weak
from tapeless.ir.hints import How, Recovery
from tapeless.ir.types import Const

DEEPEST = 4  # levels of strips: more would keep few states less, for much more code


def repeated(step: Any, state: Any, loop: Iterable[int]) -> Any:
    """Compiled, not called."""
    for _ in loop:
        state = step(state)
    return state


@operator("bennett")
def _bennett(ctx: Context, args: list[Value], keywords: dict[str, Value]) -> Value:
    a = bound_arguments(ctx, "tp.bennett", args, keywords, ("step", "state", "n", "k"))
    need(ctx, "tp.bennett", a, ("step", "state", "n"))
    n, k = a["n"], _number(ctx, "bennett", "k", a.get("k", weak(2)))
    depth = 2
    if isinstance(n, Scalar) and isinstance(n.atom, Const) and k > 1:
        levels = math.ceil(math.log(max(2, int(n.atom.value.real)), k) - 1e-9)
        depth = min(max(2, levels), DEEPEST)
    return _run(ctx, a, Recovery(How.checkpoint, depth))


@operator("treeverse")
def _treeverse(ctx: Context, args: list[Value], keywords: dict[str, Value]) -> Value:
    a = bound_arguments(ctx, "tp.treeverse", args, keywords, ("step", "state", "n", "memory"))
    need(ctx, "tp.treeverse", a, ("step", "state", "n", "memory"))
    return _run(ctx, a, Recovery(How.snapshots, _number(ctx, "treeverse", "memory", a["memory"])))


def _run(ctx: Context, a: dict[str, Value], recovery: Recovery) -> Value:
    n = a["n"]
    if not isinstance(n, Scalar) or not n.dtype.is_int:
        ctx.fail("TP104", f"the number of steps is {type_text(n)}", "pass an integer.")
    loop = Planned(RangeValue(weak(0), n, weak(1)), recovery)
    return call_value(ctx, python_function(ctx, made_here(repeated)), [a["step"], a["state"], loop])


def _number(ctx: Context, name: str, word: str, value: Value) -> int:
    if not isinstance(value, Scalar) or not isinstance(value.atom, Const) or value.atom.value.real < 1:
        hint = "give the number of states to keep." if word == "memory" else "give a number."
        ctx.fail("TP104", f"tp.{name}: '{word}' must be a positive integer that is known at compile time", hint)
    return int(value.atom.value.real)
