"""The rules of expressions and statements, by their `ast` class: tables that the modules of the rules fill.

`evaluate` takes an expression and gives its value; `run_statement` takes a statement and says how it is left. Both look
the rule up; a class without one is not part of the language. Most names and numbers have nothing that could be refused:
for them nobody asks where they stand.
"""

from __future__ import annotations

import ast
from collections.abc import Callable, Iterable, Iterator
from typing import Any, NoReturn

from tapeless.frontend.data.iterables import items_of, of_unknown_length
from tapeless.frontend.data.nans import expect_numbers
from tapeless.frontend.python.flow import NEXT, Flow
from tapeless.frontend.state.context import Context
from tapeless.frontend.state.values import Array, Grown, RangeValue, Sequence_, Value, Zipped
from tapeless.ir.rules import Rules

EXPRESSIONS: Rules[type[ast.expr], Callable[[Context, Any], Value]] = Rules()
STATEMENTS: Rules[type[ast.stmt], Callable[[Context, Any], Flow | None]] = Rules()  # None: what follows runs
SIMPLE: Rules[type[ast.expr], Callable[[Context, Any], Value | None]] = Rules()  # where nothing can be refused, or None
expression, statement, simple = EXPRESSIONS.of, STATEMENTS.of, SIMPLE.of


def evaluate(ctx: Context, node: ast.expr) -> Value:
    known = SIMPLE[type(node)](ctx, node) if type(node) in SIMPLE else None
    if known is not None:
        return known
    rule = EXPRESSIONS.get(type(node), _unknown)
    span = ctx.span_of(node)
    if span is None:
        return rule(ctx, node)
    before = ctx.span
    ctx.span = ctx.b.span = span
    try:
        value = rule(ctx, node)
        if ctx.options.debug_nans:
            expect_numbers(ctx, node, value)
        return value
    finally:
        ctx.span = ctx.b.span = before


def _unknown(ctx: Context, node: ast.expr) -> NoReturn:
    ctx.fail("TP101", "this expression is not part of the language")


def elements(
    ctx: Context, nodes: Iterable[ast.expr], generator: Callable[[Context, Any], Value] | None = None
) -> Iterator[Value]:
    """Of a tuple, a list or a call, with those that `*` spreads. `generator`: what is done with generator expressions
    that are used at once.
    """
    for n in nodes:
        if isinstance(n, ast.GeneratorExp) and generator is not None:
            with ctx.at(n):
                yield generator(ctx, n)
            continue
        if not isinstance(n, ast.Starred):
            yield evaluate(ctx, n)
            continue
        with ctx.at(n):
            found = spread_items(ctx, evaluate(ctx, n.value))
        yield from found


def spread_items(ctx: Context, value: Value) -> list[Value]:
    """What `*value` stands for."""
    known = isinstance(value, Sequence_) and value.kind in ("tuple", "list", "namedtuple", "dict")
    if not known and (of_unknown_length(ctx, value) or not isinstance(value, (Array, Grown, RangeValue, Zipped))):
        ctx.fail("TP101", "'*' needs a tuple or a list of known length", "name each element.")
    return items_of(ctx, "'*'", value)


def run_statement(ctx: Context, s: ast.stmt) -> Flow:
    rule = STATEMENTS.get(type(s))
    if rule is None:
        ctx.fail("TP101", f"'{type(s).__name__.lower()}' statements are not part of the language")
    return rule(ctx, s) or NEXT
