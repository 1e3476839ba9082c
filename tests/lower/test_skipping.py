"""Blocks of iterations that do nothing: skipped where the loop's statements prove it, with the same results."""

import numpy as np
import pytest

import tapeless as tp
from tapeless.lower.skipping import BLOCK
from tapeless.testing.compare import compare, difference
from tapeless.testing.stages import outcomes

SIZES = [5, BLOCK - 1, BLOCK, BLOCK + 1, 2 * BLOCK, 3 * BLOCK + 40]


def halved_where_true(x, mask):
    for _ in range(3):
        x = np.where(mask, x * 0.5, x)
    return x


def halved_where_false(x, mask):
    for _ in range(3):
        x = np.where(mask, x, x * 0.5)
    return x


def with_a_sum(x, mask):
    total = np.float64(0.0)
    for _ in range(3):
        total += np.where(mask, x, 0.0).sum()
        x = np.where(mask, x * 0.5, x)
    return x, total


def rows(x, mask):
    y = np.stack((x, x + 1.0, x * 2.0))
    for _ in range(2):
        y = np.where(mask, y + 1.0, y)
    return y


def of_either(x, mask):
    for _ in range(2):
        x = np.where(mask | (x > 1.0), x, x + 1.0)
    return x


SKIPPED = [halved_where_true, halved_where_false, with_a_sum, rows, of_either]


def multiplied_by_nothing(x, mask):
    """0 * inf is no 0."""
    for _ in range(2):
        x = x + x * np.where(mask, 1.0, 0.0)
    return x


def set_otherwise(x, mask):
    for _ in range(2):
        x = np.where(mask, x, 1.0) * 2.0
    return x


def into_another_array(x, mask):
    return np.where(mask, x, 0.0)


def every_second_truth(x, mask):
    every = mask[::2]
    y = x[: len(every)] * 1.0
    for _ in range(2):
        y = np.where(every, y * 0.5, y)
    return y


def sums_alone(x, mask):
    return np.where(mask, x, 0.0).sum()


def of_its_own_truth(x, mask):
    mask = mask | False
    for _ in range(2):
        mask = np.where(mask, x > 0.0, mask)
    return mask


OTHERWISE = [multiplied_by_nothing, set_otherwise, into_another_array, every_second_truth, sums_alone, of_its_own_truth]


def masks(n):
    """Nobody, everybody, single ones at the ends of blocks, and half of all."""
    yield np.zeros(n, bool)
    yield np.ones(n, bool)
    for k in {0, n // 2, BLOCK - 1, BLOCK, n - 1}:
        if k < n:
            yield np.arange(n) == k
            yield np.arange(n) != k
    yield np.random.default_rng(n).uniform(size=n) < 0.5


@pytest.mark.filterwarnings("ignore:invalid value encountered")
@pytest.mark.parametrize("function", SKIPPED + OTHERWISE)
@pytest.mark.parametrize("n", SIZES)
def test_results(function, n):
    x = np.random.default_rng(1).normal(size=n)
    x[:: max(1, n // 7)] = np.inf
    x[1 :: max(2, n // 5)] = np.nan
    compiled = tp.function(function)
    for mask in masks(n):
        assert difference(function(x.copy(), mask), compiled(x.copy(), mask)) == ""


@pytest.mark.parametrize("function", SKIPPED)
def test_every_stage(function):
    n = BLOCK + 9
    mask = np.arange(n) == BLOCK + 2
    found = outcomes(function, lambda: [np.linspace(-1.0, 3.0, n), mask], level=3, seed=1)
    _, python = next(found)
    for stage, outcome in found:
        assert compare(python, outcome) == "", stage


def loops(function):
    n = 2 * BLOCK
    return tp.function(function).ir(np.ones(n), np.ones(n, bool), stage="loops")


@pytest.mark.parametrize("function", SKIPPED)
def test_blocks_are_tested(function):
    assert f"step {BLOCK}" in loops(function)


@pytest.mark.parametrize("function", OTHERWISE)
def test_nothing_is_tested(function):
    assert f"step {BLOCK}" not in loops(function)


def shortest(d):
    for k in range(len(d)):
        d = np.minimum(d, d[:, k, None] + d[k])
    return d


def shortest_backwards(d):
    """The rule by hand: where the way over k was shorter, the adjoint belongs to its two parts."""
    steps = [d]
    for k in range(len(d)):
        steps.append(np.minimum(steps[-1], steps[-1][:, k, None] + steps[-1][k]))
    bar = np.where(np.isfinite(steps[-1]), 1.0, 0.0)
    for k in reversed(range(len(d))):
        before = steps[k]
        kept = (before <= before[:, k, None] + before[k]) | np.isnan(before)
        moved = np.where(kept, 0.0, bar)
        bar = np.where(kept, bar, 0.0)
        bar[k] += moved.sum(0)
        bar[:, k] += moved.sum(1)
    return bar


@pytest.mark.parametrize("threads", [1, 2])
@pytest.mark.parametrize("n", [7, BLOCK, BLOCK + 30])
@pytest.mark.parametrize("missing", [0.0, 0.9])
def test_shortest_paths(n, threads, missing):
    rng = np.random.default_rng(n)
    d = rng.uniform(1.0, 100.0, (n, n))
    d[rng.uniform(size=(n, n)) < missing] = np.inf

    def loss(d):
        s = shortest(d)
        return np.where(np.isfinite(s), s, 0.0).sum()

    found = tp.grad(tp.function(loss, threads=threads))(d)
    np.testing.assert_allclose(found, shortest_backwards(d), rtol=1e-13)
    assert "== -1" in tp.grad(tp.function(loss, threads=threads)).ir(d, stage="loops")  # a word of decisions
