"""Variances that leave out NaN, covariances and correlations."""

from __future__ import annotations

from typing import Any

import numpy as np

from tapeless.prelude import chosen
from tapeless.prelude.registry import refuse, stands_for


@stands_for("np.nanvar")
def nanvar(
    a: Any, axis: Any = None, dtype: Any = None, *, ddof: Any = 0, keepdims: Any = False, where: Any = True
) -> Any:
    return chosen.nanvar(a, axis, dtype, ddof, keepdims, where)


@stands_for("np.nanstd")
def nanstd(
    a: Any, axis: Any = None, dtype: Any = None, *, ddof: Any = 0, keepdims: Any = False, where: Any = True
) -> Any:
    return chosen.root(chosen.nanvar(a, axis, dtype, ddof, keepdims, where))


@stands_for("np.cov")
def cov(
    m: Any, y: Any = None, rowvar: Any = True, bias: Any = False, ddof: Any = None, fweights: Any = None,
    aweights: Any = None, *, dtype: Any = None,
) -> Any:  # fmt: skip
    x = _variables(m, rowvar)
    if y is not None:
        x = np.concatenate([x, _variables(y, rowvar)])
    if dtype is not None:
        x = x.astype(dtype)
    elif x.dtype == np.float32 or x.dtype.kind == "i" or x.dtype.kind == "b":
        x = x.astype(float)
    elif x.dtype == np.complex64:
        x = x.astype(complex)
    if ddof is None:
        ddof = 0 if bias else 1
    weights = None
    if fweights is not None:
        weights = np.asarray(fweights) * 1.0
    if aweights is not None:
        weights = np.asarray(aweights) * (1.0 if weights is None else weights)
    if weights is None:
        free = x.shape[1] - ddof + 0.0
        away = x - np.mean(x, axis=1, keepdims=True)
        other = away
    else:
        if weights.ndim != 1:
            refuse("np.cov takes vectors of weights", "give one weight for each observation.")
        if np.any(weights < 0):
            raise ValueError("weights cannot be negative")
        total = np.sum(weights)
        free = total - ddof * (1 if aweights is None else np.sum(weights * np.asarray(aweights)) / total)
        away = x - np.sum(x * weights, axis=1, keepdims=True) / total
        other = away * weights
    products = np.dot(away, np.conj(other).T)
    found = products * np.divide(1.0, np.maximum(free, 0.0)).astype(products.dtype)
    if y is None and np.ndim(m) < 2:
        return found[0, 0]
    return np.squeeze(found)


def _variables(m: Any, rowvar: Any) -> Any:
    x = np.asarray(m)
    if x.ndim > 2:
        refuse("np.cov takes vectors and matrices", "reshape it.")
    if x.ndim == 2 and not rowvar:
        if x.shape[0] == 1:
            raise ValueError("np.cov of one row with rowvar=False: give the vector of it")
        return x.T
    return np.atleast_2d(x)


@stands_for("np.corrcoef")
def corrcoef(x: Any, y: Any = None, rowvar: Any = True, *, dtype: Any = None) -> Any:
    found = np.cov(x, y, rowvar, dtype=dtype)
    if np.ndim(found) == 0:
        return found / found
    width = np.sqrt(np.diag(found).real)
    found = found / width[:, None] / width
    if found.dtype.kind == "c":
        return np.clip(found.real, -1, 1) + 1j * np.clip(found.imag, -1, 1)
    return np.clip(found, -1, 1)
