"""Speed of compiled functions beside Numba, NumPy and C.

    python -m benchmarks.primal [--only NAMES] [--threads 1,2] [--quick] [--write]

All implementations are checked against C first, then timed in turns. What fails is shown as "-" and explained at the
end, and the exit status is 1.
"""

import argparse
import sys
from collections.abc import Callable, Sequence
from functools import partial
from pathlib import Path
from typing import Any

import numpy as np

from benchmarks import calls, compile_time, contest, report
from benchmarks.contest import Failures, Lineup, Measured, mean, scaled
from benchmarks.timing import Runner, set_threads
from benchmarks.workloads import WORKLOADS, Implementation, Workload

RESULTS = Path(__file__).parent / "RESULTS.md"

TAPELESS, NUMBA, NUMPY, C, C_FAST = "tapeless", "Numba", "NumPy", "C", "C fast-math"

NOTES = (
    "Milliseconds a call, the best of several interleaved turns. Every call makes its results anew.",
    "C may contract, and reorder the sums that it declares (`omp simd reduction`); fast-math C is for comparison only.",
    "NumPy's own threads are those of its BLAS. Compile times are the first call less a later one, in fresh processes.",
)


def compiled(function: Callable[..., Any], threads: int) -> Implementation:
    import tapeless as tp

    made: Implementation = tp.function(function, threads=threads)
    return made


def lineup(workload: Workload, args: Sequence[Any], threads: int) -> Lineup:
    made: dict[str, Callable[[], Implementation]] = {
        TAPELESS: lambda: compiled(workload.tapeless(), threads),
        NUMBA: lambda: workload.numba(parallel=threads > 1),
        C: workload.c,
    }
    if threads == 1:
        made[C_FAST] = lambda: workload.c(fast=True)
    made[NUMPY] = workload.numpy  # last: the threads of its BLAS keep a core busy for a while after a call
    return {label: partial(runner, label, threads, make) for label, make in made.items()}


def runner(label: str, threads: int, make: Callable[[], Implementation]) -> Runner:
    return Runner(label, threads, make())


def run(workload: Workload, options: argparse.Namespace, failures: Failures) -> Measured:
    time_compiling = partial(compile_time.measure, workload.name)
    return contest.measure(workload, workload.c(), partial(lineup, workload), time_compiling, options, failures)


def tables(results: Sequence[Measured], threads: Sequence[int], failures: Failures) -> list[report.Table]:
    return [speed_table(results, threads), call_table(failures)]


def speed_table(results: Sequence[Measured], threads: Sequence[int]) -> report.Table:
    ratio = report.at_most(1.1, 1.4)
    table = report.Table(
        "Compiled functions: milliseconds per call",
        [
            report.Column("workload"),
            report.Column("threads"),
            *(report.Column(label, "{:.2f}") for label in (TAPELESS, NUMBA, NUMPY, C, C_FAST)),
            report.Column("/ C", "{:.2f}", ratio),
            report.Column("/ Numba", "{:.2f}", ratio),
            report.Column("speed-up", "{:.2f}", report.at_least(1.7)),
            report.Column("C speed-up", "{:.2f}"),
            *report.COMPILE_TIMES,
        ],
    )
    for count in threads:
        rows = [row for row in results if count in contest.threads_of(row.entry, threads)]
        section: list[Sequence[float | str | None]] = [
            (
                row.entry.name,
                str(count),
                *(row.get(label, count) for label in (TAPELESS, NUMBA, NUMPY, C, C_FAST)),
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


if __name__ == "__main__":
    about = __doc__.split("\n")[0]
    sys.exit(contest.hold("benchmarks.primal", about, WORKLOADS, run, tables, NOTES, RESULTS, ("numba",)))
