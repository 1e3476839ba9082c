"""Continuous distributions of scipy.stats: each is its formulas for loc=0 and scale=1, and the function that makes it."""

from __future__ import annotations

import math
from typing import Any

import numpy as np
from scipy import special

from tapeless.prelude.distributions import Continuous, Form
from tapeless.prelude.registry import stands_for
from tapeless.prelude.saddle import LOG_2, LOG_2PI, log_gamma_density

LOG_PI = math.log(math.pi)
ROOT_2 = math.sqrt(2.0)
ROOT_2PI = math.sqrt(2.0 * math.pi)


def power_end(exponent: Any, otherwise: Any) -> Any:
    """The logarithm at 0 of a density like x ** exponent: `otherwise` where the exponent is 0."""
    return np.where(exponent < 0, np.inf, np.where(exponent > 0, -np.inf, otherwise))


def never(x: Any, *shapes: Any) -> Any:
    return -np.inf


# -- normal and what is made of it


def norm_logpdf(x: Any) -> Any:
    return -x * x / 2.0 - LOG_2PI / 2.0


def norm_pdf(x: Any) -> Any:
    return np.exp(-x * x / 2.0) / ROOT_2PI


NORM = Form(
    logpdf=norm_logpdf,
    pdf=norm_pdf,
    cdf=lambda x: special.ndtr(x),
    sf=lambda x: special.ndtr(-x),
    logcdf=lambda x: special.log_ndtr(x),
    logsf=lambda x: special.log_ndtr(-x),
    ppf=lambda q: special.ndtri(q),
    isf=lambda q: -special.ndtri(q),
    mean=lambda: 0.0,
    var=lambda: 1.0,
    entropy=lambda: 0.5 * (LOG_2PI + 1.0),
)


@stands_for("scipy.stats.norm")
def norm(loc: Any = 0, scale: Any = 1) -> Any:
    return Continuous(NORM, (), loc, scale)


def halfnorm_logsf(x: Any) -> Any:
    near = x < 1.0
    return np.where(near, np.log1p(-special.erf(np.where(near, x, 0.0) / ROOT_2)), special.log_ndtr(-x) + LOG_2)


HALFNORM = Form(
    logpdf=lambda x: 0.5 * math.log(2.0 / math.pi) - x * x / 2.0,
    pdf=lambda x: math.sqrt(2.0 / math.pi) * np.exp(-x * x / 2.0),
    cdf=lambda x: special.erf(x / ROOT_2),
    sf=lambda x: 2.0 * special.ndtr(-x),
    logsf=halfnorm_logsf,
    ppf=lambda q: special.erfinv(q) * ROOT_2,
    isf=lambda q: -special.ndtri(q / 2.0),
    low=0.0,
    mean=lambda: math.sqrt(2.0 / math.pi),
    var=lambda: 1.0 - 2.0 / math.pi,
    entropy=lambda: 0.5 * math.log(math.pi / 2.0) + 0.5,
)


@stands_for("scipy.stats.halfnorm")
def halfnorm(loc: Any = 0, scale: Any = 1) -> Any:
    return Continuous(HALFNORM, (), loc, scale)


def lognorm_logpdf(x: Any, s: Any) -> Any:
    z = np.log(x) / s
    return -z * z / 2.0 - np.log(x) - np.log(s) - LOG_2PI / 2.0


def lognorm_pdf(x: Any, s: Any) -> Any:
    return norm_pdf(np.log(x) / s) / (s * x)


LOGNORM = Form(
    logpdf=lognorm_logpdf,
    pdf=lognorm_pdf,
    cdf=lambda x, s: special.ndtr(np.log(x) / s),
    sf=lambda x, s: special.ndtr(-np.log(x) / s),
    logcdf=lambda x, s: special.log_ndtr(np.log(x) / s),
    logsf=lambda x, s: special.log_ndtr(-np.log(x) / s),
    ppf=lambda q, s: np.exp(s * special.ndtri(q)),
    isf=lambda q, s: np.exp(-s * special.ndtri(q)),
    low=0.0,
    at_low=never,
    usual=(1.0,),
    mean=lambda s: np.exp(s * s / 2.0),
    var=lambda s: np.exp(s * s) * np.expm1(s * s),
    entropy=lambda s: 0.5 * (1.0 + LOG_2PI) + np.log(s),
)


@stands_for("scipy.stats.lognorm")
def lognorm(s: Any, loc: Any = 0, scale: Any = 1) -> Any:
    return Continuous(LOGNORM, (s,), loc, scale)


# -- gamma and its kin


