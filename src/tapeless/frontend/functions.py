"""What compiled code may call: finding the handler of a Python object, and refusing the rest with a reason.

Takes the object and the values of the arguments. The handlers are in the modules imported here, which register
themselves; parallel operators and transforms are found by their `__tapeless__` mark.
"""

from __future__ import annotations

import dataclasses
import types
from typing import Any

import numpy as np

from tapeless.frontend import (  # noqa: F401  (they register their functions)
    builtin_functions,
    creation,
    einsum,
    elementwise,
    elementwise_options,
    linalg,
    matrices,
    pymath,
    reductions,
    scans,
    shapes,
    sorting,
    statistics,
)
from tapeless.frontend.context import Context, type_text
from tapeless.frontend.creation import total_size
from tapeless.frontend.marks import peek
from tapeless.frontend.methods import ARRAY_METHODS, call_method
from tapeless.frontend.origins import made_here
from tapeless.frontend.refusals import refuse_call
from tapeless.frontend.registry import BY_NAME, Handler, axis, handler_of, known, numeric, register
from tapeless.frontend.ufuncs import ufunc_method
from tapeless.frontend.values import Array, Scalar, Sequence_, Static, Value, weak


def find_handler(obj: Any) -> Handler | None:
    found = handler_of(obj)
    if found is not None:
        return found
    made = peek(obj, "__tapeless_handler__")
    if made is not None and not isinstance(obj, type):
        own: Handler = made()
        return own
    mark = peek(obj, "__tapeless__")
    if isinstance(mark, str):
        from tapeless.frontend.parallel import OPERATORS

        handler: Handler | None = OPERATORS.get(mark)
        return handler
    if isinstance(obj, types.BuiltinMethodType) and isinstance(obj.__self__, np.ufunc):
        return ufunc_method(obj.__self__, obj.__name__)
    return None


def call_known(ctx: Context, target: Any, args: list[Value], keywords: dict[str, Value]) -> Value:
    handler = find_handler(target)
    if handler is not None:
        return handler(ctx, args, keywords)
    if isinstance(target, type) and (dataclasses.is_dataclass(target) or hasattr(target, "_fields")):
        return construct(ctx, target, args, keywords)
    if not callable(target):
        ctx.fail("TP104", f"{type_text(Static(target))} cannot be called")
    refuse_call(ctx, target, [*args, *keywords.values()])


def call_numpy(ctx: Context, name: str, args: list[Value]) -> Value:
    return BY_NAME[f"np.{name}"](ctx, args, {})


# -- containers


def construct(ctx: Context, cls: type, args: list[Value], keywords: dict[str, Value]) -> Value:
    """A NamedTuple or a plain dataclass made in compiled code."""
    from tapeless.frontend.names import from_python

    if dataclasses.is_dataclass(cls):
        if hasattr(cls, "__post_init__"):
            ctx.fail("TP103", f"'{cls.__name__}' has a __post_init__, which cannot be compiled")
        fields = tuple(f.name for f in dataclasses.fields(cls))
        defaults = {f.name: f.default for f in dataclasses.fields(cls) if f.default is not dataclasses.MISSING}
        kind = "dataclass"
    else:
        fields, defaults, kind = cls._fields, cls._field_defaults, "namedtuple"  # type: ignore[attr-defined]
    given = dict(zip(fields, args, strict=False))
    if len(args) > len(fields) or set(keywords) - set(fields) or set(keywords) & set(given):
        ctx.fail("TP112", f"the arguments do not fit the fields of '{cls.__name__}': {', '.join(fields)}")
    given.update(keywords)
    for name in fields:
        if name not in given:
            if name not in defaults:
                ctx.fail("TP112", f"'{cls.__name__}' is missing the field '{name}'")
            given[name] = from_python(
                ctx, made_here(defaults[name]), f"{cls.__name__}.{name}"
            )  # part of the class's mark
    return Sequence_(tuple(given[f] for f in fields), kind, fields, cls)


# -- what is known about arrays at compile time


@known("np.shape")
def _shape(ctx: Context, a: Value) -> Value:
    value = numeric(ctx, "np.shape", a)
    return Sequence_(
        tuple(Scalar(ctx.size_atom(d), True) for d in value.type.shape) if isinstance(value, Array) else ()
    )


@known("np.ndim")
def _ndim(ctx: Context, a: Value) -> Value:
    value = numeric(ctx, "np.ndim", a)
    return weak(value.type.rank if isinstance(value, Array) else 0)


@known("np.size")
def _size(ctx: Context, a: Value, axis: Value | None = None) -> Value:
    value = numeric(ctx, "np.size", a)
    if not isinstance(value, Array):
        return weak(1)
    if axis is not None:
        return Scalar(ctx.size_atom(value.type.shape[axis_argument(ctx, "np.size", axis, value.type.rank)]), True)
    return Scalar(total_size(ctx, value.type.shape), True)


axis_argument = axis  # a parameter of the same name hides it


@known("np.isscalar")
def _isscalar(ctx: Context, element: Value | None) -> Value:
    return weak(isinstance(element, Scalar) or (isinstance(element, Static) and isinstance(element.value, str)))


def _at_compile_time(name: str, function: Any) -> None:
    """A function of types, worked out while compiling."""

    def handler(ctx: Context, args: list[Value], keywords: dict[str, Value]) -> Value:
        values = []
        for v in args:
            if isinstance(v, Array):
                v = Static(v.type.dtype.numpy)
            if not isinstance(v, Static) or keywords:
                ctx.fail("TP104", f"{name} takes types here, not {type_text(v)}")
            values.append(v.value)
        try:
            return Static(function(*values))
        except (TypeError, ValueError) as problem:
            ctx.fail("TP112", f"{name}: {problem}")

    register(name, handler)


for _name in ("np.finfo", "np.iinfo", "np.dtype", "np.result_type", "np.promote_types"):
    _at_compile_time(_name, getattr(np, _name[3:]))

__all__ = ["ARRAY_METHODS", "call_known", "call_method", "call_numpy", "find_handler"]
