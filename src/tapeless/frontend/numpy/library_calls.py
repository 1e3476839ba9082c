"""Library operations of Core, and what their operands have in common."""

from __future__ import annotations

from tapeless.frontend.data.arrays import cast, read
from tapeless.frontend.data.atoms import apply
from tapeless.frontend.data.maps import map_nest
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
        made = library(ctx, name, *(cast(ctx, a, kind.work) if a.type.dtype is kind else a for a in args))
        return tuple(cast(ctx, v, kind) if v.type.dtype is kind.work else v for v in made)
    types = library_op(name).result_types([a.type for a in args], {})
    return ctx.b.bind([Var("m", t) for t in types], Library(name, args))


def together(ctx: Context, name: str, *values: Array) -> list[Var]:
    """The contents in their common element type."""
    kind = common_dtype([Scalar(const(0, v.type.dtype)) for v in values])
    if kind is DType.bool:
        ctx.fail("TP104", f"{name} of bools cannot be compiled", "convert them to numbers first.")
    return [cast(ctx, read(ctx, v), kind) for v in values]


def ordered(ctx: Context, var: Var) -> Var:
    """Numbers of the same order, of a type that is compared by rows: bools as integers, u64 with its highest bit
    turned.
    """
    kind = var.type.dtype
    numbers = cast(ctx, var, DType.i32 if kind is DType.bool else kind.work)
    return turned(ctx, numbers) if kind is DType.u64 else numbers


def turned(ctx: Context, var: Var) -> Var:
    lowest = const(DType.i64.lowest, DType.i64)
    return map_nest(ctx, lambda x: Scalar(apply(ctx, "xor", x.atom, lowest)), [var], var.type.shape)


def tested(ctx: Context, dtype: DType) -> bool:
    """check=True: sums and products of integers are tested, which libraries do not do."""
    return ctx.options.check and dtype.is_int
