"""NumPy's element-wise functions, and those of scipy.special.

Takes numbers and arrays, gives NumPy numbers and new arrays: one row of the ops table for each function where there is
one, a few lines where there is not. Promotion is NumPy 2's; results are never Python numbers.
"""

from __future__ import annotations

import math
from collections.abc import Callable
from dataclasses import dataclass
from functools import reduce

import numpy as np

from tapeless.frontend import scalars
from tapeless.frontend.arrays import elementwise, read
from tapeless.frontend.context import Context, type_text
from tapeless.frontend.registry import (
    Handler,
    flag,
    integer,
    known,
    numeric,
    register,
    write_out,
)
from tapeless.frontend.scalars import apply, compare, convert, select, truth
from tapeless.frontend.values import Array, Cell, Scalar, Sequence_, Static, Value, weak
from tapeless.ir.types import Atom, DType, const, one_of, zero_of
from tapeless.ops.op import BOOLS, FLOATS, INTS, NUMERIC
from tapeless.ops.promotion import float_dtype, promote
from tapeless.ops.table import op

ScalarRule = Callable[..., Scalar]  # (ctx, *numbers) -> number


@dataclass(frozen=True)
class Row:
    """A row of the ops table as a NumPy function; `on_bool` and `on_int` name the rows that take those types instead."""

    op: str
    floating: bool = False  # integers and bools become floats first
    on_bool: str = ""
    on_int: str = ""
    only: frozenset[DType] = NUMERIC | BOOLS


def _floating(*names: str) -> dict[str, Row]:
    """Functions of floats under the name of their row; "name=row" where the names differ."""
    return {n.partition("=")[0]: Row(n.partition("=")[2] or n, floating=True) for n in names}


ROWS: dict[str, Row] = {
    **_floating("sin", "cos", "tan", "sinh", "cosh", "tanh", "exp", "exp2", "expm1", "log", "log2", "log10", "log1p"),
    **_floating("arcsin=asin", "arccos=acos", "arctan=atan", "arcsinh=asinh", "arccosh=acosh", "arctanh=atanh"),
    **_floating("sqrt", "cbrt", "divide=div", "arctan2=atan2", "hypot", "copysign", "nextafter", "logaddexp", "rint"),
    **_floating("deg2rad", "rad2deg", "radians=deg2rad", "degrees=rad2deg"),
    **_floating("isnan", "isinf", "isfinite", "signbit"),
    "add": Row("add", on_bool="or"),
    "subtract": Row("sub"),
    "multiply": Row("mul", on_bool="and"),
    "negative": Row("neg"),
    "positive": Row("identity", only=NUMERIC),
    "abs": Row("abs", on_bool="identity"),
    "fabs": Row("abs", floating=True, only=FLOATS),
    "sign": Row("sign"),
    "square": Row("square"),
    "reciprocal": Row("reciprocal"),
    "floor_divide": Row("floordiv"),
    "remainder": Row("mod"),
    "maximum": Row("maximum", on_bool="or"),
    "minimum": Row("minimum", on_bool="and"),
    "fmax": Row("fmax", on_bool="or"),
    "fmin": Row("fmin", on_bool="and"),
    "floor": Row("floor", on_int="identity", on_bool="identity"),
    "ceil": Row("ceil", on_int="identity", on_bool="identity"),
    "trunc": Row("trunc", on_int="identity", on_bool="identity"),
    "fix": Row("trunc", on_int="identity", on_bool="identity"),
    "bitwise_and": Row("and"),
    "bitwise_or": Row("or"),
    "bitwise_xor": Row("xor"),
    "invert": Row("not"),
    "left_shift": Row("shl"),
    "right_shift": Row("shr"),
}
SPECIAL: dict[str, Row] = {
    **_floating("erf", "erfc", "gamma", "gammaln", "digamma", "psi=digamma", "expit", "logit", "xlogy"),
    **_floating("exp2", "expm1", "log1p", "cbrt"),
}


