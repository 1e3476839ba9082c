"""A poll that calls the runtime leaves the loop's registers as they were: results are those of plain Python.

The runtime is called at the first poll of a call that comes a while after the last one. On x86 this once changed vector
registers, so that one call in many gave wrong numbers.
"""

from __future__ import annotations

import copy
import time
from collections.abc import Callable
from typing import Any

import numpy as np
import pytest

import tapeless as tp
from benchmarks.workloads import WORKLOADS

PAUSE = 0.25  # seconds: more than two periods of backends/cpu/interrupts.py, so that the next poll calls


def waves(x: np.ndarray, n: int) -> np.ndarray:
    for _ in range(n):
        x = np.sqrt(x * x + 1.0) * 0.5 + x * 0.25
    return x


def rows(x: np.ndarray, n: int) -> np.ndarray:
    y = x.copy()
    for k in range(n):
        for i in range(1, x.shape[0] - 1):
            for j in range(1, x.shape[1] - 1):
                y[i, j] = x[i, j] + 0.2 * (x[i - 1, j] + x[i + 1, j] + x[i, j - 1] + x[i, j + 1] - 4.0 * x[i, j]) + k
        x, y = y, x
    return x


def sums(x: np.ndarray, n: int) -> float:
    a, b, c, d = 0.0, 1.0, 2.0, 3.0
    for i in range(n):
        a, b, c, d = b + x[i % len(x)], c * 0.5, d + a * 0.25, a - b
    return a + b + c + d


PROGRAMS: list[tuple[Callable[..., Any], tuple[Any, ...]]] = [
    (waves, (np.linspace(0.0, 1.0, 5000), 5)), (rows, (np.arange(400.0).reshape(20, 20), 5)), (sums, (np.arange(7.0), 5000)),
    *((getattr(w.tapeless(), "python", w.tapeless()), tuple(w.make_inputs(small=True))) for w in WORKLOADS if w.name in ("heat", "bessel", "nbody", "spmv")),
]  # fmt: skip


@pytest.mark.parametrize("function, args", PROGRAMS, ids=lambda x: getattr(x, "__name__", ""))
@pytest.mark.parametrize("threads", [1, pytest.param(2, marks=pytest.mark.thorough)])
def test_the_first_call_after_a_while(function: Callable[..., Any], args: tuple[Any, ...], threads: int) -> None:
    compiled = tp.function(function, threads=threads)
    want = function(*copy.deepcopy(args))
    compiled(*copy.deepcopy(args))
    for _ in range(2):
        time.sleep(PAUSE)
        got = compiled(*copy.deepcopy(args))
        for x, y in zip(got, want, strict=True) if isinstance(want, tuple) else [(got, want)]:
            np.testing.assert_allclose(x, y, rtol=1e-10, atol=1e-12)
