"""Result types of the expressions of Core that have no regions.

Takes an expression and the types of the variables bound to it; gives the types that these should have, or raises
Illegal with the reason. Relies on the ops table and the library registry. Does not ask whether names are in scope.

Note [Loose dimensions]
Two different symbolic dimensions may be equal when the program runs, and passes replace symbols by constants in one
place before another. So dimensions disagree only if both are constants and differ; ranks and element types are exact.
"""

from __future__ import annotations

import math
import string
from collections.abc import Sequence
from typing import assert_never

from tapeless import errors
from tapeless.ir.core import (
    Apply,
    Arranging,
    ArrayLit,
    At,
    Axis,
    Broadcast,
    Call,
    Check,
    Concat,
    Copy,
    Full,
    Index,
    Iota,
    Library,
    Plain,
    Print,
    Progress,
    Range,
    Reshape,
    Transpose,
    Update,
    UpdateAcc,
)
from tapeless.ir.types import BOOL, I64, Atom, Dim, DType, Type, Var
from tapeless.ops.library import ANY, LIBRARY
from tapeless.ops.op import Op
from tapeless.ops.table import TABLE


class Illegal(Exception):
    """The reason alone; the verifier adds the statement."""


def require(holds: bool, reason: str) -> None:
    if not holds:
        raise Illegal(reason)


def same_dim(a: Dim, b: Dim) -> bool:
    """Note [Loose dimensions]."""
    return a == b or isinstance(a, Var) or isinstance(b, Var)


def fits(found: Type, wanted: Type) -> bool:
    """Note [Loose dimensions]."""
    same_kind = found.dtype is wanted.dtype and found.acc == wanted.acc and found.rank == wanted.rank
    return same_kind and all(map(same_dim, found.shape, wanted.shape))


def require_fit(found: Type, wanted: Type, what: str) -> None:
    require(fits(found, wanted), f"{what} is {found!r}, not {wanted!r}")


def require_dims(dims: Sequence[Dim], what: str) -> None:
    for d in dims:
        require(d.type == I64 if isinstance(d, Var) else d >= 0, f"{d!r} is no dimension of {what}")


def require_array(array: Atom, what: str) -> None:
    require(isinstance(array, Var) and array.type.rank > 0, f"{what} {array!r} is not an array")


def simple_result_types(exp: Plain, bound: Sequence[Type]) -> tuple[Type, ...]:
    """The types for an expression without regions."""
    match exp:
        case Apply(op, args):
            return (scalar_result_type(op, [a.type for a in args], bound),)
        case Library(name, args, attrs):
            return library_result_types(name, [a.type for a in args], dict(attrs))
        case Index(array, axes):
            return (Type(array.type.dtype, selected_shape(array, axes)),)
        case Update(array, axes, value):
            require_cells(array, axes, value)
            return (array.type,)
        case UpdateAcc(acc, axes, value):
            require(bool(acc.type.acc), f"{acc!r} is no accumulator")
            require_cells(acc, axes, value)
            return ()
        case Check(cond, error, message, args):
            require_fit(cond.type, BOOL, "the condition")
            require(errors.named(error) is not None, f"there is no error {error}")
            require(
                _places(message) <= set(map(str, range(len(args)))), f"the message names more than {len(args)} values"
            )
            return ()
        case Print(parts, args):
            require(
                all(isinstance(p, str) or 0 <= p.position < len(args) for p in parts),
                f"it prints more than {len(args)} values",
            )
            return ()
        case Progress(done, total):
            require_fit(done.type, I64, "what is done")
            require_fit(total.type, I64, "the total")
            return ()
        case Call():
            return tuple(bound)  # the verifier has the functions
        case _:
            return (arranged_type(exp, bound),)


def _places(message: str) -> set[str]:
    return {field for _, field, _, _ in string.Formatter().parse(message) if field is not None}


# -- operations on scalars, library operations


def scalar_result_type(name: str, types: Sequence[Type], bound: Sequence[Type]) -> Type:
    require(name in TABLE, f"there is no operation {name}")
    row = TABLE[name]
    require(len(types) == row.arity, f"{name} takes {row.arity} operands, not {len(types)}")
    require(all(t.is_scalar for t in types), f"{name} takes scalars")
    dtypes = [t.dtype for t in types]
    require_operands(row, dtypes)
    if name == "convert":
        return Type(bound[0].dtype) if bound else Type(dtypes[0])
    return Type(row.result(dtypes))


def require_operands(row: Op, dtypes: Sequence[DType]) -> None:
    shown = ", ".join(map(repr, dtypes))
    if row.name == "select":
        require(
            dtypes[0] is DType.bool and dtypes[1] is dtypes[2], f"select takes bool and two of one type, not {shown}"
        )
        dtypes = dtypes[1:]
    require(len(set(dtypes)) == 1, f"{row.name} takes operands of one type, not {shown}")
    require(dtypes[0] in row.dtypes, f"{row.name} does not take {shown}")


