"""Subscripts: negative positions, slices as Python clamps them, ellipsis and new axes, integer arrays, errors."""

from __future__ import annotations

import numpy as np
import pytest

import tapeless as tp
from tests.language.same import raises, same, same_made

X = np.arange(7.0) ** 2
M = np.arange(20.0).reshape(4, 5)
T = np.arange(24.0).reshape(2, 3, 4)


def item(x, i):
    return x[i]


def two(m, i, j):
    return m[i, j], m[i][j], m[(i, j)]


def test_positions():
    for i in (0, 3, 6, -1, -7):
        same(item, X, i)
    same(item, X, np.int32(2))
    with pytest.raises(tp.CompileError, match="TP104"):  # a new axis in NumPy
        tp.function(item)(X, True)
    for i in (7, -8, 100):
        raises(IndexError, item, X, i)
    for i, j in ((0, 0), (-1, 2), (3, -5)):
        same(two, M, i, j)
    for i, j in ((4, 0), (0, 5), (-5, 0), (0, -6)):
        raises(IndexError, two, M, i, j)
    raises(IndexError, item, np.zeros(0), 0)
    raises(IndexError, item, np.zeros(0), -1)


def put(x, i, v):
    x[i] = v


def test_writing_positions():
    for i in (0, -1, -7):
        same(put, X, i, 5.0)
    raises(IndexError, put, X, 7, 5.0)
    raises(IndexError, put, X, -8, 5.0)
    same(put, np.arange(3), 1, 7)
    same(put, np.arange(3, dtype=np.float32), 1, 0.1)
    same(put, np.zeros(3, bool), 1, True)


def float_into_integers(x, v):
    x[0] = v


def test_numbers_written_into_integer_arrays_are_truncated():
    same(float_into_integers, np.arange(3), 2.9)
    same(float_into_integers, np.arange(3), -2.9)


def constant_positions(x):
    return x[0], x[-1], x[2], x[-3], x[6]


def test_constant_positions():
    same(constant_positions, X)
    raises(IndexError, constant_positions, X[:5])


def sliced(x, a, b):
    return x[a:b], x[a:], x[:b], x[a:b:2], x[b:a:-1], x[::-1], x[:], x[a:b].sum()


@pytest.mark.parametrize("a", [0, 2, -3, 10, -10])
@pytest.mark.parametrize("b", [0, 5, -1, 20, -20])
def test_slices_are_clamped(a, b):
    same(sliced, X, a, b)


def constant_slices(x):
    return x[1:3], x[-3:], x[:-2], x[::2], x[5:1:-2], x[-2:-5:-1], x[100:], x[:100], x[3:1], x[::-3], x[1:-1:2]


def test_constant_slices():
    same(constant_slices, X)
    same(constant_slices, X[:2])
    same(constant_slices, X[:0])
    same(constant_slices, np.arange(5, dtype=np.int32))


def several_axes(t, i):
    return (
        t[i], t[:, 1], t[..., 0], t[i, ..., 1], t[1:, :2, ::2], t[:, ::-1, i], t[i, 1:, -1], t[..., None], t[None], t[:, None, 1],
        t[i, i, i], t[...], t[:, :, 1:][0], t[0][1][2:],
    )  # fmt: skip


def test_several_axes():
    same(several_axes, T, 1)
    same(several_axes, T, -1)


def write_slices(m, i):
    m[i] = 1.0
    m[:, 1] = np.array([5.0, 6.0, 7.0, 8.0])
    m[1:3, 2:4] = 0.0
    m[::2, -1] = m[0, 0]
    m[-1, :] = m[0]
    m[..., 3] += 100
    m[1:1] = 5.0
    m[2][2:] = -1.0


def test_writing_slices():
    same(write_slices, M, 2)
    same(write_slices, M, -4)
    same(write_slices, M.astype(np.int64), 0)
    same(write_slices, M.astype(np.float32), 1)


def assign_slice(x, y):
    x[1:4] = y


def test_sizes_of_slices_must_fit():
    same(assign_slice, X, np.ones(3))
    same(assign_slice, X, np.ones(1))
    same(assign_slice, X, 2.0)
    with pytest.raises(ValueError):
        tp.function(assign_slice)(X.copy(), np.ones(2))


def gathered(x, idx):
    return x[idx], x[idx] * 2, x[idx].sum()


def gathered_rows(m, idx, jdx):
    return m[idx], m[:, idx], m[idx, jdx], m[idx, 1], m[idx][:, 0], m[[0, 2]], m[idx, :2], m[idx[:, None], jdx[None, :]]


