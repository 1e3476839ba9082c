"""The ops table: one row for each operation on scalars, generic over the element type.

Gives `TABLE` and `op`. Operands of a row have one element type (conversions are explicit in Core), results follow
`Op.result`. The `numpy` column takes NumPy scalars or arrays of the row's types, never warns and keeps the type.
The `partials` column is `PARTIALS` of ops/partials.py.

Note [Division]
Every row is total: code may be moved and speculated without asking. On integers x // 0 and x % 0 are 0 and
INT_MIN // -1 wraps to INT_MIN, as in NumPy; Python's ZeroDivisionError is a check of its own. `floordiv` rounds down
and `mod` has the sign of the divisor. On floats, for y == 0, they are x / y and NaN; otherwise, with r = fmod(x, y)
and `turn` for r != 0 and (r < 0) != (y < 0), and q = (x - r) / y, less 1 if turn:
    mod      = r + y if turn, copysign(0, y) if r == 0, else r
    floordiv = copysign(0, x / y) if q == 0, floor(q) + 1 if q - floor(q) > 0.5, else floor(q)
`ipow` with a negative exponent, where NumPy raises, is the reciprocal rounded to zero: 0 unless the base is 1 or -1.
A shift by the width or more, or by a negative amount, gives 0, or -1 where a negative number is shifted to the right.

Note [Ties]
The first operand wins ties in all six extrema, so they agree on -0.0 and 0.0 with each other and with gradients:
    min(a, b)     = b if b < a else a                    Python's: a first NaN wins, a second one loses
    minimum(a, b) = a if a <= b or a is NaN else b       NaN wins
    fmin(a, b)    = a if a <= b or b is NaN else b       NaN loses
None of them is LLVM's intrinsic of that name, which orders the zeros.

Note [Loose rows]
Derivatives are right to a few ulp. What is computed again for nothing but slopes (`ad.bodies`) need not be rounded as the
program's own values are, so it takes the row that does with less: `quotient` for `div` (Note [Loose quotients] in `passes`),
`loose_tanh` for `tanh`, which has all but a product in common with the slope `sech2`. Where the program's own
row is there already, `cse` takes that one.

Note [Direction]
`direction(x, y)` is x / hypot(x, y), the slope of hypot: the cosine of the angle of (x, y). It is 0 at (0, 0). For an
infinite x it is 1 or -1, for an infinite y beside a finite x it is 0: that is the limit, unless both are infinite.

Note [Convert]
`convert` is bound to a variable of the target type, and its `numpy` takes (x, target NumPy dtype). Floats are
truncated; NaN and floats outside the integer type give its least value. Integers wrap. Complex numbers lose their
imaginary part, except towards bool: that is x != 0.

Note [Polygamma]
`polygamma(n, x)` is the derivative of order n of digamma, for whole n from 1 to 170; NaN for any other n. With Hurwitz'
zeta, the sum of 1 / (x + k) ** s over k = 0, 1, ..., it is (-1) ** (n + 1) n! zeta(n + 1, x) for x > 0. Elsewhere,
(-1) ** n polygamma(n, 1 - x) - polygamma(n, x) is a derivative of pi cot(pi x), which has period 1: it is the same at
the distance of x from the whole number below, so zeta(n + 1, x) above becomes, with up = ceil(x) - x,
    zeta(n + 1, x - floor(x)) - (-1) ** n zeta(n + 1, up) + (-1) ** n zeta(n + 1, 1 - x)
At the poles 0, -1, ... that is inf for odd n and NaN for even n. Where x ** -(n + 1) underflows, so does the result.
"""

from __future__ import annotations

from collections.abc import Callable, Sequence
from importlib import import_module
from typing import Any

import numpy as np

from tapeless.ir.types import DType
from tapeless.ops.op import (
    ALL,
    BOOLS,
    COMPLEX,
    FLOATS,
    INTS,
    NUMERIC,
    REAL,
    Foreign,
    Instruction,
    Intrinsic,
    Libm,
    Op,
    Special,
    Spelling,
)
from tapeless.ops.partials import PARTIALS