def apply_row(ctx: Context, name: str, row: Row, *args: Scalar) -> Scalar:
    dtype = common_dtype(args)
    if row.floating:
        dtype = float_dtype(dtype)
    used = row.op
    if dtype is DType.bool and row.on_bool:
        used = row.on_bool
    elif dtype.is_int and row.on_int:
        used = row.on_int
    if dtype not in op(used).dtypes & row.only:
        ctx.fail("TP104", f"{name} does not take {' and '.join(type_text(a) for a in args)}")
    return Scalar(apply(ctx, used, *(convert(ctx, a.atom, dtype) for a in args)))


def common_dtype(args: tuple[Scalar, ...] | list[Scalar]) -> DType:
    """The type in which NumPy computes with these numbers."""
    return reduce(lambda a, b: promote(*a, *b), ((a.dtype, a.weak) for a in args))[0]


def together(ctx: Context, *args: Scalar, floating: bool = False) -> list[Atom]:
    """The numbers in their common type."""
    dtype = common_dtype(args)
    dtype = float_dtype(dtype) if floating else dtype
    return [convert(ctx, a.atom, dtype) for a in args]


# -- functions that are not one row


def where(ctx: Context, cond: Scalar, x: Scalar, y: Scalar) -> Scalar:
    a, b = together(ctx, x, y)
    return Scalar(select(ctx, truth(ctx, cond), a, b))


def power(ctx: Context, x: Scalar, y: Scalar) -> Scalar:
    a, b = together(ctx, x, y)
    if a.type.dtype is DType.bool:
        ctx.fail("TP104", "np.power does not take bools", "convert them to integers first.")
    return Scalar(scalars.power(ctx, Scalar(a), Scalar(b)).atom)


def float_power(ctx: Context, x: Scalar, y: Scalar) -> Scalar:
    least = DType.c128 if common_dtype((x, y)).is_complex else DType.f64
    return power(ctx, Scalar(convert(ctx, x.atom, least)), Scalar(convert(ctx, y.atom, least)))


def fmod(ctx: Context, x: Scalar, y: Scalar) -> Scalar:
    a, b = together(ctx, x, y)
    if a.type.dtype in INTS:  # the sign of the dividend
        rest = apply(ctx, "mod", apply(ctx, "abs", a), apply(ctx, "abs", b))
        return Scalar(select(ctx, apply(ctx, "lt", a, zero_of(a.type.dtype)), apply(ctx, "neg", rest), rest))
    return apply_row(ctx, "np.fmod", Row("fmod"), Scalar(a), Scalar(b))


def clip(ctx: Context, x: Scalar, low: Scalar, high: Scalar) -> Scalar:
    return _bounded(ctx, "minimum", _bounded(ctx, "maximum", x, low), high)


def _bounded(ctx: Context, name: str, x: Scalar, bound: Scalar) -> Scalar:
    if x.weak and bound.weak:  # np.clip(3, 1, 2) is a NumPy number
        x, bound = Scalar(x.atom), Scalar(bound.atom)
    return apply_row(ctx, "np.clip", ROWS[name], x, bound)


def heaviside(ctx: Context, x: Scalar, at_zero: Scalar) -> Scalar:
    a, h = together(ctx, x, at_zero, floating=True)
    dtype = a.type.dtype
    zero, one = zero_of(dtype), one_of(dtype)
    step = select(ctx, apply(ctx, "lt", a, zero), zero, select(ctx, apply(ctx, "gt", a, zero), one, h))
    return Scalar(select(ctx, apply(ctx, "isnan", a), a, step))


def sinc(ctx: Context, x: Scalar) -> Scalar:
    (a,) = together(ctx, x, floating=True)
    dtype = a.type.dtype
    tiny = select(ctx, apply(ctx, "eq", a, zero_of(dtype)), const(1e-20, dtype), a)
    y = apply(ctx, "mul", const(math.pi, dtype), tiny)
    return Scalar(apply(ctx, "div", apply(ctx, "sin", y), y))


