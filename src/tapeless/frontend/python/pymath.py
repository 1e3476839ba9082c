"""The functions of `math` and `cmath`: Python numbers in, Python numbers out.

Takes scalars, gives weak scalars. Arguments outside a function's domain raise ValueError, and results that overflow
OverflowError, when the program runs (not with unsafe=True). A few functions are written in Python, in `small_functions.py`.
"""

from __future__ import annotations

import cmath
import math
from collections.abc import Callable
from dataclasses import dataclass
from functools import reduce
from typing import Any

from tapeless.frontend.data import atoms, scalars
from tapeless.frontend.data.arguments import known
from tapeless.frontend.data.atoms import apply, convert, select
from tapeless.frontend.data.classes import special
from tapeless.frontend.numpy import small_functions
from tapeless.frontend.numpy.elementwise_options import fraction
from tapeless.frontend.python.totals import fold_values
from tapeless.frontend.state.context import Context, type_text
from tapeless.frontend.state.handlers import Handler, register
from tapeless.frontend.state.values import Array, Scalar, Sequence_, Value, weak
from tapeless.ir.types import Atom, Const, DType, const
from tapeless.ops.table import TABLE

F64 = DType.f64
Test = Callable[..., Atom]  # (ctx, *operands) -> condition


def number(value: float) -> Const:
    return const(value, F64)


# -- domains


def _above(name: str, bound: float) -> Test:
    """A condition that NaN passes: not (x < bound) for "lt"."""
    return lambda ctx, x: apply(ctx, "not", apply(ctx, name, x, number(bound)))


def _within_one(ctx: Context, x: Atom) -> Atom:
    return apply(ctx, "not", apply(ctx, "gt", apply(ctx, "abs", x), number(1.0)))


def _inside_one(ctx: Context, x: Atom) -> Atom:
    return apply(ctx, "not", apply(ctx, "ge", apply(ctx, "abs", x), number(1.0)))


def _not_infinite(ctx: Context, x: Atom) -> Atom:
    return apply(ctx, "ne", apply(ctx, "abs", x), number(math.inf))


def _no_pole(ctx: Context, x: Atom) -> Atom:
    """Not zero, nor a negative integer, nor -inf."""
    whole = apply(ctx, "eq", x, apply(ctx, "floor", x))
    return apply(ctx, "not", apply(ctx, "and", apply(ctx, "le", x, number(0.0)), whole))


def _fmod_domain(ctx: Context, x: Atom, y: Atom) -> Atom:
    bad = apply(ctx, "or", apply(ctx, "isinf", x), apply(ctx, "eq", y, number(0.0)))
    some_nan = apply(ctx, "or", apply(ctx, "isnan", x), apply(ctx, "isnan", y))
    return apply(ctx, "or", some_nan, apply(ctx, "not", bad))


def _pow_domain(ctx: Context, x: Atom, y: Atom) -> Atom:
    """Outside: a negative base with a fractional exponent, and 0 to a negative power."""
    zero = number(0.0)
    fractional = apply(ctx, "and", apply(ctx, "ne", y, apply(ctx, "floor", y)), apply(ctx, "isfinite", y))
    finite_negative = apply(ctx, "and", apply(ctx, "lt", x, zero), apply(ctx, "isfinite", x))
    root = apply(ctx, "and", fractional, finite_negative)
    finite_y = apply(ctx, "isfinite", y)
    pole = apply(ctx, "and", apply(ctx, "eq", x, zero), apply(ctx, "and", apply(ctx, "lt", y, zero), finite_y))
    return apply(ctx, "not", apply(ctx, "or", root, pole))


@dataclass(frozen=True)
class Row:
    """A row of the ops table; where its arguments must lie; whether finite arguments may give an infinite result."""

    op: str
    domain: Test | None = None
    overflows: bool = False


ROWS: dict[str, Row] = {
    "sqrt": Row("sqrt", _above("lt", 0.0)),
    "cbrt": Row("cbrt"),
    "exp": Row("exp", overflows=True),
    "exp2": Row("exp2", overflows=True),
    "expm1": Row("expm1", overflows=True),
    "log2": Row("log2", _above("le", 0.0)),
    "log10": Row("log10", _above("le", 0.0)),
    "log1p": Row("log1p", _above("le", -1.0)),
    "sin": Row("sin", _not_infinite),
    "cos": Row("cos", _not_infinite),
    "tan": Row("tan", _not_infinite),
    "asin": Row("asin", _within_one),
    "acos": Row("acos", _within_one),
    "atan": Row("atan"),
    "sinh": Row("sinh", overflows=True),
    "cosh": Row("cosh", overflows=True),
    "tanh": Row("tanh"),
    "asinh": Row("asinh"),
    "acosh": Row("acosh", _above("lt", 1.0)),
    "atanh": Row("atanh", _inside_one),
    "erf": Row("erf"),
    "erfc": Row("erfc"),
    "gamma": Row("gamma", _no_pole, overflows=True),
    "lgamma": Row("gammaln", _no_pole, overflows=True),
    "fabs": Row("abs"),
    "degrees": Row("rad2deg"),
    "radians": Row("deg2rad"),
    "isnan": Row("isnan"),
    "isinf": Row("isinf"),
    "isfinite": Row("isfinite"),
    "atan2": Row("atan2"),
    "copysign": Row("copysign"),
    "nextafter": Row("nextafter"),
    "fmod": Row("fmod", _fmod_domain),
    "remainder": Row("ieee_remainder", _fmod_domain),
    "pow": Row("pow", _pow_domain, overflows=True),
}


