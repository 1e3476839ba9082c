"""How a loop is left: `break`, `return` and where there is no room, as a number that goes around with it.

Used by `loop_statements`. Relies on `flow`.
"""

from __future__ import annotations

import ast
from collections.abc import Callable, Sequence

from tapeless.frontend.data import atoms
from tapeless.frontend.python.flow import CODES, FLOW, FULL, NEXT, RETURN, Flow, branch, guarded
from tapeless.frontend.python.unrolled_loops import run_else
from tapeless.frontend.python.worklists import may_be_full
from tapeless.frontend.state.context import Context
from tapeless.frontend.state.values import Scalar, Value
from tapeless.ir.types import Atom, Const, DType, i64


def still_running(ctx: Context, condition: Callable[[], Atom]) -> Atom:
    code = ctx.state.names[ctx.key(FLOW)]
    assert isinstance(code, Scalar)
    running = atoms.apply(ctx, "eq", code.atom, i64(0))
    return atoms.lazy_if(ctx, running, condition, lambda: Const(False, DType.bool), running.type)


def finish_iteration(ctx: Context, result: Flow, leaves: bool) -> None:
    if not leaves:
        return
    code = result.code
    if "continue" in result.kinds:
        if result.atom is None:
            code = i64(0)
        else:
            again = atoms.apply(ctx, "eq", code, i64(CODES["continue"]))
            code = atoms.select(ctx, again, i64(0), code)
    ctx.bind(FLOW, Scalar(code))


def after_loop(ctx: Context, s: ast.For | ast.While, leaves: bool, saved: Value | None) -> Flow:
    """What is left of the exits taken inside: a break ends the loop, a return goes on."""
    if saved is not None and ctx.key(RETURN) not in ctx.state.names:
        ctx.state.names[ctx.key(RETURN)] = saved
    if not leaves:
        return run_else(ctx, s)
    code = ctx.state.names.pop(ctx.key(FLOW))
    assert isinstance(code, Scalar)
    further = frozenset(({"return"} if _returns(s.body) else set()) | ({FULL} if may_be_full(ctx, s) else set()))
    broke = atoms.apply(ctx, "eq", code.atom, i64(CODES["break"]))
    if not _breaks(s.body):
        if _endless(s):
            return Flow(further, code.atom) if len(further) > 1 else Flow(further or frozenset({"return"}))
        if s.orelse:
            return _else_part(ctx, s, code.atom, further)
    if s.orelse:
        return branch(ctx, broke, lambda: NEXT, lambda: _else_part(ctx, s, code.atom, further))
    return Flow(further | {"next"}, atoms.select(ctx, broke, i64(0), code.atom)) if further else NEXT


def _else_part(ctx: Context, s: ast.For | ast.While, code: Atom, further: frozenset[str]) -> Flow:
    if not further:
        return run_else(ctx, s)
    return guarded(ctx, Flow(further | {"next"}, code), lambda: run_else(ctx, s))


def left_early(s: ast.For | ast.While) -> bool:
    """Whether the body may end the loop; a `continue` only ends an iteration."""
    return _breaks(s.body) or _returns(s.body)


def _endless(s: ast.For | ast.While) -> bool:
    return isinstance(s, ast.While) and isinstance(s.test, ast.Constant) and bool(s.test.value)


def _breaks(body: Sequence[ast.stmt]) -> bool:
    """Whether a `break` of this loop stands in its body; those in the `else` of inner loops are its own."""

    def visit(node: ast.AST) -> bool:
        match node:
            case ast.Break():
                return True
            case ast.FunctionDef() | ast.Lambda():
                return False
            case ast.For() | ast.While():
                return any(visit(c) for c in node.orelse)
            case _:
                return any(visit(c) for c in ast.iter_child_nodes(node))

    return any(visit(s) for s in body)


def _returns(body: Sequence[ast.stmt]) -> bool:
    def visit(node: ast.AST) -> bool:
        if isinstance(node, ast.Return):
            return True
        if isinstance(node, (ast.FunctionDef, ast.Lambda)):
            return False
        return any(visit(c) for c in ast.iter_child_nodes(node))

    return any(visit(s) for s in body)
