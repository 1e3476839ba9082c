"""Calls: functions of the user are compiled into the caller; functions that the compiler knows have handlers.

Takes a call node, gives its value. A function of the user sees its own names, those of compiled functions around it,
its closure and its globals, as in Python.
"""

from __future__ import annotations

import ast
import copy
import dataclasses
from collections.abc import Iterator, Mapping, Sequence
from contextlib import contextmanager
from typing import Any, NoReturn

import numpy as np

from tapeless.errors import CompileError, InternalError
from tapeless.frontend.data.arrays import any_turned
from tapeless.frontend.data.iterables import grown_rows
from tapeless.frontend.numpy.methods import call_method
from tapeless.frontend.numpy.small_functions import FOLDER, inside
from tapeless.frontend.python.comprehensions import list_of, reduced
from tapeless.frontend.python.flow import FULL, RETURN
from tapeless.frontend.python.growth import rows
from tapeless.frontend.python.list_methods import container_method
from tapeless.frontend.python.records import construct
from tapeless.frontend.python.references import current, new_dict
from tapeless.frontend.python.rules import elements, evaluate, expression, statement
from tapeless.frontend.python.shared_functions import shared_call
from tapeless.frontend.python.statements import run_block
from tapeless.frontend.python.string_methods import string_method
from tapeless.frontend.python.worklists import leave_call
from tapeless.frontend.source import sources
from tapeless.frontend.source.fence import check_function
from tapeless.frontend.source.liveness import Liveness, analyse, assigned
from tapeless.frontend.source.marks import peek
from tapeless.frontend.state.code_copies import call_counted
from tapeless.frontend.state.context import Context, Frame, type_text
from tapeless.frontend.state.handlers import call_numpy, call_value, called, find_handler
from tapeless.frontend.state.parts import parts_of, with_parts
from tapeless.frontend.state.refusals import from_library, is_library, refuse_call
from tapeless.frontend.state.surroundings import positional
from tapeless.frontend.state.values import (
    Array,
    Builtin,
    Closure,
    Conflict,
    Grown,
    MaybeUndefined,
    Method,
    Never,
    Scalar,
    Sequence_,
    Static,
    Value,
)
from tapeless.ir.span import NOWHERE
from tapeless.ir.types import Const

DEEPEST = 2000  # calls in calls
IN_ORDER = ("copy", "flatten", "dot")  # methods whose results are in order whatever they are given


@expression(ast.Call)
def call(ctx: Context, node: ast.Call) -> Value:
    since = len(ctx.changed)
    function = evaluate(ctx, node.func)
    if isinstance(function, Static) and 1 <= len(node.args) <= 2 and not node.keywords:
        found = reduced(ctx, function.value, node.args[0], node.args[1] if len(node.args) == 2 else None)
        if found is not None:
            return found
    at_once = isinstance(function, (Static, Method))
    args = list(elements(ctx, node.args, list_of if at_once else None))
    keywords: dict[str, Value] = {}
    for k in node.keywords:
        value = evaluate(ctx, k.value)
        more = {k.arg: value} if k.arg is not None else _spread_keywords(ctx, value)
        for name in more.keys() & keywords.keys():
            ctx.call_error(f"the call has several values for the argument '{name}'")
        keywords |= more
    if any(isinstance(v, Never) for v in (function, *args, *keywords.values())):
        return Never(None)
    if len(ctx.changed) > since:
        function, *args = current(ctx, [function, *args], since)
        keywords = dict(zip(keywords, current(ctx, list(keywords.values()), since), strict=True))
    return call_value(ctx, function, args, keywords)


def _spread_keywords(ctx: Context, value: Value) -> dict[str, Value]:
    if not (isinstance(value, Sequence_) and value.kind == "dict" and all(isinstance(k, str) for k in value.keys)):
        ctx.fail("TP104", f"'**' takes a dict with names for keys, not {type_text(value)}")
    return dict(zip(value.keys, value.items, strict=True))


