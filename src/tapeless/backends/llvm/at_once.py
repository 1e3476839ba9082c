"""Work for LLVM on all cores."""

from __future__ import annotations

import os
import threading
from collections.abc import Callable, Sequence
from typing import TypeVar

T = TypeVar("T")
R = TypeVar("R")


def cores() -> int:
    """Those that this process may use."""
    return len(os.sched_getaffinity(0)) if hasattr(os, "sched_getaffinity") else os.cpu_count() or 1


def at_once(work: Callable[[T], R], items: Sequence[T]) -> list[R]:
    """`work` of each item, in their order. The caller's thread takes part; the others are gone when it is done: a forked
    child would not have them.
    """
    results: dict[int, R] = {}
    problems: list[BaseException] = []
    left = iter(range(len(items)))

    def take() -> None:
        try:
            for k in left:  # one step of a range's iterator is atomic
                results[k] = work(items[k])
        except BaseException as problem:
            problems.append(problem)

    threads = [threading.Thread(target=take) for _ in range(min(cores(), len(items)) - 1)]
    for thread in threads:
        thread.start()
    take()
    for thread in threads:
        thread.join()
    if problems:
        raise problems[0]
    return [results[k] for k in range(len(items))]
