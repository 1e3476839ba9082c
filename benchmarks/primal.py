"""Speed of compiled functions beside Numba, NumPy and C.

    python -m benchmarks.primal [--only NAMES] [--threads 1,2] [--quick] [--write]

All implementations are checked against C first, then timed in turns. What fails is shown as "-" and explained at the
end, and the exit status is 1.
"""

import argparse
import os
import shlex
import sys
from collections.abc import Callable, Sequence
from dataclasses import dataclass, field
from functools import partial
from pathlib import Path
from typing import Any

import numpy as np
from rich.console import Console

from benchmarks import calls, compile_time, report
from benchmarks.timing import OtherProcesses, Runner, geometric_mean, race, set_threads
from benchmarks.workloads import BY_NAME, WORKLOADS, Implementation, Workload

RESULTS = Path(__file__).parent / "RESULTS.md"

TAPELESS, NUMBA, NUMPY, C, C_FAST = "tapeless", "Numba", "NumPy", "C", "C fast-math"

NOTES = (
    "Milliseconds a call, the best of several interleaved turns. Every call makes its results anew.",
    "C may contract, and reorder the sums that it declares (`omp simd reduction`); fast-math C is for comparison only.",
    "NumPy's own threads are those of its BLAS. Compile times are the first call less a later one, in fresh processes.",
)


@dataclass(frozen=True)
class Effort:
    """How long to measure: turns and seconds for each implementation, and whether to measure compile times."""

    rounds: int
    budget: float
    compile_times: bool


FULL, QUICK = Effort(7, 0.45, True), Effort(3, 0.1, False)


@dataclass
class Failures:
    """Reasons why numbers are missing: for each whose and why, the workloads that it hit."""

    places: dict[tuple[str, str], list[str]] = field(default_factory=dict)

    def attempt(self, whose: str, place: str, action: Callable[[], Any]) -> Any:
        """What `action` gives, or None with the reason noted."""
        try:
            return action()
        except Exception as error:
            hit = self.places.setdefault((whose, f"{type(error).__name__}: {error}".strip()), [])
            if place not in hit:
                hit.append(place)
            return None

    def show(self, console: Console) -> None:
        for (whose, why), hit in self.places.items():
            console.print(f"{whose} ({', '.join(hit)}):", style="red", highlight=False)
            console.print(why, markup=False, highlight=False)


@dataclass
class Measured:
    """Seconds by (label, threads), and compile times, of one workload."""

    workload: Workload
    seconds: dict[tuple[str, int], float]
    cold: float | None = None
    cached: float | None = None

    def ratio(self, label: str, other: str, threads: int) -> float | None:
        return quotient(self.seconds.get((label, threads)), self.seconds.get((other, threads)))

    def speedup(self, label: str, threads: int) -> float | None:
        return None if threads == 1 else quotient(self.seconds.get((label, 1)), self.seconds.get((label, threads)))


def quotient(a: float | None, b: float | None) -> float | None:
    return a / b if a and b else None


def scaled(seconds: float | None, factor: float) -> float | None:
    return None if seconds is None else seconds * factor


def compiled(function: Callable[..., Any], threads: int) -> Implementation:
    import tapeless as tp

    made: Implementation = tp.function(function, threads=threads)
    return made


def makers(workload: Workload, threads: int) -> dict[str, Callable[[], Implementation]]:
    """How to get each implementation for so many threads, in the order of their turns."""
    made: dict[str, Callable[[], Implementation]] = {
        TAPELESS: lambda: compiled(workload.tapeless(), threads),
        NUMBA: lambda: workload.numba(parallel=threads > 1),
        C: workload.c,
    }
    if threads == 1:
        made[C_FAST] = lambda: workload.c(fast=True)
    made[NUMPY] = workload.numpy  # last: the threads of its BLAS keep a core busy for a while after a call
    return made


def line_up(workload: Workload, args: Sequence[Any], threads: Sequence[int], failures: Failures) -> list[Runner]:
    """The runners whose answer agrees with that of C on one thread."""
    reference = Runner(C, 1, workload.c()).run(args)
    runners = []
    for count in threads_of(workload, threads):
        for label, make in makers(workload, count).items():
            prepare = partial(checked, workload, label, count, make, args, reference)
            if runner := failures.attempt(label, workload.name, prepare):
                runners.append(runner)
    return runners


def checked(
    workload: Workload,
    label: str,
    threads: int,
    make: Callable[[], Implementation],
    args: Sequence[Any],
    reference: Any,
) -> Runner:
    """A runner that has given the right answer once."""
    runner = Runner(label, threads, make())
    workload.agree(runner.run(args), reference)
    return runner


def threads_of(workload: Workload, threads: Sequence[int]) -> list[int]:
    return [count for count in threads if count == 1 or workload.parallel]


def measure(workload: Workload, threads: Sequence[int], effort: Effort, failures: Failures) -> Measured:
    args = workload.make_inputs()
    runners = line_up(workload, args, threads, failures)
    race(runners, args, rounds=effort.rounds, budget=effort.budget)
    measured = Measured(workload, {(runner.label, runner.threads): runner.best for runner in runners})
    if effort.compile_times and any(runner.label == TAPELESS for runner in runners):
        name = workload.name
        measured.cold = failures.attempt("cold compile", name, lambda: compile_time.measure(name, cold=True))
        measured.cached = failures.attempt("from cache", name, lambda: compile_time.measure(name, cold=False, repeat=2))
    return measured


