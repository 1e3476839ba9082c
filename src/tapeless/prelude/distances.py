"""scipy.spatial.distance: between two vectors, and between the rows of matrices.

The square root of a sum of squares is flat where vectors are equal, as `np.linalg.norm` is.
"""

from __future__ import annotations

from typing import Any

import numpy as np

from tapeless.prelude.chosen import root
from tapeless.prelude.registry import refuse, stands_for


def _vector(u: Any) -> Any:
    x = np.asarray(u)
    if x.ndim != 1:
        raise ValueError("Input vector should be 1-D.")
    if x.dtype.kind == "c":
        refuse("distances of complex vectors are not compiled", "use their real and imaginary parts.")
    return x


def _floats(u: Any) -> Any:
    x = _vector(u)
    return x if x.dtype.kind == "f" else x.astype(float)


def _weights(w: Any) -> Any:
    found = _floats(w)
    if np.any(found < 0):
        raise ValueError("Input weights should be all non-negative")
    return found


@stands_for("scipy.spatial.distance.sqeuclidean")
def sqeuclidean(u: Any, v: Any, w: Any = None) -> Any:
    away = _floats(u) - _floats(v)
    return np.dot(away, away if w is None else _weights(w) * away)


@stands_for("scipy.spatial.distance.euclidean")
def euclidean(u: Any, v: Any, w: Any = None) -> Any:
    return root(sqeuclidean(u, v, w))


@stands_for("scipy.spatial.distance.cityblock")
def cityblock(u: Any, v: Any, w: Any = None) -> Any:
    away = np.abs(_vector(u) - _vector(v))
    return np.sum(away if w is None else _weights(w) * away)


@stands_for("scipy.spatial.distance.chebyshev")
def chebyshev(u: Any, v: Any, w: Any = None) -> Any:
    away = np.abs(_vector(u) - _vector(v))
    return np.max(away if w is None else (_weights(w) > 0) * away)


@stands_for("scipy.spatial.distance.minkowski")
def minkowski(u: Any, v: Any, p: Any = 2, w: Any = None) -> Any:
    if p <= 0:
        raise ValueError("p must be greater than 0")
    away = np.abs(_floats(u) - _floats(v))
    if p == np.inf:
        return np.max(away if w is None else (_weights(w) != 0) * away)
    return _of_powers(away**p if w is None else _weights(w) * away**p, p)


def _of_powers(powers: Any, p: Any) -> Any:
    """The sum to the power 1 / p: flat where it is 0."""
    total = np.sum(powers, axis=-1)
    return np.where(total == 0, 0, np.where(total == 0, 1, total) ** (1 / p))


@stands_for("scipy.spatial.distance.cosine")
def cosine(u: Any, v: Any, w: Any = None) -> Any:
    return correlation(u, v, w, False)


@stands_for("scipy.spatial.distance.correlation")
def correlation(u: Any, v: Any, w: Any = None, centered: Any = True) -> Any:
    x, y = _floats(u), _floats(v)
    shares = None if w is None else _weights(w) / np.sum(_weights(w))
    if centered:
        x = x - (np.mean(x) if shares is None else np.dot(x, shares))
        y = y - (np.mean(y) if shares is None else np.dot(y, shares))
    wide, other = (x, y) if shares is None else (x * shares, y * shares)
    return np.clip(1.0 - np.dot(x, other) / np.sqrt(np.dot(x, wide) * np.dot(y, other)), 0.0, 2.0)


@stands_for("scipy.spatial.distance.canberra")
def canberra(u: Any, v: Any, w: Any = None) -> Any:
    x, y = _vector(u), _vector(v).astype(float)
    found = _relative(np.abs(x - y), np.abs(x) + np.abs(y))
    return np.sum(found if w is None else _weights(w) * found)


def _relative(away: Any, size: Any) -> Any:
    """Their ratio: 0 where both are 0."""
    return np.where(size == 0, 0.0, away / np.where(size == 0, 1.0, size))


@stands_for("scipy.spatial.distance.braycurtis")
def braycurtis(u: Any, v: Any, w: Any = None) -> Any:
    x, y = _vector(u), _vector(v).astype(float)
    away, size = np.abs(x - y), np.abs(x + y)
    if w is None:
        return np.sum(away) / np.sum(size)
    return np.sum(_weights(w) * away) / np.sum(_weights(w) * size)


@stands_for("scipy.spatial.distance.hamming")
def hamming(u: Any, v: Any, w: Any = None) -> Any:
    x, y = _vector(u), _vector(v)
    if x.shape[0] != y.shape[0]:
        raise ValueError("The 1d arrays must have equal lengths.")
    return np.mean(x != y) if w is None else np.dot((x != y) * 1.0, _weights(w) / np.sum(_weights(w)))


