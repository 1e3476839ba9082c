"""Scans, histograms and sums by blocks of threads with memory that they share: block_scans.py, block_histograms.py."""

from __future__ import annotations

from typing import Any

import numpy as np
import pytest

import tapeless as tp
from tapeless.ir.types import i64
from tapeless.lower.ir.loopir import Barrier, For, Launch, Tag
from tapeless.lower.ir.walk import is_blocked, walk
from tapeless.lower.parallel import block_histograms, block_scans, work
from tapeless.testing.compare import Returned
from tapeless.testing.stages import by_python, on_device
from tests.lower.device import recurrence, run, sums

MANY = 3


def heavy_recurrence(x: np.ndarray, y: np.ndarray) -> tuple[np.ndarray, np.ndarray]:
    """Too much for a thread to make several elements; they give more than what is scanned."""
    a = np.array([np.sum(np.sin(x[i] + np.arange(4.0))) / 5 for i in range(len(x))])
    return np.cumsum(a), a


@pytest.mark.thorough
@pytest.mark.parametrize("f", [recurrence, sums, heavy_recurrence], ids=lambda f: f.__name__)
@pytest.mark.parametrize("each, count", [(1, 1100), (4, 2100), (1, 256), (4, 0)])
def test_scans_of_several_blocks_and_tiles(f: Any, each: int, count: int, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(block_scans, "EACH_THREAD", each)
    monkeypatch.setattr(work, "MOST_BLOCKS", 2)
    run(f, count)


def many_sums(x: np.ndarray, y: np.ndarray) -> list[np.ndarray]:
    return [np.cumsum(x * k + y) for k in range(MANY)]


def turned_often(x: np.ndarray, y: np.ndarray) -> tuple[np.ndarray, ...]:
    """Numbers of a scan that depend on each other, in an order that matters."""

    def then(a: tuple[float, ...], b: tuple[float, ...]) -> tuple[float, ...]:
        return tuple(a[k] * b[0] + b[k] if k else a[0] * b[0] for k in range(MANY))

    return tp.scan(then, (1.0,) + (0.0,) * (MANY - 1), (x, *[y] * (MANY - 1)))


@pytest.mark.thorough
@pytest.mark.parametrize("many", [12, 14, 24, 26])
@pytest.mark.parametrize("f", [many_sums, turned_often], ids=lambda f: f.__name__)
def test_scans_of_more_numbers_than_shared_memory_has_room_for(
    f: Any, many: int, monkeypatch: pytest.MonkeyPatch
) -> None:
    """Two cells for each thread, one, or another way: the verifier counts them."""
    monkeypatch.setitem(globals(), "MANY", many)
    run(f, 300)


def many_counted(x: np.ndarray, y: np.ndarray) -> tuple[np.ndarray, np.ndarray]:
    """More bins than threads of a block; some elements fall into none."""
    keys = (np.abs(x) * 200).astype(np.int64) - 5
    both = tp.hist(lambda a, b: (a[0] + b[0], max(a[1], b[1])), (0.0, -np.inf), 300, keys, (y, x))
    return both[0], both[1]


@pytest.mark.thorough
@pytest.mark.parametrize("room, count", [(300 * 16, 5000), (300 * 16 - 1, 2500), (1 << 15, 2399), (1 << 15, 0)])
def test_histograms_of_blocks(room: int, count: int, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(block_histograms, "ROOM", room)
    program = run(many_counted, count)
    blocked = [s for s in walk(program.body) if isinstance(s, Launch) and is_blocked(s.kernel.loop)]
    assert blocked


def test_loops_of_histograms_are_one_kernel_while_shared_memory_lasts() -> None:
    def shares(x: np.ndarray, y: np.ndarray) -> np.ndarray:
        total = np.zeros(4)
        keys = (np.abs(x) * 3).astype(np.int64)
        for k in range(5):
            total = tp.hist(lambda a, b: a + b, 0.0, 4, keys, y * total[0] + k)
        return total

    program = run(shares, 40)
    loops = [s.kernel for s in walk(program.body) if isinstance(s, Launch) and s.kernel.loop.hi == i64(1)]
    in_turn = [s for k in loops for s in walk(k.block) if isinstance(s, For) and s.tag == Tag.seq]
    assert any(isinstance(inner, Barrier) for s in in_turn for inner in walk(s.body))


def checked_sum(x: np.ndarray, y: np.ndarray) -> float:
    return np.sum(y[(np.abs(x) * 2).astype(np.int64)])


def checked_scan(x: np.ndarray, y: np.ndarray) -> np.ndarray:
    return np.cumsum(y[(np.abs(x) * 2).astype(np.int64)])


@pytest.mark.parametrize("f", [checked_sum, checked_scan], ids=lambda f: f.__name__)
def test_a_thread_of_a_block_that_fails(f: Any) -> None:
    """The others go on with what it has not written, which nobody sees: the error is the result."""
    x = np.full(320, 0.5)
    x[300] = 9e3
    outcome, _ = on_device(f, lambda: [x.copy(), np.ones(320)])
    assert type(outcome) is type(by_python(f, lambda: [x.copy(), np.ones(320)])) and "18000" in str(outcome)


def test_a_sum_of_several_blocks() -> None:
    """More than one block of threads, so that the second kernel has something to do."""
    x = np.arange(2100.0)
    outcome, lowered = on_device(lambda y: np.sum(y * 2.0), lambda: [x.copy()])
    assert isinstance(outcome, Returned) and outcome.result == 2 * x.sum()
    inside = [s for s in walk(lowered.program.body) if isinstance(s, For) and s.tag is Tag.block]
    assert len(inside) == 2 and all(any(isinstance(s, Barrier) for s in walk(b.body)) for b in inside)
