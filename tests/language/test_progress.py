"""Loops over tp.progress: plain Python, the interpreter and native code agree, whatever the range and what is around it."""

import math

import numpy as np
import pytest

import tapeless as tp
from tests.language.same import raises, same


def steps(x, start, stop, step):
    for i in tp.progress(range(start, stop, step)):
        x = x * 0.5 + i
    return x


@pytest.mark.parametrize("bounds", [(0, 5, 1), (0, 0, 1), (3, -9, 1), (2, 30, 7), (9, -4, -3), (-5, 5, 2)])
def test_ranges(bounds):
    same(steps, 0.5, *bounds)


def short_iterations(x, n):
    for i in tp.progress(range(n)):
        x = x * 0.999 + i
    return x


@pytest.mark.parametrize("n", [-5, -(2**63), 0, 1, 4095, 4096, 4097, 10000])
def test_strips(n):
    same(short_iterations, 0.5, n)


def test_cells():
    def fill(y):
        for i in tp.progress(range(len(y))):
            y[i] = y[i] * 2.0 + i

    same(fill, np.arange(9000.0))


def test_enumerate_zip_and_reversed():
    def f(x):
        total = 0.0
        for k, i in enumerate(tp.progress(range(1, len(x)))):
            total += k * x[i]
        for e, i in zip(x, tp.progress(range(len(x)))):
            total += e * i
        for i in reversed(tp.progress(range(len(x)))):
            total = total * 0.5 + x[i]
        return total

    same(f, np.arange(5.0))


def test_exits():
    def f(x, n):
        for i in tp.progress(range(n)):
            x = x * 1.5
            if x > 20.0:
                break
            if i > 40:
                return -x
        else:
            x = -1.0
        return x

    for n in (0, 3, 50):
        same(f, 0.5, n)
    same(f, 1e-9, 50)


def test_the_last_index_and_the_length():
    def f(n):
        i = -1
        r = tp.progress(range(n))
        for i in r:
            pass
        return i, len(r)

    same(f, 4)


def test_errors_inside():
    def f(x, n):
        total = 0.0
        for i in tp.progress(range(n)):
            total += x[i]
        return total

    raises(IndexError, f, np.ones(3), 5)


def test_a_constant_number_of_iterations():
    def f(x):
        for i in tp.progress(range(3)):
            x = math.sin(x) + i
        return x

    same(f, 0.3)


def test_plain_python_shows_nothing_in_a_pipe(capfd):
    shown = tp.progress(range(2, 8, 2))
    assert list(shown) == list(shown) == [2, 4, 6]
    assert list(reversed(shown)) == [6, 4, 2]
    assert len(shown) == 3
    assert capfd.readouterr().err == ""


@pytest.mark.parametrize("wrong", [np.ones(3), [1, 2], 3])
def test_plain_python_refuses_other_iterables(wrong):
    with pytest.raises(TypeError, match="tp.progress takes a range, not"):
        tp.progress(wrong)


def test_code_for_a_gpu_does_not_have_it():
    def f(x, n):
        for i in tp.progress(range(n)):
            x = x * 0.5 + i
        return x

    assert ".entry" in tp.function(f).ir(np.ones(3), 4, stage="ptx")
