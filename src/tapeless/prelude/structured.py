"""Matrices that a few numbers make: scipy.linalg.toeplitz and its kin."""

from __future__ import annotations

from typing import Any

import numpy as np

from tapeless.prelude.registry import refuse, stands_for


def _vector(a: Any, name: str) -> Any:
    a = np.asarray(a)
    if a.ndim != 1:
        refuse(f"{name} takes vectors here", "use .ravel().")
    return a


@stands_for("scipy.linalg.toeplitz")
def toeplitz(c: Any, r: Any = None) -> Any:
    """The first column is c, the first row r, of which the first element does not count."""
    column = _vector(c, "scipy.linalg.toeplitz")
    row = np.conj(column) if r is None else _vector(r, "scipy.linalg.toeplitz")
    all_of_them = np.concatenate([column[::-1], row[1:]])
    n = column.shape[0]
    return all_of_them[n - 1 - np.arange(n)[:, None] + np.arange(row.shape[0])]


@stands_for("scipy.linalg.circulant")
def circulant(c: Any) -> Any:
    column = _vector(c, "scipy.linalg.circulant")
    n = column.shape[0]
    return column[(np.arange(n)[:, None] - np.arange(n)) % n]


@stands_for("scipy.linalg.hankel")
def hankel(c: Any, r: Any = None) -> Any:
    """The first column is c, the last row r, of which the first element does not count."""
    column = _vector(c, "scipy.linalg.hankel")
    row = np.zeros_like(column) if r is None else _vector(r, "scipy.linalg.hankel")
    all_of_them = np.concatenate([column, row[1:]])
    return all_of_them[np.arange(column.shape[0])[:, None] + np.arange(row.shape[0])]


@stands_for("scipy.linalg.hilbert")
def hilbert(n: Any) -> Any:
    return 1.0 / (1.0 + np.arange(n)[:, None] + np.arange(n))


@stands_for("scipy.linalg.companion")
def companion(a: Any) -> Any:
    """Its characteristic polynomial has the coefficients a, but for a factor."""
    a = _vector(a, "scipy.linalg.companion")
    n = a.shape[0] - 1
    if n < 1:
        raise ValueError("The length of `a` along the last axis must be at least 2.")
    if a[0] == 0:
        raise ValueError("The first coefficient in `a` must not be zero.")
    top = -a[1:] / (1.0 * a[0])
    return np.concatenate([top[None], np.eye(n, dtype=top.dtype)[: n - 1]])


@stands_for("scipy.linalg.leslie")
def leslie(f: Any, s: Any) -> Any:
    f, s = _vector(f, "scipy.linalg.leslie"), _vector(s, "scipy.linalg.leslie")
    if f.shape[0] != s.shape[0] + 1:
        raise ValueError("The length of s must be one less than the length of f.")
    kind = np.result_type(f.dtype, s.dtype)
    below = np.diag(s.astype(kind))
    wide = np.concatenate([below, np.zeros((s.shape[0], 1), dtype=kind)], axis=1)
    return np.concatenate([f.astype(kind)[None], wide])


@stands_for("scipy.linalg.solve_toeplitz")
def solve_toeplitz(c_or_cr: Any, b: Any, check_finite: bool = True) -> Any:
    """By the whole matrix."""
    if isinstance(c_or_cr, tuple):
        matrix = toeplitz(c_or_cr[0], c_or_cr[1])
    else:
        matrix = toeplitz(c_or_cr)
    if check_finite:
        if not (np.all(np.isfinite(matrix)) and np.all(np.isfinite(b))):
            raise ValueError("array must not contain infs or NaNs")
    return np.linalg.solve(matrix, b)
