"""Lists as people use them for storage: of a length that is known when it runs, written at any place, in two dimensions."""

import functools
import math

import numpy as np
import pytest

import tapeless as tp
from tests.quick import unoptimized  # noqa: F401  (for all tests here)

X = np.array([3.0, 1.0, 2.0, 5.0, 4.0])
EDGES = np.array([[0, 1], [1, 2], [3, 4]])


def house_robber(x):
    best = [0.0] * (len(x) + 1)
    for i in range(1, len(x) + 1):
        best[i] = max(best[i - 1], x[i - 1] + (best[i - 2] if i > 1 else 0.0))
    return best[len(x)]


def edit_distance(a, b):
    d = [[0] * (len(b) + 1) for _ in range(len(a) + 1)]
    for i in range(len(a) + 1):
        d[i][0] = i
    for j in range(len(b) + 1):
        d[0][j] = j
    for i in range(1, len(a) + 1):
        for j in range(1, len(b) + 1):
            d[i][j] = min(d[i - 1][j] + 1, d[i][j - 1] + 1, d[i - 1][j - 1] + (a[i - 1] != b[j - 1]))
    return d[len(a)][len(b)]


def sieve(n):
    prime = [True] * (n + 1)
    for p in range(2, n + 1):
        if prime[p]:
            for m in range(p * p, n + 1, p):
                prime[m] = False
    return sum(1 for p in range(2, n + 1) if prime[p])


def groups(n, edges):
    parent, size = list(range(n)), [1] * n

    def find(a):
        while parent[a] != a:
            a = parent[a]
        return a

    for k in range(len(edges)):
        a, b = find(edges[k, 0]), find(edges[k, 1])
        if a != b:
            parent[b] = a
            size[a] += size[b]
    return size


def knapsack(weights, values, most):
    best = [0] * (most + 1)
    for i in range(len(weights)):
        for c in range(most, weights[i] - 1, -1):
            best[c] = max(best[c], best[c - weights[i]] + values[i])
    return best[most]


def shortest_ways(x):
    n = len(x)
    far, done = [math.inf] * n, [False] * n
    far[0] = 0.0
    for _ in range(n):
        u = -1
        for i in range(n):
            if not done[i] and (u == -1 or far[i] < far[u]):
                u = i
        done[u] = True
        for v in range(n):
            d = far[u] + abs(x[u] - x[v]) + 1.0
            if d < far[v]:
                far[v] = d
    return far


def determinant(a):
    n = len(a)
    m = [[a[i, j] for j in range(n)] for i in range(n)]
    product = 1.0
    for k in range(n):
        product *= m[k][k]
        for i in range(k + 1, n):
            f = m[i][k] / m[k][k]
            for j in range(k, n):
                m[i][j] -= f * m[k][j]
    return product


def breadth_first(x):
    queue, seen = [0] * len(x), [False] * len(x)
    head, tail, total = 0, 1, 0.0
    seen[0] = True
    while head < tail:
        u = queue[head]
        head += 1
        total += x[u]
        for v in (2 * u + 1, 2 * u + 2):
            if v < len(x) and not seen[v]:
                seen[v] = True
                queue[tail] = v
                tail += 1
    return total


def bubbles(x):
    items = list(x)
    for i in range(len(items)):
        for j in range(len(items) - 1 - i):
            if items[j] > items[j + 1]:
                items[j], items[j + 1] = items[j + 1], items[j]
    return items


def small_products(x):
    m = [[0.0] * 3 for _ in range(3)]
    for i in range(3):
        for j in range(3):
            m[i][j] = x[i] * x[j]
    n = [[0.0] * 3 for _ in range(3)]
    for i in range(3):
        for j in range(3):
            for k in range(3):
                n[i][j] += m[i][k] * m[k][j]
    return n


def board(n):
    cells = [[0] * 3 for _ in range(3)]
    for k in range(n):
        cells[k % 3][(k * 2) % 3] += 1
    code = 0
    for row in cells:
        for v in row:
            code = code * 10 + v
    return code


def two_rows(x):
    before = [0.0] * len(x)
    for k in range(3):
        now = [0.0] * len(x)
        for i in range(len(x)):
            now[i] = before[i] + float(x[i]) * k
        before = now
    return before


def histogram(x):
    counts = [0] * len(x)
    for v in x:
        counts[int(v) % len(x)] += 0.5
    return counts


def table_of_rows(x):
    table = [[0.0] * len(x) for _ in range(len(x))]
    for i, row in enumerate(table):
        for j in range(len(row)):
            row[j] = x[i] - x[j]
    return table


def put_together(x):
    first, *rest = x
    both = [*rest, first, *x] + [1.0]
    both.sort()
    both.reverse()
    return both, first in rest, 5.0 in x


