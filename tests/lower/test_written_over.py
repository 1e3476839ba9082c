"""Loops whose arrays are made anew each time from the old ones: in the memory of the old one, where nobody sees it.

Each program says whether a second array is needed; its result is that of plain Python either way, by every stage of
the compiler and with parallel loops cut however small they are.
"""

import numpy as np
import pytest

import tapeless as tp
from tapeless.testing.compare import compare
from tapeless.testing.stages import outcomes

pytestmark = pytest.mark.usefixtures("compiled_anew")


def doubled(x, n):
    for _ in range(n):
        x = x * 2.0 + 1.0
    return x


def of_two_arrays(x, n):
    v = np.zeros_like(x)
    for _ in range(n):
        v = v - 0.1 * x
        x = x + 0.1 * v
    return x, v


def one_element_of_the_old_one(x, n):
    for k in range(n):
        x = np.minimum(x, x[k] + 0.5)
    return x


def row_and_column(x, n):
    for k in range(n):
        x = np.minimum(x, x[:, k, None] + x[k])
    return x


def a_row_is_subtracted(x, n):
    for k in range(n):
        x = x - x[k] * 0.5
    return x


def rows_less_their_sum(x, n):
    for _ in range(n):
        x = tp.map(lambda row: row - np.sum(row) * 0.1, x)
    return x


def own_element_of_a_row(x, n):
    for _ in range(n):
        x = tp.map(lambda row: row - row[0], x)
    return x


def updated_afterwards(x, n):
    for _ in range(n):
        x = x * 2.0
        x[0] = 1.0
    return x


def only_sometimes(x, n):
    for k in range(n):
        if k % 2 == 0:
            x = x * 2.0 - 1.0
    return x


def in_one_way_or_another(x, n):
    for k in range(n):
        if k % 2 == 0:
            x = x * 2.0
        else:
            x = x + 1.0
    return x


def in_one_pass_with_a_sum(x, n):
    s = np.float64(0.0)
    for _ in range(n):
        y = x * 2.0
        s += np.sum(y * x)
        x = y
    return x, s


def while_it_is_small(x, n):
    while np.max(x) < 50.0:
        x = x * 1.5 + 1.0
    return x


def backwards_beside_accumulators(x, n):
    return tp.grad(lambda y: np.sum(row_and_column(y, n) ** 2))(x)


IN_PLACE = [
    doubled, of_two_arrays, one_element_of_the_old_one, row_and_column, a_row_is_subtracted, rows_less_their_sum,
    own_element_of_a_row, updated_afterwards, only_sometimes, in_one_way_or_another,
    in_one_pass_with_a_sum, while_it_is_small, backwards_beside_accumulators,
]  # fmt: skip


def neighbours(x, n):
    for _ in range(n):
        x = np.concatenate((x[1:], x[:1])) + x
    return x


def reversed_order(x, n):
    for _ in range(n):
        x = x + x[::-1]
    return x


def gathered(x, n):
    index = np.arange(len(x))[::-1]
    for _ in range(n):
        x = tp.map(lambda i: x[i] + 0.5 * x[index[i]], len(x))
    return x


def transposed(x, n):
    for _ in range(n):
        x = x + x.T
    return x


def the_old_one_is_kept(x, n):
    old = x
    for _ in range(n):
        old, x = x, x * 2.0
    return old, x


def a_row_is_used_afterwards(x, n):
    s = np.float64(0.0)
    for k in range(n):
        row = x[k]
        y = x * 2.0
        s += np.sum(row)
        x = y
    return x, s


def read_by_the_other_arm(x, n):
    v = x * 0.5
    for k in range(n):
        y = x[::-1]
        if k % 2 == 0:
            x = x * 2.0
        else:
            x = x + y
    return x, v


def of_each_other(x, n):
    y = x * 0.5
    for _ in range(n):
        x, y = x + y[::-1], y + x[::-1]
    return x, y


def rows_twice(x, n):
    for _ in range(n):
        x = tp.map(lambda row: np.cumsum(row * 2.0) + row, x)
    return x


OTHERWISE = [
    neighbours, reversed_order, gathered, transposed, the_old_one_is_kept, a_row_is_used_afterwards, read_by_the_other_arm, of_each_other, rows_twice,
]  # fmt: skip
SQUARE = {row_and_column, a_row_is_subtracted, rows_less_their_sum, own_element_of_a_row, transposed,
          a_row_is_used_afterwards, rows_twice, backwards_beside_accumulators}  # fmt: skip


def argument(function):
    x = np.linspace(0.5, 3.0, 6) * [1, -1, 2, 1, -2, 1]
    return x[:, None] * np.linspace(-1.0, 2.0, 6) if function in SQUARE else x


@pytest.mark.sampled(8, each="function")
@pytest.mark.parametrize("function", IN_PLACE + OTHERWISE)
@pytest.mark.parametrize("steps", [0, 1, 2, 5])
def test_results(function, steps):
    for level in (0, 3) if steps == 2 else (0,):
        found = outcomes(function, lambda: [argument(function).copy(), steps], level=level, seed=level)
        _, python = next(found)
        for stage, outcome in found:
            assert compare(python, outcome) == "", stage


@pytest.mark.sampled(3)
@pytest.mark.parametrize("function", IN_PLACE)
def test_no_second_array(function):
    loops = tp.function(function).ir(argument(function), 3, stage="loops")
    assert "swap" not in loops
    assert "_next" not in loops


@pytest.mark.sampled(4)
@pytest.mark.parametrize("function", [f for f in OTHERWISE if f is not rows_twice])
def test_a_second_array(function):
    loops = tp.function(function).ir(argument(function), 3, stage="loops")
    assert "_next" in loops
