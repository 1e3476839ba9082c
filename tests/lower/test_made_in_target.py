"""An array that is only made to become a row of another one is made there, where the row is known to exist."""

import numpy as np
import pytest

import tapeless as tp
from tests.agreement import agree

V = np.array([0.1, 0.5, -0.3])


def rows(v, n):
    out = np.empty((n, len(v)))
    for i in range(n):
        out[i, :] = 2.0 * v + i
        v = v * 0.5
    return out


def buffers(f, *args):
    return tp.function(f).ir(*args, stage="loops").count("alloc ")


def test_a_row_needs_no_array_of_its_own():
    agree(rows, V, 4)
    assert buffers(rows, V, 4) == 2  # the result, and v


def test_a_row_that_its_values_are_read_from():
    def f(a, n):
        a = a.copy()
        for i in range(n):
            a[i, :] = a[i, ::-1] + a[0, :]
        return a

    agree(f, np.arange(6.0).reshape(3, 2), 3)


@pytest.mark.parametrize("k", [0, 1, -1, 2, -3])
def test_a_row_that_may_not_be_there(k):
    def f(a, v, k):
        t = 2.0 * v
        a[k, :] = t
        return a.sum()

    agree(f, np.zeros((2, 3)), V, k)


def over_itself(a, v):
    a = a.copy()
    for i in range(len(a)):
        a[i, :] = a[i, :] * v + np.exp(a[i, :])
    return a


def beside_itself(a, v):
    a = a.copy()
    for i in range(len(a)):
        a[i, 1:] = a[i, 1:] * v[1:] + a[i, :-1]
    return a


def by_its_first(a, v):
    a = a.copy()
    for i in range(len(a)):
        row = a[i]
        a[i, :] = tp.map(lambda x, w: x * w + row[0] + row[1], a[i], v)
    return a


def running(a, v):
    a = a.copy()
    for i in range(len(a)):
        a[i, :] = np.cumsum(a[i, :] * v)
    return a


def two_at_once(a, v):
    a, b = a.copy(), 2.0 * a
    for i in range(len(a)):
        x, y = a[i] * v + b[i], a[i] - b[i] * v
        a[i] = x
        b[i] = y
    return a - b


def of_another_row(a, v):
    a = a.copy()
    for i in range(1, len(a)):
        a[i, :] = a[i, :] * v + a[i - 1, :]
    return a


def read_once_more(a, v):
    """The old row is read again after the new one is made, before that is written."""
    a, total = a.copy(), 0.0
    for i in range(len(a)):
        old = a[i]
        new = old * v + 1.0
        total += np.sin(old * new.sum()).sum()
        a[i] = new
    return a, total


@pytest.mark.parametrize(
    "f", [over_itself, beside_itself, by_its_first, running, two_at_once, of_another_row, read_once_more]
)
@pytest.mark.parametrize("width", [3, 40])
def test_rows_made_of_what_was_there(f, width):
    agree(f, np.linspace(-1.0, 1.0, 5 * width).reshape(5, width), np.linspace(0.5, 1.5, width))


def test_cells_that_are_read_one_by_one_are_written_over():
    a, v = np.ones((3, 2)), np.ones(2)
    assert buffers(over_itself, a, v) == 0  # in the memory of the result
    assert buffers(beside_itself, a, v) > 0


def blocks(v, n, m):
    """Rows of a block, and blocks of the result."""
    out = np.empty((n, m, len(v)))
    for i in range(n):
        block = np.zeros((m, len(v)))
        for j in range(m):
            block[j, :] = v * (i + 1.0)
            v = v + 0.5
        out[i] = block
    return out


def blocks_read_later(v, n, m):
    out = np.empty((n, m, len(v)))
    total = 0.0
    for i in range(n):
        block = np.zeros((m, len(v)))
        for j in range(m):
            block[j, :] = v + i
        out[i] = block
        block[0, 0] += 1.0
        total += block.sum()
    return out, total


def blocks_from_the_last(v, n, m):
    out = np.ones((n, m, len(v)))
    for i in range(n):
        block = np.zeros((m, len(v)))
        for j in range(m):
            block[j, :] = v + out[i - 1, j, :] + out[i, 0, :]
        out[i] = block
    return out


def blocks_made_anew(v, n, m):
    out = np.empty((n, 2, len(v)))
    for i in range(n):
        block, other = np.zeros((2, len(v))), np.ones((2, len(v)))
        for j in range(m):
            block, other = other, block + v * j
        out[i] = block
    return out


