"""Lists of numbers that are written where the position is known when it runs, and lists of a constant length that loops make."""

from __future__ import annotations

import math

import numpy as np
import pytest

import tapeless as tp
from tests.language.same import raises, same
from tests.quick import unoptimized  # noqa: F401  (for all tests here)

# -- positions


def put(x, i):
    s = [x, 2.0, 3.0]
    s[i] = 5.0 * x
    return s


def put_in_an_arm(x, i, c):
    s = [x, 2.0, 3.0]
    if c > 0:
        s[i] = x * 2
    else:
        s[0] = 4.0
    return s[0] + s[2] * 10 + s[1] * 100


def put_through_another_name(x, i):
    s = [x, 2.0, 3.0]
    t = s
    t[i] = 7.0
    return s


def copies_stay(x, i):
    s = [x, 2.0, 3.0]
    t, u, v = list(s), s[:], s.copy()
    t[i] = 7.0
    u[i] += 1.0
    v[i] *= 2.0
    return s, t, u, v


def exchange(x, i, j):
    s = [x, 2.0, 3.0, 4.0]
    s[i], s[j] = s[j], s[i]
    return s


@pytest.mark.parametrize("i", [0, 2, -1, -3])
def test_one_position(i):
    same(put, 1.5, i)
    same(put_through_another_name, 1.5, i)
    same(copies_stay, 1.5, i)
    same(exchange, 1.5, i, 1)
    same(put_in_an_arm, 1.5, i, 1.0)
    same(put_in_an_arm, 1.5, i, -1.0)


@pytest.mark.parametrize("i", [3, -4])
def test_no_position(i):
    raises(IndexError, put, 1.5, i)


def counted(n):
    c = [0, 0, 0]
    for i in range(n):
        c[i * i % 3] += 1
    return c


def until(x, n):
    s = [3.0, 1.0, 2.0]
    for i in range(n):
        if s[i % 3] > x:
            break
        s[i % 3] = x * 2
    return s


def grows_too(x, n):
    s = [x, 2.0, 1.0]
    for i in range(n):
        s[i % 3] = s[i % 3] + i
        s.append(x)
    return sum(s) + len(s)


def by_a_function(x, n):
    s = [0.0, 0.0, 0.0, 0.0]

    def at(k, v):
        s[k] = v

    for i in range(n):
        for j in range(2):
            at((i + j) % 4, x * i + j)
    return s


def sorted_by_insertion(x):
    s = [x, 3.0, 1.0, 2.0, -x, 0.5, 9.0, 4.0, x * x, 6.0, -3.0]
    for i in range(1, len(s)):
        key = s[i]
        j = i - 1
        while j >= 0 and s[j] > key:
            s[j + 1] = s[j]
            j -= 1
        s[j + 1] = key
    return s


@pytest.mark.parametrize("n", [0, 1, 7])
def test_positions_in_loops(n):
    same(counted, n)
    same(until, 1.5, n)
    same(until, 9.0, n)
    same(grows_too, 1.5, n)
    same(by_a_function, 1.5, n)


def test_a_sort():
    same(sorted_by_insertion, 1.5)


def american(price, n=30):
    values = [max(price * 1.1 ** (n - 2 * j) - 1.0, 0.0) for j in range(n + 1)]
    for i in range(n - 1, -1, -1):
        for j in range(i + 1):
            values[j] = max(0.5 * values[j] + 0.5 * values[j + 1], price * 1.1 ** (i - 2 * j) - 1.0)
    return values[0]


def test_a_tree_of_prices():
    same(american, 1.2)
    step = 1e-6
    slope = (american(1.2 + step) - american(1.2 - step)) / (2 * step)
    np.testing.assert_allclose(tp.grad(american)(1.2), slope, rtol=1e-7)


# -- constant lengths


def numbers(x):
    found = []
    for i in range(65):
        found.append(x * i)
    return found


def rows(x):
    found = []
    for i in range(65):
        found.append(x * np.arange(3.0) + i)
    return found


def parts(x):
    found = []
    for i in range(70):
        found.append(x * i)
    a, b = found[3:5]
    first, *others = found
    found.reverse()
    return a * b + first + len(others), found[0], found[-3:]


def parts_when_it_runs(x, n):
    p = []
    for i in range(n):
        p.append(x + i)
    q, r = p[::-1], p[1:-1]
    return q[0] + r[0] + len(r) + sum(q[2:])


def two_of(x, n):
    p = []
    for i in range(n):
        p.append(x + i)
    a, b = p
    return a - b


def test_lists_of_constant_length():
    same(numbers, 1.5)
    same(rows, 1.5)
    same(parts, 1.5)


def two_above(a):
    p, q = [v for v in a if v > 1.0]
    return p * q


def test_parts_of_lists():
    same(two_above, np.array([0.5, 1.5, 2.5]))
    raises(ValueError, two_above, np.ones(3))
    same(lambda x: sum([x * k for k in range(1_000)]), 0.5)
    same(parts_when_it_runs, 1.5, 7)
    same(two_of, 1.5, 2)
    raises(ValueError, two_of, 1.5, 3)


def autocorrelation(x):
    return np.sum(np.array([np.dot(x[:-k], x[k:]) for k in range(1, 100)]))


