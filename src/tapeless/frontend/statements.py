"""Statements: assignment, branches, loops, leaving them.

Takes `ast` statements, emits Core through the context. `Flow` says how a block may be left; a block whose exit is
only known at run time carries a number, and what follows it is put under a condition.
"""

from __future__ import annotations

import ast
from collections.abc import Sequence

from tapeless.frontend.assignment import assign, augmented
from tapeless.frontend.context import Context
from tapeless.frontend.effects import run_assert, run_raise
from tapeless.frontend.expressions import evaluate, truth_of
from tapeless.frontend.flow import NEXT, RETURN, Flow, branch, flow, guarded
from tapeless.frontend.liveness import always_leaves, may_leave
from tapeless.frontend.loop_statements import run_for, run_while
from tapeless.frontend.values import (
    Static,
)
from tapeless.ir.types import Const


def run_block(ctx: Context, statements: Sequence[ast.stmt]) -> Flow:
    for k, s in enumerate(statements):
        rest = statements[k + 1 :]
        with ctx.at(s):
            if isinstance(s, ast.If) and (may_leave([s]) or _raises(s)):
                return _run_if(ctx, s, rest)
            result = run_statement(ctx, s)
        if result.kinds == {"next"}:
            continue
        if "next" not in result.kinds:
            return result
        return guarded(ctx, result, lambda rest=rest: run_block(ctx, rest))  # type: ignore[misc]
    return NEXT


def _raises(s: ast.If) -> bool:
    return always_leaves(s.body) or (bool(s.orelse) and always_leaves(s.orelse))


def run_statement(ctx: Context, s: ast.stmt) -> Flow:
    match s:
        case ast.Assign(targets=targets, value=value):
            result = evaluate(ctx, value)
            for target in targets:
                assign(ctx, target, result)
        case ast.AnnAssign(target=target, value=annotated):
            if annotated is not None:
                assign(ctx, target, evaluate(ctx, annotated))
        case ast.AugAssign():
            augmented(ctx, s)
        case ast.Expr(value=ast.Constant()) | ast.Pass():
            pass
        case ast.Expr(value=expression):
            evaluate(ctx, expression)
        case ast.If():
            return _run_if(ctx, s, ())
        case ast.For():
            return run_for(ctx, s)
        case ast.While():
            return run_while(ctx, s)
        case ast.Return(value=returned):
            ctx.bind(RETURN, Static(None) if returned is None else evaluate(ctx, returned))
            ctx.returned = ctx.span
            return flow("return")
        case ast.Break():
            return flow("break")
        case ast.Continue():
            return flow("continue")
        case ast.Assert():
            run_assert(ctx, s)
        case ast.Raise():
            run_raise(ctx, s)
            return flow("raise")
        case ast.FunctionDef():
            from tapeless.frontend.calls import nested_function

            ctx.bind(s.name, nested_function(ctx, s))
        case _:
            ctx.fail("TP101", f"'{type(s).__name__.lower()}' statements are not part of the language")
    return NEXT


# -- branches


def _run_if(ctx: Context, s: ast.If, rest: Sequence[ast.stmt]) -> Flow:
    """An `if` with what follows it, which moves into the arm that falls through when the other one leaves."""
    with ctx.at(s.test):
        cond = truth_of(ctx, evaluate(ctx, s.test))
    if isinstance(cond, Const):
        return run_block(ctx, [*(s.body if cond.value else s.orelse), *rest])
    then, orelse = list(s.body), list(s.orelse)
    left: list[ast.stmt] = []
    if always_leaves(then):
        orelse += rest
    elif orelse and always_leaves(orelse):
        then += rest
    else:
        left = list(rest)
    result = branch(ctx, cond, lambda: run_block(ctx, then), lambda: run_block(ctx, orelse))
    if not left or "next" not in result.kinds:
        return result
    return guarded(ctx, result, lambda: run_block(ctx, left))
