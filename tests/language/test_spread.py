"""`*` in tuples, lists and calls spreads what has a known length."""

import numpy as np
import pytest

import tapeless as tp
from tests.agreement import agree


def shapes(x):
    y = np.zeros((2, *x.shape)) + x
    return y.sum(axis=0) + np.ones([*x.shape, 1])[..., 0]


def pairs(t):
    u = (0.5, *t, *[t[0], 2.0])
    total = 0.0
    for e in u:
        total = 2.0 * total + e
    return total, len(u)


def add(a, b, c):
    return a + 2.0 * b + 4.0 * c


def passed_on(t):
    return add(1.0, *t)


def test_spread():
    agree(shapes, np.arange(6.0).reshape(2, 3))
    agree(pairs, (1.0, 3.0))
    agree(passed_on, (1.0, 3.0))
    assert tp.grad(lambda t: pairs(t)[0])((1.0, 3.0)) == (10.0, 4.0)


@pytest.mark.parametrize("given", [np.ones(3), 2.0])
def test_what_has_no_known_length_or_no_elements(given):
    with pytest.raises(tp.CompileError, match="TP101.*known length"):
        tp.function(lambda t: len((1.0, *t)))(given)
