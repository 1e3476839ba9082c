"""The functions that compiled code may call, and how their arguments are read.

Gives `known`, which registers a handler under dotted names ("np.sum", "math.sin", "len"), and readers for arguments
that must be known at compile time. A handler's own parameters are the signature: those with a default may be left out.
"""

from __future__ import annotations

import inspect
from collections.abc import Callable
from dataclasses import replace
from typing import TypeVar

import numpy as np

from tapeless.frontend.data.arrays import as_numeric, read
from tapeless.frontend.data.indexing import set_item
from tapeless.frontend.state.advice import ELEMENT_TYPES
from tapeless.frontend.state.context import Context, type_text
from tapeless.frontend.state.handlers import Handler, register
from tapeless.frontend.state.values import Array, Scalar, Sequence_, Static, Value
from tapeless.ir.core import Apply
from tapeless.ir.types import FROM_NUMPY, Const, DType, Var
from tapeless.ops.promotion import KIND

Body = TypeVar("Body", bound=Callable[..., Value])


def known(*names: str) -> Callable[[Body], Body]:
    """Registers a handler `body(ctx, ...)` for the functions of these names; those that NumPy lacks are skipped."""

    def decorate(body: Body) -> Body:
        for name in names:
            register(name, with_signature(name, body))
        return body

    return decorate


def with_signature(name: str, body: Callable[..., Value]) -> Handler:
    """Sorts the arguments of a call into the parameters of `body`. None counts as left out, except among *arguments."""
    code = body.__code__
    positional = code.co_varnames[1 : code.co_argcount]
    named = (*positional, *code.co_varnames[code.co_argcount : code.co_argcount + code.co_kwonlyargcount])
    required = positional[: len(positional) - len(body.__defaults__ or ())]
    variadic = bool(code.co_flags & inspect.CO_VARARGS)
    rewritable = not variadic and "out" not in named

    def handler(ctx: Context, args: list[Value], keywords: dict[str, Value]) -> Value:
        out = keywords.get("out", Static(None)) if rewritable else Static(None)
        if len(args) > len(positional) and not variadic:
            ctx.call_error(f"{name} takes at most {len(positional)} arguments here, but {len(args)} were given")
        bound: dict[str, Value | None] = {}
        for key, value in (*zip(positional, args, strict=False), *keywords.items()):
            if key == "out" and rewritable:
                continue
            if key not in named:
                ctx.fail(
                    "TP112", f"{name}: the argument '{key}' cannot be compiled", "leave it out if its default is meant."
                )
            if key in bound:
                ctx.call_error(f"{name} got several values for '{key}'")
            bound[key] = None if isinstance(value, Static) and value.value is None else value
        for key in required:
            if key not in bound and not variadic:
                ctx.call_error(f"{name} is missing the argument '{key}'")
        if variadic:
            head = [bound.pop(key) for key in positional[: len(args)]]
            return settled(ctx, body(ctx, *head, *args[len(positional) :], **bound))
        result = settled(ctx, body(ctx, **bound))
        return result if out == Static(None) else write_out(ctx, name, out, result)

    return handler


def write_out(ctx: Context, name: str, out: Value, result: Value) -> Value:
    """f(..., out=a): `a` takes the result."""
    if not (isinstance(out, Array) and isinstance(result, (Array, Scalar))):
        ctx.fail("TP104", f"{name}: 'out' must be an array, not {type_text(out)}")
    dtype = dtype_of(result)
    if KIND[dtype] > KIND[out.type.dtype]:
        ctx.fail(
            "TP104",
            f"{name}: results of {dtype.numpy.name} do not fit into 'out', an array of {out.type.dtype.numpy.name}",
        )
    set_item(ctx, out, Static(Ellipsis), result)
    return out


# -- arguments


def numeric(ctx: Context, name: str, value: Value | None) -> Scalar | Array:
    if value is None:
        ctx.fail("TP104", f"{name}: expected a number or an array, found None")
    return as_numeric(ctx, value, name)