def floats(ctx: Context, name: str, args: list[Value]) -> list[Scalar]:
    """The arguments as Python floats."""
    return [Scalar(convert(ctx, scalar(ctx, name, v).atom, F64), True) for v in args]


def scalar(ctx: Context, name: str, value: Value, complex_too: bool = False) -> Scalar:
    value = special(ctx, "__float__", value) or value
    if isinstance(value, Array):
        ctx.fail(
            "TP104",
            f"{name} takes single numbers, not arrays",
            f"use np.{_numpy_name(name)}, or loop over the elements.",
        )
    if not isinstance(value, Scalar) or (value.dtype.is_complex and not complex_too):
        ctx.fail(
            "TP104",
            f"{name} takes real numbers, not {type_text(value)}",
            "use cmath, or take .real first." if isinstance(value, Scalar) else "",
        )
    return value


def _numpy_name(name: str) -> str:
    short = name.partition(".")[2]
    return {"asin": "arcsin", "acos": "arccos", "atan": "arctan", "atan2": "arctan2", "pow": "power"}.get(short, short)


def folded(ctx: Context, function: Callable[..., Any], args: list[Scalar]) -> Scalar | None:
    """The result for constants. Where Python raises, that is left to the run time."""
    if not all(isinstance(a.atom, Const) for a in args):
        return None
    try:
        return weak(function(*(a.atom.value for a in args if isinstance(a.atom, Const))))
    except (ValueError, OverflowError, ZeroDivisionError):
        return None


def guard(ctx: Context, cond: Atom, error: str, message: str) -> None:
    if not ctx.options.unsafe:
        ctx.check(cond, error, message)


def apply_row(ctx: Context, row: Row, *args: Scalar) -> Scalar:
    atoms = [a.atom for a in args]
    if row.domain is not None and not ctx.options.unsafe:
        guard(ctx, row.domain(ctx, *atoms), "ValueError", "math domain error")
    result = apply(ctx, row.op, *atoms)
    if row.overflows:
        guard_overflow(ctx, result, atoms)
    return Scalar(result, True)


def guard_overflow(ctx: Context, result: Atom, operands: list[Atom]) -> None:
    """An infinite result of finite operands raises."""
    if ctx.options.unsafe:
        return
    fine = apply(ctx, "not", apply(ctx, "isinf", result))
    for a in operands:
        fine = apply(ctx, "or", fine, apply(ctx, "isinf", a))
    guard(ctx, fine, "OverflowError", "math range error")


def _handler(name: str) -> Handler:
    row = ROWS[name]
    count = TABLE[row.op].arity
    function = getattr(math, name)

    def handler(ctx: Context, args: list[Value], keywords: dict[str, Value]) -> Value:
        if len(args) != count or keywords:
            ctx.fail(
                "TP112",
                f"math.{name} takes {count} argument{'s' * (count > 1)}, but {len(args) + len(keywords)} were given",
            )
        operands = floats(ctx, f"math.{name}", args)
        return folded(ctx, function, operands) or apply_row(ctx, row, *operands)

    return handler


for _name in ROWS:
    if hasattr(math, _name):
        register(f"math.{_name}", _handler(_name))


# -- functions of several arguments, or of integers


@known("math.log")
def _log(ctx: Context, x: Value, base: Value | None = None) -> Value:
    operands = floats(ctx, "math.log", [x] if base is None else [x, base])
    found = folded(ctx, math.log, operands)
    if found is not None:
        return found
    logs = [apply_row(ctx, Row("log", _above("le", 0.0)), a) for a in operands]
    return logs[0] if len(logs) == 1 else scalars.divide(ctx, logs[0], logs[1])


@known("math.hypot")
def _hypot(ctx: Context, *coordinates: Value) -> Value:
    operands = floats(ctx, "math.hypot", list(coordinates))
    if len(operands) < 2:
        return Scalar(apply(ctx, "abs", operands[0].atom), True) if operands else weak(0.0)
    total = reduce(lambda a, b: apply(ctx, "hypot", a, b), (a.atom for a in operands))
    guard_overflow(ctx, total, [a.atom for a in operands])
    return Scalar(total, True)


