"""Statements for their effect: assert and raise."""

from __future__ import annotations

import ast
import builtins

import numpy as np

from tapeless.frontend.python.choices import truth
from tapeless.frontend.python.flow import NEXT, Flow, branch, flow
from tapeless.frontend.python.rules import evaluate, statement
from tapeless.frontend.python.texts import message_of
from tapeless.frontend.state.context import Context
from tapeless.frontend.state.surroundings import lookup
from tapeless.frontend.state.values import Static
from tapeless.ir.types import Atom, Const, DType


@statement(ast.Assert)
def run_assert(ctx: Context, s: ast.Assert) -> None:
    cond = truth(ctx, s.test)
    if s.msg is None:
        ctx.check(cond, "AssertionError", "")
        return
    if isinstance(cond, Const) and cond.value:
        return
    before = ctx.state.copy()
    with ctx.b.region() as stms:
        message, numbers = _message(ctx, s.msg)
    if not stms:
        ctx.check(cond, "AssertionError", message, *numbers)
        return
    ctx.state = before
    text = s.msg
    branch(ctx, cond, lambda: NEXT, lambda: _fail(ctx, "AssertionError", text))  # a message is made where it is needed


@statement(ast.Raise)
def run_raise(ctx: Context, s: ast.Raise) -> Flow:
    error, message = "RuntimeError", None
    match s.exc:
        case ast.Call(func=ast.Name(id=name), args=args, keywords=[]) if len(args) <= 1:
            error = name
            message = args[0] if args else None
        case ast.Name(id=name):
            error = name
        case _:
            ctx.fail("TP101", "only 'raise SomeError(\"message\")' can be compiled")
    known = lookup(ctx, error)
    raised = known.value if isinstance(known, Static) else None
    known_by_name = getattr(builtins, error, None) or getattr(np.linalg, error, None)
    if not (isinstance(raised, type) and issubclass(raised, Exception) and known_by_name is raised):
        ctx.fail("TP101", f"'{error}' is not a built-in exception", "raise ValueError, RuntimeError or the like.")
    return _fail(ctx, error, message)


def _fail(ctx: Context, error: str, text: ast.expr | None) -> Flow:
    message, numbers = _message(ctx, text)
    ctx.check(Const(False, DType.bool), error, message, *numbers)
    return flow("raise")


def _message(ctx: Context, text: ast.expr | None) -> tuple[str, list[Atom]]:
    return ("", []) if text is None else message_of(ctx, evaluate(ctx, text))
