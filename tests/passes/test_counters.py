"""Carried integers that count, on the way to a GPU: by the number of the iteration, with the same values."""

from __future__ import annotations

import copy
from typing import Any

import numpy as np
import pytest

from tapeless.frontend.entry import trace
from tapeless.ir.core import For
from tapeless.ir.target import Target
from tapeless.ir.types import I64
from tapeless.ir.walk import all_stms
from tapeless.passes.coarsen.counters import count_at_once
from tapeless.passes.pipeline import finished
from tapeless.testing.compare import Returned
from tapeless.testing.stages import by_python, on_device


def triangle(x: np.ndarray, n: int, step: int) -> tuple[np.ndarray, int]:
    q, at = np.zeros((n, n)), 3
    for j in range(n):
        for i in range(j + 1, n):
            q[i, j] = x[at % len(x)]
            at += 1
    return q, at


def strides(x: np.ndarray, n: int, step: int) -> tuple[float, int, int]:
    s, up, down = 0.0, step, -step
    for i in range(n):
        s += x[(up + down) % len(x)] * i
        up += step * step + 2 * i
        down -= i * step
    return s, up, down


def uneven(x: np.ndarray, n: int, step: int) -> tuple[float, int]:
    """What is added is none of the numbers of iterations."""
    s, at = 0.0, 0
    for i in range(n):
        s += x[at % len(x)]
        at += i % 3
    return s, at


@pytest.mark.parametrize("n", [0, 1, 2, 5, 6])
@pytest.mark.parametrize("step", [-3, 4, 2**62])
@pytest.mark.parametrize("f", [triangle, strides, uneven], ids=lambda f: f.__name__)
def test_values(f: Any, n: int, step: int) -> None:
    args = [np.linspace(0, 1, 7), n, np.int64(step)]
    with np.errstate(over="ignore"):
        want = by_python(f, lambda: copy.deepcopy(args))
    got, _ = on_device(f, lambda: copy.deepcopy([*args[:2], step]))
    assert isinstance(got, Returned) and isinstance(want, Returned)
    for a, b in zip(got.result, want.result, strict=True):
        np.testing.assert_allclose(a, b, rtol=1e-12)


@pytest.mark.parametrize("f", [triangle, strides, uneven], ids=lambda f: f.__name__)
def test_which_are_carried(f: Any) -> None:
    core = finished(trace(f, (np.ones(7), 5, 2)).core, target=Target.ptx)
    carried = [p for s in all_stms(core.body) if isinstance(s.exp, For) for p in s.exp.params if p.type == I64]
    assert bool(carried) == (f is uneven)


def test_nothing_to_do_the_second_time() -> None:
    once = count_at_once(trace(strides, (np.ones(7), 5, 2)).core)
    assert count_at_once(once) is once
