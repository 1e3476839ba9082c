"""Finding the syntax tree of a Python function.

Takes a function object; gives its `ast` node with file and line offsets. Relies on `inspect` and code positions, so
that several lambdas on one line, lambdas in calls and functions of notebooks or executed files are told apart.
"""

from __future__ import annotations

import ast
import functools
import hashlib
import inspect
import linecache
import tokenize
import types
from collections.abc import Callable, Hashable
from dataclasses import dataclass, field
from typing import Any, Concatenate, ParamSpec, TypeVar

from tapeless.errors import CompileError
from tapeless.frontend.source.codes import made_from
from tapeless.frontend.source.typed import PROMPT, typed_block
from tapeless.ir.span import Span

PLACED = (ast.expr, ast.stmt)
T = TypeVar("T")
K = TypeVar("K", bound=Hashable)
N = TypeVar("N", bound=ast.AST)
P = ParamSpec("P")


@dataclass(frozen=True, eq=False)
class Source:
    """A parsed file (or the block of it that was found). `offset` is added to line numbers of the tree."""

    file: str
    tree: ast.Module
    lines: tuple[str, ...]
    offset: int = 0
    indent: int = 0
    written: ast.Module | None = None  # the tree as it was parsed, where it was changed
    digest: str = ""  # of the text of a whole file, for telling whether it is still the same
    checked: set[types.CodeType] = field(default_factory=set)  # what was found to be compiled from it
    over: dict[int, list[ast.FunctionDef | ast.Lambda]] = field(default_factory=dict)  # what `functions` has found

    def span(self, node: ast.AST) -> Span:
        """Kept in the node, as by `by_node`."""
        known: dict[str, Span] = node.__dict__
        if "tapeless.span" not in known:
            known["tapeless.span"] = self._span(node)
        return known["tapeless.span"]

    def _span(self, node: ast.AST) -> Span:
        if self.is_ascii and isinstance(node, PLACED):
            first, last = node.lineno + self.offset, (node.end_lineno or node.lineno) + self.offset
            return Span(self.file, first, node.col_offset + self.indent, last, (node.end_col_offset or 0) + self.indent)
        line = getattr(node, "lineno", 1) + self.offset
        end = getattr(node, "end_lineno", line) or line
        return Span(
            self.file,
            line,
            self._column(line - self.offset, getattr(node, "col_offset", 0)) + self.indent,
            end + self.offset,
            self._column(end, getattr(node, "end_col_offset", 0) or 0) + self.indent,
        )

    def place(self, node: ast.AST) -> dict[str, Any]:
        """Where a node is, as errors take it."""
        span = self.span(node)
        return {
            "file": span.file, "line": span.line, "column": span.column, "end_line": span.end_line,
            "end_column": span.end_column, "source": self.text(span.line) or None,
        }  # fmt: skip

    @functools.cached_property
    def is_ascii(self) -> bool:
        return all(map(str.isascii, self.lines))

    def _column(self, line: int, count: int) -> int:
        """Python counts bytes."""
        text = self.lines[line - 1] if 0 < line <= len(self.lines) else ""
        return count if text.isascii() else len(text.encode()[:count].decode(errors="ignore"))

    def functions(self, line: int) -> list[ast.FunctionDef | ast.Lambda]:
        """Those that reach over a line of the file."""
        if line not in self.over:
            self.over[line] = self._functions(line)
        return self.over[line]

    def _functions(self, line: int) -> list[ast.FunctionDef | ast.Lambda]:
        found: list[ast.FunctionDef | ast.Lambda] = []
        pending: list[ast.AST] = [self.tree]
        while pending:
            node = pending.pop()
            if isinstance(node, (ast.FunctionDef, ast.Lambda)):
                found.append(node)
            for child in parts(node):
                if not isinstance(child, (ast.stmt, ast.expr)) or _reaches(child, line - self.offset):
                    pending.append(child)
        return found

    def text(self, line: int) -> str:
        k = line - 1 - self.offset
        return " " * self.indent + self.lines[k] if 0 <= k < len(self.lines) else ""


