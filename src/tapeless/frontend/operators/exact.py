"""Rows of the ops table by name, and exact numbers made of what keeps them: what `api.exact_numbers` is written with."""

from __future__ import annotations

from tapeless.frontend.data.arguments import text
from tapeless.frontend.data.arrays import elementwise
from tapeless.frontend.data.atoms import apply, convert
from tapeless.frontend.state.context import Context, type_text
from tapeless.frontend.state.handlers import operator
from tapeless.frontend.state.values import Scalar, Sequence_, Static, Value
from tapeless.ir.types import DType, const
from tapeless.ops.exact import LIMIT


@operator("row")
def _row(ctx: Context, args: list[Value], keywords: dict[str, Value]) -> Value:
    name = text(ctx, "the name of a row", args[0])

    def applied(*operands: Scalar) -> Scalar:
        for x in operands:
            if x.dtype.is_complex:
                ctx.fail("TP104", f"an exact number cannot be made of {type_text(x)}", "use its real part.")
        patterns = [convert(ctx, x.atom, DType.f64) for x in operands]
        if ctx.options.check and "rounded" in keywords:
            total = apply(
                ctx, text(ctx, "rounded", keywords["rounded"]), *(apply(ctx, "of_fixed", p) for p in patterns)
            )
            inside = apply(ctx, "lt", apply(ctx, "abs", total), const(LIMIT, DType.f64))
            ctx.check(inside, "OverflowError", "the sum {0} leaves fixed43, which is below 2**20 - 2**9 in size", total)
        return Scalar(apply(ctx, name, *patterns))

    return elementwise(ctx, applied, args[1:])


@operator("kept")
def _kept(ctx: Context, args: list[Value], keywords: dict[str, Value]) -> Value:
    cls, pattern = args
    assert isinstance(cls, Static)
    return Sequence_((pattern,), "dataclass", ("pattern",), cls.value)
