"""Several threads for each row of a sparse matrix: Note [Ragged rows]."""

from __future__ import annotations

from typing import Any

import numpy as np
import pytest

import tapeless as tp
from tapeless.lower.ir.loopir import Let, Program
from tapeless.lower.ir.walk import walk
from tapeless.testing.compare import compare
from tapeless.testing.stages import by_python, on_device


def lanes(program: Program) -> list[Let]:
    """Where a thread finds its row."""
    return [s for s in walk(program.body) if isinstance(s, Let) and s.var.name == "row" and s.op == "floordiv"]


def product(entries: np.ndarray, x: np.ndarray, start: np.ndarray, column: np.ndarray) -> float:
    y = np.empty(len(start) - 1)
    for i in tp.prange(len(y)):
        total = 0.0
        for e in range(start[i], start[i + 1]):
            total += entries[e] * x[column[e]]
        y[i] = total
    return np.sum(y * y)


def of_rows(entries: np.ndarray, x: np.ndarray, start: np.ndarray, column: np.ndarray) -> float:
    """Each row adds to a cell of its own, too."""

    def row(i: int) -> float:
        total = 0.0
        for e in range(start[i], start[i + 1]):
            total += entries[e] * x[column[e]] * x[i]
        return total

    return np.sum(np.sin(tp.map(row, len(start) - 1)))


@pytest.mark.parametrize("f", [product, of_rows], ids=lambda f: f.__name__)
@pytest.mark.parametrize("counts", [[0], [3], [0, 1, 0, 7, 8, 9, 0], [17, 2, 30]], ids=str)
@pytest.mark.parametrize("deterministic", [False, True])
def test_slopes_by_entries_and_by_the_vector(f: Any, counts: list[int], deterministic: bool) -> None:
    rng = np.random.default_rng(sum(counts))
    start = np.concatenate(([0], np.cumsum(counts)))
    args = [rng.normal(size=start[-1]), rng.normal(size=9), start, rng.integers(0, 9, start[-1])]

    def slopes(*args: Any) -> Any:
        return tp.grad(f, argnums=(0, 1))(*args)

    outcome, lowered = on_device(slopes, lambda: args, deterministic=deterministic)
    assert deterministic or len(counts) == 1 or lanes(lowered.program)
    problem = compare(by_python(slopes, lambda: args), outcome)
    assert not problem, problem
