"""Work for LLVM on all cores."""

from __future__ import annotations

import os
import threading
from collections.abc import Callable, Iterable
from queue import SimpleQueue
from types import TracebackType
from typing import Generic, TypeVar

T = TypeVar("T")
R = TypeVar("R")


def cores() -> int:
    """Those that this process may use."""
    return len(os.sched_getaffinity(0)) if hasattr(os, "sched_getaffinity") else os.cpu_count() or 1


class AtOnce(Generic[T, R]):
    """`work` of each item, in the order in which they come. Other threads begin with those that are `put`, while the
    caller makes more; `results` has the caller take part. The threads are gone at the end of the `with` block: a forked
    child would not have them.
    """

    def __init__(self, work: Callable[[T], R]) -> None:
        self._work = work
        self._left: SimpleQueue[tuple[int, T] | None] = SimpleQueue()  # None: there is no more
        self.count = 0
        self._threads: list[threading.Thread] = []
        self._results: dict[int, R] = {}
        self._problems: list[BaseException] = []

    def __enter__(self) -> AtOnce[T, R]:
        return self

    def put(self, item: T) -> None:
        self._queue(item)
        self._start(min(cores() - 1, self.count))

    def results(self, items: Iterable[T] = ()) -> list[R]:
        """Of all of them, once these have been added."""
        for item in items:
            self._queue(item)
        self._start(min(cores(), self._left.qsize()) - 1)
        self._finish()
        if self._problems:
            raise self._problems[0]
        return [self._results[k] for k in range(self.count)]

    def __exit__(
        self, kind: type[BaseException] | None, problem: BaseException | None, trace: TracebackType | None
    ) -> None:
        if problem is not None:
            self._problems.append(problem)  # nobody begins with anything
        self._finish()

    def _queue(self, item: T) -> None:
        self._left.put((self.count, item))
        self.count += 1

    def _start(self, threads: int) -> None:
        while len(self._threads) < threads:
            thread = threading.Thread(target=self._take)
            thread.start()
            self._threads.append(thread)

    def _finish(self) -> None:
        for _ in range(len(self._threads) + 1):
            self._left.put(None)
        self._take()
        for thread in self._threads:
            thread.join()
        self._threads = []

    def _take(self) -> None:
        while (found := self._left.get()) is not None:
            if self._problems:
                continue
            k, item = found
            try:
                self._results[k] = self._work(item)
            except BaseException as problem:
                self._problems.append(problem)
