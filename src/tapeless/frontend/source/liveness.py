"""Which names matter where: assigned names, names read, names live at the head and after each loop.

Takes the statements of one function; gives `Liveness`. Purely syntactic and conservative: a name counts as live when
in doubt.
"""

from __future__ import annotations

import ast
from collections.abc import Sequence
from dataclasses import dataclass, field
from typing import TypeVar

from tapeless.frontend.source.sources import by_node, nodes, parts


@dataclass
class Liveness:
    """Per loop statement: the names live when an iteration starts, and those live after the loop."""

    head: dict[ast.stmt, frozenset[str]] = field(default_factory=dict)
    after: dict[ast.stmt, frozenset[str]] = field(default_factory=dict)


def analyse(function: ast.FunctionDef | ast.Lambda) -> Liveness:
    result = Liveness()
    if isinstance(function, ast.Lambda) or not any(map(_holds_loop, function.body)):
        return result
    _Analysis(_closures(function), result).block(function.body, frozenset(), frozenset(), frozenset())
    return result


def _holds_loop(s: ast.stmt) -> bool:
    return not isinstance(s, _SIMPLE) and any(isinstance(n, (ast.For, ast.While)) for n in nodes(s))


def _closures(function: ast.FunctionDef) -> dict[str, frozenset[str]]:
    """For each name that is bound to a nested function: the names that a call of it may read."""
    found: dict[str, frozenset[str]] = {}
    if not any(isinstance(n, (ast.FunctionDef, ast.Lambda)) and n is not function for n in nodes(function)):
        return found
    for node in nodes(function):
        if isinstance(node, ast.FunctionDef) and node is not function:
            found[node.name] = found.get(node.name, frozenset()) | reads(node)
        elif isinstance(node, ast.Assign) and any(isinstance(n, ast.Lambda) for n in nodes(node.value)):
            for target in assigned([node]):
                found[target] = found.get(target, frozenset()) | reads(node.value)
    changed = True
    while changed:  # a function may call another one
        changed = False
        for name, names in found.items():
            more = names.union(*(found[n] for n in names if n in found))
            if more != names:
                found[name], changed = more, True
    return found


@by_node  # asked for each statement by every loop around it
def reads(node: ast.AST) -> frozenset[str]:
    return frozenset(n.id for n in nodes(node) if isinstance(n, ast.Name) and isinstance(n.ctx, ast.Load))


def assigned(statements: Sequence[ast.stmt]) -> frozenset[str]:
    """Names bound by these statements, not those of nested functions."""
    return frozenset().union(*map(_assigned_by, statements))


_SIMPLE = (ast.Assign, ast.AugAssign, ast.AnnAssign, ast.Expr, ast.Return)  # without statements inside


@by_node
def _assigned_by(s: ast.stmt) -> frozenset[str]:
    if isinstance(s, ast.FunctionDef):
        return frozenset({s.name})
    below = nodes(s) if isinstance(s, _SIMPLE) else ()
    if not below or any(type(n) is ast.Lambda for n in below):
        return bound_in(s)
    return frozenset([n.id for n in below if type(n) is ast.Name and type(n.ctx) is ast.Store])


def bound_in(node: ast.AST) -> frozenset[str]:
    """Names that stand below `node` to be bound."""
    found: set[str] = set()
    left = [node]
    while left:
        n = left.pop()
        if isinstance(n, ast.Name):
            if isinstance(n.ctx, ast.Store):
                found.add(n.id)
        elif isinstance(n, ast.stmt) and n is not node:
            found |= _assigned_by(n)
        elif not isinstance(n, ast.Lambda):
            left += parts(n)
    return frozenset(found)


def written_through(statements: Sequence[ast.stmt]) -> frozenset[str]:
    """Names whose array may be written: targets of item and augmented assignment, and arguments of calls."""
    found: set[str] = set()
    for node in _inside(statements):
        if isinstance(node, ast.Subscript) and isinstance(node.ctx, ast.Store):
            found |= reads(node.value)
        elif isinstance(node, ast.AugAssign):
            found |= {n.id for n in ast.walk(node.target) if isinstance(n, ast.Name)}
    return frozenset(found)


def only_augmented(statements: Sequence[ast.stmt]) -> frozenset[str]:
    """Names that are targets of augmented assignments and of no plain ones."""
    nodes = _inside(statements)
    names = {n.target.id for n in nodes if isinstance(n, ast.AugAssign) and isinstance(n.target, ast.Name)}
    assignments = [n for n in nodes if isinstance(n, ast.Assign)]
    names.update(*(bound_in(n) for n in assignments if is_into(n)))
    return frozenset(names).difference(*(bound_in(n) for n in assignments if not is_into(n)))


S = TypeVar("S", ast.Assign, ast.AugAssign)


def put_into(s: S) -> S:
    """Marks an assignment as one of contents: names of arrays stay where they are, and the arrays are written. An
    augmented one is of all numbers in a container.
    """
    s.__dict__["tapeless.into"] = True
    return s


def tested_before(s: ast.If) -> ast.If:
    """Marks a block that goes where another one was: what it would test has been tested."""
    s.__dict__["tapeless.tested"] = True
    return s


def is_tested_before(s: ast.If) -> bool:
    return "tapeless.tested" in s.__dict__


def is_into(s: ast.Assign | ast.AugAssign) -> bool:
    return "tapeless.into" in s.__dict__


def _inside(statements: Sequence[ast.stmt]) -> list[ast.AST]:
    """What can bind or write: statements, and items that are written."""
    return [n for s in statements for n in _writers(s)]


