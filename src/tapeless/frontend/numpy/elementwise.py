"""NumPy's element-wise functions, and those of scipy.special.

Takes numbers and arrays, gives NumPy numbers and new arrays: one row of the ops table for each function where there is
one, a few lines where there is not. Promotion is NumPy 2's; results are never Python numbers.
"""

from __future__ import annotations

import math
from collections.abc import Callable
from dataclasses import dataclass
from functools import reduce

from tapeless.frontend.data import scalars
from tapeless.frontend.data.arguments import write_out
from tapeless.frontend.data.arrays import elementwise
from tapeless.frontend.data.atoms import apply, convert, lazy_if, select
from tapeless.frontend.data.scalars import before, compare, fitted, truth
from tapeless.frontend.numpy import small_functions
from tapeless.frontend.state.context import Context, type_text
from tapeless.frontend.state.handlers import Handler, register
from tapeless.frontend.state.values import Array, Scalar, Static, Value, weak
from tapeless.ir.types import Atom, DType, const, one_of, zero_of
from tapeless.ops.borrowed import BORROWED, SHAPED
from tapeless.ops.op import BOOLS, FLOATS, NUMERIC
from tapeless.ops.promotion import KIND, float_dtype, promote, ufunc_dtype
from tapeless.ops.table import op

ScalarRule = Callable[..., Scalar]  # (ctx, *numbers) -> number


@dataclass(frozen=True)
class Row:
    """A row of the ops table as a NumPy function; `on_bool` and `on_int` name rows that take those types instead."""

    op: str
    floating: Callable[[DType], DType] | None = None  # integers and bools become floats of this type first
    on_bool: str = ""
    on_int: str = ""
    only: frozenset[DType] = NUMERIC | BOOLS
    whole: bool = False  # of the first number only what is before its point counts


def _floating(
    *names: str, floats: Callable[[DType], DType] = ufunc_dtype, only: frozenset[DType] = NUMERIC | BOOLS
) -> dict[str, Row]:
    """Functions of floats under the name of their row; "name=row" where the names differ."""
    return {n.partition("=")[0]: Row(n.partition("=")[2] or n, floating=floats, only=only) for n in names}


ROWS: dict[str, Row] = {
    **_floating("sin", "cos", "tan", "sinh", "cosh", "tanh", "exp", "exp2", "expm1", "log", "log2", "log10", "log1p"),
    **_floating("arcsin=asin", "arccos=acos", "arctan=atan", "arcsinh=asinh", "arccosh=acosh", "arctanh=atanh"),
    **_floating("sqrt", "cbrt", "arctan2=atan2", "hypot", "copysign", "nextafter", "logaddexp", "rint"),
    **_floating("deg2rad", "rad2deg", "radians=deg2rad", "degrees=rad2deg"),
    **_floating("isnan", "isinf", "isfinite", "signbit"),
    "add": Row("add", on_bool="or"),
    "subtract": Row("sub"),
    "multiply": Row("mul", on_bool="and"),
    "negative": Row("neg"),
    "positive": Row("identity", only=NUMERIC),
    "abs": Row("abs", on_bool="identity"),
    "fabs": Row("abs", floating=ufunc_dtype, only=FLOATS),
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
    **_floating("erf", "erfc", "gamma", "gammaln", "digamma", "psi=digamma", "expit", "logit", floats=float_dtype),
    **_floating("exp2", "expm1", "log1p", "cbrt", floats=float_dtype, only=FLOATS),
    **_floating("xlogy", "jn=jv", floats=float_dtype),
    **_floating(
        *(name for name in BORROWED if not name.startswith("scipy_") and name not in SHAPED), floats=float_dtype
    ),
    "yn": Row("yn", floating=float_dtype, whole=True),
    "kn": Row("kv", floating=float_dtype, whole=True),
}


