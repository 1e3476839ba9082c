"""Memory and time of gradients, for each plan of six programs: what `explain` predicts, and what is measured.

    python -m benchmarks.memory [--only NAMES] [--quick] [--write] [--plots]

Every plan runs in processes of its own, compiled and warmed up on a tiny problem first, on one thread. Measured bytes
are counted in the allocator (`c/heap.c`), while no freed buffers are kept for reuse; `resident` is what the system saw, in
another process, without that allocator.
What fails is shown as "-" and explained at the end. The exit status is 1 for that, for a prediction that is off by more
than 10 % (and more than a page), and for a bar that is missed.
"""

import argparse
import contextlib
import ctypes
import gc
import io
import json
import os
import shlex
import subprocess
import sys
from collections.abc import Sequence
from dataclasses import dataclass
from functools import partial
from pathlib import Path
from time import perf_counter
from typing import Any

from rich.console import Console

from benchmarks import native, report
from benchmarks.contest import Failures
from benchmarks.memory_programs import BY_NAME, PROGRAMS, Plan, Program
from benchmarks.timing import OtherProcesses

RESULTS = Path(__file__).parent / "RESULTS_MEMORY.md"
IMAGES = Path(__file__).parent.parent / "docs" / "images"
ROOT = Path(__file__).parent.parent
TOLERANCE, PAGE = 0.1, 4096

NOTES = (
    "Each plan in a fresh process, compiled and warmed up on a tiny problem, one thread. Arguments do not count; the "
    "gradient that is returned does.",
    "`kept` is what the plan keeps for the backward pass, `predicted` all arrays at the peak; both are what `explain` says "
    "before the call (a `-`: not known before it runs).",
    "`measured` is the peak of the heap in a call, counted in the allocator; `resident` is what the system gave "
    "the process, which comes in pages.",
    "`/ store` is the time over that of the program's first plan.",
)


@dataclass(frozen=True)
class Measured:
    """Bytes and seconds of one plan."""

    plan: str
    kept: int | None
    predicted: int | None
    measured: int
    resident: int | None
    seconds: float

    @property
    def off(self) -> float | None:
        """The prediction over what was measured, less 1."""
        return None if self.predicted is None or not self.measured else self.predicted / self.measured - 1.0

    @property
    def predicted_well(self) -> bool:
        off = self.off
        return off is None or abs(off) <= TOLERANCE or abs((self.predicted or 0) - self.measured) <= PAGE


def plan_text(plan: Plan) -> str:
    return ", ".join(f'{k}="{v}"' for k, v in plan.items()) or "as it comes"


# -- in processes of their own


def counted_here(program: Program, number: int) -> dict[str, int]:
    """Bytes on top of what was allocated before, as `c/heap.c` counts them, which must have been loaded first."""
    from tapeless.backends.cpu import buffers

    gradient, args = warm(program, number)
    gradient(*args)
    buffers.keep(0)
    heap = ctypes.CDLL(None)
    heap.heap_reset.restype = heap.heap_most.restype = ctypes.c_long
    gc.collect()
    before: int = heap.heap_reset()
    gradient(*args)
    most: int = heap.heap_most()
    return {"measured": most - before}


def timed_here(program: Program, number: int, seconds: float) -> dict[str, Any]:
    from tapeless.backends.cpu import buffers
    from tapeless.runtime.peak import peak_of

    gradient, args = warm(program, number)
    buffers.keep(0)
    resident, best = peak_of(lambda: gradient(*args))
    buffers.keep()
    start = perf_counter()
    while perf_counter() - start < seconds:
        now = perf_counter()
        gradient(*args)
        best = min(best, perf_counter() - now)
    with contextlib.redirect_stdout(io.StringIO()):
        found = gradient.explain(*args)
    return {"kept": found.memory_bytes, "predicted": found.peak_bytes, "resident": resident, "seconds": best}


