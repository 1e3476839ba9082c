"""`for` over range, arrays, zip, enumerate and tuples; `while`; what is bound after a loop."""

from __future__ import annotations

import numpy as np
import pytest

import tapeless as tp
from tests.language.same import raises, same, same_values


def total(n):
    s = 0
    for i in range(n):
        s += i * i
    return s


def ranges(a, b, k):
    s, last = 0, -99
    for i in range(a, b):
        s = s * 3 + i
        last = i
    for i in range(a, b, 2):
        s = s * 3 + i
        last = i
    for i in range(b, a, -3):
        s = s * 3 + i
        last = i
    for i in range(a, b, k):
        s += i
        last = i
    return s, last


def test_ranges():
    for n in (0, 1, 7, -3):
        same(total, n)
    for a, b, k in ((0, 5, 2), (2, 9, 3), (5, 0, -2), (3, 3, 1), (-4, 4, 5)):
        same(ranges, a, b, k)
    raises(ValueError, ranges, 0, 3, 0)


def loop_variable(n):
    i = -1
    for i in range(n):
        pass
    return i


def loop_variable_rebound(n):
    s = 0
    for i in range(n):
        i = i * 2
        s += i
    return s, i


def loop_variable_unbound(n):
    for i in range(n):
        pass
    return i


def test_the_loop_variable_after_the_loop():
    same(loop_variable, 4)
    assert same(loop_variable, 0) == -1
    same(loop_variable_rebound, 4)
    raises(UnboundLocalError, loop_variable_rebound, 0)
    same(loop_variable_unbound, 3)
    raises(UnboundLocalError, loop_variable_unbound, 0)


def first_bound_inside(x):
    for v in x:
        y = v * 2
        pair = (v, y)
    return y, pair


def bound_sometimes(x):
    for v in x:
        if v > 1:
            big = v
    return big


def test_names_first_bound_in_a_loop():
    same(first_bound_inside, np.arange(3.0))
    raises(UnboundLocalError, first_bound_inside, np.zeros(0))
    same(bound_sometimes, np.array([0.0, 2.0, 5.0, 1.0]))
    raises(UnboundLocalError, bound_sometimes, np.array([0.0, 1.0]))


def array_bound_inside(x, n):
    for i in range(n):
        y = x * i
    return y


def test_an_array_first_bound_in_a_loop():
    same(array_bound_inside, np.arange(3.0), 3)
    raises(UnboundLocalError, array_bound_inside, np.arange(3.0), 0)


def over_array(x):
    s = 0.0
    for v in x:
        s = s * 0.5 + v
    return s


def over_rows(m):
    s = 0.0
    for row in m:
        for v in row:
            s += v
        s *= 2
        row[0] = s
    return s


def over_slices(x):
    s = 0.0
    for v in x[::-1]:
        s = s / 2 + v
    for v in x[1:-1]:
        s -= v
    return s


def test_over_arrays():
    same(over_array, np.arange(5.0))
    same(over_array, np.arange(5, dtype=np.int32))
    same(over_array, np.arange(5, dtype=np.float32))
    same_values(over_array, np.zeros(0))
    same(over_rows, np.arange(6.0).reshape(2, 3))
    same(over_slices, np.arange(5.0))


def zipped(x, y):
    s = 0.0
    for a, b in zip(x, y):
        s += a * b
    for i, (a, b) in enumerate(zip(x, y)):
        s += i * (a - b)
    for i, a in enumerate(x, 5):
        s += i * a
    for a, i in zip(x, range(100)):
        s += a * i
    return s


def test_zip_and_enumerate():
    same(zipped, np.arange(4.0), np.arange(4.0) * 2)
    same(zipped, np.arange(4.0), np.arange(6.0))  # the shortest decides
    same_values(zipped, np.zeros(0), np.arange(6.0))


def over_tuples(a, b):
    s = 0.0
    for v in (a, b, 3):
        s = s * 2 + v
    for k, v in enumerate((a, b)):
        s += k * v
    for u, v in ((a, b), (b, a)):
        s += u - 2 * v
    for u, v in zip((a, b), [1, 2]):
        s += u * v
    return s


def over_mixed_tuple(x, n):
    s = 0.0
    for v in (x, x[1:], x * 2):
        s += v.sum() * len(v)
    for name in ("a", "b"):
        if name == "a":
            s += n
    return s


def over_empty_tuple(x):
    for v in ():
        x += v
    return x


def over_dict(d):
    s = 0.0
    for k in d:
        s += d[k]
    for k, v in d.items():
        if k == "b":
            s += 10 * v
    for v in d.values():
        s *= v
    return s


def test_over_tuples_and_dicts():
    same(over_tuples, 1.5, 2)
    same(over_mixed_tuple, np.arange(4.0), 3)
    same(over_empty_tuple, 1.0)
    same(over_dict, {"a": 1.5, "b": 2.0})


def countdown(n):
    k = 0
    while n > 0:
        n -= 3
        k += 1
    return n, k


def newton(x):
    y = x
    while abs(y * y - x) > 1e-12 * x:
        y = 0.5 * (y + x / y)
    return y


def while_with_array(x, limit):
    k = 0
    while x.sum() < limit:
        x *= 1.5
        x[k % len(x)] += 1
        k += 1
    return k