def apply_row(ctx: Context, name: str, row: Row, *args: Scalar) -> Scalar:
    dtype = common_dtype(args)
    if row.floating:
        dtype = row.floating(dtype)
    used = row.op
    if dtype is DType.bool and row.on_bool:
        used = row.on_bool
    elif dtype.is_int and row.on_int:
        used = row.on_int
    if dtype.work not in op(used).dtypes & row.only:
        ctx.fail("TP104", f"{name} does not take {' and '.join(type_text(a) for a in args)}")
    numbers = [fitted(ctx, a, dtype) for a in args]
    if row.whole:
        numbers[0] = apply(ctx, "trunc", numbers[0])
    return Scalar(scalars.arithmetic(ctx, used, *numbers))


def common_dtype(args: tuple[Scalar, ...] | list[Scalar]) -> DType:
    """The type in which NumPy computes with these numbers."""
    return reduce(lambda a, b: promote(*a, *b), ((a.dtype, a.weak) for a in args))[0]


def together(ctx: Context, *args: Scalar, floating: Callable[[DType], DType] = lambda dtype: dtype) -> list[Atom]:
    """The numbers in their common type."""
    dtype = floating(common_dtype(args))
    return [fitted(ctx, a, dtype) for a in args]


# -- functions that are not one row


def where(ctx: Context, cond: Scalar, x: Scalar, y: Scalar) -> Scalar:
    a, b = together(ctx, x, y)
    return Scalar(select(ctx, truth(ctx, cond), a, b))


def divide(ctx: Context, x: Scalar, y: Scalar) -> Scalar:
    a, b = together(ctx, x, y)
    if a.type.dtype is DType.bool or a.type.dtype.is_int:  # of any width
        a, b = convert(ctx, a, DType.f64), convert(ctx, b, DType.f64)
    return Scalar(apply(ctx, "div", a, b))


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
    if a.type.dtype.is_int:  # the sign of the dividend, not of the divisor
        zero, rest = zero_of(a.type.dtype), apply(ctx, "mod", a, b)
        opposite = apply(ctx, "lt", apply(ctx, "xor", a, b), zero)
        turned = apply(ctx, "and", opposite, apply(ctx, "ne", rest, zero))
        return Scalar(select(ctx, turned, apply(ctx, "sub", rest, b), rest))
    return apply_row(ctx, "np.fmod", Row("fmod"), Scalar(a), Scalar(b))


def heaviside(ctx: Context, x: Scalar, at_zero: Scalar) -> Scalar:
    a, h = together(ctx, x, at_zero, floating=ufunc_dtype)
    dtype = a.type.dtype
    zero, one = zero_of(dtype), one_of(dtype)
    step = select(ctx, apply(ctx, "lt", a, zero), zero, select(ctx, apply(ctx, "gt", a, zero), one, h))
    return Scalar(select(ctx, apply(ctx, "isnan", a), a, step))


def sinc(ctx: Context, x: Scalar) -> Scalar:
    (a,) = together(ctx, x, floating=float_dtype)
    return Scalar(apply(ctx, "sinc", apply(ctx, "mul", const(math.pi, a.type.dtype), a)))


def conj(ctx: Context, x: Scalar) -> Scalar:
    if x.dtype is DType.bool and not x.weak:
        ctx.fail("TP104", "np.conj of bools gives int8, which is not supported", "convert them to integers first.")
    return Scalar(apply(ctx, "conj" if x.dtype.is_complex else "identity", x.atom))


def real(ctx: Context, x: Scalar) -> Scalar:
    return Scalar(apply(ctx, "real", x.atom), x.weak) if x.dtype.is_complex else x


def imag(ctx: Context, x: Scalar) -> Scalar:
    return Scalar(apply(ctx, "imag", x.atom) if x.dtype.is_complex else zero_of(x.dtype), x.weak)


def angle(ctx: Context, z: Scalar) -> Scalar:
    (a,) = together(ctx, z, floating=ufunc_dtype)
    if a.type.dtype.is_complex:
        return Scalar(apply(ctx, "angle", a))
    return Scalar(apply(ctx, "atan2", zero_of(a.type.dtype), a))