@called(Method)
def _call_method(ctx: Context, function: Method, args: list[Value], keywords: dict[str, Value]) -> Value:
    if isinstance(function.receiver, Static) and isinstance(function.receiver.value, str):
        return string_method(ctx, function.receiver.value, function.name, args, keywords)
    if isinstance(function.receiver, (Sequence_, Grown)):
        return container_method(ctx, function.receiver, function.name, args, keywords)
    with _memory_order(ctx, () if function.name in IN_ORDER else (function.receiver, *args)):
        return call_method(ctx, function.receiver, function.name, args, keywords)


@called(Static)
def _call_known(ctx: Context, function: Static, args: list[Value], keywords: dict[str, Value]) -> Value:
    if any(map(_has_grown, (*args, *keywords.values()))) and _is_numpy(function.value):
        return _call_with_arrays(ctx, function.value, args, keywords)
    with _memory_order(ctx, args):
        return call_known(ctx, function.value, args, keywords)


def _is_numpy(target: Any) -> bool:
    module = peek(target, "__module__") or ""
    return isinstance(target, np.ufunc) or str(module).partition(".")[0] in ("numpy", "scipy")


def _has_grown(value: Value) -> bool:
    return isinstance(value, Grown) or (isinstance(value, Sequence_) and any(map(_has_grown, value.items)))


def _call_with_arrays(ctx: Context, target: Any, args: list[Value], keywords: dict[str, Value]) -> Value:
    """A function of NumPy takes a list of run-time length for the array that it makes of it."""

    typed = target in (np.array, np.asarray) and (len(args) > 1 or "dtype" in keywords)

    def made(value: Value) -> Value:
        if isinstance(value, Grown):
            return grown_rows(ctx, value) if typed else rows(ctx, value)
        return with_parts(value, [made(v) for v in value.items]) if isinstance(value, Sequence_) else value

    if target in JOINING and len(args) == 1 and isinstance(args[0], Grown) and not keywords:
        whole = rows(ctx, args[0])
        if whole.type.rank - 1 not in JOINING[target]:
            refuse_call(ctx, target, args, "the list has a length that is known when it runs")
        return call_numpy(ctx, "ravel", [whole]) if target in (np.concatenate, np.hstack) else whole
    if target in JOINING and any(isinstance(a, Grown) for a in args):
        refuse_call(ctx, target, args, "the list has a length that is known when it runs")
    return call_known(ctx, target, [made(a) for a in args], {k: made(v) for k, v in keywords.items()})


# Functions of a list of arrays -> how many axes these have where it is an array of them.
JOINING: dict[Any, tuple[int, ...]] = {
    np.stack: (0, 1, 2, 3), np.vstack: (1,), np.concatenate: (1,), np.hstack: (1,), np.column_stack: (), np.dstack: (),
}  # fmt: skip


@contextmanager
def _memory_order(ctx: Context, args: Sequence[Value]) -> Iterator[None]:
    """Arrays that a library function makes may take over the order of its arguments: Note [Memory order] in values.py."""
    before = set(ctx.state.cells) if any_turned(args) else None
    yield
    if before is not None:
        for cell, var in ctx.state.cells.items():
            if cell not in before and var.type.rank > 1:
                cell.scattered = True


@expression(ast.Lambda)
def nested_function(ctx: Context, node: ast.FunctionDef | ast.Lambda) -> Closure:
    names = positional(node)
    defaults: dict[str, Value] = {}
    for name, default in zip(reversed(names), reversed(node.args.defaults), strict=False):
        defaults[name] = evaluate(ctx, default)
    for arg, kw_default in zip(node.args.kwonlyargs, node.args.kw_defaults, strict=True):
        if kw_default is not None:
            defaults[arg.arg] = evaluate(ctx, kw_default)
    frame = ctx.frames[ctx.frame]
    label = node.name if isinstance(node, ast.FunctionDef) else "<lambda>"
    return Closure(node, frame.source, ctx.frame, tuple(defaults.items()), label)


@statement(ast.FunctionDef)
def _define(ctx: Context, s: ast.FunctionDef) -> None:
    ctx.bind(s.name, nested_function(ctx, s))


