"""Loops of small kernels in one kernel of one block, by the interpreter of Loop IR with its detector of races."""

from __future__ import annotations

import copy
from collections.abc import Sequence
from typing import Any

import numpy as np
import pytest

import tapeless as tp
from tapeless.frontend.entry import trace
from tapeless.ir.target import Target
from tapeless.ir.types import F64, I64, Const, DType, Var, i64
from tapeless.lower.device_blocks import STRIP
from tapeless.lower.ir.interp import run_program
from tapeless.lower.ir.loopir import Barrier, Buffer, For, Launch, Let, Load, Program, Space, Store, Tag
from tapeless.lower.ir.verify import LoopIRError
from tapeless.lower.ir.walk import walk
from tapeless.lower.lowering import Lowered, lower
from tapeless.passes.check.consumption import check_in_place
from tapeless.passes.pipeline import finished
from tapeless.testing.compare import Raised, Returned
from tapeless.testing.stages import by_python, on_device

RNG = np.random.default_rng(4)


def spring(x: np.ndarray, steps: int) -> tuple[np.ndarray, float]:
    """Arrays that change places, a sum in each step, and a number that is carried."""
    v, energy = np.zeros(len(x)), 0.0
    for k in range(steps):
        v = v - 0.1 * np.sin(x) / (1 + k)
        x = x + 0.1 * v
        energy += np.sum(v * v)
    return x, energy


def filtered(x: np.ndarray, steps: int) -> tuple[np.ndarray, np.ndarray]:
    """A small matrix, by single cells, beside vectors."""
    p = np.eye(2)
    out = np.empty((steps, 2))
    m = x[:2].copy()
    for k in range(steps):
        gain = p[0, 0] / (p[0, 0] + 1.0)
        p[0, 0] = p[0, 0] * (1 - gain) + 0.1
        p[1, 1] = p[1, 1] + p[0, 0] * p[0, 1]
        p[0, 1] = gain
        m = p @ m + x[k % len(x)]
        out[k] = m
    return out, p


def converging(x: np.ndarray, steps: int) -> tuple[np.ndarray, int]:
    """The end is found by the arrays."""
    count = 0
    while np.max(np.abs(x)) > 0.5 and count < steps:
        x = x * 0.8
        count += 1
    return x, count


def nested(x: np.ndarray, steps: int) -> np.ndarray:
    """Branches and loops around kernels, sizes of their own."""
    y = x.copy()
    for k in range(steps):
        for j in range(2):
            if (k + j) % 3 == 0:
                y = y * 0.5 + x
            else:
                y[j] += np.sum(y[::-1])
        y[k % len(y)] = y[0] - y[-1]
    return y


def counted(x: np.ndarray, steps: int) -> np.ndarray:
    """Cells that several threads add to."""
    h = np.zeros(3)
    for k in range(steps):
        for i in tp.prange(len(x)):
            h[(i * k) % 3] += x[i]
        x = x + h[0]
    return h


PROGRAMS = (spring, filtered, converging, nested, counted)


def run(f: Any, args: Sequence[Any], seed: int = 0) -> Lowered:
    outcome, lowered = on_device(f, lambda: copy.deepcopy(list(args)), seed, blocks=True)
    want = by_python(f, lambda: copy.deepcopy(list(args)))
    assert isinstance(outcome, Returned) and isinstance(want, Returned)
    got, wanted = ((r,) if not isinstance(r, tuple) else r for r in (outcome.result, want.result))
    for a, b in zip(got, wanted, strict=True):
        np.testing.assert_allclose(a, b, rtol=1e-9, atol=1e-12)
    return lowered


def blocks_of(lowered: Lowered) -> list[Launch]:
    return [s for s in walk(lowered.program.body) if isinstance(s, Launch) and any(
        isinstance(x, For) and x.tag is Tag.seq and any(isinstance(y, Barrier) for y in walk(x.body))
        for x in walk(s.kernel.loop.body))]  # fmt: skip


