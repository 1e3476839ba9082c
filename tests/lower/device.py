"""Runs a function as a GPU would, by the interpreter of Loop IR, and some functions for that."""

from __future__ import annotations

import copy
from typing import Any

import numpy as np

import tapeless as tp
from tapeless.testing.compare import Returned
from tapeless.testing.stages import by_python, on_device

RNG = np.random.default_rng(2)


def run(f: Any, count: int) -> Any:
    args = [RNG.normal(size=count), RNG.normal(size=count)]
    outcome, lowered = on_device(f, lambda: copy.deepcopy(args), seed=count)
    want = by_python(f, lambda: copy.deepcopy(args))
    assert isinstance(outcome, Returned) and isinstance(want, Returned), (outcome, want)
    results = [x if isinstance(x, tuple) else (x,) for x in (outcome.result, want.result)]
    for got, expected in zip(*results, strict=True):
        np.testing.assert_allclose(got, expected, rtol=1e-10, atol=1e-12)
    return lowered.program


def turned(a: tuple[float, float], b: tuple[float, float]) -> tuple[float, float]:
    """Affine maps, one after the other: the order matters."""
    return a[0] * b[0], a[1] * b[0] + b[1]


def recurrence(x: np.ndarray, y: np.ndarray) -> tuple[np.ndarray, np.ndarray]:
    return tp.scan(turned, (1.0, 0.0), (x, y))


def sums(x: np.ndarray, y: np.ndarray) -> np.ndarray:
    return np.cumsum(np.sin(x)) + tp.scan(max, -np.inf, y, exclusive=True, reverse=True)