INEXACT = FLOATS | COMPLEX
CHEAP, DIVIDE, CALL, HEAVY = 1, 4, 15, 30  # costs, in additions
LARGEST_ORDER = 170  # of polygamma: the factorial of 171 is infinite


def op(name: str) -> Op:
    return TABLE[name]


def _special(name: str) -> Callable[..., Any]:
    """A function of scipy.special, which takes long to import: when it is called for the first time."""

    def call(*args: Any) -> Any:
        return getattr(import_module("scipy.special"), name)(*args)

    return call


# --- results -----------------------------------------------------------------------------------------------------


def _bool(dtypes: Sequence[DType]) -> DType:
    return DType.bool


def _real(dtypes: Sequence[DType]) -> DType:
    return dtypes[0].real


def _complex(dtypes: Sequence[DType]) -> DType:
    return dtypes[0].complex


def _pattern(dtypes: Sequence[DType]) -> DType:
    return DType.i32 if dtypes[0] is DType.f32 else DType.i64


def _second(dtypes: Sequence[DType]) -> DType:
    return dtypes[1]


def _of_the_bound_variable(dtypes: Sequence[DType]) -> DType:
    raise TypeError("the result type of convert is that of the variable it is bound to: Note [Convert]")


# --- evaluations that NumPy does not have under one name ---------------------------------------------------------


def _ipow(x: Any, n: Any) -> Any:
    sign = np.where(np.bitwise_and(n, 1) == 1, x, 1)  # of 1 ** n and (-1) ** n
    return np.where(n >= 0, np.power(x, np.maximum(n, 0)), np.where(np.abs(x) == 1, sign, 0)).astype(x.dtype)


def _nan(x: Any) -> Any:
    return np.not_equal(x, x)


def _convert(x: Any, target: np.dtype[Any]) -> Any:
    x = np.asarray(x)
    if target.kind == "b":
        return x != 0
    if x.dtype.kind == "c" and target.kind != "c":
        x = x.real
    if x.dtype.kind == "f" and target.kind == "i":
        least = np.iinfo(target).min
        inside = np.abs(x) < -float(least)
        return np.where(inside, np.where(inside, x, 0).astype(target), np.array(least, target))
    return x.astype(target)


def _make_complex(x: Any, y: Any) -> Any:  # x + 1j * y would make NaN of infinite parts
    z = np.empty(np.broadcast(x, y).shape, np.result_type(x, y, np.complex64))
    z.real, z.imag = x, y
    return z


def _polygamma(n: Any, x: Any) -> Any:
    special = import_module("scipy.special")
    dtype, n, x = np.result_type(n, x), np.asarray(n, np.float64), np.asarray(x, np.float64)
    known = (n >= 1) & (n <= LARGEST_ORDER) & (n == np.floor(n))
    s, odd = np.where(known, n, 1) + 1, n % 2 == 1
    below = np.where(x > 0, np.nan, x)
    down, up = special.zeta(s, below - np.floor(below)), special.zeta(s, np.ceil(below) - below)
    right, left = special.zeta(s, np.where(x > 0, x, np.nan)), special.zeta(s, 1 - below)
    value = np.where(x > 0, right, np.where(odd, down + up - left, down - up + left))  # Note [Polygamma]
    return np.where(known & ~np.isnan(x), np.where(odd, 1, -1) * special.gamma(s) * value, np.nan).astype(dtype)


def _sinc(x: Any) -> Any:
    return np.where(x == 0, np.ones_like(x), np.sin(x) / x)


def _direction(x: Any, y: Any) -> Any:
    size = np.hypot(x, y)
    ratio = x / np.where(size == 0, np.ones_like(size), size)
    return np.where(np.isinf(x), np.sign(x), ratio)


