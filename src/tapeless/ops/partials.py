"""Partial derivatives of the rows of the ops table, written with other rows.

`PARTIALS[name]` has one entry for each operand: a function `(b, result, *operands) -> factor`, or None where the slope
is zero everywhere or there is none (comparisons, rounding, integers). `b` applies rows to operands and Python numbers:
`b("mul", x, 2.0)`; it folds constants, so a rule may write what reads best. The tangent of the result is the sum of
factor times tangent; the adjoint of an operand grows by factor times the adjoint of the result. Both are skipped where
the operand does not vary.

Note [Factors]
A factor is right wherever the row has a slope, to a few ulp relative to itself: no form is used that cancels (1 - r * r
for tanh, r + 1 for expm1) or that overflows before the slope does. Complex operands take the same rules, as every row
that has them is holomorphic; on a branch cut the side that the sign of a zero chooses is kept, which is why 1 - z and
1 + z are written `sub(z, ...)` there. A factor is differentiated by these rules in its turn. So a `select` may only
replace an operand at points where the slope itself is a choice, and it replaces the operand, not the result: the arm
that is not taken must have finite slopes too, since reverse mode multiplies them by zero.

Note [Choices]
Where there is no slope, or more than one:
    max, min and their kin   the operand that is the result has slope 1, the other 0; the first one wins ties
    abs, hypot, atan2        0 at 0, and so are the derivatives of every order: on the lines through 0, on either side of it,
                             the second derivatives are 0
                             hypot has slope 1 or -1 by an infinite operand, 0 by a finite one beside it
    sqrt, cbrt               inf at 0; x ** y likewise for 0 < y < 1; -inf for sqrt at -0.0, whose root is -0.0
    copysign                 1 or -1 as the sign of x is kept or turned, also at 0
    pow                      0 ** 0 has slopes (0, 0); in y the slope is 0 for x == 0, and for x < 0, where y is a
                             whole number and nothing is defined around it
    xlogy                    log(y) in x, so -inf at y == 0; in y it is x / y, and 0 for x == 0, since 0 log y is 0
    logaddexp                1/2 each where both operands are the same infinity
    mod, fmod                the slope between jumps, and so has ieee_remainder

Note [Infinite operands]
At an infinite operand a slope is its limit, where that exists, and the slopes of slopes are too. The forms below have
no 0 times infinity there: atan, whose slope 1 / (1 + x^2) has the slope -2 x / (1 + x^2)^2, takes another operand in
its place.

Note [Zero times infinity]
What does not move has no influence, and what nobody asks for passes nothing on, however steep the row is there: where
the tangent or the adjoint is 0, the product with an infinite factor is 0. So np.where(x > 0, np.sqrt(x), 0.0) has the
slope 0 at 0. The product is replaced only where it is NaN, so that it can be differentiated everywhere else. This is
done for rows with `singular_at`, which take longer than the two comparisons; products of values are left alone. So in
forward mode, where every operand has a tangent, x * y with an infinite y has the tangent NaN even if that of x is 0.

Note [Products of slopes]
A factor of 2 * x ** (2 - 1) is a product too, and so is that factor times a tangent. Where they are differentiated
again, what holds for slopes holds for them. So where a transform is inside another one (`Builder.again`), products in
factors of rows with `singular_at`, and with them, are written `times`: a `mul` that is one of these rows, whose second
operand is the tangent.
"""

from __future__ import annotations

import math
from collections.abc import Callable
from functools import reduce

from tapeless.ir.types import Atom, Const, const
from tapeless.ops.borrowed import BORROWED
from tapeless.ops.op import Partials, Scalars


def _choice(b: Scalars, condition: Atom, yes: float, no: float, like: Atom) -> Atom:
    """One of two numbers, of the type of `like`."""
    dtype = like.type.dtype
    return b("select", condition, const(yes, dtype), const(no, dtype))


def _unless_zero(b: Scalars, x: Atom) -> Atom:
    """A divisor: x, or 1 where that is 0."""
    return b("select", b("eq", x, 0.0), 1.0, x)


