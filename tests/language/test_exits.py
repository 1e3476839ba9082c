"""Leaving blocks: `break`, `continue`, `return` at any depth, and the `else` of loops."""

from __future__ import annotations

import numpy as np

from tests.language.same import raises, same, same_values


def find(x, v):
    for i in range(len(x)):
        if x[i] == v:
            return i
    return -1


def find_row(m, v):
    for i in range(m.shape[0]):
        for j in range(m.shape[1]):
            if m[i, j] == v:
                return i, j
    return -1, -1


def find_deep(m, v):
    n = 0
    for row in m:
        k = 0
        while k < len(row):
            n += 1
            if row[k] < 0:
                break
            for p in (1, 2, 3):
                if row[k] * p == v:
                    return n, k, p
            k += 1
        else:
            n += 100
    return n, -1, -1


def test_return_from_loops():
    x = np.array([3.0, 1.0, 4.0, 1.0])
    for v in (3.0, 1.0, 4.0, 9.0):
        same(find, x, v)
    m = np.arange(6.0).reshape(2, 3)
    for v in (0.0, 4.0, 9.0):
        same(find_row, m, v)
        same(find_deep, m, v)
        same(find_deep, -m, v)


def skip(x):
    s = 0.0
    for v in x:
        if v < 0:
            continue
        if v > 10:
            break
        s += v
    return s


def skip_in_while(n):
    s = k = 0
    while k < n:
        k += 1
        if k % 3 == 0:
            continue
        if s > 50:
            break
        s += k
    return s, k


def last_before_break(x):
    seen = 0
    for i, v in enumerate(x):
        seen += 1
        if v > 2:
            break
    return i, v, seen


def test_break_and_continue():
    same(skip, np.array([1.0, -5.0, 2.0, 11.0, 3.0]))
    same_values(skip, np.array([-1.0]))
    same_values(skip, np.zeros(0))
    for n in (0, 5, 40):
        same(skip_in_while, n)
    same(last_before_break, np.arange(6.0))
    same(last_before_break, np.arange(2.0))
    raises(UnboundLocalError, last_before_break, np.zeros(0))


def for_else(x, v):
    for i in range(len(x)):
        if x[i] == v:
            r = i
            break
    else:
        r = -1
    return r


def for_else_without_exit(n):
    s = 0
    for i in range(n):
        s += i
    else:
        s += 100
    return s


def while_else(n, stop):
    k = 0
    while k < n:
        if k == stop:
            break
        k += 1
    else:
        k += 1000
    return k


def break_from_an_else(m):
    n = 0
    for row in m:
        for v in row:
            if v < 0:
                break
            n += 1
        else:
            n += 100
            break
        n += 10
    return n


def always_an_answer(x):
    for v in x:
        if v > 2:
            return v
    else:
        return -1.0


def is_prime(n):
    if n < 2:
        return False
    d = 2
    while d * d <= n:
        if n % d == 0:
            return False
        d += 1
    else:
        return True
    return False


def for_else_over_tuple(x):
    for v in (1.0, 2.0, 3.0):
        if v == x:
            r = v * 10
            break
    else:
        r = 0.0
    return r


def else_that_leaves(m):
    for row in m:
        for v in row:
            if v < 0:
                break
        else:
            return row[0]
    return -1.0


def test_else_of_loops():
    x = np.array([3.0, 1.0, 4.0])
    for v in (3.0, 4.0, 7.0):
        same(for_else, x, v)
    same(for_else, np.zeros(0), 1.0)
    for n in (0, 4):
        same(for_else_without_exit, n)
    for stop in (0, 2, 9):
        same(while_else, 5, stop)
    for n in (1, 2, 9, 13):
        same(is_prime, n)
    for v in (1.0, 3.0, 4.0):
        same(for_else_over_tuple, v)
    same(else_that_leaves, np.array([[1.0, -1.0], [2.0, 3.0]]))
    same(break_from_an_else, np.array([[1.0, -1.0], [2.0, 3.0], [1.0, 1.0]]))
    same(always_an_answer, np.arange(5.0))
    same_values(always_an_answer, np.zeros(2))
    same_values(else_that_leaves, np.array([[1.0, -1.0], [2.0, -3.0]]))


