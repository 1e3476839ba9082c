"""Loop IR to code for a GPU and its host.

`compile_program` gives `DeviceNative`: PTX, and an object for the host. `load` puts both into the process, and gives
what a call needs: the entry, and the table that it takes (Note [Table] here).

Note [Table]
The first word is the record of errors on the device, then come the handles of cuBLAS and of cuSOLVER, if they are needed,
and those of the kernels. It lives as long as the entry.
"""

from __future__ import annotations

import ctypes
from dataclasses import dataclass
from typing import Any

from tapeless.backends.cpu.engine import load_all
from tapeless.backends.cuda import libraries
from tapeless.backends.cuda.driver import CALLED, Driver
from tapeless.backends.cuda.host_code import DeviceHost, can_fail, kernels_of
from tapeless.backends.llvm import host, optimize
from tapeless.backends.llvm.emit import emit
from tapeless.backends.llvm.ptx import ptx
from tapeless.backends.llvm.uninterrupted import uninterrupted
from tapeless.lower.ir.loopir import CHECK_RECORD, Program


@dataclass(frozen=True)
class DeviceNative:
    name: str
    ptx: str
    kernels: tuple[str, ...]
    object: bytes
    externals: tuple[str, ...]
    can_fail: bool


@uninterrupted
def compile_program(program: Program, arch: str) -> DeviceNative:
    text, kernels = ptx(program, arch)
    assert [k.name for k in kernels] == [k.name for k in kernels_of(program)]
    emitted = emit(program, host.host(), code=DeviceHost)
    module = optimize.parse(emitted.text)
    optimize.optimize(module, 2, vectorize=False)
    if "rt_poll" in emitted.externals:
        module = optimize.with_polls(module)
    data = optimize.to_object(module, 2)
    names = tuple(k.name for k in kernels)
    return DeviceNative(program.name, text, names, data, emitted.externals, can_fail(program))


class Loaded:
    """Code on the device and in the process."""

    def __init__(self, native: DeviceNative, driver: Driver) -> None:
        self.native, self.driver = native, driver
        self.module, self.handles = driver.functions(native.ptx, list(native.kernels))
        known = {name: driver.address(name) for name in native.externals if name in CALLED}
        routines = [name for name in native.externals if name.startswith(tuple(libraries.LIBRARIES))]
        known |= {name: libraries.address(name) for name in routines}
        handles = [
            libraries.handle(kind) if any(name.startswith(kind) for name in routines) else None
            for kind in libraries.LIBRARIES
        ]
        self.address = load_all((native.object,), (native.name,), native.externals, addresses=known)[native.name]
        self.record = driver.allocate(8 * CHECK_RECORD)
        words = (self.record, *handles, *self.handles[: len(native.kernels)])
        self.table: Any = (ctypes.c_void_p * len(words))(*words)

    def begin(self) -> int:
        """Before a call: the table's address."""
        self.driver.enter()
        if self.native.can_fail:
            self.driver.clear(self.record, 8 * CHECK_RECORD)
        return ctypes.addressof(self.table)
