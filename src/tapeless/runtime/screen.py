"""Lines on the screen for people who wait: one at a time, on stderr, gone when the work is done.

A `Line` says its text as long as it is entered. On a terminal or in a notebook it is shown from `PATIENCE` seconds on; of
several, the one that was entered first. `TAPELESS_PROGRESS=0` turns lines off; where stderr is a pipe or a file there
never is one.
"""

from __future__ import annotations

import contextlib
import os
import sys
import threading
import time
from abc import ABC, abstractmethod
from types import TracebackType
from typing import Self

PATIENCE = 1.0  # seconds that nobody minds
REFRESH = 0.1


class Line(ABC):
    def __init__(self) -> None:
        self._start = time.perf_counter()
        self._watched = False
        self.closing: threading.Event | None = None  # once it is shown
        self.gone: threading.Event | None = None

    def __enter__(self) -> Self:
        if on_screen():
            self._watched = True
            _watcher.open(self)
        return self

    def __exit__(
        self, kind: type[BaseException] | None, problem: BaseException | None, trace: TracebackType | None
    ) -> None:
        if self._watched:
            _watcher.close(self)

    @property
    def elapsed(self) -> float:
        return time.perf_counter() - self._start

    @abstractmethod
    def text(self) -> str: ...


class _Watcher:
    """A thread that shows lines. It stays for a while after the last one, so that many short calls start few threads."""

    def __init__(self) -> None:
        self.begin()

    def begin(self) -> None:
        """In a process, or a forked child of one."""
        self._lock = threading.RLock()  # a signal handler may open lines too
        self._lines: list[Line] = []  # that are not shown yet, in order
        self._thread: threading.Thread | None = None

    def open(self, line: Line) -> None:
        with self._lock:
            self._lines.append(line)
            if self._thread is None:
                self._thread = threading.Thread(target=self._run, name="tapeless progress", daemon=True)
                self._thread.start()

    def close(self, line: Line) -> None:
        with self._lock:
            if line in self._lines:
                self._lines.remove(line)
        if line.closing is None or line.gone is None:
            return
        line.closing.set()
        while not line.gone.wait(REFRESH) and self._thread is not None:  # a forked child has no such thread
            pass

    def _run(self) -> None:
        last = time.perf_counter()
        while True:
            with self._lock:
                if self._lines:
                    last = time.perf_counter()
                elif time.perf_counter() - last > PATIENCE:
                    self._thread = None
                    return
                line = self._take()
            if line is None:
                time.sleep(min(REFRESH, PATIENCE or REFRESH))
                continue
            closing, gone = line.closing, line.gone
            assert closing is not None and gone is not None
            with contextlib.suppress(OSError, ValueError):  # stderr has been closed
                _show(line, closing)
            gone.set()

    def _take(self) -> Line | None:
        """The first line that has been open for long."""
        line = next((line for line in self._lines if line.elapsed >= PATIENCE), None)
        if line is not None:
            self._lines.remove(line)
            line.gone, line.closing = threading.Event(), threading.Event()
        return line


_watcher = _Watcher()
os.register_at_fork(after_in_child=_watcher.begin)


def _show(line: Line, closing: threading.Event) -> None:
    if not sys.stderr.isatty():  # a notebook
        _show_plainly(line, closing)
        return
    from rich.console import Console  # takes as long as a small compilation
    from rich.text import Text  # so does this

    with Console(stderr=True).status(Text(line.text())) as status:
        while not closing.wait(REFRESH):
            status.update(Text(line.text()))


def _show_plainly(line: Line, closing: threading.Event) -> None:
    width = 0
    while True:
        text = line.text()
        print(f"\r{text.ljust(width)}", end="", file=sys.stderr, flush=True)
        width = len(text)
        if closing.wait(1.0):
            break
    print(f"\r{' ' * width}\r", end="", file=sys.stderr, flush=True)


def on_screen() -> bool:
    """Whether somebody can see a line come and go."""
    if os.environ.get("TAPELESS_PROGRESS") == "0":
        return False
    try:
        return sys.stderr.isatty() or _in_notebook()
    except (AttributeError, ValueError):  # there is no stderr, or it is closed
        return False


def _in_notebook() -> bool:
    ipython = sys.modules.get("IPython")
    shell = ipython.get_ipython() if ipython is not None else None
    return type(shell).__name__ == "ZMQInteractiveShell"
