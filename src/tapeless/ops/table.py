"""The ops table: one row for each operation on scalars, generic over the element type.

Gives `TABLE`, `op` and `unbounded`. Operands of a row have one element type (conversions are explicit in Core), results
follow `Op.result`. The `numpy` column takes NumPy scalars or arrays of the row's types, never warns and keeps the type.
The `partials` column is `PARTIALS` of ops/partials.py. What a column claims of a row is tried in tests/ops.

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
Derivatives are right to a few ulp. What is computed again for nothing but slopes (`ad.bodies`) need not be rounded as
the program's own values are, so it takes the row that does with less: `quotient` for `div` (Note [Loose quotients] in
`quotients`), `loose_tanh` for `tanh`, which has all but a product in common with the slope `sech2`. Where the program's
own row is there already, `cse` takes that one.

Note [Direction]
`direction(x, y)` is x / hypot(x, y), the slope of hypot: the cosine of the angle of (x, y). It is 0 at (0, 0). For an
infinite x it is 1 or -1, for an infinite y beside a finite x it is 0: that is the limit, unless both are infinite.

Note [Convert]
`convert` is bound to a variable of the target type, and its `numpy` takes (x, target NumPy dtype). Floats are
truncated; NaN and floats outside the integer type give its least value. Integers wrap, and floats that become one of
the stored integers are first i64, or hold as u64. Complex numbers lose their imaginary part, except towards bool: that
is x != 0.

Note [Polygamma]
`polygamma(n, x)` is the derivative of order n of digamma, for whole n from 1 to 170; NaN for any other n. With Hurwitz'
zeta, the sum of 1 / (x + k) ** s over k = 0, 1, ..., it is (-1) ** (n + 1) n! zeta(n + 1, x) for x > 0. Elsewhere,
(-1) ** n polygamma(n, 1 - x) - polygamma(n, x) is a derivative of pi cot(pi x), which has period 1: it is the same at
the distance of x from the whole number below, so zeta(n + 1, x) above becomes, with up = ceil(x) - x,
    zeta(n + 1, x - floor(x)) - (-1) ** n zeta(n + 1, up) + (-1) ** n zeta(n + 1, 1 - x)
At the poles 0, -1, ... that is inf for odd n and NaN for even n. Where x ** -(n + 1) underflows, so does the result.

Note [Two parts]
A number of twice the digits is the sum of two floats, the second one too small to be seen beside the first. The product
of two floats is `mul_rounded` and `mul_error`, exactly: the one is never made part of a sum that is rounded as a whole,
the other is what rounding took away. Sums of floats give their error by subtractions. To slopes the error is nothing.
"""

from __future__ import annotations

import math
from collections.abc import Sequence

import numpy as np

from tapeless.ir.types import Atom, Const, DType
from tapeless.ops import exact
from tapeless.ops.borrowed import BORROWED as SCIPY
from tapeless.ops.borrowed import Borrowed
from tapeless.ops.evaluations import (
    convert,
    count_bits,
    direction,
    ieee_remainder,
    integer_power,
    is_nan,
    make_complex,
    mul_error,
    polygamma,
    quotient_by,
    sech2,
    sinc,
    special,
)
from tapeless.ops.op import (
    ALL,
    BOOLS,
    COMPLEX,
    FLOATS,
    INTS,
    NUMERIC,
    REAL,
    Comparison,
    Foreign,
    Instruction,
    Intrinsic,
    Inverse,
    Libm,
    Nan,
    Op,
    Special,
    Unit,
)
from tapeless.ops.rows import (
    CALL,
    CHEAP,
    DIVIDE,
    HEAVY,
    always,
    binary,
    compare,
    extremum,
    gives_bool,
    gives_complex,
    gives_pattern,
    gives_real,
    gives_second,
    gives_target,
    libm,
    new_row,
    unary,
)

INEXACT = FLOATS | COMPLEX
F64 = frozenset({DType.f64})


def op(name: str) -> Op:
    return TABLE[name]


def unbounded(name: str, args: Sequence[Atom]) -> bool:
    """Whether the factors of a row with these operands can be infinite. Note [Zero times infinity] of ops/partials.py"""
    last = args[-1]
    if name in ("div", "quotient", "pow") and isinstance(last, Const) and not last.dtype.is_complex:
        return last.value.real < 1 if name == "pow" else last.value.real == 0
    return not TABLE[name].bounded_slope


ZERO, ONE = Unit(always(0)), Unit(always(1))
LAST_ZERO, LAST_ONE = Unit(always(0), left=False), Unit(always(1), left=False)
ALL_BITS = Unit(lambda dtype: dtype is DType.bool or -1)

