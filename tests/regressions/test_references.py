"""Names that share arrays, through loops and branches: each program gave another result than plain Python once, or crashed.

What cannot be followed is refused with TP105, never compiled as if the arrays were different ones.
"""

import numpy as np
import pytest

import tapeless as tp
from tapeless.testing.compare import compare
from tapeless.testing.stages import outcomes


def agree(function, *args):
    def arguments():
        return [a.copy() if isinstance(a, np.ndarray) else a for a in args]

    found = outcomes(function, arguments)
    _, python = next(found)
    for stage, outcome in found:
        assert compare(python, outcome) == "", stage


def refused(function, *args, code="TP105"):
    with pytest.raises(tp.CompileError) as caught:
        tp.function(function)(*args)
    assert caught.value.code == code


# -- arrays that names have in the next iteration


def test_two_names_get_one_array_at_the_end_of_an_iteration():
    def f(a, n):
        p, q = a * 1.0, a * 2.0
        s = a[0]
        for i in range(n):
            q[0] += 1.0
            s += p[0]
            p = q
            q = p
        return s

    refused(f, np.arange(3.0), 3)


def test_both_elements_of_a_tuple_get_one_array():
    def f(a, n):
        t = (a * 1.0, a * 2.0)
        s = a[0]
        for i in range(n):
            t[0][0] += 1.0
            s += t[1][0]
            t = (t[1], t[1])
        return s

    refused(f, np.arange(3.0), 3)


def test_both_elements_of_a_tuple_are_one_array_before_the_loop():
    def f(a, n):
        b = a * 2.0
        t = (b, b)
        b = a * 3.0
        s = a[0]
        for i in range(n):
            t[0][0] += 1.0
            s += t[1][0]
            t = (t[0], t[1])
        return s

    refused(f, np.arange(3.0), 3)


def test_an_array_that_is_written_before_a_name_gets_it():
    def f(a, n):
        c = a * 2.0
        p = a * 1.0
        for i in range(n):
            c[0] += 1.0
            p = c
        return p, c

    agree(f, np.arange(3.0), 3)
    agree(f, np.arange(3.0), 0)


def test_arrays_handed_around_stay_different():
    def f(a, n):
        u, v, w = a * 1.0, a * 2.0, a * 3.0
        for i in range(n):
            u, v, w = v, w, u
            u[0] += v[1]
        return u, v, w

    agree(f, np.arange(3.0), 4)
