"""Room for another object: how many mappings of memory this process has, and how many it may have (Linux).

Past that number LLVM ends the process. `make_room` is called before each object that is loaded; raises MemoryError
where there is no room. Counting them takes a while in a process with many, so it is done now and then.
"""

from __future__ import annotations

import gc
import itertools
from collections.abc import Callable
from pathlib import Path

OFTEN = 256  # objects between two looks
MARGIN = 16 * OFTEN  # mappings that must be left: more than so many objects take
_objects = itertools.count(1)


def make_room(unload: Callable[[], None]) -> None:
    """`unload` gives back what nobody uses."""
    unload()
    if next(_objects) % OFTEN:
        return
    most = allowed() - MARGIN
    if used() <= most:
        return
    gc.collect()
    unload()
    if used() > most:
        raise MemoryError(
            f"this process holds so many compiled functions that its memory has {used()} mappings, and {allowed()} are allowed;"
            " let go of functions that are not needed any more"
        )


def used() -> int:
    try:
        with Path("/proc/self/maps").open("rb") as lines:
            return sum(1 for _ in lines)
    except OSError:
        return 0


def allowed() -> int:
    try:
        return int(Path("/proc/sys/vm/max_map_count").read_text())
    except (OSError, ValueError):
        return 2**31
