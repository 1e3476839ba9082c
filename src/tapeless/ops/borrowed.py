"""Functions of scipy.special that native code calls as SciPy has them, and their slopes written with rows.

`BORROWED` has one entry for each row. Values are SciPy's own; single precision is rounded from double. `partials` are as in ops/partials.py. They are right as far as SciPy is: a slope is one more value of a
neighbouring function, never a difference of two that cancel, but near zeros of the slope itself.

Note [Orders]
Most functions have a slope by the last operand only. By an order or a shape there is no closed form, and asking for that
slope is an error: `_none` says so. Slopes by shapes that are None here are added by functions of the prelude (`SHAPED`), through
which alone these rows are called.
"""

from __future__ import annotations

import math
from dataclasses import dataclass

from tapeless.ir.types import Atom
from tapeless.ops.op import NoSlope, Partial, Partials, Scalars

ROOT_PI = math.sqrt(math.pi)
ROOT_2PI = math.sqrt(2 * math.pi)
FAR = 50.0  # from here on the first terms of an asymptotic series have all digits


@dataclass(frozen=True)
class Borrowed:
    partials: Partials
    singular_at: tuple[tuple[float, ...], ...] = ()


def _none(name: str, what: str) -> Partial:
    def refuse(b: Scalars, *args: Atom) -> Atom:
        raise NoSlope(f"scipy.special.{name} has no derivative by its {what} here")

    return refuse


def _half(b: Scalars, x: Atom) -> Atom:
    return b("mul", x, 0.5)


def _near_zero(
    b: Scalars, x: Atom, radius: float, terms: tuple[float, ...], beyond: Partial, even: bool = False
) -> Atom:
    """The polynomial with these terms, in x or in x^2, inside of the radius, where `beyond(x)` loses digits."""
    near = b("lt", b("abs", x), radius)
    here, there = b("select", near, x, 0.0), b("select", near, radius, x)
    z = b("square", here) if even else here
    total = b("mul", z, terms[-1])
    for term in reversed(terms[1:-1]):
        total = b("mul", z, b("add", total, term))
    found = beyond(there)
    assert not isinstance(found, float)
    return b("select", near, b("add", total, terms[0]), found)


# --- Bessel functions --------------------------------------------------------------------------------------------


def _between(name: str, operator: str, factor: float) -> Partial:
    """factor (f(v - 1, x) +- f(v + 1, x)), for a function of order and argument."""

    def slope(b: Scalars, r: Atom, v: Atom, x: Atom) -> Atom:
        return b("mul", b(operator, b(name, b("sub", v, 1.0), x), b(name, b("add", v, 1.0), x)), factor)

    return slope


def _of_one(zero: str, sign: int) -> Partial:
    """f(0, x) - f(1, x) / x: the same for the function of order 1. The quotient is an even function, `sign` that of its series."""
    terms = tuple(0.5 * (sign / 4) ** k / (math.factorial(k) * math.factorial(k + 1)) for k in range(10))

    def slope(b: Scalars, r: Atom, x: Atom) -> Atom:
        quotient = _near_zero(b, x, 1.0, terms, lambda x: b("div", r, x), even=True)
        return b("select", b("isinf", r), b("abs", r), b("sub", b(zero, x), quotient))

    return slope


# Functions that are singular at 0 have terms of one sign there: their recurrence loses nothing, and takes one value.


def _from_below(name: str) -> Partial:
    """-(f(|v| - 1, x) + |v| / x f(v, x)), for a function of which v and -v are the same."""

    def slope(b: Scalars, r: Atom, v: Atom, x: Atom) -> Atom:
        order = b("abs", v)
        rest = b("select", b("eq", order, 0.0), 0.0, b("mul", b("div", order, x), r))  # x may be 0, too
        return b("neg", b("add", b(name, b("sub", order, 1.0), x), rest))

    return slope


def _of_one_from_below(zero: str) -> Partial:
    """The same for the function of order 1."""
    return lambda b, r, x: b("neg", b("add", b(zero, x), b("div", r, x)))


