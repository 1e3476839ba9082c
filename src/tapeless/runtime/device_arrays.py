"""Arrays in the memory of a GPU, of whatever library: CuPy, PyTorch, or any other with the CUDA array interface.

`view_of` shows one to those who ask for types and shapes only; `library_of` says whose it is; `Memory` is memory of our
own, which its last user gives back.
"""

from __future__ import annotations

import importlib
from collections.abc import Callable
from dataclasses import dataclass
from math import prod
from typing import Any

import numpy as np

from tapeless.backends.cuda.driver import Driver
from tapeless.errors import DeviceError

INTERFACE = "__cuda_array_interface__"
DEFAULT_STREAMS = (0, 1, 2)  # two names for one, and those of threads, which wait for it anyway, as it does for them


def is_on_device(value: Any) -> bool:
    return interface_of(value) is not None


def interface_of(value: Any) -> dict[str, Any] | None:
    """What an array of the device says of itself; None for everything else."""
    if isinstance(value, (np.ndarray, np.generic, int, float, complex)) or not hasattr(type(value), INTERFACE):
        return None
    try:  # PyTorch's tensors have the attribute, and raise where they are not on a GPU
        found: dict[str, Any] | None = getattr(value, INTERFACE, None)
    except (TypeError, RuntimeError):
        return None
    return found


@dataclass(frozen=True)
class Stream:
    """Where a library asks a GPU for work. `owner` keeps it alive."""

    handle: int
    owner: Any


def stream_of(library: str) -> Stream | None:
    """The one on which it works now, unless that is the default one."""
    if library == "torch":
        torch_stream = importlib.import_module("torch").cuda.current_stream()
        found = Stream(torch_stream.cuda_stream, torch_stream)
    else:
        cupy_stream = importlib.import_module("cupy").cuda.get_current_stream()
        found = Stream(cupy_stream.ptr, cupy_stream)
    return found if found.handle not in DEFAULT_STREAMS else None


class _Seen:
    def __init__(self, value: Any) -> None:
        given = getattr(value, INTERFACE)
        self.value = value
        self.__array_interface__ = {
            "data": (given["data"][0] or 8, False),
            "shape": tuple(given["shape"]),
            "typestr": given["typestr"],
            "strides": given.get("strides"),
            "version": 3,
        }


def view_of(value: Any) -> np.ndarray[Any, Any]:
    """An array of NumPy with this shape, type and address. Nobody may look into it."""
    return np.asarray(_Seen(value))


class Memory:
    """Memory of the device, as an array in a row, for use on a stream."""

    def __init__(
        self, driver: Driver, pointer: int, shape: tuple[int, ...], dtype: np.dtype[Any], stream: Stream | None = None
    ) -> None:
        self.driver, self.pointer, self.shape, self.dtype, self.stream = driver, pointer, shape, dtype, stream
        self.__cuda_array_interface__ = {
            "data": (pointer, False), "shape": shape, "typestr": dtype.str, "strides": None, "version": 3,
        }  # fmt: skip

    @property
    def size(self) -> int:
        return prod(self.shape) * self.dtype.itemsize

    def __del__(self) -> None:
        if self.pointer:
            self.driver.enter()
            self.driver.free(self.pointer, self.stream.handle if self.stream else 0)


def allocated(driver: Driver, shape: tuple[int, ...], dtype: np.dtype[Any], stream: Stream | None = None) -> Memory:
    return Memory(driver, driver.allocate(prod(shape) * dtype.itemsize), shape, dtype, stream)


def uploaded(driver: Driver, array: np.ndarray[Any, Any]) -> Memory:
    memory = allocated(driver, array.shape, array.dtype)
    driver.to_device(memory.pointer, array.ctypes.data, array.nbytes)
    return memory


def downloaded(memory: Memory) -> np.ndarray[Any, Any]:
    found = np.empty(memory.shape, memory.dtype)
    memory.driver.from_device(found.ctypes.data, memory.pointer, found.nbytes)
    return found


def _of_torch(memory: Memory) -> Any:
    return importlib.import_module("torch").as_tensor(memory, device="cuda")


def _of_cupy(memory: Memory) -> Any:
    cupy = importlib.import_module("cupy")
    owned = cupy.cuda.UnownedMemory(memory.pointer, memory.size, memory, device_id=memory.driver.device.value)
    return cupy.ndarray(memory.shape, memory.dtype, cupy.cuda.MemoryPointer(owned, 0))


LIBRARIES: dict[str, Callable[[Memory], Any]] = {"torch": _of_torch, "cupy": _of_cupy, "numpy": downloaded}


def library_of(value: Any) -> str:
    name = type(value).__module__.partition(".")[0]
    if name not in LIBRARIES:
        raise DeviceError(f"arrays of {name} on a GPU are not known: pass arrays of CuPy or PyTorch")
    return name


def in_a_row(value: Any, given: dict[str, Any]) -> tuple[Any, int]:
    """The same array with its elements in order, itself or a copy, and where it lies; `given` is what it says of itself."""
    if given.get("strides") is not None and not view_of(value).flags.c_contiguous:
        library = library_of(value)
        value = value.contiguous() if library == "torch" else importlib.import_module("cupy").ascontiguousarray(value)
        given = getattr(value, INTERFACE)
    pointer: int = given["data"][0]
    return value, pointer
