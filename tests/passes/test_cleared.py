"""Cells that are read once and cleared: the loop need not write them."""

from __future__ import annotations

from typing import Any

import numpy as np
import pytest

import tapeless as tp
from tapeless.frontend.entry import trace
from tapeless.ir.core import For
from tapeless.ir.walk import all_stms
from tapeless.passes.pipeline import finished
from tapeless.testing.compare import compare
from tapeless.testing.stages import outcomes


def triangle(x: np.ndarray, n: int) -> np.ndarray:
    q = np.zeros((n, n))
    at = 0
    for j in range(n):
        q[j, j] = np.exp(x[j])
        for i in range(j + 1, n):
            q[i, j] = x[at] * x[j]
            at += 1
    return np.sin(q)


def upper(x: np.ndarray, n: int) -> np.ndarray:
    q = np.zeros((n, n))
    for i in range(n):
        for j in range(i):
            q[j, i] = x[i] * x[j]
        q[i, i] = x[i]
    return np.sin(q)


def bands(x: np.ndarray, n: int) -> np.ndarray:
    q = np.zeros(3 * n)
    for i in range(n):
        q[3 * i] = x[i] ** 2
        q[3 * i + 2] = x[i] ** 3
    return np.sin(q)


def overwritten(x: np.ndarray, n: int) -> np.ndarray:
    """The second value of a cell counts."""
    q = np.zeros(n + 1)
    for i in range(n):
        q[i] = x[i] ** 2
        q[i + 1] = x[i] * 3
    return np.sin(q)


def overwritten_above(x: np.ndarray, n: int) -> np.ndarray:
    """One cell is written by two loops."""
    q = np.zeros((n, n))
    for j in range(n):
        q[j, j] = x[j]
        for i in range(j, n):
            q[i, j] = x[i] * x[j]
    return np.sin(q)


def kept(x: np.ndarray, n: int) -> np.ndarray:
    """Cells that the loop leaves alone hang on x too."""
    q = x * 2
    for i in range(n):
        if x[i] > 0:
            q[i] = x[i] ** 2
    return np.sin(q)


def read_again(x: np.ndarray, n: int) -> np.ndarray:
    q = np.zeros(n)
    for i in range(1, n):
        q[i] = x[i] * q[i - 1] + x[0]
    return np.sin(q)


PROGRAMS = (triangle, upper, bands, overwritten, overwritten_above, kept, read_again)


def gradient(f: Any) -> Any:
    return tp.grad(lambda x, n: np.sum(f(x, n) ** 2)).python


@pytest.mark.thorough
@pytest.mark.parametrize("f", PROGRAMS, ids=lambda f: f.__name__)
def test_gradients(f: Any) -> None:
    (_, want), *others = outcomes(gradient(f), lambda: (np.linspace(-1, 1.5, 12), 5))
    for stage, got in others:
        assert not compare(got, want), stage
    tp.check_grads(lambda x: np.sum(f(x, 5) ** 2), (np.linspace(-1, 1.5, 12),))


@pytest.mark.parametrize("f", PROGRAMS, ids=lambda f: f.__name__)
def test_which_loops_carry_no_array(f: Any) -> None:
    core = finished(trace(gradient(f), (np.ones(12), 5)).core)
    carried = [p for s in all_stms(core.body) if isinstance(s.exp, For) for p in s.exp.params if p.type.shape]
    adjoints = [p for p in carried if p.name.startswith("q_adj")]
    assert bool(adjoints) == (f in (overwritten, overwritten_above, kept, read_again)), adjoints