def rows_aside(a, v):
    """The old rows are kept, and read after the row has changed."""
    kept, a = np.empty_like(a), a.copy()
    for i in range(len(a)):
        old = a[i].copy()
        a[i] = old * v
        a[i] += old
        kept[i] = old
    return kept, a


def rows_kept_twice(a, v):
    first, second = np.empty_like(a), np.empty_like(a)
    for i in range(len(a)):
        old = a[i].copy()
        second[i] = old * v
        first[i] = old
        second[i] = old
    return first, second


def columns_aside(a, v):
    kept, a = np.empty((len(v), len(a))), a.copy()
    for i in range(len(a)):
        old = a[i].copy()
        a[i] = old * v + old
        kept[:, i] = old
    return kept, a


@pytest.mark.parametrize("f", [blocks, blocks_read_later, blocks_from_the_last, blocks_made_anew])
@pytest.mark.parametrize("m", [0, 1, 4])
def test_blocks_that_inner_loops_fill(f, m):
    agree(f, V, 3, m)


@pytest.mark.parametrize("f", [rows_aside, rows_kept_twice, columns_aside])
def test_rows_that_are_copied_to_be_kept(f):
    agree(f, np.arange(12.0).reshape(4, 3), V)


def test_blocks_and_copies_need_no_arrays_of_their_own():
    assert buffers(blocks, V, 3, 4) == 3  # the result, and v twice
    assert buffers(rows_aside, np.ones((4, 3)), V) == 0
    assert buffers(columns_aside, np.ones((4, 3)), V) == 1  # read more than once, so that it should lie in order


def inner_cells(a, b):
    a = a.copy()
    a[1:-1, :-1] += b[1:-1, :-1] * 2.0
    a[:, 1:] = a[:, 1:] * b[:, 1:] + 1.0
    return a


def rows_beside(a, b):
    """Cells are read from the neighbours of those that are written."""
    a = a.copy()
    a[1:, :] = a[1:, :] + a[:-1, :] * b[1:, :]
    a[:, 1:] = a[:, 1:] + a[:, :-1]
    return a


def rows_as_a_whole(a, b):
    """Each cell is made from its whole row."""
    a = a.copy()
    a[:, :] = a[:, :] - np.sum(a[:, :], axis=1)[:, None] + b
    return a


def rows_reversed(a, b):
    a = a.copy()
    a[:, 1:] = tp.map(lambda row, other: tp.map(lambda k: row[2 - k] + other[k], np.arange(3)), a[:, 1:], b)
    return a


@pytest.mark.parametrize("f", [inner_cells, rows_beside, rows_as_a_whole, rows_reversed])
def test_matrices_over_themselves(f):
    rng = np.random.default_rng(3)
    agree(f, rng.normal(size=(4, 4)), rng.normal(size=(4, 4)))


def test_cells_of_a_matrix_need_no_other_one():
    a = np.ones((4, 4))
    assert buffers(inner_cells, a, a) == 0  # all in the result
    assert buffers(rows_beside, a, a) > 0


def test_solids_over_themselves():
    def f(a, b):
        a = a.copy()
        a[1:, :, 1:] += b[1:, :, 1:]
        a[:, 1:, :] *= b[:, :-1, :]
        return a

    rng = np.random.default_rng(4)
    agree(f, rng.normal(size=(3, 4, 5)), rng.normal(size=(3, 4, 5)))
    assert buffers(f, np.ones((3, 4, 5)), np.ones((3, 4, 5))) == 0


def two_rows_at_once(v, n):
    out = np.zeros((2 * n, len(v)))
    for k in range(n):
        out[2 * k] = v * 2.0
        out[2 * k + 1] = v + 1.0
        v = v * 0.5
    return out


def test_several_rows_of_one_array():
    agree(two_rows_at_once, V, 3)
    assert buffers(two_rows_at_once, V, 3) == 2  # the result, and v


def test_the_last_one_counts():
    def same_row(v, n):
        out = np.zeros((n, len(v)))
        for k in range(n):
            a, b = v * 2.0, v + 1.0
            out[k] = a
            out[k] = b
        return out

    def perhaps_the_same_row(v, n):
        out = np.zeros((n, len(v)))
        for k in range(n):
            a, b = v * 2.0, v + 1.0
            out[k] = a
            out[k - 1] = b
            a, b = v * 3.0, v + 4.0
            out[k - 1] = a
            out[k] = b
        return out

    for n in (1, 2, 3):
        agree(same_row, V, n)
        agree(perhaps_the_same_row, V, n)
