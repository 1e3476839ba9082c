"""Lists that get longer in `while` loops and in loops inside of loops: counted first, then filled."""

from __future__ import annotations

import math

import numpy as np
import pytest

import tapeless as tp
from tests.language.same import raises, same, same_values
from tests.quick import unoptimized  # noqa: F401  (for all tests here)


def halves(x):
    found = []
    while x > 0.1:
        x *= 0.5
        found.append(x)
    return np.array(found), len(found)


def triangle(x, n):
    found = []
    for i in range(n):
        for j in range(i):
            found.append(x * i + j)
    return np.array(found)


def some_of_them(x, n):
    found = [1.0]
    for i in range(n):
        j = 0
        while j < i and x > 0:
            if (i + j) % 2 == 0:
                found.append(x * j)
            j += 1
    return sum(found), len(found)


def two_lists(x):
    rows, numbers = [], []
    y = np.array([x, 1.0])
    while np.sum(y * y) > 0.5:
        y = y * 0.7
        rows.append(y)
        if y[0] > 0.3:
            numbers.append(y[0])
    return np.sum(np.array(rows) ** 2), len(numbers), sum(numbers)


def primes(n):
    found, k = [], 2
    while len(found) < n:
        is_one, j = True, 2
        while j * j <= k:
            if k % j == 0:
                is_one = False
            j += 1
        if is_one:
            found.append(k)
        k += 1
    return np.array(found)


def until_it_settles(x):
    found = []
    while True:
        x = math.cos(x)
        found.append(x)
        if abs(x - math.cos(x)) < 1e-3:
            break
    return found[-1], len(found)


def writes(a):
    found, i = [], 0
    while i < len(a):
        a[i] = a[i] * 2
        found.append(a[i])
        i += 1
    return sum(found) + a[0]


def decay(x, step):
    t, times, values = 0.0, [], []
    while t < 1.0:
        x = x - step * x
        t += step
        times.append(t)
        values.append(x)
    return np.trapezoid(np.array(values), np.array(times))


def beyond(a, n):
    found, i = [], 0
    while i < n:
        found.append(a[i])
        i += 1
    return sum(found)


def in_a_function(x, n):
    def fill(them, k):
        while k > 0:
            them.append(x * k)
            k -= 1

    found = []
    for i in range(n):
        fill(found, i)
    return np.array(found)


@pytest.mark.parametrize("x", [1.0, 0.05])
def test_numbers(x):
    same(halves, x)
    same_values(two_lists, x)
    same(until_it_settles, x)
    same(decay, x, 0.1)


@pytest.mark.parametrize("n", [0, 1, 5])
def test_loops_in_loops(n):
    same_values(some_of_them, 1.5, n)
    same(triangle, 1.5, n)
    same(in_a_function, 1.5, n)
    if n:
        same(primes, n)


def test_what_the_loop_writes_is_written_once():
    same(writes, np.arange(4.0))


def test_errors_stay():
    raises(IndexError, beyond, np.arange(4.0), 5)
    same_values(beyond, np.arange(4.0), 4)


def test_prints_once(capfd):
    def shown(x):
        found = []
        while x > 0.3:
            print("at", x)
            x *= 0.5
            found.append(x)
        return sum(found)

    tp.function(shown)(1.0)
    assert capfd.readouterr().out.split() == ["at", "1.0", "at", "0.5"]


@pytest.mark.parametrize(
    "f, args", [(two_lists, (1.0,)), (decay, (1.0, 0.1)), (until_it_settles, (0.5,)), (some_of_them, (1.5, 5))]
)
@pytest.mark.parametrize("memory", [None, "1MB"])
def test_slopes(f, args, memory):
    g, step = (lambda *a: f(*a)) if f is decay else (lambda *a: f(*a)[0]), 1e-6
    slope = (g(args[0] + step, *args[1:]) - g(args[0] - step, *args[1:])) / (2 * step)
    np.testing.assert_allclose(tp.grad(g, memory=memory)(*args), slope, rtol=1e-6)


def side_by_side(x):
    found = []
    for i in tp.prange(len(x)):
        for j in range(i):
            found.append(x[i] * j)
    return np.array(found)


def test_refused():
    with pytest.raises(tp.CompileError):
        tp.function(side_by_side)(np.ones(3))
