"""What a reversible function is made of: steps, each of which can be undone.

Expressions stay `ast`. Every step knows the statement it was written as (`at`), for messages: those of an inverse, too.
"""

from __future__ import annotations

import ast
from collections.abc import Iterator
from dataclasses import dataclass
from typing import Any

from tapeless.reversible.dialect.places import root_of


@dataclass(frozen=True)
class Update:
    """`target += value`, with one of the operators of `INVERSE_OPERATORS`."""

    at: ast.stmt
    target: ast.expr
    op: type[ast.operator]
    value: ast.expr


INVERSE_OPERATORS: dict[type[ast.operator], type[ast.operator]] = {
    ast.Add: ast.Sub,
    ast.Sub: ast.Add,
    ast.BitXor: ast.BitXor,
    ast.Mult: ast.Div,
    ast.Div: ast.Mult,
}


@dataclass(frozen=True)
class Exchange:
    """`a, b = b, a`: each target gets the source at its place. The sources are the targets in another order."""

    at: ast.stmt
    targets: tuple[ast.expr, ...]
    sources: tuple[ast.expr, ...]


@dataclass(frozen=True)
class Rotate:
    """`a, b = tp.rot(a, b, angle)`; `rot` is the function as it was written."""

    at: ast.stmt
    rot: ast.expr
    targets: tuple[ast.expr, ast.expr]
    angle: ast.expr


@dataclass(frozen=True)
class Call:
    """`a, b = f(a, b, k=c)`; `bare` ones were written without the targets."""

    at: ast.stmt
    function: ast.expr
    called: Any  # the object that it is; None for a keyword parameter, which shows when it is called
    args: tuple[ast.expr, ...]
    keywords: tuple[ast.keyword, ...]
    inverse: bool
    bare: bool


@dataclass(frozen=True)
class Mapped:
    """`xs, ys = tp.map(f, xs, ys)`: the call for each row, in no order."""

    at: ast.stmt
    map: ast.expr  # the function, as it was written
    call: Call


@dataclass(frozen=True)
class Move:
    """`tp.push(stack, value)` puts a value on a stack and leaves 0 in its place; `tp.pop` takes it back."""

    at: ast.stmt
    function: ast.expr  # the module of the function, as it was written
    push: bool
    stack: ast.expr
    value: ast.expr


@dataclass(frozen=True)
class If:
    """`after` is what holds behind the step where `test` held in front of it; None where nobody has said it."""

    at: ast.stmt
    test: ast.expr
    after: ast.expr | None
    written: ast.expr  # as it stands in the source
    then: Block
    orelse: Block


@dataclass(frozen=True)
class While:
    """`after` holds behind each iteration, and not in front of the first one; None where nobody has said it."""

    at: ast.stmt
    test: ast.expr
    after: ast.expr | None
    written: ast.expr
    body: Block


@dataclass(frozen=True)
class For:
    """Over `items`, or over them from the last to the first. `parallel`: in no order. `around`: what was written around
    the items, as `tp.progress` is.
    """

    at: ast.stmt
    target: ast.expr
    items: ast.expr
    backwards: bool
    parallel: bool
    around: tuple[ast.Call, ...]
    body: Block


@dataclass(frozen=True)
class Ancilla:
    """`with tp.ancilla(value) as name:`"""

    at: ast.stmt
    ancilla: ast.expr  # the function, as it was written
    name: str
    value: ast.expr
    body: Block


@dataclass(frozen=True)
class Computed:
    """`with tp.compute:` and the steps up to where it is undone: `compute`, `body`, and `compute` backwards."""

    at: ast.stmt
    marker: ast.expr  # `tp.compute`, as it was written
    compute: Block
    body: Block


Step = Update | Exchange | Rotate | Call | Mapped | Move | If | While | For | Ancilla | Computed
Block = tuple[Step, ...]


@dataclass(frozen=True)
class Reversible:
    """A function: `node` has its name, parameters and decorators."""

    node: ast.FunctionDef
    doc: ast.stmt | None
    body: Block

    @property
    def state(self) -> tuple[str, ...]:
        """What goes in and comes out."""
        return tuple(a.arg for a in (*self.node.args.posonlyargs, *self.node.args.args))

    @property
    def constants(self) -> tuple[str, ...]:
        return tuple(a.arg for a in self.node.args.kwonlyargs)

    @property
    def changed(self) -> tuple[str, ...]:
        """Those of the state that it changes."""
        roots = {root_of(target) for target in changed_in(self.body)}
        return tuple(name for name in self.state if name in roots)


def blocks_of(step: Step) -> tuple[Block, ...]:
    match step:
        case If(then=then, orelse=orelse):
            return (then, orelse)
        case While(body=body) | For(body=body) | Ancilla(body=body):
            return (body,)
        case Computed(compute=compute, body=body):
            return (compute, body)
        case _:
            return ()


def all_steps(block: Block) -> Iterator[Step]:
    for step in block:
        yield step
        for inner in blocks_of(step):
            yield from all_steps(inner)


def targets_of(step: Step) -> tuple[ast.expr, ...]:
    """What a step itself changes, blocks inside it apart."""
    match step:
        case Update(target=target):
            return (target,)
        case Exchange(targets=targets):
            return targets
        case Rotate(targets=targets):
            return targets
        case Call(args=args) | Mapped(call=Call(args=args)):
            return args
        case Move(stack=stack, value=value):
            return (stack, value)
        case _:
            return ()


def changed_in(block: Block) -> list[ast.expr]:
    return [t for step in all_steps(block) for t in targets_of(step)]


def expressions_of(step: Step) -> list[ast.expr]:
    """What a step itself computes: values, angles, tests, bounds."""
    match step:
        case Update(value=value) | Ancilla(value=value):
            return [value]
        case Rotate(angle=angle):
            return [angle]
        case Call(keywords=keywords) | Mapped(call=Call(keywords=keywords)):
            return [k.value for k in keywords]
        case If(test=test) | While(test=test):
            return [test]
        case For(items=items):
            return [items]
        case _:
            return []
