"""A reversible function as Python in the dialect: what `.source` shows."""

from __future__ import annotations

import ast

from tapeless.reversible.dialect.tree import (
    Ancilla,
    Block,
    Call,
    Computed,
    Exchange,
    For,
    If,
    Mapped,
    Move,
    Reversible,
    Rotate,
    Step,
    Update,
    While,
)


def text_of(function: Reversible) -> str:
    node = function.node
    doc = [] if function.doc is None else [function.doc]
    body = [*doc, *_block(function.body)] or [ast.Pass()]
    new = ast.FunctionDef(**{**dict(ast.iter_fields(node)), "body": body})
    return ast.unparse(ast.fix_missing_locations(new)) + "\n"


def _block(block: Block) -> list[ast.stmt]:
    found: list[ast.stmt] = []
    for k, step in enumerate(block):
        found += _step(step)
        if isinstance(step, Computed) and k < len(block) - 1:
            module = step.marker.value if isinstance(step.marker, ast.Attribute) else None
            name = "uncompute"
            word = ast.Attribute(module, name, ast.Load()) if module else ast.Name(name, ast.Load())
            found.append(ast.Expr(ast.Call(word, [], [])))
    return found


def _step(step: Step) -> list[ast.stmt]:
    match step:
        case Update(target=target, op=op, value=value):
            return [ast.AugAssign(target, op(), value)]  # type: ignore[arg-type]
        case Exchange(targets=targets, sources=sources):
            return [assign(targets, ast.Tuple(list(sources), ast.Load()))]
        case Rotate(rot=rot, targets=targets, angle=angle):
            return [assign(targets, ast.Call(rot, [*targets, angle], []))]
        case Call(function=function, args=args, keywords=keywords):
            called = ast.UnaryOp(ast.Invert(), function) if step.inverse else function
            call = ast.Call(called, list(args), list(keywords))
            return [ast.Expr(call) if step.bare else assign(args, call)]
        case Mapped(map=map, call=Call(function=function, args=args, keywords=keywords, inverse=inverse)):
            called = ast.UnaryOp(ast.Invert(), function) if inverse else function
            return [assign(args, ast.Call(map, [called, *args], list(keywords)))]
        case Move(function=function, push=push, stack=stack, value=value):
            name = "push" if push else "pop"
            word = ast.Attribute(function.value, name, ast.Load()) if isinstance(function, ast.Attribute) else name
            func = word if isinstance(word, ast.expr) else ast.Name(name, ast.Load())
            return [ast.Expr(ast.Call(func, [stack, value], []))]
        case If(written=written, then=then, orelse=orelse):
            return [ast.If(written, _block(then) or [ast.Pass()], _block(orelse))]
        case While(written=written, body=body):
            return [ast.While(written, _block(body) or [ast.Pass()], [])]
        case For(target=target, body=body):
            return [ast.For(target, iterated(step), _block(body) or [ast.Pass()], [])]
        case Ancilla(ancilla=ancilla, name=name, value=value, body=body):
            item = ast.withitem(ast.Call(ancilla, [value], []), ast.Name(name, ast.Store()))
            return [ast.With([item], _block(body) or [ast.Pass()])]
        case Computed(marker=marker, compute=compute, body=body):
            made = ast.With([ast.withitem(marker, None)], _block(compute) or [ast.Pass()])
            return [made, *_block(body)]


def assign(targets: tuple[ast.expr, ...], value: ast.expr) -> ast.Assign:
    return ast.Assign([ast.Tuple(list(targets), ast.Store())], value)


def iterated(step: For) -> ast.expr:
    """What a loop runs over."""
    items = step.items
    if step.backwards:
        items = ast.copy_location(ast.Call(ast.Name("reversed", ast.Load()), [items], []), items)
    for call in reversed(step.around):
        items = ast.copy_location(ast.Call(call.func, [items, *call.args[1:]], call.keywords), call)
    return items
