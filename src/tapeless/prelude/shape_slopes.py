"""Slopes of distribution functions by their shapes.

Note [Slopes by shapes]
The slope of the distribution function of a density f by a shape a is the integral, from the lower end to x, of f times a
weight: the slope of log f by a. The weight changes its sign once, and over all x the integral is 0. So it is taken over the side of
x on which the weight has one sign, and no digits are lost. In a variable u >= 0, the distance from x on a scale without ends (log t,
logit t, arsinh t), the integrand is exp of a concave function times a smooth one; it is followed until it has fallen to exp(-FALL), on panels with
nodes of Gauss and Legendre. A shape below 1 would make it fall slowly: then the slope for the next shape is taken, from which
it differs by one term of the same sign.
"""

from __future__ import annotations

from typing import Any

import numpy as np
from scipy import special

from tapeless.prelude.saddle import LARGE, log_beta, log_beta_density, log_gamma_density, log_rest

FALL = 40.0
BERNOULLI = (1 / 12, -1 / 120, 1 / 252, -1 / 240, 1 / 132, -691 / 32760, 1 / 12)  # over 2 k
PANELS, ORDER = 20, 12
_X, _W = np.polynomial.legendre.leggauss(ORDER)
NODES = tuple((k + (1 + x) / 2) / PANELS for k in range(PANELS) for x in _X.tolist())
WEIGHTS = tuple(w / 2 / PANELS for _ in range(PANELS) for w in _W.tolist())


def _reach(falls: Any, *shapes: Any) -> Any:
    """How far u must go until `falls(u, *shapes)` is below -FALL: a power of 2, and a constant to derivatives."""
    low, high = np.zeros_like(shapes[0]) - 60.0, np.zeros_like(shapes[0]) + 30.0
    for _ in range(10):
        middle = (low + high) / 2
        enough = falls(np.exp2(middle), *shapes) <= -FALL
        high, low = np.where(enough, middle, high), np.where(enough, low, middle)
    return np.exp2(high)


def _integral(falls: Any, weight: Any, *shapes: Any) -> Any:
    """Of exp(falls(u)) weight(u) over u >= 0."""
    length = _reach(falls, *shapes)
    nodes, weights = np.asarray(NODES), np.asarray(WEIGHTS)
    total = np.zeros_like(length)
    for k in range(nodes.shape[0]):
        u = length * nodes[k]
        total = total + weights[k] * np.exp(falls(u, *shapes)) * weight(u, *shapes)
    return total * length


# -- the gamma distribution


def _gamma_falls(u: Any, a: Any, x: Any, side: Any) -> Any:
    return side * a * u - x * np.expm1(side * u)


def _gamma_weight(u: Any, a: Any, x: Any, side: Any) -> Any:
    return np.log(x) + side * u - special.digamma(a)


def gamma_slope(a: Any, x: Any) -> Any:
    """Of gammainc(a, x) by a, for a > 0 and x > 0; arrays of one shape."""
    low = a < 1
    b = np.where(low, a + 1, a)
    under = np.log(x) < special.digamma(b)
    c, side = np.where(under, b, a), np.where(under, -1.0, 1.0)
    density = np.exp(log_gamma_density(x, c))
    found = -side * x * density * _integral(_gamma_falls, _gamma_weight, c, x, side)
    return found + np.where(under & low, density * (np.log(x) - special.digamma(c)), 0.0)


# -- the beta distribution


def digammas(a: Any, b: Any) -> Any:
    """digamma(a + b) - digamma(a), with all digits also where b is small beside a."""
    near = a < LARGE
    c = np.where(near, a + 10, a)
    ratio = np.log1p(b / c)
    found, power = ratio + b / (2 * c * (c + b)), 1 / (c * c)
    factors = np.asarray(BERNOULLI)
    for k in range(factors.shape[0]):
        found = found - factors[k] * power * np.expm1(-2 * (k + 1) * ratio)
        power = power / (c * c)
    low = np.where(near, a, 1.0)
    steps = np.zeros_like(found)
    for k in range(10):
        steps = steps + b / ((low + k) * (low + k + b))
    return found + np.where(near, steps, 0.0)


