"""The two long calls of LLVM, without the lock that llvmlite has around each of its calls: several threads can be in them.

LLVM allows that for modules of different contexts. Whoever calls is inside `steady` (runtime/forks.py), or is a thread
of somebody who is, so that no fork comes in between.
"""

from __future__ import annotations

import ctypes
from functools import cache
from pathlib import Path
from typing import Any

from llvmlite import binding
from llvmlite.binding import ffi
from llvmlite.utils import get_library_name

TEXT, OBJECT = 0, 1
CALLS = (
    "LLVMPY_RunNewModulePassManager",
    "LLVMPY_TargetMachineEmitToMemory",
    "LLVMPY_GetBufferStart",
    "LLVMPY_GetBufferSize",
    "LLVMPY_DisposeMemoryBuffer",
)


@cache
def _library() -> Any:
    """What llvmlite has loaded, once more, with the types that it knows."""
    library = ctypes.CDLL(str(Path(binding.__file__).parent / get_library_name()))
    for name in CALLS:
        known, here = getattr(ffi.lib, name), getattr(library, name)
        here.argtypes, here.restype = known.argtypes, known.restype
    return library


def run_passes(manager: Any, module: Any, builder: Any) -> None:
    _library().LLVMPY_RunNewModulePassManager(manager, module, builder)


def emit_object(machine: Any, module: Any) -> bytes:
    return _emit(machine, module, OBJECT)


def emit_text(machine: Any, module: Any) -> str:
    return _emit(machine, module, TEXT).decode()


def _emit(machine: Any, module: Any, kind: int) -> bytes:
    library = _library()
    with ffi.OutputString() as problem:
        buffer = library.LLVMPY_TargetMachineEmitToMemory(machine, module, kind, problem)
        if not buffer:
            raise RuntimeError(str(problem))
    try:
        return ctypes.string_at(library.LLVMPY_GetBufferStart(buffer), library.LLVMPY_GetBufferSize(buffer))
    finally:
        library.LLVMPY_DisposeMemoryBuffer(buffer)
