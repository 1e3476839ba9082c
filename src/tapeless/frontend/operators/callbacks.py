"""`tp.callback` inside compiled functions: Note [Callbacks] in `ops/callbacks.py`.

Takes the function, which must be an object of Python, what its result is like, and its arguments, in containers as they come. Gives
the results in the container of `result_like`.
"""

from __future__ import annotations

import types
from collections.abc import Callable, Iterator
from itertools import count
from typing import Any

from tapeless.errors import CompileError
from tapeless.frontend.data.leaves import atom_of, leaves_of, rebuilt, type_of, value_of
from tapeless.frontend.operators.applied import no_keywords
from tapeless.frontend.source.codes import nested_code
from tapeless.frontend.source.foreign_arrays import array_of, is_foreign
from tapeless.frontend.state.context import Context, type_text
from tapeless.frontend.state.handlers import operator
from tapeless.frontend.state.values import Array, Builtin, Closure, Scalar, Sequence_, Static, Value
from tapeless.ir import containers
from tapeless.ir.core import Body, Function, Hist, Library, Scatter, Sweep
from tapeless.ir.effects import runs_python
from tapeless.ir.operands import regions
from tapeless.ir.types import Type, Var
from tapeless.ir.walk import all_stms
from tapeless.ops.callbacks import Callback, Part


@operator("callback")
def op_callback(ctx: Context, args: list[Value], keywords: dict[str, Value]) -> Value:
    no_keywords(ctx, "tp.callback", keywords)
    if len(args) < 2:
        ctx.call_error("tp.callback takes a function, what its result is like, and the arguments of the function")
    if ctx.options.device == "cuda":
        ctx.fail("TP103", "a GPU cannot call Python", "use device='cpu', or call it before and pass the result in.")
    function, like, given = _python(ctx, args[0]), args[1], Sequence_(tuple(args[2:]))
    numbers = [leaf for leaf in leaves_of(given) if isinstance(leaf, (Scalar, Array))]
    likes = [leaf for leaf in leaves_of(like) if isinstance(leaf, (Scalar, Array))]
    for leaf in leaves_of(like):
        if not isinstance(leaf, (Scalar, Array)) and leaf != Static(None):
            ctx.fail(
                "TP104", f"tp.callback: result_like has {type_text(leaf)} in it", "it takes numbers, arrays and None."
            )
    place = f"{ctx.span.file}:{ctx.span.line}"
    made = Callback(
        function,
        _builder(ctx, given, count()),
        _taker(like, place),
        [*map(_part, numbers)],
        [*map(_part, likes)],
        place,
    )
    ctx.callbacks.append(made)
    ctx.reads.opaque = ctx.reads.opaque or "a callback"
    atoms = [atom_of(ctx, leaf) for leaf in (*likes, *numbers)]
    exp = Library("callback", tuple(atoms), (("number", made.number), ("likes", len(likes)), ("again", False)))
    types = [Type(a.type.dtype, a.type.shape) for a in atoms[: len(likes)]]
    results = iter(ctx.b.bind([Var("given", t) for t in types], exp))
    values = [
        leaf if leaf == Static(None) else value_of(ctx, next(results), isinstance(leaf, Scalar) and leaf.weak)
        for leaf in leaves_of(like)
    ]
    return rebuilt(like, values)


def _python(ctx: Context, function: Value) -> Callable[..., Any]:
    match function:
        case Closure(python=python) | Builtin(python=python) if python is not None:
            found: Callable[..., Any] = python
            return found
        case Closure():
            return _nested(ctx, function)
        case Static(value=value) if callable(value):
            return value  # type: ignore[no-any-return]
    hint = "define it outside, with all it needs as arguments."
    ctx.fail("TP104", f"tp.callback calls functions of Python, not {type_text(function)} of compiled code", hint)


