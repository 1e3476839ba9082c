"""Sums on a device: in any order of the threads, and with `deterministic` the same bits in each."""

import numpy as np
import pytest

import tapeless as tp
from tapeless.testing.compare import Returned
from tapeless.testing.stages import by_python, on_device

N = 60
RNG = np.random.default_rng(3)
TABLE = RNG.normal(size=5)
PLACES = RNG.integers(0, 5, N)
X = RNG.normal(size=N) * 10.0 ** RNG.integers(-6, 6, N)
ROWS = RNG.normal(size=(N, 3)) * 10.0 ** RNG.integers(-6, 6, (N, 1))


def picked(table, places, x):
    total = 0.0
    for i in tp.prange(len(places)):
        total += np.sin(table[places[i]]) * x[i]
    return total


def shared(rows, bias):
    return np.sum(np.tanh(rows + bias) * rows)


def both(table, places, x):
    """A sum, and sums at places."""
    h = np.zeros(len(table))
    total = 0.0
    for i in tp.prange(len(places)):
        h[places[i]] += x[i]
        total += x[i] * x[i]
    return h, total


def own_rows(places, rows):
    """Rows of their own, to which all that is inside adds."""
    out = np.zeros((len(rows), 5))
    for i in tp.prange(len(rows)):
        for k in tp.prange(rows.shape[1]):
            out[i, places[k]] += rows[i, k]
    return out


def by_keys(table, places, x):
    return tp.hist(lambda a, b: a + b, 0.0, len(table), places, x)


def whole_rows(places, rows):
    """A sum of arrays."""
    total = np.zeros(3)
    for i in tp.prange(len(rows)):
        total += rows[i] * places[i]
    return total


def beside_whole_numbers(x, table):
    """The sum of floats is made by atomics too, since there is an array beside it."""
    counts, total = np.zeros(3, np.int64), 0.0
    for i in tp.prange(len(table)):
        counts += table[i]
        total += x[i]
    return counts, total


PROGRAMS = {
    "beside whole numbers": (beside_whole_numbers, (X, RNG.integers(0, 9, (N, 3)))),
    "at places": (tp.grad(picked).python, (TABLE, PLACES, X)),
    "shared by rows": (tp.grad(shared, argnums=1).python, (ROWS, np.zeros(3))),
    "both": (both, (TABLE, PLACES, X)),
    "own rows": (own_rows, (np.array([4, 4, 4]), ROWS)),
    "histogram": (by_keys, (TABLE, PLACES, X)),
    "rows": (whole_rows, (PLACES, ROWS)),
}


def bits(name, deterministic, seed):
    function, args = PROGRAMS[name]
    outcome, _ = on_device(function, lambda: [np.copy(a) for a in args], seed=seed, deterministic=deterministic)
    want = by_python(function, lambda: [np.copy(a) for a in args])
    assert isinstance(outcome, Returned) and isinstance(want, Returned), (outcome, want)
    found, wanted = (r if isinstance(r, tuple) else (r,) for r in (outcome.result, want.result))
    for one, other in zip(found, wanted, strict=True):
        np.testing.assert_allclose(one, other, rtol=1e-9, atol=1e-6)
    return [np.asarray(r).tobytes() for r in found]


@pytest.mark.parametrize("name", PROGRAMS)
def test_the_same_bits_in_each_order(name):
    first, *others = (bits(name, True, seed) for seed in range(4))
    assert all(other == first for other in others)


@pytest.mark.parametrize("name", [name for name in PROGRAMS if name != "beside whole numbers"])  # two kernels
def test_threads_would_show_their_order(name):
    assert len({b"".join(bits(name, False, seed)) for seed in range(4)}) > 1


def test_what_does_not_round_needs_no_chunks():
    def counts(places):
        return tp.hist(lambda a, b: a + b, 0, 5, places, np.ones_like(places))

    programs = [
        on_device(counts, lambda: [PLACES.copy()], deterministic=deterministic)[1].program
        for deterministic in (False, True)
    ]
    assert len(programs[0].body) == len(programs[1].body)


def middle(a, b):
    """Associative, but no row of the table."""
    return b if a == 0.0 else a if b == 0.0 else max(a, b) - 0.0


def test_histograms_by_any_operator_run_in_chunks():
    def kept(places, x):
        return tp.hist(middle, 0.0, 5, places, x)

    x = np.abs(X)
    for places, some in ((PLACES, x), (PLACES[:3], x[:3]), (np.tile(PLACES, 40), np.tile(x, 40))):
        outcome, _ = on_device(kept, lambda: [places.copy(), some.copy()])
        want = by_python(kept, lambda: [places.copy(), some.copy()])
        assert isinstance(outcome, Returned) and isinstance(want, Returned), (outcome, want)
        np.testing.assert_array_equal(outcome.result, want.result)
