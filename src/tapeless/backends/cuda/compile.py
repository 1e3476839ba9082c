"""Loop IR to code for a GPU and its host.

`compile_program` gives `DeviceNative`: code for the GPU, and an object for the host. `Loaded` puts both into the process,
and has what a call needs: the entry, and the table that it takes (Note [Table] here).

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
from tapeless.backends.cuda.host_code import DeviceHost
from tapeless.backends.cuda.image import DeviceCode
from tapeless.backends.llvm import host, optimize
from tapeless.backends.llvm.at_once import AtOnce, cores
from tapeless.backends.llvm.emit import emit
from tapeless.backends.llvm.ptx import Part, assembly, kernels_of, parts_of
from tapeless.backends.llvm.uninterrupted import uninterrupted
from tapeless.lower.ir.loopir import CHECK_RECORD, Program
from tapeless.lower.ir.walk import kernels_can_fail

HOST = 1  # LLVM's level for it: the driver takes longer than what it does
MOST_PARTS = 8  # of the kernels: llvmlite lets one thread at a time read text


@dataclass(frozen=True)
class DeviceNative:
    name: str
    object: bytes
    externals: tuple[str, ...]
    device: DeviceCode


@uninterrupted
def compile_program(program: Program, driver: Driver) -> DeviceNative:
    """The kernels, in parts, are for other threads, if there are some; the host is for this one."""

    def image(part: Part) -> tuple[bytes, tuple[str, ...]]:
        text = assembly(part, driver.arch)
        driver.enter()
        return driver.assembled(text), tuple(kernel.name for kernel in part.kernels)

    with AtOnce(image) as parts:
        for part in parts_of(program, min(cores(), MOST_PARTS)):
            parts.put(part)
        emitted = emit(program, host.host(), code=DeviceHost)
        module = optimize.parse(emitted.text)
        optimize.optimize(module, HOST, vectorize=False)
        if "rt_poll" in emitted.externals:
            module = optimize.with_polls(module)
        data = optimize.to_object(module, HOST)
        images = tuple(parts.results())
    code = DeviceCode(images, tuple(kernel.name for kernel in kernels_of(program)), kernels_can_fail(program))
    return DeviceNative(program.name, data, emitted.externals, code)


class Loaded:
    """Code on the device and in the process."""

    def __init__(self, name: str, data: bytes, externals: tuple[str, ...], code: DeviceCode, driver: Driver) -> None:
        self.code, self.driver = code, driver
        handle_of = {k: v for image, names in code.images for k, v in driver.functions(image, names).items()}
        known = {name: driver.address(name) for name in externals if name in CALLED}
        routines = [name for name in externals if name.startswith(tuple(libraries.LIBRARIES))]
        known |= {name: libraries.address(name) for name in routines}
        handles = [
            libraries.handle(kind) if any(name.startswith(kind) for name in routines) else None
            for kind in libraries.LIBRARIES
        ]
        self.address = load_all((data,), (name,), externals, addresses=known)[name]
        self.record = driver.allocate(8 * CHECK_RECORD)
        words = (self.record, *handles, *(handle_of[name] for name in code.kernels))
        self.table: Any = (ctypes.c_void_p * len(words))(*words)

    def begin(self) -> int:
        """Before a call: the table's address."""
        self.driver.enter()
        if self.code.can_fail:
            self.driver.clear(self.record, 8 * CHECK_RECORD)
        return ctypes.addressof(self.table)