def _sech2(x: Any) -> Any:
    e = np.exp(-2 * np.abs(x))  # of the type of x, as 2 is a Python number
    return 4 * e / np.square(1 + e)


# --- rows --------------------------------------------------------------------------------------------------------


def _row(
    arity: int, name: str, dtypes: frozenset[DType], numpy: Callable[..., Any], llvm: Spelling, cost: int, **more: Any
) -> Op:
    def evaluate(*args: Any) -> Any:
        with np.errstate(all="ignore"):
            return numpy(*args)[()]  # a scalar rather than an array of rank 0

    return Op(name, arity, dtypes, evaluate, llvm, cost=cost, partials=PARTIALS[name], **more)


def _unary(
    name: str, dtypes: frozenset[DType], numpy: Callable[..., Any], llvm: Spelling, cost: int = CHEAP, **more: Any
) -> Op:
    return _row(1, name, dtypes, numpy, llvm, cost, **more)


def _binary(
    name: str, dtypes: frozenset[DType], numpy: Callable[..., Any], llvm: Spelling, cost: int = CHEAP, **more: Any
) -> Op:
    return _row(2, name, dtypes, numpy, llvm, cost, **more)


def _compare(name: str, symbol: str, dtypes: frozenset[DType], numpy: Callable[..., Any], *predicates: str) -> Op:
    integer, floating = predicates
    llvm = Instruction(f"icmp {integer}", f"fcmp {floating}")
    return _binary(name, dtypes, numpy, llvm, result=_bool, symbol=symbol, commutative=symbol in ("==", "!="))


def _libm(name: str, numpy: Callable[..., Any], dtypes: frozenset[DType] = FLOATS) -> Op:
    """A function of one argument that both libm and libmvec have under this name."""
    return _unary(name, dtypes, numpy, Libm(name, vector=True), CALL)


ARITHMETIC = (
    _binary("add", NUMERIC, np.add, Instruction("add", "fadd"), symbol="+", commutative=True),
    _binary("sub", NUMERIC, np.subtract, Instruction("sub", "fsub"), symbol="-"),
    _binary("mul", NUMERIC, np.multiply, Instruction("mul", "fmul"), symbol="*", commutative=True),
    _binary("times", INEXACT, np.multiply, Instruction("", "fmul")),  # Note [Products of slopes]
    _binary("div", INEXACT, np.divide, Instruction("", "fdiv"), DIVIDE, symbol="/"),
    _binary("quotient", INEXACT, np.divide, Instruction("", "fdiv"), DIVIDE),  # Note [Loose rows]
    _binary("floordiv", REAL, np.floor_divide, Special("floordiv"), 2 * DIVIDE, symbol="//"),  # Note [Division]
    _binary("mod", REAL, np.remainder, Special("mod"), 2 * DIVIDE, symbol="%"),  # Note [Division]
    _binary("fmod", FLOATS, np.fmod, Libm("fmod"), CALL),
    _binary("pow", INEXACT, np.power, Libm("pow", vector=True), HEAVY, symbol="**"),
    _binary("ipow", INTS, _ipow, Special("ipow"), HEAVY, symbol="**"),  # Note [Division]
    _unary("neg", NUMERIC, np.negative, Instruction("neg", "fneg"), symbol="-"),  # on integers 0 - x
    _unary("abs", NUMERIC, np.abs, Intrinsic("fabs", "abs"), result=_real),  # abs(INT_MIN) wraps
    _unary("sign", REAL, np.sign, Special("sign")),  # NaN for NaN, 0.0 for -0.0
    _unary("square", NUMERIC, np.square, Special("square")),
    _unary("reciprocal", INEXACT, np.reciprocal, Special("reciprocal"), DIVIDE),
    _unary("identity", ALL, np.array, Special("identity"), 0),
    _unary("stop_gradient", INEXACT, np.array, Special("identity"), 0),  # a constant to derivatives
)