def test_integer_arrays():
    idx = np.array([0, 3, -1, 3])
    same(gathered, X, idx)
    same(gathered, X, idx.astype(np.int32))
    same(gathered, X, np.array([[0, 1], [2, -2]]))
    same(gathered, X, np.zeros(0, np.int64))
    raises(IndexError, gathered, X, np.array([0, 7]))
    raises(IndexError, gathered, X, np.array([-8]))
    same(gathered_rows, M, np.array([0, 3, -1]), np.array([1, 2, 0]))
    raises(IndexError, gathered_rows, M, np.array([0, 3, 4]), np.array([1, 2, 0]))


def three_axes(t, idx):
    return t[idx], t[:, idx], t[..., idx], t[1, idx], t[:, 1, idx], t[idx, :, idx], t[:, idx, idx]


def test_integer_arrays_among_slices():
    same(three_axes, T, np.array([0, 1, -1]))


def scattered(x, idx, v):
    x[idx] = v
    return x


def scattered_rows(m, idx):
    m[idx] = 0.0
    m[:, idx] += 1
    m[idx, idx] = -5.0
    m[idx, 1:3] = np.array([7.0, 8.0])
    return m


def add_at(x, idx):
    x[idx] += 10
    return x


def test_writing_by_integer_arrays():
    idx = np.array([1, -1, 1])
    same(scattered, X, idx, 5.0)
    same(scattered, X, idx, np.array([1.0, 2.0, 3.0]))  # the last of equal positions stays
    same(scattered_rows, M, np.array([0, 3]))
    same(add_at, X, idx)  # each position once, as in NumPy
    raises(IndexError, scattered, X, np.array([9]), 1.0)


def masked(x, limit):
    x[x > limit] = limit
    x[x < -1] *= 2
    return x


def masked_by_values(x, y):
    m = x > y
    x[m] = -1.0
    return m


def test_masks():
    same(masked, np.array([3.0, -2.0, 0.5, 9.0]), 2.0)
    same(masked_by_values, X, X[::-1].copy())


def reading_by_mask(x):
    return x[x > 0]


def test_reading_by_a_mask():
    same(reading_by_mask, X)


def tuple_items(p, i):
    return p[0], p[-1], p[0:2], len(p), (1.0, 2.0, 3.0)[i]


def test_tuples():
    same_values_of = tp.function(tuple_items)((1, 2.5, 3), 1)
    assert same_values_of == (1, 3, (1, 2.5), 3, 2.0)
    with pytest.raises(IndexError):
        tp.function(tuple_items)((1, 2.5, 3), 5)


def layouts(x):
    x[0] = 5
    return x[1:], x[::-1], x.sum(), x


@pytest.mark.parametrize("make", [
    lambda: np.arange(20.0)[::2],
    lambda: np.arange(20.0)[::-1],
    lambda: np.asfortranarray(np.arange(12.0).reshape(3, 4)),
    lambda: np.arange(24.0).reshape(4, 6).T,
    lambda: np.arange(24.0).reshape(4, 6)[1:3, ::2],
    lambda: np.arange(5.0).astype(">f8"),
    lambda: np.frombuffer(bytearray(8 * 5 + 1), np.float64, 5, 1),
    lambda: np.arange(40.0).reshape(5, 8)[:, 3],
])  # fmt: skip
def test_any_layout_of_an_argument(make):
    def run():
        return (make(),), {}

    if make().dtype.isnative:
        same_made(layouts, run)
    else:  # results are in the machine's own byte order
        x, y = make(), make()
        want, got = layouts(x), tp.function(layouts)(y)
        assert all(np.array_equal(a, b) for a, b in zip(want, got))
        assert np.array_equal(x, y)


def index_kinds(x, i):
    return x[i + 1], x[i // 2], x[int(2.7)], x[len(x) - 1], x[min(i, 3)]


def float_index(x, y):
    return x[y]


def too_many(x):
    return x[0, 0]


def test_what_may_be_an_index():
    same(index_kinds, X, 2)
    for f, args in ((float_index, (X, 1.5)), (too_many, (X,))):
        with pytest.raises(tp.TapelessError):
            tp.function(f)(*args)


def chained_reads(x, idx, k):
    return x[idx[idx[k]]], x[idx][k], x[idx[k] : idx[k] + 2]


def test_indices_from_arrays():
    same(chained_reads, X, np.array([1, 2, 0]), 1)
    raises(IndexError, chained_reads, X, np.array([1, 9, 0]), 1)


def in_parallel(x, idx):
    out = np.zeros(len(idx))
    for i in tp.prange(len(idx)):
        out[i] = x[idx[i]]
    return out


def test_index_errors_come_out_of_parallel_loops():
    same(in_parallel, X, np.array([0, -1, 3]))
    raises(IndexError, in_parallel, X, np.array([0, 1, 99, 3]))


def test_the_message_has_the_line():
    with pytest.raises(IndexError, match=r"test_indexing\.py:\d+"):
        tp.function(item)(X, 50)
