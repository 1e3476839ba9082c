"""What does not depend on the element of a sweep: made once per chunk, where nobody can tell the difference."""

import numpy as np
import pytest

import tapeless as tp
from tapeless.testing.compare import compare
from tapeless.testing.stages import outcomes


def running_sums(x, t):
    out = np.zeros(len(x))
    for i in tp.prange(len(x)):
        sums = np.cumsum(t)
        out[i] = sums[i % 3] * x[i] + sums[1]
    return out


def written(x, t):
    """Each element has its own."""
    out = np.zeros(len(x))
    for i in tp.prange(len(x)):
        sums = np.cumsum(t)
        sums[i % 3] += x[i]
        out[i] = sums.sum()
    return out


def handed_on(x, t):
    out = np.zeros((len(x), len(t)))
    for i in tp.prange(len(x)):
        out[i] = np.cumsum(t)
    return out


def of_the_first(x, t):
    """It is only there if there are elements."""
    out = np.zeros(len(x))
    for i in tp.prange(len(x)):
        sums = np.cumsum(x[0] + t)
        out[i] = sums[i % 3] - sums[0]
    return out


def behind_a_test(x, t):
    out = np.zeros(len(x))
    for i in tp.prange(len(x)):
        y = x[i * i]
        sums = np.cumsum(t)
        out[i] = sums[i % 3] * y + sums[1]
    return out


PROGRAMS = [running_sums, written, handed_on, of_the_first, behind_a_test]


@pytest.mark.parametrize("size", [0, 1, 2, 7])
@pytest.mark.parametrize("function", PROGRAMS, ids=lambda f: f.__name__)
def test_by_all_stages(function, size):
    found = outcomes(function, lambda: [np.arange(size) * 0.5, np.array([1.0, 2.0, 4.0])], seed=size)
    _, python = next(found)
    for stage, outcome in found:
        assert compare(python, outcome) == "", stage


def scans_a_chunk(function) -> bool:
    """Does the running sum stand in front of the loop over the elements, in a piece?"""
    text = tp.function(function).ir(np.ones(5), np.ones(3), stage="loops")
    inside = text[text.index("for piece in") :].splitlines()
    loops = [line for line in inside if " for " in line]
    over_sums, over_elements = (len(line) - len(line.lstrip()) for line in loops[:2])
    return over_sums == over_elements


def test_where_it_stands():
    assert scans_a_chunk(running_sums)
    assert not scans_a_chunk(written)
    assert not scans_a_chunk(behind_a_test)