def conj(ctx: Context, x: Scalar) -> Scalar:
    return Scalar(apply(ctx, "conj" if x.dtype.is_complex else "identity", x.atom))


def real(ctx: Context, x: Scalar) -> Scalar:
    return Scalar(apply(ctx, "real", x.atom), x.weak) if x.dtype.is_complex else x


def imag(ctx: Context, x: Scalar) -> Scalar:
    return Scalar(apply(ctx, "imag", x.atom) if x.dtype.is_complex else zero_of(x.dtype), x.weak)


def angle(ctx: Context, z: Scalar) -> Scalar:
    (a,) = together(ctx, z, floating=True)
    if a.type.dtype.is_complex:
        return Scalar(apply(ctx, "angle", a))
    return Scalar(apply(ctx, "atan2", zero_of(a.type.dtype), a))


def sign(ctx: Context, x: Scalar) -> Scalar:
    if not x.dtype.is_complex:
        return apply_row(ctx, "np.sign", ROWS["sign"], x)
    size = convert(ctx, apply(ctx, "abs", x.atom), x.dtype)  # z / |z|
    zero = zero_of(x.dtype)
    return Scalar(select(ctx, apply(ctx, "eq", x.atom, zero), zero, apply(ctx, "div", x.atom, size)))


def logical(row: str) -> ScalarRule:
    return lambda ctx, x, y: Scalar(apply(ctx, row, truth(ctx, x), truth(ctx, y)))


def comparison(name: str) -> ScalarRule:
    return lambda ctx, x, y: Scalar(compare(ctx, name, x, y).atom)


def isclose(ctx: Context, x: Scalar, y: Scalar, rtol: float, atol: float, equal_nan: bool) -> Scalar:
    a, b = together(ctx, x, y, floating=True)
    dtype = a.type.dtype.real
    bound = apply(ctx, "mul", const(rtol, dtype), apply(ctx, "abs", b))
    bound = apply(ctx, "add", const(atol, dtype), bound)
    near = apply(ctx, "le", apply(ctx, "abs", apply(ctx, "sub", a, b)), bound)
    near = apply(ctx, "and", near, apply(ctx, "isfinite", b))
    same = apply(ctx, "or", near, apply(ctx, "eq", a, b))
    if equal_nan:
        same = apply(ctx, "or", same, apply(ctx, "and", apply(ctx, "isnan", a), apply(ctx, "isnan", b)))
    return Scalar(same)


def _xlog1py(ctx: Context, x: Scalar, y: Scalar) -> Scalar:
    a, b = together(ctx, x, y, floating=True)
    product = apply(ctx, "mul", a, apply(ctx, "log1p", b))
    trivial = apply(ctx, "and", apply(ctx, "eq", a, zero_of(a.type.dtype)), apply(ctx, "eq", b, b))
    return Scalar(select(ctx, trivial, zero_of(a.type.dtype), product))


def _entr(ctx: Context, x: Scalar) -> Scalar:
    (a,) = together(ctx, x, floating=True)
    negative = apply(ctx, "lt", a, zero_of(a.type.dtype))
    value = apply(ctx, "neg", apply(ctx, "xlogy", a, a))
    zero = apply(ctx, "eq", a, zero_of(a.type.dtype))
    value = select(ctx, zero, zero_of(a.type.dtype), value)
    return Scalar(select(ctx, negative, const(-math.inf, a.type.dtype), value))


def _betaln(ctx: Context, x: Scalar, y: Scalar) -> Scalar:
    a, b = together(ctx, x, y, floating=True)
    both = apply(ctx, "add", apply(ctx, "gammaln", a), apply(ctx, "gammaln", b))
    return Scalar(apply(ctx, "sub", both, apply(ctx, "gammaln", apply(ctx, "add", a, b))))


def _ndtr(ctx: Context, x: Scalar) -> Scalar:
    (a,) = together(ctx, x, floating=True)
    tail = apply(ctx, "erfc", apply(ctx, "mul", a, const(-math.sqrt(0.5), a.type.dtype)))
    return Scalar(apply(ctx, "mul", const(0.5, a.type.dtype), tail))


