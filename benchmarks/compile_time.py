"""Compile time of one workload in a fresh process: what its first call costs beyond a later one.

    python -m benchmarks.compile_time WORKLOAD [--gradient] [--cold]

prints seconds; `--gradient` is that of its loss, `--cold` leaves the disk cache aside. `measure` runs that and gives the number.
"""

import argparse
import subprocess
import sys
from collections.abc import Callable
from pathlib import Path
from time import perf_counter
from typing import Any

ROOT = Path(__file__).parent.parent


def measure(name: str, *, cold: bool, gradient: bool = False, repeat: int = 1) -> float:
    """The best of `repeat` fresh processes, in seconds."""
    flags = [*(["--gradient"] if gradient else []), *(["--cold"] if cold else [])]
    command = [sys.executable, "-m", "benchmarks.compile_time", name, *flags]
    seconds = []
    for _ in range(repeat):
        run = subprocess.run(command, cwd=ROOT, capture_output=True, text=True)
        if run.returncode:
            raise RuntimeError(run.stderr.strip() or f"exit status {run.returncode}")
        seconds.append(float(run.stdout.split()[-1]))
    return min(seconds)


def main() -> None:
    parser = argparse.ArgumentParser(description="compile time of one workload in this process")
    parser.add_argument("workload")
    parser.add_argument("--gradient", action="store_true", help="of its loss")
    parser.add_argument("--cold", action="store_true", help="without the disk cache")
    options = parser.parse_args()

    import tapeless as tp
    from benchmarks.gradients import GRADIENT_OF
    from benchmarks.workloads import BY_NAME

    function: Callable[..., Any]
    if options.gradient:
        gradient = GRADIENT_OF[options.workload]
        args = gradient.make_inputs()
        loss = tp.function(gradient.loss(), threads=1, cache=not options.cold)
        function = tp.value_and_grad(loss, argnums=gradient.argnums)
    else:
        workload = BY_NAME[options.workload]
        args = workload.make_inputs()
        function = tp.function(workload.tapeless(), threads=1, cache=not options.cold)
    calls = []
    for _ in range(4):
        start = perf_counter()
        function(*args)
        calls.append(perf_counter() - start)
    print(calls[0] - min(calls[1:]))


if __name__ == "__main__":
    main()