DIFFERENCE = Inverse("sub", exact=INTS, rounded=INEXACT)
RATIO = Inverse("div", rounded=INEXACT)
ITSELF_XOR = Inverse("xor", exact=INTS | BOOLS)

# Operands of `singular_at`, for rows of one and of two; the last one is a divisor or the like.
AT_ZERO, AT_ONES, LARGE = ((0.0,),), ((-1.0,), (1.0,)), ((-1e4,), (1e4,))
BY_ZERO, NEAR_ORIGIN = ((1.0, 0.0),), ((5e-324, 5e-324),)
OF_SLOPES = ((math.inf, 0.0),)  # Note [Products of slopes]

# fmt: off
ARITHMETIC = (
    binary(
        "add", NUMERIC, np.add, Instruction("add", "fadd"), symbol="+", commutative=True,
        linear=True, monotone=True, unit=ZERO, inverse=(DIFFERENCE, DIFFERENCE),
    ),
    binary(
        "sub", NUMERIC, np.subtract, Instruction("sub", "fsub"), symbol="-", linear=True, monotone=True, unit=LAST_ZERO,
        inverse=(Inverse("add", exact=INTS, rounded=INEXACT), Inverse("sub", exact=INTS, rounded=INEXACT, swapped=True)),
    ),
    binary(
        "mul", NUMERIC, np.multiply, Instruction("mul", "fmul"), symbol="*", commutative=True,
        monotone=True, unit=ONE, inverse=(RATIO, RATIO),
    ),
    binary(
        "times", INEXACT, np.multiply, Instruction("", "fmul"), monotone=True, unit=ONE, singular_at=OF_SLOPES
    ),  # Note [Products of slopes]
    binary("mul_rounded", FLOATS, np.multiply, Special("mul_rounded"), monotone=True, commutative=True, word="*"),  # Note [Two parts]
    binary("mul_error", FLOATS, mul_error, Special("mul_error"), commutative=True, word="rounding error"),
    binary(
        "div", INEXACT, np.divide, Instruction("", "fdiv"), DIVIDE, symbol="/",
        monotone=True, unit=LAST_ONE, singular_at=BY_ZERO, inverse=(Inverse("mul", rounded=INEXACT), None),
    ),
    binary(
        "quotient", INEXACT, np.divide, Instruction("", "fdiv"), DIVIDE,
        monotone=True, unit=LAST_ONE, singular_at=BY_ZERO,
    ),  # Note [Loose rows]
    binary(
        "floordiv", REAL, np.floor_divide, Special("floordiv"), 2 * DIVIDE, symbol="//", monotone=True
    ),  # Note [Division]
    new_row(
        4, "quotient_by", frozenset({DType.i64}), quotient_by, Special("quotient_by"), CHEAP, locates=True
    ),  # Note [Quotients by products]
    binary("mod", REAL, np.remainder, Special("mod"), 2 * DIVIDE, symbol="%", decides=True, singular_at=BY_ZERO),  # Note [Division]
    binary("fmod", FLOATS, np.fmod, Libm("fmod"), CALL, decides=True, singular_at=BY_ZERO),
    binary("ieee_remainder", FLOATS, ieee_remainder, Libm("remainder"), CALL, decides=True, singular_at=BY_ZERO),
    binary(
        "pow", INEXACT, np.power, Libm("pow", vector=True), HEAVY, symbol="**",
        unit=LAST_ONE, singular_at=((0.0, -1.0), (0.0, 0.5)),
    ),
    binary("ipow", INTS, integer_power, Special("ipow"), HEAVY, symbol="**", unit=LAST_ONE),  # Note [Division]
    unary(
        "neg", NUMERIC, np.negative, Instruction("neg", "fneg"), symbol="-",
        linear=True, monotone=True, inverse=(Inverse("neg", exact=NUMERIC),),
    ),  # on integers 0 - x
    unary(
        "abs", NUMERIC, np.abs, Intrinsic("fabs", "abs"), result=gives_real,
        decides=True, nonnegative=True, of_parts=("hypot", ("real", "imag")),
    ),  # abs(INT_MIN) wraps
    unary("sign", REAL, np.sign, Special("sign"), monotone=True),  # NaN for NaN, 0.0 for -0.0
    unary("square", NUMERIC, np.square, Special("square"), nonnegative=True),
    unary("reciprocal", INEXACT, np.reciprocal, Special("reciprocal"), DIVIDE, singular_at=AT_ZERO),
    unary(
        "identity", ALL, np.array, Special("identity"), 0,
        own_rule=True, linear=True, monotone=True, inverse=(Inverse("identity", exact=ALL),),
    ),
    unary("stop_gradient", INEXACT, np.array, Special("identity"), 0, linear=True, monotone=True),  # a constant to derivatives
)

