"""The peak of memory that a call takes, as the system sees it."""

import numpy as np
import pytest

import tapeless as tp
from tapeless.backends.cpu import buffers
from tapeless.runtime.peak import STATUS, peak_of

SIZE = 32_000_000  # bytes


@pytest.mark.thorough
@pytest.mark.skipif(not STATUS.exists(), reason="the system does not tell")
def test_peak_of_a_call():
    memory, seconds = peak_of(lambda: np.ones(SIZE // 8).sum())
    assert memory == pytest.approx(SIZE, rel=0.2) and seconds > 0


@pytest.mark.thorough
@pytest.mark.skipif(not STATUS.exists(), reason="the system does not tell")
def test_buffers_held_in_reserve_show_when_they_are_used_again():
    @tp.function(threads=1)
    def twice(x, n):
        y = np.zeros(n)
        for i in range(1, n):
            y[i] = y[i - 1] * 0.5 + x
        return y[n - 1]

    twice(1.0, SIZE // 8)
    assert buffers.kept() >= 0.8 * SIZE
    memory, _ = peak_of(lambda: twice(1.0, SIZE // 8))
    assert memory == pytest.approx(SIZE, rel=0.2)
