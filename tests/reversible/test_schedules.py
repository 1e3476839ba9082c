"""Bennett's scheme and treeverse: published counts, and gradients in the memory of a few states."""

import numpy as np
import pytest

import tapeless as tp


@pytest.mark.parametrize(
    "n, k, calls, peak",
    [
        (2**3, 2, 27, 5),
        (2**4, 2, 81, 6),
        (3**3, 3, 125, 8),
        (4**4, 4, 2401, 14),
        (2**10, 2, 59049, 12),
        (100, 4, 847, 12),
    ],
)
def test_bennett_counts(n, k, calls, peak):
    counts = tp.Counts()
    seen = []

    def double(x):
        seen.append(x)
        return 2 * x

    assert tp.bennett(double, 1, n, k, counts) == 2**n
    assert (len(seen), counts.calls, counts.peak) == (calls, calls, peak)


SITES, STEPS = 100, 100
H, DT, ALPHA = np.pi / SITES, 0.01, 0.04


def heat(u):
    return u + ALPHA * DT / H**2 * (np.roll(u, 1) + np.roll(u, -1) - 2.0 * u)


def plainly(u):
    for _ in range(STEPS):
        u = heat(u)
    return u


def start():
    u = np.zeros(SITES)
    u[SITES // 2] = 1.0
    return u


def test_heat_equation():
    counts = tp.Counts()
    end = tp.bennett(heat, start(), STEPS, 4, counts)
    assert counts.calls == 847
    assert np.sum(end) == pytest.approx(1.0, rel=1e-14)
    np.testing.assert_array_equal(end, plainly(start()))
    w = np.linspace(0.0, 1.0, SITES)
    wanted = tp.grad(lambda u: np.sum(plainly(u) ** 2 * w))(start())
    by_bennett = tp.grad(lambda u: np.sum(tp.bennett(heat, u, STEPS, 4) ** 2 * w))
    by_treeverse = tp.grad(lambda u: np.sum(tp.treeverse(heat, u, STEPS, 6) ** 2 * w))
    for found in (by_bennett, by_treeverse):
        np.testing.assert_allclose(found(start()), wanted, rtol=1e-12, atol=1e-15)


def lorenz(x, h=0.01):
    def slope(x):
        return np.array([10.0 * (x[1] - x[0]), x[0] * (27.0 - x[2]) - x[1], x[0] * x[1] - 8.0 / 3.0 * x[2]])

    a = slope(x)
    b = slope(x + 0.5 * h * a)
    c = slope(x + 0.5 * h * b)
    d = slope(x + h * c)
    return x + h / 6.0 * (a + 2.0 * b + 2.0 * c + d)


@pytest.mark.thorough
@pytest.mark.parametrize("memory", [2, 5, 40])
def test_treeverse_keeps_so_many_states(memory):
    def end(x, n):
        return np.sum(tp.treeverse(lorenz, x, n, memory))

    def plain(x, n):
        for _ in range(n):
            x = lorenz(x)
        return np.sum(x)

    x = np.array([1.0, 0.0, 0.0])
    found = tp.grad(end)
    np.testing.assert_allclose(found(x, 200), tp.grad(plain)(x, 200), rtol=1e-9)
    kept = found.explain(x, 200).memory_bytes
    assert kept <= memory * (x.nbytes + 16)  # with the place of each


def test_wrong_numbers():
    with pytest.raises(ValueError, match="k must be"):
        tp.bennett(heat, start(), 10, 1)
    with pytest.raises(ValueError, match="memory must be"):
        tp.treeverse(heat, start(), 10, 0)
    with pytest.raises(ValueError, match="n must be"):
        tp.bennett(heat, start(), -1, 2)


def test_no_steps():
    np.testing.assert_array_equal(tp.bennett(heat, start(), 0, 2), start())
    np.testing.assert_array_equal(tp.treeverse(heat, start(), 0, 2), start())
    assert tp.grad(lambda x, n: tp.bennett(lambda y: 0.5 * y, x, n, 2))(3.0, 0) == 1.0