@known("math.dist")
def _dist(ctx: Context, p: Value, q: Value) -> Value:
    if not (isinstance(p, Sequence_) and isinstance(q, Sequence_)):
        ctx.fail("TP104", "math.dist takes two tuples of numbers", "use np.linalg.norm(p - q) for arrays.")
    if len(p.items) != len(q.items):
        ctx.fail("TP112", "both points must have the same number of dimensions")
    pairs = zip(floats(ctx, "math.dist", list(p.items)), floats(ctx, "math.dist", list(q.items)), strict=True)
    return _hypot(ctx, *(Scalar(apply(ctx, "sub", a.atom, b.atom), True) for a, b in pairs))


def to_integer(ctx: Context, x: Scalar, row: str = "") -> Scalar:
    """A float as a Python int, rounded by a row of the ops table (or towards zero)."""
    if x.dtype.is_int or x.dtype is DType.bool:
        return Scalar(convert(ctx, x.atom, DType.i64), True)
    if x.dtype.is_complex:
        ctx.fail("TP104", "a complex number cannot become an integer", "take .real first.")
    value = apply(ctx, row, x.atom) if row else x.atom
    guard(ctx, apply(ctx, "eq", value, value), "ValueError", "cannot convert float NaN to integer")
    if not ctx.options.unsafe:
        ctx.check(
            scalars.inside(ctx, value, DType.i64),
            "OverflowError",
            "cannot convert float {0} to a 64-bit integer",
            value,
        )
    return Scalar(convert(ctx, value, DType.i64), True)


@known("math.floor")
def _floor(ctx: Context, x: Value) -> Value:
    return to_integer(ctx, scalar(ctx, "math.floor", x), "floor")


@known("math.ceil")
def _ceil(ctx: Context, x: Value) -> Value:
    return to_integer(ctx, scalar(ctx, "math.ceil", x), "ceil")


@known("math.trunc")
def _trunc(ctx: Context, x: Value) -> Value:
    return to_integer(ctx, scalar(ctx, "math.trunc", x))


@known("math.modf")
def _modf(ctx: Context, x: Value) -> Value:
    (a,) = floats(ctx, "math.modf", [x])
    return Sequence_((Scalar(fraction(ctx, a), True), Scalar(apply(ctx, "trunc", a.atom), True)))


@known("math.ldexp")
def _ldexp(ctx: Context, x: Value, i: Value) -> Value:
    (a,) = floats(ctx, "math.ldexp", [x])
    exponent = convert(ctx, scalars.to_index(ctx, scalar(ctx, "math.ldexp", i)), F64)
    half = apply(ctx, "floor", apply(ctx, "mul", exponent, number(0.5)))  # in two steps: 2**i alone may overflow
    rest = apply(ctx, "sub", exponent, half)
    result = apply(ctx, "mul", apply(ctx, "mul", a.atom, apply(ctx, "exp2", half)), apply(ctx, "exp2", rest))
    result = select(ctx, apply(ctx, "eq", a.atom, number(0.0)), a.atom, result)
    guard_overflow(ctx, result, [a.atom])
    return Scalar(result, True)


@known("math.ulp")
def _ulp(ctx: Context, x: Value) -> Value:
    (a,) = floats(ctx, "math.ulp", [x])
    size = apply(ctx, "abs", a.atom)
    step = apply(ctx, "sub", apply(ctx, "nextafter", size, number(math.inf)), size)
    last = apply(ctx, "sub", size, apply(ctx, "nextafter", size, number(0.0)))  # of the largest float
    step = select(ctx, apply(ctx, "isinf", step), last, step)
    return Scalar(select(ctx, apply(ctx, "isinf", size), size, step), True)


@known("math.isclose")
def _isclose(ctx: Context, a: Value, b: Value, *, rel_tol: Value | None = None, abs_tol: Value | None = None) -> Value:
    operands = [a, b, rel_tol or weak(1e-9), abs_tol or weak(0.0)]
    x, y, rel, least = (v.atom for v in floats(ctx, "math.isclose", operands))
    size = apply(ctx, "max", apply(ctx, "abs", x), apply(ctx, "abs", y))
    bound = apply(ctx, "max", apply(ctx, "mul", rel, size), least)
    near = apply(ctx, "le", apply(ctx, "abs", apply(ctx, "sub", x, y)), bound)
    near = apply(ctx, "and", near, apply(ctx, "isfinite", size))
    return Scalar(apply(ctx, "or", near, apply(ctx, "eq", x, y)), True)


