"""Memory of results: what native code hands over, and large arrays made for it to fill.

Both go back to the buffers that compiled code keeps (Note [Kept buffers] in `backends/cpu/buffers.py`) with their last
user.

Note [Large results]
The C library keeps one array of some megabytes that NumPy frees, and gives a second one back to the system, which clears every
page of the next; that takes as long as many a computation of it. So results of LARGE_RESULT bytes and more are buffers of ours: a loop
that drops gradients for the next ones gets the same memory again.
"""

from __future__ import annotations

import ctypes
import functools
from collections.abc import Callable
from math import prod
from typing import Any

import numpy as np

from tapeless.backends.cpu import buffers

LARGE_RESULT = 4 << 20  # bytes


class Given:
    """Memory of native code; NumPy sees it through the array interface, and it is released with its last user."""

    def __init__(self, address: int, shape: tuple[int, ...], dtype: np.dtype[Any]) -> None:
        self.address = address
        self.release = _release()
        self.__array_interface__ = {"data": (address, False), "shape": shape, "typestr": dtype.str, "version": 3}

    def __del__(self) -> None:
        self.release(self.address)


def empty(shape: tuple[int, ...], dtype: np.dtype[Any]) -> np.ndarray[Any, Any]:
    """An array for a result."""
    size = prod(shape) * dtype.itemsize
    if size < LARGE_RESULT:
        return np.empty(shape, dtype)
    address = _allocate()(size)
    if not address:
        raise MemoryError(f"no memory for a result of shape {shape} and type {dtype}")
    return np.asarray(Given(address, shape, dtype))


@functools.cache
def _allocate() -> Callable[[int], int | None]:
    return ctypes.CFUNCTYPE(ctypes.c_void_p, ctypes.c_int64)(buffers.address("rt_allocate"))


@functools.cache
def _release() -> Callable[[int], None]:
    return ctypes.CFUNCTYPE(None, ctypes.c_void_p)(buffers.address("rt_release"))
