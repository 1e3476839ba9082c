"""Forks wait until nobody compiles.

A child has only the thread that forked. Locks that another thread held would stay taken in it for ever, LLVM's own included, so a
fork waits for compilations in progress, at most `PATIENCE` seconds; `steady` is entered around each.
"""

from __future__ import annotations

import os
import threading
from types import TracebackType

PATIENCE = 60.0  # seconds: a compilation may wait for a module that the forking thread imports


class _Steady:
    def __init__(self) -> None:
        self.changed = threading.Condition()
        self.inside: dict[int, int] = {}  # by thread, how deep
        self.forks = 0  # that wait: nobody else may enter

    def __enter__(self) -> None:
        me = threading.get_ident()
        with self.changed:
            if self.forks and me not in self.inside:
                self.changed.wait_for(lambda: not self.forks, PATIENCE)
            self.inside[me] = self.inside.get(me, 0) + 1

    def __exit__(
        self, kind: type[BaseException] | None, problem: BaseException | None, trace: TracebackType | None
    ) -> None:
        me = threading.get_ident()
        with self.changed:
            self.inside[me] -= 1
            if not self.inside[me]:
                del self.inside[me]
                self.changed.notify_all()

    def before_fork(self) -> None:
        me = threading.get_ident()
        self.changed.acquire()
        self.forks += 1
        self.changed.wait_for(lambda: self.inside.keys() <= {me}, PATIENCE)

    def in_parent(self) -> None:
        self.forks -= 1
        self.changed.notify_all()
        self.changed.release()

    def in_child(self) -> None:
        mine = self.inside.get(threading.get_ident(), 0)
        self.changed = threading.Condition()
        self.forks = 0
        self.inside = {threading.get_ident(): mine} if mine else {}


steady = _Steady()
if hasattr(os, "register_at_fork"):
    os.register_at_fork(before=steady.before_fork, after_in_parent=steady.in_parent, after_in_child=steady.in_child)
