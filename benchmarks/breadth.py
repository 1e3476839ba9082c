"""Speed of the functions of NumPy and SciPy that compile: each beside the library's own, its gradient, its compile time.

    python -m benchmarks.breadth [--only TEXTS] [--limit N] [--threads N] [--quick] [--write]     (make bench-breadth)

One call each, on arrays of a million elements or on matrices of 200 x 200. Values are compared with the library's before they are
timed. What fails is shown as "-" and explained at the end, and the exit status is 1.
"""

import argparse
import ast
import gc
import importlib.util
import re
import shlex
import sys
import tempfile
import warnings
from collections.abc import Callable, Iterator, Sequence
from dataclasses import dataclass, replace
from functools import partial
from pathlib import Path
from time import perf_counter, process_time
from typing import Any

import numpy as np
import scipy.fft
import scipy.linalg
import scipy.special
import scipy.stats  # noqa: F401
from rich.console import Console

import tapeless as tp
from benchmarks import report
from benchmarks.breadth_cases import CALLS, LEFT_OUT, ROUGH, SAME_CODE, arguments
from benchmarks.contest import Effort, Failures, mean, quotient
from benchmarks.timing import OtherProcesses, Runner, race, set_threads
from tapeless.frontend.state.handlers import BY_NAME, handler_of
from tapeless.ir import pytree

RESULTS = Path(__file__).parent / "RESULTS_BREADTH.md"
FULL, QUICK = Effort(5, 0.12, True), Effort(2, 0.03, True)
OWN, LOSS, GRADIENT, LIBRARY = "compiled", "loss", "gradient", "library"
BARS = {"/ library": 1.3, "/ loss": 4.0, "cold compile s": 0.3}
BY_NUMBER, LONG = ("special functions", "distributions"), 5e-3  # seconds for some of the numbers
RTOL = 1e-6
LEAST = 5e-5  # seconds: below, it is a view, and the time that of a call

NOTES = (
    "Milliseconds of the processor a call, the best of several interleaved turns. `library` is NumPy or SciPy, `/ library` the compiled "
    "function's time over its. Both use the same number of threads, BLAS included.",
    "`gradient` is `tp.grad` of the sum of squares of the result, by all arrays of floats; `/ loss` is its time over that sum's own, which is the function's "
    "and a pass. Functions without slopes, and slopes that are not there, have none.",
    "`cold compile s` is what the first call takes beyond a later one, without the disk cache, in a process that has compiled "
    "other functions.",
    "Bars: "
    + ", ".join(f"`{name}` at most {bar:g}" for name, bar in BARS.items())
    + ". Calls that miss one stand in the first table.",
)


@dataclass(frozen=True)
class Case:
    group: str
    text: str
    function: Callable[..., Any]
    loss: Callable[..., Any]
    args: tuple[np.ndarray, ...]

    @property
    def floats(self) -> tuple[int, ...]:
        return tuple(k for k, a in enumerate(self.args) if a.dtype.kind == "f")


@dataclass
class Row:
    case: Case
    seconds: dict[str, float]
    cold: float | None = None  # seconds

    def get(self, label: str) -> float | None:
        found = self.seconds.get(label)
        return None if found is None else 1e3 * found

    def against_bars(self) -> dict[str, float | None]:
        get = self.seconds.get
        beside = quotient(get(OWN), get(LIBRARY)) if get(LIBRARY, 0.0) >= LEAST else None
        found = beside, quotient(get(GRADIENT), get(LOSS)), self.cold
        return dict(zip(BARS, found, strict=True))

    def excess(self) -> float:
        """How many times the bar the worst of its numbers is."""
        return max(
            (value / BARS[name] for name, value in self.against_bars().items() if value is not None), default=0.0
        )


# -- the cases as functions


def source(texts: Sequence[str]) -> str:
    """A function for each call, and one that adds the squares of its results."""
    lines = [
        "import numpy as np",
        "import scipy",
        "from scipy import linalg, special, stats",
        "from benchmarks.breadth import squares",
    ]
    for k, text in enumerate(texts):
        names = ", ".join(letters(text))
        body = text if "return " in text else f"return {text}"
        lines += ["", "", f"def case{k}({names}):", *(f"    {part}" for part in body.split("; "))]
        lines += ["", "", f"def loss{k}({names}):", f"    return squares(case{k}({names}))"]
    return "\n".join(lines) + "\n"


