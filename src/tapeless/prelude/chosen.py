"""Means and variances of the elements that a mask chooses."""

from __future__ import annotations

from typing import Any

import numpy as np


def root(squares: Any) -> Any:
    """The square root of sums of squares: flat where they are 0, where its slope times theirs would be inf times 0."""
    return np.where(squares == 0, 0, np.sqrt(np.where(squares == 0, 1, squares)))


def floats(a: Any, dtype: Any) -> Any:
    x = np.asarray(a)
    if dtype is not None:
        return x.astype(dtype)
    return x if x.dtype.kind == "f" or x.dtype.kind == "c" else x.astype(float)


def mask(x: Any, where: Any) -> Any:
    chosen = np.asarray(where)
    if chosen.dtype.kind != "b":
        raise TypeError("the argument 'where' must be made of bools")
    return np.broadcast_to(chosen, x.shape)


def mean(a: Any, axis: Any, dtype: Any, keepdims: Any, where: Any) -> Any:
    x = floats(a, dtype)
    return mean_of(x, mask(x, where), axis, keepdims)


def nanmean(a: Any, axis: Any, dtype: Any, keepdims: Any, where: Any) -> Any:
    x = floats(a, dtype)
    return mean_of(x, mask(x, where) & ~np.isnan(x), axis, keepdims)


def mean_of(x: Any, there: Any, axis: Any, keepdims: Any) -> Any:
    total = np.sum(np.where(there, x, 0), axis=axis, keepdims=keepdims)
    return total / np.sum(there, axis=axis, keepdims=keepdims).astype(total.dtype)


def squares(x: Any, there: Any, axis: Any) -> Any:
    """The sum of squares of the distances from the mean, with how many they are; axes stay."""
    away = np.where(there, x - mean_of(x, there, axis, True), 0)
    parts = away.real**2 + away.imag**2 if x.dtype.kind == "c" else away**2
    return np.sum(parts, axis=axis, keepdims=True), np.sum(there, axis=axis, keepdims=True)


def var(a: Any, axis: Any, dtype: Any, ddof: Any, keepdims: Any, where: Any) -> Any:
    x = floats(a, dtype)
    total, count = squares(x, mask(x, where), axis)
    result = total / np.maximum(count - ddof, 0).astype(total.dtype)
    return result if keepdims else np.sum(result, axis=axis)


def std(a: Any, axis: Any, dtype: Any, ddof: Any, keepdims: Any, where: Any) -> Any:
    return root(var(a, axis, dtype, ddof, keepdims, where))


def nanvar(a: Any, axis: Any, dtype: Any, ddof: Any, keepdims: Any, where: Any) -> Any:
    x = floats(a, dtype)
    total, count = squares(x, mask(x, where) & ~np.isnan(x), axis)
    free = count - ddof
    some = np.maximum(free, 1).astype(total.dtype)
    result = np.where(free > 0, total / some, np.asarray(np.nan, dtype=total.dtype))
    return result if keepdims else np.sum(result, axis=axis)
