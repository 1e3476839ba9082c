"""C value-and-gradients written by hand, built by gcc when asked for and called through ctypes.

Their arguments are converted once, and the gradient is written over by the next call: what is timed is C.
"""

import ctypes
import subprocess
import tempfile
from collections.abc import Callable
from functools import cache
from pathlib import Path
from typing import Any

import numpy as np

from benchmarks import native
from benchmarks.coarsening.cases import Case
from benchmarks.workloads import F64, I64, as_tuple

SOURCES = Path(__file__).parent / "c"

PACK: dict[str, Callable[..., tuple[Any, ...]]] = {  # C's arguments, but for the gradients
    "descent": lambda rate, x, y, steps: (rate, len(x), x, y, steps),
    "stopping_descent": lambda rate, x, y, steps: (rate, len(x), x, y, steps),
    "brachistochrone": lambda y, width: (len(y), y, width),
    "cart_pole": lambda actions, *start: (len(actions), actions, *start),
    "posterior": lambda beta, x, y: (*x.shape, beta, x, y),
    "springs": lambda px, py, first, *rest: (len(px), len(first), px, py, first, *rest),
    "walker": lambda torques, steps: (steps, torques),
}


@cache
def load(stem: str) -> ctypes.CDLL:
    """The library of `c/<stem>.c`, with the flags of the other benchmarks' references."""
    with tempfile.TemporaryDirectory() as folder:
        made = Path(folder) / f"{stem}.so"
        subprocess.run(["gcc", *native.FLAGS, str(SOURCES / f"{stem}.c"), "-o", str(made), "-lm"], check=True)
        return ctypes.CDLL(str(made))


def in_c(value: Any) -> Any:
    """A pointer keeps its array alive."""
    match value:
        case np.ndarray():
            return np.ascontiguousarray(value).ctypes.data_as(ctypes.c_void_p)
        case int():
            return I64(value)
        case _:
            return F64(value)


def gradient(case: Case) -> Callable[..., Any]:
    name = case.program.__name__
    function = getattr(load(name.removeprefix("stopping_")), name)
    function.restype = F64
    made = tuple(np.empty(np.shape(case.args[k])) for k in as_tuple(case.argnums))
    given = [in_c(value) for value in (*PACK[name](*case.args), *made)]

    def call(*_: Any) -> Any:
        return function(*given), made

    return call
