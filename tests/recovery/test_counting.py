"""Arrays that inner loops and slices of varying lengths update: what they overwrite goes on stacks, which are counted first."""

import math

import numpy as np
import pytest

import tapeless as tp
from tapeless.runtime.peak import peak_of
from tests.quick import unoptimized  # noqa: F401  (for all tests here)


def triangle(a):
    a = a.copy()
    for i in range(len(a)):
        for j in range(i):
            a[j] = a[j] * np.sin(a[i])
    return a.sum()


def elimination(a):
    a, n = a.copy(), len(a)
    for k in range(n):
        for i in range(k + 1, n):
            a[i, k] = a[i, k] / a[k, k]
            for j in range(k + 1, n):
                a[i, j] -= a[i, k] * a[k, j]
    total = 0.0
    for i in range(n):
        total += np.log(a[i, i] * a[i, i])
    return total


def exchange(a):
    a, n = a.copy(), len(a)
    for i in range(n):
        for j in range(n - 1 - i):
            if a[j] > a[j + 1]:
                t = a[j]
                a[j] = a[j + 1]
                a[j + 1] = t
    return (a * np.arange(n) * a).sum()


def by_state(a):
    """Lengths that depend on what is updated, in loops and in a branch."""
    a = a.copy()
    for i in range(6):
        for j in range(int(a[i] * 5) % 7 + 1):
            a[j] = a[j] * np.cos(a[i]) + 0.3
            if a[0] > 0.5:
                for q in range(j):
                    a[q] = a[q] * a[j] + 0.1
    return a.sum()


def pushed(x, start, column, grid):
    """Few cells of a large array, found by rows of different lengths."""
    grid = grid.copy()
    for i in range(len(start) - 1):
        for e in range(start[i], start[i + 1]):
            grid[column[e]] = np.sin(grid[column[e]] * x[i]) + 0.1
    return (grid * grid).sum()


def by_slices(a):
    a, n = a.copy(), len(a)
    for k in range(n):
        a[k, k + 1 :] = a[k, k + 1 :] / a[k, k]
        a[k + 1 :, k + 1 :] -= np.outer(a[k + 1 :, k], a[k, k + 1 :])
    return np.log(np.diag(a) ** 2).sum()


def steps(a):
    """Slices whose steps and starts vary too, in a branch."""
    a = a.copy()
    for k in range(1, 5):
        if a[k] > 0.3:
            a[k::k] = a[k::k] * np.sin(a[k]) + 0.2
        else:
            a[:k] *= a[k]
        a[len(a) - k :: -1] += a[0]
    return (a * a).sum()


def insertion(a):
    """Sorting, as a loop that nobody knows the length of."""
    a = a.copy()
    for i in range(1, len(a)):
        j = i
        while j > 0 and a[j - 1] > a[j]:
            t = a[j]
            a[j] = a[j - 1] * 1.01
            a[j - 1] = t * 0.99
            j -= 1
    return (a * a * np.arange(len(a))).sum()


def sieve(a):
    """Loops in loops that end when they like."""
    a = a.copy()
    for i in range(2, len(a)):
        j = i
        while j < len(a):
            for q in range(j % 3):
                a[q] = np.sin(a[q]) * a[i] + 0.1
            a[j] = a[j] * np.cos(a[i]) + 0.2
            j += i
    return a.sum()


def multiples(a):
    a = a.copy()
    for i in range(2, len(a)):
        j = i
        while j < len(a):
            a[j] = a[j] * np.cos(a[i]) + 0.2
            j += i
    return a.sum()


def pivots(a):
    """Rows change places; tests of positions and roots do not make the counting run the whole loop."""
    a, n = a.copy(), len(a)
    total = 0.0
    for k in range(n):
        p = k
        for i in range(k + 1, n):
            if abs(a[i, k]) > abs(a[p, k]):
                p = i
        if p != k:
            for j in range(n):
                t = a[k, j]
                a[k, j] = a[p, j]
                a[p, j] = t
        total += math.sqrt(abs(a[k, k]))
        for i in range(k + 1, n):
            f = a[i, k] / a[k, k]
            for j in range(k, n):
                a[i, j] -= f * a[k, j]
    return total