def _finite(b: Scalars, x: Atom, instead: float) -> Atom:
    """x, or another number where that is infinite. Note [Infinite operands]"""
    return b("select", b("isinf", x), instead, x)


def _vanishing(b: Scalars, x: Atom, slope: Callable[[Atom], Atom]) -> Atom:
    """A slope that is 0, to every order, at infinite x."""
    return b("select", b("isinf", x), 0.0, slope(_finite(b, x, 1.0)))


def _both_zero(b: Scalars, x: Atom, y: Atom) -> Atom:
    return b("and", b("eq", x, 0.0), b("eq", y, 0.0))


# --- extrema (Note [Ties] of ops/table.py) -----------------------------------------------------------------------

# Whether the result is the first operand; otherwise it is the second.
FIRST_WINS: dict[str, Callable[[Scalars, Atom, Atom], Atom]] = {
    "min": lambda b, x, y: b("not", b("lt", y, x)),
    "max": lambda b, x, y: b("not", b("gt", y, x)),
    "minimum": lambda b, x, y: b("or", b("le", x, y), b("isnan", x)),
    "maximum": lambda b, x, y: b("or", b("ge", x, y), b("isnan", x)),
    "fmin": lambda b, x, y: b("or", b("le", x, y), b("isnan", y)),
    "fmax": lambda b, x, y: b("or", b("ge", x, y), b("isnan", y)),
}


def _extremum(name: str) -> Partials:
    first = FIRST_WINS[name]
    return (
        lambda b, r, x, y: _choice(b, first(b, x, y), 1.0, 0.0, x),
        lambda b, r, x, y: _choice(b, first(b, x, y), 0.0, 1.0, x),
    )


# --- powers ------------------------------------------------------------------------------------------------------


def _pow_base(b: Scalars, r: Atom, x: Atom, y: Atom) -> Atom:
    """y * x ** (y - 1), and 0 * x ** 0 at 0 ** 0, and so near 0 that 1 / x is infinite."""
    if isinstance(y, Const) and y.value != 0:
        return b("mul", b("pow", x, b("sub", y, 1.0)), y)
    small = b("eq", x, 0.0) if x.type.dtype.is_complex else b("isinf", b("reciprocal", x))
    corner = b("or", b("and", small, b("eq", y, 0.0)), b("and", b("isinf", y), b("eq", r, 0.0)))
    exponent = b("sub", b("select", corner, 1.0, y), 1.0)
    return b("mul", b("pow", x, exponent), b("select", corner, 0.0, y))


def _pow_exponent(b: Scalars, r: Atom, x: Atom, y: Atom) -> Atom:
    """x ** y * log(x). A power of 0 stays 0; one that is infinite for x <= 0 counts as 0."""
    outside = b("eq", x, 0.0) if x.type.dtype.is_complex else b("le", x, 0.0)
    power = b("select", b("and", outside, b("isinf", r)), 0.0, r)
    return b("mul", power, b("log", b("select", b("or", outside, b("eq", r, 0.0)), 1.0, x)))


# --- circular and hyperbolic functions and their inverses --------------------------------------------------------


def _plus_one(b: Scalars, x: Atom) -> Atom:
    return b("sub", x, -1.0)  # keeps the sign of a zero imaginary part, as x + 1 does not


def _one_minus(b: Scalars, x: Atom) -> Atom:
    return b("neg", b("sub", x, 1.0)) if x.type.dtype.is_complex else b("sub", 1.0, x)


def _square_plus_one(b: Scalars, x: Atom) -> Atom:
    """1 + x * x; for complex x as (x - i) (x + i), which does not cancel near i."""
    dtype = x.type.dtype
    if not dtype.is_complex:
        return b("add", b("square", x), 1.0)
    return b("mul", b("sub", x, const(complex(0.0, 1.0), dtype)), b("sub", x, const(complex(0.0, -1.0), dtype)))


