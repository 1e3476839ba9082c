"""What NumPy tells about arrays and types: np.shape, np.ndim, np.finfo and the like.

Takes values, gives values that are known at compile time, or sizes.
"""

from __future__ import annotations

import numbers
from typing import Any

import numpy as np

from tapeless.frontend.data.arguments import axis, dtype_of, known, numeric
from tapeless.frontend.data.dimensions import shape_of, total_size
from tapeless.frontend.data.maps import broadcast_shapes
from tapeless.frontend.state.context import Context, type_text
from tapeless.frontend.state.handlers import register
from tapeless.frontend.state.values import Array, Scalar, Sequence_, Static, Value, weak


@known("np.shape")
def _shape(ctx: Context, a: Value) -> Value:
    value = numeric(ctx, "np.shape", a)
    return Sequence_(
        tuple(Scalar(ctx.size_atom(d), True) for d in value.type.shape) if isinstance(value, Array) else ()
    )


@known("np.broadcast_shapes")
def _broadcast_shapes(ctx: Context, *shapes: Value) -> Value:
    together = broadcast_shapes(ctx, [shape_of(ctx, s) for s in shapes], "np.broadcast_shapes")
    return Sequence_(tuple(Scalar(ctx.size_atom(d), True) for d in together))


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
    known = element.value if isinstance(element, Static) else None
    return weak(isinstance(element, Scalar) or isinstance(known, (str, bytes, numbers.Number)))


@known("np.iscomplexobj")
def _iscomplexobj(ctx: Context, x: Value) -> Value:
    return weak(dtype_of(numeric(ctx, "np.iscomplexobj", x)).is_complex)


@known("np.isrealobj")
def _isrealobj(ctx: Context, x: Value) -> Value:
    return weak(not dtype_of(numeric(ctx, "np.isrealobj", x)).is_complex)


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
            found = function(*values)
            return weak(found) if isinstance(found, bool) else Static(found)
        except (TypeError, ValueError) as problem:
            ctx.fail("TP112", f"{name}: {problem}")

    register(name, handler)


for _name in ("np.finfo", "np.iinfo", "np.dtype", "np.result_type", "np.promote_types", "np.issubdtype", "np.can_cast"):
    _at_compile_time(_name, getattr(np, _name[3:]))