def while_lazy(x, limit):
    i = 0
    while i < len(x) and x[i] < limit:
        i += 1
    return i


def test_while():
    for n in (10, 0, -5):
        same(countdown, n)
    same(newton, 2.0)
    same(while_with_array, np.ones(3), 100.0)
    same(while_with_array, np.ones(3), 0.0)
    same(while_lazy, np.arange(5.0), 3.0)
    same(while_lazy, np.arange(5.0), 30.0)


def widened(n):
    s = 0
    for i in range(n):
        s = s + 0.5
    return s


def widened_twice(x, n):
    a = b = 0
    for i in range(n):
        b = a
        a = x
    return a + 0.0, b + 0.0


def test_types_settle():
    same(widened, 3)
    assert tp.function(widened)(0) == 0  # as a float: one type for the name in the loop
    same(widened_twice, 2.5, 3)


def numpy_accumulator(x):
    s = 0.0
    for v in x:
        s += v
    return s


def test_an_accumulator_takes_the_kind_of_what_is_added():
    same(numpy_accumulator, np.arange(4.0))
    same(numpy_accumulator, np.arange(4.0, dtype=np.float32))


def carried_tuple(n):
    state = (0, 1)
    for _ in range(n):
        a, b = state
        state = (b, a + b)
    return state


def carried_list(x):
    best = [0.0, 0]
    for i, v in enumerate(x):
        if v > best[0]:
            best = [v * 1.0, i]
    return best[0], best[1]


def fibonacci(n):
    a, b = 0, 1
    for _ in range(n):
        a, b = b, a + b
    return a


def test_carried_tuples():
    same(carried_tuple, 10)
    same(carried_tuple, 0)
    same(carried_list, np.array([1.0, 4.0, 2.0]))
    same(fibonacci, 50)


def carried_array(x, n):
    y = x.copy()
    for i in range(n):
        y = y * 0.5 + x
    return y


def swapped_arrays(x, n):
    a = x.copy()
    b = np.zeros(len(x))
    for i in range(n):
        for j in range(1, len(x) - 1):
            b[j] = (a[j - 1] + a[j + 1]) / 2
        a, b = b, a
    return a, b


def new_each_time(x, n):
    out = np.zeros((n, len(x)))
    for i in range(n):
        t = np.zeros(len(x))
        for j in range(len(x)):
            t[j] = x[j] * i
        out[i] = t
    return out


def test_arrays_go_around():
    x = np.arange(5.0) ** 2
    for n in (0, 1, 4, 5):
        same(carried_array, x, n)
        same(swapped_arrays, x, n)
        same(new_each_time, x, n)


def nested(m):
    n, k = m.shape
    for i in range(n):
        for j in range(i, k):
            for l in range(j):
                m[i, j] += m[i, l] * 0.5
    return m


def triangular(n):
    s = 0
    for i in range(n):
        for j in range(i):
            s += j
            for k in range(j, i):
                s ^= k
    return s


def test_nested_loops():
    same(nested, np.arange(12.0).reshape(3, 4))
    same(triangular, 9)
    same(triangular, 0)


def changes_its_bound(n):
    s = 0
    for i in range(n):
        n = n - 1
        s += n
    return s, n


def changes_the_array(x):
    s = 0.0
    for v in x:
        x = x * 2
        s += v + x[0]
    return s


def writes_ahead(x):
    s = 0.0
    for i, v in enumerate(x):
        if i + 1 < len(x):
            x[i + 1] += v
        s += v
    return s


def test_the_iterable_is_evaluated_once():
    same(changes_its_bound, 6)
    same(changes_the_array, np.arange(1.0, 4.0))
    same(writes_ahead, np.arange(1.0, 5.0))


def condition_depends_on_index(x):
    out = np.zeros(len(x))
    for i in range(len(x)):
        if i == 0:
            out[i] = x[i]
        elif i % 2 == 0:
            out[i] = out[i - 1] + x[i]
        else:
            out[i] = out[i - 1] * 2
    return out


def test_recurrences():
    same(condition_depends_on_index, np.arange(1.0, 8.0))


def comprehension(x):
    parts = [x[k] * k for k in range(3)]
    a, b, c = [v + 1 for v in parts]
    return parts, sum([v * 2 for v in (a, b, c)])


def test_comprehensions_of_known_length():
    same(comprehension, np.arange(4.0))


def hinted(n):
    s = 0.0
    for i in tp.loop(range(n), recover="checkpoint:3"):
        s += i
    return s


def test_a_loop_with_a_recovery_runs_as_any_other():
    same(hinted, 5)


def new_rank(x, n):
    y = x
    for i in range(n):
        y = y[None]
    return y


def new_dtype(x, n):
    while n > 0:
        x = x * 0.5
        n -= 1
    return x


@pytest.mark.parametrize("f", [new_rank])
def test_loops_that_change_a_rank_are_refused(f):
    with pytest.raises(tp.CompileError):
        tp.function(f)(np.arange(3.0), 2)


def test_loops_that_change_a_type_are_refused():
    with pytest.raises(tp.CompileError):
        tp.function(new_dtype)(np.arange(3), 2)
