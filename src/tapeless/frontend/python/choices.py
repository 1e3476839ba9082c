"""`and`, `or` and `a if c else b`: only what is asked for is evaluated.

`truth` takes an expression of which nobody needs more than that; `conditional` two ways to make a value.
"""

from __future__ import annotations

import ast
from collections.abc import Callable
from functools import partial
from typing import Any

from tapeless.frontend.data.python_operators import truth_of
from tapeless.frontend.python.merge import Arm, join
from tapeless.frontend.python.rules import evaluate, expression
from tapeless.frontend.state.context import Context
from tapeless.frontend.state.values import Conflict, Never, Scalar, State, Value
from tapeless.ir.types import Atom, Const


def truth(ctx: Context, node: ast.expr) -> Atom:
    """Whether it is true. The parts of `stack and x > 0` may be of several types here."""
    if isinstance(node, ast.BoolOp):
        return truth_of(ctx, _decided(ctx, node.op, node.values, lambda part: Scalar(truth(ctx, part), True)))
    return truth_of(ctx, evaluate(ctx, node))


@expression(ast.BoolOp)
def _bool_op(ctx: Context, node: ast.BoolOp) -> Value:
    return _decided(ctx, node.op, node.values, partial(evaluate, ctx))


def _decided(ctx: Context, op: ast.boolop, nodes: list[ast.expr], value: Callable[[ast.expr], Value]) -> Value:
    """`and` and `or` evaluate the right side only when the left one does not decide."""
    first = value(nodes[0])
    if len(nodes) == 1:
        return first
    is_and = isinstance(op, ast.And)
    cond = truth_of(ctx, first)

    def others() -> Value:
        return _decided(ctx, op, nodes[1:], value)

    if isinstance(cond, Const):
        return others() if bool(cond.value) == is_and else first
    return conditional(ctx, cond, others, lambda: first) if is_and else conditional(ctx, cond, lambda: first, others)


@expression(ast.IfExp)
def _if_else(ctx: Context, node: ast.IfExp) -> Value:
    return conditional(ctx, truth(ctx, node.test), lambda: evaluate(ctx, node.body), lambda: evaluate(ctx, node.orelse))


def conditional(ctx: Context, cond: Atom, then: Any, orelse: Any) -> Value:
    """`a if c else b`: only the chosen side is evaluated."""
    if isinstance(cond, Const):
        result: Value = then() if cond.value else orelse()
        return result
    before: State = ctx.state
    arms: list[Arm] = []
    key = ctx.key(f"<value{ctx.number()}>")
    for make in (then, orelse):
        ctx.state = before.copy()
        with ctx.part() as stms:
            ctx.state.names[key] = found = make()
        arms.append(Arm(stms, ctx.state, isinstance(found, Never)))
    if not join(ctx, cond, before, (arms[0], arms[1])):
        return Never(None)
    value = ctx.state.names.pop(key)
    if isinstance(value, Conflict):
        ctx.fail("TP104", value.reason, value.hint)
    return value
