"""The machine we run on, as LLVM sees it.

Gives `host()`, the target of the emitter, `machine()`, LLVM's target machine for it, `jit()`, what loads code for it, and
`variants`, libmvec's vector forms of C library functions. What the machine is, is looked up once.

Note [Sections together]
Code reaches the constants of its object by distances of 32 bits. LLVM's older linker asks for memory for each section by
itself, and ends the process where one is too far from another: where a CUDA driver has taken most of the addresses in
between, say. Its newer one (JITLink) puts them all into one piece of memory.
"""

from __future__ import annotations

import ctypes
import functools
import os
import platform
from typing import Any

import llvmlite.binding as llvm

from tapeless.backends.llvm.writer import Machine
from tapeless.ir.target import Target

# The letter of the vector ABI and the bytes of a vector, the widest first.
VECTORS = {
    "x86_64": (("avx512f", "e", 64), ("avx2", "d", 32)),
    "aarch64": (("neon", "n", 16),),
}


@functools.cache
def initialize() -> None:
    llvm.initialize_all_targets()
    llvm.initialize_all_asmprinters()


@functools.cache
def features() -> dict[str, bool]:
    return dict(llvm.get_host_cpu_features())


def machine(opt: int = 3) -> Any:
    """LLVM's target machine for this host. Not shared: the JIT takes possession of the one it is given."""
    initialize()
    target = llvm.Target.from_triple(llvm.get_process_triple())
    flat = llvm.get_host_cpu_features().flatten()
    return target.create_target_machine(
        cpu=llvm.get_host_cpu_name(), features=flat, opt=opt, reloc="pic", codemodel="small", jit=True
    )


def jit() -> Any:
    """A JIT of its own: Note [Sections together]."""
    return llvm.create_lljit_compiler(machine(), use_jit_link=True)


@functools.cache
def host() -> Machine:
    initialize()
    layout = str(machine().target_data)
    width = 512 if features().get("avx512f") else 256 if features().get("avx2") else 0
    return Machine(Target.cpu, llvm.get_process_triple(), layout, width, variants)


@functools.cache
def _libmvec() -> ctypes.CDLL | None:
    try:
        return ctypes.CDLL("libmvec.so.1", ctypes.RTLD_GLOBAL)
    except OSError:
        return None


@functools.cache
def variants(function: str, arity: int) -> tuple[tuple[str, int], ...]:
    """libmvec's forms of a function, e.g. (("_ZGVeN8v_exp", 8), ("_ZGVdN4v_exp", 4)) of exp."""
    library = _libmvec()
    if library is None:
        return ()
    size = 4 if function.endswith("f") and function != "erf" else 8
    found = []
    for feature, letter, width in VECTORS.get(platform.machine(), ()):
        name = f"_ZGV{letter}N{width // size}{'v' * arity}_{function}"
        if features().get(feature) and hasattr(library, name):
            found.append((name, width // size))
    return tuple(found)


@functools.cache
def identity() -> str:
    """What code made here depends on: the processor with its features, LLVM, and the C library with its vector
    functions.
    """
    parts = [llvm.get_host_cpu_name(), llvm.get_host_cpu_features().flatten(), str(llvm.llvm_version_info)]
    return "|".join([*parts, platform.machine(), c_library(), str(_libmvec() is not None)])


def c_library() -> str:
    """Its name and version: an object made with one may call what another one has not."""
    try:
        return os.confstr("CS_GNU_LIBC_VERSION") or ""
    except (AttributeError, ValueError, OSError):  # not GNU's
        return " ".join(platform.libc_ver())