def _reaches(node: ast.stmt | ast.expr, line: int) -> bool:
    decorators = node.decorator_list if isinstance(node, (ast.FunctionDef, ast.ClassDef, ast.AsyncFunctionDef)) else []
    first = min([node.lineno, *(d.lineno for d in decorators)])
    return first <= line <= (node.end_lineno or line)


def by_node(function: Callable[Concatenate[N, P], T]) -> Callable[Concatenate[N, P], T]:
    """Asks once for each node of a syntax tree: the answer is kept in the node, and goes with it."""
    name = f"{function.__module__}.{function.__qualname__}"

    @functools.wraps(function)
    def kept(node: N, /, *args: P.args, **kwargs: P.kwargs) -> T:
        known: dict[str, T] = node.__dict__
        if name not in known:
            known[name] = function(node, *args, **kwargs)
        return known[name]

    return kept


_WITHOUT_PARTS = {"ctx", "op", "ops"}  # fields whose nodes only say what kind of expression it is


class _Fields(dict[type[ast.AST], tuple[str, ...]]):
    """The fields of a kind of node that may hold statements or expressions."""

    def __missing__(self, kind: type[ast.AST]) -> tuple[str, ...]:
        leaf = kind in (ast.Name, ast.Constant)
        found = self[kind] = () if leaf else tuple(f for f in kind._fields if f not in _WITHOUT_PARTS)
        return found


_FIELDS = _Fields()


def parts(node: ast.AST) -> list[ast.AST]:
    """The nodes right below, in the order of the source, contexts and operators apart. Half the time of `ast`'s."""
    found: list[ast.AST] = []
    for name in _FIELDS[type(node)]:
        value = getattr(node, name, None)
        if isinstance(value, ast.AST):
            found.append(value)
        elif isinstance(value, list):
            found += [item for item in value if isinstance(item, ast.AST)]
    return found


@by_node  # loops ask again and again for the same statements
def nodes(node: ast.AST) -> tuple[ast.AST, ...]:
    """The node and all below it, in the order of the source."""
    found: list[ast.AST] = []
    left = [node]
    while left:
        node = left.pop()
        found.append(node)
        left += reversed(parts(node))
    return tuple(found)


def _tree(text: str) -> ast.Module:
    flags = ast.PyCF_ONLY_AST | ast.PyCF_ALLOW_TOP_LEVEL_AWAIT  # in notebooks
    tree: ast.Module = compile(text, "<source>", "exec", flags, dont_inherit=True)
    return tree


def _parsed(text: str) -> tuple[ast.Module, ast.Module | None]:
    """The tree to compile, and what it was before if that is another."""
    if ":=" not in text and "match " not in text:
        return _tree(text), None
    return _Conditions().visit(_tree(text)), _tree(text)


class _Conditions(ast.NodeTransformer):
    """What is written otherwise: `while (x := f(x)) > 0:` binds a name before each iteration, as a first statement does that
    leaves the loop; `match` with constants is a chain of `if`s.
    """

    def visit_Match(self, node: ast.Match) -> ast.AST | list[ast.stmt]:
        self.generic_visit(node)
        name = f"<match {node.lineno}>"
        rest: list[ast.stmt] = []
        for case in reversed(node.cases):
            body = case.body
            test = _constant_test(case.pattern, ast.Name(name, ast.Load()))
            if test is None and not (isinstance(case.pattern, ast.MatchAs) and case.pattern.pattern is None):
                return node  # refused by the fence
            if test is not None:
                tests = [test] if case.guard is None else [test, case.guard]
                rest = [ast.If(tests[0] if len(tests) == 1 else ast.BoolOp(ast.And(), tests), body, rest)]
                continue
            rest = body if case.guard is None else [ast.If(case.guard, body, rest)]
            if isinstance(case.pattern, ast.MatchAs) and case.pattern.name is not None:
                target = ast.Name(case.pattern.name, ast.Store())
                rest = [ast.Assign([target], ast.Name(name, ast.Load())), *rest]
        first = ast.Assign([ast.Name(name, ast.Store())], node.subject)
        for made in (first, *rest):
            for n in ast.walk(made):
                if not hasattr(n, "lineno"):
                    ast.copy_location(n, node)
        return [first, *rest]

    def visit_While(self, node: ast.While) -> ast.AST:
        self.generic_visit(node)
        leaves = any(isinstance(n, (ast.Break, ast.Continue)) for s in node.orelse for n in ast.walk(s))
        if leaves or not any(isinstance(n, ast.NamedExpr) for n in ast.walk(node.test)):
            return node
        test = ast.copy_location(ast.UnaryOp(ast.Not(), node.test), node.test)
        leave = ast.copy_location(
            ast.If(test, [*node.orelse, ast.copy_location(ast.Break(), node.test)], []), node.test
        )
        always = ast.copy_location(ast.Constant(True), node.test)
        return ast.copy_location(ast.While(always, [leave, *node.body], []), node)


