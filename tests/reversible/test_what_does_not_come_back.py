"""Calls with arrays that share memory, and steps that lose something: refused by every way to run them."""

import dataclasses

import numpy as np
import pytest

import tapeless as tp


@tp.reversible
def add_squares(a, b):
    for i in range(len(a)):
        a[i] += b[i] * b[i]


def itself(a):
    add_squares(a, a)
    return np.sum(a)


def by_another_name(a):
    b = a
    add_squares(a, b)
    return np.sum(a)


def overlapping(a):
    add_squares(a[1:], a[:-1])
    return np.sum(a)


def turned_round(a):
    add_squares(a, a[::-1])
    return np.sum(a)


def in_a_loop(a):
    for i in range(2):
        add_squares(a[i : i + 2], a[1:3])
    return np.sum(a)


@dataclasses.dataclass
class Pair:
    a: np.ndarray
    b: np.ndarray


@tp.reversible
def add_to_first(s):
    for i in range(len(s.a)):
        s.a[i] += s.b[i] ** 2


def twice_in_one(a):
    add_to_first(Pair(a, a))
    return np.sum(a)


@tp.reversible
def add_constant(x, *, c):
    for i in range(len(x)):
        x[i] += c[i] ** 2


def as_a_constant(a):
    add_constant(a[1:], c=a[:-1])
    return np.sum(a)


def rows_of_one(a):
    m = a.reshape(2, 2).copy()
    for i in range(2):
        add_squares(m[i], m[0])
    return np.sum(m)


WAYS = {
    "python": lambda f, a: f(a),
    "function": lambda f, a: tp.function(f)(a),
    "grad": lambda f, a: tp.grad(f)(a),
    "jvp": lambda f, a: tp.jvp(f, (a,), (np.ones_like(a),)),
}
SHARING = [itself, by_another_name, overlapping, turned_round, in_a_loop, twice_in_one, as_a_constant, rows_of_one]


@pytest.mark.parametrize("way", WAYS)
@pytest.mark.parametrize("f", SHARING, ids=lambda f: f.__name__)
def test_arrays_that_share_memory_are_refused(f, way):
    with pytest.raises((tp.InvertibilityError, tp.ArgumentError)):
        WAYS[way](f, np.ones(4))


def evens_and_odds(a):
    add_squares(a[::2], a[1::2])
    add_squares(a[:1], a[2:3])
    return np.sum(a)


def other_rows(a):
    m = a.reshape(2, 2).copy()
    for i in range(1, 2):
        add_squares(m[i], m[0])
    return np.sum(m)


@pytest.mark.parametrize("f", [evens_and_odds, other_rows], ids=lambda f: f.__name__)
def test_parts_without_a_common_cell_are_fine(f):
    a = np.array([0.3, -0.7, 1.1, 0.4])
    steps = 1e-6 * np.eye(4)
    slopes = [(f(a + s) - f(a - s)) / 2e-6 for s in steps]
    assert tp.function(f)(a.copy()) == pytest.approx(f(a.copy()))
    np.testing.assert_allclose(tp.grad(f)(a), slopes, rtol=1e-6)


@tp.reversible
def shift(x, *, c):
    x += c


@tp.reversible
def shift_by_a_cell(x, i, j):
    shift(x[i], c=x[j])


def test_a_cell_is_not_changed_by_itself_through_a_call():
    np.testing.assert_array_equal((~shift_by_a_cell)(*shift_by_a_cell(np.ones(2), 0, 1))[0], np.ones(2))
    with pytest.raises(tp.InvertibilityError, match="same cell"):
        shift_by_a_cell(np.ones(2), 1, 1)


@tp.reversible
def exchange(x, i, j):
    x[i], x[j] = x[j], x[i]


@pytest.mark.parametrize("form", [exchange, exchange.python])
def test_a_cell_may_be_exchanged_with_itself(form):
    np.testing.assert_array_equal(form(np.arange(3.0), 1, 1)[0], np.arange(3.0))
    np.testing.assert_array_equal((~exchange)(*exchange(np.arange(3.0), 0, 2))[0], np.arange(3.0))
    weights = np.array([1.0, 2.0, 4.0])
    slope = tp.grad(lambda x, i, j: np.sum(exchange(x.copy(), i, j)[0] * weights))
    np.testing.assert_array_equal(slope(np.ones(3), 1, 1), weights)
    np.testing.assert_array_equal(slope(np.ones(3), 0, 1), [2.0, 1.0, 4.0])


@tp.reversible
def scale(x, y):
    x *= y


@tp.reversible
def add(x, y):
    x += y


