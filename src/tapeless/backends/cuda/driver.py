"""The CUDA driver, by ctypes: what is needed to load kernels and to move memory.

`driver()` gives it with the primary context of the first device, which other libraries of the process share; it raises
DeviceError where there is none. The host program calls the driver itself, by `address`.
"""

from __future__ import annotations

import ctypes
import functools
from collections.abc import Sequence
from typing import Any

from tapeless.errors import DeviceError

LIBRARY = "libcuda.so.1"
OUT_OF_MEMORY = 2
PTX_TEXT = 1  # a kind of input of the linker
RELEASE_THRESHOLD, HIGHEST_USE = 4, 8  # attributes of a pool
MAJOR, MINOR = 75, 76  # attributes of a device: its compute capability
ORDINAL = 9  # an attribute of a pointer
WITHOUT_TIMES = 2  # a kind of event
# What the host program calls, and under which name the driver has it.
CALLED = {
    "cuLaunchKernel": "cuLaunchKernel",
    "cuMemAllocAsync": "cuMemAllocAsync",
    "cuMemAllocManaged": "cuMemAllocManaged",
    "cuMemFreeAsync": "cuMemFreeAsync",
    "cuMemFree": "cuMemFree_v2",
    "cuCtxSynchronize": "cuCtxSynchronize",
    "cuMemcpyDtoH": "cuMemcpyDtoH_v2",
    "cuMemcpyHtoD": "cuMemcpyHtoD_v2",
}


