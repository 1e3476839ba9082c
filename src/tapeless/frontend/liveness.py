"""Which names matter where: assigned names, names read, names live at the head and after each loop.

Takes the statements of one function; gives `Liveness`. Purely syntactic and conservative: a name counts as live when in doubt.
"""

from __future__ import annotations

import ast
from collections.abc import Sequence
from dataclasses import dataclass, field


@dataclass
class Liveness:
    """Per loop statement: the names live when an iteration starts, and those live after the loop."""

    head: dict[ast.stmt, frozenset[str]] = field(default_factory=dict)
    after: dict[ast.stmt, frozenset[str]] = field(default_factory=dict)


def analyse(function: ast.FunctionDef | ast.Lambda) -> Liveness:
    result = Liveness()
    if isinstance(function, ast.Lambda):
        return result
    captured = frozenset().union(*(reads(n) for n in ast.walk(function) if n is not function and _is_scope(n)))
    _block(function.body, captured, captured, captured, captured, result)
    return result


def _is_scope(node: ast.AST) -> bool:
    return isinstance(node, ast.FunctionDef | ast.Lambda)


def reads(node: ast.AST) -> frozenset[str]:
    return frozenset(
        n.id for n in ast.walk(node) if isinstance(n, ast.Name) and isinstance(n.ctx, ast.Load)
    )


def assigned(statements: Sequence[ast.stmt]) -> frozenset[str]:
    """Names bound by these statements, not those of nested functions."""
    found: set[str] = set()

    def visit(node: ast.AST) -> None:
        if isinstance(node, ast.FunctionDef):
            found.add(node.name)
            return
        if isinstance(node, ast.Lambda):
            return
        if isinstance(node, ast.Name) and isinstance(node.ctx, ast.Store):
            found.add(node.id)
        for child in ast.iter_child_nodes(node):
            visit(child)

    for s in statements:
        visit(s)
    return frozenset(found)


def written_through(statements: Sequence[ast.stmt]) -> frozenset[str]:
    """Names whose array may be written: targets of item and augmented assignment, and arguments of calls."""
    found: set[str] = set()
    for s in statements:
        for node in ast.walk(s):
            if isinstance(node, ast.Subscript) and isinstance(node.ctx, ast.Store):
                found |= reads(node.value)
            elif isinstance(node, ast.AugAssign):
                found |= {n.id for n in ast.walk(node.target) if isinstance(n, ast.Name)}
    return frozenset(found)


def _block(
    statements: Sequence[ast.stmt],
    out: frozenset[str],
    on_break: frozenset[str],
    on_continue: frozenset[str],
    captured: frozenset[str],
    result: Liveness,
) -> frozenset[str]:
    """Names live before the statements, given those live after them."""
    live = out
    for s in reversed(statements):
        live = _statement(s, live, on_break, on_continue, captured, result)
    return live


def _statement(
    s: ast.stmt,
    out: frozenset[str],
    on_break: frozenset[str],
    on_continue: frozenset[str],
    captured: frozenset[str],
    result: Liveness,
) -> frozenset[str]:
    match s:
        case ast.Return() | ast.Raise():
            return reads(s) | captured
        case ast.Break():
            return on_break
        case ast.Continue():
            return on_continue
        case ast.If(test=test, body=body, orelse=orelse):
            then = _block(body, out, on_break, on_continue, captured, result)
            other = _block(orelse, out, on_break, on_continue, captured, result)
            return then | other | reads(test)
        case ast.While() | ast.For():
            after = _block(s.orelse, out, on_break, on_continue, captured, result)
            result.after[s] = after | out
            test = reads(s.test) if isinstance(s, ast.While) else frozenset()
            bound = assigned([ast.Assign(targets=[s.target], value=ast.Constant(0))]) if isinstance(s, ast.For) else frozenset()
            head = test
            while True:  # to the fixed point: what the next iteration needs is live at the end of this one
                repeat = head | after | test
                new = _block(s.body, repeat, after | out, repeat, captured, result)
                new = (new - bound) | test
                if new <= head:
                    break
                head = head | new
            result.head[s] = head
            entry = reads(s.iter) if isinstance(s, ast.For) else frozenset()
            return head | after | entry
        case ast.FunctionDef():
            return (out - {s.name}) | reads(s)
        case ast.AugAssign(target=ast.Name(id=name)):
            return out | reads(s.value) | {name}
        case _:
            return (out - _plain_targets(s)) | reads(s)


def _plain_targets(s: ast.stmt) -> frozenset[str]:
    """Names that the statement certainly binds."""
    if isinstance(s, ast.Assign | ast.AnnAssign):
        targets = s.targets if isinstance(s, ast.Assign) else [s.target]
        found: set[str] = set()
        for t in targets:
            for n in ast.walk(t):
                if isinstance(n, ast.Name) and isinstance(n.ctx, ast.Store):
                    found.add(n.id)
        return frozenset(found)
    return frozenset()


def always_leaves(statements: Sequence[ast.stmt]) -> bool:
    """Whether control never falls out of the end of the statements."""
    for s in statements:
        match s:
            case ast.Return() | ast.Break() | ast.Continue() | ast.Raise():
                return True
            case ast.If(body=body, orelse=orelse) if orelse and always_leaves(body) and always_leaves(orelse):
                return True
            case _:
                pass
    return False


def may_leave(statements: Sequence[ast.stmt]) -> bool:
    """Whether a break, continue or return of the enclosing loop or function stands inside."""

    def visit(node: ast.AST, inside_loop: bool) -> bool:
        match node:
            case ast.Return():
                return True
            case ast.Break() | ast.Continue():
                return not inside_loop
            case ast.FunctionDef() | ast.Lambda():
                return False
            case ast.For() | ast.While():
                return any(visit(c, True) for c in ast.iter_child_nodes(node))
            case _:
                return any(visit(c, inside_loop) for c in ast.iter_child_nodes(node))

    return any(visit(s, False) for s in statements)
