"""Elementary functions of scipy.special, written with others."""

from __future__ import annotations

import math
from typing import Any

import numpy as np
from scipy import special

from tapeless.prelude.registry import refuse, stands_for
from tapeless.prelude.saddle import stirling_rest

LOG_PI = math.log(math.pi)


# -- divergences and losses


@stands_for("scipy.special.rel_entr")
def rel_entr(x: Any, y: Any) -> Any:
    inside = (x > 0) & (y > 0)
    a, b = np.where(inside, x, 1.0), np.where(inside, y, 1.0)
    near = (a > 0.5 * b) & (a < 2.0 * b)
    c = np.where(near, a, b)
    value = a * np.where(near, np.log1p((c - b) / b), np.log(a) - np.log(b))
    return np.where((x == 0) & (y >= 0), 0.0, np.where(inside, value, _outside(x, y)))


@stands_for("scipy.special.kl_div")
def kl_div(x: Any, y: Any) -> Any:
    inside = (x > 0) & (y > 0)
    a, b = np.where(inside, x, 1.0), np.where(inside, y, 1.0)
    v = (a - b) / (a + b)
    near = np.abs(v) < 0.1
    w = np.where(near, v, 0.0)
    z = w * w
    series = 1 / 3 + z * (1 / 5 + z * (1 / 7 + z * (1 / 9 + z * (1 / 11 + z * (1 / 13 + z / 15)))))
    value = np.where(near, (a - b) * w + 2.0 * a * w * z * series, a * (np.log(a) - np.log(b)) - a + b)
    return np.where((x == 0) & (y >= 0), y, np.where(inside, value, _outside(x, y)))


def _outside(x: Any, y: Any) -> Any:
    return np.where(np.isnan(x), x, np.where(np.isnan(y), y, np.inf))


@stands_for("scipy.special.huber")
def huber(delta: Any, r: Any) -> Any:
    size = np.abs(r)
    value = np.where(size <= delta, 0.5 * r * r, delta * (size - 0.5 * delta))
    return np.where(delta < 0, np.inf, value)


@stands_for("scipy.special.pseudo_huber")
def pseudo_huber(delta: Any, r: Any) -> Any:
    inside = delta > 0
    d = np.where(inside, delta, 1.0)
    value = d * d * np.expm1(0.5 * np.log1p((r / d) * (r / d)))
    return np.where(inside, value, np.where(delta < 0, np.inf, 0.0 * delta))


# -- exponentials and powers


@stands_for("scipy.special.log_expit")
def log_expit(x: Any) -> Any:
    return -np.logaddexp(0.0, -x)


@stands_for("scipy.special.softplus")
def softplus(x: Any) -> Any:
    return np.logaddexp(0.0, x)


@stands_for("scipy.special.exp10")
def exp10(x: Any) -> Any:
    return np.power(10.0, x)


@stands_for("scipy.special.exprel")
def exprel(x: Any) -> Any:
    near = np.abs(x) < 0.1
    y, z = np.where(near, x, 0.0), np.where(near | (x == np.inf), 1.0, x)
    series = 1 / 720 + y * (1 / 5040 + y * (1 / 40320 + y * (1 / 362880 + y / 3628800)))
    series = 1.0 + y * (1 / 2 + y * (1 / 6 + y * (1 / 24 + y * (1 / 120 + y * series))))
    return np.where(near, series, np.where(x == np.inf, x, np.expm1(z) / z))


def log_ratio(x: Any) -> Any:
    """log(1 + x) / x."""
    near = np.abs(x) < 0.01
    y, z = np.where(near, x, 0.0), np.where(near, 1.0, x)
    series = 1 / 4 - y * (1 / 5 - y * (1 / 6 - y * (1 / 7 - y * (1 / 8 - y / 9))))
    return np.where(near, 1.0 - y * (1 / 2 - y * (1 / 3 - y * series)), np.log1p(z) / z)


def _transformed(x: Any, log: Any, lmbda: Any) -> Any:
    """(x ** lmbda - 1) / lmbda, given the logarithm of x where x is not 0."""
    up = lmbda > 0
    power = np.where(up, lmbda, 1.0)
    end = (np.power(np.where(x == 0, x, 0.0), power) - 1.0) / power
    return np.where(x == 0, np.where(up, end, np.where(lmbda <= 0, -np.inf, lmbda)), log * exprel(lmbda * log))


@stands_for("scipy.special.boxcox")
def boxcox(x: Any, lmbda: Any) -> Any:
    return _transformed(x, np.log(np.where(x == 0, 1.0, x)), lmbda)


@stands_for("scipy.special.boxcox1p")
def boxcox1p(x: Any, lmbda: Any) -> Any:
    return _transformed(x + 1.0, np.log1p(np.where(x == -1, 0.0, x)), lmbda)


