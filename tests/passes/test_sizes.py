"""Sizes that a test has found equal are one from there on."""

from __future__ import annotations

from typing import Any

import numpy as np
import pytest

import tapeless as tp
from tapeless.frontend.entry import trace
from tapeless.ir.core import Check, Sweep
from tapeless.ir.walk import all_stms
from tapeless.passes.pipeline import finished
from tapeless.passes.tidy.sizes import equal_sizes
from tapeless.testing.compare import compare
from tapeless.testing.stages import outcomes

X, Y = np.arange(6.0) + 1, np.arange(3.0) + 2


def halves(x: np.ndarray, y: np.ndarray) -> np.ndarray:
    w = len(y)
    a, b = np.exp(-x[:w]), np.exp(-x[w : 2 * w])
    return a * y + b * y + a


def in_a_loop(x: np.ndarray, y: np.ndarray) -> np.ndarray:
    w = len(x) // 2
    for _ in range(3):
        y = np.sin(x[:w]) * y + np.cos(x[w:])
    return y


def chain(x: np.ndarray, y: np.ndarray) -> np.ndarray:
    """Three sizes, each equal to the next."""
    a, b, c = x[: len(y)] * 2, x[len(y) :] * 3, y * 4
    return (a + b) * c + b


def index_first(x: np.ndarray, y: np.ndarray) -> np.ndarray:
    """The index is wrong before the sizes are."""
    z = x[1:] * 2
    first = y[len(x)]
    return z * y + first


@pytest.mark.thorough
@pytest.mark.parametrize("f", [halves, in_a_loop, chain], ids=lambda f: f.__name__)
def test_values_and_gradients(f: Any) -> None:
    (_, want), *others = outcomes(f, lambda: (X.copy(), Y.copy()))
    assert not any(compare(got, want) for _, got in others)
    tp.check_grads(lambda x, y: np.sum(f(x, y)), (X, Y))


def test_maps_are_fused() -> None:
    core = finished(trace(halves, (X, Y)).core)
    assert sum(isinstance(s.exp, Sweep) for s in all_stms(core.body)) == 1
    assert sum(isinstance(s.exp, Check) for s in all_stms(core.body)) >= 1


@pytest.mark.parametrize("f", [halves, in_a_loop, chain], ids=lambda f: f.__name__)
def test_sizes_that_differ_are_an_error(f: Any) -> None:
    for args in ((X, np.ones(5)), (X[:5], np.ones(4))):
        with pytest.raises(ValueError, match="do not fit together|could not be broadcast"):
            tp.function(f)(*args)


def test_the_first_error_is_raised_first() -> None:
    with pytest.raises(IndexError):
        tp.function(index_first)(X, Y)


def test_nothing_to_do_the_second_time() -> None:
    once = equal_sizes(trace(chain, (X, Y)).core)
    assert equal_sizes(once) is once
