"""What the compiler is at, for people who wait: a line on the screen when it takes long, and a log.

`Work` is one compilation. It tells how long each stage took, in `times` and to the logger `tapeless` (the whole at INFO,
passes at DEBUG); what comes from the cache is "found".
"""

from __future__ import annotations

import logging
import time
from collections.abc import Iterator
from contextlib import contextmanager
from types import TracebackType

from tapeless.runtime.screen import Line

log = logging.getLogger("tapeless")

STAGES = {
    "trace": "reading and differentiating",
    "passes": "simplifying",
    "lower": "making loops",
    "native": "making machine code",
}


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
            self.stage, self.parts, self.parts_done = stage, 0, 0
        start = time.perf_counter()
        yield
        if record:
            self.times[stage] = self.times.get(stage, 0.0) + time.perf_counter() - start

    def expect(self, parts: int) -> None:
        """The stage has parts, which `part_done` counts, also before it is known how many there are."""
        self.parts = parts

    def part_done(self) -> None:
        self.parts_done += 1

    def text(self) -> str:
        step = list(STAGES).index(self.stage) + 1
        parts = f", {self.parts_done} of {self.parts} parts" if self.parts > 1 else ""
        return (
            f"compiling {self.name}: {STAGES[self.stage]}{parts} (step {step} of {len(STAGES)}), {self.elapsed:.0f} s"
        )
