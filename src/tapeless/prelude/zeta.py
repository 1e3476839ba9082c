"""Hurwitz' zeta function and the derivatives of the digamma function."""

from __future__ import annotations

from typing import Any

import numpy as np
from scipy import special

from tapeless.prelude.registry import Ruled, refuse, stands_for

FAR = 1e8
# (2 k)! over Bernoulli's numbers B(2 k), for k from 1 on
FACTORS = (
    12.0, -720.0, 30240.0, -1209600.0, 47900160.0, -1.8924375803183791606e9, 7.47242496e10, -2.950130727918164224e12,
    1.1646782814350067249e14, -4.5979787224074726105e15, 1.8152105401943546773e17, -7.1661652561756670113e18,
)  # fmt: skip


def _hurwitz(s: Any, q: Any) -> Any:
    """The sum of 1 / (q + k)^s over k = 0, 1, ...: some terms, and Euler's and Maclaurin's formula for the rest. Below 0, q may
    be anything but whole where s is whole.
    """
    usual = (s > 1) & (s < np.inf) & ((q > 0) | ((q != np.floor(q)) & (s == np.floor(s)))) & (q <= FAR)
    x, a = np.where(usual, s, 2.0), np.where(usual, q, 1.0)
    total = a**-x
    count = 0
    while count < 9 or np.any(a <= 9):
        more = (count < 9) | (a <= 9)
        a = np.where(more, a + 1, a)
        total = total + np.where(more, a**-x, 0.0)
        count += 1
    term = a**-x
    total = total + term * a / (x - 1) - 0.5 * term
    rising = np.ones_like(total)
    factors = np.asarray(FACTORS)
    for k in range(factors.shape[0]):
        rising = rising * (x + 2 * k) * np.where(k == 0, 1.0, x + (2 * k - 1))
        term = term / a / np.where(k == 0, 1.0, a)
        total = total + rising * term / factors[k]
    return np.where(usual, total, _elsewhere(s, q))


def _elsewhere(s: Any, q: Any) -> Any:
    """Far away, at infinite s and at poles, as SciPy has it."""
    beyond = (s > 1) & (s < np.inf) & (q > FAR)
    far, some = np.where(beyond, q, 2.0), np.where(beyond, s, 2.0)
    value = np.where(beyond, (1 / (some - 1) + 1 / (2 * far)) * far ** (1 - some), np.nan)
    first = np.where(q > FAR, 0.0, np.where(q > 1, np.nan, np.where(q == 1, 1.0, np.inf)))
    value = np.where((s == np.inf) & (q == q), first, value)
    value = np.where((q <= 0) & (q == np.floor(q)) & ~(s < 1), np.inf, value)
    return np.where(s == 1, np.inf, value)


def _hurwitz_fwd(s: Any, q: Any) -> Any:
    return hurwitz(s, q), (s, q)


def _hurwitz_bwd(kept: Any, adjoint: Any) -> Any:
    """By s there is no formula: NaN."""
    s, q = kept
    return np.nan * adjoint, -s * hurwitz(s + 1, q) * adjoint


hurwitz = Ruled(_hurwitz, None, _hurwitz_fwd, _hurwitz_bwd)


@stands_for("scipy.special.zeta")
def zeta(x: Any, q: Any = None) -> Any:
    if q is None:
        refuse("scipy.special.zeta of one argument cannot be compiled", "for x > 1 it is zeta(x, 1).")
    both = np.asarray(x) * 1.0 + 0.0 * np.asarray(q)
    s = np.broadcast_to(np.asarray(x).astype(float), np.shape(both))
    return hurwitz(s, np.broadcast_to(np.asarray(q).astype(float), np.shape(both))).astype(both.dtype)


@stands_for("scipy.special.polygamma")
def polygamma(n: Any, x: Any) -> Any:
    n, x = np.asarray(n), np.asarray(x)
    higher = (-1.0) ** (n + 1) * special.gamma(n + 1.0) * zeta(n + 1, x)
    return np.where(n == 0, special.psi(x), higher)
