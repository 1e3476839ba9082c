"""Polynomials as vectors of coefficients, the highest power first."""

from __future__ import annotations

from typing import Any

import numpy as np

from tapeless.prelude import factorisations, intrinsics
from tapeless.prelude.registry import refuse, stands_for


def _vector(p: Any) -> Any:
    if np.ndim(p) > 1:
        refuse("the coefficients of a polynomial are a vector", "use p.ravel().")
    return np.ravel(p)


@stands_for("np.polyadd")
def polyadd(a1: Any, a2: Any) -> Any:
    return _in_step(_vector(a1), _vector(a2))


@stands_for("np.polysub")
def polysub(a1: Any, a2: Any) -> Any:
    return _in_step(_vector(a1), -_vector(a2))


def _in_step(p: Any, q: Any) -> Any:
    """The sum, with the last coefficients in one place."""
    kind = np.result_type(p, q)
    n, m = p.shape[0], q.shape[0]
    size = max(n, m)
    result = np.zeros(size, dtype=kind)
    result[size - n :] += p.astype(kind)
    result[size - m :] += q.astype(kind)
    return result


@stands_for("np.polymul")
def polymul(a1: Any, a2: Any) -> Any:
    return np.convolve(_trimmed(_vector(a1)), _trimmed(_vector(a2)))


def _trimmed(p: Any) -> Any:
    """Without zeros in front."""
    k = 0
    while k < p.shape[0] - 1 and p[k] == 0:
        k += 1
    return p[k:]


@stands_for("np.polyder")
def polyder(p: Any, m: Any = 1) -> Any:
    if m < 0:
        raise ValueError("Order of derivative must be positive (see polyint)")
    result = np.asarray(p)
    for _ in tuple(range(m)):
        n = result.shape[0] - 1
        result = result[:-1] * np.arange(n, 0, -1)
    return result


@stands_for("np.polyint")
def polyint(p: Any, m: Any = 1, k: Any = None) -> Any:
    if m < 0:
        raise ValueError("Order of integral must be positive (see polyder)")
    constants = k if isinstance(k, (tuple, list)) else [0.0 if k is None else k for _ in range(m)]
    if len(constants) == 1:
        constants = [constants[0] for _ in range(m)]
    if len(constants) < m:
        raise ValueError("k must be a scalar or a rank-1 array of length 1 or >m.")
    result = np.asarray(p)
    for i in tuple(range(min(m, len(constants)))):
        result = np.concatenate([result / np.arange(result.shape[0], 0, -1), np.ravel(constants[i])])
    return result


@stands_for("np.vander")
def vander(x: Any, N: Any = None, increasing: Any = False) -> Any:
    points = np.asarray(x)
    if points.ndim != 1:
        raise ValueError("x must be a one-dimensional array or sequence.")
    kind = np.promote_types(points.dtype, int)
    n = points.shape[0]
    columns = n if N is None else N
    ones = np.ones((n, 1), dtype=kind)
    factors = np.broadcast_to(points.astype(kind)[:, None], (n, columns))
    powers = np.cumprod(np.concatenate([ones, factors], axis=1), axis=1)[:, :columns]
    return powers if increasing else powers[:, ::-1].copy()


@stands_for("np.polyfit")
def polyfit(x: Any, y: Any, deg: Any, rcond: Any = None, *, w: Any = None) -> Any:
    """Least squares by QR of the powers, each over its length."""
    at, values = np.asarray(x) + 0.0, np.asarray(y) + 0.0
    if deg < 0:
        raise ValueError("expected deg >= 0")
    if at.ndim != 1:
        raise TypeError("expected 1D vector for x")
    if at.shape[0] == 0:
        raise TypeError("expected non-empty vector for x")
    if values.ndim < 1 or values.ndim > 2:
        raise TypeError("expected 1D or 2D array for y")
    if values.shape[0] != at.shape[0]:
        raise TypeError("expected x and y to have same length")
    powers = np.vander(at, max(deg + 1, 1))
    rest = values if values.ndim == 2 else values[:, None]
    if w is not None:
        factors = np.asarray(w) + 0.0
        if factors.ndim != 1:
            raise TypeError("expected a 1-d array for weights")
        if factors.shape[0] != at.shape[0]:
            raise TypeError("expected w and y to have the same length")
        powers, rest = powers * factors[:, None], rest * factors[:, None]
    least = at.shape[0] * 2.220446049250313e-16 if rcond is None else rcond
    found = _least_squares(powers, rest, least)
    return found if values.ndim == 2 else found[:, 0]


def _least_squares(matrix: Any, right: Any, least: Any) -> Any:
    if matrix.shape[0] < matrix.shape[1]:
        raise ValueError("np.polyfit: the polynomial is not determined by the points; take a lower degree")
    scale = np.sqrt(np.sum(matrix * matrix, axis=0))
    scale = np.where(scale == 0, 1.0, scale)
    q, r = factorisations.qr(matrix / scale)
    if np.any(np.abs(np.diagonal(r)) <= least):
        raise ValueError("np.polyfit: the polynomial is not determined by the points; take a lower degree")
    return intrinsics.solve_upper(r, q.T @ right) / scale[:, None]