EXTREMA = (  # Note [Ties]
    extremum("min", False, Nan.first_wins, lambda a, b: np.where(b < a, b, a)),
    extremum("max", True, Nan.first_wins, lambda a, b: np.where(b > a, b, a)),
    extremum("minimum", False, Nan.wins, lambda a, b: np.where((a <= b) | is_nan(a), a, b)),
    extremum("maximum", True, Nan.wins, lambda a, b: np.where((a >= b) | is_nan(a), a, b)),
    extremum("fmin", False, Nan.loses, lambda a, b: np.where((a <= b) | is_nan(b), a, b)),
    extremum("fmax", True, Nan.loses, lambda a, b: np.where((a >= b) | is_nan(b), a, b)),
)

COMPARISONS = (
    compare("lt", "<", REAL, np.less, "slt", "olt", Comparison("ge", "gt", -1, reflexive=False)),
    compare("le", "<=", REAL, np.less_equal, "sle", "ole", Comparison("gt", "ge", -1, reflexive=True)),
    compare("gt", ">", REAL, np.greater, "sgt", "ogt", Comparison("le", "lt", 1, reflexive=False)),
    compare("ge", ">=", REAL, np.greater_equal, "sge", "oge", Comparison("lt", "le", 1, reflexive=True)),
    compare("eq", "==", ALL, np.equal, "eq", "oeq", Comparison("ne", "eq", 0, reflexive=True)),
    compare("ne", "!=", ALL, np.not_equal, "ne", "une", Comparison("eq", "ne", 0, reflexive=False)),
)

BITS = (
    binary("and", INTS | BOOLS, np.bitwise_and, Instruction("and"), symbol="&", commutative=True, unit=ALL_BITS),
    binary("or", INTS | BOOLS, np.bitwise_or, Instruction("or"), symbol="|", commutative=True, unit=ZERO),
    binary(
        "xor", INTS | BOOLS, np.bitwise_xor, Instruction("xor"), symbol="^", commutative=True,
        unit=ZERO, inverse=(ITSELF_XOR, ITSELF_XOR),
    ),
    unary("not", INTS | BOOLS, np.invert, Special("not"), symbol="~", inverse=(Inverse("not", exact=INTS | BOOLS),)),
    binary("shl", INTS, np.left_shift, Special("shl"), symbol="<<", unit=LAST_ZERO),  # Note [Division]
    binary("shr", INTS, np.right_shift, Special("shr"), symbol=">>", unit=LAST_ZERO),  # Note [Division]
    unary("count_bits", INTS, count_bits, Special("count_bits"), nonnegative=True, word="bit_count"),  # of two's complement
)

CHOICE = (
    new_row(
        3, "select", ALL, np.where, Instruction("select", "select"), CHEAP, result=gives_second,
        word="choice", own_rule=True, decides=True,
    ),  # bool, t, t -> t
    unary(
        "convert", ALL, convert, Special("convert"), result=gives_target,
        word="conversion", own_rule=True, linear=True,
    ),  # Note [Convert]
)

ROUNDING = (
    unary("floor", FLOATS, np.floor, Intrinsic("floor"), monotone=True),
    unary("ceil", FLOATS, np.ceil, Intrinsic("ceil"), monotone=True),
    unary("rint", FLOATS, np.rint, Intrinsic("rint"), monotone=True, word="round"),  # halves to even
    unary("trunc", FLOATS, np.trunc, Intrinsic("trunc"), monotone=True),
)

