"""Views without axes: numbers in compiled code, so a write that they would show is refused."""

import numpy as np
import pytest

import tapeless as tp
from tapeless.errors import CompileError


def by_ellipsis(x):
    v = x[0, ...]
    x[0] = 5.0
    return v + 1.0


def by_reshape(x):
    v = x[:1].reshape(())
    x[0] = 5.0
    return v + 1.0


def by_squeeze(x):
    v = np.squeeze(x[:1])
    x[0] = 5.0
    return v + 1.0


@pytest.mark.parametrize("function", [by_ellipsis, by_reshape, by_squeeze])
def test_w4_a_later_write_is_refused(function):
    x = np.arange(3.0)
    with pytest.raises(CompileError, match="made a view of one of its elements") as caught:
        tp.function(function)(x)
    assert caught.value.code == "TP105"
    np.testing.assert_array_equal(x, np.arange(3.0))


def element_first(x):
    v = x[0]
    w = (2.0 * x)[0, ...]
    x[0] = 5.0
    return v + w + np.squeeze(x[1:2])


def test_w4_elements_and_views_of_other_arrays_are_numbers():
    assert tp.function(element_first)(np.arange(1.0, 4.0)) == element_first(np.arange(1.0, 4.0))
