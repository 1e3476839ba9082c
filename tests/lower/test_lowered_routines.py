"""Routines that lowering makes: sorts, stable and with NaN last, and Fourier transforms, by the machine and by Loop IR's interpreter."""

import numpy as np
import pytest

import tapeless as tp
from tapeless.ir.types import i64
from tapeless.lower.ir.loopir import Launch, While
from tapeless.lower.ir.walk import walk
from tapeless.lower.lowering import lower
from tapeless.passes.pipeline import finished
from tapeless.prelude import intrinsics
from tapeless.testing.compare import Returned
from tapeless.testing.stages import by_loops, on_device, trace
from tests.quick import unoptimized  # noqa: F401

SPECIAL = [0.0, -0.0, np.nan, -np.nan, np.inf, -np.inf, 5e-324, -5e-324, 1e308, -1.5]


def both(x):
    return np.sort(x), np.argsort(x)


def middle(x):
    return np.median(x)


def ranked(x, ranks):
    return intrinsics.ranked(x, ranks)


def transform(x):
    return np.fft.fft(x)


def numbers(dtype, n):
    """Many of them equal, and the extremes of the type."""
    rng = np.random.default_rng(n)
    if np.dtype(dtype).kind == "f":
        some = np.concatenate([np.array(SPECIAL), rng.normal(size=20) * 1e3])
    else:
        info = np.iinfo(dtype)
        some = np.concatenate([np.array([info.min, info.max, 0, -1, 1, 255, 256]), rng.integers(-300, 300, 20)])
    with np.errstate(over="ignore"):
        return rng.choice(some, n).astype(dtype)


@pytest.mark.parametrize("dtype", [np.float64, np.float32, np.int64, np.int32])
def test_stable_and_nan_last(dtype):
    compiled = tp.function(both)
    for n in (0, 1, 2, 47, 48, 49, 700):
        x = numbers(dtype, n)
        order = np.argsort(x, kind="stable")
        values, positions = compiled(x)
        assert positions.tolist() == order.tolist()
        assert values.tobytes() == x[order].tobytes()


def test_what_is_equal_in_most_bytes():
    for x in (np.full(100, 7), np.arange(1000) % 3, np.arange(300)[::-1] * 2**40, -np.arange(100.0)):
        values, positions = tp.function(both)(x)
        np.testing.assert_array_equal(values, np.sort(x))
        np.testing.assert_array_equal(positions, np.argsort(x, kind="stable"))


@pytest.mark.parametrize("dtype", [np.float64, np.float32, np.int64, np.int32])
def test_ranks(dtype):
    """Ranks in any order, far apart and next to each other; of numbers that are equal, in the order of their places."""
    compiled = tp.function(ranked)
    for n in (1, 48, 49, 700):
        for x in (numbers(dtype, n), np.zeros(n, dtype), np.arange(n).astype(dtype)):
            ranks = np.array([n // 2, n - 1, 0, n // 2 - (n > 1), n // 3])
            assert compiled(x, ranks).tolist() == np.argsort(x, kind="stable")[ranks].tolist()


@pytest.mark.parametrize("n", [5, 60])
def test_by_loops(n):
    x = numbers(np.float64, n)
    traced = trace(both, (x,))
    found = by_loops(traced, lower(finished(traced.core)), lambda: (x.copy(),), 0)
    assert isinstance(found, Returned), found
    order = np.argsort(x, kind="stable")
    np.testing.assert_array_equal(found.result[0], x[order])
    np.testing.assert_array_equal(found.result[1], order)
    x = np.abs(np.nan_to_num(x))
    traced = trace(middle, (x,))
    found = by_loops(traced, lower(finished(traced.core)), lambda: (x.copy(),), 0)
    assert isinstance(found, Returned), found
    assert found.result == np.median(x)


@pytest.mark.parametrize("dtype", [np.float64, np.int32])
@pytest.mark.parametrize("n", [0, 1, 2, 3, 60, 129])
def test_on_a_device_each_number_finds_its_place(dtype, n):
    x = numbers(dtype, n)
    outcome, lowered = on_device(both, lambda: [x.copy()], seed=n)
    assert isinstance(outcome, Returned), outcome
    order = np.argsort(x, kind="stable")
    np.testing.assert_array_equal(outcome.result[0], x[order])
    np.testing.assert_array_equal(outcome.result[1], order)
    launched = [s.kernel for s in walk(lowered.program.body) if isinstance(s, Launch)]
    assert any(isinstance(s, While) for kernel in launched for s in walk((kernel.loop,)))


@pytest.mark.parametrize("n", [12, 53])
def test_transforms_by_loops(n):
    x = np.random.default_rng(n).normal(size=n)
    traced = trace(transform, (x,))
    found = by_loops(traced, lower(finished(traced.core)), lambda: (x.copy(),), 0)
    assert isinstance(found, Returned), found
    np.testing.assert_allclose(found.result, np.fft.fft(x), atol=1e-12)


def back(x):
    return np.fft.ifft(x)


def by_rows(x):
    return np.fft.fft(x.reshape(2, -1))


def by_all_axes(x):
    return np.fft.fftn(x.reshape(2, 1, -1)) + 1.0


@pytest.mark.sampled(2, each="function")
@pytest.mark.parametrize("function", [transform, back, by_rows, by_all_axes])
@pytest.mark.parametrize("n", [2, 8, 14, 30, 106])
def test_transforms_on_a_device(function, n):
    """Passes as kernels, factors of their own and others, and convolutions; those of all rows at once."""
    rng = np.random.default_rng(n)
    x = rng.normal(size=n) + 1j * rng.normal(size=n)
    found, lowered = on_device(function, lambda: (x.copy(),))
    assert isinstance(found, Returned), found
    np.testing.assert_allclose(found.result, function(x), atol=1e-12)
    kernels = [s.kernel for s in walk(lowered.program.body) if isinstance(s, Launch)]
    if function is not by_all_axes:  # has an axis that is known to be short
        assert not any(k.loop.hi == i64(1) for k in kernels), "one thread goes through an array"
    inside = [s for k in kernels for s in walk(k.loop.body) if isinstance(s, While)]
    assert not inside, "a thread makes all passes"
