"""Calls of programs on a GPU. Takes arrays of the device as they are, and copies those of NumPy there and back.

Results are of the kind of the arguments: of the library whose arrays came, NumPy's if none did. Nobody has to wait but for
what goes back to NumPy.

Note [Streams]
Programs work on the default stream, in the order in which they were asked for. Where a library works on a stream of its own,
the default one waits for that before a program starts, and that one waits for the program; so the order is that of the calls.
Memory of results is given back on the stream on which they are used.
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
    Stream,
    allocated,
    downloaded,
    in_a_row,
    interface_of,
    is_on_device,
    library_of,
    stream_of,
    uploaded,
    view_of,
)

KIND, STREAM = -1, -2  # where a call keeps the library of its results, and its stream


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
        streams: dict[str, Stream | None] = {}
        if self.clashes:
            self._refuse_overlap([_shown(v) for v in values])
        for k, value in enumerate(values):
            is_array, dtype = self.params[k]
            if not is_array:
                self.prepare[k](arguments, value)
                continue
            if (shown := interface_of(value)) is not None:
                made[KIND] = library = library_of(value)
                given, pointer = in_a_row(value, shown)
                if library not in streams:
                    streams[library] = stream_of(library)
                if pointer and (device := driver.is_elsewhere(pointer)):
                    raise self._on_other_device(k, device)
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
            ready[k] = allocated(driver, dims, dtype.numpy, streams.get(made[KIND]))
            arguments.append(ready[k].pointer)
        results, error = self.Results(), self.Error()
        others = [s.handle for s in streams.values() if s]
        for other in others:
            driver.order(other, 0)
        self.native(*arguments, table, ctypes.addressof(results), ctypes.addressof(error))
        for other in others:
            driver.order(0, other)
        if error[0]:
            raise self._error(error, driver)
        if error[CHECK_RECORD]:
            warn(error, self.compiled.binary.sites)
        for value, given in back:
            value[...] = downloaded(given) if isinstance(given, Memory) else given
        made[STREAM] = streams.get(made[KIND])
        made.update({k: LIBRARIES[made[KIND]](memory) for k, memory in ready.items()})
        if self.captured:
            leaves = [*leaves, *values[len(self.positions) : len(self.positions) + len(self.captured)]]
        return self.build(results, made, leaves)

    def _on_other_device(self, k: int, device: int) -> DeviceError:
        name = self.compiled.signature.params[k].name
        return DeviceError(f"'{name}' is on GPU {device}, and programs run on GPU 0: pass a copy on that one")

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
                memory = Memory(self.compiled.device.driver, results[at], shape, dtype.numpy, made[STREAM])
                made[k] = LIBRARIES[made[KIND]](memory)
            return made[k]

        return build


def _shown(value: Any) -> Any:
    return view_of(value) if is_on_device(value) else value
