"""Functions of the user applied to parts of arrays: np.piecewise, np.apply_along_axis, np.fromfunction, np.choose."""

from __future__ import annotations

from typing import Any

import numpy as np

from tapeless.prelude.axes import place, size_of
from tapeless.prelude.registry import refuse, stands_for


@stands_for("np.apply_along_axis")
def apply_along_axis(func1d: Any, axis: Any, arr: Any, *args: Any) -> Any:
    a = np.asarray(arr)
    k = place(axis, a.ndim)
    moved = np.moveaxis(a, k, -1)
    lead = moved.shape[:-1]
    count = size_of(lead)
    if count == 0:
        raise ValueError("Cannot apply_along_axis when any iteration dimensions are 0")
    rows = np.reshape(moved, (count, moved.shape[-1]))
    first = np.asarray(func1d(rows[0], *args))
    found = np.zeros((count, *first.shape), dtype=first.dtype)
    found[0] = first
    for i in range(1, count):
        found[i] = func1d(rows[i], *args)
    result = np.reshape(found, (*lead, *first.shape))
    made = len(lead)  # the axes of the results stand behind these
    return np.moveaxis(result, [made + j for j in range(first.ndim)], [k + j for j in range(first.ndim)])


@stands_for("np.apply_over_axes")
def apply_over_axes(func: Any, a: Any, axes: Any) -> Any:
    value = np.asarray(a)
    ndim = value.ndim
    for axis in axes if isinstance(axes, (tuple, list)) else (axes,):
        k = place(axis, ndim)
        result = func(value, k)
        value = result if np.ndim(result) == ndim else np.expand_dims(result, k)
        if np.ndim(value) != ndim:
            raise ValueError("function is not returning an array of the correct shape")
    return value


@stands_for("np.indices")
def indices(dimensions: Any, dtype: Any = int, sparse: Any = False) -> Any:
    grids = tuple([_numbers(dimensions, k, dtype) for k in range(len(dimensions))])
    if sparse:
        return grids
    return np.stack([np.broadcast_to(g, tuple(dimensions)) for g in grids])


def _numbers(shape: Any, axis: int, dtype: Any) -> Any:
    line = np.arange(shape[axis]).astype(dtype)
    return np.reshape(line, tuple([shape[k] if k == axis else 1 for k in range(len(shape))]))


@stands_for("np.fromfunction")
def fromfunction(function: Any, shape: Any, *, dtype: Any = float) -> Any:
    sizes = tuple(shape)
    return function(*[np.broadcast_to(_numbers(sizes, k, dtype), sizes).copy() for k in range(len(sizes))])


@stands_for("np.choose")
def choose(a: Any, choices: Any, *, mode: Any = "raise") -> Any:
    index = np.asarray(a)
    if not isinstance(choices, (tuple, list)):
        refuse("np.choose takes a list of arrays", "use np.take_along_axis.")
    n = len(choices)
    if mode == "wrap":
        index = index % n
    elif mode == "clip":
        index = np.clip(index, 0, n - 1)
    elif np.any((index < 0) | (index >= n)):
        raise ValueError("invalid entry in choice array")
    result = np.asarray(choices[0])
    for k in tuple(range(n)):
        result = np.where(index == k, np.asarray(choices[k]), result)
    return result


@stands_for("np.piecewise")
def piecewise(x: Any, condlist: Any, funclist: Any, *args: Any) -> Any:
    """As NumPy does it: a function gets the elements for which its condition is true, and no others."""
    value = np.asarray(x)
    conditions = [np.asarray(c) for c in condlist] if isinstance(condlist, (tuple, list)) else [np.asarray(condlist)]
    if value.ndim == 1 and conditions[0].ndim == 0:  # one condition, as a list of bools
        conditions = [np.asarray(condlist)]
    for c in conditions:
        several = isinstance(condlist, np.ndarray) and value.ndim > 1  # NumPy takes its rows
        if c.ndim != value.ndim or c.dtype.kind != "b" or several:
            refuse("np.piecewise takes conditions of the shape of x", "write a list of arrays of bools.")
    if len(funclist) == len(conditions) + 1:
        others = ~conditions[0]
        for c in conditions[1:]:
            others = others & ~c
        conditions = [*conditions, others]
    if len(funclist) != len(conditions):
        raise ValueError("with these conditions, as many functions are expected, or one more")
    flat = np.ravel(value)
    result = np.zeros(flat.shape[0], dtype=flat.dtype)
    for k in tuple(range(len(conditions))):
        where = _positions(np.ravel(conditions[k]), flat.shape[0])
        function = funclist[k]
        if isinstance(function, (bool, int, float, complex, np.number, np.bool_)):
            result[where] = function
        elif isinstance(function, (np.ndarray, tuple, list)):
            refuse("np.piecewise takes functions and numbers", "write a function that gives the array.")
        elif where.shape[0] > 0:
            result[where] = function(flat[where], *args)
    return np.reshape(result, value.shape)


def _positions(marked: Any, n: int) -> Any:
    """Those of the elements that are true."""
    if marked.shape[0] != n:
        raise ValueError("boolean index did not match indexed array")
    positions = np.zeros(np.sum(marked), dtype=np.int64)
    used = 0
    for i in range(n):
        if marked[i]:
            positions[used] = i
            used += 1
    return positions
