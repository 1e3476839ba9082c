"""Python's operators on values of any kind: arithmetic, comparisons, membership, truth.

Takes the operator by the name of its `ast` class, and values; gives a value. Numbers are left to `scalars`. Operators
whose work is done elsewhere are in `BINARY`, which their modules fill.
"""

from __future__ import annotations

import ast
from collections.abc import Callable, Sequence
from typing import Any, TypeVar

from tapeless.frontend.data import atoms, scalars
from tapeless.frontend.data.arrays import as_numeric, elementwise
from tapeless.frontend.data.classes import compared, operated, special
from tapeless.frontend.data.iterables import grown_rows
from tapeless.frontend.state.context import Context, type_text
from tapeless.frontend.state.handlers import call_numpy
from tapeless.frontend.state.values import Array, Grown, Scalar, Sequence_, Static, Value, weak
from tapeless.ir.rules import Rules
from tapeless.ir.types import Atom, Const, DType, i64


def static_key(ctx: Context, value: Value) -> Any:
    match value:
        case Static(value=key):
            return key
        case Scalar(atom=Const(value=key)):
            return key
        case Sequence_(kind="tuple", items=items):
            return tuple(static_key(ctx, v) for v in items)
        case _:
            ctx.fail("TP104", "a key must be known at compile time", "use constant keys.")


Rule = TypeVar("Rule", bound=Callable[[Context, Value, Value], Value])
NUMERIC = (Scalar, Array)
BINARY: Rules[str, Callable[[Context, Value, Value], Value]] = Rules()
binary_rule = BINARY.of


def binary_values(ctx: Context, name: str, a: Value, b: Value, terms: Sequence[bool] = ()) -> Value:
    """A Python binary operator on any two values. `terms`: which of them is an operator's result."""
    if not isinstance(a, NUMERIC) or not isinstance(b, NUMERIC):
        return _of_others(ctx, name, a, b)
    return BINARY[name](ctx, a, b) if name in BINARY else _of_numbers(ctx, name, a, b, terms)


def _of_others(ctx: Context, name: str, a: Value, b: Value) -> Value:
    """Where one of the values at least is no number and no array."""
    if isinstance(a, Sequence_) or isinstance(b, Sequence_):
        defined = operated(ctx, name, a, b)
        if defined is not None:
            return defined
    if name in BINARY:
        return BINARY[name](ctx, a, b)
    if (
        isinstance(a, Sequence_)
        and isinstance(b, Sequence_)
        and name == "Add"
        and a.kind == b.kind in ("tuple", "list")
    ):
        return Sequence_((*a.items, *b.items), a.kind)
    if isinstance(a, Sequence_) and a.kind in ("tuple", "list") and name == "Mult" and isinstance(b, Scalar):
        if isinstance(b.atom, Const) and isinstance(b.atom.value, int):
            return Sequence_(a.items * b.atom.value, a.kind)
        if b.dtype.is_float or b.dtype.is_complex:
            number = type_text(b)
            ctx.fail("TP104", f"a {a.kind} cannot be multiplied by {number}", "make an array of it: np.array(...).")
        ctx.fail("TP104", "the length of a list must be known at compile time", "use np.full or np.zeros.")
    if isinstance(b, Sequence_) and b.kind in ("tuple", "list") and name == "Mult" and isinstance(a, Scalar):
        return _of_others(ctx, name, b, a)
    if isinstance(a, Static) and isinstance(b, Static) and isinstance(a.value, str) and isinstance(b.value, str):
        if name == "Add":
            return Static(a.value + b.value)
    a, b = _large(ctx, a, b), _large(ctx, b, a)
    for v in (a, b):
        if not isinstance(v, NUMERIC) and not (isinstance(v, Sequence_) and _is_numpy(a, b)):
            symbol = scalars.SYMBOLS[name]
            ctx.fail("TP104", f"unsupported operand types for {symbol}: {type_text(a)} and {type_text(b)}")
    return _of_numbers(ctx, name, a, b)