# Complex operands where NumPy takes them.
TRANSCENDENTAL = (
    unary("sqrt", INEXACT, np.sqrt, Intrinsic("sqrt"), DIVIDE, monotone=True, singular_at=AT_ZERO),
    unary("times_root", FLOATS, lambda x: x * np.sqrt(x), Special("times_root"), DIVIDE + 1, monotone=True, singular_at=((-1.0,),), word="sqrt"),
    unary("rsqrt", FLOATS, lambda x: 1 / np.sqrt(x), Special("rsqrt"), 2 * DIVIDE, monotone=True, singular_at=AT_ZERO),
    libm("cbrt", np.cbrt, monotone=True, singular_at=AT_ZERO),
    libm(
        "exp", np.exp, INEXACT, monotone=True, nonnegative=True, singular_at=LARGE[1:],
        inverse=(Inverse("log", rounded=FLOATS),),
    ),
    libm("exp2", np.exp2, INEXACT, monotone=True, nonnegative=True, singular_at=LARGE[1:]),
    libm(
        "expm1", np.expm1, INEXACT, monotone=True, singular_at=LARGE[1:], inverse=(Inverse("log1p", rounded=FLOATS),)
    ),
    libm(
        "log", np.log, INEXACT, monotone=True, singular_at=AT_ZERO, inverse=(Inverse("exp", rounded=FLOATS),)
    ),
    libm("log2", np.log2, INEXACT, monotone=True, singular_at=AT_ZERO),
    libm("log10", np.log10, INEXACT, monotone=True, singular_at=AT_ZERO),
    libm(
        "log1p", np.log1p, INEXACT, monotone=True, singular_at=AT_ONES[:1], inverse=(Inverse("expm1", rounded=FLOATS),)
    ),
    libm("sin", np.sin, INEXACT),
    libm("cos", np.cos, INEXACT),
    libm("tan", np.tan, INEXACT, singular_at=((math.pi / 2,),)),
    libm("asin", np.arcsin, INEXACT, monotone=True, singular_at=AT_ONES),
    libm("acos", np.arccos, INEXACT, monotone=True, singular_at=AT_ONES),
    libm("atan", np.arctan, INEXACT, monotone=True),
    libm(
        "sinh", np.sinh, INEXACT, monotone=True, singular_at=LARGE, inverse=(Inverse("asinh", rounded=FLOATS),)
    ),
    libm("cosh", np.cosh, INEXACT, nonnegative=True, singular_at=LARGE),
    libm("tanh", np.tanh, INEXACT, monotone=True),
    unary("loose_tanh", FLOATS, np.tanh, Special("loose_tanh", vector=True), CALL, monotone=True),  # Note [Loose rows]
    unary("sech2", FLOATS, sech2, Special("sech2", vector=True), CALL, nonnegative=True),  # the slope of tanh
    unary("sinc", INEXACT, sinc, Special("sinc", vector=True), CALL),  # sin(x) / x
    libm("asinh", np.arcsinh, INEXACT, monotone=True, inverse=(Inverse("sinh", rounded=FLOATS),)),
    libm("acosh", np.arccosh, INEXACT, monotone=True, singular_at=AT_ONES[1:]),
    libm("atanh", np.arctanh, INEXACT, monotone=True, singular_at=AT_ONES),
    binary("atan2", FLOATS, np.arctan2, Libm("atan2", vector=True), CALL, singular_at=NEAR_ORIGIN),
    binary("hypot", FLOATS, np.hypot, Libm("hypot", vector=True), CALL, commutative=True, nonnegative=True),
    binary(
        "direction", FLOATS, direction, Special("direction", vector=True), CALL, singular_at=NEAR_ORIGIN
    ),  # Note [Direction]
    unary("one_minus_square", FLOATS, lambda x: (1 - x) * (1 + x), Special("one_minus_square")),  # no digits are lost
    binary(
        "logaddexp", FLOATS, np.logaddexp, Special("logaddexp", vector=True), 2 * CALL, commutative=True,
        monotone=True, unit=Unit(always(-math.inf)),
    ),
    binary(
        "xlogy", FLOATS, special("xlogy"), Special("xlogy", vector=True), CALL, monotone=True, singular_at=BY_ZERO
    ),  # 0 where x == 0, unless y is NaN
    unary("deg2rad", FLOATS, np.deg2rad, Special("deg2rad"), linear=True, monotone=True),
    unary("rad2deg", FLOATS, np.rad2deg, Special("rad2deg"), linear=True, monotone=True),
)

SPECIAL_FUNCTIONS = (
    libm("erf", special("erf"), monotone=True),
    libm("erfc", special("erfc"), monotone=True),
    unary("gamma", FLOATS, special("gamma"), Foreign("gamma", "tgamma"), HEAVY, singular_at=AT_ZERO),
    unary(
        "gammaln", FLOATS, special("gammaln"), Foreign("gammaln", "lgamma"), HEAVY, singular_at=AT_ZERO
    ),  # libm's lgamma writes to a global
    unary("digamma", FLOATS, special("digamma"), Special("digamma"), HEAVY, singular_at=AT_ZERO),
    binary(
        "polygamma", FLOATS, polygamma, Special("polygamma"), 4 * HEAVY, singular_at=BY_ZERO
    ),  # Note [Polygamma]
    unary("expit", FLOATS, special("expit"), Special("expit", vector=True), CALL, monotone=True, nonnegative=True),
    unary(
        "logit", FLOATS, special("logit"), Special("logit", vector=True), CALL,
        monotone=True, singular_at=((0.0,), (1.0,)),
    ),
)

