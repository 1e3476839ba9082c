"""A GPU at work: programs and their derivatives, each in a process of its own, and the cost of a launch.

    python -m benchmarks.gpu [NAME ...] [--tiny] [--limit SECONDS] [--json FILE] [--write [FILE]]

Needs a GPU and CuPy. Times are the median of several calls on arrays of the device, in milliseconds, each call waited
for; memory is the most that was in use at once beside the arguments; `compile` is the first call of the gradient without
a cache, in seconds. A program that takes longer than the limit is stopped.
"""

import argparse
import json
import multiprocessing
import shlex
import statistics
import sys
from collections.abc import Callable, Sequence
from datetime import date
from importlib import import_module
from pathlib import Path
from time import perf_counter
from typing import Any

import numpy as np
from rich.console import Console
from rich.table import Table

import tapeless as tp
from benchmarks.gpu_programs import CASES, HASHES
from benchmarks.gpu_programs.case import Case, Size
from tapeless.backends.cuda.driver import available, driver

CALLS, LAUNCHES = 10, 10_000
RESULTS = Path(__file__).parent / "RESULTS_GPU.md"
LONG, VERY_LONG = 0.5, 4.0  # seconds of a call that is timed three times, or once


def repeated(x: np.ndarray, count: int) -> np.ndarray:
    for k in range(count):
        x = np.sin(x) * 0.5 + k
    return x


def timed(run: Callable[[], Any]) -> tuple[float, Any]:
    """Median milliseconds, and the last result."""
    synchronize = import_module("cupy").cuda.Device().synchronize

    def once() -> tuple[float, Any]:
        synchronize()
        start = perf_counter()
        result = run()
        synchronize()
        return perf_counter() - start, result

    first, result = once()
    found = [first]
    for _ in range(0 if first > VERY_LONG else 2 if first > LONG else CALLS):
        del result
        seconds, result = once()
        found.append(seconds)
    return 1e3 * statistics.median(found), result


def on_device(args: tuple[Any, ...]) -> tuple[Any, ...]:
    cupy = import_module("cupy")
    return tuple(cupy.asarray(a) if isinstance(a, np.ndarray) else a for a in args)


def measured(name: str, size: Size, answer: Any) -> None:
    """Runs one case and sends what it took."""
    case = CASES[name]
    row: dict[str, Any] = {"name": name, "size": "x".join(map(str, size))}
    try:
        args = on_device(case.make(size))
        for what, f in (("value", case.value), ("gradient", case.gradient)):
            compiled = tp.function(f, device="cuda", cache=False)
            start = perf_counter()
            compiled(*args)
            driver().synchronize()
            row[f"{what} compile"] = perf_counter() - start
            driver().forget_peak()
            row[what], result = timed(lambda: compiled(*args))
            row[f"{what} memory"] = driver().peak()
            if what == "value" and name in HASHES:
                row["hash"] = int(result[1])
            del result
            answer.put(dict(row))
    except Exception as problem:  # the others go on
        row["error"] = f"{type(problem).__name__}: {str(problem).splitlines()[0][:150]}"
        answer.put(dict(row))


def in_a_process(case: Case, size: Size, limit: float) -> dict[str, Any]:
    context = multiprocessing.get_context("spawn")
    answers = context.Queue()
    process = context.Process(target=measured, args=(case.name, size, answers))
    process.start()
    process.join(limit)
    row: dict[str, Any] = {"name": case.name, "size": "x".join(map(str, size))}
    if process.is_alive():
        process.kill()
        process.join()
        row["error"] = f"longer than {limit:g} s"
    elif process.exitcode:
        row["error"] = f"ended with code {process.exitcode}"
    while not answers.empty():
        row |= answers.get()
    return row


def launch_cost() -> float:
    """Microseconds."""
    x, loop = on_device((np.linspace(0, 1, 100_000),))[0], tp.function(repeated)
    loop(x, 10)
    return 1e3 * timed(lambda: loop(x, LAUNCHES))[0] / LAUNCHES


def main() -> int:
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("names", nargs="*", choices=[[], *CASES], help="programs; all without one")
    parser.add_argument("--tiny", action="store_true", help="small sizes")
    parser.add_argument("--limit", type=float, default=120, help="seconds for a program")
    parser.add_argument("--json", help="write the rows there too")
    parser.add_argument(
        "--write",
        nargs="?",
        const=str(RESULTS),
        help="write the page but for what people wrote below its table, benchmarks/RESULTS_GPU.md without a name",
    )
    given = parser.parse_args()
    if not available():
        print("no GPU")
        return 1
    console = Console()
    table = Table("program", "size", "value", "gradient", "ratio", "memory MB", "compile s", "", title=driver().name)
    rows = []
    for case in CASES.values():
        if given.names and case.name not in given.names:
            continue
        for size in case.tiny if given.tiny else case.sizes:
            row = in_a_process(case, size, given.limit)
            rows.append(row)
            print(json.dumps(row), file=sys.stderr, flush=True)
            table.add_row(*_shown(row))
    console.print(table)
    launch = launch_cost()
    console.print(f"a launch in a loop: {launch:.2f} us")
    if given.write:
        page = Path(given.write)
        before = page.read_text(encoding="utf-8") if page.exists() else ""
        page.write_text(results(rows, launch) + "".join(before.partition("\n## ")[1:]), encoding="utf-8")
    if given.json:
        Path(given.json).write_text(json.dumps(rows, indent=1), encoding="utf-8")
    return 0


def results(rows: Sequence[dict[str, Any]], launch: float) -> str:
    """The page."""
    lines = [
        "# Benchmark results",
        "",
        f"* Command: `{shlex.join(['python', '-m', 'benchmarks.gpu', *sys.argv[1:]])}`",
        f"* GPU: {driver().name}",
        f"* Date: {date.today().isoformat()}",
        "* Milliseconds a call, the median of several, on arrays of the device; programs as users write them (benchmarks/gpu_programs).",
        "* `memory` is the most that was in use at once beside the arguments, in MB, `compile` the first call of the gradient without a cache, in seconds.",
        f"* A launch in a loop of kernels costs {launch:.1f} us.",
        "",
        "| program | size | value | gradient | ratio | memory | compile | |",
        "|---|---|--:|--:|--:|--:|--:|---|",
    ]
    return "\n".join([*lines, *(f"| {' | '.join(_shown(row))} |" for row in rows)]) + "\n"


def _shown(row: dict[str, Any]) -> list[str]:
    value, gradient = row.get("value"), row.get("gradient")
    ratio = f"{gradient / value:.1f}" if value and gradient else ""
    numbers = [f"{x:.4g}" if x is not None else "" for x in (value, gradient)]
    memory = f"{row['gradient memory'] / 1e6:.0f}" if "gradient memory" in row else ""
    compile_ = f"{row['gradient compile']:.1f}" if "gradient compile" in row else ""
    said = row.get("error", f"hash {row['hash']}" if "hash" in row else "")
    return [row["name"], row["size"], *numbers, ratio, memory, compile_, said]


if __name__ == "__main__":
    sys.exit(main())
