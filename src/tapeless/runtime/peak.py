"""The memory that a call takes at its peak, as the system sees it: for plots and benchmarks.

`peak_of` runs something and gives the bytes that came on top of what was there, and the seconds. What compiled code and
the C library hold in reserve goes back to the system first, so that it shows when it is used again. Pages are what is
counted, and each processor has some that the system has not added up yet: less than `GRAIN` bytes may not show. Linux
only; elsewhere, and where the system does not forget an earlier peak (that of the compiler, say), the bytes are None.
"""

from __future__ import annotations

import contextlib
import ctypes
import gc
import os
import time
from collections.abc import Callable
from pathlib import Path
from typing import Any

from tapeless.backends.cpu import buffers

STATUS, RESET = Path("/proc/self/status"), Path("/proc/self/clear_refs")


PAGES = 32  # that a processor counts for itself
GRAIN = PAGES * (os.cpu_count() or 1) * os.sysconf("SC_PAGE_SIZE")


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
    """Makes the peak what is there now; that, in bytes. None if the peak stays what it was."""
    try:
        RESET.write_text("5")
        now, peak = _read("VmRSS"), _read("VmHWM")
    except OSError:
        return None
    return peak if peak <= now + GRAIN else None


def _read(name: str) -> int:
    for line in STATUS.read_text().splitlines():
        if line.startswith(f"{name}:"):
            return 1024 * int(line.split()[1])
    raise OSError(f"{STATUS} has no {name}")