def squares(found):  # type: ignore[no-untyped-def]
    """The sum of squares of all floats in it."""
    if isinstance(found, (tuple, list)):
        total = 0.0
        for part in tuple(found):
            total += squares(part)
        return total
    values = np.asarray(found)
    if values.dtype.kind == "c":
        return np.sum(values.real**2 + values.imag**2)
    return np.sum(values**2) if values.dtype.kind == "f" else 0.0


def letters(text: str) -> list[str]:
    names = {node.id for node in ast.walk(ast.parse(f"def f():\n  {text}")) if isinstance(node, ast.Name)}
    return sorted(names & set(arguments()))


def load(path: Path, texts: Sequence[str]) -> Any:
    path.write_text(source(texts))
    spec = importlib.util.spec_from_file_location(path.stem, path)
    assert spec and spec.loader
    module = importlib.util.module_from_spec(spec)
    spec.loader.exec_module(module)
    return module


def cases(folder: Path, only: Sequence[str]) -> Iterator[Case]:
    chosen = [
        (group, text) for group, texts in CALLS.items() for text in texts if any(o == group or o in text for o in only)
    ]
    module = load(folder / "calls.py", [text for _, text in chosen])
    for k, (group, text) in enumerate(chosen):
        args = tuple(arguments()[name] for name in letters(text))
        yield Case(group, text, getattr(module, f"case{k}"), getattr(module, f"loss{k}"), args)


# -- times


def agree(case: Case, found: Any, wanted: Any) -> None:
    if case.text.startswith(ROUGH):
        return
    ours, theirs = pytree.flatten(found)[0], pytree.flatten(wanted)[0]
    assert len(ours) == len(theirs), "another number of results"
    for one, other in zip(ours, theirs, strict=True):
        assert np.shape(one) == np.shape(other), f"shape {np.shape(one)}, not {np.shape(other)}"
        size = float(np.max(np.abs(other[np.isfinite(other)]), initial=0.0)) if np.ndim(other) else 0.0
        np.testing.assert_allclose(one, other, rtol=RTOL, atol=RTOL * size)


def first_call(function: Callable[..., Any], args: Sequence[Any]) -> tuple[Any, float]:
    """What it gives, and what it took beyond the next call. Of both clocks the lesser: others may run meanwhile, and large
    programs are compiled on several cores.
    """
    gc.collect()
    before = np.array([perf_counter(), process_time()])
    found = function(*args)
    between = np.array([perf_counter(), process_time()])
    function(*args)
    after = np.array([perf_counter(), process_time()])
    return found, max(float(np.min(between - before) - np.min(after - between)), 1e-4)


