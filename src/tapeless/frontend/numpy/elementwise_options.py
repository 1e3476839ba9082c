"""Element-wise functions with options: where, clip, round, isclose, nan_to_num, select, and parts of complex numbers.

Takes numbers and arrays, gives NumPy numbers and new arrays. Options must be known at compile time, bounds need not.
"""

from __future__ import annotations

from collections.abc import Callable

import numpy as np

from tapeless.frontend.data.arguments import dtype_of, flag, integer, known, numeric, optional_number
from tapeless.frontend.data.arrays import elementwise, read
from tapeless.frontend.data.atoms import apply, convert, select
from tapeless.frontend.numpy.elementwise import (
    ROWS,
    Row,
    ScalarRule,
    apply_row,
    extremum,
    imag,
    real,
    together,
    where,
)
from tapeless.frontend.numpy.reductions import all_, python_bool
from tapeless.frontend.state.context import Context, type_text
from tapeless.frontend.state.handlers import call_numpy
from tapeless.frontend.state.values import Array, Borrowed, Cell, Scalar, Sequence_, Static, Value, weak
from tapeless.ir.types import Atom, Const, DType, const, zero_of
from tapeless.ops.op import FLOATS
from tapeless.ops.promotion import float_dtype, ufunc_dtype


def clip(ctx: Context, x: Scalar, low: Scalar, high: Scalar) -> Scalar:
    return _bounded(ctx, "minimum", _bounded(ctx, "maximum", x, low), high)


def _bounded(ctx: Context, name: str, x: Scalar, bound: Scalar) -> Scalar:
    if x.weak and bound.weak:  # np.clip(3, 1, 2) is a NumPy number
        x, bound = Scalar(x.atom), Scalar(bound.atom)
    return extremum(name)(ctx, x, bound)


def isclose(ctx: Context, x: Scalar, y: Scalar, rtol: float, atol: float, equal_nan: bool) -> Scalar:
    a, b = together(ctx, x, y, floating=float_dtype)
    dtype = a.type.dtype.real
    bound = apply(ctx, "mul", const(rtol, dtype), apply(ctx, "abs", b))
    bound = apply(ctx, "add", const(atol, dtype), bound)
    near = apply(ctx, "le", apply(ctx, "abs", apply(ctx, "sub", a, b)), bound)
    near = apply(ctx, "and", near, apply(ctx, "isfinite", b))
    same = apply(ctx, "or", near, apply(ctx, "eq", a, b))
    if equal_nan:
        same = apply(ctx, "or", same, apply(ctx, "and", apply(ctx, "isnan", a), apply(ctx, "isnan", b)))
    return Scalar(same)


@known("np.where")
def _where(ctx: Context, condition: Value, x: Value | None = None, y: Value | None = None) -> Value:
    if x is None and y is None:
        return call_numpy(ctx, "nonzero", [condition])
    if x is None or y is None:
        ctx.call_error("either both or neither of x and y should be given")
    return elementwise(ctx, lambda *s: where(ctx, *s), [condition, x, y], "np.where")


@known("np.clip")
def _clip(
    ctx: Context, a: Value, a_min: Value | None = None, a_max: Value | None = None, *, min: Value | None = None,
    max: Value | None = None,
) -> Value:  # fmt: skip
    low, high = a_min or min, a_max or max
    kind = dtype_of(numeric(ctx, "np.clip", a))
    low = None if _outside(kind, low, lambda n: n < kind.lowest) else low
    high = None if _outside(kind, high, lambda n: n > kind.highest) else high
    bounds = [b for b in (low, high) if b is not None]
    if len(bounds) == 2:
        return elementwise(ctx, lambda *s: clip(ctx, *s), [a, *bounds], "np.clip")
    if not bounds:
        return elementwise(ctx, lambda x: Scalar(apply(ctx, "identity", x.atom)), [a], "np.clip")
    name = "maximum" if high is None else "minimum"
    return elementwise(ctx, lambda x, b: _bounded(ctx, name, x, b), [a, *bounds], "np.clip")


def _outside(kind: DType, bound: Value | None, beyond: Callable[[float], bool]) -> bool:
    """Whether a bound is an int that the integers are on the right side of anyway: it need not fit their type."""
    if not (kind.is_int and isinstance(bound, Scalar) and bound.weak and isinstance(bound.atom, Const)):
        return False
    return bound.dtype.is_int and beyond(bound.atom.value.real)


@known("np.round", "np.around")
def round_(ctx: Context, a: Value, decimals: Value | None = None) -> Value:
    digits = integer(ctx, "np.round: decimals", decimals)
    return elementwise(ctx, lambda x: round_number(ctx, x, digits), [a], "np.round")


