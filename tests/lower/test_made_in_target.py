"""An array that is only made to become a row of another one is made there, where the row is known to exist."""

import numpy as np
import pytest

import tapeless as tp
from tests.agreement import agree

V = np.array([0.1, 0.5, -0.3])


def rows(v, n):
    out = np.empty((n, len(v)))
    for i in range(n):
        out[i, :] = 2.0 * v + i
        v = v * 0.5
    return out


def buffers(f, *args):
    return tp.function(f).ir(*args, stage="loops").count("alloc ")


def test_a_row_needs_no_array_of_its_own():
    agree(rows, V, 4)
    assert buffers(rows, V, 4) == 2  # the result, and v


def test_a_row_that_its_values_are_read_from():
    def f(a, n):
        a = a.copy()
        for i in range(n):
            a[i, :] = a[i, ::-1] + a[0, :]
        return a

    agree(f, np.arange(6.0).reshape(3, 2), 3)


@pytest.mark.parametrize("k", [0, 1, -1, 2, -3])
def test_a_row_that_may_not_be_there(k):
    def f(a, v, k):
        t = 2.0 * v
        a[k, :] = t
        return a.sum()

    agree(f, np.zeros((2, 3)), V, k)
