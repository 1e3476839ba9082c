"""What the compiler is at, for people who wait: a line on the screen when it takes long, and a log.

`Line` is what people see. On a terminal or in a notebook it is on stderr from `PATIENCE` seconds on, and gone when the
work is done; of several at once, one is. `TAPELESS_PROGRESS=0` turns lines off; where stderr is a pipe or a file there
never is one. `Work` is one compilation. It tells how long each stage took, in `times` and to the logger `tapeless` (the
whole at INFO, passes at DEBUG); what comes from the cache is "found".
"""

from __future__ import annotations

import logging
import os
import sys
import threading
import time
from abc import ABC, abstractmethod
from collections.abc import Iterator
from contextlib import contextmanager
from types import TracebackType
from typing import Self

log = logging.getLogger("tapeless")

PATIENCE = 1.0  # seconds that nobody minds
REFRESH = 0.1
STAGES = {
    "trace": "reading and differentiating",
    "passes": "simplifying",
    "lower": "making loops",
    "native": "making machine code",
}


_screen = threading.Lock()  # held by the line that is shown


class Line(ABC):
    """Shows its text as long as it is entered."""

    def __init__(self) -> None:
        self._start = time.perf_counter()
        self._done = threading.Event()
        self._watcher: threading.Thread | None = None

    def __enter__(self) -> Self:
        if on_screen():
            self._watcher = threading.Thread(target=self._watch, name="tapeless progress", daemon=True)
            self._watcher.start()
        return self

    def __exit__(
        self, kind: type[BaseException] | None, problem: BaseException | None, trace: TracebackType | None
    ) -> None:
        self._done.set()
        if self._watcher is not None:
            self._watcher.join()

    @property
    def elapsed(self) -> float:
        return time.perf_counter() - self._start

    @abstractmethod
    def text(self) -> str: ...

    def _watch(self) -> None:
        if self._done.wait(PATIENCE):
            return
        while not _screen.acquire(blocking=False):
            if self._done.wait(REFRESH):
                return
        try:
            self._show()
        finally:
            _screen.release()

    def _show(self) -> None:
        if not sys.stderr.isatty():  # a notebook
            self._show_plainly()
            return
        from rich.console import Console  # takes as long as a small compilation
        from rich.text import Text  # so does this

        with Console(stderr=True).status(Text(self.text())) as line:
            while not self._done.wait(REFRESH):
                line.update(Text(self.text()))

    def _show_plainly(self) -> None:
        width = 0
        while True:
            text = self.text()
            print(f"\r{text.ljust(width)}", end="", file=sys.stderr, flush=True)
            width = len(text)
            if self._done.wait(1.0):
                break
        print(f"\r{' ' * width}\r", end="", file=sys.stderr, flush=True)


class Work(Line):
    def __init__(self, name: str) -> None:
        super().__init__()
        self.name, self.times, self.stage = name, dict[str, float](), "trace"
        self.parts = self.parts_done = 0

    def __exit__(
        self, kind: type[BaseException] | None, problem: BaseException | None, trace: TracebackType | None
    ) -> None:
        super().__exit__(kind, problem, trace)
        if kind is None and log.isEnabledFor(logging.INFO):
            longest = sorted(self.times.items(), key=lambda item: -item[1])[:4]
            shares = ", ".join(f"{name} {seconds:.2f}" for name, seconds in longest)
            done = "compiled" if "codegen" in self.times else "found"
            log.info("%s '%s' in %.2f s (%s)", done, self.name, self.elapsed, shares)

    @contextmanager
    def at(self, stage: str, record: bool = True) -> Iterator[None]:
        """Its seconds are recorded, unless those inside record theirs."""
        if stage in STAGES:
            self.stage, self.parts = stage, 0
        start = time.perf_counter()
        yield
        if record:
            self.times[stage] = self.times.get(stage, 0.0) + time.perf_counter() - start

    def expect(self, parts: int) -> None:
        """The stage has parts, which `part_done` counts."""
        self.parts, self.parts_done = parts, 0

    def part_done(self) -> None:
        self.parts_done += 1

    def text(self) -> str:
        step = list(STAGES).index(self.stage) + 1
        parts = f", {self.parts_done} of {self.parts} parts" if self.parts > 1 else ""
        return (
            f"compiling {self.name}: {STAGES[self.stage]}{parts} (step {step} of {len(STAGES)}), {self.elapsed:.0f} s"
        )


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
