"""Decisions in sweeps inside of sweeps: arrays of truth values are kept, with the same gradients as by storing all."""

import numpy as np
import pytest

import tapeless as tp
from tapeless.testing.compare import compare
from tapeless.testing.stages import outcomes
from tests.quick import unoptimized  # noqa: F401  (for all tests here)
from tests.recovery.same import plans

SIZES = [1, 5, 70]


def shortest(d):
    for k in range(len(d)):
        d = np.minimum(d, d[:, k, None] + d[k])
    return np.sum(d)


def in_half(d):
    """Half of the decisions go each way, and nothing is idle."""
    for _ in range(4):
        d = np.where(d > 0.5, d * 0.9, d * 1.1 + 0.01)
    return np.sum(d)


def of_two(d):
    for _ in range(3):
        d = np.maximum(np.minimum(d, d[0] + 0.1), 0.3 * d)
    return np.sum(d)


def where_others_are(d):
    """Neighbours decide: what is read was not made at that place."""
    for _ in range(3):
        d = np.where(np.roll(d, 1, axis=1) > d, 0.5 * d, d * 1.5)
    return np.sum(d)


def by_sums(d):
    """What decides has a sum of its own."""
    w = np.array([0.1, 0.2, 0.3])
    for _ in range(3):
        d = tp.map(lambda row: tp.map(lambda e: np.where(e > np.sum(np.sin(w * e)) + 0.2, 0.5 * e, 2.0 * e), row), d)
    return np.sum(d)


def two_long_rows(d):
    """The inner sweep is the one that threads share."""
    y = np.stack((d[0], 2.0 * d[0]))
    for _ in range(3):
        y = np.minimum(y, 0.3 + y[1])
    return np.sum(y)


def with_sums_of_rows(d):
    """Reductions beside the decisions."""
    total = 0.0
    for _ in range(3):
        d = np.minimum(d, 0.7 * d[0] + 0.2)
        total += np.sum(np.sum(np.minimum(d, 0.5), axis=1) * np.arange(len(d)))
    return total + np.sum(d)


def of_small_numbers(d):
    a = d.astype(np.float32)
    for _ in range(3):
        a = np.where(a > 0.5, a * np.float32(0.9), a + a[0])
    return np.sum(a * d)


PROGRAMS = [
    shortest, in_half, of_two, where_others_are, by_sums, two_long_rows, with_sums_of_rows, of_small_numbers,
]  # fmt: skip


def matrix(n, dtype=np.float64):
    return np.random.default_rng(n).uniform(0.0, 1.0, (n, n)).astype(dtype)


@pytest.mark.sampled(5, each="f")
@pytest.mark.parametrize("n", SIZES)
@pytest.mark.parametrize("f", PROGRAMS)
def test_like_everything_stored(f, n) -> None:
    d = matrix(n)
    stored = tp.grad(f, recover="store")(d)
    for threads in (1, 2):
        np.testing.assert_allclose(tp.grad(tp.function(f, threads=threads))(d), stored, rtol=1e-13)


@pytest.mark.parametrize("f", PROGRAMS)
def test_truth_values_are_kept(f) -> None:
    assert any("decisions" in plan for plan in plans(f, matrix(8)))


@pytest.mark.sampled(4, each="f")
@pytest.mark.parametrize("special", [np.nan, np.inf, -np.inf, -0.0])
@pytest.mark.parametrize("f", [shortest, in_half, of_two, where_others_are])
def test_special_numbers(f, special) -> None:
    d = matrix(70)
    d[::9, ::7] = special
    np.testing.assert_array_equal(tp.grad(f)(d), tp.grad(f, recover="store")(d))


def test_single_precision_and_other_shapes() -> None:
    for shape in ((3, 130), (130, 3), (2, 3, 70), (0, 5), (5, 0)):
        d = np.random.default_rng(1).uniform(0.0, 1.0, shape).astype(np.float32)
        np.testing.assert_array_equal(tp.grad(in_half)(d), tp.grad(in_half, recover="store")(d))


def test_sizes_that_are_constants() -> None:
    def f(x):
        d = np.zeros((3, 100)) + x
        for _ in range(3):
            d = np.minimum(d * 1.5, d[0] + 0.1)
        return np.sum(d)

    x = np.linspace(-1.0, 1.0, 100)
    np.testing.assert_array_equal(tp.grad(f)(x), tp.grad(f, recover="store")(x))


def test_inside_of_other_loops_and_transforms() -> None:
    def repeated(d):
        total = 0.0
        for k in range(3):
            total += in_half(d * (0.5 + k)) ** 2
        return total

    d = matrix(6)
    for f in (repeated, lambda d: in_half(d) ** 2):
        np.testing.assert_allclose(tp.grad(f)(d), tp.grad(f, recover="store")(d), rtol=1e-13)
        by_hand = tp.jvp(tp.grad(f, recover="store"), (d,), (d,))[1]
        np.testing.assert_allclose(tp.hvp(f, (d,), (d,))[1], by_hand, rtol=1e-12)


@pytest.mark.thorough
@pytest.mark.sampled(2)
@pytest.mark.parametrize(
    "f, shape", [(shortest, (5, 5)), (of_two, (2, 70)), (by_sums, (2, 65)), (two_long_rows, (1, 70))]
)
def test_every_stage(f, shape) -> None:
    def gradient(d):
        return tp.grad(f)(d)

    found = outcomes(gradient, lambda: [np.linspace(0.0, 1.0, shape[0] * shape[1]).reshape(shape)], level=3, seed=1)
    _, python = next(found)
    for stage, outcome in found:
        assert compare(python, outcome) == "", stage


def shortest_paths(d):
    for k in range(len(d)):
        d = np.minimum(d, d[:, k, None] + d[k])
    return d


def shortest_backwards(d):
    """The rule by hand: where the way over k was shorter, the adjoint belongs to its two parts."""
    steps = [d]
    for k in range(len(d)):
        steps.append(np.minimum(steps[-1], steps[-1][:, k, None] + steps[-1][k]))
    adj = np.where(np.isfinite(steps[-1]), 1.0, 0.0)
    for k in reversed(range(len(d))):
        before = steps[k]
        kept = (before <= before[:, k, None] + before[k]) | np.isnan(before)
        moved = np.where(kept, 0.0, adj)
        adj = np.where(kept, adj, 0.0)
        adj[k] += moved.sum(0)
        adj[:, k] += moved.sum(1)
    return adj


@pytest.mark.parametrize("threads", [1, 2])
@pytest.mark.parametrize("n", [7, 94])
@pytest.mark.parametrize("missing", [0.0, 0.9])
def test_shortest_paths(n, threads, missing):
    rng = np.random.default_rng(n)
    d = rng.uniform(1.0, 100.0, (n, n))
    d[rng.uniform(size=(n, n)) < missing] = np.inf

    def loss(d):
        s = shortest_paths(d)
        return np.where(np.isfinite(s), s, 0.0).sum()

    found = tp.grad(tp.function(loss, threads=threads))(d)
    np.testing.assert_allclose(found, shortest_backwards(d), rtol=1e-13)
