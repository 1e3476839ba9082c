"""Continuous distributions of scipy.stats that are bounded or whose tails fall exponentially."""

from __future__ import annotations

import math
from typing import Any

import numpy as np
from scipy import special

from tapeless.prelude.continuous import ROOT_2, never, norm_logpdf, power_end
from tapeless.prelude.distributions import Continuous, Form, log_of
from tapeless.prelude.registry import stands_for
from tapeless.prelude.saddle import LOG_2, log_beta_density

EULER = 0.5772156649015329
LARGEST_EXPONENT = 709.0


# -- bounded


UNIFORM = Form(
    logpdf=lambda x: 0.0 * x,
    cdf=lambda x: x,
    sf=lambda x: 1.0 - x,
    ppf=lambda q: q,
    isf=lambda q: 1.0 - q,
    low=0.0,
    high=1.0,
    mean=lambda: 0.5,
    var=lambda: 1.0 / 12.0,
    entropy=lambda: 0.0,
)


@stands_for("scipy.stats.uniform")
def uniform(loc: Any = 0, scale: Any = 1) -> Any:
    return Continuous(UNIFORM, (), loc, scale)


def beta_logpdf(x: Any, a: Any, b: Any) -> Any:
    return log_beta_density(x, 1.0 - x, a, b)


def beta_isf(q: Any, a: Any, b: Any) -> Any:
    upper = q > 0.5  # where 1 - q is exact, and the result may be small
    part = special.betaincinv(np.where(upper, a, b), np.where(upper, b, a), np.where(upper, 1.0 - q, q))
    return np.where(upper, part, 1.0 - part)


def beta_entropy(a: Any, b: Any) -> Any:
    slopes = (a - 1.0) * special.digamma(a) + (b - 1.0) * special.digamma(b)
    return special.betaln(a, b) - slopes + (a + b - 2.0) * special.digamma(a + b)


BETA = Form(
    logpdf=beta_logpdf,
    cdf=lambda x, a, b: special.betainc(a, b, x),
    sf=lambda x, a, b: special.betaincc(a, b, x),
    ppf=lambda q, a, b: special.betaincinv(a, b, q),
    isf=beta_isf,
    low=0.0,
    high=1.0,
    at_low=lambda x, a, b: power_end(a - 1.0, np.log(b) + (b - 1.0) * np.log1p(-x)),
    at_high=lambda x, a, b: power_end(b - 1.0, np.log(a) + (a - 1.0) * np.log(x)),
    usual=(1.0, 1.0),
    mean=lambda a, b: a / (a + b),
    var=lambda a, b: a * b / ((a + b) ** 2 * (a + b + 1.0)),
    entropy=beta_entropy,
)


@stands_for("scipy.stats.beta")
def beta(a: Any, b: Any, loc: Any = 0, scale: Any = 1) -> Any:
    return Continuous(BETA, (a, b), loc, scale)


def log_mass(a: Any, b: Any) -> Any:
    """The logarithm of what the normal distribution has between a and b, which may be infinite."""
    turned = a > 0
    low, high = np.where(turned, -b, a), np.where(turned, -a, b)
    endless, left = low == -np.inf, high <= 0
    top = np.where(left, high, 0.0)
    rest = special.log_ndtr(np.where(left & ~endless, low, top - 1.0)) - special.log_ndtr(top)
    one_side = special.log_ndtr(top) + np.where(endless, 0.0, np.log(-np.expm1(rest)))
    top, bottom = np.where(left | (high == np.inf), 1.0, high), np.where(left | endless, -1.0, low)
    outside = np.where(endless, 0.0, special.ndtr(bottom)) + np.where(high == np.inf, 0.0, special.ndtr(-top))
    narrow = outside > 0.5
    width = (special.erf(top / ROOT_2) - special.erf(bottom / ROOT_2)) / 2.0
    around = np.where(narrow, np.log(width), np.log1p(-np.where(narrow, 0.5, outside)))
    return np.where(left, one_side, around)