def gamma_entropy(a: Any) -> Any:
    """Its terms cancel for large shapes, where a series takes their place."""
    far = a > 100.0
    b, c = np.where(far, 1.0, a), np.where(far, a, 100.0)
    series = -1 / 3 / c - c**-2.0 / 12 - c**-3.0 / 90 + c**-4.0 / 120 + c**-5.0 / 210 - c**-6.0 / 252
    usual = special.digamma(b) * (1.0 - b) + b + special.gammaln(b)
    return np.where(far, 0.5 * (1.0 + LOG_2PI + np.log(c)) + series, usual)


GAMMA = Form(
    logpdf=log_gamma_density,
    cdf=lambda x, a: special.gammainc(a, x),
    sf=lambda x, a: special.gammaincc(a, x),
    ppf=lambda q, a: special.gammaincinv(a, q),
    isf=lambda q, a: special.gammainccinv(a, q),
    low=0.0,
    at_low=lambda x, a: power_end(a - 1.0, -x),
    usual=(1.0,),
    mean=lambda a: a,
    var=lambda a: a,
    entropy=gamma_entropy,
)


@stands_for("scipy.stats.gamma")
def gamma(a: Any, loc: Any = 0, scale: Any = 1) -> Any:
    return Continuous(GAMMA, (a,), loc, scale)


CHI2 = Form(
    logpdf=lambda x, df: log_gamma_density(x / 2.0, df / 2.0) - LOG_2,
    cdf=lambda x, df: special.gammainc(df / 2.0, x / 2.0),
    sf=lambda x, df: special.gammaincc(df / 2.0, x / 2.0),
    ppf=lambda q, df: 2.0 * special.gammaincinv(df / 2.0, q),
    isf=lambda q, df: 2.0 * special.gammainccinv(df / 2.0, q),
    low=0.0,
    at_low=lambda x, df: power_end(df - 2.0, -x / 2.0 - LOG_2),
    usual=(2.0,),
    mean=lambda df: df,
    var=lambda df: 2.0 * df,
    entropy=lambda df: gamma_entropy(df / 2.0) + LOG_2,
)


@stands_for("scipy.stats.chi2")
def chi2(df: Any, loc: Any = 0, scale: Any = 1) -> Any:
    return Continuous(CHI2, (df,), loc, scale)


def invgamma_logpdf(x: Any, a: Any) -> Any:
    return log_gamma_density(1.0 / x, a) - 2.0 * np.log(x)


def invgamma_pdf(x: Any, a: Any) -> Any:
    near = x < 1e-3 / (a + 1.0)  # less than any number, and its logarithm may be infinite
    return np.where(near, 0.0, np.exp(invgamma_logpdf(np.where(near, 1.0, x), a)))


def reciprocal(x: Any) -> Any:
    """Its slope counts as 0 where it is infinite."""
    return np.where(x > 0, 1.0 / np.where(x > 0, x, 1.0), np.inf)


def invgamma_mean(a: Any) -> Any:
    return np.where(a > 1.0, 1.0 / (np.where(a > 1.0, a, 2.0) - 1.0), np.inf)


def invgamma_var(a: Any) -> Any:
    b = np.where(a > 2.0, a, 3.0)
    return np.where(a > 2.0, 1.0 / (b - 1.0) ** 2 / (b - 2.0), np.inf)


INVGAMMA = Form(
    logpdf=invgamma_logpdf,
    pdf=invgamma_pdf,
    cdf=lambda x, a: special.gammaincc(a, 1.0 / x),
    sf=lambda x, a: special.gammainc(a, 1.0 / x),
    ppf=lambda q, a: reciprocal(special.gammainccinv(a, q)),
    isf=lambda q, a: reciprocal(special.gammaincinv(a, q)),
    low=0.0,
    at_low=never,
    usual=(1.0,),
    mean=invgamma_mean,
    var=invgamma_var,
    entropy=lambda a: gamma_entropy(a) - 2.0 * special.digamma(a),
)


@stands_for("scipy.stats.invgamma")
def invgamma(a: Any, loc: Any = 0, scale: Any = 1) -> Any:
    return Continuous(INVGAMMA, (a,), loc, scale)


EXPON = Form(
    logpdf=lambda x: -x,
    cdf=lambda x: -np.expm1(-x),
    sf=lambda x: np.exp(-x),
    logsf=lambda x: -x,
    ppf=lambda q: -np.log1p(-q),
    isf=lambda q: -np.log(q),
    low=0.0,
    mean=lambda: 1.0,
    var=lambda: 1.0,
    entropy=lambda: 1.0,
)


@stands_for("scipy.stats.expon")
def expon(loc: Any = 0, scale: Any = 1) -> Any:
    return Continuous(EXPON, (), loc, scale)
