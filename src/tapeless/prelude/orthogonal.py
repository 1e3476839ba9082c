"""Orthogonal polynomials of scipy.special, by their recurrences. The degree is a whole number, the same for all points."""

from __future__ import annotations

from typing import Any

import numpy as np

from tapeless.prelude.registry import stands_for


@stands_for("scipy.special.eval_legendre")
def eval_legendre(n: int, x: Any) -> Any:
    y = np.asarray(x, dtype=np.float64)
    before, now = 0.0 * y, 0.0 * y + 1.0
    for k in range(n if n >= 0 else -n - 1):
        before, now = now, ((2 * k + 1) * y * now - k * before) / (k + 1)
    return now


@stands_for("scipy.special.eval_chebyt")
def eval_chebyt(n: int, x: Any) -> Any:
    y = np.asarray(x, dtype=np.float64)
    before, now = y, 0.0 * y + 1.0
    for _ in range(n if n >= 0 else -n):
        before, now = now, 2.0 * y * now - before
    return now


@stands_for("scipy.special.eval_chebyu")
def eval_chebyu(n: int, x: Any) -> Any:
    y = np.asarray(x, dtype=np.float64)
    before, now = 0.0 * y, 0.0 * y + 1.0
    for _ in range(n if n >= 0 else -n - 2):
        before, now = now, 2.0 * y * now - before
    if n == -1:
        now = 0.0 * y
    elif n < -1:
        now = -now
    return now


@stands_for("scipy.special.eval_hermite")
def eval_hermite(n: int, x: Any) -> Any:
    y = np.asarray(x, dtype=np.float64)
    before, now = 0.0 * y, 0.0 * y + 1.0
    for k in range(n):
        before, now = now, 2.0 * (y * now - k * before)
    return np.where(n < 0, np.nan, now)


@stands_for("scipy.special.eval_hermitenorm")
def eval_hermitenorm(n: int, x: Any) -> Any:
    y = np.asarray(x, dtype=np.float64)
    before, now = 0.0 * y, 0.0 * y + 1.0
    for k in range(n):
        before, now = now, y * now - k * before
    return np.where(n < 0, np.nan, now)


@stands_for("scipy.special.eval_laguerre")
def eval_laguerre(n: int, x: Any) -> Any:
    y = np.asarray(x, dtype=np.float64)
    before, now = 0.0 * y, 0.0 * y + 1.0
    for k in range(n):
        before, now = now, ((2 * k + 1 - y) * now - k * before) / (k + 1)
    return np.where(n < 0, 0.0, now)
