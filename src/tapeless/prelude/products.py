"""Products of stacks of vectors and matrices, norms of them, running totals."""

from __future__ import annotations

from typing import Any

import numpy as np

from tapeless.prelude.axes import kept, lanes, place
from tapeless.prelude.registry import refuse, stands_for


@stands_for("np.vecdot")
def vecdot(x1: Any, x2: Any, /, *, axis: Any = -1) -> Any:
    return _dots(x1, x2, axis)


@stands_for("np.linalg.vecdot")
def linalg_vecdot(x1: Any, x2: Any, /, *, axis: Any = -1) -> Any:
    return _dots(x1, x2, axis)


def _dots(x1: Any, x2: Any, axis: int) -> Any:
    a, b = np.moveaxis(np.asarray(x1), axis, -1), np.moveaxis(np.asarray(x2), axis, -1)
    if a.shape[-1] != b.shape[-1]:
        raise ValueError("vecdot: Input operand 1 has a mismatch in its core dimension 0")
    kind = np.result_type(a, b)
    if kind == np.bool_:
        return np.any(a & b, axis=-1)
    if a.dtype.kind == "c":
        a = np.conj(a)
    return np.sum(a * b, axis=-1, dtype=kind)


@stands_for("np.matvec")
def matvec(x1: Any, x2: Any, /) -> Any:
    return np.matmul(x1, np.asarray(x2)[..., None])[..., 0]


@stands_for("np.vecmat")
def vecmat(x1: Any, x2: Any, /) -> Any:
    a = np.asarray(x1)
    if a.dtype.kind == "c":
        a = np.conj(a)
    return np.matmul(a[..., None, :], x2)[..., 0, :]


@stands_for("np.linalg.outer")
def linalg_outer(x1: Any, x2: Any, /) -> Any:
    if np.ndim(x1) != 1 or np.ndim(x2) != 1:
        raise ValueError("Input arrays must be one-dimensional")
    return np.outer(x1, x2)


@stands_for("np.linalg.cross")
def linalg_cross(x1: Any, x2: Any, /, *, axis: Any = -1) -> Any:
    return np.cross(x1, x2, axis=axis)


# -- norms


@stands_for("np.linalg.vector_norm")
def vector_norm(x: Any, /, *, axis: Any = None, keepdims: Any = False, ord: Any = 2) -> Any:
    a = np.asarray(x)
    if a.ndim == 0:
        return np.linalg.norm(np.ravel(a), ord=ord)
    result = np.linalg.norm(lanes(a, axis), ord=ord, axis=-1)
    return kept(result, axis, a.ndim) if keepdims else result


@stands_for("np.linalg.matrix_norm")
def matrix_norm(x: Any, /, *, keepdims: Any = False, ord: Any = "fro") -> Any:
    a = np.asarray(x)
    if a.ndim < 2:
        raise ValueError("The input array must be at least a 2-dimensional array.")
    if not np.issubdtype(a.dtype, np.inexact):
        a = a.astype(np.float64)
    if isinstance(ord, str):
        if ord != "fro":
            refuse("this norm of a matrix cannot be compiled", "use 'fro', 1 or np.inf.")
        result = np.linalg.norm(a, axis=(-2, -1))
    elif ord == 1 or ord == -1:
        result = _largest(np.sum(np.abs(a), axis=-2), ord > 0)
    elif ord == np.inf or ord == -np.inf:
        result = _largest(np.sum(np.abs(a), axis=-1), ord > 0)
    else:
        refuse("this norm of a matrix cannot be compiled", "use 'fro', 1 or np.inf.")
    return kept(result, (-2, -1), a.ndim) if keepdims else result


def _largest(sums: Any, largest: Any) -> Any:
    return np.max(sums, axis=-1) if largest else np.min(sums, axis=-1)


# -- running totals


@stands_for("np.cumulative_sum")
def cumulative_sum(x: Any, /, *, axis: Any = None, dtype: Any = None, include_initial: Any = False) -> Any:
    a, k = _one_axis(x, axis)
    totals = np.cumsum(a, axis=k, dtype=dtype)
    return _after(0, totals, k) if include_initial else totals


@stands_for("np.cumulative_prod")
def cumulative_prod(x: Any, /, *, axis: Any = None, dtype: Any = None, include_initial: Any = False) -> Any:
    a, k = _one_axis(x, axis)
    totals = np.cumprod(a, axis=k, dtype=dtype)
    return _after(1, totals, k) if include_initial else totals


def _one_axis(x: Any, axis: Any) -> Any:
    a = np.ravel(x) if np.ndim(x) == 0 else np.asarray(x)
    if axis is None and a.ndim > 1:
        raise ValueError("For arrays which have more than one dimension ``axis`` argument is required.")
    return a, place(0 if axis is None else axis, a.ndim)


def _after(first: Any, totals: Any, axis: int) -> Any:
    shape = tuple([1 if k == axis else totals.shape[k] for k in range(totals.ndim)])
    return np.concatenate([np.full(shape, first, dtype=totals.dtype), totals], axis=axis)


@stands_for("np.nancumsum")
def nancumsum(a: Any, axis: Any = None, dtype: Any = None) -> Any:
    return np.cumsum(_without_nan(np.asarray(a), 0), axis=axis, dtype=dtype)


@stands_for("np.nancumprod")
def nancumprod(a: Any, axis: Any = None, dtype: Any = None) -> Any:
    return np.cumprod(_without_nan(np.asarray(a), 1), axis=axis, dtype=dtype)


def _without_nan(a: Any, instead: Any) -> Any:
    if a.dtype.kind == "f" or a.dtype.kind == "c":
        return np.where(np.isnan(a), instead, a)
    return a
