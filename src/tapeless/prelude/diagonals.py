"""Traces, matrices with a given diagonal, and the positions of diagonals and triangles."""

from __future__ import annotations

from typing import Any

import numpy as np

from tapeless.prelude.registry import refuse, stands_for


@stands_for("np.trace")
def trace(a: Any, offset: Any = 0, axis1: Any = 0, axis2: Any = 1, dtype: Any = None) -> Any:
    return np.sum(np.diagonal(a, offset, axis1, axis2), axis=-1, dtype=dtype)


@stands_for("np.linalg.trace")
def linalg_trace(x: Any, /, *, offset: Any = 0, dtype: Any = None) -> Any:
    return np.sum(np.diagonal(x, offset, -2, -1), axis=-1, dtype=dtype)


@stands_for("np.linalg.diagonal")
def linalg_diagonal(x: Any, /, *, offset: Any = 0) -> Any:
    return np.diagonal(x, offset, -2, -1)


@stands_for("np.diagflat")
def diagflat(v: Any, k: Any = 0) -> Any:
    return np.diag(np.ravel(v), k)


# -- positions


@stands_for("np.diag_indices")
def diag_indices(n: Any, ndim: Any = 2) -> Any:
    where = np.arange(n)
    return tuple([where for _ in range(ndim)])


@stands_for("np.diag_indices_from")
def diag_indices_from(arr: Any) -> Any:
    if arr.ndim < 2:
        raise ValueError("input array must be at least 2-d")
    for k in tuple(range(arr.ndim)):
        if arr.shape[k] != arr.shape[0]:
            raise ValueError("All dimensions of input must be of equal length")
    return np.diag_indices(arr.shape[0], arr.ndim)


@stands_for("np.tril_indices")
def tril_indices(n: Any, k: Any = 0, m: Any = None) -> Any:
    """Row i has the first i + k + 1 columns, as far as there are so many."""
    width = n if m is None else m
    total = 0
    for i in range(n):
        total += min(max(i + k + 1, 0), width)
    rows, columns = np.zeros(total, dtype=np.int64), np.zeros(total, dtype=np.int64)
    at = 0
    for i in range(n):
        for j in range(min(max(i + k + 1, 0), width)):
            rows[at] = i
            columns[at] = j
            at += 1
    return rows, columns


@stands_for("np.triu_indices")
def triu_indices(n: Any, k: Any = 0, m: Any = None) -> Any:
    """Row i has the columns from i + k on."""
    width = n if m is None else m
    total = 0
    for i in range(n):
        total += width - min(max(i + k, 0), width)
    rows, columns = np.zeros(total, dtype=np.int64), np.zeros(total, dtype=np.int64)
    at = 0
    for i in range(n):
        for j in range(min(max(i + k, 0), width), width):
            rows[at] = i
            columns[at] = j
            at += 1
    return rows, columns


@stands_for("np.tril_indices_from")
def tril_indices_from(arr: Any, k: Any = 0) -> Any:
    if arr.ndim != 2:
        raise ValueError("input array must be 2-d")
    return np.tril_indices(arr.shape[0], k, arr.shape[1])


@stands_for("np.triu_indices_from")
def triu_indices_from(arr: Any, k: Any = 0) -> Any:
    if arr.ndim != 2:
        raise ValueError("input array must be 2-d")
    return np.triu_indices(arr.shape[0], k, arr.shape[1])


# -- positions of elements, by number and by axis


@stands_for("np.unravel_index")
def unravel_index(indices: Any, shape: Any, order: Any = "C") -> Any:
    sizes = shape if isinstance(shape, (tuple, list)) else (shape,)
    rest = np.asarray(indices)
    total = 1
    for n in tuple(sizes):
        total = total * n
    if np.any((rest < 0) | (rest >= total)):
        raise ValueError("index is out of bounds for array with this size")
    found: Any = []
    for k in tuple(range(len(sizes))):
        if order == "C":
            found = [rest % sizes[-1 - k], *found]
            rest = rest // sizes[-1 - k]
        elif order == "F":
            found = [*found, rest % sizes[k]]
            rest = rest // sizes[k]
        else:
            refuse("np.unravel_index: the order is 'C' or 'F'", "use one of them.")
    return tuple(found)


@stands_for("np.ravel_multi_index")
def ravel_multi_index(multi_index: Any, dims: Any, mode: Any = "raise", order: Any = "C") -> Any:
    if not isinstance(multi_index, (tuple, list)):
        refuse("np.ravel_multi_index takes a tuple of indices here", "write tuple(...) of the rows.")
    if len(multi_index) != len(dims):
        raise ValueError("parameter multi_index must be a sequence of the length of dims")
    modes = mode if isinstance(mode, (tuple, list)) else [mode for _ in dims]
    total = 0
    for k in tuple(range(len(dims))):
        at = k if order == "C" else len(dims) - 1 - k
        total = total * dims[at] + _inside(np.asarray(multi_index[at]), dims[at], modes[at])
    return total


def _inside(index: Any, n: Any, mode: Any) -> Any:
    if mode == "wrap":
        return index % n
    if mode == "clip":
        return np.clip(index, 0, n - 1)
    if mode != "raise":
        refuse("the mode is 'raise', 'wrap' or 'clip'", "use one of them.")
    if np.any((index < 0) | (index >= n)):
        raise ValueError("invalid entry in coordinates array")
    return index


@stands_for("np.ix_")
def ix_(*args: Any) -> Any:
    return tuple([_along(np.asarray(args[k]), k, len(args)) for k in range(len(args))])


def _along(index: Any, axis: int, ndim: int) -> Any:
    if index.ndim != 1:
        raise ValueError("Cross index must be 1 dimensional")
    if index.dtype.kind == "b":
        index = np.flatnonzero(index)
    return np.reshape(index, tuple([index.shape[0] if k == axis else 1 for k in range(ndim)]))


@stands_for("np.mask_indices")
def mask_indices(n: Any, mask_func: Any, k: Any = 0) -> Any:
    return np.nonzero(mask_func(np.ones((n, n), dtype=np.int64), k) != 0)
