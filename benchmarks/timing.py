"""Timing side by side: runners take turns in short slots, and each keeps its fastest call.

Turns make a slow spell of the machine hit everyone alike; the fastest call is the one least disturbed.
"""

import ctypes
import math
import os
import sys
from collections.abc import Callable, Iterable, Sequence
from dataclasses import dataclass
from functools import cache
from importlib.util import find_spec
from pathlib import Path
from time import perf_counter
from typing import Any


@dataclass
class Runner:
    """One implementation at one number of threads, and the best time of a call so far, in seconds."""

    label: str
    threads: int
    call: Callable[..., Any]
    best: float = math.inf
    spent: float = 0.0
    clock: Callable[[], float] = perf_counter

    def run(self, args: Sequence[Any]) -> Any:
        set_threads(self.threads)
        return self.call(*args)

    def turn(self, args: Sequence[Any], slot: float) -> None:
        """Call again and again for `slot` seconds, at least once."""
        set_threads(self.threads)
        call, clock = self.call, self.clock
        end = clock() + slot
        while True:
            start = clock()
            call(*args)
            stop = clock()
            self.best = min(self.best, stop - start)
            self.spent += stop - start
            if stop >= end:
                return

    def close(self) -> None:
        """No more turns."""


def race(runners: Sequence[Runner], args: Sequence[Any], *, rounds: int, budget: float) -> None:
    """Give each runner `rounds` turns; one whose `budget` of seconds is spent sits the others out."""
    for _ in range(rounds):
        for runner in runners:
            if runner.spent < budget:
                runner.turn(args, budget / rounds)


class OtherProcesses:
    """How much of the machine others use: numbers of a busy machine, above all for several threads, mean little."""

    def __init__(self) -> None:
        self.start = self._clocks()

    @staticmethod
    def _clocks() -> tuple[float, float]:
        """Seconds that all cores have had, and those of them that neither were idle nor ours."""
        with open("/proc/stat") as stat:
            user, nice, system, idle, wait, irq, soft, steal = map(int, stat.readline().split()[1:9])
        busy = (user + nice + system + irq + soft + steal) / os.sysconf("SC_CLK_TCK")
        unused = (idle + wait) / os.sysconf("SC_CLK_TCK")
        return busy + unused, busy - sum(os.times()[:4])

    def share(self) -> float:
        """The part that others took since this was made."""
        total, others = (now - then for now, then in zip(self._clocks(), self.start, strict=True))
        return max(others / total, 0.0) if total else 0.0


def geometric_mean(values: Iterable[float]) -> float | None:
    logs = [math.log(value) for value in values]
    return math.exp(sum(logs) / len(logs)) if logs else None


@cache
def _openmp() -> ctypes.CDLL:
    return ctypes.CDLL("libgomp.so.1")


@cache
def _blas_setters() -> tuple[Callable[[int], Any], ...]:
    """What sets the number of threads of the OpenBLAS copies that NumPy's and SciPy's wheels carry."""
    setters = []
    for package in ("numpy", "scipy"):
        spec = find_spec(package)
        origin = Path(spec.origin).parent if spec and spec.origin else Path()
        for library in origin.parent.glob(f"{package}.libs/libscipy_openblas*.so"):
            blas = ctypes.CDLL(str(library))
            suffix = "64_" if "openblas64_" in library.name else ""
            setters.append(getattr(blas, f"scipy_openblas_set_num_threads{suffix}"))
    return tuple(setters)


def set_threads(count: int) -> None:
    """Set the threads of OpenMP (the C references), of Numba where it is loaded, and of NumPy's and SciPy's BLAS."""
    _openmp().omp_set_num_threads(count)
    for setter in _blas_setters():
        setter(count)
    if numba := sys.modules.get("numba"):
        numba.set_num_threads(count)
