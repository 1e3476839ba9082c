"""np.pad."""

from __future__ import annotations

from typing import Any

import numpy as np

from tapeless.prelude.axes import cut
from tapeless.prelude.registry import refuse, stands_for


@stands_for("np.pad")
def pad(
    array: Any, pad_width: Any, mode: Any = "constant", *, constant_values: Any = None, end_values: Any = None,
    stat_length: Any = None, reflect_type: Any = None,
) -> Any:  # fmt: skip
    a = np.asarray(array)
    if not isinstance(mode, str):
        refuse("np.pad takes the name of a mode, not a function", "write what it does with slices.")
    _check_keywords(mode, constant_values, end_values, stat_length, reflect_type)
    widths = _pairs(pad_width, a.ndim)
    for left, right in widths:
        if left < 0 or right < 0:
            raise ValueError("index can't contain negative values")
    if mode == "constant":
        return _constant(a, widths, 0 if constant_values is None else constant_values)
    ends = _pairs(0 if end_values is None else end_values, a.ndim)
    lengths = _pairs(stat_length, a.ndim)
    for k in tuple(range(a.ndim)):
        left, right = widths[k]
        n = a.shape[k]
        if n == 0 and (left > 0 or right > 0):
            raise ValueError("can't extend empty axis using modes other than 'constant' or 'empty'")
        if mode == "linear_ramp":
            a = _ramps(a, k, left, right, ends[k])
        elif mode == "maximum" or mode == "minimum" or mode == "mean" or mode == "median":
            a = _statistics(a, k, left, right, mode, lengths[k])
        else:
            before, after = _positions(mode, n, np.arange(-left, 0)), _positions(mode, n, np.arange(n, n + right))
            a = np.concatenate([np.take(a, before, axis=k), a, np.take(a, after, axis=k)], axis=k)
    return a


def _check_keywords(mode: Any, constant_values: Any, end_values: Any, stat_length: Any, reflect_type: Any) -> None:
    if mode == "empty":
        refuse("np.pad with mode 'empty' gives whatever stands in memory", "use mode 'constant'.")
    if reflect_type is not None and reflect_type != "even":
        refuse("np.pad: reflect_type 'odd' cannot be compiled", "subtract from twice the edge.")
    if constant_values is not None and mode != "constant":
        raise ValueError("unsupported keyword arguments for this mode: {'constant_values'}")
    if end_values is not None and mode != "linear_ramp":
        raise ValueError("unsupported keyword arguments for this mode: {'end_values'}")
    if reflect_type is not None and mode != "reflect" and mode != "symmetric":
        raise ValueError("unsupported keyword arguments for this mode: {'reflect_type'}")
    if stat_length is not None and mode not in ("maximum", "minimum", "mean", "median"):
        raise ValueError("unsupported keyword arguments for this mode: {'stat_length'}")


def _pairs(x: Any, ndim: int) -> Any:
    """One pair for each axis, of a number, a pair, or a list of those."""
    if isinstance(x, (dict, np.ndarray)):
        refuse("np.pad takes numbers and tuples of them here", "write a tuple of pairs.")
    if not isinstance(x, (tuple, list)):
        return [(x, x) for _ in range(ndim)]
    if not isinstance(x[0], (tuple, list)):
        return [_pair(x) for _ in range(ndim)]
    if len(x) != 1 and len(x) != ndim:
        refuse("np.pad takes one pair for each axis, or one for all of them", "give as many as the array has axes.")
    return [_pair(x[0 if len(x) == 1 else k]) for k in range(ndim)]


def _pair(x: Any) -> Any:
    if len(x) == 1:
        return (x[0], x[0])
    if len(x) != 2:
        refuse("np.pad takes pairs: what comes before and what comes after", "write (before, after).")
    return (x[0], x[1])


def _constant(a: Any, widths: Any, values: Any) -> Any:
    if not isinstance(values, (tuple, list)):
        padded = np.full(tuple([n[0] + a.shape[k] + n[1] for k, n in tuple(enumerate(widths))]), values, dtype=a.dtype)
        padded[tuple([slice(n[0], n[0] + a.shape[k]) for k, n in tuple(enumerate(widths))])] = a
        return padded
    pairs = _pairs(values, a.ndim)
    for k in tuple(range(a.ndim)):
        parts = [
            np.full((*a.shape[:k], widths[k][side], *a.shape[k + 1 :]), pairs[k][side], dtype=a.dtype)
            for side in (0, 1)
        ]
        a = np.concatenate([parts[0], a, parts[1]], axis=k)
    return a


def _positions(mode: Any, n: int, i: Any) -> Any:
    """Which elements of an axis stand outside of it."""
    if mode == "edge":
        return np.clip(i, 0, max(n - 1, 0))
    if mode == "wrap":
        return i % max(n, 1)
    if mode == "symmetric":
        i = i % max(2 * n, 1)
        return np.minimum(i, 2 * n - 1 - i)
    if mode == "reflect":
        i = i % max(2 * n - 2, 1)
        return np.minimum(i, abs(2 * n - 2 - i))  # one element repeats itself
    refuse("np.pad: this mode is not supported", "use 'constant', 'edge', 'reflect', 'symmetric' or 'wrap'.")


def _ramps(a: Any, axis: int, left: int, right: int, ends: Any) -> Any:
    first, last = [np.expand_dims(a[cut(a.ndim, axis, k)], axis) for k in (0, -1)]
    before, after = _ramp(first, axis, left, ends[0]), _ramp(last, axis, right, ends[1])
    return np.concatenate([before, a, np.flip(after, axis=axis)], axis=axis)


def _ramp(edge: Any, axis: int, width: int, end: Any) -> Any:
    """From `end` towards the edge, which it does not reach. NumPy computes in 64 bits."""
    steps = np.reshape(np.arange(width), tuple([width if k == axis else 1 for k in range(edge.ndim)]))
    if edge.dtype.kind != "c":
        end = float(end)
    values = end + (edge - end) * 1.0 / max(width, 1) * steps
    if edge.dtype.kind == "i":
        values = np.floor(values)
    return values.astype(edge.dtype)


def _statistics(a: Any, axis: int, left: int, right: int, mode: Any, lengths: Any) -> Any:
    n = a.shape[axis]
    first, last = [n if length is None else min(length, n) for length in lengths]
    if mode == "maximum" or mode == "minimum":
        if (first == 0 and left > 0) or (last == 0 and right > 0):
            raise ValueError("stat_length of 0 yields no value for padding")
    before = _statistic(a[cut(a.ndim, axis, slice(0, first))], axis, mode)
    after = _statistic(a[cut(a.ndim, axis, slice(n - last, None))], axis, mode)
    return np.concatenate([np.repeat(before, left, axis=axis), a, np.repeat(after, right, axis=axis)], axis=axis)


def _statistic(a: Any, axis: int, mode: Any) -> Any:
    if mode == "maximum":
        return np.max(a, axis=axis, keepdims=True)
    if mode == "minimum":
        return np.min(a, axis=axis, keepdims=True)
    value = np.mean(a, axis=axis, keepdims=True) if mode == "mean" else np.median(a, axis=axis, keepdims=True)
    return np.rint(value).astype(a.dtype) if a.dtype.kind == "i" else value
