"""Ways back that do not come by the values of the way there are warned of, also where they end at the right ones."""

import warnings

import numpy as np
import pytest
from hypothesis import assume, given, settings
from hypothesis import strategies as st

import tapeless as tp


@tp.reversible
def apart_and_together(x, y, *, n, m):
    """Away from 1 for n steps, then towards 2 for m: what x was in between is lost, and on the way back nobody would see it."""
    for _ in range(n):
        x *= 2.0
        x -= 1.0
        y += np.sin(x)
    for _ in range(m):
        x *= 0.5
        x += 1.0
        y += np.sin(x)


def last(x, n, m):
    return apart_and_together(x, 0.0, n=n, m=m)[1]


def test_the_middle_of_the_way_counts():
    start = 1.0 + 1e-9
    end = apart_and_together(start, 0.0, n=30, m=60)
    with pytest.warns(tp.InversionDrift, match="did not come by the values of the way there"):
        tp.grad(last)(start, 30, 60)
    assert abs((~apart_and_together)(*end, n=30, m=60)[0] - start) < 1e-8  # as if nothing had happened


def test_nothing_is_said_where_nothing_is_lost():
    with warnings.catch_warnings():
        warnings.simplefilter("error")
        found = tp.grad(last)(1.25, 4, 20)
    plain = tp.grad(lambda x: apart_and_together.unchecked(x, 0.0, n=4, m=20)[1])(1.25)
    assert found == pytest.approx(plain, rel=1e-9)


@tp.reversible
def cells(x, y, *, n, m):
    for _ in range(n):
        for i in range(len(x)):
            x[i] *= 2.0
            x[i] -= 1.0
            y += np.sin(x[i])
    for _ in range(m):
        for i in range(len(x)):
            x[i] *= 0.5
            x[i] += 1.0
            y += np.sin(x[i])


@tp.reversible
def whole_arrays(x, y, *, n, m):
    for _ in range(n):
        x *= 2.0
        x -= 1.0
        y += np.sum(np.sin(x))
    for _ in range(m):
        x *= 0.5
        x += 1.0
        y += np.sum(np.sin(x))


@tp.reversible
def step_away(x):
    x *= 2.0
    x -= 1.0


@tp.reversible
def step_back(x):
    x *= 0.5
    x += 1.0


@tp.reversible
def calls(x, y, *, n, m):
    for _ in range(n):
        step_away(x)
        y += np.sum(np.sin(x))
    for _ in range(m):
        step_back(x)
        y += np.sum(np.sin(x))


@tp.reversible
def in_parallel(x, y, *, n, m):
    for _ in range(n):
        for i in tp.prange(len(x)):
            x[i] *= 2.0
            x[i] -= 1.0
        y += np.sum(np.sin(x))
    for _ in range(m):
        for i in tp.prange(len(x)):
            x[i] *= 0.5
            x[i] += 1.0
        y += np.sum(np.sin(x))


@tp.reversible
def side_by_side(x, y, *, n, m):
    for i in tp.prange(len(x)):
        for _ in range(n):
            x[i] *= 2.0
            x[i] -= 1.0
            y[i] += np.sin(x[i])
        for _ in range(m):
            x[i] *= 0.5
            x[i] += 1.0
            y[i] += np.sin(x[i])


@tp.reversible
def side_by_side_in_ancillas(x, y, *, n, m):
    for i in tp.prange(len(x)):
        with tp.ancilla(0.0) as t:
            with tp.compute:
                t += x[i]
                for _ in range(n):
                    t *= 2.0
                    t -= 1.0
                for _ in range(m):
                    t *= 0.5
                    t += 1.0
            y[i] += np.sin(t)


@tp.reversible
def in_an_ancilla(x, y, *, n, m):
    with tp.ancilla(np.zeros(5)) as t:
        with tp.compute:
            t += x
            for _ in range(n):
                t *= 2.0
                t -= 1.0
            for _ in range(m):
                t *= 0.5
                t += 1.0
        y += np.sum(np.sin(t))


ARRAYS = [cells, whole_arrays, calls, in_parallel]


@pytest.mark.thorough
@pytest.mark.parametrize("function", ARRAYS, ids=lambda f: f.__name__)
def test_arrays(function):
    def loss(x, n, m):
        return function(x, 0.0, n=n, m=m)[1]

    x = 1.0 + 1e-9 * np.arange(1.0, 6.0)
    with pytest.warns(tp.InversionDrift, match="did not come by the values of the way there"):
        tp.grad(loss)(x, 28, 60)
    with warnings.catch_warnings():
        warnings.simplefilter("error")
        found = tp.grad(loss)(x + 0.25, 4, 20)
    expected = tp.grad(lambda x: function.unchecked(x, 0.0, n=4, m=20)[1])(x + 0.25)
    np.testing.assert_allclose(found, expected, rtol=1e-9)
    assert tp.grad(loss)(np.zeros(0), 4, 20).shape == (0,)


@pytest.mark.thorough
@pytest.mark.parametrize("function", [side_by_side, side_by_side_in_ancillas], ids=lambda f: f.__name__)
def test_each_iteration_of_a_parallel_loop(function):
    def loss(x, n, m):
        return np.sum(function(x, np.zeros(len(x)), n=n, m=m)[1])

    x = np.full(7, 1.25)
    x[4] = 1.0 + 1e-9
    for threads in (1, 2):
        with pytest.warns(tp.InversionDrift, match="did not come by the values of the way there"):
            tp.grad(loss, threads=threads)(x, 28, 60)
        with warnings.catch_warnings():
            warnings.simplefilter("error")
            found = tp.grad(loss, threads=threads)(x, 4, 20)
            assert tp.grad(loss, threads=threads)(np.zeros(0), 4, 20).shape == (0,)
        expected = tp.grad(lambda x: np.sum(function.unchecked(x, np.zeros(7), n=4, m=20)[1]))(x)
        np.testing.assert_allclose(found, expected, rtol=1e-9)


