"""Adjoints of rows that lie one behind the other, where the starts say so and where they do not."""

import numpy as np
import pytest

import tapeless as tp

STARTS = {
    "all cells": [0, 3, 7, 12],
    "empty rows": [0, 0, 5, 5, 12, 12],
    "one row": [0, 12],
    "no row": [0],
    "cells in front": [2, 3, 7, 12],
    "cells behind": [0, 3, 7, 10],
    "rows that overlap": [0, 6, 3, 12],
    "falling": [12, 7, 3, 0],
    "from behind": [-4, 0, 12],
    "a cell twice": [-1, 3, 12],
}


def squares(start, column, value, x):
    total = 0.0
    for i in tp.prange(len(start) - 1):
        row = 0.0
        for e in range(start[i], start[i + 1]):
            row += value[e] * x[column[e]]
        total += row * row
    return total


def squares_backwards(start, column, value, x):
    value_adj, x_adj = np.zeros_like(value), np.zeros_like(x)
    for i in range(len(start) - 1):
        cells = range(start[i], start[i + 1])
        row = sum(value[e] * x[column[e]] for e in cells)
        for e in cells:
            value_adj[e] += 2.0 * row * x[column[e]]
            x_adj[column[e]] += 2.0 * row * value[e]
    return value_adj, x_adj


def arguments(start):
    rng = np.random.default_rng(3)
    return np.array(start), rng.integers(-4, 4, 12), rng.normal(size=12), rng.normal(size=4)


@pytest.mark.sampled(3)
@pytest.mark.parametrize("threads", [1, 2])
@pytest.mark.parametrize("start", STARTS.values(), ids=STARTS.keys())
def test_gradients(start, threads):
    args = arguments(start)
    found = tp.grad(tp.function(squares, threads=threads), argnums=(2, 3))(*args)
    for a, b in zip(found, squares_backwards(*args), strict=True):
        np.testing.assert_allclose(a, b, rtol=1e-13, atol=1e-15)


@pytest.mark.sampled(2)
@pytest.mark.parametrize("threads", [1, 2])
@pytest.mark.parametrize("swapped", [False, True])
def test_many_rows(threads, swapped):
    """So many that threads share them."""
    rng = np.random.default_rng(4)
    start = np.concatenate(([0], np.sort(rng.integers(0, 200_000, 20_000)), [200_000]))
    if swapped:
        start[100:102] = start[101], start[100] - 5
    args = start, rng.integers(0, 300, 200_000), rng.normal(size=200_000), rng.normal(size=300)
    found = tp.grad(tp.function(squares, threads=threads), argnums=(2, 3))(*args)
    for a, b in zip(found, squares_backwards(*args), strict=True):
        np.testing.assert_allclose(a, b, rtol=1e-9, atol=1e-9)


def test_cells_are_set():
    text = tp.grad(tp.function(squares), argnums=2).ir(*arguments([0, 12]), stage="optimized")
    assert "acc<set, " in text
    assert "full [m] _" in text


def neighbours(start, value):
    """The cell behind a row's last one is that of another row."""
    total = 0.0
    for i in tp.prange(len(start) - 1):
        row = 0.0
        for e in range(start[i], start[i + 1]):
            row += value[e] * value[e - 1]
        total += row * row
    return total


def every_second_row(start, value):
    total = 0.0
    for i in tp.prange(len(start) - 2):
        row = 0.0
        for e in range(start[i], start[i + 2]):
            row += value[e] * 2.0
        total += row * row
    return total


@pytest.mark.parametrize("function", [neighbours, every_second_row])
def test_other_rows(function):
    start, _, value, _ = arguments([0, 3, 7, 12])
    gradient = tp.grad(tp.function(function), argnums=1)
    assert "acc<set, " not in gradient.ir(start, value, stage="optimized")
    step = 1e-6
    for k in range(12):
        d = step * (np.arange(12) == k)
        slope = (function(start, value + d) - function(start, value - d)) / (2 * step)
        np.testing.assert_allclose(gradient(start, value)[k], slope, rtol=1e-5, atol=1e-7)


def test_bad_positions_still_raise():
    args = list(arguments([0, 3, 14]))
    with pytest.raises(IndexError):
        tp.grad(tp.function(squares), argnums=(2, 3))(*args)