@known("math.prod")
def _prod(ctx: Context, iterable: Value, *, start: Value | None = None) -> Value:
    return fold_values(ctx, "Mult", "math.prod", iterable, start or weak(1))


def _in_python(name: str, function: Any, count: int, many: bool = False) -> None:
    """A function of integers that is written in Python and compiled into the caller."""

    def handler(ctx: Context, args: list[Value], keywords: dict[str, Value]) -> Value:
        if keywords or (len(args) != count and not many):
            ctx.call_error(
                f"{name} takes {count} argument{'s' * (count > 1)}, but {len(args) + len(keywords)} were given"
            )
        numbers = [scalar(ctx, name, v) for v in args]
        if any(not (n.dtype.is_int or n.dtype is DType.bool) for n in numbers):
            ctx.fail("TP104", f"{name} takes integers", "use int(...) or // to make them.")
        integers: list[Value] = [Scalar(convert(ctx, n.atom, DType.i64), True) for n in numbers]
        if not many:
            return small_functions.inline(ctx, function, integers)
        first: Value = weak(0 if name == "math.gcd" else 1)
        return reduce(lambda a, b: small_functions.inline(ctx, function, [a, b]), integers, first)

    register(name, handler)


_in_python("math.gcd", small_functions.gcd, 2, many=True)
_in_python("math.lcm", small_functions.lcm, 2, many=True)
_in_python("math.factorial", small_functions.factorial, 1)
_in_python("math.comb", small_functions.comb, 2)
_in_python("math.isqrt", small_functions.isqrt, 1)
_in_python("math.perm", small_functions.perm, 2)


# -- complex numbers

C128 = DType.c128
COMPLEX_ROWS = (
    "exp",
    "log10",
    "sqrt",
    "sin",
    "cos",
    "tan",
    "asin",
    "acos",
    "atan",
    "sinh",
    "cosh",
    "tanh",
    "asinh",
    "acosh",
    "atanh",
    "isnan",
    "isinf",
    "isfinite",
)


POLES = {"log10": (0,), "atan": (1j, -1j), "atanh": (1, -1)}
OVERFLOWING = ("exp", "sinh", "cosh", "sin", "cos")


def _complex(ctx: Context, name: str, value: Value) -> Scalar:
    return Scalar(convert(ctx, scalar(ctx, name, value, complex_too=True).atom, C128), True)


def _complex_handler(name: str) -> Handler:
    def body(ctx: Context, args: list[Value], keywords: dict[str, Value]) -> Value:
        if len(args) != 1 or keywords:
            ctx.call_error(f"cmath.{name} takes one argument, but {len(args) + len(keywords)} were given")
        z = _complex(ctx, f"cmath.{name}", args[0])
        for pole in POLES.get(name, ()):
            guard(ctx, apply(ctx, "ne", z.atom, const(pole, C128)), "ValueError", "math domain error")
        result = apply(ctx, name, z.atom)
        if name in OVERFLOWING:
            fine = atoms.logical_not(ctx, apply(ctx, "isfinite", z.atom))
            fine = atoms.logical_or(ctx, fine, apply(ctx, "isfinite", result))
            guard(ctx, fine, "OverflowError", "math range error")
        return folded(ctx, getattr(cmath, name), [z]) or Scalar(result, True)

    return body


for _name in COMPLEX_ROWS:
    register(f"cmath.{_name}", _complex_handler(_name))


def _nonzero(ctx: Context, z: Scalar) -> None:
    guard(ctx, apply(ctx, "ne", z.atom, const(0, C128)), "ValueError", "math domain error")


@known("cmath.log")
def _complex_log(ctx: Context, z: Value, base: Value | None = None) -> Value:
    parts = [_complex(ctx, "cmath.log", v) for v in (z, base) if v is not None]
    for p in parts:
        _nonzero(ctx, p)
    logs = [Scalar(apply(ctx, "log", p.atom), True) for p in parts]
    return logs[0] if len(logs) == 1 else scalars.divide(ctx, logs[0], logs[1])


@known("cmath.phase")
def _phase(ctx: Context, z: Value) -> Value:
    return Scalar(apply(ctx, "angle", _complex(ctx, "cmath.phase", z).atom), True)


@known("cmath.polar")
def _polar(ctx: Context, z: Value) -> Value:
    value = _complex(ctx, "cmath.polar", z).atom
    return Sequence_((Scalar(apply(ctx, "abs", value), True), Scalar(apply(ctx, "angle", value), True)))


@known("cmath.rect")
def _rect(ctx: Context, r: Value, phi: Value) -> Value:
    size, angle = (v.atom for v in floats(ctx, "cmath.rect", [r, phi]))
    parts = [apply(ctx, "mul", size, apply(ctx, name, angle)) for name in ("cos", "sin")]
    return Scalar(apply(ctx, "complex", *parts), True)
