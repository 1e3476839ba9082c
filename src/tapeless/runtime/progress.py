"""How far a loop over `tp.progress` is, on the screen while it runs.

`Bar` takes two words that somebody else writes: how many iterations are done, and of how many, negative in a backward
pass. `watched` takes native code whose last argument is the record of the call, where it leaves them (`PROGRESS` in
lower/ir/loopir.py); gives a function that shows a bar meanwhile. `counted` does it for plain Python.
"""

from __future__ import annotations

import ctypes
from collections.abc import Callable, Iterator

from tapeless.lower.ir.loopir import PROGRESS
from tapeless.runtime.screen import Line, on_screen

WIDTH = 24  # characters
Words = ctypes.c_int64 * 2


class Bar(Line):
    """The time left is judged by the loop that is running: another one has another pace."""

    def __init__(self, name: str, words: list[int] | ctypes.Array[ctypes.c_int64]) -> None:
        super().__init__()
        self.name, self.words = name, words
        self._seen = (0, 0)  # what there was to do, and what was done, when it was last shown
        self._since, self._first = 0.0, 0  # when this loop was met, and how many it had done then

    def text(self) -> str:
        done, total = self.words[0], self.words[1]
        if not total:
            return f"{self.name}, {self.elapsed:.0f} s"
        way, count = ("forward", total) if total > 0 else ("backward", -total)
        done = min(max(done, 0), count)
        full = WIDTH * done // count
        bar = "━" * full + "─" * (WIDTH - full)
        return f"{self.name} {way} {bar} {done:,} of {count:,}{self._left(done, total)}"

    def _left(self, done: int, total: int) -> str:
        before, self._seen = self._seen, (total, done)
        if before[0] not in (0, total) or done < before[1]:
            self._since, self._first = self.elapsed, done
        if done == self._first:
            return ""
        pace = (self.elapsed - self._since) / (done - self._first)
        return f", {duration(pace * (abs(total) - done))} left"


def duration(seconds: float) -> str:
    whole = round(seconds)
    if whole < 60:
        return f"{whole} s"
    if whole < 3600:
        return f"{whole // 60}:{whole % 60:02} min"
    return f"{whole // 3600}:{whole // 60 % 60:02} h"


def watched(native: Callable[..., None], name: str) -> Callable[..., None]:
    def run(*arguments: int | float) -> None:
        if not on_screen():
            native(*arguments)
            return
        words = Words.from_address(int(arguments[-1]) + 8 * PROGRESS)
        words[:] = [0, 0]  # records are used again
        with Bar(name, words):
            native(*arguments)

    return run


def counted(name: str, values: range) -> Iterator[int]:
    """The values, shown as far as they have been taken."""
    words = [0, len(values)]
    with Bar(name, words):
        for words[0], value in enumerate(values):
            yield value