def round_number(ctx: Context, x: Scalar, digits: int, exact: bool = False) -> Scalar:
    """Halves go to even. NumPy scales, rounds and scales back; Python (`exact`) rounds the number itself."""
    if x.dtype is DType.bool:
        ctx.fail("TP104", f"rounding {type_text(x)} cannot be compiled", "convert it to an integer first.")
    if x.dtype.is_int:
        return Scalar(x.atom if digits >= 0 else _round_integer(ctx, x.atom, 10**-digits))
    if x.dtype.is_complex:
        parts = [round_number(ctx, Scalar(apply(ctx, p, x.atom)), digits).atom for p in ("real", "imag")]
        return Scalar(apply(ctx, "complex", *parts))
    if digits == 0:
        return Scalar(apply(ctx, "rint", x.atom))
    scale = const(10.0 ** abs(digits), x.dtype)
    there, back = ("mul", "div") if digits > 0 else ("div", "mul")
    scaled = apply(ctx, there, x.atom, scale)
    nearest = apply(ctx, "rint", scaled)
    if exact and 0 < digits <= 10:
        nearest = _nearest(ctx, x.atom, scaled, scale)
    result = apply(ctx, back, nearest, scale)
    if exact:  # from 2**52 on there are no decimals, and scaling might overflow
        large = apply(ctx, "ge", apply(ctx, "abs", x.atom), const(2.0**52, x.dtype))
        result = select(ctx, apply(ctx, "or", large, apply(ctx, "isnan", x.atom)), x.atom, result)
    return Scalar(result)


