"""Continuous distributions of scipy.stats whose tails fall like a power, and the one on a circle."""

from __future__ import annotations

import math
from typing import Any

import numpy as np
from scipy import special

from tapeless.prelude.continuous import LOG_PI, norm_logpdf, power_end
from tapeless.prelude.distributions import Continuous, Form
from tapeless.prelude.registry import stands_for
from tapeless.prelude.saddle import LOG_2, LOG_2PI, log_beta_density


def log_one_more(x: Any) -> Any:
    """log(1 + x^2), also where x^2 is infinite."""
    near = np.abs(x) < 1.0
    y, z = np.where(near, x, 0.0), np.abs(np.where(near, 1.0, x))
    return np.where(near, np.log1p(y * y), 2.0 * np.log(z) + np.log1p((1.0 / z) ** 2))


def cauchy_ppf(q: Any) -> Any:
    upper = q > 0.5
    tail = np.where(upper, 1.0 - q, q)
    near = tail > 0.25
    end = -1.0 / np.tan(math.pi * np.where(near, 0.25, tail))
    return np.where(near, np.tan(math.pi * np.where(near, q - 0.5, 0.0)), np.where(upper, -end, end))


CAUCHY = Form(
    logpdf=lambda x: -LOG_PI - log_one_more(x),
    pdf=lambda x: 1.0 / math.pi / (1.0 + x * x),
    cdf=lambda x: np.arctan2(1.0, -x) / math.pi,
    sf=lambda x: np.arctan2(1.0, x) / math.pi,
    ppf=cauchy_ppf,
    isf=lambda q: -cauchy_ppf(q),
    mean=lambda: np.nan,
    var=lambda: np.nan,
    entropy=lambda: math.log(4.0 * math.pi),
)


@stands_for("scipy.stats.cauchy")
def cauchy(loc: Any = 0, scale: Any = 1) -> Any:
    return Continuous(CAUCHY, (), loc, scale)


def halfcauchy_ppf(q: Any) -> Any:
    upper = q > 0.5
    slope = np.tan(math.pi / 2.0 * np.where(upper, 1.0 - q, q))
    return np.where(upper, 1.0 / slope, slope)


HALFCAUCHY = Form(
    logpdf=lambda x: LOG_2 - LOG_PI - log_one_more(x),
    pdf=lambda x: 2.0 / math.pi / (1.0 + x * x),
    cdf=lambda x: 2.0 / math.pi * np.arctan(x),
    sf=lambda x: 2.0 / math.pi * np.arctan2(1.0, x),
    ppf=halfcauchy_ppf,
    isf=lambda q: 1.0 / halfcauchy_ppf(q),
    low=0.0,
    mean=lambda: np.inf,
    var=lambda: np.inf,
    entropy=lambda: LOG_2PI,
)


@stands_for("scipy.stats.halfcauchy")
def halfcauchy(loc: Any = 0, scale: Any = 1) -> Any:
    return Continuous(HALFCAUCHY, (), loc, scale)


def half_step(a: Any) -> Any:
    """log(gamma(a + 1/2) / gamma(a)), by its series where the difference of two logarithms would lose digits."""
    far = a > 10.0
    w = np.where(far, a, 10.0) - 0.25
    z = 1.0 / (w * w)
    series = -0.00132083892822265625 + z * (0.0024090290069580078125 - z * 0.0067123894890149434)
    series = z * (0.015625 + z * (-0.00244140625 + z * (0.00124104817708333333 + z * series)))
    b = np.where(far, 1.0, a)
    return np.where(far, 0.5 * np.log(w) + series, special.gammaln(b + 0.5) - special.gammaln(b))


def t_logpdf(x: Any, df: Any) -> Any:
    endless = np.isinf(df)
    n = np.where(endless, 1.0, df)
    value = half_step(n / 2.0) - 0.5 * (np.log(n) + LOG_PI) - (n + 1.0) / 2.0 * np.log1p(x * x / n)
    return np.where(endless, norm_logpdf(x), value)


def t_cdf(x: Any, df: Any) -> Any:
    endless = np.isinf(df)
    return np.where(endless, special.ndtr(x), special.stdtr(np.where(endless, 1.0, df), x))


def t_ppf(q: Any, df: Any) -> Any:
    endless = np.isinf(df)
    return np.where(endless, special.ndtri(q), special.stdtrit(np.where(endless, 1.0, df), q))


def t_var(df: Any) -> Any:
    some = (df > 2.0) & np.isfinite(df)
    n = np.where(some, df, 3.0)
    return np.where(some, n / (n - 2.0), np.where(df > 2.0, 1.0, np.where(df > 1.0, np.inf, np.nan)))


T = Form(
    logpdf=t_logpdf,
    cdf=t_cdf,
    sf=lambda x, df: t_cdf(-x, df),
    ppf=t_ppf,
    isf=lambda q, df: -t_ppf(q, df),
    usual=(1.0,),
    mean=lambda df: np.where(df > 1.0, 0.0, np.inf),
    var=t_var,
)


