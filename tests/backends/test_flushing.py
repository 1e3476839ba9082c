"""With fastmath, numbers too small to be normal are zero in compiled code, in all of its threads, and nowhere else."""

import numpy as np
import pytest

import tapeless as tp

TINY = 2.0**-1060


def halves(x):
    return x * 0.5


def product(a, b):
    return a @ b


def checked(x, i):
    y = x * 0.5
    return y[i]


def test_only_with_fastmath():
    x = np.full(100, TINY)
    np.testing.assert_array_equal(tp.function(halves)(x), x / 2)
    np.testing.assert_array_equal(tp.function(halves, fastmath=True)(x), np.zeros(100))


@pytest.mark.parametrize("threads", [1, 4])
def test_every_thread_sets_it_and_python_never_sees_it(threads):
    x = np.full(1_000_000, TINY)
    assert not np.any(tp.function(halves, fastmath=True, threads=threads)(x))
    assert np.all(x * 0.5 == TINY / 2)
    np.testing.assert_array_equal(tp.function(halves, threads=threads)(x), x / 2)  # the same pool


def test_after_an_error_too():
    f = tp.function(checked, fastmath=True)
    assert f(np.full(3, TINY), 1) == 0.0
    with pytest.raises(IndexError):
        f(np.full(3, TINY), 7)
    assert TINY * float("0.5") > 0.0 and np.all(np.full(3, TINY) * 0.5 > 0)


def test_products():
    a, b = np.full((20, 20), TINY), np.eye(20)
    assert not np.any(tp.function(product, fastmath=True)(a, b))
    np.testing.assert_array_equal(tp.function(product)(a, b), a)
