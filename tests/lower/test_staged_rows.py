"""Rows that the threads of a block make in shared memory: Note [Rows through shared memory]."""

from __future__ import annotations

from typing import Any

import numpy as np
import pytest

import tapeless as tp
from tapeless.lower.ir.loopir import Buffer, Launch, Program, Space
from tapeless.lower.ir.walk import buffers, walk
from tapeless.lower.parallel import staged_rows
from tapeless.testing.compare import Raised, compare
from tapeless.testing.stages import by_python, on_device
from tests.lower.device import run


def made_in_shared_memory(program: Program) -> set[Buffer]:
    kernels = [s.kernel.block for s in walk(program.body) if isinstance(s, Launch)]
    found = {b for block in kernels for s in walk(block) for b in buffers(s)}
    return {b for b in found if b.space is Space.shared and b.name.startswith("rows")}


@pytest.fixture(autouse=True)
def any_number_of_rows(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(staged_rows, "ENOUGH", 0)


def powers(x: np.ndarray, y: np.ndarray) -> np.ndarray:
    def row(a: float, b: float) -> np.ndarray:
        return np.array([a, a * b, np.sin(b)])

    return tp.map(row, x, y)


def tables(x: np.ndarray, y: np.ndarray) -> tuple[np.ndarray, np.ndarray]:
    """Two results of different rank and dtype, with loops inside of a row."""

    def row(a: float, b: float) -> tuple[np.ndarray, np.ndarray]:
        table, signs = np.zeros((2, 4)), np.zeros(5, np.int32)
        for k in range(4):
            table[0, k] = a * k
            table[1, k] += table[0, k] + b
        signs[2] = 1 if a < b else -1
        return table, signs

    return tp.map(row, x, y)


def gathered(x: np.ndarray, y: np.ndarray) -> np.ndarray:
    """Rows of another array, as long as it says."""
    table = np.stack((x, y, x * y), axis=1)
    return table[np.argsort(y)]


def of_any_width(x: np.ndarray, y: np.ndarray) -> np.ndarray:
    """Rows as long as there are elements: from some length on they do not fit."""
    return tp.map(lambda a: np.cumsum(y * a), x)


@pytest.mark.parametrize("f", [powers, tables, gathered, of_any_width], ids=lambda f: f.__name__)
@pytest.mark.parametrize("count", [1, 127, 128, 300])
def test_rows_are_those_of_the_threads_alone(f: Any, count: int) -> None:
    program = run(f, count)
    if f is not of_any_width and count > 1:  # one element is no loop
        assert made_in_shared_memory(program)


def table_of(x: np.ndarray, keys: np.ndarray) -> np.ndarray:
    return tp.map(lambda k: np.array([x[k], x[k] + 1.0]), keys)


@pytest.mark.parametrize("wrong", [None, 0, 130, 199])
def test_a_thread_that_fails(wrong: int | None) -> None:
    keys = np.arange(200) % 3
    if wrong is not None:
        keys[wrong] = 7
    args = [np.array([1.0, 2.0, 4.0]), keys]
    outcome, lowered = on_device(table_of, lambda: args)
    assert made_in_shared_memory(lowered.program)
    assert isinstance(outcome, Raised) == (wrong is not None)
    problem = compare(by_python(table_of, lambda: args), outcome)
    assert not problem, problem


def test_few_rows_are_written_by_their_threads(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(staged_rows, "ENOUGH", 1000)
    run(powers, 300)


def added(x: np.ndarray, y: np.ndarray) -> np.ndarray:
    """Rows that are written over, and looked at by others."""
    table = np.stack((x, y), axis=1)
    for _ in range(3):
        table = tp.map(lambda row: np.array([row[0] + row[1], table[0, 1]]), table)
    return table


def test_rows_that_others_read() -> None:
    run(added, 200)