@stands_for("scipy.stats.t")
def t(df: Any, loc: Any = 0, scale: Any = 1) -> Any:
    return Continuous(T, (df,), loc, scale)


def f_logpdf(x: Any, n: Any, m: Any) -> Any:
    whole = m + n * x
    return log_beta_density(n * x / whole, m / whole, n / 2.0, m / 2.0, 1.0, 0.0) + np.log(n / whole)


def f_cdf(x: Any, n: Any, m: Any) -> Any:
    """Of the two parts of 1 that n x and m are of their sum, the smaller one has all digits."""
    a, b, whole = n / 2.0, m / 2.0, m + n * x
    return np.where(n * x < m, special.betainc(a, b, n * x / whole), special.betaincc(b, a, m / whole))


def f_ppf(q: Any, n: Any, m: Any) -> Any:
    first = q < special.betainc(n / 2.0, m / 2.0, 0.5)
    a, b = np.where(first, n, m) / 2.0, np.where(first, m, n) / 2.0
    part = special.betaincinv(a, b, np.where(first, q, 1.0 - q))
    return np.where(first, part / (1.0 - part), (1.0 - part) / part) * m / n


def f_var(n: Any, m: Any) -> Any:
    k = np.where(m > 4.0, m, 5.0)
    return np.where(m > 4.0, 2.0 * k * k * (n + k - 2.0) / (n * (k - 2.0) ** 2 * (k - 4.0)), np.inf)


F = Form(
    logpdf=f_logpdf,
    cdf=f_cdf,
    sf=lambda x, n, m: f_cdf(1.0 / x, m, n),
    ppf=f_ppf,
    isf=lambda q, n, m: 1.0 / f_ppf(q, m, n),
    low=0.0,
    at_low=lambda x, n, m: power_end(n - 2.0, -(n + m) / 2.0 * np.log1p(n * x / m)),
    usual=(2.0, 2.0),
    mean=lambda n, m: np.where(m > 2.0, m / (np.where(m > 2.0, m, 3.0) - 2.0), np.inf),
    var=f_var,
)


@stands_for("scipy.stats.f")
def f(dfn: Any, dfd: Any, loc: Any = 0, scale: Any = 1) -> Any:
    return Continuous(F, (dfn, dfd), loc, scale)


def pareto_mean(b: Any) -> Any:
    c = np.where(b > 1.0, b, 2.0)
    return np.where(b > 1.0, c / (c - 1.0), np.inf)


def pareto_var(b: Any) -> Any:
    c = np.where(b > 2.0, b, 3.0)
    return np.where(b > 2.0, c / (c - 2.0) / (c - 1.0) ** 2, np.inf)


PARETO = Form(
    logpdf=lambda x, b: np.log(b) - (b + 1.0) * np.log(x),
    pdf=lambda x, b: b * np.power(x, -b - 1.0),
    cdf=lambda x, b: -np.expm1(-b * np.log(x)),
    sf=lambda x, b: np.power(x, -b),
    logsf=lambda x, b: -b * np.log(x),
    ppf=lambda q, b: np.exp(-np.log1p(-q) / b),
    isf=lambda q, b: np.power(q, -1.0 / b),
    low=1.0,
    inner=2.0,
    usual=(1.0,),
    mean=pareto_mean,
    var=pareto_var,
    entropy=lambda b: 1.0 + 1.0 / b - np.log(b),
)


@stands_for("scipy.stats.pareto")
def pareto(b: Any, loc: Any = 0, scale: Any = 1) -> Any:
    return Continuous(PARETO, (b,), loc, scale)


def one_less(x: Any) -> Any:
    """cos(x) - 1."""
    return np.where(np.cos(x) < 0.5, np.cos(x) - 1.0, -2.0 * np.sin(x / 2.0) ** 2)


def vonmises_logpdf(x: Any, kappa: Any) -> Any:
    small = kappa < 1.0  # i0e has a kink at 0
    k, m = np.where(small, kappa, 0.0), np.where(small, 1.0, kappa)
    return np.where(small, k * np.cos(x) - np.log(special.i0(k)), m * one_less(x) - np.log(special.i0e(m))) - LOG_2PI


def vonmises_entropy(kappa: Any) -> Any:
    small = kappa < 1.0
    k, m = np.where(small, kappa, 0.0), np.where(small, 1.0, kappa)
    flat, steep = special.i0(k), special.i0e(m)
    value = np.where(small, np.log(flat) - k * special.i1(k) / flat, np.log(steep) + m * (1.0 - special.i1e(m) / steep))
    return value + LOG_2PI


VONMISES = Form(
    logpdf=vonmises_logpdf,
    at_low=lambda x, kappa: np.nan,
    at_high=lambda x, kappa: np.nan,
    valid=lambda kappa: kappa >= 0,
    usual=(1.0,),
    entropy=vonmises_entropy,
)


@stands_for("scipy.stats.vonmises")
def vonmises(kappa: Any, loc: Any = 0, scale: Any = 1) -> Any:
    return Continuous(VONMISES, (kappa,), loc, scale)