EXTREMA = (  # Note [Ties]
    _binary("min", REAL, lambda a, b: np.where(b < a, b, a), Special("min")),
    _binary("max", REAL, lambda a, b: np.where(b > a, b, a), Special("max")),
    _binary("minimum", REAL, lambda a, b: np.where((a <= b) | _nan(a), a, b), Special("minimum")),
    _binary("maximum", REAL, lambda a, b: np.where((a >= b) | _nan(a), a, b), Special("maximum")),
    _binary("fmin", REAL, lambda a, b: np.where((a <= b) | _nan(b), a, b), Special("fmin")),
    _binary("fmax", REAL, lambda a, b: np.where((a >= b) | _nan(b), a, b), Special("fmax")),
)

COMPARISONS = (
    _compare("lt", "<", REAL, np.less, "slt", "olt"),
    _compare("le", "<=", REAL, np.less_equal, "sle", "ole"),
    _compare("gt", ">", REAL, np.greater, "sgt", "ogt"),
    _compare("ge", ">=", REAL, np.greater_equal, "sge", "oge"),
    _compare("eq", "==", ALL, np.equal, "eq", "oeq"),
    _compare("ne", "!=", ALL, np.not_equal, "ne", "une"),
)

BITS = (
    _binary("and", INTS | BOOLS, np.bitwise_and, Instruction("and"), symbol="&", commutative=True),
    _binary("or", INTS | BOOLS, np.bitwise_or, Instruction("or"), symbol="|", commutative=True),
    _binary("xor", INTS | BOOLS, np.bitwise_xor, Instruction("xor"), symbol="^", commutative=True),
    _unary("not", INTS | BOOLS, np.invert, Special("not"), symbol="~"),
    _binary("shl", INTS, np.left_shift, Special("shl"), symbol="<<"),  # Note [Division]
    _binary("shr", INTS, np.right_shift, Special("shr"), symbol=">>"),  # Note [Division]
)

CHOICE = (
    _row(3, "select", ALL, np.where, Instruction("select", "select"), CHEAP, result=_second),  # bool, t, t -> t
    _unary("convert", ALL, _convert, Special("convert"), result=_of_the_bound_variable),  # Note [Convert]
)

ROUNDING = (
    _unary("floor", FLOATS, np.floor, Intrinsic("floor")),
    _unary("ceil", FLOATS, np.ceil, Intrinsic("ceil")),
    _unary("rint", FLOATS, np.rint, Intrinsic("rint")),  # halves to even
    _unary("trunc", FLOATS, np.trunc, Intrinsic("trunc")),
)

# Complex operands where `cmath` takes them.
TRANSCENDENTAL = (
    _unary("sqrt", INEXACT, np.sqrt, Intrinsic("sqrt"), DIVIDE),
    _unary("rsqrt", FLOATS, lambda x: 1 / np.sqrt(x), Special("rsqrt"), 2 * DIVIDE),
    _libm("cbrt", np.cbrt),
    _libm("exp", np.exp, INEXACT),
    _libm("exp2", np.exp2),
    _libm("expm1", np.expm1),
    _libm("log", np.log, INEXACT),
    _libm("log2", np.log2),
    _libm("log10", np.log10, INEXACT),
    _libm("log1p", np.log1p),
    _libm("sin", np.sin, INEXACT),
    _libm("cos", np.cos, INEXACT),
    _libm("tan", np.tan, INEXACT),
    _libm("asin", np.arcsin, INEXACT),
    _libm("acos", np.arccos, INEXACT),
    _libm("atan", np.arctan, INEXACT),
    _libm("sinh", np.sinh, INEXACT),
    _libm("cosh", np.cosh, INEXACT),
    _libm("tanh", np.tanh, INEXACT),
    _unary("loose_tanh", FLOATS, np.tanh, Special("loose_tanh", vector=True), CALL),  # Note [Loose rows]
    _unary("sech2", FLOATS, _sech2, Special("sech2", vector=True), CALL),  # the slope of tanh
    _unary("sinc", INEXACT, _sinc, Special("sinc", vector=True), CALL),  # sin(x) / x
    _libm("asinh", np.arcsinh, INEXACT),
    _libm("acosh", np.arccosh, INEXACT),
    _libm("atanh", np.arctanh, INEXACT),
    _binary("atan2", FLOATS, np.arctan2, Libm("atan2", vector=True), CALL),
    _binary("hypot", FLOATS, np.hypot, Libm("hypot", vector=True), CALL, commutative=True),
    _binary("direction", FLOATS, _direction, Special("direction", vector=True), CALL),  # Note [Direction]
    _unary("one_minus_square", FLOATS, lambda x: (1 - x) * (1 + x), Special("one_minus_square")),  # no digits are lost
    _binary("logaddexp", FLOATS, np.logaddexp, Special("logaddexp", vector=True), 2 * CALL, commutative=True),
    _binary("xlogy", FLOATS, _special("xlogy"), Special("xlogy", vector=True), CALL),  # 0 where x == 0, unless y is NaN
    _unary("deg2rad", FLOATS, np.deg2rad, Special("deg2rad")),
    _unary("rad2deg", FLOATS, np.rad2deg, Special("rad2deg")),
)

