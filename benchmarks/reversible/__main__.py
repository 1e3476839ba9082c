"""Reversible functions: forward, inverse and gradient, beside the same functions written plainly.

    python -m benchmarks.reversible [--only NAMES] [--steps N] [--most N] [--quick] [--write]     (make bench-reversible)

All results are compared before they are timed: outputs and gradients with those of the plain function, and what the
inverse gives with the state at the start. What fails is shown as "-" and explained at the end, and the exit status is 1.
A ratio beyond its bar is red, and named at the end.
"""

import argparse
import json
import shlex
import sys
from collections.abc import Sequence
from importlib.util import find_spec
from pathlib import Path

from rich.console import Console

from benchmarks import report
from benchmarks.contest import FULL, QUICK, Failures
from benchmarks.libraries import LIBRARIES
from benchmarks.reversible import measure as by
from benchmarks.reversible import memory
from benchmarks.reversible.cases import FORWARD_BAR, INVERSE_BAR, STORE_BAR, Case, cases
from benchmarks.reversible.measure import PEERS, Measured, measure
from benchmarks.timing import OtherProcesses

RESULTS = Path(__file__).parent.parent / "RESULTS_REVERSIBLE.md"
STEPS, MOST = 1 << 12, 1_000_000

NOTES = (
    "Microseconds a call on one thread, the best of several interleaved turns. Every call gets arrays of its own, which "
    "are not timed. `forward`, `inverse` and `gradient` are those of the reversible function, without checks; `checked` is "
    "`forward` with them.",
    "`gradient` and `plain gradient` are `tp.grad` of the same loss, in rows named `Hessian` `tp.hessian`, where `forward` is "
    'mostly the cost of a call; `stored gradient` is the plain one with `recover="store"`.',
    "Libraries compute value and gradient, in processes of their own, JAX jitted and in double precision. A `-` is what they "
    "cannot express.",
    f"Bars: `inverse / forward` {INVERSE_BAR}, `forward / plain` {FORWARD_BAR}, `gradient / stored` {STORE_BAR}, "
    "`gradient / forward` as the column after it says.",
)

Ratio = tuple[str, float | None, float | None]  # what, how much, its bar


def ratios(row: Measured) -> list[Ratio]:
    return [
        ("gradient / forward", row.ratio(by.GRADIENT, by.FORWARD), row.case.bar),
        ("inverse / forward", row.ratio(by.INVERSE, by.FORWARD), INVERSE_BAR),
        ("forward / plain", row.ratio(by.FORWARD, by.PLAIN), FORWARD_BAR),
        ("gradient / plain gradient", row.ratio(by.GRADIENT, by.PLAIN_GRADIENT), None),
        ("gradient / stored", row.ratio(by.GRADIENT, by.STORED_GRADIENT), STORE_BAR),
    ]


def missed(rows: Sequence[Measured]) -> list[str]:
    return [
        f"{row.case.name}: {what} is {found:.2f}, its bar {bar:g}"
        for row in rows
        for what, found, bar in ratios(row)
        if found is not None and bar is not None and found > bar
    ]


def time_table(rows: Sequence[Measured]) -> report.Table:
    labels = (by.FORWARD, by.INVERSE, by.CHECKED, by.GRADIENT, by.PLAIN, by.PLAIN_GRADIENT, by.STORED_GRADIENT)
    columns = [report.Column("program"), *(report.Column(label, "{:.1f}") for label in (*labels, *PEERS))]
    section = [(row.case.name, *map(row.micro, labels), *(peer_cell(row, label) for label in PEERS)) for row in rows]
    return report.Table("Reversible functions: microseconds per call", columns, [list(section)])


def peer_cell(row: Measured, label: str) -> float | str | None:
    return row.micro(label) if find_spec(LIBRARIES[label].package) else "not installed"


def ratio_table(rows: Sequence[Measured]) -> report.Table:
    strict = report.at_most(INVERSE_BAR, INVERSE_BAR)
    judges = (None, strict, strict, None, report.at_most(STORE_BAR, STORE_BAR))
    columns = [report.Column("program")]
    if rows:
        columns += [report.Column(what, "{:.2f}", j) for (what, _, _), j in zip(ratios(rows[0]), judges, strict=True)]
        columns.insert(2, report.Column("bar", "{:g}"))
    section: list[Sequence[float | str | None]] = []
    for row in rows:
        found: list[float | str | None] = [value for _, value, _ in ratios(row)]
        section.append((row.case.name, found[0], row.case.bar, *found[1:]))
    return report.Table("Reversible functions: ratios", columns, [section])


def parse() -> argparse.Namespace:
    names = [case.name for case in cases(STEPS)]
    parser = argparse.ArgumentParser(prog="python -m benchmarks.reversible", description=__doc__.split("\n")[0])
    parser.add_argument("--only", metavar="NAMES", help=f"of {','.join(names)},memory")
    parser.add_argument(
        "--steps", type=int, default=STEPS, help=f"of the n-body program (default: {STEPS}; up to 2^20)"
    )
    parser.add_argument(
        "--most", type=float, default=MOST, help="steps of the table of memory (default: 1e6; up to 1e7)"
    )
    parser.add_argument("--quick", action="store_true", help="short turns")
    parser.add_argument("--write", action="store_true", help=f"write {RESULTS.name} too")
    parser.add_argument("--here", nargs=2, help=argparse.SUPPRESS)
    options = parser.parse_args()
    options.only = options.only.split(",") if options.only else [*names, "memory"]
    if unknown := set(options.only) - {*names, "memory"}:
        parser.error(f"no such program: {', '.join(sorted(unknown))}")
    return options


def main() -> int:
    options = parse()
    if options.here:
        print(json.dumps(memory.used_here(options.here[0], int(options.here[1]))))
        return 0
    console, failures, others = Console(width=None if sys.stdout.isatty() else 170), Failures(), OtherProcesses()
    chosen: list[Case] = [case for case in cases(options.steps) if case.name in options.only]
    rows: list[Measured] = []
    with console.status("") as status:
        for case in chosen:
            status.update(f"{case.name}: {case.title}")
            rows.append(measure(case, QUICK if options.quick else FULL, failures))
        tables = [time_table(rows), ratio_table(rows)] if rows else []
        if "memory" in options.only:
            status.update("memory")
            tables.append(memory.table(int(options.most), failures))
    busy = f"Other processes took {others.share():.0%} of the machine's time meanwhile."
    report.show(console, tables)
    console.print(busy, highlight=False)
    for line in missed(rows):
        console.print(line, style="yellow", highlight=False)
    if options.write:
        legend = [f"`{case.name}`: {case.title}" for case in chosen]
        command = shlex.join(["python", "-m", "benchmarks.reversible", *sys.argv[1:]])
        packages = [LIBRARIES[label].package for label in PEERS]
        RESULTS.write_text(report.page(command, tables, (*NOTES, busy, *legend), packages))
    failures.show(console)
    return 1 if failures.places else 0


if __name__ == "__main__":
    sys.exit(main())
