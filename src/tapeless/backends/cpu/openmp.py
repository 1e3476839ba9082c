"""The OpenMP runtime of this process as the parallel runtime, where there is one.

`name()` says which one, `address()` gives a function that stands in for the pool of `threads.py`.

Note [OpenMP]
Threads of an OpenMP runtime go on spinning for milliseconds after their work. Where another library of the process has
one (PyTorch, scikit-learn), a second pool would share the processors with them, so its threads are used. Where nobody
has loaded one, the own pool serves better: a region of it costs less, and on a busy machine much less.
TAPELESS_OPENMP=1 loads the system's runtime if there is one, TAPELESS_OPENMP=0 leaves OpenMP alone. A forked child must
not enter a runtime that its parent has used, and has the own pool. Ctrl-C is noticed in the share of the caller, and
stops the others too; while the caller waits inside of the runtime for longer shares, it is not.
"""

from __future__ import annotations

import contextlib
import ctypes
import functools
import os
import platform
import re
from pathlib import Path
from typing import Any

import llvmlite.binding as llvm

from tapeless.backends.cpu.iterations import EACH
from tapeless.backends.llvm import flushing, host, optimize

LOADED = re.compile(r"/\S*/lib(?:gomp|omp|iomp5)\b[^/\s]*\.so[^/\s]*$", re.MULTILINE)
OF_THE_SYSTEM = ("libgomp.so.1", "libomp.so.5", "libomp.so", "libiomp5.so")
CALLED = ("GOMP_parallel", "omp_get_thread_num", "omp_get_num_threads")
FORKED_WITHOUT_EXEC = 0x40  # among the flags of a process, the seventh word after its name

TEAM = """
%job = type { ptr, ptr, i64 }  ; fn, ctx, iterations

; One thread of the team: an equal part of the iterations. A thread has the setting of arithmetic of whoever started it.
define internal void @part(ptr %job) nounwind {
  %control = alloca i32
  %saved = alloca i32
  %p1 = getelementptr inbounds %job, ptr %job, i32 0, i32 1
  %p2 = getelementptr inbounds %job, ptr %job, i32 0, i32 2
  %fn = load ptr, ptr %job
  %ctx = load ptr, ptr %p1
  %count = load i64, ptr %p2
  %me = call i32 @omp_get_thread_num()
  %all = call i32 @omp_get_num_threads()
  %k = zext i32 %me to i64
  %n = zext i32 %all to i64
  %each = udiv i64 %count, %n
  %longer = urem i64 %count, %n  ; the first ones have one more
  %next = add i64 %k, 1
  %before0 = call i64 @llvm.smin.i64(i64 %k, i64 %longer)
  %before1 = call i64 @llvm.smin.i64(i64 %next, i64 %longer)
  %start = mul i64 %k, %each
  %stop = mul i64 %next, %each
  %t0 = add i64 %start, %before0
  %t1 = add i64 %stop, %before1
  %some = icmp slt i64 %t0, %t1
  br i1 %some, label %work, label %done
work:
  %caller = icmp eq i32 %me, 0
  br i1 %caller, label %own, label %member
own:
  call void @each(ptr %fn, ptr %ctx, i64 %t0, i64 %t1)
  ret void
member:
  SAVE
  RESET
  call void @each(ptr %fn, ptr %ctx, i64 %t0, i64 %t1)
  RESTORE
  ret void
done:
  ret void
}

define void @team(ptr %fn, ptr %ctx, i64 %count, i64 %threads) nounwind {
  %job = alloca %job, align 8
  %p1 = getelementptr inbounds %job, ptr %job, i32 0, i32 1
  %p2 = getelementptr inbounds %job, ptr %job, i32 0, i32 2
  store ptr %fn, ptr %job
  store ptr %ctx, ptr %p1
  store i64 %count, ptr %p2
  %few = call i64 @llvm.smin.i64(i64 %threads, i64 1024)
  %used = call i64 @llvm.smin.i64(i64 %few, i64 %count)
  %wanted = trunc i64 %used to i32
  call void @GOMP_parallel(ptr @part, ptr %job, i32 %wanted, i32 0)
  ret void
}

declare i64 @llvm.smin.i64(i64, i64)
declare i32 @omp_get_thread_num()
declare i32 @omp_get_num_threads()
declare void @GOMP_parallel(ptr, ptr, i32, i32)
DECLARED
"""


def name() -> str | None:
    """The file of the runtime that serves."""
    wanted = os.environ.get("TAPELESS_OPENMP", "")
    if wanted == "0" or _forked():
        return None
    return _loaded() or (_of_the_system() if wanted == "1" else None)


def _forked() -> bool:
    """Whether this process is a copy of its parent, as Linux tells it; others have no list of loaded files either."""
    with contextlib.suppress(OSError, ValueError, IndexError):
        return bool(int(Path("/proc/self/stat").read_text().rpartition(")")[2].split()[6]) & FORKED_WITHOUT_EXEC)
    return False


def _loaded() -> str | None:
    return _loaded_after(_changes())


@functools.lru_cache(1)
def _loaded_after(changes: tuple[int, int]) -> str | None:
    try:
        files = Path("/proc/self/maps").read_text()
    except OSError:
        return None
    return next((found[0] for found in LOADED.finditer(files) if _complete(found[0])), None)


class _Info(ctypes.Structure):
    """What the C library's dl_iterate_phdr tells of a loaded file."""

    _fields_ = (
        ("address", ctypes.c_void_p), ("name", ctypes.c_char_p), ("headers", ctypes.c_void_p),
        ("count", ctypes.c_uint16), ("loaded", ctypes.c_ulonglong), ("unloaded", ctypes.c_ulonglong),
    )  # fmt: skip


def _changes() -> tuple[int, int]:
    """How many files this process has loaded and unloaded so far: reading their list takes a millisecond or more."""
    found = (0, 0)

    def first(info: Any, size: int, data: None) -> int:
        nonlocal found
        found = (info.contents.loaded, info.contents.unloaded)
        return 1

    kind = ctypes.CFUNCTYPE(ctypes.c_int, ctypes.POINTER(_Info), ctypes.c_size_t, ctypes.c_void_p)
    ctypes.CDLL(None).dl_iterate_phdr(kind(first), None)
    return found


@functools.cache
def _of_the_system() -> str | None:
    return next((file for file in OF_THE_SYSTEM if _complete(file)), None)


@functools.cache
def _complete(file: str) -> bool:
    with contextlib.suppress(OSError):
        library = ctypes.CDLL(file)
        return all(hasattr(library, called) for called in CALLED)
    return False


@functools.cache
def address(file: str) -> int:
    """Of a function like `rt_parallel`, whose threads are those of the runtime in this file."""
    target, library, team = host.host(), ctypes.CDLL(file), TEAM
    for name in ("SAVE", "RESET", "RESTORE", "DECLARED"):
        team = team.replace(name, getattr(flushing, name)[platform.machine()])
    text = f'target datalayout = "{target.layout}"\ntarget triple = "{target.triple}"\n{EACH}{team}'
    jit = host.jit()
    builder = llvm.JITLibraryBuilder().add_object_img(host.machine(opt=0).emit_object(optimize.parse(text)))
    builder.add_current_process().export_symbol("team")
    for called in CALLED:
        place = ctypes.cast(getattr(library, called), ctypes.c_void_p).value
        builder.import_symbol(called, place)
    tracker = builder.link(jit, "tapeless.openmp")
    jit.detach()  # as long as the process: compiled code may call it to the very end
    tracker.detach()
    found: int = tracker["team"]
    return found
