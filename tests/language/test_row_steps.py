"""Loops whose steps each make all rows of an array anew from that row and a few others: all stages give the same."""

import numpy as np
import pytest

import tapeless as tp
from tapeless.testing.compare import compare
from tapeless.testing.stages import outcomes


def shortest_paths(d):
    for k in range(len(d)):
        d = np.minimum(d, d[:, k, None] + d[k])
    return d


def shortest_by_choice(d):
    for k in range(len(d)):
        t = d[:, k, None] + d[k]
        d = np.where(t < d, t, d)
    return d


def with_successors(d):
    successor = np.zeros(d.shape, np.int64) + np.arange(len(d))
    for k in range(len(d)):
        t = d[:, k, None] + d[k]
        better = t < d
        successor = np.where(better, successor[:, k, None], successor)
        d = np.where(better, t, d)
    return d, successor


def reachable(d):
    r = d < 0.3
    for k in range(len(r)):
        r = r | (r[:, k, None] & r[k])
    return r


def widest_paths_in_place(d):
    for k in range(len(d)):
        d[:] = np.maximum(d, np.minimum(d[:, k, None], d[k]))
    return d


def row_by_row(d):
    n = len(d)
    for k in range(n):
        row = d[k].copy()
        for i in tp.prange(n):
            d[i] = np.minimum(d[i], d[i, k] + row)
    return d


def sums_of_whole_numbers(d):
    a = (d * 10.0).astype(np.int64)
    for k in range(len(a)):
        a += a[:, k, None] * a[k]
    return a


def single_precision(d):
    a = d.astype(np.float32)
    for k in range(len(a)):
        a = np.maximum(a, a[:, k, None] - a[k])
    return a


def eliminated(d):
    for k in range(len(d)):
        pivot = d[k] / (d[k, k] + 2.0)
        d = d - d[:, k, None] * pivot
    return d


def next_row(d):
    for k in range(len(d) - 1):
        d = np.minimum(d, d[:, k, None] + d[k + 1])
    return d


def two_rows(d):
    for k in range(len(d) - 1):
        d = np.minimum(d, d[:, k, None] + np.maximum(d[k], d[k + 1]))
    return d


def backwards(d):
    for k in range(len(d) - 1, -1, -1):
        d = np.minimum(d, d[:, k, None] + d[k])
    return d


def weighted(d):
    w = np.arange(len(d)) * 0.25
    for k in range(len(d)):
        d = np.minimum(d, d[:, k, None] + d[k] + w[:, None] + w[k])
    return d


def no_own_cell(d):
    for k in range(len(d)):
        d = np.minimum(d, d[k] + 0.01)
    return d


def noted(d):
    """Two arrays take notes of each step."""
    better, longer = np.zeros((len(d), len(d), len(d)), bool), np.ones((len(d), len(d), len(d)))
    for k in range(len(d)):
        t = d[:, k, None] + d[k]
        better[k] = t < d
        longer[k] = t - d
        d = np.minimum(d, t)
    return d.sum(), better, longer


def stencil(d):
    for _ in range(len(d)):
        e = d.copy()
        e[1:-1] = 0.5 * (d[2:] + d[:-2])
        d = e
    return d


def row_of_the_mirror(d):
    for k in range(len(d)):
        d = np.minimum(d, d[k][:, None] + d.T[k] + d.T)
    return d


def neighbours_in_a_row(d):
    for k in range(len(d)):
        d = np.minimum(d, d[:, ::-1] + d[k])
    return d


def a_row_of_its_own(d):
    for k in range(len(d)):
        d = np.minimum(d, d[:, k, None] + d[k])
        d[k] = 0.5
    return d


def by_a_library_function(d):
    for k in range(len(d)):
        d = np.minimum(d, np.exp(d[:, k, None] + d[k]))
    return d


def products(d):
    """The next step could take the product up in its sum."""
    for k in range(len(d)):
        d = (d + d[k]) * d[:, k, None]
    return d


def product_of_a_row(d):
    """The product is made outside of the loop over the cells, and rounded."""
    for k in range(len(d)):
        d = d + (d[:, k, None] * 0.3) + d[k]
    return d


def two_products(d):
    """Which of them the sum takes up is for LLVM to say."""
    for k in range(len(d)):
        d = d * 0.5 + d[:, k, None] * d[k]
    return d