def library_result_types(name: str, types: Sequence[Type], attrs: dict[str, int | str | bool]) -> tuple[Type, ...]:
    require(name in LIBRARY, f"there is no library operation {name}")
    row = LIBRARY[name]
    require(row.arity in (len(types), ANY), f"{name} takes {row.arity} operands, not {len(types)}")
    try:
        return row.result_types(types, attrs)
    except (TypeError, KeyError) as problem:
        raise Illegal(str(problem)) from None


# -- places in arrays


def selected_shape(array: Var, axes: Sequence[Axis]) -> tuple[Dim, ...]:
    """The shape of the cells at `axes`."""
    require_array(array, "the indexed")
    require(len(axes) == array.type.rank, f"{array!r} has {array.type.rank} axes, not {len(axes)}")
    for axis in axes:
        positions = [axis.index] if isinstance(axis, At) else [axis.start, axis.step]
        for p in positions:
            require_fit(p.type, I64, "a position")
    shape = tuple(axis.length for axis in axes if isinstance(axis, Range))
    require_dims(shape, "the range")
    return shape


def require_cells(array: Var, axes: Sequence[Axis], value: Atom) -> None:
    """The value is a scalar for all cells, or one for each."""
    cells = Type(array.type.dtype, selected_shape(array, axes))
    require(
        fits(value.type, cells) or value.type == Type(cells.dtype),
        f"the value is {value.type!r}, the cells are {cells!r}",
    )


# -- making and rearranging arrays


def arranged_type(exp: Arranging, bound: Sequence[Type]) -> Type:
    match exp:
        case Iota(length):
            require_dims([length], "iota")
            return Type(DType.i64, (length,))
        case Full(shape, value):
            require_dims(shape, "full")
            require(len(shape) > 0, "full makes arrays only")
            require(value is None or value.type.is_scalar, "full takes a scalar")
            dtypes = [t.dtype for t in bound] if value is None else [value.type.dtype]
            return Type(dtypes[0] if dtypes else DType.f64, shape)
        case ArrayLit(items):
            require(len(items) > 0, "an array of no items has no type")
            for item in items[1:]:
                require_fit(item.type, items[0].type, "an item")
            return Type(items[0].type.dtype, (len(items), *items[0].type.shape))
        case Reshape(array, shape):
            require_array(array, "the operand")
            require_dims(shape, "reshape")
            before, after = _constant_size(array.type.shape), _constant_size(shape)
            require(None in (before, after) or before == after, f"{before} elements become {after}")
            return array.type.with_shape(shape)
        case Transpose(array, perm):
            require_array(array, "the operand")
            require(sorted(perm) == list(range(array.type.rank)), f"{list(perm)} does not order the axes of {array!r}")
            return array.type.with_shape(array.type.shape[p] for p in perm)
        case Broadcast(array, shape, axes):
            require_dims(shape, "broadcast")
            ordered = len(set(axes)) == len(axes) == array.type.rank and all(0 <= a < len(shape) for a in axes)
            require(ordered, f"axes {list(axes)} do not place {array!r} in {len(shape)} axes")
            require_fit(array.type, array.type.with_shape(shape[a] for a in axes), "the operand")
            return array.type.with_shape(shape)
        case Concat(arrays, axis):
            return _concat_type(arrays, axis, bound)
        case Copy(array):
            require_array(array, "the operand")
            return array.type
        case _:
            assert_never(exp)


def _constant_size(shape: Sequence[Dim]) -> int | None:
    dims = [d for d in shape if isinstance(d, int)]
    return math.prod(dims) if len(dims) == len(shape) else None


def _concat_type(arrays: Sequence[Var], axis: int, bound: Sequence[Type]) -> Type:
    require(len(arrays) > 0, "concat of nothing has no type")
    for a in arrays:
        require_array(a, "the operand")
    first = arrays[0].type
    require(0 <= axis < first.rank, f"there is no axis {axis} in {first!r}")

    def others(t: Type) -> Type:
        return t.with_shape((*t.shape[:axis], *t.shape[axis + 1 :]))

    for a in arrays:
        require_fit(others(a.type), others(first), "the operand, but for the axis,")
    lengths = [a.type.shape[axis] for a in arrays]
    known = [d for d in lengths if isinstance(d, int)]
    shape = list(first.shape)
    if len(known) == len(lengths):
        shape[axis] = sum(known)
    elif bound and bound[0].rank == first.rank:
        shape[axis] = bound[0].shape[axis]
    return first.with_shape(shape)
