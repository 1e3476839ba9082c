"""Arrays whose cells an iteration overwrites many times: the log of them or the array is kept, whichever is smaller."""

import numpy as np
import pytest

import tapeless as tp


def sweeps(a, outer, inner):
    """Each cell is overwritten `inner` times in an iteration of the outer loop."""
    a = a.copy()
    for t in range(outer):
        for s in range(inner):
            for j in range(1, len(a) - 1):
                a[j] = 0.5 * np.sin(a[j - 1]) + 0.3 * a[j] * a[j + 1]
    return a.sum()


def two_arrays(a, outer, inner):
    """One overwritten often, one a cell a time, and a number; branches among the updates."""
    a, b, total = a.copy(), a * 2, 0.0
    for t in range(outer):
        b[t % len(b)] = b[t % len(b)] * total + 1.0
        for s in range(inner):
            for j in range(len(a)):
                if a[j] > 0.4:
                    a[j] = np.cos(a[j]) * b[j]
                else:
                    a[j] = a[j] * a[j - 1]
        total = np.sin(total + a[0] * a[-1])
    return a.sum() + b.sum() * total


SIZES = [(5, 4, 10), (3, 1, 7), (0, 2, 5), (2, 0, 5), (4, 3, 2), (2, 7, 4), (7, 1, 3)]


@pytest.mark.thorough
@pytest.mark.sampled(3, each="f")
@pytest.mark.parametrize("outer, inner, n", SIZES)
@pytest.mark.parametrize("f", [sweeps, two_arrays])
def test_the_same_gradient_either_way(f, outer, inner, n):
    x = np.linspace(0.1, 0.9, n)
    want = tp.grad(f, recover="store")(x, outer, inner)
    np.testing.assert_allclose(tp.grad(f)(x, outer, inner), want, rtol=1e-12, atol=1e-14)
    if n < 6:
        curved, other = (
            tp.jvp(lambda x, how=how: tp.grad(f, recover=how)(x, outer, inner), (x,), (np.ones(n),))[1]
            for how in ("auto", "store")
        )
        np.testing.assert_allclose(curved, other, rtol=1e-11, atol=1e-13)


def test_what_is_kept_depends_on_the_sizes():
    line = sweeps.__code__.co_firstlineno + 3

    def kept(n, inner):
        explained = tp.grad(sweeps).explain(np.linspace(0.1, 0.9, n), 50, inner)
        loop = next(loop for loop in explained.loops if loop.line == line)
        return loop.recovery, loop.memory_bytes

    assert kept(100, 40) == ({"a": "store"}, 50 * 100 * 8)
    assert kept(4, 1) == ({"a": "undo"}, 50 * 2 * 8)


def too_far(a, outer, inner, last):
    a = a.copy()
    for t in range(outer):
        for s in range(inner):
            for j in range(last):
                a[j] = np.sin(a[j] * a[0])
    return a.sum()


@pytest.mark.parametrize("inner", [1, 5])
def test_both_ways_test_positions(inner):
    gradient = tp.grad(too_far)
    assert np.isfinite(gradient(np.ones(6), 3, inner, 6)).all()
    with pytest.raises(IndexError, match="index 6 is out of bounds"):
        gradient(np.ones(6), 3, inner, 7)