def _tan(b: Scalars, r: Atom, x: Atom) -> Atom:
    if x.type.dtype.is_complex:
        return b("square", b("reciprocal", b("cos", x)))  # 1 + r * r would cancel where r is near i
    return b("add", b("square", r), 1.0)


def _one_minus_square(b: Scalars, x: Atom) -> Atom:
    """As a row of its own, since the slope of (1 - x) (1 + x) by its factors would be 0 times infinity where it is 0."""
    if x.type.dtype.is_complex:
        return b("mul", _one_minus(b, x), _plus_one(b, x))
    return b("one_minus_square", x)


def _asin(b: Scalars, r: Atom, x: Atom) -> Atom:
    return b("reciprocal", b("sqrt", _one_minus_square(b, x)))


def _atan(b: Scalars, r: Atom, x: Atom) -> Atom:
    if x.type.dtype.is_complex:
        return b("reciprocal", _square_plus_one(b, x))
    return _vanishing(b, x, lambda x: b("reciprocal", _square_plus_one(b, x)))


def _sinc(b: Scalars, r: Atom, x: Atom) -> Atom:
    """-x j(x) with the even function j(x) = (sin(x) / x - cos(x)) / x^2, which near 0 is the sum of SINC[k] x^(2 k)."""
    parts = [b("real", x), b("imag", x)] if x.type.dtype.is_complex else [x]
    near = reduce(lambda p, q: b("and", p, q), [b("lt", b("abs", p), 2.0) for p in parts])
    small, large = b("square", b("select", near, x, 0.0)), b("select", near, 2.0, x)
    series: Atom | float = SINC[-1]
    for c in reversed(SINC[:-1]):
        series = b("add", b("mul", small, series), c)
    far = b("div", b("sub", b("div", b("sin", large), large), b("cos", large)), b("square", large))
    return b("neg", b("mul", x, b("select", near, series, far)))


# Of (-1)^k / ((2 k + 3) (2 k + 1)!): so many that some derivatives of the sum have all their digits too.
SINC = tuple((-1) ** k / ((2 * k + 3) * math.factorial(2 * k + 1)) for k in range(16))


def _tanh(b: Scalars, r: Atom, x: Atom) -> Atom:
    if x.type.dtype.is_complex:
        return b("square", b("reciprocal", b("cosh", x)))
    return b("sech2", x)


def _asinh(b: Scalars, r: Atom, x: Atom) -> Atom:
    if x.type.dtype.is_complex:
        return b("reciprocal", b("sqrt", _square_plus_one(b, x)))
    return b("reciprocal", b("hypot", x, 1.0))


def _acosh(b: Scalars, r: Atom, x: Atom) -> Atom:
    if x.type.dtype.is_complex:
        return b("reciprocal", b("mul", b("sqrt", b("sub", x, 1.0)), b("sqrt", _plus_one(b, x))))
    return b("mul", b("rsqrt", b("sub", x, 1.0)), b("rsqrt", b("add", x, 1.0)))


def _over_size(b: Scalars, found: Atom, x: Atom, y: Atom) -> Atom:
    """A direction over hypot(x, y); at (0, 0) it is 0 already."""
    return b("div", found, _unless_zero(b, b("hypot", x, y)))


def _direction_along(b: Scalars, r: Atom, x: Atom, y: Atom) -> Atom:
    return _over_size(b, b("square", b("direction", y, x)), x, y)


def _direction_across(b: Scalars, r: Atom, x: Atom, y: Atom) -> Atom:
    return _over_size(b, b("neg", b("mul", r, b("direction", y, x))), x, y)


# --- others ------------------------------------------------------------------------------------------------------


def _distance(b: Scalars, x: Atom, y: Atom) -> Atom:
    """x - y, as the row itself takes it, so that all have one exponential; 0 for equal infinities."""
    same = b("and", b("eq", x, y), b("isinf", x))
    return b("select", same, 0.0, b("sub", x, y))