def product_of_two_sums(d):
    e = d
    for k in range(len(d)):
        p = d[:, k, None] * d[k]
        e = e - p
        d = d + p
    return d, e


def total_of_a_row(d):
    for k in range(len(d)):
        d = d - d[k].sum()
    return d


def by_a_long_table(d):
    """Too much to be made by each thread."""
    w = np.arange(3 * len(d)) * 0.1
    for k in range(len(d)):
        table = np.sqrt(w + k)
        d = np.minimum(d, d[k] + table[k] + table[2 * k])
    return d


def printed(d):
    for k in range(len(d)):
        print(k)
        d = np.minimum(d, d[:, k, None] + d[k])
    return d


def counted(d):
    changes = np.int64(0)
    for k in range(len(d)):
        e = np.minimum(d, d[:, k, None] + d[k])
        changes += (e < d).sum()
        d = e
    return d, changes


def notes_of_other_steps(d):
    """A row is written twice: the last one counts."""
    notes = np.zeros((len(d), len(d), len(d)), bool)
    for k in range(len(d)):
        t = d[:, k, None] + d[k]
        notes[k // 2] = t < d
        d = np.minimum(d, t)
    return d, notes


def notes_that_are_read(d):
    notes = np.zeros((len(d) + 1, len(d), len(d)))
    for k in range(len(d)):
        t = d[:, k, None] + d[k] + notes[k]
        notes[k + 1] = t - d
        d = np.minimum(d, t)
    return d, notes


PROGRAMS = [
    shortest_paths, shortest_by_choice, with_successors, reachable, widest_paths_in_place, row_by_row, sums_of_whole_numbers, single_precision, eliminated, next_row, two_rows, backwards, weighted, no_own_cell, noted, stencil, row_of_the_mirror, neighbours_in_a_row, a_row_of_its_own, by_a_library_function, products, product_of_a_row, two_products, product_of_two_sums, total_of_a_row, by_a_long_table, printed, counted, notes_of_other_steps, notes_that_are_read,
]  # fmt: skip


def distances(rows: int, columns: int | None = None) -> np.ndarray:
    return np.random.default_rng(rows).random((rows, columns or rows))


@pytest.mark.sampled(6)
@pytest.mark.parametrize("size", [0, 1, 9])
@pytest.mark.parametrize("function", PROGRAMS, ids=lambda f: f.__name__)
def test_by_all_stages(function, size):
    found = outcomes(function, lambda: [distances(size)], seed=size)
    _, python = next(found)
    for stage, outcome in found:
        assert compare(python, outcome) == "", stage


@pytest.mark.thorough
@pytest.mark.sampled(3)
@pytest.mark.parametrize("function", [shortest_paths, shortest_by_choice, widest_paths_in_place, next_row, weighted])
def test_gradients_by_decisions(function):
    """They are those of the values themselves."""

    def loss(d):
        return (function(d.copy()) * np.arange(len(d))).sum()

    d = distances(13)
    d[1, 2] = np.nan
    np.testing.assert_array_equal(tp.grad(loss)(d), tp.grad(loss, recover="store")(d))


def test_special_numbers():
    """NaN, infinities and zeros of both signs go the same ways."""
    d = distances(20)
    d[2, 3], d[4, 4], d[5], d[6, 7], d[8, ::2], d[:, 9] = np.nan, -np.inf, np.inf, 1e308, -0.0, 0.0
    with np.errstate(all="ignore"):
        expected = shortest_paths(d)
    found = tp.function(shortest_paths)(d)
    np.testing.assert_array_equal(found, expected)
    numbers = ~np.isnan(expected)
    np.testing.assert_array_equal(np.signbit(found[numbers]), np.signbit(expected[numbers]))


def through_the_middle(d):
    """Rows and columns of unequal number."""
    for k in range(min(d.shape[0], d.shape[1])):
        d = np.minimum(d, d[:, k, None] + d[k])
    return d


@pytest.mark.parametrize("threads", [1, 2])
@pytest.mark.parametrize("shape", [(7, 19), (40, 2), (150, 150)])
def test_shapes(shape, threads):
    d = distances(*shape)
    np.testing.assert_array_equal(tp.function(through_the_middle, threads=threads)(d), through_the_middle(d))
