"""What the functions of the prelude share: axes counted from the front, and cuts along one of them."""

from __future__ import annotations

from typing import Any

import numpy as np

from tapeless.prelude.registry import refuse


def place(axis: int, ndim: int) -> int:
    """The axis counted from the front."""
    if axis < -ndim or axis >= ndim:
        refuse("the axis is out of bounds for the dimensions of the array", "give one of its axes.")
    return axis % ndim


def places(axis: Any, ndim: int) -> Any:
    """A tuple of them, of an axis, of several, or of None for all."""
    if axis is None:
        return tuple(range(ndim))
    if isinstance(axis, (tuple, list)):
        return tuple([place(k, ndim) for k in axis])
    return (place(axis, ndim),)


def cut(ndim: int, axis: int, part: Any) -> Any:
    """The subscript that takes `part` of one axis and all of the others."""
    return tuple([part if k == axis else slice(None) for k in range(ndim)])


def lanes(a: Any, axis: Any) -> Any:
    """The array with these axes as one, which is the last."""
    if axis is None:
        return np.ravel(a)
    if not isinstance(axis, (tuple, list)):
        return np.moveaxis(a, axis, -1)
    gone = places(axis, a.ndim)
    last = tuple([k - len(gone) for k in range(len(gone))])
    moved = np.moveaxis(a, gone, last)
    kept = a.ndim - len(gone)
    return np.reshape(moved, (*moved.shape[:kept], size_of(moved.shape[kept:])))


def size_of(shape: Any) -> Any:
    size = 1
    for n in tuple(shape):
        size = size * n
    return size


def kept(result: Any, axis: Any, ndim: int, before: int = 0) -> Any:
    """The result of a reduction with axes of length 1 where they went; it has `before` axes in front of them."""
    return np.expand_dims(result, tuple([k + before for k in places(axis, ndim)]))