def columns(a):
    """A Cholesky factor: column by column, and no cell is written twice."""
    n = len(a)
    factor = np.zeros((n, n))
    for j in range(n):
        s = a[j, j]
        for k in range(j):
            s -= factor[j, k] ** 2
        factor[j, j] = math.sqrt(s)
        for i in range(j + 1, n):
            s = a[i, j]
            for k in range(j):
                s -= factor[i, k] * factor[j, k]
            factor[i, j] = s / factor[j, j]
    return (factor * factor * np.arange(n)).sum()


def relaxed(x, start, column, grid):
    """Several rounds of updates, more of them than the array has cells."""
    grid = grid.copy()
    for _ in range(3):
        for i in range(len(start) - 1):
            for e in range(start[i], start[i + 1]):
                grid[column[e]] = np.sin(grid[column[e]] * x[i]) + grid[i]
    return (grid * grid).sum()


def two(a, b):
    """Two arrays in one loop of varying length."""
    a, b = a.copy(), b.copy()
    for i in range(len(a)):
        for j in range(i + 1):
            a[j] = a[j] * b[i] + 0.1
            b[j] = np.sin(b[j]) * a[i]
    return (a * b).sum()


RNG = np.random.default_rng(4)
START = np.cumsum([0, 2, 0, 3, 1, 0, 4])
COLUMN = RNG.integers(0, 1000, START[-1])
CASES = {
    "triangle": (triangle, (RNG.random(7),)),
    "empty triangle": (triangle, (np.zeros(0),)),
    "smallest triangle": (triangle, (np.ones(1),)),
    "elimination": (elimination, (RNG.random((5, 5)) + 5 * np.eye(5),)),
    "exchange": (exchange, (RNG.random(8),)),
    "by state": (by_state, (RNG.random(10) + 0.2,)),
    "pushed": (pushed, (RNG.random(6), START, COLUMN, RNG.random(1000))),
    "by slices": (by_slices, (RNG.random((6, 6)) + 5 * np.eye(6),)),
    "no slices": (by_slices, (np.zeros((0, 0)),)),
    "one slice": (by_slices, (np.ones((1, 1)),)),
    "steps": (steps, (RNG.random(11),)),
    "insertion": (insertion, (RNG.random(9),)),
    "nothing to insert": (insertion, (np.arange(5.0),)),
    "sieve": (sieve, (RNG.random(13),)),
    "pivots": (pivots, (RNG.random((6, 6)),)),
    "columns": (columns, (5 * np.eye(6) + np.ones((6, 6)),)),
    "multiples": (multiples, (RNG.random(13),)),
    "relaxed": (relaxed, (RNG.random(6), START, COLUMN % 10, RNG.random(10))),
    "two": (two, (RNG.random(6), RNG.random(6))),
}


@pytest.mark.sampled(4, each="case")
@pytest.mark.parametrize("recover", ["auto", "undo", "checkpoint:2", "recompute"])
@pytest.mark.parametrize("case", CASES)
def test_the_same_gradient(case, recover):
    f, args = CASES[case]
    got, want = (tp.grad(f, recover=how)(*args) for how in (recover, "store"))
    np.testing.assert_allclose(got, want, rtol=1e-11, atol=1e-13)


@pytest.mark.sampled(5)
@pytest.mark.parametrize("case", ["triangle", "elimination", "by state", "by slices", "insertion"])
def test_second_derivatives(case):
    f, (x,) = CASES[case]
    got, want = (
        tp.jvp(lambda x, how=how: tp.grad(f, recover=how)(x), (x,), (np.ones_like(x),))[1] for how in ("undo", "store")
    )
    np.testing.assert_allclose(got, want, rtol=1e-10, atol=1e-12)


def test_by_the_grid_too():
    got, want = (tp.grad(pushed, argnums=3, recover=how)(*CASES["pushed"][1]) for how in ("undo", "store"))
    np.testing.assert_allclose(got, want, rtol=1e-12)


