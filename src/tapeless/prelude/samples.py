"""What scipy.stats tells of samples. NaN is passed on."""

from __future__ import annotations

from typing import Any, NamedTuple

import numpy as np
from scipy import special

from tapeless.prelude.registry import stands_for

TINY = 2.220446049250313e-16


@stands_for("scipy.stats.zscore")
def zscore(a: Any, axis: Any = 0, ddof: Any = 0) -> Any:
    a = np.asarray(a)
    mean = np.mean(a, axis=axis, keepdims=True)
    spread = np.std(a, axis=axis, ddof=ddof, keepdims=True)
    same = spread <= np.abs(TINY * mean)
    return np.where(same, np.nan, (a - mean) / np.where(same, 1.0, spread))


def _central(a: Any, axis: Any, keepdims: Any) -> Any:
    """The mean, what is left, its mean square, and where that is nothing."""
    a = np.asarray(a)
    mean = np.mean(a, axis=axis, keepdims=True)
    rest = a - mean
    square = np.mean(rest * rest, axis=axis, keepdims=keepdims)
    same = square <= (TINY * np.mean(a, axis=axis, keepdims=keepdims)) ** 2
    return rest, np.where(same, 1.0, square), same


@stands_for("scipy.stats.skew")
def skew(a: Any, axis: Any = 0, bias: Any = True, *, keepdims: Any = False) -> Any:
    rest, square, same = _central(a, axis, keepdims)
    value = np.mean(rest * rest * rest, axis=axis, keepdims=keepdims) / square**1.5
    if not bias:
        n = np.size(a) / np.size(value)
        value = np.where(n > 2, np.sqrt((n - 1.0) * n) / np.where(n > 2, n - 2.0, 1.0) * value, value)
    return np.where(same, np.nan, value)


@stands_for("scipy.stats.kurtosis")
def kurtosis(a: Any, axis: Any = 0, fisher: Any = True, bias: Any = True, *, keepdims: Any = False) -> Any:
    rest, square, same = _central(a, axis, keepdims)
    value = np.mean(rest * rest * rest * rest, axis=axis, keepdims=keepdims) / square**2
    if not bias:
        n = np.size(a) / np.size(value)
        more = ((n * n - 1.0) * value - 3.0 * (n - 1.0) ** 2) / np.where(n > 3, (n - 2.0) * (n - 3.0), 1.0) + 3.0
        value = np.where(n > 3, more, value)
    return np.where(same, np.nan, value - 3.0 if fisher else value)


@stands_for("scipy.stats.gmean")
def gmean(a: Any, axis: Any = 0, *, keepdims: Any = False) -> Any:
    return np.exp(np.mean(np.log(a), axis=axis, keepdims=keepdims))


@stands_for("scipy.stats.hmean")
def hmean(a: Any, axis: Any = 0, *, keepdims: Any = False) -> Any:
    a = np.asarray(a)
    return 1.0 / np.mean(1.0 / np.where(a < 0, np.nan, a), axis=axis, keepdims=keepdims)


class Correlation(NamedTuple):
    statistic: Any
    pvalue: Any


@stands_for("scipy.stats.pearsonr")
def pearsonr(x: Any, y: Any) -> Any:
    x, y = np.asarray(x), np.asarray(y)
    u, v = x - np.mean(x), y - np.mean(y)
    r = np.sum(u / np.sqrt(np.sum(u * u)) * (v / np.sqrt(np.sum(v * v))))
    half = np.size(x) / 2.0 - 1.0
    return Correlation(r, 2.0 * special.betainc(half, half, (1.0 - np.abs(r)) / 2.0))
