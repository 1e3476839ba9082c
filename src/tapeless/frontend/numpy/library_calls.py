"""Library operations of Core, and what their operands have in common."""

from __future__ import annotations

from tapeless.frontend.data.arrays import cast, read
from tapeless.frontend.numpy.elementwise import common_dtype
from tapeless.frontend.state.context import Context
from tapeless.frontend.state.values import Array, Scalar
from tapeless.ir.core import Library
from tapeless.ir.types import DType, Var, const
from tapeless.ops.library import library_op


def library(ctx: Context, name: str, *args: Var) -> tuple[Var, ...]:
    """A library operation on operands that fit. Note [Stored integers] of ir/types.py"""
    kind = args[0].type.dtype
    if kind.work is not kind:
        made = library(ctx, name, *(cast(ctx, a, kind.work) for a in args))
        return tuple(cast(ctx, v, kind) if v.type.dtype is kind.work else v for v in made)
    types = library_op(name).result_types([a.type for a in args], {})
    return ctx.b.bind([Var("m", t) for t in types], Library(name, args))


def together(ctx: Context, name: str, *values: Array) -> list[Var]:
    """The contents in their common element type."""
    kind = common_dtype([Scalar(const(0, v.type.dtype)) for v in values])
    if kind is DType.bool:
        ctx.fail("TP104", f"{name} of bools cannot be compiled", "convert them to numbers first.")
    return [cast(ctx, read(ctx, v), kind) for v in values]


def tested(ctx: Context, dtype: DType) -> bool:
    """check=True: sums and products of integers are tested, which libraries do not do."""
    return ctx.options.check and dtype.is_int