@pytest.mark.thorough
@pytest.mark.parametrize("recover", ["auto", "undo"])
def test_a_large_array_with_few_updates_is_neither_stacked_nor_copied(recover):
    """A hundred thousand cells, of which iterations update a few: the whole array a thousand times would be 800 MB. One row
    has most of the updates.
    """
    rows, cells = 1000, 100_000
    start = np.append(np.arange(rows) * 2, 10 * rows)
    args = RNG.random(rows), start, RNG.integers(0, cells, start[-1]), RNG.random(cells)
    gradient = tp.grad(pushed, recover=recover)
    gradient(*args)
    most, _ = peak_of(lambda: gradient(*args))
    assert most is None or most < 5 * 8 * cells
    assert not gradient.explain(*args).copies


@pytest.mark.sampled(3)
@pytest.mark.parametrize("case", ["triangle", "elimination", "exchange", "pushed", "by slices", "multiples", "pivots"])
def test_no_array_is_copied_as_a_whole(case):
    f, args = CASES[case]
    assert all("part" in copy.reason for copy in tp.grad(f).explain(*args).copies)


@pytest.mark.thorough
@pytest.mark.sampled(4)
@pytest.mark.parametrize("case", ["elimination", "pushed", "by slices", "insertion"])
def test_budgets_hold(case):
    """Nothing that is kept may be more than allowed: the least is an error that says how much."""
    f, args = CASES[case]
    want = tp.grad(f, recover="store")(*args)
    for memory in ("10kB", "1MB"):
        np.testing.assert_allclose(tp.grad(f, memory=memory)(*args), want, rtol=1e-11, atol=1e-13)
    with pytest.raises(tp.RecoveryError, match="needs at least"):
        tp.grad(f, memory="8B")(*args)


def test_positions_are_tested_once_in_order():
    start, column = START.copy(), COLUMN.copy()
    column[4] = 1000
    with pytest.raises(IndexError, match="index 1000 is out of bounds"):
        tp.grad(pushed, recover="undo")(RNG.random(6), start, column, RNG.random(1000))
    with pytest.raises(IndexError):
        tp.grad(pushed, recover="undo")(RNG.random(6), np.append(start, 99), COLUMN, RNG.random(1000))


def printing(a):
    a = a.copy()
    for i in range(len(a)):
        print("row", i)
        for j in range(i):
            a[j] = a[j] * np.sin(a[i])
    return a.sum()


def test_output_comes_once(capfd):
    tp.grad(printing, recover="undo")(np.ones(3))
    assert capfd.readouterr().out.split() == ["row", "0", "row", "1", "row", "2"]


def test_what_is_kept_of_a_factor_is_the_factor():
    explained = tp.grad(columns).explain(*CASES["columns"][1])
    assert explained.memory_bytes == 0 and not explained.copies


def test_lengths_that_follow_from_indices_are_known_before_the_call():
    f, args = CASES["pivots"]
    assert isinstance(tp.grad(f).explain(*args).memory_bytes, int)


def test_divisors_are_tested_where_lengths_are_counted():
    def divided(a, d):
        a = a.copy()
        for i in range(len(a)):
            for j in range(len(a) // int(d[i])):
                a[j] = np.sin(a[j]) * a[i]
        return a.sum()

    a = RNG.random(6)
    same = [tp.grad(divided, recover=how)(a, np.array([1, 2, 3, 1, 2, 6])) for how in ("auto", "store")]
    np.testing.assert_allclose(*same)
    with pytest.raises(ZeroDivisionError):
        tp.grad(divided)(a, np.array([1, 2, 0, 1, 2, 6]))


def test_predicted_before_the_call():
    explained = tp.grad(triangle, recover="undo").explain(np.ones(50))
    loop = next(loop for loop in explained.loops if loop.recovery)
    assert (
        loop.recovery == {"a": "undo"} and loop.memory_bytes == 50 * 49 // 2 * 8 + 50 * 8
    )  # cells, and where those of a row begin