LIBDEVICE = {name: name for name in ("j0", "j1", "y0", "y1", "erfinv", "erfcinv", "erfcx")}
LIBDEVICE |= {"ndtri": "normcdfinv", "i0": "cyl_bessel_i0", "i1": "cyl_bessel_i1"}


def _borrowed(name: str, row: Borrowed) -> Op:
    short = name.removeprefix("scipy_")
    spelling = Foreign(short, LIBDEVICE.get(short, ""))
    return new_row(
        len(row.partials), name, FLOATS, special(short), spelling, 2 * HEAVY, singular_at=row.singular_at, borrowed=True
    )


BORROWED = tuple(_borrowed(name, row) for name, row in SCIPY.items())

REPRESENTATION = (
    unary("isnan", INEXACT, np.isnan, Special("isnan"), result=gives_bool),
    unary("isinf", INEXACT, np.isinf, Special("isinf"), result=gives_bool),
    unary("isfinite", INEXACT, np.isfinite, Special("isfinite"), result=gives_bool),
    unary("signbit", FLOATS, np.signbit, Special("signbit"), result=gives_bool),
    unary(
        "pattern", FLOATS, lambda x: x.view(f"i{x.itemsize}"), Special("pattern"), result=gives_pattern
    ),  # its bits, as an integer
    binary("copysign", FLOATS, np.copysign, Intrinsic("copysign"), decides=True),
    binary("nextafter", FLOATS, np.nextafter, Libm("nextafter"), CALL, decides=True),
)

EXACT_NUMBERS = (  # Note [Patterns] of ops/exact.py
    unary("to_fixed", F64, exact.to_fixed, Special("to_fixed"), DIVIDE, patterns=True),
    unary("of_fixed", F64, exact.of_fixed, Special("of_fixed"), DIVIDE, patterns=True),
    binary(
        "fixed_add", F64, exact.fixed_add, Special("fixed_add"), DIVIDE, commutative=True, patterns=True,
        inverse=(Inverse("fixed_sub", exact=F64), Inverse("fixed_sub", exact=F64)),
    ),
    binary(
        "fixed_sub", F64, exact.fixed_sub, Special("fixed_sub"), DIVIDE, patterns=True,
        inverse=(Inverse("fixed_add", exact=F64), Inverse("fixed_sub", exact=F64, swapped=True)),
    ),
    unary("to_lognum", F64, exact.to_lognum, Special("to_lognum", vector=True), CALL, patterns=True),
    unary("of_lognum", F64, exact.of_lognum, Special("of_lognum", vector=True), CALL, patterns=True),
    binary(
        "lognum_mul", F64, exact.fixed_add, Special("fixed_add"), DIVIDE, commutative=True, patterns=True,
        inverse=(Inverse("lognum_div", exact=F64), Inverse("lognum_div", exact=F64)),
    ),
    binary(
        "lognum_div", F64, exact.fixed_sub, Special("fixed_sub"), DIVIDE, patterns=True,
        inverse=(Inverse("lognum_mul", exact=F64), Inverse("lognum_div", exact=F64, swapped=True)),
    ),
    unary("order_of_fixed", F64, exact.order, Special("order_of_fixed"), result=gives_pattern, patterns=True),
)

COMPLEX_PARTS = (
    unary("real", COMPLEX, lambda z: np.positive(z.real), Special("real"), 0, result=gives_real, own_rule=True, linear=True),
    unary("imag", COMPLEX, lambda z: np.positive(z.imag), Special("imag"), 0, result=gives_real, own_rule=True, linear=True),
    unary(
        "conj", COMPLEX, np.conjugate, Special("conj"), own_rule=True, linear=True, inverse=(Inverse("conj", exact=COMPLEX),)
    ),
    unary(
        "angle", COMPLEX, lambda z: np.arctan2(z.imag, z.real), Special("angle"), CALL, result=gives_real,
        own_rule=True, of_parts=("atan2", ("imag", "real")),
    ),
    binary("complex", FLOATS, make_complex, Special("complex"), 0, result=gives_complex, own_rule=True, linear=True),
)
# fmt: on

FAMILIES = (
    ARITHMETIC,
    EXTREMA,
    COMPARISONS,
    BITS,
    CHOICE,
    ROUNDING,
    TRANSCENDENTAL,
    SPECIAL_FUNCTIONS,
    BORROWED,
    REPRESENTATION,
    EXACT_NUMBERS,
    COMPLEX_PARTS,
)
LOOSE = {"div": "quotient", "tanh": "loose_tanh"}  # Note [Loose rows]
TABLE: dict[str, Op] = {row.name: row for family in FAMILIES for row in family}
