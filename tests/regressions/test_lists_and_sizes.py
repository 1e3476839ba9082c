"""Programs with lists and with arrays of changing sizes that gave wrong results, or none, when strangers wrote them."""

from collections import deque

import numpy as np
import pytest

import tapeless as tp
from tests.language.same import same_values
from tests.quick import unoptimized  # noqa: F401  (for all tests here)

X = np.array([1.0, -3.0, 0.5, 2.0, 1.7, 3.0])


def of_two_sizes(a):
    c = np.zeros(2)
    if a[0] > 0:
        c = np.zeros(3)
    else:
        c[0] += 1
    return c


def filtered_or_written(x):
    y = x * 1.0
    if len(x) > 5:
        y = y[y > 0]
    else:
        y[0] = 0.0
    return y


def taken_from_the_front(n):
    q = [1, 2, 3]
    s = 0
    for i in range(n):
        s = s * 10 + q.pop(0)
    return s


def window(n):
    q = deque()
    for i in range(n):
        q.append(i)
        if len(q) > 3:
            q.popleft()
    return q[0]


def taken_in_two_loops(n):
    st = deque([1, 2, 3, 4, 5])
    s = 0
    for i in range(2):
        for j in range(n):
            if st:
                s = s * 10 + st.popleft()
    return s


def list_of_a_deque(n):
    q = deque(range(n))
    while len(q) > 1:
        q.popleft()
    return list(q)


def lists_of_a_deque(n):
    q = deque(range(n))
    while len(q) > 2:
        q.popleft()
    a = list(q)
    a.sort()
    b = list(q)
    b.pop()
    return a, b, sum(list(q)), int(np.sum(np.array(q)))


def longer_or_written(n):
    a = [0] * n
    if n > 2:
        a.append(4)
    else:
        a[0] = 7
    return a


def written_or_longer(n):
    a = list(range(n))
    b = a
    if n > 2:
        a[0] = 7
    else:
        a.insert(0, 5)
    return a, b


def longer_or_written_floats(x):
    a = list(x)
    if x[0] > 0.5:
        a.append(x[1] * x[2])
    else:
        a[0] = x[1] * 3
    return sum(a)


def appended_to_nothing(n):
    a = list(range(n))
    a.append(7)
    return a


def emptied(n):
    a = [i for i in range(n)]
    while a:
        a.pop()
    return len(a)


def appended_in_branches(n):
    a = []
    for d in (1, 5):
        if n + d > 3:
            a.append(n + d)
    return a


def typed_array_of_nothing(n):
    return np.array([i for i in range(n)], dtype=int)


def prime_factors(n):
    f = []
    d = 2
    while d * d <= n:
        while n % d == 0:
            f.append(d)
            n //= d
        d += 1
    if n > 1:
        f.append(n)
    return f


def there_and_back(n):
    a = list(range(n))
    b = []
    while a:
        b.append(a.pop())
    while b:
        a.append(b.pop())
    return a


def neighbours(n):
    def nb(v, n):
        out = []
        if v > 0:
            out.append(v - 1)
        if v < n - 1:
            out.append(v + 1)
        return out

    seen = [False] * n
    order = [0]
    seen[0] = True
    for v in order:
        for u in nb(v, n):
            if not seen[u]:
                seen[u] = True
                order.append(u)
    return order


def counting_sort(n):
    out = []
    counts = [0] * 10
    for k in range(n):
        counts[(k * 7 + 3) % 10] += 1
    for d in range(10):
        for _ in range(counts[d]):
            out.append(d)
    return out


