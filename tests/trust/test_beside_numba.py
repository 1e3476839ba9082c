"""Numba in the same process: both have the one llvmlite that is installed, and threads of their own."""

from __future__ import annotations

import numpy as np
import pytest

import tapeless as tp


def total(x):
    s = 0.0
    for i in tp.prange(len(x)):
        s += np.sin(x[i])
    return s


def test_both_compile_and_run():
    numba = pytest.importorskip("numba")
    theirs = numba.njit(parallel=True)(lambda x: np.sum(np.sin(x)))
    x = np.linspace(0.0, 3.0, 200_000)
    for _ in range(2):
        assert abs(tp.function(total)(x) - theirs(x)) < 1e-6
        np.testing.assert_array_equal(tp.grad(total)(x)[:2], np.cos(x[:2]))
        assert abs(tp.function(lambda x: tp.callback(theirs, 0.0, x))(x) - theirs(x)) < 1e-6