def dtype_of(value: Scalar | Array) -> DType:
    return value.type.dtype if isinstance(value, Array) else value.dtype


def array(ctx: Context, name: str, value: Value | None) -> Array:
    """An array. A number is one without axes until the function has given its result: `settled` turns it back."""
    found = numeric(ctx, name, value)
    if isinstance(found, Array):
        return found
    atom = found.atom
    return ctx.new_cell(atom if isinstance(atom, Var) else ctx.b.let(atom.type, Apply("identity", (atom,)), "t"))


def vector(ctx: Context, name: str, value: Value | None) -> Array:
    """An array; a number counts as one of one element, for functions that NumPy has work on numbers in this way."""
    found = array(ctx, name, value)
    return found if found.type.shape else ctx.new_cell(ctx.b.array([read(ctx, found)]))


def settled(ctx: Context, value: Value) -> Value:
    """A result with numbers in place of arrays without axes: no other part of the front end meets those."""
    match value:
        case Array(type=t) if not t.shape:
            return Scalar(read(ctx, value))
        case Sequence_(items=items) if any(isinstance(v, Array) and not v.type.shape for v in items):
            return replace(value, items=tuple(settled(ctx, v) for v in items))
    return value


def optional_number(ctx: Context, name: str, value: Value | None) -> int | float | None:
    """A number known at compile time, or None."""
    if value is None:
        return None
    if isinstance(value, Scalar) and isinstance(value.atom, Const):
        number = value.atom.value
        if not isinstance(number, complex):
            return number
    ctx.fail("TP104", f"{name} must be a number known at compile time", "write it as a constant.")


def integer(ctx: Context, name: str, value: Value | None, default: int = 0) -> int:
    """An integer known at compile time."""
    number = optional_number(ctx, name, value)
    if number is None:
        return default
    if not isinstance(number, int):
        ctx.fail("TP104", f"{name} must be an integer, not {number}")
    return int(number)


def flag(ctx: Context, name: str, value: Value | None, default: bool = False) -> bool:
    number = optional_number(ctx, name, value)
    return default if number is None else bool(number)


def text(ctx: Context, name: str, value: Value | None, default: str = "") -> str:
    if value is None:
        return default
    if isinstance(value, Static) and isinstance(value.value, str):
        return value.value
    ctx.fail("TP104", f"{name} must be a string known at compile time")


def dtype(ctx: Context, value: Value | None) -> DType | None:
    """The argument of dtype=: a NumPy or Python type, a dtype, or its name."""
    if value is None:
        return None
    try:
        named = np.dtype(value.value) if isinstance(value, Static) else None
    except TypeError:
        named = None
    found = FROM_NUMPY.get(named) if named is not None else None
    if found is None:
        ctx.fail("TP109", f"the element type {named or type_text(value)} is not supported", ELEMENT_TYPES)
    return found


def axis(ctx: Context, name: str, value: Value | None, rank: int, default: int = 0) -> int:
    """One axis, counted from the front."""
    number = integer(ctx, f"{name}: the axis", value, default)
    if not -rank <= number < rank:
        ctx.fail("TP202", f"{name}: axis {number} is out of bounds for an array of {rank} dimensions")
    return number % rank


def axes(ctx: Context, name: str, value: Value | None, rank: int, lenient: bool = False) -> tuple[int, ...]:
    """axis=None (all), an axis, or a tuple of them; in increasing order. `lenient`: a number has an axis 0, which is
    left out.
    """
    if value is None:
        return tuple(range(rank))
    if lenient and not rank and isinstance(value, Scalar):
        axis(ctx, name, value, 1)
        return ()
    items = value.items if isinstance(value, Sequence_) else (value,)
    found = [axis(ctx, name, item, rank) for item in items]
    if len(set(found)) != len(found):
        ctx.fail("TP202", f"{name}: an axis is given twice")
    return tuple(sorted(found))
