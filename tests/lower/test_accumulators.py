"""Accumulators on threads: private copies for many updates of few cells, none where they would cost more."""

import numpy as np
import pytest

import tapeless as tp
from tapeless.ir.types import DType, i64
from tapeless.lower.core.code import LINE, Code


def picked(table, places):
    total = 0.0
    for i in tp.prange(len(places)):
        total += np.sin(table[places[i]]) * i
    return total


def picked_rows(table, places):
    total = 0.0
    for i in tp.prange(len(places)):
        total += np.sin(table[places[i], 1]) * table[places[i], 0] * i
    return total


# Few cells and many updates; as many of both; few updates of many cells; nothing.
SIZES = [(1, 50_000), (7, 50_000), (60_000, 60_000), (500_000, 4_000), (3, 0)]


@pytest.mark.parametrize(("cells", "updates"), SIZES)
@pytest.mark.parametrize("threads", [1, 2, 3])
def test_sums_at_places(cells, updates, threads):
    random = np.random.default_rng(0)
    table, places = random.normal(size=cells), random.integers(0, cells, updates)
    gradient = tp.grad(tp.function(picked, threads=threads))(table, places)
    expected = np.zeros(cells)
    np.add.at(expected, places, np.cos(table[places]) * np.arange(updates))
    np.testing.assert_allclose(gradient, expected, rtol=1e-11)


@pytest.mark.parametrize(("cells", "updates"), SIZES)
@pytest.mark.parametrize("threads", [1, 2, 3])
def test_sums_in_rows(cells, updates, threads):
    random = np.random.default_rng(0)
    table, places = random.uniform(0.5, 1.0, (cells, 2)), random.integers(0, cells, updates)
    gradient = tp.grad(tp.function(picked_rows, threads=threads))(table, places)
    expected = np.zeros((cells, 2))
    x, y, i = table[places, 0], table[places, 1], np.arange(updates)
    np.add.at(expected, (places, 0), np.sin(y) * i)
    np.add.at(expected, (places, 1), np.cos(y) * x * i)
    np.testing.assert_allclose(gradient, expected, rtol=1e-11)


def test_rows_of_ones_own_need_no_copies():
    def shifted(x):
        y = np.zeros(len(x))
        for i in tp.prange(len(x) - 1):
            y[i] = x[i + 1] * x[i + 1]
        return y.sum()

    x = np.linspace(0.0, 1.0, 100_000)
    f = tp.grad(tp.function(shifted, threads=2))
    assert "private" not in f.ir(x, stage="loops")
    np.testing.assert_allclose(f(x), np.where(np.arange(len(x)) > 0, 2 * x, 0.0))


@pytest.mark.parametrize(
    ("dtype", "cells", "stride"), [("f64", 300, 304), ("f32", 300, 320), ("i64", 16, 16), ("f64", 1, 16)]
)
def test_copies_of_threads_share_no_line(dtype, cells, stride):
    """Else the first cells of one copy are taken from the thread that adds to the last ones of another."""
    code = Code()
    found = code.allocate_apart(DType[dtype], i64(2), [i64(cells)])
    assert found.strides == (i64(stride), i64(1)) and LINE % 64 == 0
    assert found.buffer.size == 2 * stride