def _constant_test(pattern: ast.pattern, subject: ast.expr) -> ast.expr | None:
    """The test of a pattern of constants; None for one that always fits, and for others."""
    match pattern:
        case ast.MatchValue(value=value):
            return ast.Compare(subject, [ast.Eq()], [value])
        case ast.MatchSingleton(value=value):
            return ast.Compare(subject, [ast.Is()], [ast.Constant(value)])
        case ast.MatchOr(patterns=patterns):
            tests = [t for p in patterns if (t := _constant_test(p, subject)) is not None]
            return ast.BoolOp(ast.Or(), tests) if len(tests) == len(patterns) else None
    return None


KEPT = 64  # files; the cells of a notebook are files too
_files: dict[tuple[str, str], Source] = {}
_digests: dict[str, tuple[list[str], str]] = {}


def _keep(table: dict[K, T], key: K, value: T) -> T:
    """The last ones are kept."""
    table.pop(key, None)
    table[key] = value
    for oldest in list(table)[:-KEPT]:
        table.pop(oldest, None)
    return value


def digest_of(function: types.FunctionType) -> str:
    """The digest that the `Source` of this function has if its file is parsed now; empty without a file."""
    lines = _lines(function)
    return _digest(function.__code__.co_filename, lines) if lines else ""


def _lines(function: types.FunctionType) -> list[str]:
    """The file that a function is in, as it is now."""
    file = function.__code__.co_filename
    linecache.checkcache(file)
    return linecache.getlines(file, function.__globals__)


def _digest(file: str, lines: list[str]) -> str:
    known = _digests.get(file)
    if known is None or known[0] is not lines:  # linecache makes a new list when the file has changed
        digest = hashlib.sha256("".join(lines).encode("utf-8", "surrogatepass")).hexdigest()
        known = _keep(_digests, file, (lines, digest))
    return known[1]


def find(function: types.FunctionType) -> tuple[Source, ast.FunctionDef | ast.Lambda]:
    """The source and the node of a function; `CompileError` TP107 when it cannot be found."""
    known: tuple[Source, ast.FunctionDef] | None = getattr(function, "__tapeless_source__", None)
    if known is not None:  # it was made from this tree, not written
        return known
    code = function.__code__
    source = _parse(function)
    if code.co_flags & (inspect.CO_COROUTINE | inspect.CO_ASYNC_GENERATOR):
        line = code.co_firstlineno
        while source.text(line).lstrip().startswith("@"):
            line += 1
        text = source.text(line)
        raise CompileError(
            "'async' functions are not part of the language", code="TP101", hint="write an ordinary function.",
            file=code.co_filename, line=line, column=len(text) - len(text.lstrip()), end_column=len(text),
            source=text or None,
        )  # fmt: skip
    wanted = ast.Lambda if code.co_name == "<lambda>" else ast.FunctionDef
    found = [n for n in source.functions(code.co_firstlineno) if isinstance(n, wanted) and _matches(n, code, source)]
    if len(found) > 1:  # lambdas on one line: the columns of the code object decide
        exact = [n for n in found if _same_place(n, code, source)]
        found = exact or found
    if len(found) != 1 or not _is_its_source(source, function):
        where = f"{code.co_filename}, line {code.co_firstlineno}"
        if not source.digest:
            raise CompileError(f"the source of '{function.__qualname__}' cannot be found in {where}", code="TP107")
        raise CompileError(
            f"'{function.__qualname__}' is not what is written in {where}: the file has been edited since, or the function"
            " was made elsewhere",
            code="TP107",
            hint="import the file again (importlib.reload, or a new process); .python runs the function as it is.",
        )
    return source, found[0]