def truncnorm_logcdf(x: Any, a: Any, b: Any) -> Any:
    below, above, whole = log_mass(a, x), log_mass(x, b), log_mass(a, b)
    most = below - whole > -0.1
    return np.where(most, np.log1p(-np.exp(np.where(most, above - whole, -1.0))), below - whole)


def truncnorm_ppf(q: Any, a: Any, b: Any) -> Any:
    left = a < 0
    end = np.where(left, a, -b)
    endless = end == -np.inf
    outside = np.where(endless, -np.inf, special.log_ndtr(np.where(endless, 0.0, end)))
    inside = np.where(left, np.log(q), np.log1p(-q)) + log_mass(a, b)
    point = special.ndtri_exp(np.logaddexp(outside, inside))
    return np.where(left, point, -point)


TRUNCNORM = Form(
    logpdf=lambda x, a, b: norm_logpdf(x) - log_mass(a, b),
    cdf=lambda x, a, b: np.exp(truncnorm_logcdf(x, a, b)),
    sf=lambda x, a, b: np.exp(truncnorm_logcdf(-x, -b, -a)),
    logcdf=truncnorm_logcdf,
    logsf=lambda x, a, b: truncnorm_logcdf(-x, -b, -a),
    ppf=truncnorm_ppf,
    isf=lambda q, a, b: -truncnorm_ppf(q, -b, -a),
    inner=0.0,
    bounds=lambda a, b: (a, b),
    valid=lambda a, b: a < b,
    usual=(-1.0, 1.0),
)


@stands_for("scipy.stats.truncnorm")
def truncnorm(a: Any, b: Any, loc: Any = 0, scale: Any = 1) -> Any:
    return Continuous(TRUNCNORM, (a, b), loc, scale)


# -- exponential tails


def laplace_cdf(x: Any) -> Any:
    tail = 0.5 * np.exp(np.where(x > 0, -x, x))
    return np.where(x > 0, 1.0 - tail, tail)


def laplace_logcdf(x: Any) -> Any:
    return np.where(x > 0, np.log1p(-0.5 * np.exp(-np.abs(x))), x - LOG_2)


def laplace_ppf(q: Any) -> Any:
    upper = q > 0.5
    size = np.log(2.0 * np.where(upper, 1.0 - q, q))
    return np.where(upper, -size, size)


LAPLACE = Form(
    logpdf=lambda x: -np.abs(x) - LOG_2,
    pdf=lambda x: 0.5 * np.exp(-np.abs(x)),
    cdf=laplace_cdf,
    sf=lambda x: laplace_cdf(-x),
    logcdf=laplace_logcdf,
    logsf=lambda x: laplace_logcdf(-x),
    ppf=laplace_ppf,
    isf=lambda q: -laplace_ppf(q),
    mean=lambda: 0.0,
    var=lambda: 2.0,
    entropy=lambda: LOG_2 + 1.0,
)


@stands_for("scipy.stats.laplace")
def laplace(loc: Any = 0, scale: Any = 1) -> Any:
    return Continuous(LAPLACE, (), loc, scale)


def log_expit(x: Any) -> Any:
    return -np.logaddexp(0.0, -x)


LOGISTIC = Form(
    logpdf=lambda x: log_expit(x) + log_expit(-x),
    pdf=lambda x: special.expit(x) * special.expit(-x),
    cdf=lambda x: special.expit(x),
    sf=lambda x: special.expit(-x),
    logcdf=log_expit,
    logsf=lambda x: log_expit(-x),
    ppf=lambda q: special.logit(q),
    isf=lambda q: -special.logit(q),
    mean=lambda: 0.0,
    var=lambda: math.pi**2 / 3.0,
    entropy=lambda: 2.0,
)


@stands_for("scipy.stats.logistic")
def logistic(loc: Any = 0, scale: Any = 1) -> Any:
    return Continuous(LOGISTIC, (), loc, scale)


def falling(x: Any) -> Any:
    """exp(-x); where that is infinite it counts as constant."""
    far = x < -LARGEST_EXPONENT
    return np.where(far, np.inf, np.exp(-np.where(far, 0.0, x)))