def _towards_zero(name: str) -> Partial:
    """f(v - 1, x) - v / x f(v, x), and for negative v the like with f(v + 1, x)."""

    def slope(b: Scalars, r: Atom, v: Atom, x: Atom) -> Atom:
        negative = b("lt", v, 0.0)
        order = b("select", negative, b("add", v, 1.0), b("sub", v, 1.0))
        found = b("sub", b(name, order, x), b("mul", b("div", v, x), r))
        return b("select", negative, b("neg", found), found)

    return slope


def _damped(slope: Partial) -> Partial:
    """With the factor exp(-|x|)."""
    return lambda b, r, *args: b("sub", slope(b, r, *args), b("mul", b("sign", args[-1]), r))


def _grown(slope: Partial) -> Partial:
    """With the factor exp(x)."""
    return lambda b, r, *args: b("add", slope(b, r, *args), r)


def _of_order(name: str, slope: Partial) -> Partials:
    return (_none(name, "order"), slope)


BESSEL = {
    "j0": Borrowed((lambda b, r, x: b("neg", b("j1", x)),)),
    "j1": Borrowed((_of_one("j0", -1),)),
    "jv": Borrowed(_of_order("jv", _between("jv", "sub", 0.5)), ((0.5, 0.0),)),
    "y0": Borrowed((lambda b, r, x: b("neg", b("y1", x)),), ((0.0,),)),
    "y1": Borrowed((lambda b, r, x: b("sub", b("y0", x), b("div", r, x)),), ((0.0,),)),
    "yn": Borrowed(_of_order("yn", _towards_zero("yn")), ((1.0, 0.0),)),
    "yv": Borrowed(_of_order("yv", _towards_zero("yv")), ((1.0, 0.0),)),
    "i0": Borrowed((lambda b, r, x: b("i1", x),), ((800.0,),)),
    "i1": Borrowed((_of_one("i0", 1),), ((800.0,),)),
    "iv": Borrowed(_of_order("iv", _between("iv", "add", 0.5)), ((0.5, 0.0),)),
    "i0e": Borrowed((_damped(lambda b, r, x: b("i1e", x)),)),
    "i1e": Borrowed((_damped(lambda b, r, x: _half(b, b("add", b("i0e", x), b("ive", 2.0, x)))),)),
    "ive": Borrowed(_of_order("ive", _damped(_between("ive", "add", 0.5))), ((0.5, 0.0),)),
    "k0": Borrowed((lambda b, r, x: b("neg", b("k1", x)),), ((0.0,),)),
    "k1": Borrowed((_of_one_from_below("k0"),), ((0.0,),)),
    "kv": Borrowed(_of_order("kv", _from_below("kv")), ((1.0, 0.0),)),
    "k0e": Borrowed((_grown(lambda b, r, x: b("neg", b("k1e", x))),), ((0.0,),)),
    "k1e": Borrowed((_grown(_of_one_from_below("k0e")),), ((0.0,),)),
    "kve": Borrowed(_of_order("kve", _grown(_from_below("kve"))), ((1.0, 0.0),)),
}


# --- error functions and the normal distribution -----------------------------------------------------------------


def _bell(b: Scalars, r: Atom, factor: float, width: float) -> Atom:
    """factor exp(width r^2): the slope of an inverse, whose value r is."""
    return b("mul", b("exp", b("mul", b("square", r), width)), factor)


def _series(b: Scalars, x: Atom, terms: tuple[float, ...]) -> Atom:
    """A polynomial in 1 / x^2 without a constant term."""
    z = b("reciprocal", b("square", x))
    total = b("mul", z, terms[-1])
    for term in reversed(terms[:-1]):
        total = b("mul", z, b("add", total, term))
    return total


