"""What the benchmarks share: entries are checked against a reference, then timed in turns, then shown.

An `Entry` is a row: a workload of `benchmarks.workloads` or a gradient of `benchmarks.gradients`. `measure` times its
implementations; what fails is noted in `Failures`. `hold` is the whole of a command: options, rows, tables, page.
"""

import argparse
import os
import shlex
import sys
from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass, field
from functools import partial
from pathlib import Path
from typing import Any, Protocol

from rich.console import Console

from benchmarks import report
from benchmarks.timing import OtherProcesses, Runner, geometric_mean, race


class Entry(Protocol):
    @property
    def name(self) -> str: ...
    @property
    def title(self) -> str: ...
    @property
    def parallel(self) -> bool: ...
    def make_inputs(self, small: bool = False) -> Sequence[Any]: ...
    def agree(self, result: Any, reference: Any) -> None: ...


Lineup = Mapping[str, Callable[[], Runner]]  # how to get the runner of each label, in the order of their turns


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
    """Seconds by (label, threads), and compile times, of one entry."""

    entry: Entry
    seconds: dict[tuple[str, int], float]
    cold: float | None = None
    cached: float | None = None

    def get(self, label: str, threads: int, factor: float = 1e3) -> float | None:
        return scaled(self.seconds.get((label, threads)), factor)

    def ratio(self, label: str, other: str, threads: int) -> float | None:
        return quotient(self.seconds.get((label, threads)), self.seconds.get((other, threads)))

    def speedup(self, label: str, threads: int) -> float | None:
        return None if threads == 1 else quotient(self.seconds.get((label, 1)), self.seconds.get((label, threads)))


def quotient(a: float | None, b: float | None) -> float | None:
    return a / b if a and b else None


def scaled(seconds: float | None, factor: float) -> float | None:
    return None if seconds is None else seconds * factor


def mean(values: Any) -> float | None:
    return geometric_mean(value for value in values if isinstance(value, float))


def threads_of(entry: Entry, threads: Sequence[int]) -> list[int]:
    return [count for count in threads if count == 1 or entry.parallel]


def line_up(
    entry: Entry,
    args: Sequence[Any],
    reference: Any,
    lineup: Callable[[int], Lineup],
    threads: Sequence[int],
    failures: Failures,
) -> list[Runner]:
    """The runners whose answer agrees with the reference."""

    def checked(make: Callable[[], Runner]) -> Runner:
        runner = make()
        try:
            entry.agree(runner.run(args), reference)
        except Exception:
            runner.close()
            raise
        return runner

    runners = []
    for count in threads_of(entry, threads):
        for label, make in lineup(count).items():
            if runner := failures.attempt(label, entry.name, partial(checked, make)):
                runners.append(runner)
    return runners


def measure(
    entry: Entry,
    reference: Callable[..., Any],
    lineup: Callable[[Sequence[Any], int], Lineup],
    compile_time: Callable[..., float],
    options: argparse.Namespace,
    failures: Failures,
) -> Measured:
    """Times of one entry. `reference` gives the right answer; `compile_time(cold, repeat)` the seconds of compiling."""
    args, effort = entry.make_inputs(), options.effort
    runners = line_up(
        entry, args, Runner("reference", 1, reference).run(args), partial(lineup, args), options.threads, failures
    )
    race(runners, args, rounds=effort.rounds, budget=effort.budget)
    for runner in runners:
        runner.close()
    measured = Measured(entry, {(runner.label, runner.threads): runner.best for runner in runners})
    if effort.compile_times:
        measured.cold = failures.attempt("cold compile", entry.name, lambda: compile_time(cold=True))
        measured.cached = failures.attempt("from cache", entry.name, lambda: compile_time(cold=False, repeat=2))
    return measured


def parse(program: str, about: str, names: Sequence[str], results: Path) -> argparse.Namespace:
    parser = argparse.ArgumentParser(prog=f"python -m {program}", description=about)
    parser.add_argument("--only", metavar="NAMES", help=f"of {','.join(names)}")
    parser.add_argument("--threads", default="1,2", help="comma-separated (default: 1,2)")
    parser.add_argument("--quick", action="store_true", help="short turns, no compile times")
    parser.add_argument("--write", action="store_true", help=f"write {results.name} too")
    options = parser.parse_args()
    options.only = options.only.split(",") if options.only else list(names)
    options.threads = sorted({int(count) for count in options.threads.split(",")})
    options.effort = QUICK if options.quick else FULL
    if unknown := set(options.only) - set(names):
        parser.error(f"no such workload: {', '.join(sorted(unknown))}")
    if options.threads[0] < 1:
        parser.error("at least one thread")
    return options


def hold(
    program: str,
    about: str,
    entries: Sequence[Entry],
    run: Callable[[Any, argparse.Namespace, Failures], Measured],
    tables: Callable[[Sequence[Measured], Sequence[int], Failures], list[report.Table]],
    notes: Sequence[str],
    results: Path,
    packages: Sequence[str],
) -> int:
    """The benchmark `program`; its exit status."""
    options = parse(program, about, [entry.name for entry in entries], results)
    most = max(options.threads[-1], os.cpu_count() or 1)
    os.environ.setdefault("NUMBA_NUM_THREADS", str(most))  # read when Numba is first imported
    others = OtherProcesses()
    console, failures = Console(width=None if sys.stdout.isatty() else 150), Failures()
    measured = []
    with console.status("") as status:
        for entry in entries:
            if entry.name in options.only:
                status.update(f"{entry.name}: {entry.title}")
                measured.append(run(entry, options, failures))
        status.update("tables")
        made = tables(measured, options.threads, failures)
    busy = f"Other processes took {others.share():.0%} of the machine's time meanwhile."
    report.show(console, made)
    console.print(busy, highlight=False)
    if options.write:
        legend = [f"`{row.entry.name}`: {row.entry.title}" for row in measured]
        command = shlex.join(["python", "-m", program, *sys.argv[1:]])
        results.write_text(report.page(command, made, (*notes, busy, *legend), packages))
    failures.show(console)
    return 1 if failures.places else 0
