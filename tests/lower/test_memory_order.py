"""Neighbouring threads have neighbouring cells: Note [Neighbours]."""

from __future__ import annotations

from typing import Any

import numpy as np
import pytest

import tapeless as tp
from tapeless.ir.types import F64, I64, Var, i64
from tapeless.lower.ir.loopir import Atomic, Buffer, Let, Load, Space, Stm, Store
from tapeless.lower.parallel.memory_order import in_memory_order
from tapeless.testing.compare import compare
from tapeless.testing.stages import by_python, on_device

I, J, N = Var("i", I64), Var("j", I64), Var("n", I64)
A, B = (Buffer(name, F64.dtype, Space.param) for name in "ab")


def number(name: str, op: str, *args: Any) -> tuple[Stm, Var]:
    var = Var(name, I64)
    return Let(var, op, tuple(a if isinstance(a, Var) else i64(a) for a in args)), var


def position(row: Var, column: Var) -> tuple[list[Stm], Var]:
    first, at = number("at", "mul", row, N)
    second, both = number("at", "add", at, column)
    return [first, second], both


ROWS, IJ = position(I, J)
COLUMNS, JI = position(J, I)
SHIFT, SHIFTED = number("s", "add", JI, N)
MOD, MODULO = number("m", "mod", SHIFTED, N)
HALF, HALVED = number("h", "floordiv", IJ, 2)
VALUE = Var("v", F64)


@pytest.mark.parametrize(
    "stms, order",
    [
        ([*ROWS, Load(VALUE, A, IJ)], [0, 1]),
        ([*COLUMNS, Load(VALUE, A, JI)], [1, 0]),
        ([*ROWS, *COLUMNS, Load(VALUE, A, IJ), Store(B, JI, VALUE)], [0, 1]),  # as it was written
        ([*ROWS, *COLUMNS, Load(VALUE, A, IJ), Load(VALUE, A, JI), Atomic("add", B, JI, VALUE)], [1, 0]),
        ([*COLUMNS, SHIFT, MOD, Atomic("add", B, MODULO, VALUE)], [1, 0]),
        ([Load(VALUE, A, J)], [1, 0]),  # one cell for all threads
        ([*ROWS, HALF, Load(VALUE, A, HALVED), Load(VALUE, A, J)], [1, 0]),
        ([], [0, 1]),
    ],
    ids=["rows", "columns", "both", "more columns", "shifted columns", "one index", "halves", "nothing"],
)
def test_order(stms: list[Stm], order: list[int]) -> None:
    assert in_memory_order(stms, [I, J]) == order


def turned(t: np.ndarray, x: np.ndarray) -> np.ndarray:
    return tp.map(lambda i: tp.map(lambda j: t[j, i] * np.sin(x[i]) + x[j], len(t)), t.shape[1])


def added(t: np.ndarray, x: np.ndarray) -> np.ndarray:
    out = np.zeros(t.shape)
    for i in tp.prange(t.shape[1]):
        for j in range(len(t)):
            out[(j + 1) % len(t), i] += t[j, i] * x[i]
    return out


def of_three(t: np.ndarray, x: np.ndarray) -> np.ndarray:
    def cell(i: int, j: int, k: int) -> float:
        return t[k, i] * x[j] + t[k, j]

    n, m = t.shape
    return tp.map(lambda i: tp.map(lambda j: tp.map(lambda k: cell(i, j, k), n), m), m)


@pytest.mark.parametrize("f", [turned, added, of_three], ids=lambda f: f.__name__)
@pytest.mark.parametrize("shape", [(3, 5), (5, 3), (1, 4), (0, 2), (2, 0)])
def test_nests_in_another_order(f: Any, shape: tuple[int, int]) -> None:
    rng = np.random.default_rng(3)
    args = [rng.normal(size=shape), rng.normal(size=max(shape))]
    outcome, _ = on_device(f, lambda: [a.copy() for a in args])
    problem = compare(by_python(f, lambda: [a.copy() for a in args]), outcome, empty=False)
    assert not problem, problem