def gumbel_logpdf(x: Any) -> Any:
    far = x < -LARGEST_EXPONENT
    y = np.where(far, 0.0, x)
    return np.where(far, -np.inf, -y - np.exp(-y))


def gumbel_logsf(x: Any) -> Any:
    far = x > 40.0
    y = falling(np.where(far, 0.0, x))
    return np.where(far, -x, log_of(-np.expm1(-y), np.exp(-y)))


GUMBEL_R = Form(
    logpdf=gumbel_logpdf,
    cdf=lambda x: np.exp(-falling(x)),
    sf=lambda x: -np.expm1(-falling(x)),
    logcdf=lambda x: -falling(x),
    logsf=gumbel_logsf,
    ppf=lambda q: -np.log(-np.log(q)),
    isf=lambda q: -np.log(-np.log1p(-q)),
    mean=lambda: EULER,
    var=lambda: math.pi**2 / 6.0,
    entropy=lambda: EULER + 1.0,
)


@stands_for("scipy.stats.gumbel_r")
def gumbel_r(loc: Any = 0, scale: Any = 1) -> Any:
    return Continuous(GUMBEL_R, (), loc, scale)


RAYLEIGH = Form(
    logpdf=lambda x: np.log(x) - x * x / 2.0,
    pdf=lambda x: x * np.exp(-x * x / 2.0),
    cdf=lambda x: -np.expm1(-x * x / 2.0),
    sf=lambda x: np.exp(-x * x / 2.0),
    logsf=lambda x: -x * x / 2.0,
    ppf=lambda q: np.sqrt(-2.0 * np.log1p(-q)),
    isf=lambda q: np.sqrt(-2.0 * np.log(q)),
    low=0.0,
    at_low=never,
    mean=lambda: math.sqrt(math.pi / 2.0),
    var=lambda: 2.0 - math.pi / 2.0,
    entropy=lambda: EULER / 2.0 + 1.0 - LOG_2 / 2.0,
)


@stands_for("scipy.stats.rayleigh")
def rayleigh(loc: Any = 0, scale: Any = 1) -> Any:
    return Continuous(RAYLEIGH, (), loc, scale)


def is_far(x: Any, c: Any) -> Any:
    """Where x ** c would be infinite."""
    return c * np.log(x) > LARGEST_EXPONENT


def risen(x: Any, c: Any) -> Any:
    """x ** c; where that is infinite it counts as constant."""
    far = is_far(x, c)
    return np.where(far, np.inf, np.power(np.where(far, 1.0, x), c))


def weibull_pdf(x: Any, c: Any) -> Any:
    far = is_far(x, c)
    y = np.where(far, 1.0, x)
    return np.where(far, 0.0, c * np.power(y, c - 1.0) * np.exp(-np.power(y, c)))


WEIBULL_MIN = Form(
    logpdf=lambda x, c: np.log(c) + (c - 1.0) * np.log(x) - risen(x, c),
    pdf=weibull_pdf,
    cdf=lambda x, c: -np.expm1(-risen(x, c)),
    sf=lambda x, c: np.exp(-risen(x, c)),
    logsf=lambda x, c: -risen(x, c),
    ppf=lambda q, c: np.power(-np.log1p(-q), 1.0 / c),
    isf=lambda q, c: np.power(-np.log(q), 1.0 / c),
    low=0.0,
    at_low=lambda x, c: power_end(c - 1.0, -x),
    usual=(1.0,),
    mean=lambda c: special.gamma(1.0 + 1.0 / c),
    var=lambda c: special.gamma(1.0 + 2.0 / c) - special.gamma(1.0 + 1.0 / c) ** 2,
    entropy=lambda c: EULER - EULER / c - np.log(c) + 1.0,
)


@stands_for("scipy.stats.weibull_min")
def weibull_min(c: Any, loc: Any = 0, scale: Any = 1) -> Any:
    return Continuous(WEIBULL_MIN, (c,), loc, scale)
