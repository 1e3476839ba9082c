"""LLVM's optimiser and code generator over the emitter's text.

`optimize` takes LLVM IR and gives a module after the O3 pipeline for this machine; `to_object` and `to_asm` take that.
The time of each phase goes into a dictionary of seconds.
"""

from __future__ import annotations

import threading
import time
from collections.abc import Iterator
from contextlib import contextmanager
from typing import Any

import llvmlite.binding as llvm

from tapeless.backends.llvm import host

_local = threading.local()


def _machine() -> Any:
    """One target machine a thread: making one takes a millisecond, and they are not safe to share."""
    if not hasattr(_local, "machine"):
        _local.machine = host.machine()
    return _local.machine


@contextmanager
def timed(times: dict[str, float], phase: str) -> Iterator[None]:
    start = time.perf_counter()
    yield
    times[phase] = times.get(phase, 0.0) + time.perf_counter() - start


def parse(text: str) -> Any:
    host.initialize()
    module = llvm.parse_assembly(text)
    module.verify()
    return module


def optimize(module: Any, level: int = 3, machine: Any = None, vectorize: bool = True, unroll: bool = True) -> None:
    """Runs LLVM's standard pipeline of this level in place."""
    options = llvm.create_pipeline_tuning_options(speed_level=level)
    options.loop_vectorization = vectorize
    options.slp_vectorization = vectorize
    options.loop_interleaving = vectorize
    options.loop_unrolling = unroll
    builder = llvm.create_pass_builder(machine or _machine(), options)
    builder.getModulePassManager().run(module, builder)


def to_object(module: Any, level: int = 3) -> bytes:
    """Level 0 takes the fast way to machine code too."""
    machine = host.machine(opt=0) if level == 0 else _machine()
    data: bytes = machine.emit_object(module)
    return data


def to_asm(module: Any) -> str:
    text: str = _machine().emit_assembly(module)
    return text