def _round_integer(ctx: Context, x: Atom, unit: int) -> Atom:
    dtype = x.type.dtype
    size, half, one = const(unit, dtype), const(unit // 2, dtype), const(1, dtype)
    count = apply(ctx, "floordiv", x, size)
    rest = apply(ctx, "sub", x, apply(ctx, "mul", count, size))
    odd = apply(ctx, "eq", apply(ctx, "and", count, one), one)
    tie = apply(ctx, "and", apply(ctx, "eq", rest, half), odd)
    up = apply(ctx, "or", apply(ctx, "gt", rest, half), tie)
    return apply(ctx, "mul", apply(ctx, "add", count, convert(ctx, up, dtype)), size)


def _nearest(ctx: Context, x: Atom, scaled: Atom, scale: Atom) -> Atom:
    """The integer nearest to x * scale, of which `scaled` is the rounded product.

    Only where `scaled` lies halfway can its rounding error decide. x is split into a part of 24 bits and the rest; the
    products of both with a power of ten up to 10**10, which has 24 bits, are exact.
    """
    high = convert(ctx, convert(ctx, x, DType.f32), DType.f64)
    low = apply(ctx, "sub", x, high)
    error = apply(ctx, "sub", apply(ctx, "mul", high, scale), scaled)
    error = apply(ctx, "add", error, apply(ctx, "mul", low, scale))
    below = apply(ctx, "floor", scaled)
    halfway = apply(ctx, "eq", apply(ctx, "sub", scaled, below), const(0.5, DType.f64))
    zero = const(0.0, DType.f64)
    less = apply(ctx, "and", halfway, apply(ctx, "lt", error, zero))
    more = apply(ctx, "and", halfway, apply(ctx, "gt", error, zero))
    up = select(ctx, more, apply(ctx, "add", below, const(1.0, DType.f64)), apply(ctx, "rint", scaled))
    return select(ctx, less, below, up)


@known("np.isclose")
def _isclose(
    ctx: Context,
    a: Value,
    b: Value,
    rtol: Value | None = None,
    atol: Value | None = None,
    equal_nan: Value | None = None,
) -> Value:
    tolerances = (_tolerance(ctx, rtol, 1e-5), _tolerance(ctx, atol, 1e-8), flag(ctx, "equal_nan", equal_nan))
    return elementwise(ctx, lambda x, y: isclose(ctx, x, y, *tolerances), [a, b], "np.isclose")


def _tolerance(ctx: Context, value: Value | None, default: float) -> float:
    number = optional_number(ctx, "a tolerance", value)
    return default if number is None else float(number)


@known("np.allclose")
def _allclose(
    ctx: Context,
    a: Value,
    b: Value,
    rtol: Value | None = None,
    atol: Value | None = None,
    equal_nan: Value | None = None,
) -> Value:
    return python_bool(all_(ctx, _isclose(ctx, a, b, rtol, atol, equal_nan)))


@known("np.nan_to_num")
def _nan_to_num(
    ctx: Context, x: Value, *, nan: Value | None = None, posinf: Value | None = None, neginf: Value | None = None
) -> Value:
    operands = [x, nan or weak(0.0), posinf or Static(None), neginf or Static(None)]
    given = [v for v in operands if v != Static(None)]

    def rule(value: Scalar, fill: Scalar, *bounds: Scalar) -> Scalar:
        if any(v.dtype.is_complex for v in (fill, *bounds)):
            ctx.fail("TP104", "np.nan_to_num fills parts of numbers, with real numbers")
        if value.dtype.is_complex:
            parts = [rule(Scalar(apply(ctx, part, value.atom)), fill, *bounds).atom for part in ("real", "imag")]
            return Scalar(apply(ctx, "complex", *parts))
        if value.dtype not in FLOATS:
            return Scalar(apply(ctx, "identity", value.atom))
        dtype, atom = value.dtype, value.atom
        most = float(np.finfo(np.float32 if dtype is DType.f32 else np.float64).max)
        rest = iter(bounds)
        high = convert(ctx, next(rest).atom, dtype) if posinf else const(most, dtype)
        low = convert(ctx, next(rest).atom, dtype) if neginf else const(-most, dtype)
        infinite = apply(ctx, "isinf", atom)
        positive = apply(ctx, "gt", atom, zero_of(dtype))
        atom = select(ctx, infinite, select(ctx, positive, high, low), atom)
        return Scalar(select(ctx, apply(ctx, "isnan", atom), convert(ctx, fill.atom, dtype), atom))

    return elementwise(ctx, rule, given, "np.nan_to_num")


@known("np.real")
def _real(ctx: Context, val: Value) -> Value:
    return _part(ctx, val, "real", real)


@known("np.imag")
def _imag(ctx: Context, val: Value) -> Value:
    return _part(ctx, val, "imag", imag)


def _part(ctx: Context, value: Value, name: str, rule: ScalarRule) -> Value:
    """In NumPy a view of the array: here it may be read until the array is written, and not be written itself."""
    operand = numeric(ctx, f"np.{name}", value)
    if isinstance(operand, Scalar):
        return rule(ctx, operand)
    if name == "real" and not operand.type.dtype.is_complex:
        return operand
    part = elementwise(ctx, lambda s: rule(ctx, s), [operand], f"np.{name}")
    assert isinstance(part, Array)
    how = Borrowed(name) if operand.type.dtype.is_complex else None  # other numbers have imaginary parts of their own
    return borrowed(ctx, part, operand, f"'.{name}' of an array cannot be written in compiled code", how)


def borrowed(ctx: Context, made: Array, source: Array, reason: str, how: Borrowed | None) -> Array:
    """`made` as what NumPy would have as a view of `source`: read-only, and stale once `source` is written."""
    cell = Cell(source.cell.name, source.cell.possible, reason, seen_through=None if how is None else (source, how))
    ctx.state.cells[cell] = read(ctx, made)
    return Array(cell, made.type)


@known("np.divmod")
def _divmod(ctx: Context, x1: Value, x2: Value) -> Value:
    pair = [elementwise(ctx, lambda *s, r=r: apply_row(ctx, "np.divmod", ROWS[r], *s), [x1, x2], "np.divmod")
            for r in ("floor_divide", "remainder")]  # fmt: skip
    return Sequence_(tuple(pair))


@known("np.modf")
def _modf(ctx: Context, x: Value) -> Value:
    whole = elementwise(ctx, lambda s: apply_row(ctx, "np.modf", Row("trunc", floating=ufunc_dtype), s), [x], "np.modf")
    return Sequence_((elementwise(ctx, lambda s: Scalar(fraction(ctx, s)), [x], "np.modf"), whole))


def fraction(ctx: Context, x: Scalar) -> Atom:
    """What is left of a float after its integer part: 0 with the sign for infinities."""
    (a,) = together(ctx, x, floating=ufunc_dtype)
    rest = apply(ctx, "sub", a, apply(ctx, "trunc", a))
    rest = select(ctx, apply(ctx, "isinf", a), zero_of(a.type.dtype), rest)
    return apply(ctx, "copysign", rest, a)


@known("np.select")
def _select(ctx: Context, condlist: Value, choicelist: Value, default: Value | None = None) -> Value:
    if not (isinstance(condlist, Sequence_) and isinstance(choicelist, Sequence_)):
        ctx.fail("TP104", "np.select takes a list of conditions and a list of choices")
    if len(condlist.items) != len(choicelist.items):
        ctx.fail("TP112", "np.select takes as many conditions as choices")
    for cond in condlist.items:
        if dtype_of(numeric(ctx, "np.select", cond)) is not DType.bool:
            ctx.fail("TP104", f"np.select takes conditions of bools, not {type_text(cond)}")
    result: Value = default or weak(0)
    for cond, choice in reversed(list(zip(condlist.items, choicelist.items, strict=True))):
        result = elementwise(ctx, lambda *s: where(ctx, *s), [cond, choice, result], "np.select")
    return result
