"""Orders of several keys, parts in order, positions of extrema among numbers that are not NaN."""

from __future__ import annotations

from typing import Any

import numpy as np

from tapeless.prelude.axes import place
from tapeless.prelude.registry import refuse, stands_for


@stands_for("np.lexsort")
def lexsort(keys: Any, axis: Any = -1) -> Any:
    if not isinstance(keys, (tuple, list)):
        refuse("np.lexsort takes a tuple of keys", "write the rows as a tuple.")
    if len(keys) == 0:
        raise TypeError("need sequence of keys with len > 0 in lexsort")
    first = np.asarray(keys[0])
    k = place(axis, first.ndim)
    order = np.argsort(first, axis=k)
    for key in keys[1:]:
        order = np.take_along_axis(
            order, np.argsort(np.take_along_axis(np.asarray(key), order, axis=k), axis=k), axis=k
        )
    return order


def complex_order(z: Any, axis: Any) -> Any:
    """np.argsort of complex numbers: real parts first, then imaginary parts; behind them those with a part that is NaN, the
    imaginary one, the real one, both.
    """
    missing = 2 * np.isnan(z.real).astype(np.int64) + np.isnan(z.imag)
    return np.lexsort((z.imag, z.real, missing), axis=axis)


def complex_sorted(z: Any, axis: Any) -> Any:
    return np.take_along_axis(z, complex_order(z, axis), axis=axis)


@stands_for("np.sort_complex")
def sort_complex(a: Any) -> Any:
    x = np.asarray(a)
    if x.dtype.kind != "c":
        refuse("np.sort_complex takes complex numbers here", "use np.sort, or .astype(complex).")
    return np.sort(x)


@stands_for("np.partition")
def partition(a: Any, kth: Any, axis: Any = -1, kind: Any = "introselect") -> Any:
    """NumPy leaves the order of the parts open: here all is in order."""
    x = np.ravel(a) if axis is None else np.asarray(a)
    _check(kth, x.shape[-1 if axis is None else axis])
    return np.sort(x, axis=-1 if axis is None else axis)


@stands_for("np.argpartition")
def argpartition(a: Any, kth: Any, axis: Any = -1, kind: Any = "introselect") -> Any:
    x = np.ravel(a) if axis is None else np.asarray(a)
    _check(kth, x.shape[-1 if axis is None else axis])
    return np.argsort(x, axis=-1 if axis is None else axis)


def _check(kth: Any, n: int) -> None:
    places = np.asarray(kth)
    if places.dtype.kind != "i":
        raise TypeError("Partition index must be integer")
    if np.any((places < -n) | (places >= n)):
        raise ValueError("kth out of bounds")


@stands_for("np.nanargmax")
def nanargmax(a: Any, axis: Any = None, *, keepdims: Any = False) -> Any:
    return np.argmax(_without_nan(np.asarray(a), -np.inf, axis), axis=axis, keepdims=keepdims)


@stands_for("np.nanargmin")
def nanargmin(a: Any, axis: Any = None, *, keepdims: Any = False) -> Any:
    return np.argmin(_without_nan(np.asarray(a), np.inf, axis), axis=axis, keepdims=keepdims)


def _without_nan(a: Any, instead: Any, axis: Any) -> Any:
    if a.dtype.kind != "f" and a.dtype.kind != "c":
        return a
    if np.any(np.all(np.isnan(a), axis=axis)):
        raise ValueError("All-NaN slice encountered")
    return np.where(np.isnan(a), instead, a)