def _of_numbers(ctx: Context, name: str, a: Value, b: Value, terms: Sequence[bool] = ()) -> Value:
    if isinstance(a, Scalar) and isinstance(b, Scalar):
        return scalars.binary(ctx, name, a, _as_python_sees_it(a, b))
    what = f"operands of {scalars.SYMBOLS[name]}"
    if isinstance(a, Array) and isinstance(b, Array) and a.type.dtype is b.type.dtype is DType.bool:
        name = {"Add": "BitOr", "Mult": "BitAnd"}.get(name, name)
        if name == "Sub":
            ctx.fail("TP104", "NumPy does not subtract bool arrays", "use ^ or np.logical_xor.")
    if name == "Pow" and isinstance(a, Array) and a.type.dtype.is_complex and b == weak(0.5):
        return elementwise(
            ctx, lambda x: Scalar(atoms.apply(ctx, "sqrt", x.atom)), [a]
        )  # not np.power(a, 0.5), nor numbers
    return elementwise(ctx, lambda x, y: scalars.binary(ctx, name, x, y), [a, b], what, terms)


def _is_numpy(*values: Value) -> bool:
    """Whether one of the operands makes arrays of lists and tuples beside it."""
    return any(isinstance(v, Array) or (isinstance(v, Scalar) and not v.weak) for v in values)


def _large(ctx: Context, value: Value, beside: Value) -> Value:
    """A Python int that only u64 holds, as an operand."""
    if not (isinstance(value, Static) and isinstance(value.value, int)):
        return value
    kind = beside.type.dtype if isinstance(beside, Array) else beside.dtype if isinstance(beside, Scalar) else None
    if kind is DType.u64:
        return as_numeric(ctx, value, "an operand")
    if kind is not None and (kind.is_float or kind.is_complex):
        return weak(float(value.value))
    ctx.fail("TP109", f"the integer {value.value} only fits into np.uint64", "write np.uint64(...) or a float.")


def _as_python_sees_it(a: Scalar, b: Scalar) -> Scalar:
    """The right operand: a complex of Python takes a np.float64 for the float that it is."""
    return Scalar(b.atom, True) if a.weak and a.dtype.is_complex and b.dtype is DType.f64 else b


def compare_values(ctx: Context, op: ast.cmpop, a: Value, b: Value) -> Value:
    name = type(op).__name__
    if name in ("Is", "IsNot"):
        same = _is(ctx, a, b)
        return weak(same if name == "Is" else not same)
    if name in ("In", "NotIn"):
        return _contains(ctx, a, b, name == "NotIn")
    if isinstance(a, Sequence_) or isinstance(b, Sequence_):
        defined = compared(ctx, name, a, b)
        if defined is not None:
            return defined
    if not (isinstance(a, (Scalar, Array)) and isinstance(b, (Scalar, Array))):
        if not _is_numpy(a, b):
            return _compare_others(ctx, name, a, b)
        a, b = as_numeric(ctx, a, "comparison"), as_numeric(ctx, b, "comparison")
    if isinstance(a, Scalar) and isinstance(b, Scalar):
        return scalars.compare(ctx, name, a, _as_python_sees_it(a, b))
    return elementwise(ctx, lambda x, y: scalars.compare(ctx, name, x, y), [a, b], "operands of a comparison")


def _holds(ctx: Context, op: ast.cmpop, a: Value, b: Value) -> Atom:
    return truth_of(ctx, compare_values(ctx, op, a, b))


def _is(ctx: Context, a: Value, b: Value) -> bool:
    if isinstance(a, Static) and isinstance(b, Static):
        return a.value is b.value
    if (isinstance(a, Static) and a.value is None) or (isinstance(b, Static) and b.value is None):
        return False
    if isinstance(a, Array) and isinstance(b, Array):
        return a.cell is b.cell and a.view == b.view
    ctx.fail("TP104", "'is' only compares with None or between arrays here", "use == to compare values.")


