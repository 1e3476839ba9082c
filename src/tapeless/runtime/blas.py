"""How many threads BLAS may use while compiled code runs.

Compiled code parallelises around its calls of BLAS, so inside a parallel region BLAS must stay on one thread. OpenBLAS
only has a
setting for the whole process: the first call that needs another number sets it, the last one to end puts the old one
back.
"""

from __future__ import annotations

import ctypes
import functools
import threading
from collections.abc import Iterator
from contextlib import contextmanager
from pathlib import Path
from typing import Any

_lock = threading.Lock()
_users = 0
_before = 0


@functools.cache
def _library() -> tuple[Any, Any] | None:
    """The functions that get and set the number of threads, or None when BLAS is not an OpenBLAS that we know."""
    import scipy

    folders = [Path(scipy.__file__).parent.parent / "scipy.libs", Path(scipy.__file__).parent / ".libs"]
    for path in [p for folder in folders if folder.is_dir() for p in sorted(folder.glob("*openblas*"))]:
        try:
            library = ctypes.CDLL(str(path))
        except OSError:
            continue
        for prefix in ("scipy_openblas", "openblas"):
            get = getattr(library, f"{prefix}_get_num_threads", None)
            put = getattr(library, f"{prefix}_set_num_threads", None)
            if get is not None and put is not None:
                return get, put
    return None


@contextmanager
def limited(threads: int) -> Iterator[None]:
    global _users, _before
    found = _library()
    if found is None:
        yield
        return
    get, put = found
    with _lock:
        if _users == 0:
            _before = get()
            if _before != threads:
                put(threads)
        _users += 1
    try:
        yield
    finally:
        with _lock:
            _users -= 1
            if _users == 0 and get() != _before:
                put(_before)
