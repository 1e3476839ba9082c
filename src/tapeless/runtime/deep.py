"""Room for deep recursion: the compiler walks trees, and a program may be nested deeper than Python's usual limit.

`with_room` takes a function of no arguments and runs it; only when it hits the limit does it run again, in a thread of
its own with a large stack and a higher limit. What still does not fit raises RecursionError.
"""

from __future__ import annotations

import sys
import threading
from collections.abc import Callable
from typing import TypeVar

STACK = 512 * 2**20  # bytes of address space; memory is used as far as the recursion goes
LIMIT = 25_000  # frames
_one_at_a_time = threading.Lock()  # limit and stack size belong to the process

T = TypeVar("T")


def with_room(run: Callable[[], T]) -> T:
    try:
        return run()
    except RecursionError:
        pass
    done: list[T] = []
    failed: list[BaseException] = []

    def again() -> None:
        try:
            done.append(run())
        except BaseException as problem:
            failed.append(problem)

    with _one_at_a_time:
        limit, size = sys.getrecursionlimit(), threading.stack_size(STACK)
        try:
            sys.setrecursionlimit(max(limit, LIMIT))
            thread = threading.Thread(target=again, name="tapeless compiler", daemon=True)
            thread.start()
            thread.join()
        finally:
            sys.setrecursionlimit(limit)
            threading.stack_size(size)
    if failed:
        raise failed[0]
    return done[0]
