"""Medians, percentiles and quantiles, of all elements or of those that are not NaN.

The numbers of the wanted ranks are looked for, not sorted: their positions, so that slopes follow. Where NaN is left out, each lane
has ranks of its own, and is sorted as a whole; NaN comes last there.
"""

from __future__ import annotations

from typing import Any

import numpy as np

from tapeless.prelude.axes import kept, lanes
from tapeless.prelude.intrinsics import each_row, ranked
from tapeless.prelude.registry import refuse, stands_for


@stands_for("np.median")
def median(a: Any, axis: Any = None, *, keepdims: Any = False) -> Any:
    x = np.asarray(a)
    if x.ndim == 0:
        return np.mean(x)
    rows = lanes(x, axis)
    n = rows.shape[-1]
    if n == 0:
        result = np.mean(rows, axis=-1)
    else:
        result = np.mean(_at_ranks(rows, np.array([(n - 1) // 2, n // 2])), axis=-1)
    if x.dtype.kind == "f":
        result = np.where(np.any(np.isnan(rows), axis=-1), np.asarray(np.nan, dtype=x.dtype), result)
    return kept(result, axis, x.ndim) if keepdims else result


@stands_for("np.nanmedian")
def nanmedian(a: Any, axis: Any = None, *, keepdims: Any = False) -> Any:
    x = np.asarray(a)
    if x.dtype.kind != "f" or x.ndim == 0:
        return np.median(x, axis=axis, keepdims=keepdims)
    return _quantiles(x, 0.5, axis, "linear", keepdims, True, True)


@stands_for("np.percentile")
def percentile(a: Any, q: Any, axis: Any = None, *, method: Any = "linear", keepdims: Any = False) -> Any:
    return _quantiles(np.asarray(a), _hundredth(q), axis, method, keepdims, _is_weak(q), False)


@stands_for("np.nanpercentile")
def nanpercentile(a: Any, q: Any, axis: Any = None, *, method: Any = "linear", keepdims: Any = False) -> Any:
    return _quantiles(np.asarray(a), _hundredth(q), axis, method, keepdims, _is_weak(q), True)


@stands_for("np.quantile")
def quantile(a: Any, q: Any, axis: Any = None, *, method: Any = "linear", keepdims: Any = False) -> Any:
    return _quantiles(np.asarray(a), _fraction(q), axis, method, keepdims, _is_weak(q), False)


@stands_for("np.nanquantile")
def nanquantile(a: Any, q: Any, axis: Any = None, *, method: Any = "linear", keepdims: Any = False) -> Any:
    return _quantiles(np.asarray(a), _fraction(q), axis, method, keepdims, _is_weak(q), True)


def _is_weak(q: Any) -> Any:
    """Whether it is a number of Python, which does not decide about the type of the result."""
    return type(q) is float or type(q) is int


def _hundredth(q: Any) -> Any:
    part = np.asarray(q) / 100
    if np.any((part < 0) | (part > 1)):
        raise ValueError("Percentiles must be in the range [0, 100]")
    return part


def _fraction(q: Any) -> Any:
    part = np.asarray(q)
    if np.any((part < 0) | (part > 1)):
        raise ValueError("Quantiles must be in the range [0, 1]")
    return part


def _quantiles(a: Any, q: Any, axis: Any, method: Any, keepdims: Any, weak: Any, skip: Any) -> Any:
    if a.dtype.kind == "c":
        refuse("quantiles of complex numbers do not exist", "use np.abs first.")
    if np.ndim(q) > 1:
        refuse("quantiles take one number or a vector of them", "use q.ravel().")
    dims = max(a.ndim, 1)
    ordered = lanes(np.atleast_1d(a), axis)
    skip = skip and a.dtype.kind == "f"
    if skip:
        ordered = np.sort(ordered, axis=-1)
        count = np.sum(~np.isnan(ordered), axis=-1, keepdims=True)
    else:
        count = ordered.shape[-1]
    result = _interpolated(ordered, np.atleast_1d(q), count, method, weak, skip)
    if a.dtype.kind == "f" and not skip:
        result = np.where(
            np.any(np.isnan(ordered), axis=-1, keepdims=True), np.asarray(np.nan, dtype=result.dtype), result
        )
    if np.ndim(q) == 0:
        result = result[..., 0]
        return kept(result, axis, dims) if keepdims else result
    result = np.moveaxis(result, -1, 0)
    return kept(result, axis, dims, 1) if keepdims else result


def _interpolated(ordered: Any, q: Any, count: Any, method: Any, weak: Any, skip: Any) -> Any:
    """The quantiles as the last axis."""
    if method == "midpoint" and q.dtype.kind == "i":
        q = q.astype(float)
    last = (count - 1).astype(q.dtype) if skip else count - 1
    virtual = last * q
    if method == "lower" or method == "higher" or method == "nearest" or q.dtype.kind == "i":
        if method == "lower":
            virtual = np.floor(virtual)
        if method == "higher":
            virtual = np.ceil(virtual)
        if method == "nearest":
            virtual = np.rint(virtual)
        return _taken(ordered, np.maximum(virtual, 0).astype(np.int64), skip)
    low = np.maximum(np.floor(virtual), 0).astype(np.int64)
    high = np.maximum(np.minimum(low + 1, count - 1), 0)
    if method == "linear":
        part = virtual - low.astype(virtual.dtype)
    elif method == "midpoint":
        part = np.where(virtual == low, 0.0, 0.5).astype(virtual.dtype)
    else:
        refuse(
            "this method of quantiles cannot be compiled", "use 'linear', 'lower', 'higher', 'nearest' or 'midpoint'."
        )
    pairs = np.reshape(np.stack([low, high], axis=-1), (*low.shape[:-1], 2 * low.shape[-1]))  # neighbours together
    both = _taken(ordered, pairs, skip)
    before, after = both[..., ::2], both[..., 1::2]
    if weak and ordered.dtype.kind == "f":
        part = part.astype(ordered.dtype)
    far = after - before
    return np.where(part < 0.5, before + far * part, after - far * (1 - part))


def _taken(rows: Any, places: Any, skip: Any) -> Any:
    """What is at these places in order; of rows that are in order already where NaN is left out."""
    if skip:
        return np.take_along_axis(rows, places, axis=-1)
    if rows.shape[-1] == 0:
        raise IndexError("index -1 is out of bounds for axis 0 with size 0")
    return _at_ranks(rows, places)


def _at_ranks(rows: Any, ranks: Any) -> Any:
    return each_row(_of_row, rows, ranks)


def _of_row(row: Any, ranks: Any) -> Any:
    return row[ranked(row, ranks)]
