"""Methods of ufuncs that go along an axis step by step: `reduce`, `accumulate`, `reduceat`.

Take the ufunc as their first argument. Operations whose order is free have sweeps instead, in `frontend/numpy/ufuncs.py`.
"""

from __future__ import annotations

from typing import Any

import numpy as np

from tapeless.prelude.axes import kept, place
from tapeless.prelude.registry import refuse


def _kind(ufunc: Any, a: Any) -> Any:
    """The element type of results, in which NumPy counts in 64 bits."""
    one = np.ones(1, dtype=a.dtype)
    kind = ufunc(one, one).dtype
    if (ufunc is np.add or ufunc is np.multiply) and (kind.kind == "i" or kind.kind == "b"):
        return np.dtype(np.int64)
    return kind


def reduced(ufunc: Any, array: Any, axis: Any = 0, keepdims: Any = False) -> Any:
    a = np.asarray(array)
    if isinstance(axis, (tuple, list)):
        refuse("this reduction goes along one axis", "take one axis after another.")
    if axis is None and a.ndim > 1:
        raise ValueError("reduction operation is not reorderable, so at most one axis may be specified")
    k = place(0 if axis is None else axis, a.ndim)
    rows = np.moveaxis(a, k, 0)
    kind = _kind(ufunc, a)
    if rows.shape[0] == 0:
        raise ValueError("zero-size array to reduction operation which has no identity")
    result = rows[0].astype(kind)
    for i in range(1, rows.shape[0]):
        result = ufunc(result, rows[i].astype(kind))
    return kept(result, k, a.ndim) if keepdims else result


def accumulated(ufunc: Any, array: Any, axis: Any = 0) -> Any:
    a = np.asarray(array)
    if a.ndim == 0:
        raise TypeError("cannot accumulate on a scalar")
    k = place(axis, a.ndim)
    rows = np.moveaxis(a, k, 0)
    results = rows.astype(_kind(ufunc, a))
    for i in range(1, rows.shape[0]):
        results[i] = ufunc(results[i - 1], results[i])
    return np.moveaxis(results, 0, k)


def reduced_at(ufunc: Any, array: Any, indices: Any, axis: Any = 0) -> Any:
    a, places = np.asarray(array), np.asarray(indices)
    k = place(axis, a.ndim)
    rows = np.moveaxis(a, k, 0)
    n, count = rows.shape[0], places.shape[0]
    if np.any((places < 0) | (places >= n)):
        raise IndexError("index out-of-bounds in reduceat")
    kind = _kind(ufunc, a)
    results = np.zeros((count, *rows.shape[1:]), dtype=kind)
    for i in range(count):
        stop = int(places[i + 1]) if i + 1 < count else n
        total = rows[places[i]].astype(kind)
        for j in range(int(places[i]) + 1, stop):
            total = ufunc(total, rows[j].astype(kind))
        results[i] = total
    return np.moveaxis(results, 0, k)