def sign(ctx: Context, x: Scalar) -> Scalar:
    if not x.dtype.is_complex:
        return apply_row(ctx, "np.sign", ROWS["sign"], x)
    size, zero = apply(ctx, "abs", x.atom), zero_of(x.dtype.real)
    endless, none = apply(ctx, "isinf", size), apply(ctx, "eq", size, zero)
    parts = []
    for name in ("real", "imag"):  # z / |z|; of infinities the one infinite part counts
        part = apply(ctx, name, x.atom)
        ratio = select(ctx, none, zero, apply(ctx, "div", part, select(ctx, none, one_of(zero.dtype), size)))
        whole = select(ctx, apply(ctx, "isinf", part), apply(ctx, "copysign", one_of(zero.dtype), part), zero)
        parts.append(select(ctx, endless, whole, ratio))
    both = apply(ctx, "and", *(apply(ctx, "ne", p, zero) for p in parts))
    unknown = apply(ctx, "or", apply(ctx, "isnan", size), apply(ctx, "and", endless, both))
    nan = const(math.nan, zero.dtype)
    return Scalar(apply(ctx, "complex", *(select(ctx, unknown, nan, p) for p in parts)))


def extremum(name: str) -> ScalarRule:
    """np.maximum and its kin: a row for real numbers, a choice in the order of complex ones (Note [Ties] of ops/table.py)."""

    def rule(ctx: Context, x: Scalar, y: Scalar) -> Scalar:
        a, b = together(ctx, x, y)
        if not a.type.dtype.is_complex:
            return apply_row(ctx, f"np.{name}", ROWS[name], x, y)
        greatest, loses = name.endswith("max") or name == "maximum", name.startswith("f")
        first = apply(ctx, "or", before(ctx, "ge" if greatest else "le", a, b), apply(ctx, "isnan", b if loses else a))
        return Scalar(select(ctx, first, a, b))

    return rule


def rint(ctx: Context, x: Scalar) -> Scalar:
    if not x.dtype.is_complex:
        return apply_row(ctx, "np.rint", ROWS["rint"], x)
    parts = [apply(ctx, "rint", apply(ctx, part, x.atom)) for part in ("real", "imag")]
    return Scalar(apply(ctx, "complex", *parts))


def count_bits(ctx: Context, x: Scalar) -> Atom:
    """How many bits of the absolute value are 1, for integers of any width."""
    number = x.atom if x.dtype.is_unsigned else convert(ctx, x.atom, x.dtype.work)  # where -(-128) is 128
    return apply(ctx, "count_bits", apply(ctx, "abs", number))


def bitwise_count(ctx: Context, x: Scalar) -> Scalar:
    (a,) = together(ctx, x)
    if not (a.type.dtype is DType.bool or a.type.dtype.is_int):
        ctx.fail("TP104", f"np.bitwise_count does not take {type_text(x)}")
    return Scalar(convert(ctx, a if a.type.dtype is DType.bool else count_bits(ctx, Scalar(a)), DType.u8))


def of_integers(name: str, signed: Callable[..., int], unsigned: Callable[..., int]) -> ScalarRule:
    """A function of two integers that is written in Python, for signed ones and for those of 64 bits that are not."""

    def rule(ctx: Context, x: Scalar, y: Scalar) -> Scalar:
        a, b = together(ctx, x, y)
        kind = a.type.dtype
        if not kind.is_int:
            ctx.fail("TP104", f"{name} takes integers, not {type_text(y if x.dtype.is_int else x)}")
        wide, function = (kind, unsigned) if kind is DType.u64 else (DType.i64, signed)
        result = small_functions.inline(ctx, function, [Scalar(convert(ctx, v, wide)) for v in (a, b)])
        assert isinstance(result, Scalar)
        return Scalar(convert(ctx, result.atom, kind))

    return rule


def logical(row: str) -> ScalarRule:
    return lambda ctx, x, y: Scalar(apply(ctx, row, truth(ctx, x), truth(ctx, y)))


def comparison(name: str) -> ScalarRule:
    return lambda ctx, x, y: Scalar(compare(ctx, name, x, y).atom)


