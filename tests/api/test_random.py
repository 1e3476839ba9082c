"""Random numbers from keys: the published bits, the same compiled and plain, and derivatives that draw them again."""

import numpy as np
import pytest

import tapeless as tp
from tapeless.api import random
from tests.agreement import agree

KEY = tp.random.key(42)


@pytest.mark.parametrize(
    "key, counter, bits",
    [
        ((0, 0), (0, 0), (0x6B200159, 0x99BA4EFE)),
        ((0xFFFFFFFF,) * 2, (0xFFFFFFFF,) * 2, (0x1CB996FC, 0xBB002BE7)),
        ((0x13198A2E, 0x03707344), (0x243F6A88, 0x85A308D3), (0xC4923A9C, 0x483DF7A0)),
    ],
)
def test_bits_are_those_of_the_paper(key, counter, bits):
    assert tuple(map(int, random._threefry(np.array(key), *counter))) == bits


def everything(key):
    a, b, c = tp.random.split(key, 3)
    d = tp.random.fold_in(key, 7)
    return (
        tp.random.uniform(a),
        tp.random.uniform(a, (2, 3), -1.0, 1.0),
        tp.random.integers(c, (6,), -3, 4),
        tp.random.bernoulli(d, 0.25, (8,)),
        tp.random.permutation(a, 6),
        tp.random.permutation(b, np.arange(4.0)),
        tp.random.choice(c, 5, (4,)),
        tp.random.choice(c, 5, (4,), replace=False),
        tp.random.choice(d, np.array([1.0, 2.0, 4.0]), (4,), p=np.array([0.1, 0.2, 0.7])),
        tp.random.choice(d, 3, (2,), False, np.array([0.1, 0.2, 0.7])),
    )


@pytest.mark.thorough
def test_compiled_numbers_are_those_of_plain_python():
    agree(everything, KEY)
    for mine, plain in zip(tp.function(everything)(KEY), everything(KEY), strict=True):
        np.testing.assert_array_equal(mine, plain)


@pytest.mark.parametrize("draw", [tp.random.normal, tp.random.exponential])
def test_numbers_through_a_logarithm_are_those_of_plain_python_but_for_its_last_digits(draw):
    """NumPy's logarithm is not that of the C library on every processor."""
    mine, plain = tp.function(lambda key: draw(key, (1000,)))(KEY), draw(KEY, (1000,))
    np.testing.assert_allclose(mine, plain, rtol=4 * np.finfo(float).eps, atol=4 * np.finfo(float).eps)


def test_threads_do_not_matter():
    def draw(key):
        return tp.random.normal(key, (50_000,))

    one, two = (tp.function(draw, threads=n)(KEY) for n in (1, 2))
    np.testing.assert_array_equal(one, two)


@pytest.mark.thorough
def test_checked_arithmetic_does_not_overflow():
    np.testing.assert_array_equal(
        tp.function(lambda k: tp.random.uniform(k, (9,)), check=True)(KEY), tp.random.uniform(KEY, (9,))
    )


def test_moments():
    u, x = tp.random.uniform(KEY, 100_000), tp.random.normal(KEY, 100_000)
    assert abs(u.mean() - 0.5) < 0.005 and abs(u.var() - 1 / 12) < 0.002 and 0 <= u.min() and u.max() < 1
    assert abs(x.mean()) < 0.015 and abs(x.std() - 1) < 0.01 and abs((x**4).mean() - 3) < 0.1
    k = tp.random.integers(KEY, 60_000, 0, 6)
    assert (np.abs(np.bincount(k) - 10_000) < 400).all()
    p = np.array([0.1, 0.2, 0.7])
    drawn = np.bincount(tp.random.choice(KEY, 3, 60_000, p=p)) / 60_000
    np.testing.assert_allclose(drawn, p, atol=0.01)


def test_keys_differ():
    keys = {tuple(k) for k in tp.random.split(KEY, 1000)} | {tuple(tp.random.fold_in(KEY, i)) for i in range(1000)}
    assert len(keys) == 2000


def walk(scale, key, n):
    x = 0.5
    for i in range(n):
        x += scale * tp.random.normal(tp.random.fold_in(key, i)) * x + scale
    return x


@pytest.mark.thorough
def test_derivatives_draw_again():
    tp.check_grads(lambda s: walk(s, KEY, 20), (0.1,), order=1)
    assert tp.grad(walk)(0.1, KEY, 200) == pytest.approx(
        (walk(0.1 + 1e-6, KEY, 200) - walk(0.1 - 1e-6, KEY, 200)) / 2e-6, rel=1e-6
    )
