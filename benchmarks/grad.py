"""Speed of gradients (`tp.value_and_grad`) beside C adjoints written by hand, JAX, PyTorch and autograd.

    python -m benchmarks.grad [--only NAMES] [--threads 1,2] [--quick] [--write]

All implementations are checked against C first, then timed in turns. Libraries that are not installed, or that cannot
express a loss, leave their cells empty; what fails is shown as "-" too, and explained at the end, and the exit status
is 1.
"""

import argparse
import sys
from collections.abc import Callable, Sequence
from functools import partial
from importlib.util import find_spec
from pathlib import Path
from typing import Any

from benchmarks import compile_time, contest, report
from benchmarks.contest import Failures, Lineup, Measured, mean, scaled
from benchmarks.gradients import GRADIENTS, Gradient
from benchmarks.libraries import LIBRARIES
from benchmarks.peer import Peer
from benchmarks.timing import Runner
from benchmarks.workloads import Implementation

RESULTS = Path(__file__).parent / "RESULTS_GRAD.md"

TAPELESS, PRIMAL, C = "tapeless", "its primal", "C"
LABELS = (TAPELESS, PRIMAL, C, *LIBRARIES)

NOTES = (
    "Milliseconds a call for value and gradient (`tp.value_and_grad`), the best of several interleaved turns.",
    "`its primal` is the same loss without gradient; `/ primal` is the gradient's time over it.",
    "C is an adjoint written by hand, with the flags of the primal benchmark's references. It may contract, and reorder "
    "the sums that it declares.",
    "The libraries run in processes of their own, on as many cores as threads, with their inputs converted beforehand; "
    "JAX is jitted, in double precision. A library without a number is not installed or cannot express the loss.",
    "Compile times are the first call less a later one, in fresh processes.",
)


def own(gradient: Gradient, threads: int) -> Implementation:
    import tapeless as tp

    loss = tp.function(gradient.loss(), threads=threads)
    made: Implementation = tp.value_and_grad(loss, argnums=gradient.argnums)
    return made


def own_primal(gradient: Gradient, threads: int) -> Implementation:
    import tapeless as tp

    made: Implementation = tp.function(gradient.loss(), threads=threads)
    return made


def lineup(gradient: Gradient, args: Sequence[Any], threads: int) -> Lineup:
    made: dict[str, Callable[[], Runner]] = {
        TAPELESS: lambda: Runner(TAPELESS, threads, own(gradient, threads)),
        PRIMAL: lambda: Runner(PRIMAL, threads, own_primal(gradient, threads)),
        C: lambda: Runner(C, threads, gradient.c()),
    }
    for label, library in LIBRARIES.items():
        if find_spec(library.package) and gradient.name not in library.lacks:
            made[label] = partial(Peer, label, gradient.name, args, gradient.argnums, threads)
    return made


def run(gradient: Gradient, options: argparse.Namespace, failures: Failures) -> Measured:
    time_compiling = partial(compile_time.measure, gradient.name, gradient=True)
    return contest.measure(gradient, gradient.c(), partial(lineup, gradient), time_compiling, options, failures)


def tables(results: Sequence[Measured], threads: Sequence[int], failures: Failures) -> list[report.Table]:
    table = report.Table(
        "Gradients: milliseconds per call",
        [
            report.Column("workload"),
            report.Column("threads"),
            *(report.Column(label, "{:.2f}") for label in LABELS),
            report.Column("/ primal", "{:.2f}", report.at_most(3.0, 5.0)),
            report.Column("/ C", "{:.2f}", report.at_most(1.1, 1.5)),
            report.Column("/ JAX", "{:.2f}", report.at_most(1.0, 1.0)),
            *report.COMPILE_TIMES,
        ],
    )
    for count in threads:
        rows = [row for row in results if count in contest.threads_of(row.entry, threads)]
        section: list[Sequence[float | str | None]] = [
            (
                row.entry.name,
                str(count),
                *(row.get(label, count) for label in LABELS),
                *(row.ratio(TAPELESS, other, count) for other in (PRIMAL, C, "JAX")),
                row.cold if count == threads[0] else None,
                scaled(row.cached, 1e3) if count == threads[0] else None,
            )
            for row in rows
        ]
        first = 2 + len(LABELS)
        means = [mean(row[column] for row in section) for column in range(first, first + 3)]
        section.append(("geometric mean", str(count), *[None] * len(LABELS), *means, None, None))
        table.sections.append(section)
    return [table]


if __name__ == "__main__":
    about = __doc__.split("\n")[0]
    packages = [library.package for library in LIBRARIES.values()]
    sys.exit(contest.hold("benchmarks.grad", about, GRADIENTS, run, tables, NOTES, RESULTS, packages))