def _xlog1py(ctx: Context, x: Scalar, y: Scalar) -> Scalar:
    a, b = together(ctx, x, y, floating=float_dtype)
    if a.type.dtype.is_complex:
        ctx.fail("TP104", "special.xlog1py does not take complex numbers")
    product = apply(ctx, "mul", a, apply(ctx, "log1p", b))
    trivial = apply(ctx, "and", apply(ctx, "eq", a, zero_of(a.type.dtype)), apply(ctx, "eq", b, b))
    return Scalar(select(ctx, trivial, zero_of(a.type.dtype), product))


def _entr(ctx: Context, x: Scalar) -> Scalar:
    (a,) = together(ctx, x, floating=ufunc_dtype)
    negative = apply(ctx, "lt", a, zero_of(a.type.dtype))
    value = apply(ctx, "neg", apply(ctx, "xlogy", a, a))
    zero = apply(ctx, "eq", a, zero_of(a.type.dtype))
    value = select(ctx, zero, zero_of(a.type.dtype), value)
    return Scalar(select(ctx, negative, const(-math.inf, a.type.dtype), value))


def _betaln(ctx: Context, x: Scalar, y: Scalar) -> Scalar:
    """log |B(a, b)|, as scipy has it: at poles (0, -1, ...) it is infinite unless the other one is whole and small
    enough to lift it, and where one operand is far larger a series saves the digits that gammaln(a) - gammaln(a + b)
    would lose.
    """
    a, b = together(ctx, x, y, floating=float_dtype)
    kind, dtype = a.type.dtype, DType.f64
    if kind.is_complex:
        ctx.fail("TP104", "special.betaln does not take complex numbers")
    a, b = convert(ctx, a, dtype), convert(ctx, b, dtype)
    zero, one = zero_of(dtype), one_of(dtype)
    whole_a, whole_b = (apply(ctx, "eq", apply(ctx, "floor", v), v) for v in (a, b))
    pole_a = apply(ctx, "and", whole_a, apply(ctx, "le", a, zero))
    pole_b = apply(ctx, "and", whole_b, apply(ctx, "le", b, zero))
    pole = apply(ctx, "or", pole_a, pole_b)
    low, other = select(ctx, pole_a, a, b), select(ctx, pole_a, b, a)
    lifted = apply(ctx, "sub", apply(ctx, "sub", one, low), other)
    near = apply(ctx, "gt", low, const(1 - 2.0**31, dtype))  # as far as scipy looks
    reachable = apply(
        ctx, "and", apply(ctx, "gt", lifted, zero), apply(ctx, "and", near, apply(ctx, "gt", other, zero))
    )
    reachable = apply(ctx, "and", reachable, select(ctx, pole_a, whole_b, whole_a))
    infinite = apply(ctx, "and", pole, apply(ctx, "not", reachable))
    a = select(ctx, infinite, one, select(ctx, pole, lifted, a))
    b = select(ctx, infinite, one, select(ctx, pole, other, b))
    sizes = apply(ctx, "abs", a), apply(ctx, "abs", b)
    first = apply(ctx, "lt", *sizes)
    large, small = select(ctx, first, b, a), select(ctx, first, a, b)
    far = apply(ctx, "gt", large, apply(ctx, "mul", const(1e6, dtype), apply(ctx, "abs", small)))
    far = apply(ctx, "and", far, apply(ctx, "gt", large, const(1e6, dtype)))
    value = select(ctx, far, _far_betaln(ctx, select(ctx, far, large, one), small), _near_betaln(ctx, large, small))
    return Scalar(convert(ctx, select(ctx, infinite, const(math.inf, dtype), value), kind))


def _near_betaln(ctx: Context, a: Atom, b: Atom) -> Atom:
    rest = apply(ctx, "sub", apply(ctx, "gammaln", b), apply(ctx, "gammaln", apply(ctx, "add", a, b)))
    return apply(ctx, "add", apply(ctx, "gammaln", a), rest)