def _log_mixture(x: Any, y: Any, u: Any) -> Any:
    """log(x + y exp(u)) for x + y = 1."""
    small = y * np.expm1(u)
    near = np.abs(small) < 0.5
    return np.where(near, np.log1p(np.where(near, small, 0.0)), np.log(np.where(near, 1.0, x + y * np.exp(u))))


def _beta_falls(u: Any, a: Any, b: Any, x: Any, y: Any, side: Any) -> Any:
    return -a * _log_mixture(x, y, -side * u) - b * _log_mixture(y, x, side * u)


def _beta_weight(u: Any, a: Any, b: Any, x: Any, y: Any, side: Any) -> Any:
    return log_rest(x, y) - _log_mixture(x, y, -side * u) + digammas(a, b)


def beta_slope(a: Any, b: Any, x: Any, y: Any) -> Any:
    """Of betainc(a, b, x) by a, for a, b, x, y > 0 and x + y = 1; arrays of one shape."""
    c = np.where(a < 1, a + 1, a)
    under = log_rest(x, y) < -digammas(c, b)
    low, thin = under & (a < 1), ~under & (b < 1)
    c, d, side = np.where(low, a + 1, a), np.where(thin, b + 1, b), np.where(under, -1.0, 1.0)
    density = np.exp(log_beta_density(x, y, c, d, 0.0, 0.0))
    found = -side * density * _integral(_beta_falls, _beta_weight, c, d, x, y, side)
    weight = log_rest(x, y) + digammas(c, d)
    found = found + np.where(low, density / (x * (a + b)) * (weight - 1 / (a + b)), 0.0)
    return found - np.where(thin, density / (y * (a + b)) * (weight - 1 / (a + b)), 0.0)


# -- Student's distribution


def _log_cosh(r: Any) -> Any:
    return r + np.log1p(np.expm1(-2 * r) / 2)


def _student_falls(u: Any, v: Any, r: Any) -> Any:
    return v * (_log_cosh(r) - _log_cosh(r + u))


def _student_weight(v: Any, r: Any) -> Any:
    """The slope of the logarithm of the density by v at sqrt(v) sinh(r), in parts that are small together for large v."""
    w = np.tanh(r) ** 2
    near = w < 0.1
    z = np.where(near, w, 0.0)
    series = np.zeros_like(z)
    for k in range(16, 1, -1):
        series = z * series + 1 / k
    bent = np.where(near, -z * z * series, w - 2 * _log_cosh(r))
    large = v > 2 * LARGE
    x = np.where(large, v / 2, LARGE)
    y = 1 / (x * x)
    far = y * (1 / 8 - y * (1 / 64 - y * (1 / 128 - y * (17 / 2048 - y * (31 / 2048 - y * 691 / 16384)))))
    head = np.where(large, far, digammas(np.where(large, 1.0, v / 2), 0.5) - 1 / v)
    return 0.5 * (head + bent + w / v)


def student_slope(v: Any, t: Any) -> Any:
    """Of stdtr(v, t) by v, for v > 0 and finite t; arrays of one shape."""
    r = np.arcsinh(np.abs(t) / np.sqrt(v))
    under = _student_weight(v, r) > 0
    length = np.where(under, r, _reach(_student_falls, v, r))
    nodes, weights = np.asarray(NODES), np.asarray(WEIGHTS)
    total = np.zeros_like(r)
    factor = -log_beta(v / 2, np.zeros_like(v) + 0.5)
    for k in range(nodes.shape[0]):
        s = np.where(under, 0.0, r) + length * nodes[k]
        total = total + weights[k] * np.exp(factor - v * _log_cosh(s)) * _student_weight(v, s)
    return np.where(under, 1.0, -1.0) * np.sign(t) * total * length