@called(Closure)
def call_closure(ctx: Context, function: Closure, args: list[Value], keywords: dict[str, Value]) -> Value:
    """Compiles the body of `function` here, with its parameters bound to the arguments, or calls what was made of it
    before.
    """
    if not ctx.inside_prelude and function.source.file.startswith(FOLDER):  # a method of an object made there
        with inside(ctx):
            return call_closure(ctx, function, args, keywords)
    with ctx.at_span(ctx.span if ctx.span is not NOWHERE else function.source.span(function.node)):
        bound = bind_arguments(ctx, function, args, keywords)
    if function.python is None or not is_library(function.source.file) or ctx.in_library:
        return shared_call(ctx, function, bound, lambda given: _inlined(ctx, function, given))
    try:
        return _inlined(ctx, function, bound)
    except InternalError:
        raise
    except CompileError as problem:
        from_library(ctx, function.python, [*args, *keywords.values()], problem)


def _inlined(ctx: Context, function: Closure, bound: Mapping[str, Value]) -> Value:
    kinds = (kind_of(ctx, function), *((name, kind_of(ctx, value)) for name, value in bound.items()))
    open_calls = [k for k in ctx.calls if k[0][0] is function.node]
    if kinds in open_calls or len(open_calls) >= MAX_UNFOLDED or len(ctx.calls) > DEEPEST:  # Note [Recursion]
        ctx.fail("TP106", f"'{function.name}' calls itself: recursion cannot be compiled", "write it as a loop.")
    frame = enter_frame(ctx, function)
    frame.kinds = kinds
    caller = ctx.frame
    span = ctx.span
    ctx.calls.append(kinds)
    ctx.frame = frame.number
    try:
        for name, value in bound.items():
            ctx.bind(name, value)
        with call_counted(ctx, function.node):
            result = run_function(ctx, function.node)
    finally:
        ctx.frame = caller
        ctx.calls.pop()
        ctx.span = ctx.b.span = span
    if not _is_seen_by(ctx, frame.number, result):
        for key in [k for k in ctx.state.names if k[0] == frame.number]:
            del ctx.state.names[key]
    return result


def _is_seen_by(ctx: Context, frame: int, value: Value) -> bool:
    """Whether a function in this value was made in this frame, or inside of one that was: its names live on."""
    if isinstance(value, Closure):
        at = value.frame
        while at in ctx.frames:
            if at == frame:
                return True
            at = ctx.frames[at].outer
    return any(_is_seen_by(ctx, frame, part) for part in parts_of(value))


# Note [Recursion]
# A call is compiled into its caller, so a function that calls itself never ends, unless what is known at compile time
# changes from call to call: the functions it gets, constants, the lengths of tuples. A call is refused when an open
# call of the same function has arguments of the same kinds; and when it goes too deep, for arguments that grow.
MAX_UNFOLDED = 32


def kind_of(ctx: Context, value: Value) -> tuple[Any, ...]:
    """What is known of a value at compile time."""
    match value:
        case Scalar(atom=Const(value=number), weak=weak):
            return (value.dtype, weak, number)
        case Scalar(weak=weak):
            return (value.dtype, weak)
        case Array(type=type):
            return (type.dtype, type.rank)
        case Sequence_(items=items, kind=kind):
            return (kind, *(kind_of(ctx, item) for item in items))
        case Closure(
            node=node, frame=frame, defaults=defaults, python=python
        ):  # of one `def` there may be several functions
            outer = ctx.frames[frame].kinds if frame in ctx.frames else ()
            return (node, python, outer, *((name, kind_of(ctx, v)) for name, v in defaults))
        case Static(value=known):
            return ("static", id(known))
        case Builtin(name=name):
            return ("builtin", name)
        case _:
            return (type_text(value),)


@sources.by_node
def _liveness(node: ast.FunctionDef | ast.Lambda, source: sources.Source) -> Liveness:
    check_function(node, source)
    return analyse(node)


def enter_frame(ctx: Context, function: Closure) -> Frame:
    node = function.node
    if function.python is not None:
        python = ctx.reads.origin_of(function.python)
    else:
        python = ctx.frames[function.frame].function
    frame = Frame(
        ctx.number(),
        function.source,
        node,
        function.name,
        _liveness(node, function.source),
        python,
        function.frame,
        _locals(node),
        library=is_library(function.source.file),
    )
    ctx.frames[frame.number] = frame
    return frame