def _xlogy(b: Scalars, r: Atom, x: Atom, y: Atom) -> Atom:
    return b("div", x, b("select", _both_zero(b, x, y), 1.0, y))


def _minus_quotient(b: Scalars, r: Atom, x: Atom, y: Atom) -> Atom:
    return b("rint", b("div", b("sub", r, x), y))  # of the remainder: x / y may round to another whole number


def _copysign(b: Scalars, r: Atom, x: Atom, y: Atom) -> Atom:
    return _choice(b, b("eq", b("signbit", x), b("signbit", y)), 1.0, -1.0, x)


# --- rows --------------------------------------------------------------------------------------------------------

FLAT1: Partials = (None,)
FLAT2: Partials = (None, None)

_QUOTIENT: Partials = (
    lambda b, r, x, y: b("reciprocal", y),
    lambda b, r, x, y: b("neg", b("quotient", r, y)),
)

ARITHMETIC: dict[str, Partials] = {
    "add": (lambda b, r, x, y: 1.0, lambda b, r, x, y: 1.0),
    "sub": (lambda b, r, x, y: 1.0, lambda b, r, x, y: -1.0),
    "mul": (lambda b, r, x, y: y, lambda b, r, x, y: x),
    "times": (lambda b, r, x, y: y, lambda b, r, x, y: x),
    "mul_rounded": (lambda b, r, x, y: y, lambda b, r, x, y: x),
    "mul_error": (None, None),
    "div": _QUOTIENT,
    "quotient": _QUOTIENT,
    "floordiv": FLAT2,
    "quotient_by": (None, None, None, None),
    "mod": (lambda b, r, x, y: 1.0, lambda b, r, x, y: b("neg", b("floordiv", x, y))),
    "fmod": (lambda b, r, x, y: 1.0, _minus_quotient),
    "ieee_remainder": (lambda b, r, x, y: 1.0, _minus_quotient),
    "pow": (_pow_base, _pow_exponent),
    "ipow": FLAT2,
    "neg": (lambda b, r, x: -1.0,),
    "abs": (lambda b, r, x: b("sign", x),),
    "sign": FLAT1,
    "square": (lambda b, r, x: b("mul", x, 2.0),),
    "reciprocal": (lambda b, r, x: b("neg", b("square", r)),),
    "identity": FLAT1,  # own_rule
    "stop_gradient": FLAT1,
}

TRANSCENDENTAL: dict[str, Partials] = {
    "sqrt": (lambda b, r, x: b("quotient", 0.5, r),),
    "times_root": (lambda b, r, x: b("mul", b("sqrt", x), 1.5),),
    "rsqrt": (lambda b, r, x: b("quotient", b("mul", r, -0.5), x),),
    "cbrt": (lambda b, r, x: b("mul", b("square", b("reciprocal", r)), 1 / 3),),
    "exp": (lambda b, r, x: r,),
    "exp2": (lambda b, r, x: b("mul", r, math.log(2)),),
    "expm1": (lambda b, r, x: b("exp", x),),
    "log": (lambda b, r, x: b("reciprocal", x),),
    "log2": (lambda b, r, x: b("div", 1 / math.log(2), x),),
    "log10": (lambda b, r, x: b("div", 1 / math.log(10), x),),
    "log1p": (lambda b, r, x: b("reciprocal", _plus_one(b, x)),),
    "sin": (lambda b, r, x: b("cos", x),),
    "cos": (lambda b, r, x: b("neg", b("sin", x)),),
    "tan": (_tan,),
    "asin": (_asin,),
    "acos": (lambda b, r, x: b("neg", _asin(b, r, x)),),
    "atan": (_atan,),
    "sinc": (_sinc,),
    "sinh": (lambda b, r, x: b("cosh", x),),
    "cosh": (lambda b, r, x: b("sinh", x),),
    "tanh": (_tanh,),
    "loose_tanh": (_tanh,),
    "sech2": (lambda b, r, x: b("mul", b("mul", r, -2.0), b("loose_tanh", x)),),
    "asinh": (_asinh,),
    "acosh": (_acosh,),
    "atanh": (lambda b, r, x: b("reciprocal", _one_minus_square(b, x)),),
    "one_minus_square": (lambda b, r, x: b("mul", x, -2.0),),
    "atan2": (
        lambda b, r, y, x: _over_size(b, b("direction", x, y), x, y),
        lambda b, r, y, x: b("neg", _over_size(b, b("direction", y, x), x, y)),
    ),
    "hypot": (lambda b, r, x, y: b("direction", x, y), lambda b, r, x, y: b("direction", y, x)),
    "direction": (_direction_along, _direction_across),
    "logaddexp": (
        lambda b, r, x, y: b("expit", _distance(b, x, y)),
        lambda b, r, x, y: b("expit", b("neg", _distance(b, x, y))),
    ),
    "xlogy": (lambda b, r, x, y: b("log", y), _xlogy),
    "deg2rad": (lambda b, r, x: math.pi / 180,),
    "rad2deg": (lambda b, r, x: 180 / math.pi,),
}


