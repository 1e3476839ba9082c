"""Comparisons of what is neither a number nor an array: texts, None, tuples, lists, dicts and data classes, as Python does.

`compare_others` takes the operator's name and two values of which none is NumPy's; elements are compared by `compare`.
"""

from __future__ import annotations

import ast
from collections.abc import Callable

from tapeless.frontend import atoms
from tapeless.frontend.context import Context, type_text
from tapeless.frontend.values import Scalar, Sequence_, Static, Value
from tapeless.ir.types import Atom, Const, DType

Compare = Callable[[ast.cmpop, Value, Value], Atom]  # whether it holds
LENGTHS = {"Lt": int.__lt__, "LtE": int.__le__, "Gt": int.__gt__, "GtE": int.__ge__}
STRICTLY: dict[str, ast.cmpop] = {"Lt": ast.Lt(), "LtE": ast.Lt(), "Gt": ast.Gt(), "GtE": ast.Gt()}


def compare_others(ctx: Context, name: str, a: Value, b: Value, compare: Compare) -> Value:
    if name in ("Eq", "NotEq"):
        equal = _equal(ctx, a, b, compare)
        return Scalar(equal if name == "Eq" else atoms.logical_not(ctx, equal), True)
    if isinstance(a, Sequence_) and isinstance(b, Sequence_) and _kind(a) == _kind(b) in ("tuple", "list"):
        return Scalar(_ordered(ctx, name, a, b, compare), True)
    ctx.fail("TP104", f"Python does not order {type_text(a)} and {type_text(b)}")


def _kind(value: Sequence_) -> str:
    return "tuple" if value.kind == "namedtuple" else value.kind


def _equal(ctx: Context, a: Value, b: Value, compare: Compare) -> Atom:
    if isinstance(a, Static) and isinstance(b, Static):
        return Const(bool(a.value == b.value), DType.bool)
    if not isinstance(a, Sequence_) or not isinstance(b, Sequence_):
        if not all(isinstance(v, Scalar | Static | Sequence_) for v in (a, b)):
            ctx.fail("TP104", f"comparison: {type_text(a)} and {type_text(b)} cannot be compared")
        return Const(False, DType.bool)
    others = b.items
    same = _kind(a) == _kind(b) and len(a.items) == len(b.items)
    if a.kind == "dict":
        same = same and set(a.keys) == set(b.keys)
        others = tuple(b.items[b.keys.index(k)] for k in a.keys) if same else ()
    elif a.kind == "dataclass":
        same = same and a.cls is b.cls
    result: Atom = Const(same, DType.bool)
    for x, y in zip(a.items, others, strict=True) if same else ():
        result = atoms.logical_and(ctx, result, compare(ast.Eq(), x, y))
    return result


def _ordered(ctx: Context, name: str, a: Sequence_, b: Sequence_, compare: Compare) -> Atom:
    """The first elements that differ decide, else the lengths."""
    result: Atom = Const(LENGTHS[name](len(a.items), len(b.items)), DType.bool)
    for x, y in reversed(list(zip(a.items, b.items, strict=False))):
        equal = compare(ast.Eq(), x, y)
        before = compare(STRICTLY[name], x, y)
        later = atoms.logical_and(ctx, equal, result)
        first = atoms.logical_and(ctx, atoms.logical_not(ctx, equal), before)
        result = atoms.logical_not(
            ctx, atoms.logical_and(ctx, atoms.logical_not(ctx, later), atoms.logical_not(ctx, first))
        )
    return result