def _nested(ctx: Context, function: Closure) -> Callable[..., Any]:
    """A function that is written inside the compiled one, and uses nothing of it but its own parameters."""
    outer, node, offset = ctx.frames[function.frame].function.value, function.node, function.source.offset
    lines = node.lineno + offset, (node.end_lineno or node.lineno) + offset
    code = nested_code(outer.__code__, function.name, lines, (node.col_offset, node.end_col_offset or 0))
    used = [name for name in (code.co_freevars if code else ()) if name not in outer.__code__.co_freevars]
    if code is None or used or function.defaults:
        what = f"which uses '{used[0]}' of the compiled function" if used else "which is part of the compiled function"
        hint = "pass it as an argument." if used else "define it outside."
        ctx.fail("TP104", f"tp.callback cannot call {type_text(function)}, {what}", hint)
    cells = dict(zip(outer.__code__.co_freevars, outer.__closure__ or (), strict=True))
    closure = tuple(cells[name] for name in code.co_freevars)
    return types.FunctionType(code, outer.__globals__, function.name, None, closure)


def _part(leaf: Scalar | Array) -> Part:
    type = type_of(leaf)
    assert type is not None
    return Part(type.dtype, type.rank, isinstance(leaf, Scalar) and leaf.weak)


def _builder(ctx: Context, value: Value, numbers: Iterator[int]) -> Callable[[list[Any]], Any]:
    """What puts Python values into the container of `value`."""
    match value:
        case Scalar() | Array():
            k = next(numbers)
            return lambda parts: parts[k]
        case Sequence_(items=items, kind=kind, keys=keys, cls=cls):
            inner = [_builder(ctx, item, numbers) for item in items]
            return lambda parts: containers.built(kind, cls, keys, [build(parts) for build in inner])
        case Static(value=known):
            return lambda parts: known
        case Closure(python=python) | Builtin(python=python) if python is not None:
            return lambda parts: python
    ctx.fail("TP104", f"tp.callback: {type_text(value)} cannot be passed to Python")


def _taker(like: Value, place: str) -> Callable[[Any], list[Any]]:
    """What takes the leaves out of a result of Python, which must have the structure of `like`."""

    def refuse(given: Any, value: Value) -> TypeError:
        text = type_text(value) if isinstance(value, Sequence_) else "None"
        return TypeError(f"tp.callback: the function gave {given!r:.60} where result_like has {text} ({place})")

    def take(given: Any, value: Value) -> list[Any]:
        match value:
            case Scalar() | Array():
                return [array_of(given) if is_foreign(given) else given]
            case Sequence_(items=items, kind=kind, keys=keys):
                if kind in ("tuple", "list"):
                    parts = list(given) if isinstance(given, (tuple, list)) and len(given) == len(items) else None
                elif kind == "dict":
                    same = isinstance(given, dict) and given.keys() == set(keys)
                    parts = [given[k] for k in keys] if same else None
                else:
                    parts = [getattr(given, k) for k in keys] if all(hasattr(given, k) for k in keys) else None
                if parts is None:
                    raise refuse(given, value)
                return [leaf for part, item in zip(parts, items, strict=True) for leaf in take(part, item)]
        if given is not None:
            raise refuse(given, value)
        return []

    return lambda given: take(given, like)


IN_ORDER = "use a loop over range; tp.jvp and tp.vjp instead of Jacobians, which take many directions at once."


def refuse_in_parallel(function: Function) -> None:
    """Elements of tp.map and the like come in no order."""
    for f in (function, *function.calls):
        for s in all_stms(f.body):
            if isinstance(s.exp, (Sweep, Hist, Scatter)):
                for inner in (stm for r in regions(s.exp) for stm in all_stms(Body(r.body.stms, ()))):
                    if runs_python(inner.exp):
                        span = inner.span
                        raise CompileError(
                            "callbacks have an order, which parallel operators do not keep",
                            code="TP111", hint=IN_ORDER, file=span.file, line=span.line, column=span.column,
                            end_line=span.end_line, end_column=span.end_column,
                        )  # fmt: skip
