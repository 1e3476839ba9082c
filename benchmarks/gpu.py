"""A GPU at work: the cost of a launch, and sums and gradients of arrays beside CuPy.

    python -m benchmarks.gpu [--most N]

Needs a GPU and CuPy. All answers are compared with CuPy's before they are timed; times are the best of several calls, in
milliseconds, each call waited for.
"""

import argparse
import math
import sys
from collections.abc import Callable
from importlib import import_module
from time import perf_counter
from typing import Any

import numpy as np
from rich.console import Console
from rich.table import Table

import tapeless as tp
from tapeless.backends.cuda.driver import available

CALLS, LAUNCHES = 5, 10_000


def weighted(x: np.ndarray) -> float:
    return np.sum(np.sin(x) * x)


def distance(x: np.ndarray) -> float:
    return np.sqrt(np.sum((x - 0.5) ** 2))


def repeated(x: np.ndarray, count: int) -> np.ndarray:
    for k in range(count):
        x = np.sin(x) * 0.5 + k
    return x


def peers(xp: Any) -> dict[Callable[..., Any], tuple[Callable[..., Any], Callable[..., Any]]]:
    """The value and the gradient of each, by hand."""
    return {
        weighted: (lambda x: xp.sum(xp.sin(x) * x), lambda x: xp.cos(x) * x + xp.sin(x)),
        distance: (lambda x: xp.sqrt(xp.sum((x - 0.5) ** 2)), lambda x: (x - 0.5) / xp.sqrt(xp.sum((x - 0.5) ** 2))),
    }


def best(xp: Any, run: Callable[[], Any]) -> float:
    found = math.inf
    for _ in range(CALLS):
        xp.cuda.Device().synchronize()
        start = perf_counter()
        run()
        xp.cuda.Device().synchronize()
        found = min(found, perf_counter() - start)
    return 1e3 * found


def main() -> int:
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("--most", type=int, default=10**8, help="elements of the largest array")
    most = parser.parse_args().most
    if not available():
        print("no GPU")
        return 1
    xp = import_module("cupy")
    console = Console()
    table = Table(
        "program", "elements", "value", "gradient", "CuPy's value", "CuPy's gradient", title="milliseconds a call"
    )
    for f, (value, slope) in peers(xp).items():
        run, derived = tp.function(f), tp.grad(f)
        for count in (10**5, 10**7, 10**8):
            if count > most:
                continue
            x = xp.linspace(0, 1, count)
            np.testing.assert_allclose(float(run(x)), float(value(x)), rtol=1e-10)
            np.testing.assert_allclose(derived(x).get(), slope(x).get(), rtol=1e-9, atol=1e-15)
            timed = (lambda: run(x), lambda: derived(x), lambda: value(x), lambda: slope(x))
            table.add_row(f.__name__, f"{count:g}", *(f"{best(xp, call):.3f}" for call in timed))
    console.print(table)
    x, loop = xp.linspace(0, 1, 1000), tp.function(repeated)
    loop(x, 10)
    console.print(f"a launch in a loop: {1e3 * best(xp, lambda: loop(x, LAUNCHES)) / LAUNCHES:.2f} us")
    return 0


if __name__ == "__main__":
    sys.exit(main())