@stands_for("scipy.special.inv_boxcox")
def inv_boxcox(y: Any, lmbda: Any) -> Any:
    return np.exp(y * log_ratio(lmbda * y))


@stands_for("scipy.special.inv_boxcox1p")
def inv_boxcox1p(y: Any, lmbda: Any) -> Any:
    return np.expm1(y * log_ratio(lmbda * y))


# -- angles


@stands_for("scipy.special.cosm1")
def cosm1(x: Any) -> Any:
    near = np.abs(x) < math.pi / 4.0
    return np.where(near, -2.0 * np.sin(0.5 * x) ** 2, np.cos(x) - 1.0)


@stands_for("scipy.special.radian")
def radian(d: Any, m: Any, s: Any) -> Any:
    return np.multiply((d * 60.0 + m) * 60.0 + s, math.pi / 648000.0)  # a number of NumPy's


def _turned(x: Any) -> Any:
    """Sine and cosine of an angle in degrees, exact at right angles."""
    quarters = np.rint(x / 90.0)
    angle = (x - 90.0 * quarters) * (math.pi / 180.0)
    turn = quarters - 4.0 * np.floor(quarters / 4.0)
    odd, low = (turn == 1.0) | (turn == 3.0), turn < 2.0
    s = np.where(odd, np.cos(angle), np.sin(angle))
    c = np.where(odd, np.sin(angle), np.cos(angle))
    return np.where(low, s, -s), np.where((turn == 0.0) | (turn == 3.0), c, -c)


@stands_for("scipy.special.sindg")
def sindg(x: Any) -> Any:
    return np.where(np.abs(x) > 1e14, 0.0, _turned(x)[0])


@stands_for("scipy.special.cosdg")
def cosdg(x: Any) -> Any:
    return np.where(np.abs(x) > 1e14, 0.0, _turned(x)[1])


@stands_for("scipy.special.tandg")
def tandg(x: Any) -> Any:
    s, c = _turned(x)
    return np.where(np.abs(x) > 1e14, 0.0, np.where(c == 0.0, np.inf, s / np.where(c == 0.0, 1.0, c)))


@stands_for("scipy.special.cotdg")
def cotdg(x: Any) -> Any:
    s, c = _turned(x)
    return np.where(np.abs(x) > 1e14, 0.0, np.where(s == 0.0, np.inf, c / np.where(s == 0.0, 1.0, s)))


# -- factorials


@stands_for("scipy.special.factorial")
def factorial(n: Any, exact: Any = False) -> Any:
    if exact:
        refuse("scipy.special.factorial with exact=True cannot be compiled", "use math.factorial of a number.")
    m = np.asarray(n, dtype=np.float64)
    return np.where(m < 0, 0.0, special.gamma(np.where(m < 0, 0.0, m) + 1.0))


@stands_for("scipy.special.comb")
def comb(N: Any, k: Any, *, exact: Any = False, repetition: Any = False) -> Any:
    if exact:
        refuse("scipy.special.comb with exact=True cannot be compiled", "use math.comb of numbers.")
    if repetition:
        return np.where((k == 0) & (N >= 0), 1.0, special.binom(N + k - 1.0, k))
    return np.where((k <= N) & (N >= 0) & (k >= 0), special.binom(N, k), 0.0)


def _rising(z: Any, m: Any) -> Any:
    """gamma(z + m) / gamma(z), for z and z + m above 0; by Stirling's formula where they are large."""
    end = z + m
    large = (z > 20.0) & (end > 170.0)
    a, b = np.where(large, z, 20.0), np.where(large, end, 20.0)
    log = (a - 0.5) * np.log1p((b - a) / a) + (b - a) * (np.log(b) - 1.0) + stirling_rest(b) - stirling_rest(a)
    return np.where(
        large, np.exp(log), special.gamma(np.where(large, 1.0, end)) / special.gamma(np.where(large, 1.0, z))
    )


@stands_for("scipy.special.perm")
def perm(N: Any, k: Any, exact: Any = False) -> Any:
    if exact:
        refuse("scipy.special.perm with exact=True cannot be compiled", "use math.perm of numbers.")
    inside = (k <= N) & (N >= 0) & (k >= 0)
    m = np.where(inside, k, 1.0)
    return np.where(inside, _rising(np.where(inside, N, 1.0) - m + 1.0, m), 0.0)


@stands_for("scipy.special.multigammaln")
def multigammaln(a: Any, d: int) -> Any:
    if np.any(a <= 0.5 * (d - 1)):
        raise ValueError("condition a > 0.5 * (d-1) not met")
    total = d * (d - 1) * 0.25 * LOG_PI + special.gammaln(a)
    for j in range(1, d):
        total = total + special.gammaln(a - j / 2.0)
    return total