def warm(program: Program, number: int) -> tuple[Any, tuple[Any, ...]]:
    """The gradient, compiled and called with a small problem, and the arguments of the large one."""
    import tapeless as tp

    gradient = tp.grad(tp.function(program.loss, threads=1), program.argnums, **program.plans[number])
    for _ in range(3):
        gradient(*program.inputs(program.small))
    return gradient, program.inputs(program.size)


def run(what: str, program: Program, number: int, *more: float, **environment: str) -> dict[str, Any]:
    command = [sys.executable, "-m", "benchmarks.memory", "--here", what, program.name, str(number), *map(str, more)]
    done = subprocess.run(command, cwd=ROOT, capture_output=True, text=True, env={**os.environ, **environment})
    if done.returncode:
        raise RuntimeError(done.stderr.strip().splitlines()[-1] if done.stderr else f"exit status {done.returncode}")
    found: dict[str, Any] = json.loads(done.stdout.splitlines()[-1])
    return found


def measure(program: Program, number: int, seconds: float, before: Measured | None) -> Measured:
    """Once more, if there was a time before; bytes are counted only once."""
    if before is None:
        counted = run("counted", program, number, LD_PRELOAD=native.load("heap")._name)["measured"]
    else:
        counted = before.measured
    made = Measured(plan_text(program.plans[number]), measured=counted, **run("timed", program, number, seconds))
    return before if before is not None and before.seconds < made.seconds else made


def measure_all(program: Program, quick: bool, failures: Failures) -> list[Measured | None]:
    """Plans take turns, twice, so that a slow spell of the machine hits them alike; the best time counts."""
    rows: list[Measured | None] = [None] * len(program.plans)
    for _ in range(1 if quick else 2):
        for number, plan in enumerate(program.plans):
            attempt = partial(measure, program, number, 0.0 if quick else 1.0, rows[number])
            rows[number] = failures.attempt(plan_text(plan), program.name, attempt)
    return rows


# -- tables

Results = dict[str, list[Measured | None]]


def size(count: float | None) -> str | None:
    if count is None:
        return None
    for unit, factor in (("GB", 1e9), ("MB", 1e6), ("kB", 1e3)):
        if count >= factor:
            return f"{count / factor:.2f} {unit}"
    return f"{count:.0f} B"


def table(results: Results) -> report.Table:
    made = report.Table(
        "Gradients: memory and time by plan",
        [
            report.Column("program"),
            report.Column("plan"),
            *(report.Column(name) for name in ("kept", "predicted", "measured", "resident")),
            report.Column("off", "{:+.1%}", lambda x: "green" if abs(x) <= TOLERANCE else "yellow"),
            report.Column("ms", "{:.1f}"),
            report.Column("/ store", "{:.2f}"),
            report.Column("bar"),
        ],
    )
    for name, rows in results.items():
        first = rows[0]
        made.sections.append([])
        for number, (plan, row) in enumerate(zip(BY_NAME[name].plans, rows, strict=True)):
            if row is None:
                made.sections[-1].append((name, plan_text(plan), *[None] * 8))
                continue
            ratio = row.seconds / first.seconds if first else None
            sizes = map(size, (row.kept, row.predicted, row.measured, row.resident))
            made.sections[-1].append(
                (name, row.plan, *sizes, row.off, row.seconds * 1e3, ratio, bar_text(BY_NAME[name], number, rows))
            )
    return made


def bar_text(program: Program, number: int, rows: Sequence[Measured | None]) -> str | None:
    bar, row, first = program.bars.get(number), rows[number], rows[0]
    if bar is None or row is None:
        return None
    missed = row.measured > bar.memory or (first is not None and row.seconds > bar.time * first.seconds)
    wanted = f"{size(bar.memory)}" + (f", {bar.time:g} x" if bar.time < 1e9 else "")
    return f"{wanted}: {'missed' if missed else 'met'}"


