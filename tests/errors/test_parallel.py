"""Parallel loops and operators: every kind of dependence, early exits, writes from inside."""

import numpy as np

import tapeless as tp
from tapeless.errors import CallError
from tests.errors.rejected import Program, Rejected, message

rejected = Rejected()


@rejected(np.ones(5))
def reads_the_previous_element(a):
    for i in tp.prange(1, len(a)):
        a[i] = a[i - 1] + 1.0
    return a


@rejected(np.ones(5))
def reads_the_next_element(a):
    for i in tp.prange(len(a) - 1):
        a[i] = a[i + 1]
    return a


@rejected(np.ones(5))
def all_write_one_element(a):
    for i in tp.prange(len(a)):
        a[0] = i
    return a


@rejected(np.ones(5), np.zeros(5, np.int64))
def writes_at_computed_positions(a, k):
    for i in tp.prange(len(a)):
        a[k[i]] = i
    return a


@rejected(np.ones(5))
def carries_a_number(a):
    x = 1.0
    for i in tp.prange(len(a)):
        x = x * 0.5 + a[i]
        a[i] = x
    return a


@rejected(np.ones(5))
def reads_its_own_sum(a):
    s = 0.0
    for i in tp.prange(len(a)):
        s += a[i]
        a[i] = s
    return a


@rejected(np.ones(5))
def sum_is_subtracted_from(a):
    s = 0.0
    for i in tp.prange(len(a)):
        s = a[i] - s
    return s


@rejected(np.ones(5))
def largest_with_the_element_first(a):
    m = 0.0
    for i in tp.prange(len(a)):
        m = max(a[i], m)
    return m


@rejected(np.ones(5))
def sum_that_is_bounded(a):
    s = 0.0
    for i in tp.prange(len(a)):
        s = min(s + a[i], 3.0)
    return s


@rejected(np.zeros(4), np.zeros(5, np.int64))
def reads_the_histogram(h, k):
    for i in tp.prange(len(k)):
        h[k[i]] += 1.0
        h[0] = h[1]
    return h


@rejected(np.ones(5))
def break_from_prange(a):
    for i in tp.prange(len(a)):
        if a[i] < 0:
            break
        a[i] = 1.0
    return a


@rejected(np.ones(5))
def return_from_prange(a):
    for i in tp.prange(len(a)):
        if a[i] < 0:
            return i
    return -1


@rejected(np.ones(5))
def map_writes_outside(a):
    def f(i):
        a[i] = 1.0
        return a[i]

    return tp.map(f, 5)


@rejected(np.ones((5, 2)))
def map_writes_its_row(a):
    def f(row):
        row[0] = 1.0
        return row[0]

    return tp.map(f, a)


@rejected(np.ones(5))
def map_without_input(a):
    return tp.map(lambda x: x)


@rejected(1.0)
def map_over_a_float(x):
    return tp.map(lambda i: i, x)


@rejected(np.ones(5), np.ones(6), error=tp.ShapeError)
def map_over_different_lengths(a, b):
    return tp.map(lambda x, y: x + y, a, b)


@rejected(np.ones(5))
def map_returns_a_text(a):
    return tp.map(lambda x: "x", a)


@rejected(np.ones(5), error=CallError)
def map_of_a_wrong_number_of_parameters(a):
    return tp.map(lambda x, y: x, a)


@rejected(np.ones(5))
def reduce_with_too_many_neutral_elements(a):
    return tp.reduce(lambda x, y: x + y, (0.0, 0.0), a)


@rejected(np.ones(5))
def operator_returns_a_tuple(a):
    return tp.reduce(lambda x, y: (x, y), 0.0, a)


@rejected(np.ones(5))
def hist_with_float_keys(a):
    return tp.hist(lambda x, y: x + y, 0.0, 3, a, a)


@rejected(np.ones(5), np.zeros(5, np.int64))
def scatter_of_two_into_one(a, k):
    return tp.scatter(a, k, (a, a))


@rejected(np.ones(5))
def unknown_option_of_scan(a):
    return tp.scan(lambda x, y: x + y, 0.0, a, backwards=True)


@rejected(np.ones(5), True)
def option_not_constant(a, flag):
    return tp.scan(lambda x, y: x + y, 0.0, a, reverse=flag)


@rejected(np.ones((5, 2)))
def wrong_number_of_in_axes(a):
    return tp.vmap(lambda x: x, in_axes=(0, 0))(a)


@rejected(np.ones((5, 2)), error=tp.CompileError)
def vmap_axis_out_of_bounds(a):
    return tp.vmap(lambda x: x, in_axes=3)(a)


@rejected(np.ones(3))
def progress_of_an_array(x):
    s = 0.0
    for e in tp.progress(x):
        s += e
    return s


@rejected(np.ones(3))
def progress_of_prange(x):
    for i in tp.progress(tp.prange(len(x))):
        x[i] = 0.0


@rejected(3, error=CallError)
def progress_of_nothing(n):
    for i in tp.progress():
        n += i
    return n


@rejected.all
def test_message(program: Program, golden) -> None:
    golden(message(program), str(program))