def speed_table(results: Sequence[Measured], threads: Sequence[int]) -> report.Table:
    ratio = report.at_most(1.1, 1.4)
    table = report.Table(
        "Compiled functions: milliseconds a call",
        [
            report.Column("workload"),
            report.Column("threads"),
            *(report.Column(label, "{:.2f}") for label in (TAPELESS, NUMBA, NUMPY, C, C_FAST)),
            report.Column("/ C", "{:.2f}", ratio),
            report.Column("/ Numba", "{:.2f}", ratio),
            report.Column("speed-up", "{:.2f}", report.at_least(1.7)),
            report.Column("C speed-up", "{:.2f}"),
            report.Column("cold compile s", "{:.2f}", report.at_most(1.0, 1.0)),
            report.Column("from cache ms", "{:.0f}", report.at_most(60.0, 60.0)),
        ],
    )
    for count in threads:
        rows = [row for row in results if count in threads_of(row.workload, threads)]
        section: list[Sequence[float | str | None]] = [
            (
                row.workload.name,
                str(count),
                *(scaled(row.seconds.get((label, count)), 1e3) for label in (TAPELESS, NUMBA, NUMPY, C, C_FAST)),
                row.ratio(TAPELESS, C, count),
                row.ratio(TAPELESS, NUMBA, count),
                row.speedup(TAPELESS, count),
                row.speedup(C, count),
                row.cold if count == threads[0] else None,
                scaled(row.cached, 1e3) if count == threads[0] else None,
            )
            for row in rows
        ]
        means = [mean(row[column] for row in section) for column in range(7, 11)]
        section.append(("geometric mean", str(count), *[None] * 5, *means, None, None))
        table.sections.append(section)
    return table


def mean(values: Any) -> float | None:
    return geometric_mean(value for value in values if isinstance(value, float))


def call_table(failures: Failures) -> report.Table:
    """The cost of a call that does next to nothing."""
    set_threads(1)
    arrays = tuple(np.arange(8.0) + shift for shift in range(3))
    ways: dict[str, Callable[..., Implementation]] = {
        TAPELESS: partial(compiled, threads=1),
        NUMBA: calls.with_numba,
        "Python": lambda plain: plain,
    }
    rows: list[Sequence[float | str | None]] = []
    for title, function, args, goal in (
        ("a scalar function", calls.scalar_call, (0.5,), 3.0),
        ("three array arguments", calls.three_arrays_call, arrays, 8.0),
    ):
        costs = []
        for label, way in ways.items():
            cost = failures.attempt(label, title, partial(calls.cost, way, function, args))
            costs.append(scaled(cost, 1e6))
        rows.append((title, *costs, goal))
    numbers = [report.Column(heading, "{:.2f}") for heading in (TAPELESS, NUMBA, "Python")]
    columns = [report.Column("call"), *numbers, report.Column("goal", "{:.0f}")]
    return report.Table("Cost of a call: microseconds", columns, [rows])


def parse(arguments: Sequence[str]) -> argparse.Namespace:
    parser = argparse.ArgumentParser(prog="python -m benchmarks.primal", description=__doc__.split("\n")[0])
    parser.add_argument("--only", metavar="NAMES", help=f"of {','.join(BY_NAME)}")
    parser.add_argument("--threads", default="1,2", help="comma-separated (default: 1,2)")
    parser.add_argument("--quick", action="store_true", help="short turns, no compile times")
    parser.add_argument("--write", action="store_true", help=f"write {RESULTS.name} too")
    options = parser.parse_args(arguments)
    options.only = options.only.split(",") if options.only else list(BY_NAME)
    options.threads = sorted({int(count) for count in options.threads.split(",")})
    if unknown := set(options.only) - set(BY_NAME):
        parser.error(f"no such workload: {', '.join(sorted(unknown))}")
    if options.threads[0] < 1:
        parser.error("at least one thread")
    return options


def main() -> int:
    options = parse(sys.argv[1:])
    most = max(options.threads[-1], os.cpu_count() or 1)
    os.environ.setdefault("NUMBA_NUM_THREADS", str(most))  # read when Numba is first imported
    effort = QUICK if options.quick else FULL
    others = OtherProcesses()
    console, failures = Console(width=None if sys.stdout.isatty() else 150), Failures()
    results = []
    with console.status("") as status:
        for workload in WORKLOADS:
            if workload.name in options.only:
                status.update(f"{workload.name}: {workload.title}")
                results.append(measure(workload, options.threads, effort, failures))
        status.update("cost of a call")
        tables = [speed_table(results, options.threads), call_table(failures)]
    busy = f"Other processes took {others.share():.0%} of the machine's time meanwhile."
    report.show(console, tables)
    console.print(busy, highlight=False)
    if options.write:
        legend = [f"`{row.workload.name}`: {row.workload.title}" for row in results]
        command = shlex.join(["python", "-m", "benchmarks.primal", *sys.argv[1:]])
        RESULTS.write_text(report.page(command, tables, (*NOTES, busy, *legend)))
    failures.show(console)
    return 1 if failures.places else 0


if __name__ == "__main__":
    sys.exit(main())
