"""The cost of a call alone: functions that do next to nothing, compiled by Tapeless and by Numba, and as plain Python.

python -m benchmarks.calls     (make bench-calls)

Microseconds of a call after the first one, the fastest of many turns. Numba is left out where it is not installed.
"""

import itertools
import timeit
from collections.abc import Callable, Iterator
from dataclasses import dataclass
from importlib.util import find_spec
from typing import Any

import numpy as np
from rich.console import Console

import tapeless as tp
from benchmarks import report
from benchmarks.timing import set_threads

TURNS, CALLS = 20, 5_000
X, Y, Z = (np.arange(8.0) + shift for shift in range(3))
A = np.arange(64.0).reshape(8, 8)


def scalar_call(x):
    return 2.0 * x + 1.0


def three_arrays_call(a, b, c):
    return a[0] * b[0] + c[0]


def product_call(a, b):
    return a @ b


def sum_of_squares(x):
    return np.sum(x * x)


def with_numba(function: Callable[..., Any]) -> Callable[..., Any]:
    from numba import njit

    compiled: Callable[..., Any] = njit(function)
    return compiled


def cost(compiler: Callable[..., Any], python: Callable[..., Any], args: tuple[Any, ...]) -> float:
    """Seconds of one call of the compiled function, after a first one."""
    return cost_of(compiler(python), itertools.repeat(args))


def cost_of(function: Callable[..., Any], calls: Iterator[tuple[Any, ...]]) -> float:
    for _ in range(3):
        function(*next(calls))
    timer = timeit.Timer("function(*next(calls))", globals={"function": function, "calls": calls})
    nothing = timeit.Timer("next(calls)", globals={"calls": calls})
    return (min(timer.repeat(TURNS, CALLS)) - min(nothing.repeat(TURNS, CALLS))) / CALLS


@dataclass(frozen=True)
class Case:
    title: str
    function: Callable[..., Any]
    args: Callable[[], Iterator[tuple[Any, ...]]]
    bar: float  # microseconds
    numba: bool = True


def always(*args: Any) -> Callable[[], Iterator[tuple[Any, ...]]]:
    return lambda: itertools.repeat(args)


def lengths() -> Iterator[tuple[Any, ...]]:
    """Another length each time."""
    whole = np.arange(4000.0)
    return ((whole[: 2 + k % 3000],) for k in itertools.count())


CASES = [
    Case("a scalar function", scalar_call, always(0.5), 0.5),
    Case("three arrays", three_arrays_call, always(X, Y, Z), 1.5),
    Case("numbers of NumPy", scalar_call, always(np.float64(0.5)), 3.0),
    Case("the same array three times", three_arrays_call, always(X, X, X), 3.0),
    Case("a new length each time", lambda x: x[0] + x[1], lengths, 3.0),
    Case("BLAS: a product of 8 x 8", product_call, always(A, A.copy()), 3.0, numba=False),  # Numba asks for SciPy's
    Case("a gradient", tp.grad(sum_of_squares), always(X), 3.0, numba=False),
]


def table() -> report.Table:
    set_threads(1)
    has_numba = find_spec("numba") is not None
    rows: list[tuple[float | str | None, ...]] = []
    for case in CASES:
        ours = case.function if hasattr(case.function, "compiled") else tp.function(case.function, threads=1)
        found = [cost_of(ours, case.args())]
        found.append(cost_of(with_numba(case.function), case.args()) if has_numba and case.numba else float("nan"))
        found.append(cost_of(case.function, case.args()) if ours is not case.function else float("nan"))
        rows.append((case.title, *(None if np.isnan(c) else 1e6 * c for c in found), case.bar))
    numbers = [report.Column(heading, "{:.2f}") for heading in ("Tapeless", "Numba", "Python")]
    return report.Table(
        "Cost of a call: microseconds", [report.Column("call"), *numbers, report.Column("bar", "{:.1f}")], [rows]
    )


if __name__ == "__main__":
    report.show(Console(), [table()])