def problems(results: Results) -> list[str]:
    found = []
    for name, rows in results.items():
        for number, row in enumerate(rows):
            if row is not None and not row.predicted_well:
                found.append(f"{name}, {row.plan}: predicted {size(row.predicted)}, measured {size(row.measured)}")
            if (text := bar_text(BY_NAME[name], number, rows)) and text.endswith("missed"):
                found.append(f"{name}, {row.plan if row else number}: the bar of {text}")
    return found


# -- plots


def draw(results: Results) -> None:
    """Memory against time of the plans of each program, into docs/images."""
    from matplotlib import rcParams
    from matplotlib.figure import Figure

    rcParams["svg.fonttype"], rcParams["svg.hashsalt"] = "none", "tapeless"  # small files, the same each time
    IMAGES.mkdir(exist_ok=True)
    for name, rows in results.items():
        known = sorted((row for row in rows if row is not None), key=lambda row: row.measured)
        figure = Figure(figsize=(6.4, 3.6), layout="constrained")
        axes = figure.add_subplot()
        axes.plot([row.measured for row in known], [row.seconds * 1e3 for row in known], "o", color="#2a6fbb")
        for row in known:
            at = (row.measured, row.seconds * 1e3)
            axes.annotate(row.plan, at, textcoords="offset points", xytext=(6, 6), fontsize=8)
        axes.set_xscale("symlog", linthresh=1000)  # some plans keep nothing
        axes.margins(0.3, 0.25)
        axes.set_xlim(left=-100)
        axes.set_ylim(bottom=0)
        axes.set_xlabel("peak of memory, bytes")
        axes.set_ylabel("milliseconds")
        axes.set_title(BY_NAME[name].title, fontsize=10)
        axes.grid(alpha=0.3)
        figure.savefig(IMAGES / f"memory_{name}.svg", metadata={"Date": None})


# -- the command


def parse() -> argparse.Namespace:
    names = [p.name for p in PROGRAMS]
    parser = argparse.ArgumentParser(prog="python -m benchmarks.memory", description=__doc__.split("\n")[0])
    parser.add_argument("--only", metavar="NAMES", help=f"of {','.join(names)}")
    parser.add_argument("--quick", action="store_true", help="one timed call each")
    parser.add_argument("--write", action="store_true", help=f"write {RESULTS.name} too")
    parser.add_argument("--plots", action="store_true", help="draw docs/images/memory_*.svg too; needs Matplotlib")
    parser.add_argument("--here", nargs="+", help=argparse.SUPPRESS)
    options = parser.parse_args()
    options.only = options.only.split(",") if options.only else names
    if unknown := set(options.only) - set(names):
        parser.error(f"no such program: {', '.join(sorted(unknown))}")
    return options


def main() -> int:
    options = parse()
    if options.here:
        what, name, number, *more = options.here
        here = counted_here if what == "counted" else timed_here
        print(json.dumps(here(BY_NAME[name], int(number), *map(float, more))))
        return 0
    console, failures, others = Console(width=None if sys.stdout.isatty() else 150), Failures(), OtherProcesses()
    results: Results = {}
    with console.status("") as status:
        for program in (p for p in PROGRAMS if p.name in options.only):
            status.update(f"{program.name}: {program.title}")
            results[program.name] = measure_all(program, options.quick, failures)
    tables = [table(results)]
    busy = f"Other processes took {others.share():.0%} of the machine's time meanwhile."
    report.show(console, tables)
    console.print(busy, highlight=False)
    wrong = problems(results)
    for line in wrong:
        console.print(line, style="red", highlight=False)
    if options.write:
        legend = [f"`{name}`: {BY_NAME[name].title}" for name in results]
        command = shlex.join(["python", "-m", "benchmarks.memory", *sys.argv[1:]])
        RESULTS.write_text(report.page(command, tables, (*NOTES, busy, *legend), []))
    if options.plots:
        draw(results)
    failures.show(console)
    return 1 if failures.places or wrong else 0


if __name__ == "__main__":
    sys.exit(main())
