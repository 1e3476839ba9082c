"""Python's garbage collector rests while a program is compiled.

The compiler makes millions of small objects, nearly all of which go by themselves when nobody refers to them; the
collector would look through everything that the process holds again and again. `resting` takes nothing and is entered
around a compilation. The setting belongs to the process: whoever enters first notes it, and the last one puts it back.
"""

from __future__ import annotations

import gc
import threading
from collections.abc import Iterator
from contextlib import contextmanager

_lock = threading.Lock()
_inside = 0
_enabled = False


@contextmanager
def resting() -> Iterator[None]:
    global _inside, _enabled
    with _lock:
        if not _inside:
            _enabled = gc.isenabled()
            gc.disable()
        _inside += 1
    try:
        yield
    finally:
        with _lock:
            _inside -= 1
            if not _inside and _enabled:
                gc.enable()
