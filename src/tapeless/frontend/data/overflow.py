"""check=True: whether a result of integers is the one that they would have without a limit.

`check_overflow` takes a row of the ops table, its result and its operands, and emits a test that is exact; rows that
cannot leave their type have none. Relies on the rows wrapping.
"""

from __future__ import annotations

from collections.abc import Callable, Sequence

from tapeless.frontend.data.atoms import apply, convert, select
from tapeless.frontend.state.context import Context
from tapeless.ir.types import Atom, DType, const, zero_of


def check_overflow(ctx: Context, op: str, result: Atom, args: Sequence[Atom]) -> None:
    if op in OVERFLOWS:
        symbol, fits = OVERFLOWS[op]
        ctx.check(fits(ctx, result, *args), "OverflowError", f"integer overflow in {symbol}")


def _not_lowest(ctx: Context, result: Atom, x: Atom) -> Atom:
    """The lowest integer has no counterpart, and without a sign none but 0 has one."""
    if x.type.dtype.is_unsigned:
        return apply(ctx, "eq", result, x)
    return apply(ctx, "ne", x, const(x.type.dtype.lowest, x.type.dtype))


def _sum_fits(ctx: Context, result: Atom, x: Atom, y: Atom) -> Atom:
    """The result has not the sign of neither operand."""
    if x.type.dtype.is_unsigned:
        return apply(ctx, "ge", result, x)
    left, right = apply(ctx, "xor", x, result), apply(ctx, "xor", y, result)
    return apply(ctx, "ge", apply(ctx, "and", left, right), zero_of(x.type.dtype))


def _difference_fits(ctx: Context, result: Atom, x: Atom, y: Atom) -> Atom:
    if x.type.dtype.is_unsigned:
        return apply(ctx, "ge", x, y)
    left, right = apply(ctx, "xor", x, y), apply(ctx, "xor", x, result)
    return apply(ctx, "ge", apply(ctx, "and", left, right), zero_of(x.type.dtype))


def _product_fits(ctx: Context, result: Atom, x: Atom, y: Atom) -> Atom:
    """Dividing gives the other factor back; -1 and 0 cannot be divided by safely."""
    dtype = x.type.dtype
    zero, minus = zero_of(dtype), const(-1, dtype)
    if dtype.is_unsigned:
        back = apply(ctx, "floordiv", result, x)
        return apply(ctx, "or", apply(ctx, "eq", x, zero), apply(ctx, "eq", back, y))
    small = apply(ctx, "or", apply(ctx, "eq", x, zero), apply(ctx, "eq", x, minus))
    back = apply(ctx, "floordiv", result, select(ctx, small, const(1, dtype), x))
    turned = apply(ctx, "or", apply(ctx, "eq", x, zero), apply(ctx, "ne", y, const(dtype.lowest, dtype)))
    return select(ctx, small, turned, apply(ctx, "eq", back, y))


def _quotient_fits(ctx: Context, result: Atom, x: Atom, y: Atom) -> Atom:
    """Only one does not."""
    if x.type.dtype.is_unsigned:
        return const(True, DType.bool)
    return apply(
        ctx,
        "or",
        apply(ctx, "ne", x, const(x.type.dtype.lowest, x.type.dtype)),
        apply(ctx, "ne", y, const(-1, x.type.dtype)),
    )


def _shift_fits(ctx: Context, result: Atom, x: Atom, y: Atom) -> Atom:
    return apply(ctx, "eq", apply(ctx, "shr", result, y), x)


def _power_fits(ctx: Context, result: Atom, x: Atom, y: Atom) -> Atom:
    """By floats: the last digits of a square or a higher power this large do not decide."""
    limit = x.type.dtype.highest + 1.0
    exact = apply(ctx, "pow", convert(ctx, x, DType.f64), convert(ctx, y, DType.f64))
    above = apply(ctx, "ge", exact, const(-limit, DType.f64))
    inside = apply(ctx, "and", above, apply(ctx, "lt", exact, const(limit, DType.f64)))
    return apply(ctx, "or", inside, apply(ctx, "le", y, const(1, y.type.dtype)))


# row -> (what to call it, the test whether the result, the first argument, fits the operands)
OVERFLOWS: dict[str, tuple[str, Callable[..., Atom]]] = {
    "add": ("+", _sum_fits),
    "sub": ("-", _difference_fits),
    "mul": ("*", _product_fits),
    "square": ("a square", lambda ctx, result, x: _product_fits(ctx, result, x, x)),
    "floordiv": ("//", _quotient_fits),
    "shl": ("<<", _shift_fits),
    "ipow": ("**", _power_fits),
    "neg": ("-", _not_lowest),
    "abs": ("abs", _not_lowest),
}
