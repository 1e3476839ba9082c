"""The memory that a call takes at its peak, as the system sees it: for plots and benchmarks.

`peak_of` runs something and gives the bytes that came on top of what was there, and the seconds. What compiled code and
the C library hold in reserve goes back to the system first, so that it shows when it is used again. Pages are what is
counted: a few thousand bytes may not show. Linux only; elsewhere the bytes are None.
"""

from __future__ import annotations

import contextlib
import ctypes
import gc
import time
from collections.abc import Callable
from pathlib import Path
from typing import Any

from tapeless.backends.cpu import buffers

STATUS, RESET = Path("/proc/self/status"), Path("/proc/self/clear_refs")


def peak_of(run: Callable[[], Any]) -> tuple[int | None, float]:
    gc.collect()
    _give_back()
    before = _reset()
    start = time.perf_counter()
    run()
    seconds = time.perf_counter() - start
    return None if before is None else max(0, _read("VmHWM") - before), seconds


def _give_back() -> None:
    buffers.trim()
    with contextlib.suppress(AttributeError):  # not the GNU library
        ctypes.CDLL(None).malloc_trim(0)


def _reset() -> int | None:
    """Makes the peak what is there now; that, in bytes."""
    try:
        RESET.write_text("5")
        return _read("VmRSS")
    except OSError:
        return None


def _read(name: str) -> int:
    for line in STATUS.read_text().splitlines():
        if line.startswith(f"{name}:"):
            return 1024 * int(line.split()[1])
    raise OSError(f"{STATUS} has no {name}")