@stands_for("scipy.spatial.distance.cdist")
def cdist(XA: Any, XB: Any, metric: Any = "euclidean", *, p: Any = 2.0) -> Any:
    a, b = _rows(XA, "XA"), _rows(XB, "XB")
    if a.shape[1] != b.shape[1]:
        raise ValueError("XA and XB must have the same number of columns (i.e. feature dimension.)")
    return _between(a[:, None, :], b[None, :, :], metric, p)


@stands_for("scipy.spatial.distance.pdist")
def pdist(X: Any, metric: Any = "euclidean", *, p: Any = 2.0) -> Any:
    x = _rows(X, "X")
    n = x.shape[0]
    found = np.zeros(n * (n - 1) // 2)
    for i in range(n - 1):
        start = i * n - i * (i + 1) // 2
        found[start : start + n - 1 - i] = _between(x[i], x[i + 1 :], metric, p)
    return found


@stands_for("scipy.spatial.distance.squareform")
def squareform(X: Any, force: Any = "no", checks: Any = True) -> Any:
    x = np.asarray(X)
    if x.ndim == 1 and force.lower() != "tovector":
        n = int(np.ceil(np.sqrt(x.shape[0] * 2)))
        if n * (n - 1) != x.shape[0] * 2:
            raise ValueError(
                "Incompatible vector size. It must be a binomial coefficient n choose 2 for some integer n >= 2."
            )
        n = max(n, 1)
        above = np.zeros((n, n), dtype=x.dtype)
        above[np.triu_indices(n, 1)] = x
        return above + above.T
    if x.ndim == 2 and force.lower() != "tomatrix":
        if x.shape[0] != x.shape[1]:
            raise ValueError("The matrix argument must be square.")
        if checks and np.any(np.abs(x - x.T) > 1e-8):
            raise ValueError("Distance matrix 'X' must be symmetric.")
        if checks and np.any(np.diagonal(x) != 0):
            raise ValueError("Distance matrix 'X' diagonal must be zero.")
        return x[np.triu_indices(x.shape[0], 1)]
    raise ValueError("The first argument must be one or two dimensional array, and of the kind that is not forced.")


def _rows(X: Any, name: str) -> Any:
    x = np.asarray(X)
    if x.ndim != 2:
        refuse(f"{name} must have two dimensions, a row for each point", "use x[:, None] for points on a line.")
    if x.dtype.kind == "c":
        refuse("distances of complex vectors are not compiled", "use their real and imaginary parts.")
    return x.astype(float)


def _between(x: Any, y: Any, metric: Any, p: Any) -> Any:
    """Between vectors along the last axis."""
    if metric in ("euclidean", "euclid", "eu", "e"):
        return root(np.sum((x - y) ** 2, axis=-1))
    if metric in ("sqeuclidean", "sqe", "sqeuclid"):
        return np.sum((x - y) ** 2, axis=-1)
    if metric in ("cityblock", "cblock", "cb", "c"):
        return np.sum(np.abs(x - y), axis=-1)
    if metric in ("chebyshev", "chebychev", "cheby", "cheb", "ch"):
        return np.max(np.abs(x - y), axis=-1)
    if metric in ("minkowski", "mi", "m", "pnorm"):
        if p == np.inf:
            return np.max(np.abs(x - y), axis=-1)
        return _of_powers(np.abs(x - y) ** p, p)
    if metric in ("canberra",):
        return np.sum(_relative(np.abs(x - y), np.abs(x) + np.abs(y)), axis=-1)
    if metric in ("braycurtis",):
        return np.sum(np.abs(x - y), axis=-1) / np.sum(np.abs(x + y), axis=-1)
    if metric in ("hamming", "matching", "hamm", "ha", "h"):
        return np.mean(x != y, axis=-1)
    if metric in ("cosine", "cos"):
        return _angles(x, y)
    if metric in ("correlation", "co"):
        return _angles(x - np.mean(x, axis=-1, keepdims=True), y - np.mean(y, axis=-1, keepdims=True))
    refuse(f"the metric {metric!r} is not compiled", "write its formula with the rows of both arrays.")


def _angles(x: Any, y: Any) -> Any:
    sizes = np.sqrt(np.sum(x * x, axis=-1)) * np.sqrt(np.sum(y * y, axis=-1))
    return 1.0 - np.clip(np.sum(x * y, axis=-1) / sizes, -1.0, 1.0)