def _far(b: Scalars, x: Atom, near: Partial, terms: tuple[float, ...]) -> Atom:
    """`near(x)`, which cancels for large x: there the first terms of the series take its place."""
    beyond = b("gt", b("abs", x), FAR)
    there, here = b("select", beyond, x, FAR), b("select", beyond, FAR, x)
    slope = near(here)
    assert not isinstance(slope, float)
    return b("select", beyond, _series(b, there, terms), slope)


def _erfcx(b: Scalars, r: Atom, x: Atom) -> Atom:
    terms = (-1 / ROOT_PI, 3 / (2 * ROOT_PI), -15 / (4 * ROOT_PI), 105 / (8 * ROOT_PI), -945 / (16 * ROOT_PI))

    def near(x: Atom) -> Atom:
        return b("sub", b("mul", b("mul", x, 2.0), b("erfcx", x)), 2 / ROOT_PI)

    negative = b("lt", x, 0.0)  # there it grows without end, and nothing cancels
    usual = _far(b, b("select", negative, 1.0, x), near, terms)
    return b("select", negative, near(b("select", negative, x, 0.0)), usual)


def _dawsn(b: Scalars, r: Atom, x: Atom) -> Atom:
    def near(x: Atom) -> Atom:
        return b("sub", 1.0, b("mul", b("mul", x, 2.0), b("dawsn", x)))

    return _far(b, x, near, (-0.5, -0.75, -1.875, -6.5625, -29.53125))


ERRORS = {
    "erfcx": Borrowed((_erfcx,), ((-30.0,),)),
    "erfi": Borrowed((lambda b, r, x: _bell(b, x, 2 / ROOT_PI, 1.0),), ((30.0,),)),
    "dawsn": Borrowed((_dawsn,)),
    "erfinv": Borrowed((lambda b, r, x: _bell(b, r, ROOT_PI / 2, 1.0),), ((-1.0,), (1.0,))),
    "erfcinv": Borrowed((lambda b, r, x: _bell(b, r, -ROOT_PI / 2, 1.0),), ((0.0,), (2.0,))),
    "ndtri": Borrowed((lambda b, r, x: _bell(b, r, ROOT_2PI, 0.5),), ((0.0,), (1.0,))),
    "ndtri_exp": Borrowed(
        (lambda b, r, x: b("mul", b("exp", b("add", b("mul", b("square", r), 0.5), x)), ROOT_2PI),), ((0.0,),)
    ),
    "log_ndtr": Borrowed(
        (lambda b, r, x: b("div", math.sqrt(2 / math.pi), b("erfcx", b("mul", x, -math.sqrt(0.5)))),), ((-math.inf,),)
    ),
    "owens_t": Borrowed(
        (
            lambda b, r, h, a: b(
                "mul",
                b("mul", b("exp", b("mul", b("square", h), -0.5)), b("erf", b("mul", b("mul", a, h), math.sqrt(0.5)))),
                -0.5 / ROOT_2PI,
            ),
            lambda b, r, h, a: b(
                "div",
                b("exp", b("mul", b("mul", b("square", h), b("add", b("square", a), 1.0)), -0.5)),
                b("mul", b("add", b("square", a), 1.0), 2 * math.pi),
            ),
        )
    ),
}


# --- gamma and beta ----------------------------------------------------------------------------------------------


def _gamma_density(b: Scalars, a: Atom, x: Atom) -> Atom:
    """x^(a - 1) exp(-x) / gamma(a)."""
    power = b("xlogy", b("sub", a, 1.0), x)
    return b("exp", b("sub", b("sub", power, x), b("gammaln", a)))


def _beta_density(b: Scalars, p: Atom, q: Atom, x: Atom) -> Atom:
    """x^(p - 1) (1 - x)^(q - 1) / beta(p, q)."""
    powers = b("add", b("xlogy", b("sub", p, 1.0), x), b("xlogy", b("sub", q, 1.0), b("sub", 1.0, x)))
    return b("exp", b("sub", powers, b("scipy_betaln", p, q)))