class Driver:
    def __init__(self, library: Any, context: ctypes.c_void_p, device: ctypes.c_int) -> None:
        self.library, self.context, self.device = library, context, device

    def call(self, name: str, *args: Any) -> None:
        code = getattr(self.library, name)(*args)
        if code:
            raise DeviceError(f"the GPU driver says: {self.text(code)} ({name})")

    def text(self, code: int) -> str:
        found = ctypes.c_char_p()
        self.library.cuGetErrorString(code, ctypes.byref(found))
        return (found.value or b"unknown error").decode()

    def enter(self) -> None:
        """The context is a thread's own."""
        self.call("cuCtxSetCurrent", self.context)

    def keep_memory(self) -> None:
        """Freed memory stays in the pool: to give it back at each synchronisation takes milliseconds."""
        everything = ctypes.c_uint64(2**64 - 1)
        self.call("cuMemPoolSetAttribute", self.pool, RELEASE_THRESHOLD, ctypes.byref(everything))

    @functools.cached_property
    def pool(self) -> ctypes.c_void_p:
        found = ctypes.c_void_p()
        self.call("cuDeviceGetDefaultMemPool", ctypes.byref(found), self.device)
        return found

    @functools.cached_property
    def arch(self) -> str:
        parts = []
        for attribute in (MAJOR, MINOR):
            found = ctypes.c_int()
            self.call("cuDeviceGetAttribute", ctypes.byref(found), attribute, self.device)
            parts.append(str(found.value))
        return "sm_" + "".join(parts)

    @functools.cached_property
    def identity(self) -> str:
        """Tells one driver and card from another: their code differs."""
        version = ctypes.c_int()
        self.call("cuDriverGetVersion", ctypes.byref(version))
        return f"{self.arch} {version.value}"

    @functools.cached_property
    def name(self) -> str:
        text = ctypes.create_string_buffer(256)
        self.call("cuDeviceGetName", text, 256, self.device)
        return text.value.decode()

    def memory(self) -> tuple[int, int]:
        """Bytes that are free, and all."""
        free, total = ctypes.c_size_t(), ctypes.c_size_t()
        self.call("cuMemGetInfo_v2", ctypes.byref(free), ctypes.byref(total))
        return free.value, total.value

    def assembled(self, ptx: str) -> bytes:
        """Machine code of this text."""
        state, image, size = ctypes.c_void_p(), ctypes.c_void_p(), ctypes.c_size_t()
        log = ctypes.create_string_buffer(4096)
        options = (ctypes.c_int * 2)(5, 6)  # where errors are written, and how much there is room for
        values = (ctypes.c_void_p * 2)(ctypes.cast(log, ctypes.c_void_p), 4096)
        text = ptx.encode() + b"\0"
        self.call("cuLinkCreate_v2", 2, options, values, ctypes.byref(state))
        try:
            code = self.library.cuLinkAddData_v2(
                state, PTX_TEXT, text, ctypes.c_size_t(len(text)), b"kernels", 0, None, None
            )
            code = code or self.library.cuLinkComplete(state, ctypes.byref(image), ctypes.byref(size))
            if code:
                raise DeviceError(f"the GPU driver says: {self.text(code)} (cuLinkAddData)\n{log.value.decode()}")
            return ctypes.string_at(image, size.value)
        finally:
            self.library.cuLinkDestroy(state)

    def functions(self, image: bytes, names: Sequence[str]) -> dict[str, int | None]:
        """Loads machine code; gives the handles of its kernels."""
        module = ctypes.c_void_p()
        self.call("cuModuleLoadData", ctypes.byref(module), image)
        handles: dict[str, int | None] = {}
        for name in names:
            found = ctypes.c_void_p()
            self.call("cuModuleGetFunction", ctypes.byref(found), module, name.encode())
            handles[name] = found.value
        return handles

    def allocate(self, size: int) -> int:
        found = ctypes.c_uint64()
        code = self.library.cuMemAllocAsync(ctypes.byref(found), ctypes.c_size_t(max(size, 8)), None)
        if code == OUT_OF_MEMORY:
            free, total = self.memory()
            raise MemoryError(f"the GPU has no memory for {size} bytes: {free} of {total} are free")
        if code:
            raise DeviceError(f"the GPU driver says: {self.text(code)} (cuMemAllocAsync)")
        return found.value

    def free(self, pointer: int, stream: int = 0) -> None:
        """`stream`: what it was asked to do before may still use the memory."""
        if self.library.cuMemFreeAsync(ctypes.c_uint64(pointer), ctypes.c_void_p(stream)):  # not of the pool
            self.library.cuMemFree_v2(ctypes.c_uint64(pointer))

    def order(self, first: int, then: int) -> None:
        """What the second stream is asked for from now on waits for all that the first one was asked for; nobody else waits."""
        event = ctypes.c_void_p()
        self.call("cuEventCreate", ctypes.byref(event), WITHOUT_TIMES)
        try:
            self.call("cuEventRecord", event, ctypes.c_void_p(first))
            self.call("cuStreamWaitEvent", ctypes.c_void_p(then), event, 0)
        finally:
            self.library.cuEventDestroy_v2(event)

    def is_elsewhere(self, pointer: int) -> int:
        """The number of another device on which this memory is; 0, that of the first one, also for what the driver does not know."""
        found = ctypes.c_int()
        self.library.cuPointerGetAttribute(ctypes.byref(found), ORDINAL, ctypes.c_uint64(pointer))
        return found.value

    def synchronize(self) -> None:
        self.call("cuCtxSynchronize")

    def peak(self) -> int:
        """Bytes that were in use at most since `forget_peak`."""
        found = ctypes.c_uint64()
        self.call("cuMemPoolGetAttribute", self.pool, HIGHEST_USE, ctypes.byref(found))
        return found.value

    def forget_peak(self) -> None:
        self.call("cuMemPoolSetAttribute", self.pool, HIGHEST_USE, ctypes.byref(ctypes.c_uint64(0)))

    def to_device(self, pointer: int, address: int, size: int) -> None:
        if size:
            self.call("cuMemcpyHtoD_v2", ctypes.c_uint64(pointer), ctypes.c_void_p(address), ctypes.c_size_t(size))

    def from_device(self, address: int, pointer: int, size: int) -> None:
        if size:
            self.call("cuMemcpyDtoH_v2", ctypes.c_void_p(address), ctypes.c_uint64(pointer), ctypes.c_size_t(size))

    def clear(self, pointer: int, size: int) -> None:
        self.call("cuMemsetD8Async", ctypes.c_uint64(pointer), ctypes.c_ubyte(0), ctypes.c_size_t(size), None)

    def address(self, name: str) -> int:
        found = ctypes.cast(getattr(self.library, CALLED[name]), ctypes.c_void_p).value
        assert found is not None
        return found


@functools.cache
def driver() -> Driver:
    try:
        library = ctypes.CDLL(LIBRARY)
    except OSError:
        raise DeviceError(f"there is no GPU driver: {LIBRARY} was not found") from None
    device, context = ctypes.c_int(), ctypes.c_void_p()
    if library.cuInit(0) or library.cuDeviceGet(ctypes.byref(device), 0):
        raise DeviceError("the GPU driver finds no device")
    if library.cuDevicePrimaryCtxRetain(ctypes.byref(context), device):
        raise DeviceError("the GPU driver gives no context")
    found = Driver(library, context, device)
    found.enter()
    found.keep_memory()
    return found


def available() -> bool:
    try:
        driver()
    except DeviceError:
        return False
    return True