SPECIAL_FUNCTIONS = (
    _libm("erf", _special("erf")),
    _libm("erfc", _special("erfc")),
    _unary("gamma", FLOATS, _special("gamma"), Foreign("gamma"), HEAVY),
    _unary("gammaln", FLOATS, _special("gammaln"), Foreign("gammaln"), HEAVY),  # libm's lgamma writes to a global
    _unary("digamma", FLOATS, _special("digamma"), Foreign("psi"), HEAVY),
    _binary("polygamma", FLOATS, _polygamma, Special("polygamma"), 4 * HEAVY),  # Note [Polygamma]
    _unary("expit", FLOATS, _special("expit"), Special("expit", vector=True), CALL),
    _unary("logit", FLOATS, _special("logit"), Special("logit", vector=True), CALL),
)

REPRESENTATION = (
    _unary("isnan", INEXACT, np.isnan, Special("isnan"), result=_bool),
    _unary("isinf", INEXACT, np.isinf, Special("isinf"), result=_bool),
    _unary("isfinite", INEXACT, np.isfinite, Special("isfinite"), result=_bool),
    _unary("signbit", FLOATS, np.signbit, Special("signbit"), result=_bool),
    _unary(
        "pattern", FLOATS, lambda x: x.view(f"i{x.itemsize}"), Special("pattern"), result=_pattern
    ),  # its bits, as an integer
    _binary("copysign", FLOATS, np.copysign, Intrinsic("copysign")),
    _binary("nextafter", FLOATS, np.nextafter, Libm("nextafter"), CALL),
)

COMPLEX_PARTS = (
    _unary("real", COMPLEX, lambda z: np.positive(z.real), Special("real"), 0, result=_real),
    _unary("imag", COMPLEX, lambda z: np.positive(z.imag), Special("imag"), 0, result=_real),
    _unary("conj", COMPLEX, np.conjugate, Special("conj")),
    _unary("angle", COMPLEX, lambda z: np.arctan2(z.imag, z.real), Special("angle"), CALL, result=_real),
    _binary("complex", FLOATS, _make_complex, Special("complex"), 0, result=_complex),
)

FAMILIES = (
    ARITHMETIC,
    EXTREMA,
    COMPARISONS,
    BITS,
    CHOICE,
    ROUNDING,
    TRANSCENDENTAL,
    SPECIAL_FUNCTIONS,
    REPRESENTATION,
    COMPLEX_PARTS,
)
LOOSE = {"div": "quotient", "tanh": "loose_tanh"}  # Note [Loose rows]
TABLE: dict[str, Op] = {row.name: row for family in FAMILIES for row in family}