def _is_its_source(source: Source, function: types.FunctionType) -> bool:
    """Note [Code of the source] in `frontend/source/codes.py`."""
    code = function.__code__
    if code not in source.checked:
        if not made_from(function, source.written or source.tree, source.lines, source.offset):
            return False
        source.checked.add(code)
    return True


def _parse(function: types.FunctionType) -> Source:
    """The whole file when it is there and parses, else the block that `inspect` finds."""
    code = function.__code__
    lines = _lines(function)
    if lines:
        digest = _digest(code.co_filename, lines)
        key = (code.co_filename, digest)
        found = _files.get(key)
        if found is None:
            try:
                text = tuple(x.rstrip("\n") for x in lines)
                tree, written = _parsed("".join(lines))
                found = Source(code.co_filename, tree, text, written=written, digest=digest)
            except (SyntaxError, ValueError):  # half an edit, or a notebook cell with magics
                pass
        if found is not None:
            return _keep(_files, key, found)
    try:
        block, first = inspect.getsourcelines(function)
    except (OSError, TypeError, SyntaxError, IndexError, tokenize.TokenError):
        typed = typed_block(function)
        if typed is not None:
            tree, written = _parsed("\n".join(typed))
            return Source(code.co_filename, tree, tuple(typed), written=written)
        hint = "put the function into a file or a notebook cell; code given to exec() as a string has no source."
        if code.co_filename == PROMPT:
            hint = "put the function into a file or a notebook cell, or use Python 3.13: its source is not in the history of the prompt."
        raise CompileError(
            f"the source of '{function.__qualname__}' is not available", code="TP107", hint=hint
        ) from None
    indent = len(block[0]) - len(block[0].lstrip())
    dedented = [x[indent:] if x[:indent].isspace() or not indent else x for x in block]
    try:
        tree, written = _parsed("".join(dedented))
    except (SyntaxError, ValueError):
        raise CompileError(
            f"the source of '{function.__qualname__}' cannot be parsed on its own", code="TP107", file=code.co_filename,
            line=first, hint="give the lambda a line of its own, or use def.",
        ) from None  # fmt: skip
    return Source(code.co_filename, tree, tuple(x.rstrip("\n") for x in dedented), first - 1, indent, written)


def _matches(node: ast.FunctionDef | ast.Lambda, code: types.CodeType, source: Source) -> bool:
    if isinstance(node, ast.FunctionDef):
        if node.name != code.co_name:
            return False
        first = min([node.lineno, *(d.lineno for d in node.decorator_list)]) + source.offset
        return first == code.co_firstlineno
    arguments = [a.arg for a in (*node.args.posonlyargs, *node.args.args, *node.args.kwonlyargs)]
    count = code.co_argcount + code.co_kwonlyargcount
    return node.lineno + source.offset == code.co_firstlineno and arguments == list(code.co_varnames[:count])


def _same_place(node: ast.FunctionDef | ast.Lambda, code: types.CodeType, source: Source) -> bool:
    """Whether the positions of the code object lie in the body of the node, and reach its end."""
    body = node.body if isinstance(node, ast.Lambda) else node
    assert isinstance(body, ast.AST)
    start = (getattr(body, "lineno", 0) + source.offset, getattr(body, "col_offset", 0) + source.indent)
    end = (getattr(body, "end_lineno", 0) + source.offset, getattr(body, "end_col_offset", 0) + source.indent)
    places = [p for p in code.co_positions() if p[0] is not None and p[2] is not None and p[1] is not None]
    spots = [((p[0], p[2]), (p[1], p[3])) for p in places if (p[2], p[3]) != (0, 0)]
    if not spots:
        return False
    low, high = min(s[0] for s in spots), max(s[1] for s in spots)
    return (low, high) == (start, end)
