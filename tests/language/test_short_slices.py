"""Slices of one position (x[k:k+1], x[:1], x[-1:]) are repeated as NumPy repeats a size of 1."""

import numpy as np
import pytest

import tapeless as tp
from tests.quick import unoptimized  # noqa: F401  (for all tests here)


def row_and_column(d, k):
    return d[:, k : k + 1] + d[k : k + 1, :]


def first(d, k):
    return d[:1] * d - d[:, :1]


def last(d, k):
    return np.maximum(d[-1:], d) + d[0, -1:] + d[1:2, 0:1]


def one_plus(d, k):
    return np.where(d > d[k : 1 + k], d, d[:, k : k + 1])


def assigned(d, k):
    d = d.copy()
    d[:] = d[k : k + 1]
    d[0] = d[1, -1:]
    d[:, 0] += d[2, k : k + 1]
    d[1:, 1:] = d[-1:, :1]
    return d


def eliminated(d, k):
    d = d.copy()
    for i in range(len(d) - 1):
        d[i + 1 :] -= d[i + 1 :, i : i + 1] / d[i, i] * d[i : i + 1]
    return d


def in_a_reduction(d, k):
    return ((d - d[k : k + 1]) ** 2).sum(axis=1), (d[k : k + 1] * d[k : k + 1]).sum()


PROGRAMS = [row_and_column, first, last, one_plus, assigned, eliminated, in_a_reduction]


@pytest.mark.sampled(3)
@pytest.mark.parametrize("k", [0, 2])
@pytest.mark.parametrize("program", PROGRAMS)
def test_as_in_numpy(program, k):
    d = np.random.default_rng(1).random((4, 4)) + 2 * np.eye(4)
    got, want = tp.function(program)(d, k), program(d, k)
    for one, other in zip(got, want, strict=True):
        np.testing.assert_allclose(one, other, rtol=1e-14, atol=1e-15)


@pytest.mark.thorough
@pytest.mark.sampled(4)
@pytest.mark.parametrize("program", [row_and_column, first, last, eliminated])
def test_gradients(program):
    d = np.random.default_rng(2).random((4, 4)) + 2 * np.eye(4)
    tp.check_grads(lambda d: (program(d, 1) ** 2).sum(), (d,))


def test_nothing_to_repeat():
    """A slice past the end has no position: an error, as in NumPy."""

    def add(x, k):
        return x + x[k : k + 1]

    for k in (3, 7, -1):
        with pytest.raises(ValueError):
            add(np.ones(3), k)
        with pytest.raises(tp.ShapeError, match="sizes 3 and 0"):
            tp.function(add)(np.ones(3), k)
    assert tp.function(add)(np.ones(0), 0).shape == add(np.ones(0), 0).shape == (0,)
    assert tp.function(add)(np.ones(1), 0).tolist() == [2.0]


def test_of_two_slices():
    def add(x, y, k):
        return x[k : k + 1] + y[:1]

    assert tp.function(add)(np.ones(3), np.ones(5), 1).tolist() == [2.0]
    assert tp.function(add)(np.ones(3), np.ones(0), 3).shape == (0,)
