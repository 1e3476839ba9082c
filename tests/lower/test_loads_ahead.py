"""Loops of a GPU's threads that read some iterations ahead: Note [Loads ahead]."""

from __future__ import annotations

from typing import Any

import numpy as np
import pytest

import tapeless as tp
from tapeless.lower.ir.loopir import For, Launch, Load, Program
from tapeless.lower.ir.walk import walk
from tapeless.lower.loads_ahead import AHEAD
from tapeless.testing.compare import compare
from tapeless.testing.stages import by_python, on_device
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


def gathered(x: np.ndarray, keys: np.ndarray) -> np.ndarray:
    """Positions in an array that are read from another one."""

    def of(a: float) -> float:
        total = 0.0
        for k in range(len(keys)):
            total += x[keys[k]] * a
        return total

    return tp.map(of, x)


@pytest.mark.parametrize("count", [0, 1, AHEAD, AHEAD + 1, 3 * AHEAD - 1])
@pytest.mark.parametrize("wrong", [None, 0, AHEAD - 1, AHEAD, 2 * AHEAD])
@pytest.mark.parametrize("value", [-3, -4, 3])
def test_positions_are_tested_together(count: int, wrong: int | None, value: int) -> None:
    """-3 is the first from the end, the others are outside: the error is that of the first position that is."""
    keys = np.random.default_rng(count).integers(0, 3, count)
    if wrong is not None:
        keys[wrong:] = value
    args = [np.array([1.0, 2.0, 4.0]), keys]
    outcome, lowered = on_device(gathered, lambda: args)
    assert ahead(lowered.program) or count < 2
    problem = compare(by_python(gathered, lambda: args), outcome)
    assert not problem, problem


def test_what_is_written_meanwhile() -> None:
    loops = ahead(run(written, 9))
    assert loops and all(s.buffer.name != "result0" for loop in loops for s in loop.body if isinstance(s, Load))
