"""Small programs that generated ones have shrunk to: each was compiled wrongly once.

Every program runs by all stages of the compiler, with parallel loops cut however small they are.
"""

from functools import partial

import numpy as np
import pytest

import tapeless as tp
from tapeless.testing.stages import outcomes
from tests import agreement

agree = partial(agreement.agree, levels=(0, 3))


def test_an_array_of_a_size_known_in_one_arm_only():
    def f(a, x):
        if x > 0.0:
            m = tp.map(lambda i: tp.map(lambda j: a[j] + i, len(a)), 2)
            x = float(m[1, 0])
        return x

    agree(f, np.arange(3.0) + 1.0, 1.0)
    agree(f, np.arange(3.0) + 1.0, -1.0)


@pytest.mark.parametrize("x", [1.0, -1.0])
def test_a_view_made_in_one_arm_is_used_after_it(x):
    def f(a, x, k):
        if x > 0.0:
            v = a[k:]
        a[0] = 5.0
        if x > 0.0:
            v[0] = 7.0
            return np.sum(v)
        return np.sum(a)

    agree(f, np.arange(4.0), x, 1)


def test_a_view_at_a_position_outside_raises_where_it_is_made():
    def f(m, k):
        row = m[k]
        return m[0, 0]

    agree(f, np.ones((2, 2)), 1)
    agree(f, np.ones((2, 2)), 2)
    agree(f, np.ones((2, 2)), -3)


def test_an_operator_that_does_not_commute_keeps_the_order():
    def f(a):
        return tp.reduce(lambda p, q: (p[0] * q[0], p[1] * q[0] + q[1]), (1.0, 0.0), (a, a))

    agree(f, np.array([0.0, 1.0, 1.0, 1.0, 1.0]))


def test_an_array_is_reversed_in_place():
    def f(a):
        a[:] = a[::-1]
        return a[0]

    agree(f, np.array([7, 4, 3, -1]))


def test_fusion_keeps_tests_in_front_of_positions_that_rely_on_them():
    """`a[len(a) - 1]` needs no test behind that of `b[2]`, and must not come to stand before it."""

    def f(a, c):
        b = c * 4.0
        d = b[2] * a
        e = a[len(a) - 1] >= 2.0
        return b + c, d, e

    agree(f, np.arange(3.0), np.arange(3.0))
    agree(f, np.zeros(0), np.zeros(0))


def test_a_position_behind_a_test_that_always_fails():
    def f(a):
        a *= np.zeros((0, 3))
        return a[len(a) - 1, 0]

    agree(f, np.zeros((0, 3)))


def test_a_part_of_another_size_is_refused_before_it_is_written():
    """The right side is made in the memory of the target: not before its size is known to fit."""

    def f(a, b):
        a[-2::2] = b * 2.0
        return a[0]

    agree(f, np.ones(4), np.arange(1.0))
    agree(f, np.ones(4), np.arange(3.0))
    agree(f, np.ones(9), np.arange(9.0))


def test_a_carried_array_of_another_size_is_refused_before_it_is_written():
    def f(x, k):
        for i in range(2):
            x = np.ones(k) * (2.0 + i)
        return x

    agree(f, np.zeros(3), 3)
    with pytest.raises(tp.ShapeError):
        tp.function(f)(np.zeros(3), 7)
    found = dict(outcomes(f, lambda: [np.zeros(3), 7]))
    assert all(isinstance(outcome.error, tp.ShapeError) for stage, outcome in found.items() if stage != "python")


def test_keys_that_are_known_to_be_outside():
    def f(a):
        h = tp.hist(lambda p, q: p + q, 0.0, 3, np.full(3, 3), a)
        h[-1] = 1.0
        return h

    agree(f, np.ones(3))


def test_a_write_to_the_callers_array_is_not_lost_in_nested_loops():
    def f(a, n):
        for i in range(n):
            for j in range(n):
                a[0] += 1.0
                a = a * 2.0
        return a[0]

    with pytest.raises(tp.CompileError, match="it is not known which array"):
        tp.function(f)(np.arange(3.0), 2)


