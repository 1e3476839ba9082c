"""Compile time of one gradient in a fresh process, without the disk cache: what its first call costs beyond a later one.

    python -m benchmarks.coarsening.compile_time NAME [--not-coarsened]

prints seconds. `measure` runs that and gives the number.
"""

import argparse
import subprocess
import sys
from pathlib import Path
from time import perf_counter

from benchmarks.coarsening.cases import cases

ROOT = Path(__file__).parent.parent.parent


def measure(name: str, *, coarsen: bool) -> float:
    flags = [] if coarsen else ["--not-coarsened"]
    command = [sys.executable, "-m", "benchmarks.coarsening.compile_time", name, *flags]
    run = subprocess.run(command, cwd=ROOT, capture_output=True, text=True)
    if run.returncode:
        raise RuntimeError(run.stderr.strip() or f"exit status {run.returncode}")
    return float(run.stdout.split()[-1])


def main() -> None:
    parser = argparse.ArgumentParser(description="compile time of one gradient in this process")
    parser.add_argument("name")
    parser.add_argument("--not-coarsened", action="store_true")
    options = parser.parse_args()

    import tapeless as tp

    case = next(case for case in cases() if case.name == options.name)
    coarsen = not options.not_coarsened
    function = tp.grad(case.program, argnums=case.argnums, threads=1, cache=False, coarsen=coarsen)
    calls = []
    for _ in range(4):
        start = perf_counter()
        function(*case.args)
        calls.append(perf_counter() - start)
    print(calls[0] - min(calls[1:]))


if __name__ == "__main__":
    main()
