"""Coarsening: gradients with closed forms and without, beside C written by hand, JAX, PyTorch and CasADi.

    python -m benchmarks.coarsening [--only NAMES] [--quick] [--write]     (make bench-coarsening)

All gradients are compared with the one that is not coarsened before they are timed. What fails is shown as "-" and
explained at the end, and the exit status is 1. A ratio below its bar is named at the end.
"""

import argparse
import shlex
import sys
from collections.abc import Sequence
from importlib.util import find_spec
from pathlib import Path

from rich.console import Console

from benchmarks import report
from benchmarks.coarsening import measure as by
from benchmarks.coarsening.cases import Case, cases
from benchmarks.coarsening.measure import PEERS, Measured, measure
from benchmarks.contest import FULL, QUICK, Failures
from benchmarks.timing import OtherProcesses

RESULTS = Path(__file__).parent.parent / "RESULTS_COARSENING.md"
LABELS = (by.COARSENED, by.PLAIN, by.PRIMAL, by.C)
CLOSED_BAR, OTHER_BAR = 25.0, 0.95

NOTES = (
    "Microseconds a call on one thread, the best of several interleaved turns. `coarsened` is `tp.grad`, `not coarsened` "
    "the same with `coarsen=False`, `primal` is `tp.function`.",
    "C and the libraries compute value and gradient, from arguments that were converted beforehand; C and CasADi write "
    "into the same arrays each time. Tapeless looks at its arguments in each call, and makes new arrays.",
    "C is written by hand in reverse mode, for the descents by tangents, as the rate is their one input; so is JAX, which is "
    "jitted, in double precision. JAX and PyTorch run in processes of their own. CasADi evaluates expressions of scalars "
    "(SX); a `-` is what it cannot express, or only by millions of them.",
    "`best peer` is the fastest library. Compile times are the first call less a later one, in fresh processes without cache.",
    f"Bars: `not coarsened / coarsened` at least {CLOSED_BAR:g} for the descents that always make all their steps, "
    f"{OTHER_BAR:g} for the others.",
)


def bar(case: Case) -> float:
    return CLOSED_BAR if case.name.startswith("descent") and case.name.endswith("steps") else OTHER_BAR


def missed(rows: Sequence[Measured]) -> list[str]:
    return [
        f"{row.case.name}: {by.PLAIN} / {by.COARSENED} is {found:.2f}, its bar {bar(row.case):g}"
        for row in rows
        if (found := row.ratio(by.PLAIN, by.COARSENED)) is not None and found < bar(row.case)
    ]


def time_table(rows: Sequence[Measured]) -> report.Table:
    columns = [report.Column("program"), *(report.Column(label, "{:.1f}") for label in (*LABELS, *PEERS))]
    section = [(row.case.name, *map(row.micro, LABELS), *(peer_cell(row, label) for label in PEERS)) for row in rows]
    return report.Table("Coarsening: microseconds per call", columns, [list(section)])


def peer_cell(row: Measured, label: str) -> float | str | None:
    return row.micro(label) if find_spec(PEERS[label]) else "not installed"


def ratio_table(rows: Sequence[Measured]) -> report.Table:
    columns = [
        report.Column("program"),
        report.Column(f"{by.PLAIN} / {by.COARSENED}", "{:.2f}"),
        report.Column("bar", "{:g}"),
        report.Column(f"C / {by.COARSENED}", "{:.2f}", report.at_least(1.0)),
        report.Column("best peer"),
        report.Column(f"best peer / {by.COARSENED}", "{:.2f}", report.at_least(1.0)),
        report.Column("cold compile s", "{:.2f}"),
        report.Column(f"{by.PLAIN} s", "{:.2f}"),
    ]
    section: list[Sequence[float | str | None]] = []
    for row in rows:
        best = row.best_peer()
        own = row.ratio(by.PLAIN, by.COARSENED), bar(row.case), row.ratio(by.C, by.COARSENED)
        section.append((row.case.name, *own, best, best and row.ratio(best, by.COARSENED), row.cold, row.cold_plain))
    return report.Table("Coarsening: ratios and compile times", columns, [section])


def parse() -> argparse.Namespace:
    names = [case.name for case in cases()]
    parser = argparse.ArgumentParser(prog="python -m benchmarks.coarsening", description=__doc__.split("\n")[0])
    parser.add_argument("--only", metavar="NAMES", help=f"how names begin, of {'; '.join(names)}")
    parser.add_argument("--quick", action="store_true", help="short turns, no compile times")
    parser.add_argument("--write", action="store_true", help=f"write {RESULTS.name} too")
    options = parser.parse_args()
    options.only = tuple(options.only.split(",")) if options.only else ("",)
    if unknown := [start for start in options.only if not any(name.startswith(start) for name in names)]:
        parser.error(f"no such program: {', '.join(unknown)}")
    return options


def main() -> int:
    options = parse()
    console, failures, others = Console(width=None if sys.stdout.isatty() else 150), Failures(), OtherProcesses()
    rows: list[Measured] = []
    with console.status("") as status:
        for case in cases():
            if case.name.startswith(options.only):
                status.update(case.name)
                rows.append(measure(case, QUICK if options.quick else FULL, failures))
    tables = [time_table(rows), ratio_table(rows)]
    busy = f"Other processes took {others.share():.0%} of the machine's time meanwhile."
    report.show(console, tables)
    console.print(busy, highlight=False)
    for line in missed(rows):
        console.print(line, style="yellow", highlight=False)
    if options.write:
        command = shlex.join(["python", "-m", "benchmarks.coarsening", *sys.argv[1:]])
        RESULTS.write_text(report.page(command, tables, (*NOTES, busy), PEERS.values()))
    failures.show(console)
    return 1 if failures.places else 0


if __name__ == "__main__":
    sys.exit(main())