def unpacked(n):
    st = [n]
    t = 0
    while st:
        *st, top = st
        t += top
        if top > 1:
            st.append(top // 2)
    return t


def replaced_in_a_deque(n):
    q = deque([n])
    q.popleft()
    q.appendleft(9)
    return q[0]


def three_conditions(x):
    st = []
    k = len(x)
    out = []
    for v in x:
        while k > 0 and st and st[-1] > v:
            st.pop()
            k -= 1
        st.append(v)
    return st


def sizes_of_each_other(x, n):
    a = x * 1.0
    b = x * 0.5
    for j in range(n):
        a = x[:n] * 1.0
        b = np.append(b[:2], 1.0)
    return a[:50], b


def size_of_the_other(x, n):
    a = x * 1.0
    c = np.zeros(0)
    for k in range(n):
        c = np.zeros(len(a) + 1)
        a = a[: len(a) // 2] * 1.0
    return a, c


def two_that_shrink(x, n):
    y = x
    for k in range(n):
        y = y[y > 0.1 * k]
        x = x[: len(y)]
    return y, x


def from_the_front(x, n):
    y = x
    s = 0.0
    while len(y) > 0:
        s += y[0]
        y = y[1:]
    return s


def halved(x, n):
    y = x
    while len(y) > 1:
        y = y[: len(y) // 2]
    return y


def one_less(x, n):
    y = x
    for k in range(n):
        y = y[: len(y) - 1]
    return y


def part_of_an_argument(x, n):
    y = x
    for k in range(n):
        y = x[: n - k]
    return y


def returned_when_long(x, n):
    y = x
    for k in range(50):
        if len(y) > n + 8:
            return y
        y = np.append(y, k)
    return y


def returned_part(x, n):
    for k in range(n):
        y = x[k:]
        if y[0] > 1.5:
            return y
    return x[:1]


def grown_on_two_sides(x, n):
    H = np.zeros((0, 0))
    for k in range(n):
        G = np.eye(len(H) + 1)
        G[:-1, :-1] += H
        H = G
    return H


def polyint(x, n):
    p = x
    for k in range(n):
        p = np.polyint(p)
    return p


def typed_array_of_nothing_appended_to(x, n):
    y = np.array([], dtype=np.int64)
    for k in range(n):
        y = np.append(y, k)
    return y


def written_or_appended(x, n):
    y = x
    for k in range(n):
        y = y * 0.9
        if k % 2 == 0:
            y[0] += 1
        else:
            y = np.append(y, k)
    return y


def parts_of_a_part(x):
    y = x
    for _ in range(3):
        y = y[: int(len(y) * 0.7)]
    z = x
    for k in range(4):
        z = np.append(z, np.zeros(2**k))
    w = x[2:]
    for _ in range(2):
        w = w[: max(1, int(w[0]))]
    return y, z, w


P, Q, R, S = [1.0], [2.0, 3.0], [7.0], [8.0, 9.0]


def lists_of_the_surroundings(c):
    if c:
        a, b = P, R
    else:
        a, b = Q, S
    return sum(a) + 10 * sum(b), len(a), len(b)


def of_two_kinds_in_no_iteration(x):
    n, ys = 0, [1]
    for _ in range(len(x)):
        for _ in range(n):
            ys.append(len(ys))
            ys.append(x[1])
    return sum(ys)


def of_two_kinds_in_branches(x):
    n, xs = 0, [1, 2]
    for i in range(len(x)):
        for j in range(n):
            if x[0] < x[i]:
                xs.append(i)
            else:
                xs.append(x[j])
    return sum(xs)


PROGRAMS = [
    (parts_of_a_part, (X,)), (parts_of_a_part, (X[1:],)),
    (lists_of_the_surroundings, (True,)), (lists_of_the_surroundings, (False,)),
    (of_two_sizes, (np.ones(3),)), (of_two_sizes, (-np.ones(3),)), (filtered_or_written, (X,)), (filtered_or_written, (X[:4],)),
    (taken_from_the_front, (3,)), (window, (5,)), (window, (3,)), (taken_in_two_loops, (5,)), (taken_in_two_loops, (2,)),
    (list_of_a_deque, (5,)), (lists_of_a_deque, (5,)), (longer_or_written, (3,)), (longer_or_written, (2,)), (written_or_longer, (2,)),
    (written_or_longer, (4,)), (longer_or_written_floats, (X[:3],)), (appended_to_nothing, (0,)), (emptied, (0,)), (emptied, (4,)),
    (appended_in_branches, (0,)), (typed_array_of_nothing, (0,)), (prime_factors, (97,)), (prime_factors, (60,)), (there_and_back, (5,)),
    (neighbours, (7,)), (counting_sort, (3,)), (unpacked, (9,)), (replaced_in_a_deque, (3,)), (three_conditions, (X,)),
    *((f, (X, 4)) for f in (sizes_of_each_other, size_of_the_other, two_that_shrink, from_the_front, halved, one_less, part_of_an_argument,
                           returned_when_long, returned_part, grown_on_two_sides, polyint, typed_array_of_nothing_appended_to,
                           written_or_appended)),
]  # fmt: skip


@pytest.mark.parametrize("f, args", PROGRAMS)
def test_as_in_python(f, args):
    same_values(f, *args)


def test_an_array_taken_apart_from_the_front_is_not_moved():
    assert tp.function(from_the_front)(np.ones(100_000), 1) == 100_000.0


@pytest.mark.parametrize("f", [of_two_kinds_in_no_iteration, of_two_kinds_in_branches])
def test_a_list_that_a_loop_makes_anew_in_each_attempt_is_not_kept(f):
    assert tp.function(f)(X) == f(X)  # numbers of one kind: a float, where Python has an int
