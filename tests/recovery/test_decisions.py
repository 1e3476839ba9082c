"""Values that only comparisons look at: what they said is kept instead. Ties and NaN, what is kept, and when not."""

import numpy as np
import pytest

import tapeless as tp
from tests.quick import unoptimized  # noqa: F401  (for all tests here)
from tests.recovery.same import plans

N = 5
RNG = np.random.default_rng(3)
D = RNG.random((N, N))


def floyd(d):
    for k in range(len(d)):
        d = np.minimum(d, d[:, k, None] + d[None, k, :])
    return np.sum(d)


def in_place(d):
    d = d.copy()
    for k in range(len(d)):
        for i in range(len(d)):
            for j in range(len(d)):
                t = d[i, k] + d[k, j]
                if t < d[i, j]:
                    d[i, j] = t
    return np.sum(d)


def both(f, *args, **options):
    """By decisions, and by storing everything."""
    stored = tp.grad(f, recover="store", **options)(*args)
    found = tp.grad(f, **options)(*args)
    np.testing.assert_array_equal(found, stored)
    return found


@pytest.mark.parametrize("f", [floyd, in_place])
def test_only_decisions_are_kept(f) -> None:
    assert set(plans(f, D)) == {"d: decisions"}
    assert set(plans(f, D, recover="store")) == {"d: store"}
    both(f, D)


def test_shortest_ways_by_hand() -> None:
    """The adjoint of a distance goes to the edges of the shortest way."""
    d = np.array([[0.0, 1.0, 5.0], [9.0, 0.0, 1.0], [9.0, 9.0, 0.0]])
    found = both(floyd, d)
    assert found[0, 2] == 0.0 and found[0, 1] == 2.0 and found[1, 2] == 2.0


@pytest.mark.parametrize("bad", [np.nan, np.inf, -np.inf])
def test_numbers_that_are_none(bad) -> None:
    d = D.copy()
    d[1, 2] = bad
    both(floyd, d)
    both(in_place, d)


def test_ties() -> None:
    for f in (floyd, in_place):
        both(f, np.ones((4, 4)))
        both(f, np.zeros((4, 4)))


def test_a_number_that_is_needed_is_stored() -> None:
    def f(v, n):
        for i in range(n):
            v = np.maximum(v * v, 0.5 * v)
        return np.sum(v)

    assert plans(f, D[0], 3) == ["v: store"]


def test_several_comparisons_take_no_more_than_the_value() -> None:
    """Nine truth values per cell, or one number."""

    def f(v, n):
        for i in range(n):
            w = v
            for c in (0.1, 0.2, 0.3, 0.4, 0.5, 0.6, 0.7, 0.8, 0.9):
                w = np.where(v > c, w + c, 0.5 * w)
            v = w
        return np.sum(v)

    assert plans(f, D[0], 3) == ["v: store"]
    both(f, D[0], 3)


def test_tests_of_the_program_stay() -> None:
    def f(v, keys, n):
        for i in range(n):
            v = np.minimum(v, v[keys[i]] + 0.1)
        return np.sum(v)

    keys = np.array([2, 0, 1, 9])
    assert plans(f, D[0], keys, 3) == ["v: decisions"]
    both(f, D[0], keys, 3)
    with pytest.raises(IndexError):
        tp.grad(f)(D[0], keys, 4)


@pytest.mark.thorough
def test_strips_and_budgets() -> None:
    expected = tp.grad(floyd, recover="store")(D)
    for options in ({"recover": "checkpoint"}, {"recover": "checkpoint:3"}, {"memory": "125B"}, {"memory": "1KB"}):
        np.testing.assert_array_equal(tp.grad(floyd, **options)(D), expected)
    with pytest.raises(tp.RecoveryError):
        tp.grad(floyd, memory="124B")(D)


def test_bytes_are_predicted() -> None:
    (loop,) = tp.grad(floyd).explain(D).plans
    assert loop.recovery == {"d": "decisions"} and "comparisons" in loop.why["d"]
    assert loop.memory_bytes == N**3 and loop.state_bytes == 8 * N * N
    (loop,) = tp.grad(floyd).explain(np.ones((130, 130))).plans
    assert loop.memory_bytes == 130**3


def test_second_derivatives() -> None:
    def f(v):
        s = v * v
        for _ in range(4):
            s = np.minimum(s, 0.3 + np.roll(s, 1))
        return np.sum(s * s)

    v = RNG.random(N)
    np.testing.assert_allclose(tp.hessian(f)(v), tp.jacfwd(tp.grad(f, recover="store"))(v), rtol=1e-12)


def test_debug_nans() -> None:
    np.testing.assert_array_equal(tp.grad(tp.function(floyd, debug_nans=True))(D), tp.grad(floyd)(D))
