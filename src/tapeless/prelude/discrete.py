"""Discrete distributions of scipy.stats: each is its formulas for loc=0, and the function that makes it.

Where a parameter is at the end of its range, like a probability of 0, `pmf` is written as a power, whose slopes are right
there. Slopes of logpmf count as 0 where it is infinite.
"""

from __future__ import annotations

from typing import Any

import numpy as np
from scipy import special

from tapeless.prelude.distributions import Discrete, Mass
from tapeless.prelude.registry import stands_for
from tapeless.prelude.saddle import log_beta, log_beta_density, log_gamma_density


def impossible(k: Any) -> Any:
    """The logarithm of 0 to the power of k."""
    return np.where(k == 0, 0.0, -np.inf)


# -- Poisson


def poisson_logpmf(k: Any, mu: Any) -> Any:
    some = mu > 0
    return np.where(some, log_gamma_density(np.where(some, mu, 1.0), k + 1.0), impossible(k) - np.where(some, 0.0, mu))


def poisson_pmf(k: Any, mu: Any) -> Any:
    zero = np.where(mu > 0, 0.0, mu)
    usual = np.exp(poisson_logpmf(k, np.where(mu > 0, mu, 1.0)))
    return np.where(mu > 0, usual, np.power(zero, k) * np.exp(-zero) / special.gamma(k + 1.0))


POISSON = Mass(
    logpmf=poisson_logpmf,
    pmf=poisson_pmf,
    cdf=lambda k, mu: special.gammaincc(k + 1.0, mu),
    sf=lambda k, mu: special.gammainc(k + 1.0, mu),
    valid=lambda mu: mu >= 0,
    usual=(1.0,),
    mean=lambda mu: mu,
    var=lambda mu: mu,
)


@stands_for("scipy.stats.poisson")
def poisson(mu: Any, loc: Any = 0) -> Any:
    return Discrete(POISSON, (mu,), loc)


# -- binomial


def binom_logpmf(k: Any, n: Any, p: Any) -> Any:
    none, all_ = p == 0, p == 1
    r = np.where(none | all_, 0.5, p)
    value = log_beta_density(r, 1.0 - r, k + 1.0, n - k + 1.0) - np.log(n + 1.0)
    at_none = impossible(k) - n * np.where(none, p, 0.0)
    at_all = impossible(n - k) + n * np.where(all_, p - 1.0, 0.0)
    return np.where(none, at_none, np.where(all_, at_all, value))


def binom_pmf(k: Any, n: Any, p: Any) -> Any:
    end = (p == 0) | (p == 1)
    r = np.where(end, p, 0.0)
    ways = np.exp(-log_beta(n - k + 1.0, k + 1.0)) / (n + 1.0)
    powers = ways * np.power(r, k) * np.power(1.0 - r, n - k)
    return np.where(end, powers, np.exp(binom_logpmf(k, n, np.where(end, 0.5, p))))


BINOM = Mass(
    logpmf=binom_logpmf,
    pmf=binom_pmf,
    cdf=lambda k, n, p: special.betaincc(k + 1.0, n - k, p),
    sf=lambda k, n, p: special.betainc(k + 1.0, n - k, p),
    valid=lambda n, p: (n >= 0) & (np.floor(n) == n) & (p >= 0) & (p <= 1),
    usual=(1.0, 0.5),
    mean=lambda n, p: n * p,
    var=lambda n, p: n * p * (1.0 - p),
    last=lambda n, p: n,
)


@stands_for("scipy.stats.binom")
def binom(n: Any, p: Any, loc: Any = 0) -> Any:
    return Discrete(BINOM, (n, p), loc)


def bernoulli_logpmf(k: Any, p: Any) -> Any:
    chance = np.where(k == 1, p, 1.0 - p)
    none = chance == 0
    r = np.where(none, 0.5, p)
    return np.where(none, -np.inf, np.where(k == 1, np.log(r), np.log1p(-r)))


BERNOULLI = Mass(
    logpmf=bernoulli_logpmf,
    pmf=lambda k, p: np.where(k == 1, p, 1.0 - p),
    cdf=lambda k, p: 1.0 - p,
    sf=lambda k, p: p,
    valid=lambda p: (p >= 0) & (p <= 1),
    usual=(0.5,),
    mean=lambda p: p,
    var=lambda p: p * (1.0 - p),
    last=lambda p: 1.0,
)


@stands_for("scipy.stats.bernoulli")
def bernoulli(p: Any, loc: Any = 0) -> Any:
    return Discrete(BERNOULLI, (p,), loc)


# -- waiting


def geom_logpmf(k: Any, p: Any) -> Any:
    sure = p == 1
    r = np.where(sure, 0.5, p)
    return np.where(sure, impossible(k - 1.0), (k - 1.0) * np.log1p(-r) + np.log(r))


def geom_logsf(k: Any, p: Any) -> Any:
    return np.where(p == 1, -np.inf, k * np.log1p(-np.where(p == 1, 0.5, p)))


GEOM = Mass(
    logpmf=geom_logpmf,
    pmf=lambda k, p: np.power(1.0 - p, k - 1.0) * p,
    cdf=lambda k, p: np.where(p == 1, 1.0, -np.expm1(geom_logsf(k, p))),
    sf=lambda k, p: np.exp(geom_logsf(k, p)),
    logsf=geom_logsf,
    valid=lambda p: (p > 0) & (p <= 1),
    usual=(0.5,),
    mean=lambda p: 1.0 / p,
    var=lambda p: (1.0 - p) / p / p,
    first=1.0,
)


@stands_for("scipy.stats.geom")
def geom(p: Any, loc: Any = 0) -> Any:
    return Discrete(GEOM, (p,), loc)


def nbinom_logpmf(k: Any, n: Any, p: Any) -> Any:
    sure = p == 1
    r = np.where(sure, 0.5, p)
    value = log_beta_density(r, 1.0 - r, n, k + 1.0, 0.0, 1.0) - np.log(n + k)
    return np.where(sure, impossible(k) + n * np.where(sure, p - 1.0, 0.0), value)


def nbinom_pmf(k: Any, n: Any, p: Any) -> Any:
    sure = p == 1
    r = np.where(sure, p, 1.0)
    ways = np.exp(-log_beta(n, k + 1.0)) / (n + k)
    powers = ways * np.power(r, n) * np.power(1.0 - r, k)
    return np.where(sure, powers, np.exp(nbinom_logpmf(k, n, np.where(sure, 0.5, p))))


NBINOM = Mass(
    logpmf=nbinom_logpmf,
    pmf=nbinom_pmf,
    cdf=lambda k, n, p: special.betainc(n, k + 1.0, p),
    sf=lambda k, n, p: special.betaincc(n, k + 1.0, p),
    valid=lambda n, p: (n > 0) & (p > 0) & (p <= 1),
    usual=(1.0, 0.5),
    mean=lambda n, p: n * (1.0 - p) / p,
    var=lambda n, p: n * (1.0 - p) / p / p,
)


@stands_for("scipy.stats.nbinom")
def nbinom(n: Any, p: Any, loc: Any = 0) -> Any:
    return Discrete(NBINOM, (n, p), loc)