@sources.by_node
def _locals(node: ast.FunctionDef | ast.Lambda) -> frozenset[str]:
    body = node.body if isinstance(node, ast.FunctionDef) else []
    return frozenset(a.arg for a in ast.walk(node.args) if isinstance(a, ast.arg)) | assigned(body)


def run_function(ctx: Context, node: ast.FunctionDef | ast.Lambda) -> Value:
    """The value of the body in the current frame."""
    if isinstance(node, ast.Lambda):
        result = evaluate(ctx, node.body)
        with ctx.at(node.body):
            ctx.returned = ctx.span
        return result
    end = ast.Return(value=None)
    ast.copy_location(end, node.body[-1])
    left = run_block(ctx, [*node.body, end])
    if left.diverges:
        return Never(None)
    value = ctx.state.names.pop(ctx.key(RETURN), Static(None))
    if FULL in left.kinds:
        leave_call(ctx, left, value)
    if isinstance(value, MaybeUndefined):
        value = value.value
    if isinstance(value, Conflict):
        with ctx.at_span(ctx.returned):
            ctx.fail("TP104", value.reason, value.hint)
    return value


def bind_arguments(
    ctx: Context, function: Closure, args: Sequence[Value], keywords: Mapping[str, Value]
) -> dict[str, Value]:
    given = function.node.args
    names = positional(function.node)
    only = [a.arg for a in given.kwonlyargs]
    by_name = {*names[len(given.posonlyargs) :], *only}
    bound = dict(zip(names, args, strict=False))
    extra = [k for k in keywords if k not in by_name]
    if (
        (len(args) > len(names) and given.vararg is None)
        or (extra and given.kwarg is None)
        or bound.keys() & (keywords.keys() & by_name)
    ):
        _refuse_arguments(ctx, function, len(args), keywords)
    if given.vararg is not None:
        bound[given.vararg.arg] = Sequence_(tuple(args[len(names) :]))
    bound |= {k: v for k, v in keywords.items() if k in by_name}
    if given.kwarg is not None:
        if len(extra) > 1 and ctx.frame < 0:  # a call from Python: its keywords come sorted
            with ctx.at_span(function.source.span(given.kwarg)):
                ctx.fail(
                    "TP101",
                    f"'**{given.kwarg.arg}' of the compiled function itself takes one argument, not {', '.join(extra)}: "
                    "their order is not known",
                    "name the parameters, or pass a dict.",
                )
        bound[given.kwarg.arg] = new_dict(ctx, {k: keywords[k] for k in extra})
    defaults = dict(function.defaults)
    if any(name not in bound and name not in defaults for name in (*names, *only)):
        _refuse_arguments(ctx, function, len(args), keywords)
    return {**bound, **{name: defaults[name] for name in (*names, *only) if name not in bound}}


def _refuse_arguments(ctx: Context, function: Closure, count: int, keywords: Mapping[str, Value]) -> NoReturn:
    """With what Python says of a call of a function with these parameters."""
    bare = copy.deepcopy(function.node.args)
    bare.defaults = [ast.Constant(None) for _ in bare.defaults]
    bare.kw_defaults = [None if d is None else ast.Constant(None) for d in bare.kw_defaults]
    stub = eval(compile(ast.fix_missing_locations(ast.Expression(ast.Lambda(bare, ast.Constant(None)))), "", "eval"))
    stub.__qualname__ = getattr(function.python, "__qualname__", function.name)
    try:
        stub(*[None] * count, **dict.fromkeys(keywords))
    except TypeError as problem:
        ctx.call_error(str(problem), f"its parameters are ({ast.unparse(function.node.args)}).")
    raise AssertionError(f"the arguments fit {stub.__qualname__}")


def call_known(ctx: Context, target: Any, args: list[Value], keywords: dict[str, Value]) -> Value:
    handler = find_handler(target)
    if handler is not None:
        return handler(ctx, args, keywords)
    if isinstance(target, type) and (dataclasses.is_dataclass(target) or hasattr(target, "_fields")):
        return construct(ctx, target, args, keywords)
    if not callable(target):
        ctx.fail("TP104", f"{type_text(Static(target))} cannot be called")
    refuse_call(ctx, target, [*args, *keywords.values()])
