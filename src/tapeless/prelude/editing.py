"""Elements put in, taken out and repeated: np.insert, np.delete, np.resize.

What stays is gathered by positions that are made at run time, as sizes are.
"""

from __future__ import annotations

from typing import Any

import numpy as np

from tapeless.prelude.axes import cut, place, size_of
from tapeless.prelude.registry import refuse, stands_for


@stands_for("np.resize")
def resize(a: Any, new_shape: Any) -> Any:
    flat = np.ravel(a)
    shape = new_shape if isinstance(new_shape, (tuple, list)) else (new_shape,)
    for n in tuple(shape):
        if n < 0:
            raise ValueError("all elements of `new_shape` must be non-negative")
    ended = np.concatenate([flat, np.zeros(1, dtype=flat.dtype)])  # NumPy repeats zeros where there is nothing else
    return np.reshape(ended[np.arange(size_of(shape)) % max(flat.shape[0], 1)], tuple(shape))


def repeat_each(a: Any, counts: Any, axis: Any) -> Any:
    """np.repeat with a count for each part along the axis, or one in a list."""
    if counts.ndim > 1:
        raise ValueError("object too deep for desired array")
    if counts.shape[0] != a.shape[axis] and counts.shape[0] != 1:
        raise ValueError("operands could not be broadcast together")
    if np.any(counts < 0):
        raise ValueError("repeats may not contain negative values.")
    ends = np.cumsum(counts + np.zeros(a.shape[axis], dtype=np.int64))
    return np.take(a, np.searchsorted(ends, np.arange(np.max(ends, initial=0)), side="right"), axis=axis)


@stands_for("np.insert")
def insert(arr: Any, obj: Any, values: Any, axis: Any = None) -> Any:
    a = np.ravel(arr) if axis is None else np.asarray(arr)
    k = place(0 if axis is None else axis, a.ndim)
    n = a.shape[k]
    new = np.asarray(values).astype(a.dtype)
    if new.ndim > a.ndim:
        refuse("np.insert: the values have more dimensions than the array", "give them as a part of it.")
    new = np.reshape(new, (*[1 for _ in range(a.ndim - new.ndim)], *new.shape))
    if isinstance(obj, slice):
        obj = np.arange(n)[obj]
    if np.asarray(obj).dtype.kind != "i":
        refuse("np.insert takes integers as positions", "write them as a list.")
    if np.ndim(obj) == 0:
        new = np.moveaxis(new, 0, k)
    if np.ndim(obj) == 0 or (isinstance(obj, (tuple, list)) and len(obj) == 1):
        at = obj if np.ndim(obj) == 0 else obj[0]
        if at < -n or at > n:
            raise IndexError("index is out of bounds for axis")
        at = at + n if at < 0 else at
        part = np.broadcast_to(new, tuple([new.shape[k] if j == k else a.shape[j] for j in range(a.ndim)]))
        return np.concatenate([a[cut(a.ndim, k, slice(0, at))], part, a[cut(a.ndim, k, slice(at, None))]], axis=k)
    where = np.asarray(obj)
    count = where.shape[0]
    if np.any((where < -n) | (where > n)):
        raise IndexError("index is out of bounds for axis")
    where = np.where(where < 0, where + n, where)
    part = np.broadcast_to(new, tuple([count if j == k else a.shape[j] for j in range(a.ndim)]))
    return np.take(np.concatenate([a, part], axis=k), _mixed(n, where), axis=k)


def _mixed(n: int, where: Any) -> Any:
    """The order of n old elements, followed by new ones which stand before the old ones `where`."""
    count = where.shape[0]
    order = np.argsort(where)
    positions = np.zeros(n + count, dtype=np.int64)
    old = 0
    used = 0
    for p in range(n + count):
        if used < count and where[order[min(used, count - 1)]] + used == p:
            positions[p] = n + order[used]
            used += 1
        else:
            positions[p] = old
            old += 1
    return positions


@stands_for("np.delete")
def delete(arr: Any, obj: Any, axis: Any = None) -> Any:
    a = np.ravel(arr) if axis is None else np.asarray(arr)
    k = place(0 if axis is None else axis, a.ndim)
    n = a.shape[k]
    if isinstance(obj, slice):
        numbers = np.arange(n)[obj]
        return np.take(a, _left(n, numbers), axis=k)
    where = np.asarray(obj)
    if where.dtype.kind == "b":
        if where.ndim != 1:
            refuse("np.delete takes a vector of bools", "use np.where, which keeps the shape.")
        if where.shape[0] != n:
            raise ValueError("boolean array argument obj to delete must be one dimensional and match the axis length")
        return np.take(a, _unmarked(where), axis=k)
    if where.dtype.kind != "i":
        refuse("np.delete takes integers or bools", "write the positions as a list of integers.")
    if where.ndim == 0:
        if where < -n or where >= n:
            raise IndexError("index is out of bounds for axis")
        at = where + n if where < 0 else where
        parts = [a[cut(a.ndim, k, slice(0, at))], a[cut(a.ndim, k, slice(at + 1, None))]]
        return np.concatenate(parts, axis=k)
    return np.take(a, _left(n, np.ravel(where)), axis=k)


def _left(n: int, gone: Any) -> Any:
    """The numbers below n without these."""
    marked = np.zeros(n, dtype=bool)
    for i in range(gone.shape[0]):
        if gone[i] < -n or gone[i] >= n:
            raise IndexError("index is out of bounds for axis")
        marked[gone[i]] = True
    return _unmarked(marked)


def _unmarked(marked: Any) -> Any:
    n = marked.shape[0]
    count = np.sum(~marked)
    positions = np.zeros(count, dtype=np.int64)
    used = 0
    for i in range(n):
        if not marked[i]:
            positions[used] = i
            used += 1
    return positions
