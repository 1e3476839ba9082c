"""Forks wait until nobody compiles, nor runs what cannot be forked.

A child has only the thread that forked. Locks that another thread held would stay taken in it for ever: Python's, when
it imports a module, ours, LLVM's. So a fork waits for the threads that are inside `steady`, and then for LLVM itself,
which finalizers may enter at any time. It waits at most `PATIENCE` seconds in all: a thread may wait for the one that
forks.
"""

from __future__ import annotations

import concurrent.futures.thread
import ctypes
import logging
import os
import threading
import time
from types import TracebackType
from typing import Any

from llvmlite.binding import ffi

PATIENCE = 60.0  # seconds: a compilation may wait for a module that the forking thread imports
# These have handlers of forks: what is imported while a fork waits would have only those run that come after it.
HANDLERS = (logging, concurrent.futures.thread)


FORKS, NATIVE = range(2)  # forks that wait; machine code that has entered by itself


class _Steady:
    """Machine code may add itself to `counts` with the interpreter's lock in its hands, where no fork waits."""

    def __init__(self) -> None:
        self.changed = threading.Condition()
        self.inside: dict[int, int] = {}  # by thread, how deep
        self.counts = (ctypes.c_int64 * 2)()
        self.holds_llvm = False

    @property
    def forks(self) -> int:
        """That wait: nobody else may enter."""
        return self.counts[FORKS]

    def __enter__(self) -> None:
        """Says so first, and looks for forks then: one of the two sees the other."""
        me = threading.get_ident()
        depth = self.inside[me] = self.inside.get(me, 0) + 1
        if self.forks and depth == 1:
            self._wait(me)

    def _wait(self, me: int) -> None:
        with self.changed:
            del self.inside[me]
            self.changed.notify_all()
            self.changed.wait_for(lambda: not self.forks, PATIENCE)
            self.inside[me] = 1

    def __exit__(
        self, kind: type[BaseException] | None, problem: BaseException | None, trace: TracebackType | None
    ) -> None:
        me = threading.get_ident()
        depth = self.inside[me] - 1
        if depth:
            self.inside[me] = depth
            return
        del self.inside[me]
        if self.forks:
            with self.changed:
                self.changed.notify_all()

    def leave_native(self) -> None:
        """For machine code that had entered, where a fork may wait for it."""
        with self.changed:
            self.counts[NATIVE] -= 1
            self.changed.notify_all()

    def before_fork(self) -> None:
        me, start = threading.get_ident(), time.monotonic()
        self.changed.acquire()
        self.counts[FORKS] += 1
        self.changed.wait_for(lambda: self.inside.keys() <= {me} and not self.counts[NATIVE], PATIENCE)
        left = PATIENCE - (time.monotonic() - start)
        self.holds_llvm = _llvm().acquire(timeout=max(0.0, left))

    def _release_llvm(self) -> None:
        if self.holds_llvm:
            self.holds_llvm = False
            _llvm().release()

    def in_parent(self) -> None:
        self._release_llvm()
        self.counts[FORKS] -= 1
        self.changed.notify_all()
        self.changed.release()

    def in_child(self) -> None:
        self._release_llvm()
        mine = self.inside.get(threading.get_ident(), 0)
        self.changed = threading.Condition()
        self.counts[FORKS] = self.counts[NATIVE] = 0
        self.inside = {threading.get_ident(): mine} if mine else {}


def _llvm() -> Any:
    """The lock around each call of LLVM."""
    return ffi.lib._lock._lock


steady = _Steady()
if hasattr(os, "register_at_fork"):
    os.register_at_fork(before=steady.before_fork, after_in_parent=steady.in_parent, after_in_child=steady.in_child)
