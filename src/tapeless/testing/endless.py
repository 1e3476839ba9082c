"""Loops that take for ever, in many shapes: each of them must answer Ctrl-C.

    python -m tapeless.testing.endless [EVERY]

compiles each shape, runs it with a trip count of 10**12, sends SIGINT and prints how long the answer took. `EVERY`
takes each k-th shape only. What LLVM makes of a loop (vectors, interleaving, strips, nothing at all) decides where
polls go, so bodies and ways of counting are combined.
"""

from __future__ import annotations

import itertools
import os
import signal
import sys
import tempfile
import threading
import time
from collections.abc import Callable, Iterator
from pathlib import Path

import numpy as np

import tapeless as tp
from tapeless.testing.sized import function, module

COUNT = 10**12

SUMS = (  # which threads may share
    ["s += (i % 7) * 0.5"],
    ["if i % 3 == 0:", "    s += 1.0", "else:", "    s -= x"],
    ["s += a[i % 16]"],
    ["a[i & 15] += x"],
    ["s += np.sin(i * x)"],
    ["s += x / (i + 1)"],
)
RECURRENCES = (
    ["s = max(s, i * 0.5)"],
    ["s = s * 0.999 + i"],
    ["k ^= i * 5"],
    ["k = k * 3 + i"],
    ["k += 1 if a[i % 16] > s else 2"],
    ["s, t = t + 0.1, s * x"],
)

# How the loop begins; the body follows as deep as the last line says.
IN_ORDER = (
    ["for i in range(n):", "    "],
    ["for i in range(0, n, 3):", "    "],
    ["for i in range(n, 0, -1):", "    "],
    ["i = 0", "while i < n and s < 1e300:", "    i += 1", "    "],
    ["for j in range(n):", "    for i in range(n):", "        "],
    ["for j in range(n):", "    for i in range(m):", "        "],
    ["for j in range(n):", "    for i in range(16):", "        "],
)
ON_THREADS = (["for j in tp.prange(n):", "    for i in range(j, n):", "        "],)


def texts() -> Iterator[tuple[str, str]]:
    """Names and texts of modules with a function f(x, a, n, m)."""
    shapes = itertools.product(IN_ORDER, (*SUMS, *RECURRENCES)), itertools.product(ON_THREADS, SUMS)
    for (*head, indent), body in itertools.chain(*shapes):
        lines = ["s, t, k = 0.0, 1.0, 0", *head, *(indent + line for line in body), "return s + t + k + a[0]"]
        name = " ".join(line.strip() for line in (*head, *body))
        yield name, function("x, a, n, m", lines, before="import tapeless as tp\n")


def answer(run: Callable[[], object]) -> float | None:
    """Seconds from the signal to KeyboardInterrupt; None where the loop had ended before."""
    sent: list[float] = []

    def send() -> None:
        sent.append(time.perf_counter())
        os.kill(os.getpid(), signal.SIGINT)

    timer = threading.Timer(0.05, send)
    timer.start()
    try:
        run()
        timer.cancel()
        timer.join()
        return None
    except KeyboardInterrupt:
        return time.perf_counter() - sent[0]


def main(every: int) -> None:
    signal.signal(signal.SIGINT, signal.default_int_handler)
    worst = 0.0
    with tempfile.TemporaryDirectory() as folder:
        for number, (name, text) in enumerate(itertools.islice(texts(), 0, None, every)):
            f = tp.function(module(text, Path(folder) / f"loop{number}.py").f)
            a = np.linspace(0.1, 1.0, 16)
            f(0.5, a, 3, 2)
            print(f"{name:80}", end="", flush=True)
            took = answer(lambda f=f, a=a: f(0.5, a, COUNT, 2))  # type: ignore[misc]
            print("ended by itself" if took is None else f"{1e3 * took:6.0f} ms", flush=True)
            worst = max(worst, took or 0.0)
    print(f"the longest: {1e3 * worst:.0f} ms")


if __name__ == "__main__":
    main(int(sys.argv[1]) if len(sys.argv) > 1 else 1)
