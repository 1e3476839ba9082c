"""The fence: which syntax belongs to the language.

Takes the tree of one function; raises `CompileError` TP101 with the place, the reason and what to write instead. What
gets past it is compiled or refused for its types, never half-supported.
"""

from __future__ import annotations

import ast
from collections.abc import Iterator

from tapeless.errors import CompileError
from tapeless.frontend.source.sources import Source, nodes

# node -> (what it is called, what to write instead)
REFUSED: dict[type[ast.AST], tuple[str, str]] = {
    ast.Try: ("'try' statements", "test the condition with 'if' before the operation."),
    ast.TryStar: ("'try' statements", "test the condition with 'if' before the operation."),
    ast.AsyncFunctionDef: ("'async' functions", "write an ordinary function."),
    ast.AsyncFor: ("'async for' loops", "write an ordinary loop."),
    ast.AsyncWith: ("'async with' statements", "write the block without it."),
    ast.Await: ("'await'", "write an ordinary function."),
    ast.Yield: ("'yield'", "fill an array and return it."),
    ast.YieldFrom: ("'yield from'", "fill an array and return it."),
    ast.ClassDef: ("class definitions", "define the class outside the function."),
    ast.Import: ("'import' statements", "import at the top of the file."),
    ast.ImportFrom: ("'import' statements", "import at the top of the file."),
    ast.Global: ("'global' statements", "pass the value as an argument and return it."),
    ast.Nonlocal: ("'nonlocal' statements", "pass the value as an argument and return it."),
    ast.Match: ("'match' statements with patterns other than constants", "use if and elif."),
}

LOOKED_AT = {*REFUSED, ast.FunctionDef}


def check_function(node: ast.FunctionDef | ast.Lambda, source: Source) -> None:
    for child in _inside(node):
        kind = type(child)
        if kind in REFUSED:
            name, instead = REFUSED[kind]
            verb = "are" if "s " in name or name.endswith("s") else "is"
            refuse(source, child, f"{name} {verb} not part of the language", instead)
        if isinstance(child, ast.FunctionDef) and child is not node and child.decorator_list:
            reason = "decorators inside a compiled function are not part of the language"
            refuse(source, child.decorator_list[0], reason, "define the decorated function outside.")


def refuse(source: Source, node: ast.AST, reason: str, hint: str) -> None:
    raise CompileError(reason, code="TP101", hint=hint, **source.place(node))


def _inside(node: ast.FunctionDef | ast.Lambda) -> Iterator[ast.AST]:
    """Where there is something to look at, in source order, so that the first offender is reported."""
    body = node.body if isinstance(node.body, list) else [node.body]
    for part in (node.args, *body):
        if not LOOKED_AT.isdisjoint(map(type, nodes(part))):
            yield from nodes(part)
