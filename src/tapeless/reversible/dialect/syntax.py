"""Python's syntax trees, as the forms of reversible functions are made of them: names, places, calls of helpers.

What is made keeps the place of what it was made from, for messages.
"""

from __future__ import annotations

import ast

HELPERS = "_tapeless"
Statements = list[ast.stmt]


def defined(node: ast.FunctionDef, name: str, args: ast.arguments, body: Statements) -> ast.FunctionDef:
    """A function in the place of another."""
    new = ast.FunctionDef(name=name, args=args, body=body, decorator_list=[], returns=None, type_comment=None)
    return placed(new, node)  # type: ignore[return-value]


def placed(new: ast.stmt, at: ast.stmt) -> ast.stmt:
    """With the place of another statement, wherever a part has none of its own: that of its head, if it has a body."""
    head = _head(at)
    for n in ast.walk(new):
        if isinstance(n, (ast.expr, ast.stmt, ast.arg, ast.keyword)) and not hasattr(n, "lineno"):
            ast.copy_location(n, head)
    return new


def _head(at: ast.stmt) -> ast.AST:
    match at:
        case ast.If(test=test) | ast.While(test=test):
            return test
        case ast.For(iter=items):
            return items
        case ast.With(items=[item, *_]):
            return item.context_expr
        case _:
            return at


def load(name: str) -> ast.expr:
    return ast.Name(name, ast.Load())


def store(name: str) -> ast.expr:
    return ast.Name(name, ast.Store())


def as_store(place: ast.expr) -> ast.expr:
    return _in_context(place, ast.Store())


def as_load(place: ast.expr) -> ast.expr:
    return _in_context(place, ast.Load())


def _in_context(place: ast.expr, ctx: ast.expr_context) -> ast.expr:
    match place:
        case ast.Name(id=name):
            new: ast.expr = ast.Name(name, ctx)
        case ast.Subscript(value=base, slice=index):
            new = ast.Subscript(as_load(base), index, ctx)
        case ast.Attribute(value=base, attr=name):
            new = ast.Attribute(as_load(base), name, ctx)
        case _:
            return place
    return ast.copy_location(new, place)


def helper(name: str, *args: ast.expr) -> ast.expr:
    return ast.Call(ast.Attribute(load(HELPERS), name, ast.Load()), list(args), [])