def trajectory(s):
    def rate(y):
        return np.array([s * (y[1] - y[0]), y[0] * (28 - y[2]) - y[1], y[0] * y[1] - 8 / 3 * y[2]])

    h, y = s * 0.001, np.array([1.0, 1.0, 1.0])
    ys = [y]
    for _ in range(64):
        k1 = rate(y)
        k2 = rate(y + h / 2 * k1)
        y = y + h * k2
        ys.append(y)
    return np.sum(np.array(ys) ** 2)


def settled(x):
    found, z = [], x
    for _ in range(40):
        z = (
            0.3 * math.sin(z)
            + math.cos(z) * 0.2
            + math.exp(-z * z) * 0.1
            + z * 0.1
            - math.tanh(z * 0.1)
            + math.log(2 + z * z)
        )
        found.append(z)
    first, *others = found
    found[3] = 7.0
    return first + sum(others) + found[3] + max(found)


def kinds(x):
    names, sizes = [], []
    for i in range(30):
        sizes.append(i)
        names.append(("a", "b", "c")[i % 3])
        x = x + math.sin(x) * 0.1 + math.cos(x) * 0.2 + math.exp(-x * x) * 0.1 + math.tanh(x) * 0.1 + math.atan(x)
    return x if names[4] == "b" else np.sum(np.ones(sizes[3]))


def statements(f, *args):
    return len(f.compiled(*args).traced.core.body.stms)


@pytest.mark.thorough
def test_large_bodies_are_compiled_once():
    same(trajectory, 0.5)
    same(settled, 0.3)
    same(autocorrelation, np.linspace(0.1, 1.0, 120))
    assert statements(tp.function(trajectory), 0.5) < 300


def test_what_must_be_known_is():
    same(kinds, 0.5)


# -- sorted by a key


def ranks(x):
    return np.array(sorted(range(len(x)), key=lambda i: x[i]))


def ranks_backwards(x):
    return np.array(sorted(range(len(x)), key=lambda i: x[i], reverse=True))


def by_size(x):
    return np.array(sorted(x, key=abs)), sorted([v * v for v in x], key=lambda v: -v)[0]


def rows_by_last(x):
    return np.array(sorted(x.reshape(-1, 2), key=lambda r: r[1]))


def weighted(x):
    total = 0.0
    for place, i in enumerate(sorted(range(len(x)), key=lambda i: -x[i])):
        total += place * x[i]
    return total


@pytest.mark.parametrize("n", [2, 8])
def test_sorted_by_a_key(n):
    x = np.round(np.random.default_rng(n).normal(size=n), 1)
    x[n // 2 :] = x[: n // 2]  # equal ones stay in order
    for f in (ranks, ranks_backwards, by_size, rows_by_last):
        same(f, x)


def test_slopes_of_what_is_sorted():
    np.testing.assert_array_equal(tp.grad(weighted)(np.array([0.5, 2.0, 1.0])), [2.0, 0.0, 1.0])


def test_nan_has_no_place():
    with pytest.raises(ValueError, match="no place in an order"):
        tp.function(by_size)(np.array([1.0, math.nan]))


# -- what is in a list keeps its type, and is one with what was put in


def popped(x):
    s = [x * k for k in range(9)]
    for i in range(3):
        s[(i * 2) % 9] = x
    first = s.pop(0)
    return first, s.pop(-2), len(s), s[0]


def row_in_rows(x):
    row = [x, x]
    rows = []
    for _ in range(3):
        rows.append(row)
    row[0] = 5.0
    return rows[1][0]


def row_in_counted_rows(x, n):
    row = [x, x]
    rows = []
    for _ in range(n):
        rows.append(row)
    row[0] = 5.0
    return rows[1][0]


def row_that_changes_on_its_way(x, n):
    row = [x, x]
    rows = []
    for k in range(n):
        row[0] = x * k
        rows.append(row)
    return rows[0][0]


def counted_range(a):
    return np.array([k * 1.0 for k in range(int(a[0]))])


def range_that_changes(x):
    t = [80, 70, 90]
    found = [x * k for k in range(t.pop())]
    return len(found), t


def put_elsewhere(x, i, v):
    s = [x * k for k in range(12)]
    s[i] = v
    return s[i]


def test_lists_stay_lists():
    same(popped, 1.5)
    same(row_in_rows, 0.7)
    same(counted_range, np.array([3.0]))
    same(range_that_changes, 0.5)


@pytest.mark.parametrize("f", [row_in_counted_rows, row_that_changes_on_its_way])
def test_rows_that_change_later_are_refused(f):
    with pytest.raises(tp.CompileError, match="has been put into a list that gets longer"):
        tp.function(f)(0.7, 3)


def same_object(n):
    rows = []
    for k in range(n):
        row = np.zeros(2) + k
        rows.append(row)
    return 1.0 if rows[-1] is row else 0.0


def test_identity_is_not_known():
    with pytest.raises(tp.CompileError, match="does not know which array"):
        tp.function(same_object)(3)


@pytest.mark.parametrize("v", [1j, True, np.float32(0.1)])
def test_numbers_of_another_type_are_refused(v):
    with pytest.raises(tp.CompileError, match="by numbers of their type"):
        tp.function(put_elsewhere)(0.7, 3, v)