def _contains(ctx: Context, a: Value, b: Value, negate: bool) -> Value:
    defined = special(ctx, "__contains__", b, a)
    if defined is not None:
        held = truth_of(ctx, defined)
        return Scalar(atoms.logical_not(ctx, held) if negate else held, True)
    numbers = grown_rows(ctx, b) if isinstance(b, Grown) else b
    if isinstance(a, Scalar) and isinstance(numbers, Array) and numbers.type.rank == 1:
        held = truth_of(ctx, call_numpy(ctx, "any", [compare_values(ctx, ast.Eq(), numbers, a)]))
        return Scalar(atoms.logical_not(ctx, held) if negate else held, True)
    if not isinstance(b, Sequence_) or b.kind == "dataclass":
        ctx.fail("TP104", f"'in' is not supported on {type_text(b)}", "use np.any(a == x).")
    if b.kind == "dict":
        return weak((static_key(ctx, a) in b.keys) != negate)
    found: Atom = Const(False, DType.bool)
    for item in b.items:
        equal = _holds(ctx, ast.Eq(), a, item)
        found = (
            atoms.apply(ctx, "or", found, equal) if not isinstance(found, Const) else (found if found.value else equal)
        )
    return Scalar(atoms.logical_not(ctx, found) if negate else found, True)


def truth_of(ctx: Context, value: Value) -> Atom:
    match value:
        case Scalar():
            return scalars.truth(ctx, value)
        case Array():
            ctx.fail("TP120", "the truth value of an array is ambiguous", "use np.any(...) or np.all(...).")
        case Sequence_(items=items, kind=kind):
            defined = special(ctx, "__bool__", value) or special(ctx, "__len__", value)
            if defined is not None:
                return truth_of(ctx, defined)
            return Const(bool(items) or kind == "dataclass", DType.bool)
        case Static(value=inner):
            return Const(bool(inner), DType.bool)
        case Grown(length=length):
            return atoms.apply(ctx, "gt", length.atom, i64(0))
        case _:
            ctx.fail("TP104", f"{type_text(value)} has no truth value here")


LENGTHS = {"Lt": int.__lt__, "LtE": int.__le__, "Gt": int.__gt__, "GtE": int.__ge__}


STRICTLY: dict[str, ast.cmpop] = {"Lt": ast.Lt(), "LtE": ast.Lt(), "Gt": ast.Gt(), "GtE": ast.Gt()}


def _compare_others(ctx: Context, name: str, a: Value, b: Value) -> Value:
    if name in ("Eq", "NotEq"):
        equal = _equal(ctx, a, b)
        return Scalar(equal if name == "Eq" else atoms.logical_not(ctx, equal), True)
    if isinstance(a, Sequence_) and isinstance(b, Sequence_) and _kind(a) == _kind(b) in ("tuple", "list"):
        return Scalar(_ordered(ctx, name, a, b), True)
    ctx.fail("TP104", f"Python does not order {type_text(a)} and {type_text(b)}")


def _kind(value: Sequence_) -> str:
    return "tuple" if value.kind == "namedtuple" else value.kind


def _equal(ctx: Context, a: Value, b: Value) -> Atom:
    if isinstance(a, Static) and isinstance(b, Static):
        return Const(bool(a.value == b.value), DType.bool)
    if not isinstance(a, Sequence_) or not isinstance(b, Sequence_):
        if not all(isinstance(v, (Scalar, Static, Sequence_)) for v in (a, b)):
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
        result = atoms.logical_and(ctx, result, _holds(ctx, ast.Eq(), x, y))
    return result


def _ordered(ctx: Context, name: str, a: Sequence_, b: Sequence_) -> Atom:
    """The first elements that differ decide, else the lengths."""
    result: Atom = Const(LENGTHS[name](len(a.items), len(b.items)), DType.bool)
    for x, y in reversed(list(zip(a.items, b.items, strict=False))):
        equal = _holds(ctx, ast.Eq(), x, y)
        before = _holds(ctx, STRICTLY[name], x, y)
        later = atoms.logical_and(ctx, equal, result)
        first = atoms.logical_and(ctx, atoms.logical_not(ctx, equal), before)
        result = atoms.logical_not(
            ctx, atoms.logical_and(ctx, atoms.logical_not(ctx, later), atoms.logical_not(ctx, first))
        )
    return result