def _far_betaln(ctx: Context, a: Atom, b: Atom) -> Atom:
    """gammaln(b) - b log a + b (1 - b) / 2 a."""
    dtype = a.type.dtype
    result = apply(ctx, "sub", apply(ctx, "gammaln", b), apply(ctx, "mul", b, apply(ctx, "log", a)))
    second = apply(ctx, "mul", b, apply(ctx, "sub", one_of(dtype), b))
    return apply(ctx, "add", result, apply(ctx, "div", second, apply(ctx, "mul", const(2, dtype), a)))


def _ndtr(ctx: Context, x: Scalar) -> Scalar:
    (a,) = together(ctx, x, floating=float_dtype)
    tail = apply(ctx, "erfc", apply(ctx, "mul", a, const(-math.sqrt(0.5), a.type.dtype)))
    return Scalar(apply(ctx, "mul", const(0.5, a.type.dtype), tail))


# name -> (how many operands, the rule)
RULES: dict[str, tuple[int, ScalarRule]] = {
    "np.divide": (2, divide),
    "np.power": (2, power),
    "np.float_power": (2, float_power),
    "np.fmod": (2, fmod),
    "np.heaviside": (2, heaviside),
    "np.sinc": (1, sinc),
    "np.conj": (1, conj),
    "np.angle": (1, angle),
    "np.sign": (1, sign),
    "np.rint": (1, rint),
    "np.bitwise_count": (1, bitwise_count),
    "np.gcd": (2, of_integers("np.gcd", small_functions.gcd, small_functions.unsigned_gcd)),
    "np.lcm": (2, of_integers("np.lcm", small_functions.lcm, small_functions.unsigned_lcm)),
    "np.maximum": (2, extremum("maximum")),
    "np.minimum": (2, extremum("minimum")),
    "np.fmax": (2, extremum("fmax")),
    "np.fmin": (2, extremum("fmin")),
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


def _where_chosen(ctx: Context, name: str, rule: ScalarRule, args: list[Value], where: Value, out: Value) -> Value:
    """f(..., out=a, where=mask): `a` takes the results that the mask chooses; the others are not even computed."""
    if not isinstance(out, Array):
        ctx.fail("TP112", f"{name}: where without out leaves elements open", "give an array: out=np.zeros(...).")
    kind = out.type.dtype

    def element(chosen: Scalar, old: Scalar, *numbers: Scalar) -> Scalar:
        if chosen.dtype is not DType.bool:
            ctx.fail("TP104", f"{name}: 'where' must be made of bools, not {type_text(chosen)}")

        def made() -> Atom:
            result = rule(ctx, *numbers)
            if KIND[result.dtype] > KIND[kind]:
                ctx.fail(
                    "TP104", f"{name}: results of {result.dtype.numpy.name} do not fit into 'out', {kind.numpy.name}"
                )
            return convert(ctx, result.atom, kind)

        return Scalar(lazy_if(ctx, chosen.atom, made, lambda: old.atom, old.atom.type))

    return write_out(ctx, name, out, elementwise(ctx, element, [where, out, *args], name))


def _handler(name: str) -> Handler:
    found = rule_of(name)
    assert found is not None
    count, rule = found

    def handler(ctx: Context, args: list[Value], keywords: dict[str, Value]) -> Value:
        out, where = (keywords.get(key, Static(None)) for key in ("out", "where"))
        for key in keywords:
            if key not in ("out", "where"):
                ctx.fail(
                    "TP112", f"{name}: the argument '{key}' cannot be compiled", "leave it out if its default is meant."
                )
        if len(args) == count + 1:
            out = args.pop()
        if len(args) != count:
            ctx.call_error(f"{name} takes {count} argument{'s' * (count != 1)}, but {len(args)} were given")
        if where not in (Static(None), weak(True)):
            return _where_chosen(ctx, name, rule, args, where, out)
        result = elementwise(ctx, lambda *s: rule(ctx, *s), args, name)
        return result if out == Static(None) else write_out(ctx, name, out, result)

    return handler


for _name in [*(f"np.{n}" for n in ROWS), *(f"special.{n}" for n in SPECIAL), *RULES]:
    register(_name, _handler(_name))
