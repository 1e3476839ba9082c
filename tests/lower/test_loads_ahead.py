"""Loops of a GPU's threads that read some iterations ahead: Note [Loads ahead]."""

from __future__ import annotations

from typing import Any

import numpy as np
import pytest

import tapeless as tp
from tapeless.lower.ir.loopir import For, Launch, Load, Program
from tapeless.lower.ir.walk import walk
from tapeless.lower.loads_ahead import AHEAD
from tests.lower.device import run


def ahead(program: Program) -> list[For]:
    """The loops over batches of iterations."""
    kernels = [s.kernel.block for s in walk(program.body) if isinstance(s, Launch)]
    return [s for block in kernels for s in walk(block) if isinstance(s, For) and s.step == AHEAD]


def last(x: np.ndarray, y: np.ndarray) -> float:
    def of(a: float, b: float) -> float:
        for _ in range(len(x)):
            a = np.sin(a) + b
        return a

    return np.sum(tp.map(of, x, y))


def slopes(x: np.ndarray, y: np.ndarray) -> tuple[np.ndarray, np.ndarray]:
    return tp.grad(last, argnums=(0, 1))(x, y)


def from_the_end(x: np.ndarray, y: np.ndarray) -> np.ndarray:
    def of(a: float) -> float:
        for k in range(len(x)):
            v = x[len(x) - 1 - k]
            if a < v:
                a += np.exp(-v)
        return a

    return tp.map(of, y)


def written(x: np.ndarray, y: np.ndarray) -> np.ndarray:
    """Each iteration reads what the one before has written: nothing can be read ahead."""
    out = np.zeros((len(x), len(x) + 1))
    for i in tp.prange(len(x)):
        for k in range(len(x)):
            out[i, k + 1] = np.sin(out[i, k]) + x[k] * y[i]
    return out


@pytest.mark.parametrize("f", [slopes, from_the_end], ids=lambda f: f.__name__)
@pytest.mark.parametrize("count", [0, 1, AHEAD, AHEAD + 1, 3 * AHEAD - 1])
def test_any_number_of_iterations(f: Any, count: int) -> None:
    loops = ahead(run(f, count))
    assert loops or count < 2  # sizes are numbers there


def test_what_is_written_meanwhile() -> None:
    loops = ahead(run(written, 9))
    assert loops and all(s.buffer.name != "result0" for loop in loops for s in loop.body if isinstance(s, Load))