def _gauss(b: Scalars, x: Atom, factor: float) -> Atom:
    return _vanishing(b, x, lambda x: b("mul", b("exp", b("neg", b("square", x))), factor))


SPECIAL_FUNCTIONS: dict[str, Partials] = {
    "erf": (lambda b, r, x: _gauss(b, x, 2 / math.sqrt(math.pi)),),
    "erfc": (lambda b, r, x: _gauss(b, x, -2 / math.sqrt(math.pi)),),
    "gamma": (lambda b, r, x: b("mul", r, b("digamma", _finite(b, x, 2.0))),),
    "gammaln": (lambda b, r, x: b("digamma", x),),
    "digamma": (lambda b, r, x: b("polygamma", 1.0, x),),
    "polygamma": (None, lambda b, r, n, x: b("polygamma", b("add", n, 1.0), x)),
    "expit": (lambda b, r, x: b("mul", r, b("expit", b("neg", x))),),
    "logit": (lambda b, r, x: b("add", b("reciprocal", x), b("reciprocal", b("sub", 1.0, x))),),
}

PARTIALS: dict[str, Partials] = {
    **{name: row.partials for name, row in BORROWED.items()},
    **ARITHMETIC,
    **{name: _extremum(name) for name in FIRST_WINS},
    **dict.fromkeys(("lt", "le", "gt", "ge", "eq", "ne"), FLAT2),
    **dict.fromkeys(("and", "or", "xor", "shl", "shr"), FLAT2),
    **dict.fromkeys(("not", "count_bits"), FLAT1),
    "select": (None, None, None),  # own_rule
    "convert": FLAT1,  # own_rule
    **dict.fromkeys(("floor", "ceil", "rint", "trunc"), FLAT1),
    **TRANSCENDENTAL,
    **SPECIAL_FUNCTIONS,
    **dict.fromkeys(("isnan", "isinf", "isfinite", "signbit", "pattern", "order_of_fixed"), FLAT1),
    **dict.fromkeys(("to_fixed", "of_fixed", "to_lognum", "of_lognum"), (lambda b, r, x: 1.0,)),
    "fixed_add": (lambda b, r, x, y: 1.0, lambda b, r, x, y: 1.0),
    "fixed_sub": (lambda b, r, x, y: 1.0, lambda b, r, x, y: -1.0),
    "lognum_mul": (lambda b, r, x, y: b("of_lognum", y), lambda b, r, x, y: b("of_lognum", x)),
    "lognum_div": (
        lambda b, r, x, y: b("reciprocal", b("of_lognum", y)),
        lambda b, r, x, y: b("neg", b("div", b("of_lognum", r), b("of_lognum", y))),
    ),
    "copysign": (_copysign, None),
    "nextafter": (lambda b, r, x, y: 1.0, None),
    **dict.fromkeys(("real", "imag", "conj", "angle"), FLAT1),  # own_rule
    "complex": FLAT2,  # own_rule
}
