"""Ctrl-C waits while LLVM works.

`uninterrupted` wraps a function: a SIGINT that arrives inside is delivered when it is done. An exception in the middle
of llvmlite's bookkeeping would leave it freeing something twice.
"""

from __future__ import annotations

import functools
import signal
import threading
from collections.abc import Callable
from types import FrameType
from typing import ParamSpec, TypeVar

P = ParamSpec("P")
R = TypeVar("R")


def uninterrupted(function: Callable[P, R]) -> Callable[P, R]:
    @functools.wraps(function)
    def wrapped(*args: P.args, **kwargs: P.kwargs) -> R:
        usual = signal.getsignal(signal.SIGINT)
        # Python's handlers run in the main thread only, and other kinds raise nothing
        if threading.current_thread() is not threading.main_thread() or not callable(usual):
            return function(*args, **kwargs)
        waiting = _Waiting()
        signal.signal(signal.SIGINT, waiting)
        try:
            return function(*args, **kwargs)
        finally:
            signal.signal(signal.SIGINT, usual)
            if waiting.frame is not waiting:
                usual(signal.SIGINT, waiting.frame)  # type: ignore[arg-type]

    return wrapped


class _Waiting:
    """A handler that remembers where the signal arrived."""

    def __init__(self) -> None:
        self.frame: FrameType | _Waiting | None = self  # itself: no signal yet

    def __call__(self, number: int, frame: FrameType | None) -> None:
        self.frame = frame
