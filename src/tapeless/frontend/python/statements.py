"""Blocks of statements, branches, and the statements that leave a block.

Takes `ast` statements, emits Core through the context. `Flow` says how a block may be left; a block whose exit is
only known at run time carries a number, and what follows it is put under a condition.
"""

from __future__ import annotations

import ast
from collections.abc import Sequence

import numpy as np

from tapeless.frontend.python.choices import truth
from tapeless.frontend.python.flow import NEXT, RETURN, Flow, branch, flow, guarded
from tapeless.frontend.python.rules import evaluate, run_statement, statement
from tapeless.frontend.python.worklists import left_by_call
from tapeless.frontend.source.liveness import always_leaves, is_tested_before, may_leave
from tapeless.frontend.state.context import Context
from tapeless.frontend.state.values import Never, Static
from tapeless.ir.core import Body
from tapeless.ir.quiet import quiet
from tapeless.ir.types import Const


def run_block(ctx: Context, statements: Sequence[ast.stmt]) -> Flow:
    for k, s in enumerate(statements):
        with ctx.at(s):
            if isinstance(s, ast.If) and (may_leave([s]) or _raises(s)):
                return _run_if(ctx, s, statements[k + 1 :])
            result = run_statement(ctx, s)
        if result.kinds == {"next"}:
            continue
        if "next" not in result.kinds:
            return result
        rest = statements[k + 1 :]
        return guarded(ctx, result, lambda rest=rest: run_block(ctx, rest))  # type: ignore[misc]
    return NEXT


def _raises(s: ast.If) -> bool:
    return always_leaves(s.body) or (bool(s.orelse) and always_leaves(s.orelse))


@statement(ast.Pass)
def _pass(ctx: Context, s: ast.Pass) -> None:
    pass


@statement(ast.Expr)
def _expression(ctx: Context, s: ast.Expr) -> Flow | None:
    never = not isinstance(s.value, ast.Constant) and isinstance(evaluate(ctx, s.value), Never)
    return flow("raise") if never else left_by_call(ctx)


@statement(ast.Return)
def _return(ctx: Context, s: ast.Return) -> Flow:
    result = Static(None) if s.value is None else evaluate(ctx, s.value)
    if isinstance(result, Never):
        return flow("raise")
    ctx.bind(RETURN, result)
    ctx.returned = ctx.span
    return flow("return")


@statement(ast.Break)
def _break(ctx: Context, s: ast.Break) -> Flow:
    return flow("break")


@statement(ast.Continue)
def _continue(ctx: Context, s: ast.Continue) -> Flow:
    return flow("continue")


@statement(ast.With)
def _with(ctx: Context, s: ast.With) -> Flow:
    """np.errstate says which warnings are given: compiled code gives none."""
    for given in s.items:
        call = given.context_expr
        manager = evaluate(ctx, call.func) if isinstance(call, ast.Call) else None
        if manager != Static(np.errstate) or given.optional_vars is not None:
            with ctx.at(call):
                ctx.fail(
                    "TP101",
                    "'with' statements other than 'with np.errstate(...):' are not part of the language",
                    "write the block without it.",
                )
        assert isinstance(call, ast.Call)
        for value in (*call.args, *(k.value for k in call.keywords)):
            if evaluate(ctx, value) not in (Static("ignore"), Static("warn"), Static(None)):
                with ctx.at(value):
                    ctx.fail("TP112", "np.errstate ignores or warns here, and does nothing else", "test with 'if'.")
    return run_block(ctx, s.body)


# -- branches


@statement(ast.If)
def _run_if(ctx: Context, s: ast.If, rest: Sequence[ast.stmt] = ()) -> Flow:
    """An `if` with what follows it, which moves into the arm that falls through when the other one leaves."""
    if is_tested_before(s):
        with ctx.b.region() as stms:
            run_block(ctx, s.body)
        for stm in quiet(Body(tuple(stms), ())).stms:
            ctx.b.add(stm)
        return run_block(ctx, rest)
    with ctx.at(s.test):
        cond = truth(ctx, s.test)
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