def test_blocks_that_are_undone():
    def loss(x, n, m):
        return in_an_ancilla(x, 0.0, n=n, m=m)[1]

    x = 1.0 + 1e-9 * np.arange(1.0, 6.0)
    with pytest.warns(tp.InversionDrift):
        tp.grad(loss)(x, 28, 60)
    with warnings.catch_warnings():
        warnings.simplefilter("error")
        tp.grad(loss)(x + 0.25, 4, 20)


@tp.reversible
def sums(y, x, w):
    for i in range(len(x)):
        y += x[i] * w[i]


@tp.reversible
def each_cell_once(x, w):
    for i in range(len(x)):
        x[i] += np.sin(w[i])
        x[i] *= 1.5


@pytest.mark.parametrize("function", [sums, each_cell_once], ids=lambda f: f.__name__)
def test_what_cannot_drift_leaves_no_trail(function):
    assert function.watched == ()


@tp.reversible
def rests(p, q, *, n):
    """p is 0 for a while, on the way back a rounding error."""
    for i in range(n):
        if i > 10:
            p += 0.1 * np.sin(q)
        else:
            p += 0.0 * q
        q += 0.1 * p


def test_a_number_that_is_zero_for_a_while():
    with warnings.catch_warnings():
        warnings.simplefilter("error")
        tp.grad(lambda q: rests(0.0, q, n=50)[1])(0.7)


@tp.reversible
def single(x, p, *, n):
    for _ in range(n):
        p -= np.float32(0.1) * np.sin(x)
        x += np.float32(0.1) * p


def test_single_precision():
    with warnings.catch_warnings():
        warnings.simplefilter("error")
        tp.grad(lambda x: single(x, np.float32(0.0), n=500)[0])(np.float32(0.7))


@tp.reversible
def phases(x, p, y, *, kinds, counts, sizes):
    """Loops of steps that scale, shear, turn or absorb, one after the other."""
    for k in range(len(kinds)):
        for _ in range(counts[k]):
            if kinds[k] == 0:
                x *= sizes[k]
                x += 1.0 - sizes[k]
            elif kinds[k] == 1:
                p += sizes[k] * np.sin(x)
                x += 0.5 * p
            elif kinds[k] == 2:
                x, p = tp.rot(x, p, sizes[k])
            else:
                x += 1e6 * sizes[k]
                p += 0.01 * x
                x -= 1e6 * sizes[k]
            y += 0.1 * x / (1.0 + x * x)  # an error of x shows as an error of the same size


def through_phases(x, p, kinds, counts, sizes):
    return phases(x, p, 0.0, kinds=kinds, counts=counts, sizes=sizes)[2]


def plainly(x, p, kinds, counts, sizes):
    return phases.unchecked(x, p, 0.0, kinds=kinds, counts=counts, sizes=sizes)[2]


@pytest.mark.thorough
@settings(max_examples=60, deadline=None)
@given(
    st.lists(st.tuples(st.integers(0, 3), st.integers(0, 40), st.floats(0.3, 3.0)), min_size=1, max_size=6),
    st.floats(-2.0, 2.0),
    st.floats(-1.0, 1.0),
    st.sampled_from([1.0, 1e-6, 1e-12]),
)
def test_a_wrong_gradient_is_never_silent(steps, x, p, near):
    """x begins somewhere, or near to the fixed point of scaling."""
    kinds, counts = (np.array([s[k] for s in steps]) for k in (0, 1))
    sizes = np.array([s[2] for s in steps])
    start = (1.0 + near * x, p)
    with warnings.catch_warnings(record=True) as seen:
        warnings.simplefilter("always")
        found = tp.grad(through_phases, argnums=(0, 1))(*start, kinds, counts, sizes)
    expected = tp.grad(plainly, argnums=(0, 1))(*start, kinds, counts, sizes)
    assert all(w.category is tp.InversionDrift for w in seen)
    largest, size = sizes_on_the_way(*start, kinds, counts, sizes)
    assume(largest < 1e4)  # beyond, what is left of sin(x) hangs on the last digits of x
    assert seen or np.max(np.abs(np.subtract(found, expected))) <= 1e-4 * size


def sizes_on_the_way(x, p, kinds, counts, sizes):
    """The largest state, and the sum of what the steps may add to a gradient in absolute terms."""
    slopes, largest, total = np.eye(2), 0.0, 0.0
    for kind, size in zip(np.repeat(kinds, counts), np.repeat(sizes, counts), strict=True):
        if kind == 0:
            x, slopes = size * x + 1.0 - size, np.diag([size, 1.0]) @ slopes
        elif kind == 1:
            slopes = np.array([[1.0, 0.5], [0.0, 1.0]]) @ np.array([[1.0, 0.0], [size * np.cos(x), 1.0]]) @ slopes
            p += size * np.sin(x)
            x += 0.5 * p
        elif kind == 2:
            turn = np.array([[np.cos(size), -np.sin(size)], [np.sin(size), np.cos(size)]])
            (x, p), slopes = turn @ [x, p], turn @ slopes
        else:
            p, slopes = p + 0.01 * (x + 1e6 * size), np.array([[1.0, 0.0], [0.01, 1.0]]) @ slopes
        largest, total = max(largest, abs(x), abs(p)), total + 0.1 * np.max(np.abs(slopes))
    return largest, total