def repeated(n):
    return [0] * n, [1, 2] * n, n * [0.5]


def folded(x):
    nearest = min(x, key=lambda v: abs(v - 2.2))
    return functools.reduce(lambda a, b: a * b + 1.0, x), nearest, max(x, key=lambda v: -v), x.tolist()


def pairs(x):
    found, total = list(zip(x, x * 2)), 0.0
    for a, b in found:
        total += a * b
    return total, found[1], len(list(enumerate(x)))


PROGRAMS = [
    (pairs, (X,)),
    (house_robber, (X,)),
    (edit_distance, (np.array([1, 2, 3, 4]), np.array([2, 3, 5]))),
    (sieve, (50,)),
    (groups, (7, EDGES)),
    (knapsack, (np.array([1, 3, 4]), np.array([1.5, 4.0, 5.0]), 7)),
    (knapsack, (np.array([1, 3, 4]), np.array([15, 40, 50]), 7)),
    (shortest_ways, (X,)),
    (determinant, (np.array([[4.0, 1, 2], [1, 5, 3], [2, 1, 6]]),)),
    (breadth_first, (X,)),
    (bubbles, (X,)),
    (small_products, (X,)),
    (board, (7,)),
    (two_rows, (X,)),
    (histogram, (X,)),
    (table_of_rows, (X,)),
    (put_together, (X,)),
    (repeated, (3,)),
    (repeated, (0,)),
    (repeated, (-2,)),
    (folded, (X,)),
]


@pytest.mark.parametrize("f, args", PROGRAMS, ids=[f.__name__ for f, _ in PROGRAMS])
def test_as_in_python(f, args):
    assert tp.function(f)(*args) == f(*args)


@pytest.mark.parametrize("f", [house_robber, breadth_first, lambda x: sum(shortest_ways(x)), lambda x: determinant(x)])
def test_slopes(f):
    x = np.array([[4.0, 1, 2], [1, 5, 3], [2, 1, 6]]) if "determinant" in f.__code__.co_names else X.copy()
    found, step = tp.grad(f)(x), 1e-6
    for k in np.ndindex(x.shape):
        up, down = x.copy(), x.copy()
        up[k] += step
        down[k] -= step
        assert found[k] == pytest.approx((f(up) - f(down)) / (2 * step), abs=1e-6)


def test_kinds_of_numbers():
    """Numbers of Python stay such; those of a list that gets NumPy's are NumPy's, as after a branch."""
    assert [type(v) for v in tp.function(lambda n: [0.5] * n)(2)] == [float, float]
    assert {type(v) for v in tp.function(bubbles)(X)} == {np.float64}
    assert {type(v) for v in tp.function(two_rows)(X)} == {float}
    narrow = tp.function(lambda n, x: ([0.5] * n)[0] * x)(2, X.astype(np.float32))
    assert narrow.dtype == np.float32


# -- lists of lists


def another_name_of_a_row(x):
    m = [[0.0] * len(x) for _ in range(len(x))]
    row = m[0]
    m[0][1] = 5.0
    row[2] = 6.0
    return row[1], m[0][2], m[1][1]


def row_of_a_function(x):
    def put(row, k, v):
        row[k] = v

    m = [[0.0] * len(x) for _ in range(2)]
    put(m[1], 1, 7.0)
    return m[0][1], m[1][1]


def copies_of_rows(x):
    m = [[0.0] * len(x) for _ in range(len(x))]
    n = [list(row) for row in m]
    n[0][0] = 1.0
    return m[0][0], n[0][0]


def appended_rows(x):
    m = []
    for _ in range(len(x)):
        m.append([0.0] * len(x))
    m[2][1] = 3.0
    return m[2][1], m[0][1], len(m), len(m[0])


def table_in_a_dict(i):
    m = [[1.0, 2.0], [3.0, 4.0]]
    places = {"m": m, "same": m}
    places["m"][i][1] = 5.0
    return m[1][1], places["same"][1][1]


def row_by_position(i):
    m = [[1, 2], [3, 4]]
    row = m[i]
    row[0] = 7
    return m


@pytest.mark.parametrize(
    "f, arg",
    [(another_name_of_a_row, X), (row_of_a_function, X), (copies_of_rows, X), (appended_rows, X), (table_in_a_dict, 1),
     (row_by_position, 1)],
)  # fmt: skip
def test_rows_are_referred_to(f, arg):
    assert tp.function(f)(arg) == f(arg)