def shorter(case: Case) -> Case:
    """With a tenth of the numbers, or a hundredth, where they would take long."""
    if case.group not in BY_NUMBER:
        return case
    for part in (100, 10):
        fewer = replace(case, args=tuple(a[: len(a) // part].copy() for a in case.args))
        start = process_time()
        fewer.function(*fewer.args)
        if process_time() - start > LONG:
            return fewer
    return case


def measure(case: Case, effort: Effort, threads: int, failures: Failures) -> Row:
    attempt, case = partial(failures.attempt, place=case.text), shorter(case)
    own = tp.function(case.function, threads=threads, cache=False)
    set_threads(threads)
    started = attempt(OWN, action=lambda: first_call(own, case.args))
    if started is None:
        return Row(case, {})
    wanted = case.function(*case.args)
    attempt("values", action=lambda: agree(case, started[0], wanted))
    calls = {LIBRARY: case.function, OWN: own, **with_slopes(case, wanted, threads, attempt)}
    clock = process_time if threads == 1 else perf_counter  # others may use the machine
    runners = [Runner(label, threads, call, clock=clock) for label, call in calls.items()]
    race(runners, case.args, rounds=effort.rounds, budget=effort.budget)
    return Row(case, {one.label: one.best for one in runners}, started[1])


def with_slopes(case: Case, wanted: Any, threads: int, attempt: Callable[..., Any]) -> dict[str, Callable[..., Any]]:
    """The sum of squares and its gradient, compiled; nothing where there are no slopes."""
    results = {np.asarray(one).dtype.kind for one in pytree.flatten(wanted)[0]}
    if not case.floats or not results & set("fc"):
        return {}
    loss = tp.function(case.loss, threads=threads, cache=False)
    gradient: Callable[..., Any] = tp.grad(loss, argnums=case.floats)
    if not attempt(GRADIENT, action=lambda: (gradient(*case.args), loss(*case.args))):
        return {}
    return {LOSS: loss, GRADIENT: gradient}


def untimed() -> list[str]:
    """Functions that compile and have neither a row nor a reason."""
    handler_of(None)  # those of SciPy are there once it is asked for
    text = " ".join(text for texts in CALLS.values() for text in texts)
    text = re.sub(r"\b(special|stats)\.", r"scipy.\1.", text)
    timed = {name for name in re.findall(r"[\w.]+", text)} | set(LEFT_OUT)
    known = [name for name in BY_NAME if name.startswith(("np.", "scipy.")) and not name.startswith(SAME_CODE)]
    return [name for name in known if name not in timed and not any(t.startswith(f"{name}.") for t in timed)]


# -- tables


def columns() -> list[report.Column]:
    times = [report.Column(label, "{:.2f}") for label in (LIBRARY, OWN, GRADIENT)]
    return [
        report.Column("call"),
        *times,
        *(report.Column(n, "{:.2f}", report.at_most(b, 2 * b)) for n, b in BARS.items()),
    ]


def cells(row: Row) -> Sequence[float | str | None]:
    text = f"`{row.case.text}`"
    return (text, *(row.get(label) for label in (LIBRARY, OWN, GRADIENT)), *row.against_bars().values())


def tables(rows: Sequence[Row], limit: int | None) -> list[report.Table]:
    worst = sorted((row for row in rows if row.excess() > 1.0), key=Row.excess, reverse=True)[:limit]
    made = [report.Table("Beyond a bar, the furthest first", columns(), [[cells(row) for row in worst]])]
    if limit is not None:
        return made
    for group in CALLS:
        if own := [row for row in rows if row.case.group == group]:
            means = [mean(row.against_bars()[name] for row in own) for name in BARS]
            summary = ("geometric mean", None, None, None, *means)
            made.append(report.Table(group.capitalize(), columns(), [[*(cells(row) for row in own), summary]]))
    return made


def counted(rows: Sequence[Row]) -> str:
    """How many keep each bar."""
    parts = []
    for name, bar in BARS.items():
        found = [value for row in rows if (value := row.against_bars()[name]) is not None]
        parts.append(f"{sum(value <= bar for value in found)} of {len(found)} keep `{name}`")
    return "; ".join(parts) + "."


def parse() -> argparse.Namespace:
    parser = argparse.ArgumentParser(prog="python -m benchmarks.breadth", description=__doc__.split("\n")[0])
    parser.add_argument(
        "--only", metavar="TEXTS", help="groups, and calls that have one of these in them, separated by commas"
    )
    parser.add_argument("--limit", type=int, metavar="N", help="show only the N calls that are furthest from the bars")
    parser.add_argument("--threads", type=int, default=1, help="for both sides (default: 1)")
    parser.add_argument("--quick", action="store_true", help="short turns")
    parser.add_argument("--write", action="store_true", help=f"write {RESULTS.name} too")
    options = parser.parse_args()
    options.only = options.only.split(",") if options.only else [""]
    return options


def main() -> int:
    options, others, failures = parse(), OtherProcesses(), Failures()
    console = Console(width=None if sys.stdout.isatty() else 150)
    warnings.simplefilter("ignore")
    tp.function(lambda x: np.sum(np.sort(x) ** 2), cache=False)(np.ones(3))  # what every process pays once
    rows = []
    with tempfile.TemporaryDirectory() as folder, console.status("") as status:
        for case in cases(Path(folder), options.only):
            status.update(case.text)
            rows.append(measure(case, QUICK if options.quick else FULL, options.threads, failures))
    made = tables(rows, options.limit)
    summary = counted(rows)
    busy = f"Other processes took {others.share():.0%} of the machine's time meanwhile."
    report.show(console, made)
    console.print(summary, busy, highlight=False, markup=False)
    if options.write:
        command = shlex.join(["python", "-m", "benchmarks.breadth", *sys.argv[1:]])
        RESULTS.write_text(report.page(command, made, (*NOTES, summary, busy), ()))
    if left := untimed():
        console.print(f"Not timed: {', '.join(left)}.", style="yellow", highlight=False)
    failures.show(console)
    return 1 if failures.places else 0


if __name__ == "__main__":
    sys.exit(main())