def _student_density(b: Scalars, v: Atom, t: Atom) -> Atom:
    """With endless degrees of freedom, that of the normal distribution."""
    endless = b("isinf", v)
    normal = b("mul", b("exp", b("mul", b("square", t), -0.5)), 1 / ROOT_2PI)
    return b("select", endless, normal, _finite_student_density(b, b("select", endless, 1.0, v), t))


def _finite_student_density(b: Scalars, v: Atom, t: Atom) -> Atom:
    log = b("sub", b("gammaln", _half(b, b("add", v, 1.0))), b("gammaln", _half(b, v)))
    tail = b("mul", _half(b, b("add", v, 1.0)), b("log1p", b("div", b("square", t), v)))
    return b("div", b("exp", b("sub", log, tail)), b("sqrt", b("mul", v, math.pi)))


def _incomplete(sign: float) -> Borrowed:
    """The slope of the distribution function is the density."""
    return Borrowed((None, lambda b, r, a, x: b("mul", _gamma_density(b, a, x), sign)), ((0.5, 0.0),))


def _quantile(name: str, sign: float) -> Borrowed:
    return Borrowed(
        (_none(name, "shape"), lambda b, r, a, y: b("div", sign, _gamma_density(b, a, r))), ((2.0, 0.0), (2.0, 1.0))
    )


def _digammas(b: Scalars, x: Atom, y: Atom) -> Atom:
    return b("sub", b("digamma", x), b("digamma", y))


def _of_beta(b: Scalars, p: Atom, q: Atom) -> Atom:
    return _digammas(b, p, b("add", p, q))


SHAPES = (_none("betaincinv", "first shape"), _none("betaincinv", "second shape"))

GAMMA = {
    "gammainc": _incomplete(1.0),
    "gammaincc": _incomplete(-1.0),
    "gammaincinv": _quantile("gammaincinv", 1.0),
    "gammainccinv": _quantile("gammainccinv", -1.0),
    "betainc": Borrowed((None, None, lambda b, r, p, q, x: _beta_density(b, p, q, x)), ((0.5, 0.5, 0.0),)),
    "betaincc": Borrowed((None, None, lambda b, r, p, q, x: b("neg", _beta_density(b, p, q, x))), ((0.5, 0.5, 0.0),)),
    "betaincinv": Borrowed(
        (*SHAPES, lambda b, r, p, q, y: b("reciprocal", _beta_density(b, p, q, r))), ((2.0, 2.0, 0.0), (2.0, 2.0, 1.0))
    ),
    "stdtr": Borrowed((None, lambda b, r, v, t: _student_density(b, v, t))),
    "stdtrit": Borrowed(
        (_none("stdtrit", "degrees of freedom"), lambda b, r, v, p: b("reciprocal", _student_density(b, v, r))),
        ((2.0, 0.0), (2.0, 1.0)),
    ),
    "rgamma": Borrowed((lambda b, r, x: b("neg", b("mul", r, b("digamma", x))),), ((0.0,),)),
    "loggamma": Borrowed((lambda b, r, x: b("digamma", x),), ((0.0,),)),
    "scipy_betaln": Borrowed(
        (lambda b, r, p, q: _of_beta(b, p, q), lambda b, r, p, q: _of_beta(b, q, p)), ((1.0, 0.0), (0.0, 1.0))
    ),
    "beta": Borrowed(
        (
            lambda b, r, p, q: b("mul", r, _of_beta(b, p, q)),
            lambda b, r, p, q: b("mul", r, _of_beta(b, q, p)),
        ),
        ((1.0, 0.0), (0.0, 1.0)),
    ),
    "poch": Borrowed(
        (
            lambda b, r, z, m: b("mul", r, _digammas(b, b("add", z, m), z)),
            lambda b, r, z, m: b("mul", r, b("digamma", b("add", z, m))),
        ),
        ((1.0, -1.0),),
    ),
    "binom": Borrowed(
        (
            lambda b, r, n, k: b("mul", r, _digammas(b, b("add", n, 1.0), b("add", b("sub", n, k), 1.0))),
            lambda b, r, n, k: b("mul", r, _digammas(b, b("add", b("sub", n, k), 1.0), b("add", k, 1.0))),
        ),
        ((1.0, 2.0),),
    ),
}


