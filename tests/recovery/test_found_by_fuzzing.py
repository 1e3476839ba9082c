"""The smallest programs of mistakes that generated loop nests have found."""

import numpy as np
import pytest

import tapeless as tp
from tapeless.testing.recoveries import WAYS, disagreement


def test_steps_run_again_from_snapshots_read_nothing_else() -> None:
    """Only `k` is needed: the test that `k % 3` is inside `a` was run again, without `a`."""

    def f(x, a, n):
        k = 1
        for i in range(n):
            if x > 1.6:
                continue
            k = k + 2
            a[k % 3] *= 0.25
        return x * np.sum(a * a)

    arguments = lambda n: [0.3, np.array([0.3, 0.4, 0.5]), n]
    assert disagreement(f, arguments, (0, 1), WAYS, (0, 1, 5)) == ""
    with pytest.raises(IndexError):
        tp.grad(f, 1, memory="300B")(0.3, np.array([0.3]), 3)


@pytest.mark.thorough
def test_slices_of_varying_lengths_are_solved_for() -> None:
    """The sweep that solves for a slice was as long as the length of the iteration forwards."""

    def f(x, b, n):
        b = b.copy()
        for i in range(n):
            b[i % 4 :] *= np.sin(x)
            b[: i % 3] = b[: i % 3] - 0.1 * x
        return np.sum(b * b)

    arguments = lambda n: [0.7, np.array([0.3, 0.4, 0.5]), n]
    assert disagreement(f, arguments, (0, 1), WAYS, (0, 1, 5)) == ""


@pytest.mark.thorough
def test_snapshots_of_loops_that_nobody_knows_the_length_of_count_nothing() -> None:
    """What the loop would log was counted in front of it, up to a number of trips that is found while it runs."""

    def f(x, b, n):
        b = b.copy()
        for i in range(n):
            b[: i % 3] = 0.5 * b[: i % 3] * np.sin(x) * b[2]
            if b[1] > 3.0:
                break
        return np.sum(b * b)

    arguments = lambda n: [0.7, np.array([0.3, 0.4, 0.5]), n]
    assert disagreement(f, arguments, (0, 1), WAYS, (0, 1, 5)) == ""
