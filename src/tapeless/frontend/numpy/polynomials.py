"""Polynomials from their coefficients.

Takes a vector of coefficients, the highest power first, and points; gives the values there, by Horner's rule.
"""

from __future__ import annotations

from tapeless.frontend.data.arguments import array, dtype_of, known, numeric
from tapeless.frontend.data.arrays import elementwise
from tapeless.frontend.data.atoms import apply
from tapeless.frontend.numpy import small_functions
from tapeless.frontend.state.context import Context
from tapeless.frontend.state.values import Scalar, Value
from tapeless.ir.types import i64, zero_of
from tapeless.ops.promotion import promote


@known("np.polyval")
def polyval(ctx: Context, p: Value, x: Value) -> Value:
    coefficients, points = array(ctx, "np.polyval", p), numeric(ctx, "np.polyval", x)
    if coefficients.type.rank != 1:
        ctx.fail("TP202", "np.polyval takes a vector of coefficients")
    size, kind = ctx.size_atom(coefficients.type.shape[0]), dtype_of(points)
    result, _ = promote(kind, False, coefficients.type.dtype, False)
    if result is not kind:  # the coefficients decide on the type of the result, unless there are none
        message = f"np.polyval: there are no coefficients, so that the result would be of {kind.numpy.name}"
        ctx.check(apply(ctx, "gt", size, i64(0)), "ValueError", message)

    def value(point: Scalar) -> Scalar:
        start = [
            Scalar(point.atom),
            Scalar(zero_of(kind)),
            Scalar(zero_of(result)),
        ]  # no weak numbers: those of an array
        found = small_functions.inline(ctx, small_functions.horner, [coefficients, Scalar(size, True), *start])
        assert isinstance(found, Scalar)
        return found

    return elementwise(ctx, value, [points], "np.polyval")
