"""Memory of large results: it is used again, once nobody looks at it any more."""

from __future__ import annotations

import gc

import numpy as np
import pytest

import tapeless as tp
from tapeless.backends.cpu import buffers
from tapeless.runtime import results

LENGTH = results.LARGE_RESULT // 8 + 1


@tp.function
def doubled(x):
    return x + x


@tp.function
def longer(x):
    return np.full(len(x) + int(x[0]), 2.0 * x[1])  # of a size that native code finds


@pytest.fixture(autouse=True)
def nothing_kept():
    buffers.trim()
    yield
    buffers.trim()


def address(a: np.ndarray) -> int:
    return a.__array_interface__["data"][0]


@pytest.mark.parametrize("f", [doubled, longer])
def test_a_dropped_result_gives_its_memory_to_the_next(f) -> None:
    x = np.ones(LENGTH)
    first = f(x)
    at = address(first)
    kept = first.copy()
    del first
    assert buffers.kept() >= x.nbytes
    second = f(x)
    assert address(second) == at
    np.testing.assert_array_equal(second, kept)


@pytest.mark.thorough
@pytest.mark.parametrize("f", [doubled, longer])
def test_results_in_use_keep_their_memory(f) -> None:
    x = np.ones(LENGTH)
    first = f(x)
    part = first[5:7]
    del first
    gc.collect()
    second = f(3.0 * x)
    assert not np.shares_memory(part, second)
    np.testing.assert_array_equal(part, [2.0, 2.0])


def test_large_results_are_ordinary_arrays() -> None:
    a = doubled(np.ones((2, LENGTH // 2 + 1)))
    assert a.flags.c_contiguous and a.flags.writeable and a.flags.aligned and a.dtype == np.float64
    a[0, 0] = 5.0
    assert doubled(a)[0, 0] == 10.0


def test_small_results_are_numpys_own() -> None:
    assert doubled(np.ones(1000)).flags.owndata


def test_gradients_and_the_general_way() -> None:
    x = np.full(LENGTH, 3.0)
    value, gradient = tp.value_and_grad(lambda x: (x * x).sum())(x)
    assert value == 9.0 * LENGTH and (gradient == 6.0).all()
    every_other = np.full(2 * LENGTH, 3.0)[::2]  # has to be copied first
    assert (doubled(every_other) == 6.0).all()


def test_no_memory() -> None:
    with pytest.raises(MemoryError, match="shape"):
        results.empty((2**50,), np.dtype(np.float64))
