"""Functions made of syntax trees, with the surroundings of the function that they stand for.

The front end compiles them from the tree they were made of, so messages point at what the user wrote.
"""

from __future__ import annotations

import ast
import copy
import types

from tapeless.frontend.source.sources import Source
from tapeless.reversible.dialect import support
from tapeless.reversible.dialect.syntax import HELPERS


def made(original: types.FunctionType, node: ast.FunctionDef, source: Source) -> types.FunctionType:
    """`node` as a function that sees what `original` does, and the helpers."""
    code = original.__code__
    free = dict(zip(code.co_freevars, original.__closure__ or (), strict=True))
    free[HELPERS] = types.CellType(support)
    outer = ast.FunctionDef(
        name="outer", decorator_list=[], returns=None, type_comment=None,
        args=ast.arguments([], [ast.arg(n) for n in free], None, [], [], None, []),
        body=[_at(node, source.offset), ast.Return(ast.Name(node.name, ast.Load()))],
    )  # fmt: skip
    module = ast.fix_missing_locations(ast.Module([outer], []))
    compiled = compile(module, code.co_filename, "exec", dont_inherit=True)
    inner = _inside(_inside(compiled, "outer"), node.name)
    closure = tuple(free[name] for name in inner.co_freevars)
    function = types.FunctionType(inner, original.__globals__, node.name, original.__defaults__, closure)
    function.__kwdefaults__ = original.__kwdefaults__
    function.__qualname__ = original.__qualname__.removesuffix(original.__name__) + node.name
    function.__module__, function.__doc__ = original.__module__, original.__doc__
    function.__tapeless_source__ = (source, node)  # type: ignore[attr-defined]
    return function


def _at(node: ast.FunctionDef, offset: int) -> ast.FunctionDef:
    """A copy with the lines of the file."""
    return ast.increment_lineno(copy.deepcopy(node), offset) if offset else node


def _inside(code: types.CodeType, name: str) -> types.CodeType:
    return next(c for c in code.co_consts if isinstance(c, types.CodeType) and c.co_name == name)