def stack_of_lists(x):
    todo, total = [[len(x), 0]], 0
    for _ in range(50):
        if not todo:
            break
        p = todo.pop()
        if p[0] > 1:
            todo.append([p[0] // 2, p[1] + 1])
            todo.append([p[0] - 2, p[1] + 1])
        total += p[0] * p[1]
    return total


def test_what_was_taken_off_a_stack_stays():
    for n in (1, 5, 6):
        assert tp.function(stack_of_lists)(np.ones(n)) == stack_of_lists(np.ones(n))


def put_in_and_written(x):
    row, m = [0.0] * len(x), []
    for _ in range(len(x)):
        m.append(row)
    row[0] = 4.0
    return m[0][0]


def written_in_the_loop(x):
    row, m = [0.0] * len(x), []
    for v in x:
        row[0] = v
        m.append(row)
    return m[0][0]


def one_row_in_a_comprehension(x):
    row = [0.0] * len(x)
    m = [row for _ in range(len(x))]
    row[0] = 2.0
    return m[0][0]


def longer_since(x):
    m = [[k, 0, 1] for k in range(len(x))]
    row = m[0]
    m.append([5, 5, 5])
    row[1] = 77
    return m


def turned_around(x):
    m = [[k] * len(x) for k in range(len(x))]
    row = m[0]
    m.reverse()
    row[1] = 7
    return m


def sorted_under_a_name(x):
    m = [[k] * len(x) for k in range(len(x))]
    row = m[0]
    m.sort(key=lambda r: -r[0])
    return row[0]


def rows_in_order(x):
    m = [[-k, 0, 1] for k in range(len(x))]
    s = sorted(m, key=lambda r: r[0])
    m[0][1] = 9
    return s


def popped_under_a_name(x):
    m = [[float(k)] * len(x) for k in range(len(x))]
    row = m[-1]
    m.pop()
    m.append([7.0] * len(x))
    return row[0]


def row_that_gets_longer(x):
    m = [[k, 0, 1] for k in range(len(x))]
    m[0] += [1]
    return m


def in_a_function_that_is_applied(x):
    m = [[0.0] * len(x) for _ in range(len(x))]

    def put(i):
        m[i][0] = 1.0
        return x[i]

    tp.map(put, len(x))
    return m[1][0]


def one_row_everywhere(x):
    row, m = [0.0] * len(x), []
    for _ in range(len(x)):
        m.append(row)
    m[0][0] = 1.0
    return m[1][0]


def copy_then_write(x):
    m = [[0.0] * len(x) for _ in range(len(x))]
    n = m[:]
    n[0][0] = 1.0
    return m[0][0]


def write_then_copy(x):
    m = [[0.0] * len(x) for _ in range(len(x))]
    total = 0.0
    for _ in range(len(x)):
        m[0][0] += 1.0
        copy = list(m)
        total += copy[0][0]
    return total


def rows_of_another(x):
    m = [[0.0] * len(x) for _ in range(len(x))]
    n = [row for row in m]
    m[0][0] = 1.0
    return n[0][0]


def row_with_a_name(x):
    row = [1.0, 2.0]
    m = [row, [3.0, 4.0]]
    m[int(x[1]) - 1][0] = 9.0
    return row


def one_row_twice(x):
    row = [0.0, 0.0]
    m = [row, row]
    m[int(x[1]) - 1][0] = 9.0
    return m[1][0]


def integers_that_were_looked_at(x):
    m = [[0] * len(x) for _ in range(len(x))]
    row = m[0]
    m[0][0] = 1.5
    row[1] = 2
    return m[0][1]


@pytest.mark.parametrize(
    "f",
    [put_in_and_written, written_in_the_loop, one_row_in_a_comprehension, longer_since, turned_around, sorted_under_a_name,
     rows_in_order, popped_under_a_name, row_that_gets_longer, in_a_function_that_is_applied, one_row_everywhere, copy_then_write, write_then_copy, rows_of_another, row_with_a_name, one_row_twice,
     integers_that_were_looked_at],
)  # fmt: skip
def test_what_may_be_seen_elsewhere_is_refused(f):
    with pytest.raises(tp.CompileError, match="TP104|TP105|TP111"):
        tp.function(f)(X)


def test_places_that_are_not_there():
    def outside(x):
        m = [[0.0] * len(x) for _ in range(len(x))]
        m[9][0] = 2.0
        return m[0][0]

    with pytest.raises(IndexError, match="index 9 is out of bounds"):
        tp.function(outside)(X)
    with pytest.raises(TypeError, match="reduce"):
        tp.function(lambda x: functools.reduce(lambda a, b: a + b, x))(np.ones(0))
    with pytest.raises(ValueError, match="empty"):
        tp.function(lambda x: min(x, key=lambda v: -v))(np.ones(0))


def test_transforms_take_arrays():
    with pytest.raises(tp.CompileError, match=r"TP302.*\n(.*\n)*.*np.array"):
        tp.jvp(lambda x: [v * v for v in x], (X,), (X,))