# --- integrals and series ----------------------------------------------------------------------------------------


def _expn(b: Scalars, r: Atom, n: Atom, x: Atom) -> Atom:
    """-E(n - 1, x), and of E(0, x) = exp(-x) / x by its formula."""
    first = b("eq", n, 0.0)
    below = b("expn", b("select", first, 0.0, b("sub", n, 1.0)), x)
    return b("neg", b("select", first, b("mul", r, b("add", b("reciprocal", x), 1.0)), below))


def _hypergeometric(p: float, q: float, s: float, factor: float) -> tuple[float, ...]:
    """Terms of factor F(p, q; s; x), enough for |x| < 0.3."""
    terms = [factor]
    for k in range(30):
        terms.append(terms[-1] * (p + k) * (q + k) / ((s + k) * (1 + k)))
    return tuple(terms)


# Of differences of the two integrals, which cancel at 0: (K - E) / m, and (E - (1 - m) K) / m.
DIFFERENCES = tuple(_hypergeometric(0.5, q, 2.0, math.pi / 4) for q in (1.5, 0.5))


def _ellipe(b: Scalars, r: Atom, m: Atom) -> Atom:
    difference = _near_zero(b, m, 0.3, DIFFERENCES[0], lambda m: b("div", b("sub", b("ellipk", m), r), m))
    return b("mul", difference, -0.5)


def _ellipk(b: Scalars, r: Atom, m: Atom) -> Atom:
    def beyond(m: Atom) -> Atom:
        rest = b("select", b("eq", m, 1.0), 0.0, b("mul", b("sub", 1.0, m), r))  # 0 times infinity
        return b("div", b("sub", b("ellipe", m), rest), m)

    return b("div", _half(b, _near_zero(b, m, 0.3, DIFFERENCES[1], beyond)), b("sub", 1.0, m))


INTEGRALS = {
    "exp1": Borrowed((lambda b, r, x: b("neg", b("div", b("exp", b("neg", x)), x)),), ((0.0,),)),
    "expi": Borrowed((lambda b, r, x: b("div", b("exp", x), x),), ((0.0,), (800.0,))),
    "expn": Borrowed((_none("expn", "order"), _expn), ((1.0, 0.0),)),
    "ellipk": Borrowed((_ellipk,), ((1.0,),)),
    "ellipe": Borrowed((_ellipe,), ((1.0,),)),
    "wrightomega": Borrowed((lambda b, r, x: b("div", r, b("add", r, 1.0)),)),
    "hyp0f1": Borrowed(
        (
            _none("hyp0f1", "parameter"),
            lambda b, r, p, x: b("div", b("hyp0f1", b("add", p, 1.0), x), p),
        ),
        ((0.0, 1.0),),
    ),
    "hyp1f1": Borrowed(
        (
            _none("hyp1f1", "first parameter"),
            _none("hyp1f1", "second parameter"),
            lambda b, r, p, q, x: b("mul", b("div", p, q), b("hyp1f1", b("add", p, 1.0), b("add", q, 1.0), x)),
        ),
        ((1.0, 0.0, 1.0),),
    ),
    "hyp2f1": Borrowed(
        (
            _none("hyp2f1", "first parameter"),
            _none("hyp2f1", "second parameter"),
            _none("hyp2f1", "third parameter"),
            lambda b, r, p, q, s, x: b(
                "mul",
                b("div", b("mul", p, q), s),
                b("hyp2f1", b("add", p, 1.0), b("add", q, 1.0), b("add", s, 1.0), x),
            ),
        ),
        ((1.0, 1.0, 1.0, 1.0),),
    ),
}

SHAPED = frozenset({"gammainc", "gammaincc", "betainc", "betaincc", "stdtr"})
BORROWED: dict[str, Borrowed] = {**BESSEL, **ERRORS, **GAMMA, **INTEGRALS}
