"""Powers over factorials, as densities have them, without the digits that differences of their logarithms lose.

Relies on C. Loader, "Fast and accurate computation of binomial probabilities" (2000), where numbers are large: Stirling's
formula, what it leaves, and how far a count is from the expected one. Slopes keep their digits likewise.
"""

from __future__ import annotations

import math
from typing import Any

import numpy as np
from scipy import special

LOG_2 = math.log(2.0)
LOG_2PI = math.log(2.0 * math.pi)
LARGE = 10.0


def stirling_rest(n: Any) -> Any:
    """log gamma(n) - (n - 1/2) log n + n - log(2 pi) / 2, for n >= LARGE."""
    z = 1.0 / (n * n)
    series = 1 / 1680 - z * (1 / 1188 - z * (691 / 360360 - z / 156))
    return (1 / 12 - z * (1 / 360 - z * (1 / 1260 - z * series))) / n


def deviance(x: Any, m: Any) -> Any:
    """x log(x / m) + m - x, for x >= LARGE and m > 0."""
    v = (x - m) / (x + m)
    near = np.abs(v) < 0.1
    w = np.where(near, v, 0.0)
    z = w * w
    series = 1 / 3 + z * (1 / 5 + z * (1 / 7 + z * (1 / 9 + z * (1 / 11 + z * (1 / 13 + z / 15)))))
    tiny = m < 1e-250  # where the quotient may be 0
    log = np.log(np.where(tiny, m * 2.0**100, m) / x) - np.where(tiny, 100.0 * LOG_2, 0.0)
    return np.where(near, (x - m) * w + 2.0 * x * w * z * series, m - x - x * log)


def log_gamma_density(x: Any, a: Any) -> Any:
    """log(x^(a - 1) exp(-x) / gamma(a)), for x > 0 and a > 0."""
    large = a > LARGE
    b, c = np.where(large, LARGE, a), np.where(large, a, LARGE)
    usual = (b - 1.0) * np.log(x) - x - special.gammaln(b)
    return np.where(large, 0.5 * (np.log(c) - LOG_2PI) - np.log(x) - stirling_rest(c) - deviance(c, x), usual)


def log_beta(a: Any, b: Any) -> Any:
    """The logarithm of the beta function, for a > 0 and b > 0 that are not both large."""
    more, less = np.where(a > b, a, b), np.where(a > b, b, a)
    large = more > LARGE
    m = np.where(large, more, LARGE)
    n = m + less
    bent = (m - 0.5) * np.log1p(less / m) + less * np.log(n) - less + stirling_rest(n) - stirling_rest(m)
    return np.where(large, special.gammaln(less) - bent, special.betaln(np.where(large, 1.0, more), less))


def log_beta_density(p: Any, q: Any, a: Any, b: Any, i: float = 1.0, j: float = 1.0) -> Any:
    """log(p^(a - i) q^(b - j) / beta(a, b)) for p + q = 1, all above 0."""
    large = (a > LARGE) & (b > LARGE)
    c, d = np.where(large, a, LARGE), np.where(large, b, LARGE)
    n = c + d
    far = stirling_rest(n) - stirling_rest(c) - stirling_rest(d) - deviance(c, n * p) - deviance(d, n * q)
    far = far + 0.5 * (np.log(c) + np.log(d / n) - LOG_2PI) - i * np.log(p) - j * log_rest(q, p)
    e, f = np.where(large, 1.0, a), np.where(large, 1.0, b)
    return np.where(large, far, (e - i) * np.log(p) + (f - j) * log_rest(q, p) - log_beta(e, f))


def log_rest(q: Any, p: Any) -> Any:
    """log(q), where q is 1 - p and may have lost digits of p."""
    small = p < 0.5
    return np.where(small, np.log1p(-np.where(small, p, 0.0)), np.log(q))