@pytest.mark.parametrize("steps", [0, 1, 5])
@pytest.mark.parametrize("f", PROGRAMS, ids=lambda f: f.__name__)
def test_values(f: Any, steps: int) -> None:
    lowered = run(f, (RNG.normal(size=6), steps), seed=steps)
    assert blocks_of(lowered)


LOSSES = {
    "spring": lambda x, steps: np.sum(spring(x, steps)[0] ** 2),
    "filtered": lambda x, steps: np.sum(filtered(x, steps)[0] ** 2),
    "nested": lambda x, steps: np.sum(nested(x, steps) ** 2),
}


@pytest.mark.thorough
@pytest.mark.parametrize("name", LOSSES)
def test_gradients(name: str) -> None:
    slope, args = tp.grad(LOSSES[name]), [RNG.normal(size=5), 3]
    outcome, lowered = on_device(slope.python, lambda: copy.deepcopy(args), 1, blocks=True)
    assert isinstance(outcome, Returned)
    np.testing.assert_allclose(outcome.result, slope(*args), rtol=1e-9, atol=1e-12)
    assert blocks_of(lowered)


def looked_up(x: np.ndarray, where: np.ndarray) -> np.ndarray:
    y = np.zeros(len(x))
    for k in range(len(where)):
        y[where[k]] += 1.0
        y = np.sin(y) + x
    return y


def looked_up_at_once(x: np.ndarray, where: np.ndarray) -> np.ndarray:
    """A sum: each element by itself."""
    y = np.zeros(len(x))
    for k in range(len(where)):
        y[where[k]] += 1.0
        y = y + x
    return y


@pytest.mark.parametrize("f", [looked_up, looked_up_at_once], ids=lambda f: f.__name__)
def test_a_wrong_index_is_an_error(f: Any) -> None:
    lowered = run(f, (RNG.normal(size=4), np.array([0, 3, 1])))
    assert bool(blocks_of(lowered)) == (f is looked_up)
    args = [RNG.normal(size=4), np.array([0, 7, 1])]
    outcome, _ = on_device(f, lambda: copy.deepcopy(args), blocks=True)
    assert isinstance(outcome, Raised) and isinstance(outcome.error, IndexError)


def test_large_arrays_are_left_to_kernels_of_their_own() -> None:
    """The interpreter would take its time over so many elements."""
    for count, small in ((100, True), (100_000, False)):
        core = finished(trace(lambda n, count=count: spring(np.ones(count), n)[1], [1]).core, target=Target.ptx)
        assert bool(blocks_of(lower(check_in_place(core)[0], target=Target.ptx))) == small


def test_long_loops_run_in_strips() -> None:
    lowered = run(lambda x, n: spring(x, n)[1] * 0.0, (RNG.normal(size=3), 2))
    (launch,) = blocks_of(lowered)
    (outer,) = [s for s in walk(lowered.program.body) if isinstance(s, For) and launch in s.body]
    assert any(isinstance(s, Let) and i64(STRIP) in s.args for s in outer.body)


@pytest.mark.parametrize("waiting", [False, True])
def test_threads_of_a_block_that_meet_in_a_cell(waiting: bool) -> None:
    block, thread, other, e = (Var(n, t) for n, t in (("b", I64), ("t", I64), ("o", I64), ("e", F64)))
    shared, y = Buffer("s", DType.f64, Space.shared, 2), Buffer("y", DType.f64, Space.param)
    body = (
        Store(shared, thread, Const(1.0, DType.f64)),
        *([Barrier()] if waiting else []),
        Let(other, "sub", (i64(1), thread)),
        Load(e, shared, other),
        Store(y, thread, e),
    )
    inner = For(thread, i64(0), i64(2), body, tag=Tag.block)
    program = Program("f", (y,), Var("n", I64), (), (), (For(block, i64(0), i64(1), (inner,), tag=Tag.grid),))
    if waiting:
        run_program(program, [np.zeros(2)])
    else:
        with pytest.raises(LoopIRError):
            run_program(program, [np.zeros(2)])
