"""Loops over items that are known: one copy of the body for each.

Takes the statement and the items; `loop_statements` says which loops are unrolled. What a loop goes over must not change before
it has come to it (`references.Watched`).
"""

from __future__ import annotations

import ast
from collections.abc import Sequence

from tapeless.frontend.data import atoms, scalars
from tapeless.frontend.python.assignment import assign
from tapeless.frontend.python.flow import CODES, NEXT, Flow, branch, guarded
from tapeless.frontend.python.references import Watched
from tapeless.frontend.python.statements import run_block
from tapeless.frontend.state.code_copies import counted, refuse_beyond
from tapeless.frontend.state.context import Context
from tapeless.frontend.state.values import Sequence_, Static, Value, Zipped, weak
from tapeless.ir.types import Const, i64


def zipped_items(ctx: Context, value: Zipped) -> list[Value]:
    rows: list[Value] = []
    parts = [p.items for p in value.parts if isinstance(p, Sequence_)]
    first = value.start
    for k, items in enumerate(zip(*parts, strict=False)):
        if first is not None and isinstance(first.atom, Const) and abs(int(first.atom.value.real)) < 2**62:
            rows.append(Sequence_((weak(int(first.atom.value.real) + k), *items)))
        elif first is not None:
            rows.append(Sequence_((scalars.binary(ctx, "Add", first, weak(k)), *items)))
        else:
            rows.append(Sequence_(tuple(items)))
    return rows


def unrolled(ctx: Context, s: ast.For, items: Sequence[Value], reason: str, over: Value = Static(None)) -> Flow:  # noqa: B008
    """One copy of the body for each item. A `break` in its `else` is not one of this loop. `reason`: why it is not
    rolled.
    """
    result = _copies(ctx, s, items, reason, Watched(ctx, over))
    if not s.orelse:
        return _without_break(ctx, result)
    if "break" not in result.kinds:
        return guarded(ctx, result, lambda: run_else(ctx, s))
    kinds = result.kinds - {"break"}
    if not kinds:
        return NEXT
    others = Flow(kinds, result.code if len(kinds) > 1 else None)
    broke = atoms.apply(ctx, "eq", result.code, i64(CODES["break"]))
    return branch(ctx, broke, lambda: NEXT, lambda: guarded(ctx, others, lambda: run_else(ctx, s)))


def run_else(ctx: Context, s: ast.For | ast.While) -> Flow:
    """What comes after a loop that was not left by `break`: what it went over may change from here on."""
    if s in ctx.held:
        ctx.state.names.pop(ctx.held[s], None)
    return run_block(ctx, s.orelse)


def _copies(ctx: Context, s: ast.For, items: Sequence[Value], reason: str, over: Watched, done: int = 0) -> Flow:
    result = NEXT
    while done < len(items) and result == NEXT:
        over.check(ctx, done)
        before = ctx.b.made
        with counted(ctx, done > 0):
            result = _one_copy(ctx, s, items[done])
        done += 1
        if "next" in result.kinds:
            refuse_beyond(ctx, "this loop", len(items), done, ctx.b.made - before, reason)
    if done == len(items) or "next" not in result.kinds:
        return result
    return guarded(ctx, result, lambda: _copies(ctx, s, items, reason, over, done))


def _one_copy(ctx: Context, s: ast.For, item: Value) -> Flow:
    with ctx.at(s.target):
        assign(ctx, s.target, item)
    result = run_block(ctx, s.body)
    if "continue" not in result.kinds:
        return result
    kinds = (result.kinds - {"continue"}) | {"next"}
    if result.atom is None or len(kinds) == 1:
        return Flow(kinds)
    is_continue = atoms.apply(ctx, "eq", result.atom, i64(CODES["continue"]))
    return Flow(kinds, atoms.select(ctx, is_continue, i64(0), result.atom))


def _without_break(ctx: Context, result: Flow) -> Flow:
    if "break" not in result.kinds:
        return result
    kinds = (result.kinds - {"break"}) | {"next"}
    if len(kinds) == 1:
        return Flow(kinds)
    broke = atoms.apply(ctx, "eq", result.code, i64(CODES["break"]))
    return Flow(kinds, atoms.select(ctx, broke, i64(0), result.code))