@by_node
def _writers(s: ast.stmt) -> tuple[ast.AST, ...]:
    found: list[ast.AST] = [s]
    left: list[ast.AST] = parts(s)
    while left:
        node = left.pop()
        if isinstance(node, ast.stmt):
            found.extend(_writers(node))
            continue
        if isinstance(node, ast.Subscript) and isinstance(node.ctx, ast.Store):
            found.append(node)
        left += parts(node)
    return tuple(found)


_BRANCHING = (ast.Return, ast.Raise, ast.Break, ast.Continue, ast.If, ast.While, ast.For, ast.With)


class _Analysis:
    """Backwards over the statements. `on_break` and `on_continue`: the names live where these go."""

    def __init__(self, closures: dict[str, frozenset[str]], result: Liveness) -> None:
        self.closures, self.result = closures, result

    def reads(self, node: ast.AST) -> frozenset[str]:
        """Names that evaluating `node` may read, through functions that it mentions too."""
        direct = reads(node)
        if isinstance(node, ast.AugAssign) and isinstance(node.target, ast.Name):
            direct |= {node.target.id}
        if not self.closures:
            return direct
        return direct.union(*(self.closures[n] for n in direct if n in self.closures))

    def block(
        self, statements: Sequence[ast.stmt], out: frozenset[str], on_break: frozenset[str], on_continue: frozenset[str]
    ) -> frozenset[str]:
        """Names live before the statements, given those live after them."""
        live = set(out)
        for s in reversed(statements):
            if type(s) in _BRANCHING:
                live = set(self.statement(s, frozenset(live), on_break, on_continue))
            else:
                live -= _plain_targets(s)
                live |= self.reads(s)
        return frozenset(live)

    def statement(
        self, s: ast.stmt, out: frozenset[str], on_break: frozenset[str], on_continue: frozenset[str]
    ) -> frozenset[str]:
        """One after which control may go elsewhere than on."""
        match s:
            case ast.Return() | ast.Raise():
                return self.reads(s)
            case ast.Break():
                return on_break
            case ast.Continue():
                return on_continue
            case ast.If(test=test, body=body, orelse=orelse):
                then = self.block(body, out, on_break, on_continue)
                other = self.block(orelse, out, on_break, on_continue)
                return then | other | self.reads(test)
            case ast.While() | ast.For():
                return self.loop(s, out, on_break, on_continue)
            case ast.With(items=items, body=body):
                return self.block(body, out, on_break, on_continue).union(*(self.reads(i) for i in items))
        raise AssertionError(f"{type(s).__name__} is no branch")

    def loop(
        self, s: ast.While | ast.For, out: frozenset[str], on_break: frozenset[str], on_continue: frozenset[str]
    ) -> frozenset[str]:
        after = self.block(s.orelse, out, on_break, on_continue)
        self.result.after[s] = after | out
        test = self.reads(s.test) if isinstance(s, ast.While) else frozenset()
        bound: frozenset[str] = frozenset()
        if isinstance(s, ast.For):
            bound = bound_in(s.target)
        head = test | self.result.head.get(s, frozenset())  # what an earlier round of the loop around it found
        while True:  # to the fixed point: what the next iteration needs is live at the end of this one
            repeat = head | after | test
            new = (self.block(s.body, repeat, after | out, repeat) - bound) | test
            if new <= head:
                break
            head = head | new
        self.result.head[s] = head
        entry = self.reads(s.iter) if isinstance(s, ast.For) else frozenset()
        return head | after | entry


def _plain_targets(s: ast.stmt) -> frozenset[str]:
    """Names that the statement certainly binds."""
    if isinstance(s, ast.FunctionDef):
        return frozenset({s.name})
    if isinstance(s, (ast.Assign, ast.AnnAssign)):
        targets = s.targets if isinstance(s, ast.Assign) else [s.target]
        found: set[str] = set()
        for t in targets:
            for n in nodes(t):
                if isinstance(n, ast.Name) and isinstance(n.ctx, ast.Store):
                    found.add(n.id)
        return frozenset(found)
    return frozenset()


def always_leaves(statements: Sequence[ast.stmt]) -> bool:
    """Whether control never falls out of the end of the statements."""
    return any(_always_leaves(s) for s in statements)


@by_node  # asked again at every level of a nest of `if`s
def _always_leaves(s: ast.stmt) -> bool:
    match s:
        case ast.Return() | ast.Break() | ast.Continue() | ast.Raise():
            return True
        case ast.If(body=body, orelse=orelse):
            return bool(orelse) and always_leaves(body) and always_leaves(orelse)
        case ast.With(body=body):
            return always_leaves(body)
    return False


def may_leave(statements: Sequence[ast.stmt]) -> bool:
    """Whether a break, continue or return of the enclosing loop or function stands inside."""
    return any(_leaves(s) or _returns(s) for s in statements)


@by_node
def _returns(node: ast.AST) -> bool:
    match node:
        case ast.Return():
            return True
        case ast.FunctionDef() | ast.Lambda():
            return False
    return any(_returns(c) for c in _parts(node))


@by_node
def _leaves(node: ast.AST) -> bool:
    """Whether a break or continue of the loop around `node` stands in it."""
    match node:
        case ast.Break() | ast.Continue():
            return True
        case ast.FunctionDef() | ast.Lambda():
            return False
        case ast.For() | ast.While():  # what stands in its `else` leaves the loop around it
            return any(_leaves(c) for c in node.orelse)
    return any(_leaves(c) for c in _parts(node))


def _parts(node: ast.AST) -> list[ast.AST]:
    """The statements in a statement."""
    return [c for c in parts(node) if not isinstance(c, ast.expr)]
