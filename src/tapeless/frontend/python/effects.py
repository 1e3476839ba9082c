"""Statements for their effect: assert and raise."""

from __future__ import annotations

import ast
import builtins

from tapeless.frontend.data.python_operators import truth_of
from tapeless.frontend.python.flow import Flow, flow
from tapeless.frontend.python.rules import evaluate, statement
from tapeless.frontend.state.context import Context
from tapeless.frontend.state.surroundings import lookup
from tapeless.frontend.state.values import Scalar, Static
from tapeless.ir.types import Const, DType


@statement(ast.Assert)
def run_assert(ctx: Context, s: ast.Assert) -> None:
    cond = truth_of(ctx, evaluate(ctx, s.test))
    message = _constant_text(ctx, s.msg) if s.msg is not None else ""
    if isinstance(cond, Const) and not cond.value:
        ctx.check(cond, "AssertionError", _escape(message))
        return
    ctx.check(cond, "AssertionError", _escape(message))


@statement(ast.Raise)
def run_raise(ctx: Context, s: ast.Raise) -> Flow:
    error, message = "RuntimeError", ""
    match s.exc:
        case ast.Call(func=ast.Name(id=name), args=args, keywords=[]) if len(args) <= 1:
            error = name
            message = _constant_text(ctx, args[0]) if args else ""
        case ast.Name(id=name):
            error = name
        case _:
            ctx.fail("TP101", "only 'raise SomeError(\"constant message\")' can be compiled")
    known = lookup(ctx, error)
    raised = known.value if isinstance(known, Static) else None
    if not (isinstance(raised, type) and issubclass(raised, Exception) and getattr(builtins, error, None) is raised):
        ctx.fail("TP101", f"'{error}' is not a built-in exception", "raise ValueError, RuntimeError or the like.")
    ctx.check(Const(False, DType.bool), error, _escape(message))
    return flow("raise")


def _constant_text(ctx: Context, node: ast.expr) -> str:
    value = evaluate(ctx, node)
    if isinstance(value, Static) and isinstance(value.value, str):
        return value.value
    if isinstance(value, Scalar) and isinstance(value.atom, Const):
        return str(value.atom.value)
    ctx.fail("TP101", "the message must be a constant string", "write it as a plain string.")


def _escape(text: str) -> str:
    return text.replace("{", "{{").replace("}", "}}")