@pytest.mark.parametrize("way", ["compiled", "python"])
@pytest.mark.parametrize(
    ("step", "args"),
    [
        (scale, (2**60 + 1, 3)),
        (scale, (np.arange(3), 2)),
        (scale, (np.int32(3), 2)),
        (add, (np.array([True, False]), np.array([True, True]))),
    ],
)
def test_whole_numbers_and_truth_values_lose_something(step, args, way):
    with pytest.raises(tp.InvertibilityError, match="does not come back"):
        (step if way == "compiled" else step.python)(*args)


@tp.reversible
def with_ancilla(y, x):
    with tp.ancilla(0j) as t:
        t += x
        y += t * t
        t -= x


def test_complex_numbers():
    x, y = (~scale)(*scale(1 + 2j, 3 - 1j))
    assert x == pytest.approx(1 + 2j) and y == 3 - 1j
    values = np.array([1 + 2j, 3j]), np.array([3 - 1j, 1j])
    np.testing.assert_allclose((~scale)(*scale(values[0].copy(), values[1]))[0], values[0])
    assert (~with_ancilla)(*with_ancilla(1j, 2 + 1j)) == (1j, 2 + 1j)
    with pytest.raises(tp.InvertibilityError, match=r"0\.0 does not come back"):
        scale(1 + 2j, 0j)


def test_what_is_undone_must_know_its_way():
    @tp.reversible
    def branch(y, x):
        with tp.compute:
            if x > 0:
                x -= 1.0
        y += x

    @tp.reversible
    def loop(y, t):
        with tp.compute:
            while t < 3.0:
                t += 1.0
        y += t

    @tp.reversible
    def endless(t):
        while t < 3.0:
            t += 1.0

    @tp.reversible
    def call(y, t):
        with tp.compute:
            endless(t)
        y += t

    for f in (branch, loop, call):
        with pytest.raises(tp.InvertibilityError, match="TP406"):
            f(0.2, 0.4)


def test_loops_that_python_does_not_turn_round():
    @tp.reversible
    def numbered(x):
        for i, v in enumerate(range(len(x))):
            x[i] += 2.0 * v

    with pytest.raises(tp.InvertibilityError, match="enumerate"):
        numbered(np.ones(3))


# -- what is legal


def rows_of_a_reshaped(m, i, j):
    q = m.reshape(2, 3)
    add_squares(q[i], q[j])
    return np.sum(m)


def test_positions_from_the_end_of_a_reshaped_array():
    m = np.arange(6.0).reshape(3, 2)
    np.testing.assert_array_equal(tp.grad(rows_of_a_reshaped)(m, 0, -1).ravel(), [1, 1, 1, 7, 9, 11])
    for i, j in ((-1, 1), (0, -2)):
        with pytest.raises(tp.InvertibilityError, match="share memory"):
            tp.grad(rows_of_a_reshaped)(m, i, j)


@tp.reversible
def dot(r, a, *, b):
    for i in range(len(a)):
        r += a[i] * b[i]


def test_arrays_that_are_only_read_may_share_memory():
    x = np.arange(4.0)

    def square(x):
        return dot(0.0, x, b=x)[0]

    def neighbours(x):
        return dot(0.0, x[1:], b=x[:-1])[0]

    assert tp.function(square)(x) == square(x) == 14.0
    np.testing.assert_array_equal(tp.grad(square)(x), 2 * x)
    np.testing.assert_array_equal(tp.grad(neighbours)(x), [1.0, 2.0, 4.0, 2.0])


def test_parts_that_are_empty_or_between_others():
    def empty(a, n):
        add_squares(a[n:n], a[:])
        return np.sum(a)

    def between(a):
        add_squares(a[0::4], a[1::2][:2])
        return np.sum(a)

    np.testing.assert_array_equal(tp.grad(empty)(np.arange(4.0), 2), np.ones(4))
    np.testing.assert_array_equal(tp.grad(between)(np.arange(8.0)), [1, 3, 1, 7, 1, 1, 1, 1])


@tp.reversible
def divide(x, y):
    x /= y


def test_whole_numbers_that_become_floats_come_back():
    assert scale(2, 0.5) == scale.python(2, 0.5) == (1.0, 0.5)
    assert (~divide)(*divide(5, 2)) == (5.0, 2)
    assert tp.grad(lambda y: scale(2, y)[0])(0.5) == 2.0


def test_a_row_may_be_exchanged_with_itself():
    m = np.arange(6.0).reshape(3, 2)
    np.testing.assert_array_equal(exchange(m.copy(), 1, 1)[0], m)
    np.testing.assert_array_equal(exchange(m.copy(), 0, 2)[0], m[[2, 1, 0]])
