"""Steps backwards: the inverse of a reversible function is one, too.

`inverse` raises `InvertibilityError` for a branch or a loop whose second condition is not known. `undecided` finds it.
"""

from __future__ import annotations

import ast
from dataclasses import replace

from tapeless.reversible.dialect.tree import (
    INVERSE_OPERATORS,
    Ancilla,
    Block,
    Call,
    Computed,
    Exchange,
    For,
    If,
    Mapped,
    Move,
    Reversible,
    Rotate,
    Step,
    Update,
    While,
    all_steps,
)

SUFFIX = "_inverse"


def undecided(block: Block) -> If | While | Call | None:
    """The first step that cannot tell on the way back which way it came: a call, if what it calls cannot."""
    for s in all_steps(block):
        if isinstance(s, (If, While)) and s.after is None:
            return s
        if isinstance(s, Mapped):
            s = s.call
        if isinstance(s, Call) and s.called is not None and s.called.undecided is not None:
            return s
    return None


def why_undecided(step: If | While | Call) -> tuple[str, str]:
    """The reason, and what helps."""
    match step:
        case Call(called=called):
            return f"'{called.__name__}' has no inverse", f"look at its line {called.undecided.at.lineno}."
        case If():
            reason = "the branch changes its condition: its inverse needs a second one"
            return reason, "write if tp.branch(before, after):"
        case While():
            reason = "a loop ends when its condition does not hold any more: its inverse needs a second one"
            return reason, "write while tp.between(before, after):"


def inverse(function: Reversible) -> Reversible:
    name = function.node.name
    name = name.removesuffix(SUFFIX) if name.endswith(SUFFIX) else name + SUFFIX
    node = ast.FunctionDef(**{**dict(ast.iter_fields(function.node)), "name": name})
    return Reversible(ast.copy_location(node, function.node), function.doc, inverse_block(function.body))


def inverse_block(block: Block) -> Block:
    return tuple(inverse_step(s) for s in reversed(block))


def inverse_step(step: Step) -> Step:
    match step:
        case Update(op=op):
            return replace(step, op=INVERSE_OPERATORS[op])
        case Exchange(targets=targets, sources=sources):
            back = {ast.unparse(x): t for t, x in zip(targets, sources, strict=True)}
            return replace(step, sources=tuple(back[ast.unparse(t)] for t in targets))
        case Rotate(angle=ast.UnaryOp(op=ast.USub(), operand=angle)):
            return replace(step, angle=angle)
        case Rotate(angle=angle):
            return replace(step, angle=ast.copy_location(ast.UnaryOp(ast.USub(), angle), angle))
        case Call(inverse=backwards):
            return replace(step, inverse=not backwards)
        case Mapped(call=call):
            return replace(step, call=replace(call, inverse=not call.inverse))
        case Move(push=push):
            return replace(step, push=not push)
        case If(test=test, after=after, written=written):
            assert after is not None
            then, orelse = inverse_block(step.then), inverse_block(step.orelse)
            return replace(step, test=after, after=test, written=_swapped(written), then=then, orelse=orelse)
        case While(test=test, after=after, written=written):
            assert after is not None
            body = inverse_block(step.body)
            return replace(step, test=after, after=test, written=_swapped(written), body=body)
        case For(backwards=backwards, parallel=parallel):
            return replace(step, backwards=not backwards and not parallel, body=inverse_block(step.body))
        case Ancilla() | Computed():
            return replace(step, body=inverse_block(step.body))


def _swapped(written: ast.expr) -> ast.expr:
    """`tp.branch(before, after)` with its conditions the other way round; one that serves both ways stays."""
    if isinstance(written, ast.Call) and len(written.args) == 2 and not written.keywords:
        return ast.copy_location(ast.Call(written.func, written.args[::-1], []), written)
    return written