# name -> (how many operands, the rule)
RULES: dict[str, tuple[int, ScalarRule]] = {
    "np.power": (2, power),
    "np.float_power": (2, float_power),
    "np.fmod": (2, fmod),
    "np.heaviside": (2, heaviside),
    "np.sinc": (1, sinc),
    "np.conj": (1, conj),
    "np.angle": (1, angle),
    "np.sign": (1, sign),
    "np.logical_and": (2, logical("and")),
    "np.logical_or": (2, logical("or")),
    "np.logical_xor": (2, logical("xor")),
    "np.logical_not": (1, lambda ctx, x: Scalar(apply(ctx, "not", truth(ctx, x)))),
    "np.equal": (2, comparison("Eq")),
    "np.not_equal": (2, comparison("NotEq")),
    "np.less": (2, comparison("Lt")),
    "np.less_equal": (2, comparison("LtE")),
    "np.greater": (2, comparison("Gt")),
    "np.greater_equal": (2, comparison("GtE")),
    "special.xlog1py": (2, _xlog1py),
    "special.entr": (1, _entr),
    "special.betaln": (2, _betaln),
    "special.ndtr": (1, _ndtr),
}


def rule_of(name: str) -> tuple[int, ScalarRule] | None:
    """How a function works on numbers, by its dotted name."""
    if name in RULES:
        return RULES[name]
    module, _, short = name.partition(".")
    row = {"np": ROWS, "special": SPECIAL}.get(module, {}).get(short)
    if row is None:
        return None
    return op(row.op).arity, lambda ctx, *args: apply_row(ctx, name, row, *args)


def _handler(name: str) -> Handler:
    found = rule_of(name)
    assert found is not None
    count, rule = found

    def handler(ctx: Context, args: list[Value], keywords: dict[str, Value]) -> Value:
        out = keywords.get("out", Static(None))
        for key in keywords:
            if key != "out":
                ctx.fail("TP112", f"{name}: the argument '{key}' cannot be compiled", "leave it out.")
        if len(args) == count + 1:
            out = args.pop()
        if len(args) != count:
            ctx.fail("TP112", f"{name} takes {count} argument{'s' * (count != 1)}, but {len(args)} were given")
        result = elementwise(ctx, lambda *s: rule(ctx, *s), args, name)
        return result if out == Static(None) else write_out(ctx, name, out, result)

    return handler


for _name in [*(f"np.{n}" for n in ROWS), *(f"special.{n}" for n in SPECIAL), *RULES]:
    register(_name, _handler(_name))


# -- functions with more than operands


@known("np.where")
def _where(ctx: Context, condition: Value, x: Value | None = None, y: Value | None = None) -> Value:
    if x is None or y is None:
        ctx.fail(
            "TP113",
            "np.where with one argument gives arrays whose size depends on the data",
            "use np.where(condition, x, y), or loop over the elements.",
        )
    return elementwise(ctx, lambda *s: where(ctx, *s), [condition, x, y], "np.where")


@known("np.clip")
def _clip(
    ctx: Context, a: Value, a_min: Value | None = None, a_max: Value | None = None, *, min: Value | None = None,
    max: Value | None = None,
) -> Value:  # fmt: skip
    low, high = a_min or min, a_max or max
    bounds = [b for b in (low, high) if b is not None]
    if len(bounds) == 2:
        return elementwise(ctx, lambda *s: clip(ctx, *s), [a, *bounds], "np.clip")
    name = "maximum" if high is None else "minimum"
    return elementwise(ctx, lambda x, b=weak(0): _bounded(ctx, name, x, b if bounds else x), [a, *bounds], "np.clip")


@known("np.round", "np.around")
def round_(ctx: Context, a: Value, decimals: Value | None = None) -> Value:
    digits = integer(ctx, "np.round: decimals", decimals)
    return elementwise(ctx, lambda x: round_number(ctx, x, digits), [a], "np.round")


