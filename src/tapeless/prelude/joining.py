"""Arrays put together and taken apart."""

from __future__ import annotations

from typing import Any

import numpy as np

from tapeless.prelude.axes import cut, place
from tapeless.prelude.registry import refuse, stands_for


@stands_for("np.dstack")
def dstack(tup: Any) -> Any:
    if not isinstance(tup, np.ndarray):
        return np.concatenate([np.atleast_3d(a) for a in tup], axis=2)
    if tup.ndim == 1:
        return tup[None, None, :].copy()
    if tup.ndim == 2:
        return tup.T[None].copy()
    if tup.ndim == 3:
        return np.moveaxis(tup, 0, 2).copy()
    return rows_joined(tup, 2)


@stands_for("np.atleast_3d")
def atleast_3d(a: Any) -> Any:
    if np.ndim(a) == 0:
        return np.reshape(a, (1, 1, 1))
    if np.ndim(a) == 1:
        return a[None, :, None]
    if np.ndim(a) == 2:
        return a[:, :, None]
    return a


# -- the rows of one array, which are as many as it has


def rows_joined(a: Any, axis: int) -> Any:
    """np.concatenate of the rows along an axis of theirs."""
    if a.ndim < 2:
        raise ValueError("zero-dimensional arrays cannot be concatenated")
    if a.shape[0] == 0:
        raise ValueError("need at least one array to concatenate")
    k = place(axis, a.ndim - 1)
    moved = np.moveaxis(a, 0, k)
    shape = (*moved.shape[:k], moved.shape[k] * moved.shape[k + 1], *moved.shape[k + 2 :])
    return np.reshape(moved, shape).copy()


def stack_of_rows(a: Any, axis: int) -> Any:
    if a.shape[0] == 0:
        raise ValueError("need at least one array to stack")
    return np.moveaxis(a, 0, place(axis, a.ndim)).copy()


def hstack_of_rows(a: Any) -> Any:
    if a.ndim == 1:
        return a.copy()
    return rows_joined(a, 0 if a.ndim == 2 else 1)


def vstack_of_rows(a: Any) -> Any:
    if a.ndim == 1:
        return a[:, None].copy()
    return a.copy() if a.ndim == 2 else rows_joined(a, 0)


def column_stack_of_rows(a: Any) -> Any:
    if a.ndim == 1:
        return a[None, :].copy()
    return a.T.copy() if a.ndim == 2 else rows_joined(a, 1)


# -- blocks


@stands_for("np.block")
def block(arrays: Any) -> Any:
    depth = _depth(arrays)
    if depth == 0:
        return np.array(arrays)
    return _block(arrays, depth, max(depth, _rank(arrays)))


def _depth(arrays: Any) -> Any:
    if isinstance(arrays, tuple):
        raise TypeError("np.block takes lists, not tuples")
    if not isinstance(arrays, list):
        return 0
    if len(arrays) == 0:
        raise ValueError("List at arrays cannot be empty")
    depth = _depth(arrays[0])
    for a in arrays:
        if _depth(a) != depth:
            raise ValueError("List depths are mismatched")
    return depth + 1


def _rank(arrays: Any) -> Any:
    if not isinstance(arrays, list):
        return np.ndim(arrays)
    return max([0, *[_rank(a) for a in arrays]])


def _block(arrays: Any, depth: int, ndim: int) -> Any:
    if depth == 0:
        a = np.asarray(arrays)
        return np.reshape(a, (*[1 for _ in range(ndim - a.ndim)], *a.shape))
    return np.concatenate([_block(a, depth - 1, ndim) for a in arrays], axis=-depth)


# -- parts


@stands_for("np.array_split")
def array_split(ary: Any, indices_or_sections: Any, axis: Any = 0) -> Any:
    a = np.asarray(ary)
    k = place(axis, a.ndim)
    n = a.shape[k]
    if isinstance(indices_or_sections, (tuple, list)):
        return np.split(a, indices_or_sections, k)
    count = indices_or_sections
    if isinstance(count, np.ndarray):
        refuse("np.array_split takes a number or a tuple of positions", "write the positions as a tuple.")
    if count <= 0:
        raise ValueError("number sections must be larger than 0.")
    each, more = n // count, n % count  # the first `more` parts are longer by one
    starts = [i * each + min(i, more) for i in range(count + 1)]
    return [a[cut(a.ndim, k, slice(starts[i], starts[i + 1]))] for i in range(count)]


@stands_for("np.vsplit")
def vsplit(ary: Any, indices_or_sections: Any) -> Any:
    if np.ndim(ary) < 2:
        raise ValueError("vsplit only works on arrays of 2 or more dimensions")
    return np.split(ary, indices_or_sections, 0)


@stands_for("np.hsplit")
def hsplit(ary: Any, indices_or_sections: Any) -> Any:
    if np.ndim(ary) == 0:
        raise ValueError("hsplit only works on arrays of 1 or more dimensions")
    return np.split(ary, indices_or_sections, 1 if np.ndim(ary) > 1 else 0)


@stands_for("np.dsplit")
def dsplit(ary: Any, indices_or_sections: Any) -> Any:
    if np.ndim(ary) < 3:
        raise ValueError("dsplit only works on arrays of 3 or more dimensions")
    return np.split(ary, indices_or_sections, 2)


# -- axes


@stands_for("np.rot90")
def rot90(m: Any, k: Any = 1, axes: Any = (0, 1)) -> Any:
    a = np.asarray(m)
    first, second = place(axes[0], a.ndim), place(axes[1], a.ndim)
    if first == second:
        raise ValueError("Axes must be different.")
    turns = k % 4
    if turns == 0:
        return a[:]
    if turns == 2:
        return np.flip(a, (first, second))
    if turns == 1:
        return np.swapaxes(np.flip(a, second), first, second)
    return np.flip(np.swapaxes(a, first, second), second)


@stands_for("np.rollaxis")
def rollaxis(a: Any, axis: Any, start: Any = 0) -> Any:
    ndim = np.ndim(a)
    k = place(axis, ndim)
    if start < -ndim or start > ndim:
        refuse("np.rollaxis: the start is out of bounds for the dimensions of the array", "give one of its axes.")
    to = start + ndim if start < 0 else start
    return np.moveaxis(a, k, to - 1 if k < to else to)


@stands_for("np.matrix_transpose", "np.linalg.matrix_transpose")
def matrix_transpose(x: Any, /) -> Any:
    if np.ndim(x) < 2:
        raise ValueError("Input array must be at least 2-dimensional")
    return np.swapaxes(x, -1, -2)


@stands_for("np.broadcast_arrays")
def broadcast_arrays(*args: Any) -> Any:
    ndim = max([0, *[np.ndim(a) for a in args]])
    shape: Any = ()
    for k in tuple(range(ndim)):
        size = 1
        for a in args:
            at = k - ndim + np.ndim(a)
            if at >= 0:
                n = np.shape(a)[at]
                if size != 1 and n != 1 and n != size:
                    raise ValueError("shape mismatch: objects cannot be broadcast to a single shape")
                size = n if size == 1 else size
        shape = (*shape, size)
    return tuple([np.broadcast_to(np.asarray(a), shape) for a in args])
