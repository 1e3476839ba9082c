"""Sums of arrays and rows in `tp.prange`: `c += a` and `c[k] += a` are reductions as sums of numbers are."""

import numpy as np
import pytest

import tapeless as tp
from tests.agreement import agree

A = np.array([[0.3, -0.7], [1.1, 0.4], [-0.2, 0.9], [0.8, 0.6], [-1.3, 0.1]])
KEYS = np.array([0, 1, 1, 0, 1])


def rows(A):
    c = np.zeros(2)
    for i in tp.prange(len(A)):
        c += A[i] * 2
    return c


def rows_by_key(A, k):
    c = np.zeros((2, 2))
    for i in tp.prange(len(A)):
        c[k[i]] += A[i]
    return c


def columns_by_key(A, k):
    c = np.zeros((2, 2))
    for i in tp.prange(len(A)):
        c[:, k[i]] -= A[i, 0]
    return c


def matrices(A):
    c = np.ones((2, 2))
    for i in tp.prange(len(A)):
        c += np.outer(A[i], A[i])
    return c


def many_at_times(A):
    c = np.ones((2, 2))
    n = 0
    for i in tp.prange(len(A)):
        n += 1
        if A[i, 0] > 0:
            c -= np.outer(A[i], A[i])
            c += 1.0
            c[0] += A[i]
            c[1, 0] += 3.0
    return c, n


def in_an_inner_loop(A):
    c = np.ones(2)
    for i in tp.prange(len(A)):
        for j in range(3):
            c += A[i] * j
    return c


def slices(A):
    c = np.ones(4)
    for i in tp.prange(len(A)):
        c[1:3] += A[i]
        c[:2] -= A[i]
    return c


def whole_numbers(A):
    c = np.ones(2, np.int64)
    for i in tp.prange(len(A)):
        c += np.array([1, 2]) * i
    return c


def rebound(A):
    s = np.float64(0)
    c = np.zeros(2)
    for i in tp.prange(len(A)):
        c = c + A[i]
        s += np.sum(A[i])
    return c, s


def reads_a_sum(A):
    c = np.ones(2)
    d = np.zeros(2)
    for i in tp.prange(len(A)):
        c += A[i]
        d += c
    return d


def adds_a_multiple_of_itself(A):
    c = np.ones(2)
    for i in tp.prange(len(A)):
        c += A[i] * c
    return c


def sets_what_it_sums(A):
    c = np.ones(2)
    for i in tp.prange(len(A)):
        c += A[i]
        c[0] = 1.0
    return c


SUMS = [rows, rows_by_key, columns_by_key, matrices, many_at_times, in_an_inner_loop, slices, whole_numbers, rebound]


@pytest.mark.sampled(3)
@pytest.mark.parametrize("function", SUMS, ids=lambda f: f.__name__)
def test_sums(function):
    keys = (KEYS,) if function.__name__.endswith("by_key") else ()
    agree(function, A, *keys)
    agree(function, A[:0], *(k[:0] for k in keys))
    if function is not whole_numbers:
        tp.check_grads(lambda a: function(a, *keys), (A,))


def test_many_rows_on_two_threads():
    many, keys = np.tile(A, (5000, 1)), np.tile(KEYS, 5000)
    np.testing.assert_allclose(tp.function(rows_by_key, threads=2)(many, keys), rows_by_key(many, keys), rtol=1e-9)
    np.testing.assert_allclose(tp.function(matrices, threads=2)(many), matrices(many), rtol=1e-9)


@pytest.mark.parametrize(
    "function", [reads_a_sum, adds_a_multiple_of_itself, sets_what_it_sums], ids=lambda f: f.__name__
)
def test_sums_that_are_read_are_refused(function):
    with pytest.raises(tp.CompileError, match="TP111.*'c' is read as a whole while iterations write it"):
        tp.function(function)(A)


def test_what_is_added_to_itself_is_no_sum():
    def doubled(x):
        for i in tp.prange(len(x)):
            x[i] += x[i]
        return x

    def doubled_bins(x, k):
        h = np.ones(3)
        for i in tp.prange(len(x)):
            h[k[i]] += h[k[i]]
        return h

    agree(doubled, A[:, 0].copy())
    tp.check_grads(doubled, (A[:, 0].copy(),))
    with pytest.raises(tp.CompileError, match="TP111.*'h' is read where another iteration"):
        tp.function(doubled_bins)(A[:, 0].copy(), KEYS)