def round_number(ctx: Context, x: Scalar, digits: int) -> Scalar:
    """Halves go to even. NumPy's way: scale, round, scale back."""
    if x.dtype.is_int or x.dtype is DType.bool:
        if digits < 0 or x.dtype is DType.bool:
            ctx.fail(
                "TP104", f"rounding {type_text(x)} to {digits} digits cannot be compiled", "convert to float first."
            )
        return Scalar(x.atom)
    if x.dtype.is_complex:
        parts = [round_number(ctx, Scalar(apply(ctx, p, x.atom)), digits).atom for p in ("real", "imag")]
        return Scalar(apply(ctx, "complex", *parts))
    if digits == 0:
        return Scalar(apply(ctx, "rint", x.atom))
    scale = const(10.0 ** abs(digits), x.dtype)
    there, back = ("mul", "div") if digits > 0 else ("div", "mul")
    return Scalar(apply(ctx, back, apply(ctx, "rint", apply(ctx, there, x.atom, scale)), scale))


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
    from tapeless.frontend.registry import optional_number

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
    from tapeless.frontend.reductions import all_

    return all_(ctx, _isclose(ctx, a, b, rtol, atol, equal_nan))


@known("np.nan_to_num")
def _nan_to_num(
    ctx: Context, x: Value, *, nan: Value | None = None, posinf: Value | None = None, neginf: Value | None = None
) -> Value:
    operands = [x, nan or weak(0.0), posinf or Static(None), neginf or Static(None)]
    given = [v for v in operands if v != Static(None)]

    def rule(value: Scalar, fill: Scalar, *bounds: Scalar) -> Scalar:
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
    return borrowed(ctx, part, operand, f"'.{name}' of an array cannot be written in compiled code")


def borrowed(ctx: Context, made: Array, source: Array, reason: str) -> Array:
    """`made` as what NumPy would have as a view of `source`: read-only, and stale once `source` is written."""
    cell = Cell(source.cell.name, {source.cell}, reason)
    ctx.state.cells[cell] = read(ctx, made)
    return Array(cell, made.type)


@known("np.divmod")
def _divmod(ctx: Context, x1: Value, x2: Value) -> Value:
    pair = [elementwise(ctx, lambda *s, r=r: apply_row(ctx, "np.divmod", ROWS[r], *s), [x1, x2], "np.divmod")
            for r in ("floor_divide", "remainder")]  # fmt: skip
    return Sequence_(tuple(pair))


@known("np.modf")
def _modf(ctx: Context, x: Value) -> Value:
    whole = elementwise(ctx, lambda s: apply_row(ctx, "np.modf", Row("trunc", floating=True), s), [x], "np.modf")
    return Sequence_((elementwise(ctx, lambda s: Scalar(fraction(ctx, s)), [x], "np.modf"), whole))


def fraction(ctx: Context, x: Scalar) -> Atom:
    """What is left of a float after its integer part: 0 with the sign for infinities."""
    (a,) = together(ctx, x, floating=True)
    rest = apply(ctx, "sub", a, apply(ctx, "trunc", a))
    rest = select(ctx, apply(ctx, "isinf", a), zero_of(a.type.dtype), rest)
    return apply(ctx, "copysign", rest, a)


@known("np.select")
def _select(ctx: Context, condlist: Value, choicelist: Value, default: Value | None = None) -> Value:
    if not (isinstance(condlist, Sequence_) and isinstance(choicelist, Sequence_)):
        ctx.fail("TP104", "np.select takes a list of conditions and a list of choices")
    if len(condlist.items) != len(choicelist.items):
        ctx.fail("TP112", "np.select takes as many conditions as choices")
    result: Value = default or weak(0)
    for cond, choice in reversed(list(zip(condlist.items, choicelist.items, strict=True))):
        result = elementwise(ctx, lambda *s: where(ctx, *s), [cond, choice, result], "np.select")
    return result