def test_a_second_name_of_an_array_that_goes_around_a_loop():
    def f(a, n):
        v = a
        for i in range(n):
            v = a + 1.0
            a += a
        return np.sum(v)

    agree(f, np.arange(3.0), 3)
    agree(f, np.arange(3.0), 0)


def test_an_array_that_a_loop_binds_first_and_returns():
    def f(a, n):
        for i in range(n):
            if a[0] > 2.0:
                return a * 2.0
            a[0] += 1.0
        return a + 1.0

    agree(f, np.arange(3.0), 5)
    agree(f, np.arange(3.0), 1)


def test_a_position_stays_behind_the_test_in_a_loop_around_it():
    def f(a, t, n):
        for i in range(n):
            for j in range(2):
                a[j] += 1.0
                for k in range(3):
                    a[k] = a[k] - t[i]
        return a[0]

    agree(f, np.zeros(4), np.zeros(3), 3)
    agree(f, np.zeros(4), np.zeros(3), 4)


@pytest.mark.parametrize("x", [0.5, 1.5, 2.5, 3.5])
def test_a_break_in_the_else_of_a_loop_over_a_tuple_leaves_the_loop_around_it(x):
    def f(x, n):
        s = n
        for i in (1, 2, 3):
            for j in (10, 20):
                s += i * j
                if x > 3.0 and j == 20:
                    break
                if x > 2.0 and i == 2:
                    return s
                if x > 1.0:
                    continue
            else:
                s += 1000
                if i == 2:
                    break
        return s

    agree(f, x, 1)


def test_imaginary_numbers_are_true():
    def f(a):
        a[0] += np.complex128(1j) or np.complex128(2.0)
        a[1] += 3.0 if 1j else 4.0
        if a[2] and not 0j:
            a[2] = np.complex128(0j) or np.complex128(2.0)
        return bool(a[3]), bool(1j)

    agree(f, np.array([0j, 0j, 2j, 3j]))


def test_a_position_outside_comes_before_a_size_that_does_not_fit():
    def f(m, v):
        m[:, -2] = v
        return len(m)

    agree(f, np.zeros((2, 2)), np.ones(2))
    agree(f, np.zeros((2, 0)), np.ones(3))
    agree(f, np.zeros((2, 2)), np.ones(3))


def test_functions_with_names_of_the_run_time():
    def parallel(a):
        return tp.map(lambda x: x * 2.0, a)

    def print_(a):
        print("a", a[0])
        return a[0]

    print_.__name__ = "print"
    agree(parallel, np.arange(1000.0))
    agree(print_, np.arange(3.0))


def test_an_array_read_whole_through_another_shape_is_not_written_over():
    def f(v, w, n):
        for i in range(n):
            v = np.min(v[None, :] + w, axis=1)
        return v.sum()

    agree(f, np.array([0.1, 0.5, -0.3]), np.array([[0.1, -0.4, 0.2], [-0.9, 0.3, 0.4], [0.2, 0.6, -0.8]]), 4)


def test_inner_loops_as_long_as_the_index_of_a_parallel_one():
    """How much work an element is cannot be asked in front of the loop."""

    def triangle(x):
        s = 0.0
        for i in tp.prange(len(x)):
            for j in range(i):
                s += x[i] * x[j]
        return s

    def maps(x):
        rows = tp.map(lambda i: tp.reduce(lambda a, b: a + b, 0.0, tp.map(lambda j: x[i] * x[j], i)), len(x))
        return np.sum(rows)

    def given(x, lengths):
        return tp.map(lambda n: np.sum(x[:n] * n), lengths)

    def counted(x, lengths):
        total = 0.0
        for i in tp.prange(len(lengths)):
            m = len(x) // 2
            for j in range(m):
                total += x[j] * lengths[i]
        return total

    x = np.linspace(0.1, 1.0, 6)
    agree(triangle, x)
    agree(maps, x)
    agree(given, x, np.array([0, 3, 6]))
    agree(counted, x, np.array([0, 3, 6]))
    for f in (triangle, maps):
        np.testing.assert_allclose(tp.grad(f)(x), np.sum(x) - x, rtol=1e-14)
