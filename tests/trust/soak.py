"""The long form of the tests of leaks, forks and signals: `make soak`.

Prints a line for each thing with the memory that it left behind; ends with 1 if any is too much. SOAK=0.1 does a tenth.
"""

import os
import signal
import sys
import tempfile
import threading
import time
from collections.abc import Callable

import numpy as np

import tapeless as tp
from tests.trust import leaks

MB = 2**20
SHARE = float(os.environ.get("SOAK", "1"))

THINGS: tuple[tuple[str, Callable[[], Callable[[], object]], int, float], ...] = (
    ("lengths", leaks.lengths, 100_000, 2.0),
    ("fresh transforms", leaks.transforms, 10_000, 2.0),
    ("functions made and dropped", leaks.functions, 2_000, 8.0),
    ("closures and rules of derivatives", leaks.closures, 200, 4.0),
)


def flat(name: str, work: Callable[[], Callable[[], object]], count: int, most: float) -> bool:
    """Whether memory stays within `most` MB."""
    count = max(10, int(count * SHARE))
    start = time.perf_counter()
    grown = leaks.grown(work(), count // 10 + 50, count) / MB
    taken = time.perf_counter() - start
    good = grown < most
    print(f"{name:36}{count:8}  {grown:8.1f} MB{taken:8.1f} s  {'' if good else 'grows'}", flush=True)
    return good


def forks() -> bool:
    """Children forked while another thread compiles and runs."""
    count, done = max(5, int(200 * SHARE)), []
    step = leaks.functions()

    def work() -> None:
        while not done:
            step()

    thread = threading.Thread(target=work, daemon=True)
    thread.start()
    start, bad = time.perf_counter(), 0
    for _ in range(count):
        child = os.fork()
        if child == 0:
            signal.alarm(60)
            status = 1
            try:
                leaks.functions()()
                status = 0
            finally:
                os._exit(status)
        bad += os.waitpid(child, 0)[1] != 0
    done.append(True)
    thread.join(60)
    bad += thread.is_alive()
    print(f"{'forks':36}{count:8}  {bad:8} bad{time.perf_counter() - start:7.1f} s", flush=True)
    return not bad


def signals() -> bool:
    """Signals that arrive while functions are compiled and run; handlers run, and nothing else happens."""
    count, seen = max(20, int(2_000 * SHARE)), [0]

    def arrived(*_: object) -> None:
        seen[0] += 1

    usual = signal.signal(signal.SIGALRM, arrived)
    start, step, x = time.perf_counter(), leaks.functions(cache=True), np.ones(3)
    signal.setitimer(signal.ITIMER_REAL, 0.001, 0.001)
    try:
        for k in range(count):
            assert tp.grad(leaks.norm)(x, x)[0] == 1.0
            if k % 50 == 0:
                step()
    finally:
        signal.setitimer(signal.ITIMER_REAL, 0.0)
        signal.signal(signal.SIGALRM, usual)
    print(f"{'signals':36}{seen[0]:8}  {0:8} bad{time.perf_counter() - start:7.1f} s", flush=True)
    return seen[0] > 0


def main() -> int:
    with tempfile.TemporaryDirectory() as folder:
        os.environ["TAPELESS_CACHE_DIR"] = folder
        good = [flat(*thing) for thing in THINGS]
        return 0 if all([*good, forks(), signals()]) else 1


if __name__ == "__main__":
    sys.exit(main())
