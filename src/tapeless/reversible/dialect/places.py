"""Places: names, and what is reached from them by attributes and subscripts. What two of them have to do with each other.

A place is compared as it is written: `x[i]` and `x[j]` may be the same cell, `x.a` and `x.b` are not.
"""

from __future__ import annotations

import ast
import enum
from collections.abc import Collection, Iterator

SIZES = ("shape", "size", "ndim", "dtype", "T")  # attributes of arrays that say nothing of their contents
MEASURES = ("len",)


class Relation(enum.Enum):
    apart = enum.auto()
    same = enum.auto()
    inside = enum.auto()  # one is a part of the other
    perhaps = enum.auto()  # cells of one array, at places that are not known


def root_of(expr: ast.expr) -> str | None:
    """The name that a place begins with; None if this is no place."""
    match expr:
        case ast.Name(id=name):
            return name
        case ast.Attribute(value=base) | ast.Subscript(value=base):
            return root_of(base)
        case _:
            return None


def steps_of(expr: ast.expr) -> list[ast.expr | str]:
    """From the root: attributes by name, and subscripts."""
    match expr:
        case ast.Attribute(value=base, attr=name):
            return [*steps_of(base), name]
        case ast.Subscript(value=base, slice=index):
            return [*steps_of(base), index]
        case _:
            return []


def relation(one: ast.expr, other: ast.expr) -> Relation:
    if root_of(one) != root_of(other):
        return Relation.apart
    mine, others = steps_of(one), steps_of(other)
    perhaps = False
    for a, b in zip(mine, others, strict=False):
        if isinstance(a, str) or isinstance(b, str):
            if a != b:
                return Relation.apart
        elif ast.dump(a) != ast.dump(b):
            if constants_apart(a, b):
                return Relation.apart
            perhaps = True
    if perhaps:
        return Relation.perhaps
    return Relation.same if len(mine) == len(others) else Relation.inside


def constants_apart(a: ast.expr, b: ast.expr) -> bool:
    """Whether two subscripts are different integers of one sign on some axis."""
    pairs = zip(_axes(a), _axes(b), strict=False)
    for x, y in pairs:
        match x, y:
            case ast.Constant(value=int(m)), ast.Constant(value=int(n)) if m != n:
                return True
    return False


def _axes(index: ast.expr) -> list[ast.expr]:
    return list(index.elts) if isinstance(index, ast.Tuple) else [index]


def reads(expr: ast.expr, names: Collection[str]) -> Iterator[ast.expr]:
    """The places of these names whose contents an expression uses, the largest ones, and those in their subscripts."""
    match expr:
        case ast.Subscript(value=ast.Attribute(attr="shape", value=base), slice=index) if root_of(base) in names:
            yield from (*_in_subscripts(base, names), *reads(index, names))
            return
        case ast.Attribute(attr=attr, value=base) if attr in SIZES and attr != "T" and root_of(base) in names:
            yield from _in_subscripts(base, names)
            return
        case ast.Call(func=ast.Name(id=name), args=[arg]) if name in MEASURES and root_of(arg) in names:
            yield from _in_subscripts(arg, names)
            return
        case ast.Call(func=ast.Attribute(value=base)) if root_of(base) in names:  # a method: x.sum()
            yield from reads(base, names)
            for child in (*expr.args, *(k.value for k in expr.keywords)):
                yield from reads(child, names)
            return
        case ast.Attribute(attr="T", value=base) if root_of(base) in names:
            yield from reads(base, names)
            return
        case ast.Lambda(args=args, body=body):
            hidden = {a.arg for a in ast.walk(args) if isinstance(a, ast.arg)}
            yield from reads(body, [n for n in names if n not in hidden])
            return
    if root_of(expr) is not None:
        if root_of(expr) in names:
            yield expr
        yield from _in_subscripts(expr, names)
        return
    for part in ast.iter_child_nodes(expr):
        if isinstance(part, ast.expr):
            yield from reads(part, names)
        elif isinstance(part, ast.comprehension):
            yield from reads(part.iter, names)
            for test in part.ifs:
                yield from reads(test, names)
        elif isinstance(part, ast.keyword):
            yield from reads(part.value, names)


def _in_subscripts(expr: ast.expr, names: Collection[str]) -> Iterator[ast.expr]:
    for step in steps_of(expr):
        if not isinstance(step, str):
            yield from reads(step, names)


def names_in(node: ast.AST) -> set[str]:
    return {n.id for n in ast.walk(node) if isinstance(n, ast.Name)}
