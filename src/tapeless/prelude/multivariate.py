"""Multivariate distributions of scipy.stats with their arguments."""

from __future__ import annotations

from dataclasses import dataclass
from typing import Any

import numpy as np
from scipy import special

from tapeless.prelude.distributions import double
from tapeless.prelude.intrinsics import solve_lower
from tapeless.prelude.registry import refuse, stands_for
from tapeless.prelude.saddle import LOG_2PI


def times_log(x: Any, y: Any) -> Any:
    """x log(y) for y >= 0; its slopes count as 0 where y is 0."""
    some = y > 0
    at_zero = np.where(x > 0, -np.inf, np.where(x < 0, np.inf, 0.0))
    return np.where(some, x * np.log(np.where(some, y, 1.0)), at_zero)


# -- normal


@dataclass(frozen=True)
class MultivariateNormal:
    mean: Any
    cov: Any

    def logpdf(self, x: Any) -> Any:
        mean, cov, points = self.mean, double(self.cov), double(x)
        if mean is None:
            mean = np.zeros(1 if np.ndim(cov) < 2 else np.shape(cov)[0])
        mean = np.atleast_1d(double(mean))
        if np.ndim(points) == 0 or (np.ndim(points) == 1 and np.ndim(np.squeeze(mean)) == 0):
            points = points[..., None]
        if np.ndim(cov) < 2:
            return _of_variances(points, mean, cov)
        return _of_matrix(points, mean, cov)

    def pdf(self, x: Any) -> Any:
        return np.exp(self.logpdf(x))


def _of_variances(x: Any, mean: Any, cov: Any) -> Any:
    variances = cov + np.zeros(np.shape(mean)[0])
    if np.any(variances <= 0):
        raise ValueError("The input matrix must be symmetric positive semidefinite.")
    terms = LOG_2PI + np.log(variances) + (x - mean) ** 2 / variances
    return np.squeeze(-0.5 * np.sum(terms, axis=-1))


def _of_matrix(x: Any, mean: Any, cov: Any) -> Any:
    if np.shape(mean)[0] != np.shape(cov)[0]:
        raise ValueError("Dimension mismatch: 'mean' must have as many entries as 'cov' has rows")
    root = np.linalg.cholesky(cov)
    away = x - mean
    size = np.shape(root)[0]
    flat = solve_lower(root, np.reshape(away, (-1, size)).T)
    distances = np.reshape(np.sum(flat * flat, axis=0), np.shape(away)[:-1])
    return np.squeeze(-0.5 * (size * LOG_2PI + distances) - np.sum(np.log(np.diag(root))))


@stands_for("scipy.stats.multivariate_normal")
def multivariate_normal(mean: Any = None, cov: Any = 1, allow_singular: Any = False) -> Any:
    if allow_singular:
        refuse("scipy.stats.multivariate_normal of singular matrices cannot be compiled", "leave allow_singular out.")
    return MultivariateNormal(mean, 1.0 if cov is None else cov)


# -- Dirichlet


@dataclass(frozen=True)
class Dirichlet:
    alpha: Any

    def logpdf(self, x: Any) -> Any:
        alpha, part = double(self.alpha), double(x)
        k, m = np.shape(alpha)[0], np.shape(part)[0]
        if np.min(alpha) <= 0:
            raise ValueError("All parameters must be greater than 0")
        if m != k and m + 1 != k:
            raise ValueError("Vector 'x' must have either the same number of entries as, or one entry fewer than 'a'")
        rest = np.where(m == k, 1.0, 1.0 - np.sum(part, axis=0))  # the last one, where it is left out
        if np.min(part) < 0 or np.min(rest) < 0:
            raise ValueError("Each entry in 'x' must be greater than or equal to zero.")
        if m == k and np.max(np.abs(np.sum(part, axis=0) - 1.0)) > 10e-10:
            raise ValueError("The input vector 'x' must lie within the normal simplex")
        exponents = alpha[:m] - 1.0
        if np.ndim(part) > 1:
            exponents = exponents[:, None]
        if np.any((part == 0) & (exponents < 0)) or np.any((rest == 0) & (alpha[k - 1] < 1)):
            raise ValueError("Each entry in 'x' must be greater than zero if its alpha is less than one.")
        whole = np.sum(special.gammaln(alpha)) - special.gammaln(np.sum(alpha))
        value = np.sum(times_log(exponents, part), axis=0) + times_log(alpha[k - 1] - 1.0, rest)
        return np.squeeze(value - whole)

    def pdf(self, x: Any) -> Any:
        return np.exp(self.logpdf(x))


@stands_for("scipy.stats.dirichlet")
def dirichlet(alpha: Any) -> Any:
    return Dirichlet(alpha)


# -- multinomial


@dataclass(frozen=True)
class Multinomial:
    n: Any
    p: Any

    def logpmf(self, x: Any) -> Any:
        n, p, k = double(self.n), double(self.p), np.floor(double(x))
        given = np.sum(p, axis=-1)
        last = np.where(np.abs(1.0 - given) > 2.220446049250313e-15, 1.0 - np.sum(p[..., :-1], axis=-1), p[..., -1])
        p = np.concatenate([p[..., :-1], last[..., None] if np.ndim(p) > 1 else np.reshape(last, (1,))], axis=-1)
        wrong = np.any((p < 0) | (p > 1), axis=-1) | (n < 0)
        out = np.any((k != double(x)) | (k < 0), axis=-1) | (np.sum(k, axis=-1) != n)
        terms = times_log(np.maximum(k, 0.0), np.maximum(p, 0.0)) - special.gammaln(np.maximum(k, 0.0) + 1.0)
        value = special.gammaln(np.maximum(n, 0.0) + 1.0) + np.sum(terms, axis=-1)
        return np.where(wrong, np.nan, np.where(out, -np.inf, value))

    def pmf(self, x: Any) -> Any:
        return np.exp(self.logpmf(x))


@stands_for("scipy.stats.multinomial")
def multinomial(n: Any, p: Any) -> Any:
    return Multinomial(n, p)