def early(x):
    if x < 0:
        return 0.0
    y = x * 2
    if y > 10:
        y = 10.0
        if x > 100:
            return -1.0
    elif y > 5:
        return y
    return y + 1


def early_without_value(x, n):
    if n == 0:
        return
    x[0] = 1.0
    for i in range(n):
        if i == 2:
            return
        x[i] += 5


def test_early_return():
    for x in (-1.0, 1.0, 3.0, 20.0, 200.0):
        same(early, x)
    for n in (0, 1, 3):
        same(early_without_value, np.zeros(3), n)


def writes_before_leaving(x, v):
    for i in range(len(x)):
        x[i] += 1
        if x[i] > v:
            x[0] = -1
            return x[i]
        x[i] *= 2
    return 0.0


def breaks_outer(m, v):
    count = 0
    for i in range(m.shape[0]):
        found = False
        for j in range(m.shape[1]):
            if m[i, j] == v:
                found = True
                break
            count += 1
        if found:
            break
        count += 10
    return count, i, found


def continue_outer(m):
    out = np.zeros(m.shape[0])
    for i in range(m.shape[0]):
        if m[i, 0] < 0:
            continue
        for j in range(m.shape[1]):
            if m[i, j] == 3:
                continue
            if m[i, j] > 4:
                break
            out[i] += m[i, j]
    return out


def test_exits_and_writes():
    for v in (1.5, 2.5, 10.0):
        same_values(writes_before_leaving, np.arange(4.0), v)
    m = np.arange(6.0).reshape(2, 3)
    for v in (0.0, 1.0, 4.0, 8.0):
        same(breaks_outer, m, v)
    same(continue_outer, m)
    same(continue_outer, np.array([[-1.0, 2.0], [1.0, 3.0]]))


def return_arrays(x, n):
    for i in range(n):
        y = x * i
        if y.sum() > 10:
            return y
    return x + 1


def return_tuple(x):
    for i, v in enumerate(x):
        if v > 1:
            return i, v
        elif v < -1:
            return -i, 0.0
    return 99, 1.0


def raise_in_loop(x):
    for v in x:
        if v < 0:
            raise ValueError("negative")
        if v > 10:
            break
    return v


def test_what_is_returned():
    for n in (0, 2, 6):
        same(return_arrays, np.arange(3.0), n)
    same(return_tuple, np.array([0.0, 2.0]))
    same_values(return_tuple, np.array([0.0, -2.0]))
    same_values(return_tuple, np.array([0.0]))
    same(raise_in_loop, np.array([1.0, 11.0, -1.0]))
    raises(ValueError, raise_in_loop, np.array([1.0, -1.0]))


def collatz(n):
    steps = 0
    while True:
        if n == 1:
            return steps
        if n % 2 == 0:
            n //= 2
        else:
            n = 3 * n + 1
        steps += 1


def while_true_break(x):
    i = 0
    while True:
        if i >= len(x):
            break
        x[i] = i
        i += 1
    return i


def test_while_true():
    for n in (1, 7, 27):
        same(collatz, n)
    same(while_true_break, np.zeros(4))
    same(while_true_break, np.zeros(0))


def helper(x, limit):
    for v in x:
        if v > limit:
            return v
    return limit


def exits_in_inlined_functions(x):
    s = 0.0
    for k in range(3):
        v = helper(x, k * 1.0)
        if v == 2.0:
            continue
        s += v
    return s + helper(x, 100.0)


def test_a_return_leaves_only_its_function():
    same_values(exits_in_inlined_functions, np.arange(4.0))


def one_pass(n):
    for i in range(n):
        break
    return i


def after_break_unreachable(n):
    s = 0
    for i in range(n):
        s += i
        continue
        s += 100
    return s


def test_loops_that_always_leave():
    same(one_pass, 3)
    raises(UnboundLocalError, one_pass, 0)
    same(after_break_unreachable, 4)


def bisect(x, v):
    lo, hi = 0, len(x)
    while lo < hi:
        mid = (lo + hi) // 2
        if x[mid] == v:
            return mid
        if x[mid] < v:
            lo = mid + 1
        else:
            hi = mid
    return -lo - 1


def test_bisect():
    x = np.array([1.0, 3.0, 5.0, 9.0])
    for v in (1.0, 2.0, 9.0, 10.0):
        same(bisect, x, v)
    same(bisect, np.zeros(0), 1.0)
