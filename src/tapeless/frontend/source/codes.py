"""Whether a function was compiled by Python from the source that was found for it.

Takes a function and the parsed file; compares code objects by `fingerprint`. A file may have been edited since it was
imported, or code may have been executed under the name of a file: then the source says something else than the
function.

Note [Code of the source]
Python is asked what it would make of the statement of the file that holds the function, with the imports, since calls
of functions of modules are compiled in another way than those of methods; and of the whole file where that is not
enough. One result must be the function's own code in all that decides what it does. Lines and columns do not: comments
may change. They are compared for lambdas only, of which a line may hold many. Loaders that rewrite what they load are
asked to do so again: pytest's, which puts code around `assert`, and those with a `source_to_code` of their own.
"""

from __future__ import annotations
import __future__

import ast
import bisect
import functools
import hashlib
import importlib.machinery
import sys
import types
import warnings
from collections.abc import Iterator, Sequence
from pathlib import Path
from typing import Any

FUTURE = functools.reduce(
    lambda flags, name: flags | getattr(__future__, name).compiler_flag, __future__.all_feature_names, 0
)


def fingerprint(code: types.CodeType, places: bool = False) -> str:
    """All that decides what a code object does, nested ones included; with `places` lines and columns too."""
    return hashlib.sha256(repr(_parts(code, places)).encode("utf-8", "surrogatepass")).hexdigest()


def _parts(code: types.CodeType, places: bool) -> tuple[Any, ...]:
    where = (code.co_firstlineno, code.co_linetable) if places else ()
    counts = (code.co_argcount, code.co_posonlyargcount, code.co_kwonlyargcount, code.co_flags)
    names = (code.co_name, code.co_names, code.co_varnames, code.co_freevars, code.co_cellvars)
    constants = [_constant(c, places) for c in code.co_consts]
    return (*counts, *names, code.co_code, code.co_exceptiontable, constants, *where)


def _constant(value: Any, places: bool) -> Any:
    kind = type(value)
    if kind is types.CodeType:
        return _parts(value, places)
    if kind is tuple:
        return ("tuple", *(_constant(v, places) for v in value))
    if kind is frozenset:  # its order differs from process to process
        return ("frozenset", *sorted(map(repr, value)))
    return (kind.__name__, value)


def made_from(function: types.FunctionType, tree: ast.Module, lines: Sequence[str], offset: int = 0) -> bool:
    """Whether the code of a function is what Python makes of this source. `offset` is added to its line numbers."""
    code = function.__code__
    places = code.co_name == "<lambda>"
    wanted = fingerprint(code, places)
    line = code.co_firstlineno - offset
    starts, imports = _outline(tree)
    place = bisect.bisect_right(starts, line)
    around = [s for s in tree.body[:place][-2:] if (s.end_lineno or line) >= line]  # two may share a line
    for statements in ([*imports, *around], tree.body):
        for module in _compiled(function, statements, lines):
            for found in _nested(module):
                here = (found.co_name, found.co_firstlineno) == (code.co_name, line)
                if here and fingerprint(found, places) == wanted:
                    return True
    return False


@functools.lru_cache(16)  # of the files that are being compiled now
def _outline(tree: ast.Module) -> tuple[list[int], list[ast.stmt]]:
    """The first lines of its statements, and its imports."""
    return [_first_line(s) for s in tree.body], _imports(tree.body)


def _imports(statements: list[ast.stmt]) -> list[ast.stmt]:
    """Those of a module, also in `if` and `try`, but not in functions and classes."""
    found: list[ast.stmt] = []
    for s in statements:
        if isinstance(s, (ast.Import, ast.ImportFrom)):
            found.append(s)
        elif not isinstance(s, (ast.FunctionDef, ast.AsyncFunctionDef, ast.ClassDef)):
            for part in ("body", "orelse", "finalbody"):
                found += _imports(getattr(s, part, []))
            for handler in getattr(s, "handlers", []):
                found += _imports(handler.body)
    return found


def _bytes(lines: Sequence[str]) -> bytes:
    return "\n".join((*lines, "")).encode("utf-8", "surrogatepass")


def _first_line(statement: ast.stmt) -> int:
    decorators: list[ast.expr] = getattr(statement, "decorator_list", [])
    return min([statement.lineno, *(d.lineno for d in decorators)])


def _nested(code: types.CodeType) -> Iterator[types.CodeType]:
    pending = [code]
    while pending:
        code = pending.pop()
        yield code
        pending += [c for c in code.co_consts if isinstance(c, types.CodeType)]


def nested_code(
    outer: types.CodeType, name: str, lines: tuple[int, int], columns: tuple[int, int]
) -> types.CodeType | None:
    """The code of a function that is written inside of another one, by its name and place; None if that is not certain."""

    def inside(code: types.CodeType) -> bool:
        start, end = (lines[0], columns[0]), (lines[1], columns[1])
        for line, end_line, column, end_column in code.co_positions():
            if None in (line, end_line, column, end_column) or (line, end_line, column, end_column) == (
                line,
                line,
                0,
                0,
            ):
                continue
            if (line, column) < start or (end_line, end_column) > end:
                return False
        return True

    found = [c for c in _nested(outer) if c.co_name == name and c.co_firstlineno == lines[0] and inside(c)]
    return found[0] if len(found) == 1 else None


def _compiled(
    function: types.FunctionType, statements: list[ast.stmt], lines: Sequence[str]
) -> Iterator[types.CodeType]:
    """The code of these statements, by Python and by what loaded the module."""
    file = function.__code__.co_filename
    flags = (function.__code__.co_flags & FUTURE) | ast.PyCF_ALLOW_TOP_LEVEL_AWAIT
    yield _by_python(ast.Module(statements, []), file, flags)
    loader = function.__globals__.get("__loader__")
    if type(loader).__name__ == "AssertionRewritingHook":
        yield _by_pytest(tuple(lines), file, flags, loader)
    own = getattr(type(loader), "source_to_code", None)
    if own is not None and own is not importlib.machinery.SourceFileLoader.source_to_code:
        yield loader.source_to_code(_bytes(lines), Path(file))  # type: ignore[union-attr]


def _by_python(tree: ast.Module, file: str, flags: int) -> types.CodeType:
    with warnings.catch_warnings():  # they were given when the file was imported
        warnings.simplefilter("ignore")
        made: types.CodeType = compile(tree, file, "exec", flags, dont_inherit=True)
    return made


@functools.lru_cache(4)
def _by_pytest(lines: tuple[str, ...], file: str, flags: int, loader: Any) -> types.CodeType:
    tree = ast.parse(_bytes(lines))
    with warnings.catch_warnings():
        warnings.simplefilter("ignore")
        sys.modules[type(loader).__module__].rewrite_asserts(tree, _bytes(lines), file, getattr(loader, "config", None))
    return _by_python(tree, file, flags)
