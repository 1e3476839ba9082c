"""How many threads BLAS may use while compiled code runs.

Compiled code parallelises around its calls of BLAS, so inside a parallel region BLAS must stay on one thread. OpenBLAS
only has a setting for the whole process: the first call that needs another number sets it, the last one to end puts the
old one back. A forked child has no such calls, whatever other threads were doing.

Note [Forks and BLAS]
OpenBLAS ends its threads before a fork; a call that waits for one of them then waits for ever, in the parent. So forks
wait for calls of compiled code that use BLAS.
"""

from __future__ import annotations

import functools
import os
import threading
from typing import Any

from tapeless.backends.cpu.libraries import openblas
from tapeless.runtime.forks import steady

_lock = threading.Lock()
_users = 0
_before = 0


@functools.cache
def _setting() -> tuple[Any, Any] | None:
    """The functions that get and set the number of threads, or None when BLAS is not an OpenBLAS that we know."""
    found = openblas()
    if found is None:
        return None
    library, prefix = found
    get = getattr(library, f"{prefix}openblas_get_num_threads", None)
    put = getattr(library, f"{prefix}openblas_set_num_threads", None)
    return (get, put) if get is not None and put is not None else None


def begin(threads: int) -> None:
    """BLAS has so many threads until `end`, which follows in any case."""
    global _users, _before
    steady.__enter__()
    found = _setting()
    with _lock:
        if _users == 0 and found is not None:  # another BLAS may have threads as well
            _before = found[0]()
            if _before != threads:
                found[1](threads)
        _users += 1


def end() -> None:
    global _users
    found = _setting()
    with _lock:
        _users -= 1
        if _users == 0 and found is not None and found[0]() != _before:
            found[1](_before)
    steady.__exit__(None, None, None)


def _in_child() -> None:
    global _lock, _users
    _lock = threading.Lock()
    found = _setting() if _users else None
    _users = 0
    if found is not None and found[0]() != _before:
        found[1](_before)


if hasattr(os, "register_at_fork"):
    os.register_at_fork(after_in_child=_in_child)
