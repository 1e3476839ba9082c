"""Functions that write into an array: np.fill_diagonal, np.copyto, np.put, np.put_along_axis."""

from __future__ import annotations

from typing import Any

import numpy as np

from tapeless.prelude.axes import place
from tapeless.prelude.registry import refuse, stands_for


@stands_for("np.fill_diagonal")
def fill_diagonal(a: Any, val: Any, wrap: Any = False) -> None:
    if a.ndim < 2:
        raise ValueError("array must be at least 2-d")
    if wrap:
        refuse("np.fill_diagonal with wrap=True cannot be compiled", "leave it out if its default is meant.")
    if a.ndim > 2:
        for k in tuple(range(1, a.ndim)):
            if a.shape[k] != a.shape[0]:
                raise ValueError("All dimensions of input must be of equal length")
    count = min([a.shape[k] for k in range(a.ndim)])
    values = np.ravel(val)
    for i in range(count):
        a[tuple([i for _ in range(a.ndim)])] = values[i % values.shape[0]]


@stands_for("np.copyto")
def copyto(dst: Any, src: Any, *, where: Any = True) -> None:
    if _width(np.asarray(src).dtype.kind) > _width(dst.dtype.kind):
        raise TypeError("Cannot cast array data according to the rule 'same_kind'")
    if isinstance(where, bool) and where:
        dst[...] = src
    else:
        dst[...] = np.where(where, np.asarray(src).astype(dst.dtype), dst)


def _width(kind: Any) -> int:
    if kind == "b":
        return 0
    if kind == "i":
        return 1
    return 2 if kind == "f" else 3


@stands_for("np.put")
def put(a: Any, ind: Any, v: Any, mode: Any = "raise") -> None:
    flat = np.ravel(a)
    places = np.ravel(ind)
    values = np.ravel(v)
    n = flat.shape[0]
    if mode == "wrap":
        places = places % n
    elif mode == "clip":
        places = np.clip(places, 0, n - 1)
    elif np.any((places < -n) | (places >= n)):
        raise IndexError("index is out of bounds for axis 0")
    if values.shape[0] > 0:
        flat[places] = np.resize(values, places.shape[0]).astype(flat.dtype)


@stands_for("np.put_along_axis")
def put_along_axis(arr: Any, indices: Any, values: Any, axis: Any = -1) -> None:
    if axis is None:
        flat = np.ravel(arr)
        flat[indices] = values
        return
    where = np.asarray(indices)
    if where.ndim != arr.ndim:
        raise ValueError("`indices` and `arr` must have the same number of dimensions")
    k = place(axis, arr.ndim)
    arr[tuple([where if j == k else _numbers(arr.shape[j], j, arr.ndim) for j in range(arr.ndim)])] = values


def _numbers(n: int, axis: int, ndim: int) -> Any:
    return np.reshape(np.arange(n), tuple([n if k == axis else 1 for k in range(ndim)]))
