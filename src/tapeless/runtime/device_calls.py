"""Calls of programs on a GPU. Takes arrays of the device as they are, and copies those of NumPy there and back.

Results are of the kind of the arguments: of the library whose arrays came, NumPy's if none did. Everything is on the
default stream, in the order in which it was asked for, so nobody has to wait but for what goes back to NumPy.
"""

from __future__ import annotations

import ctypes
from collections.abc import Callable, Sequence
from typing import Any

import numpy as np

from tapeless.backends.cpu import interrupts
from tapeless.backends.cuda.device_host import DRIVER_FAILED
from tapeless.backends.llvm.heap import OUT_OF_MEMORY
from tapeless.errors import DeviceError
from tapeless.lower.ir.loopir import CHECK_RECORD
from tapeless.runtime.calling import Caller, error_of, warn
from tapeless.runtime.device_arrays import (
    LIBRARIES,
    Memory,
    allocated,
    downloaded,
    in_a_row,
    interface_of,
    is_on_device,
    library_of,
    uploaded,
    view_of,
)

KIND = -1  # where a call keeps the library of its results


class DeviceCaller(Caller):
    def _run(self, leaves: Sequence[Any], values: list[Any]) -> Any:
        loaded = self.compiled.device
        assert loaded is not None
        driver = loaded.driver
        table = loaded.begin()
        arguments: list[Any] = [source(values) for source in self.sizes]
        keep: list[Any] = []
        back: list[tuple[Any, Any]] = []
        made: dict[int, Any] = {KIND: "numpy"}
        if self.clashes:
            self._refuse_overlap([_shown(v) for v in values])
        for k, value in enumerate(values):
            is_array, dtype = self.params[k]
            if not is_array:
                self.prepare[k](arguments, value)
                continue
            if (shown := interface_of(value)) is not None:
                made[KIND] = library_of(value)
                given, pointer = in_a_row(value, shown)
            else:
                given = uploaded(driver, np.ascontiguousarray(value, dtype.numpy))
                pointer = given.pointer
            if given is not value and k in self.written:
                back.append((value, given))
            keep.append(given)
            arguments.append(pointer)
        ready: dict[int, Memory] = {}
        for k, (dtype, _, shape, _, _) in self.provided:
            dims = tuple(d if isinstance(d, int) else arguments[d.k] for d in shape)
            ready[k] = allocated(driver, dims, dtype.numpy)
            arguments.append(ready[k].pointer)
        results, error = self.Results(), self.Error()
        self.native(*arguments, table, ctypes.addressof(results), ctypes.addressof(error))
        if error[0]:
            raise self._error(error, driver)
        if error[CHECK_RECORD]:
            warn(error, self.compiled.binary.sites)
        for value, given in back:
            value[...] = downloaded(given) if isinstance(given, Memory) else given
        made.update({k: LIBRARIES[made[KIND]](memory) for k, memory in ready.items()})
        if self.captured:
            leaves = [*leaves, *values[len(self.positions) : len(self.positions) + len(self.captured)]]
        return self.build(results, made, leaves)

    def _error(self, error: Any, driver: Any) -> BaseException:
        if error[0] == DRIVER_FAILED:
            return DeviceError(f"the GPU driver says: {driver.text(error[1])}")
        if error[0] == OUT_OF_MEMORY:
            free, total = driver.memory()
            return MemoryError(f"the GPU has no memory for {error[1]} bytes: {free} of {total} are free")
        return interrupts.raised(error) or error_of(error, self.compiled.binary.sites)

    def _given(self, k: int) -> Callable[..., Any]:
        dtype, _, _, dims, number = self.compiled.binary.array_results[k]
        at = self.given_at + number

        def build(results: Any, made: dict[int, Any], leaves: Any) -> Any:
            if k not in made:
                assert self.compiled.device is not None
                shape = tuple(results[self.offsets[d]] for d in dims)
                memory = Memory(self.compiled.device.driver, results[at], shape, dtype.numpy)
                made[k] = LIBRARIES[made[KIND]](memory)
            return made[k]

        return build


def _shown(value: Any) -> Any:
    return view_of(value) if is_on_device(value) else value
