"""What a GPU does for a program, as text."""

from __future__ import annotations

import numpy as np

import tapeless as tp


def steps(x: np.ndarray, count: int) -> float:
    for _ in range(count):
        x = x + 0.1 * np.sin(x)
    return np.sum(x)


def test_kernels_of_a_loop_and_of_a_sum() -> None:
    text = tp.function(steps).ir(np.ones(3), 2, stage="kernels")
    line = steps.__code__.co_firstlineno
    assert text.startswith("steps:\n")
    assert f"one block, a loop of small kernels, line {line + 1}" in text
    assert f"    for 0 to count, line {line + 1}:\n      a thread for each of n, line {line + 2}" in text
    assert f"a block for each of max(min(((n + 2047) // 2048), 1024), 1), line {line + 3}" in text
    assert "the host waits for a number" in text


def test_calls_and_single_threads() -> None:
    def product(a: np.ndarray, x: np.ndarray) -> np.ndarray:
        y = a @ x
        for i in range(1, len(y)):
            y[i] = np.sin(y[i - 1])
        return y

    text = tp.function(product).ir(np.ones((3, 3)), np.ones(3), stage="kernels")
    assert "call dgemm" in text and "one thread, in order" in text


def test_nothing_for_a_device() -> None:
    assert "nothing runs on the device" in tp.function(lambda x: x * 2.0).ir(1.0, stage="kernels")
