"""How many threads BLAS may use while compiled code runs.

Compiled code parallelises around its calls of BLAS, so inside a parallel region BLAS must stay on one thread. OpenBLAS
only has a setting for the whole process: the first call that needs another number sets it, the last one to end puts the
old one back. A forked child has no such calls, whatever other threads were doing.

Note [Forks and BLAS]
OpenBLAS ends its threads before a fork; a call that waits for one of them then waits for ever, in the parent. So forks
wait for calls of compiled code that use BLAS.

Note [BLAS in native entries]
A native entry (native_entry.py) counts itself in `gate`, with the interpreter's lock in its hands, so nobody comes
between. It may not where Python is in the midst of that (BUSY), or a fork waits: then it calls `begin`, as the others do.
What it has begun it ends itself, or by `end_native` for the same reasons.
"""

from __future__ import annotations

import ctypes
import functools
import os
import threading
from collections.abc import Iterator
from contextlib import contextmanager
from typing import Any

from tapeless.backends.cpu.libraries import openblas
from tapeless.runtime.forks import steady

BUSY, USERS, BEFORE = range(3)
gate = (ctypes.c_int64 * 3)()
_lock = threading.Lock()


@functools.cache
def setting() -> tuple[Any, Any] | None:
    """The functions that get and set the number of threads, or None when BLAS is not an OpenBLAS that we know."""
    found = openblas()
    if found is None:
        return None
    library, prefix = found
    get = getattr(library, f"{prefix}openblas_get_num_threads", None)
    put = getattr(library, f"{prefix}openblas_set_num_threads", None)
    return (get, put) if get is not None and put is not None else None


@contextmanager
def _alone() -> Iterator[None]:
    with _lock:
        gate[BUSY] = 1
        yield
        gate[BUSY] = 0


def begin(threads: int) -> None:
    """BLAS has so many threads until `end`, which follows in any case."""
    steady.__enter__()
    found = setting()
    with _alone():
        if gate[USERS] == 0 and found is not None:  # another BLAS may have threads as well
            gate[BEFORE] = found[0]()
            if gate[BEFORE] != threads:
                found[1](threads)
        gate[USERS] += 1


def end() -> None:
    _one_less()
    steady.__exit__(None, None, None)


def end_native() -> None:
    """Of what a native entry has begun itself."""
    _one_less()
    steady.leave_native()


def _one_less() -> None:
    found = setting()
    with _alone():
        gate[USERS] -= 1
        if gate[USERS] == 0 and found is not None and found[0]() != gate[BEFORE]:
            found[1](gate[BEFORE])


def _in_child() -> None:
    global _lock
    _lock = threading.Lock()
    found = setting() if gate[USERS] else None
    gate[BUSY] = gate[USERS] = 0
    if found is not None and found[0]() != gate[BEFORE]:
        found[1](gate[BEFORE])


if hasattr(os, "register_at_fork"):
    os.register_at_fork(after_in_child=_in_child)
