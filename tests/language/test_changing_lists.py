"""Lists and dicts that change: what every name that refers to one sees, after branches and in loops.

Plain Python is the judge; what cannot be known at compile time must be refused, never be wrong.
"""

import numpy as np
import pytest

import tapeless as tp
from tests.language.same import raises, same
from tests.quick import unoptimized  # noqa: F401  (for all tests here)

X = np.array([0.5, -1.5, 2.0, 3.25])


def refused(f, *args):
    """The reason why it cannot be compiled."""
    with pytest.raises(tp.CompileError) as caught:
        tp.function(f)(*args)
    assert caught.value.line
    return caught.value.reason


# -- references


def seen_through_another_name(x):
    a = [x]
    b = a
    a.append(2 * x)
    return sum(b), len(b), b is a, b is not a


def in_a_tuple(x):
    a = [x]
    t = (a, {"k": a})
    a.append(3.0)
    t[1]["k"].append(4.0)
    return t[0][2], len(a), sum(t[1]["k"])


def passed_to_a_function(x):
    def put(l, v):
        l.append(v)
        return l

    a = [x]
    b = put(a, 2 * x)
    b.append(5.0)
    return sum(a), b is a


def captured(x):
    found = []

    def note(v):
        found.append(v)
        return v

    y = note(x) + note(2 * x)
    return y, found[0] * found[1], len(found)


def default_of_a_function(x):
    def f(v, kept=[]):  # noqa: B006
        kept.append(v)
        return sum(kept)

    return f(x), f(2 * x), f(3 * x)


def lists_in_a_list(x):
    row = [x]
    rows = [row, [0.0], row]
    row[0] = 7 * x
    rows[1].append(1.0)
    rows[2].append(2.0)
    return rows[0][0], len(rows[0]), sum(rows[1])


def own_copies(x):
    a = [x, 1.0]
    b, c, d, e = a[:], list(a), a.copy(), a + []
    a[0] = 9.0
    return b[0], c[0], d[0], e[0], a[0]


def every_method(x):
    a = [x, 2.0]
    a.extend((3.0, 4.0))
    a += [5.0]
    a.insert(1, 6.0)
    p = a.pop()
    q = a.pop(0)
    del a[0]
    a[-1] = 8.0
    a[0:1] = [x, x]
    a.reverse()
    a *= 2
    n = [1, 2, 3, 2]
    n.remove(2)
    return a, p, q, n.index(3), n.count(2), len(a)


def every_method_of_dicts(x):
    d = {"a": x}
    e = d
    d["b"] = 2 * x
    d.update({"c": 1.0}, z=3.0)
    d.update([("y", 4.0)])
    d["a"] += 1.0
    d |= {"w": 5.0}
    first = e.setdefault("a", 0.0)
    other = e.setdefault("q", 0.5)
    gone = e.pop("b"), e.pop("none", -1.0)
    del d["c"]
    return e, first, other, gone, len(d), "q" in e, (d | {"a": 0.0})["a"], d["a"]


def operands_already_read(x):
    a = [x, 2.0, 3.0]
    b = a + [a.pop()]
    c = [a, a.append(7.0)]
    d = (len(a), a.append(1.0), len(a))
    return b, len(c[0]), d[0], d[2], a


def arrays_in_lists(x):
    u = np.zeros(3)
    a = [u, x]
    a[0][1] = 5.0
    a[0] += 1.0
    v = a.pop(0)
    v[0] = 9.0
    return u, a[0]


def unpacked(x):
    a = [x, 2 * x]
    a.append(3 * x)
    p, q, r = a
    return p + q * r, max(a), tuple(a), [*a, 1.0]


@pytest.mark.parametrize(
    "f",
    [
        seen_through_another_name,
        in_a_tuple,
        passed_to_a_function,
        captured,
        default_of_a_function,
        lists_in_a_list,
        own_copies,
        every_method,
        every_method_of_dicts,
        operands_already_read,
        unpacked,
    ],
)
def test_references(f):
    same(f, 1.5)


def test_arrays_in_lists():
    same(arrays_in_lists, X)


# -- branches


def changed_on_one_path(x):
    a = [x, 1.0]
    b = (a,)
    if x > 0:
        a[0] = 2 * x
    return a[0] + 10 * b[0][0]


def changed_on_both_paths(x):
    a = []
    if x > 0:
        a.append(x)
    else:
        a.append(-2 * x)
        a[0] += 1.0
    return a[0], len(a)


def one_path_raises(x):
    a = [x]
    if x < 0:
        a.append(1.0)
        raise ValueError("negative")
    a.append(2.0)
    return sum(a)


def early_return(x):
    a = [x]
    if x > 1:
        a.append(2.0)
        return sum(a)
    a.append(3.0)
    a.append(4.0)
    return sum(a)


@pytest.mark.parametrize("f", [changed_on_one_path, changed_on_both_paths, early_return])
@pytest.mark.parametrize("x", [1.5, -1.5])
def test_branches(f, x):
    same(f, x)


def test_a_path_that_raises():
    same(one_path_raises, 1.0)
    raises(ValueError, one_path_raises, -1.0)


# -- loops over what is known when they run


def items_of_one_length(x, n):
    a = [x, 1.0]
    b = a
    for i in range(n):
        a[0] = a[0] * 2
        b[1] += a[0] + i
    return a, b[0] + b[1]


def first_changed_in_the_loop(x, n):
    a = [0, 0]
    d = {"s": 0.0}
    k = 0
    while k < n:
        a[0] += k
        d["s"] += x
        k += 1
    return a[0], d["s"], a[1]


def bound_anew(x, n):
    a = [x]
    for _ in range(n):
        a = [a[0] * 2]
    return a[0]


def handed_around(x, n):
    a, b = [x], [2.0]
    for _ in range(n):
        a, b = b, a
    return a[0] - b[0]


def filled_by_a_function(x, n):
    found = [0.0, 0.0]

    def note(v):
        found[0] = found[0] + v
        found[1] = v

    for i in range(n):
        note(x * i)
    return found[0], found[1]


@pytest.mark.parametrize("n", [0, 1, 5])
@pytest.mark.parametrize(
    "f", [items_of_one_length, first_changed_in_the_loop, bound_anew, handed_around, filled_by_a_function]
)
def test_loops(f, n):
    same(f, 1.5, n)


def over_its_items(x):
    a = [x, 2.0, 3.0]
    for k, v in enumerate(a):
        a[k] = v * 2
    d = {"p": x, "q": 1.0}
    total = 0.0
    for name, v in d.items():
        d[name] = v + 1
        total += v
    return a, d, total


def unrolled(x):
    a = []
    for k in range(4):
        if k % 2:
            continue
        for v in (x, 1.0):
            a.append(v * k)
    p, q, r, s = a
    return a, p + q + r + s


def unrolled_and_left(x):
    a = []
    for k in range(3):
        a.append(x * k)
        if k == 1:
            break
    return a


def test_loops_over_what_is_known():
    same(over_its_items, 1.5)
    same(unrolled, 1.5)
    same(unrolled_and_left, 1.5)


# -- lists that grow


def one_each(x, n):
    out = []
    for i in range(n):
        out.append(x * i)
    return np.array(out), len(out), sum(out), np.sum(out), np.mean(np.asarray(out))


def seen_while_it_grows(x, n):
    out = [x]
    other = out
    for i in range(n):
        out.append(0.5 * other[-1] + out[i] + len(other))
    return np.array(other), other[0], out[-1], max(out), min(other)


def some_of_them(a):
    out = []
    for q in a:
        if q > 0:
            out.append(q * 2)
            if q > 2.5:
                out.append(-q)
    return np.array(out), len(out), sum(out)


def two_each(a):
    out = []
    for q in a:
        out.append(q)
        out += [2 * q]
    total = 0.0
    for v in out:
        total += v * v
    return np.array(out), total, np.array([v + k for k, v in enumerate(out)])


def until(a):
    out = []
    for q in a:
        if q > 2.5:
            break
        out.append(q)
    return np.array(out), len(out)


def rows(a):
    out = []
    for q in a:
        out.append(np.array([q, 2 * q]))
    return np.array(out), np.stack(out), np.concatenate(out), np.vstack(out)


def pairs(a):
    out = []
    for i in range(len(a)):
        out.append((a[i], 2 * a[i]))
    p, q = out[1]
    return np.array(out), p - q


def counted(n):
    out = []
    for i in range(n):
        out.append(i * i)
    return np.array(out), sum(out), out[1], out[n - 1]


def in_two_loops(x, n):
    out = []
    for i in range(n):
        out.append(x)
    for i in range(n):
        out.append(x * i)
    out.append(7.0)
    return np.array(out), len(out)


def stack(a):
    left = [0.0]
    for q in a:
        left.append(q)
        if q < 0:
            left.pop()
    return left.pop(), np.array(left)


def copied_and_changed(x, n):
    out = []
    for i in range(n):
        out.append(x + i)
    other = list(out)
    out[1] = -1.0
    other[0] += 5.0
    return np.array(out), np.array(other)


def by_a_function(x, n):
    out = []

    def note(v):
        out.append(v)

    for i in range(n):
        note(x * i)
        note(1.0)
    return np.array(out), len(out)


@pytest.mark.parametrize("n", [2, 3, 70])
@pytest.mark.parametrize("f", [one_each, seen_while_it_grows, in_two_loops, copied_and_changed, by_a_function])
def test_growing(f, n):
    same(f, 1.5, n)


def test_an_empty_list():
    same(by_a_function, 1.5, 0)
    same(until, np.array([3.0, 1.0]))


@pytest.mark.parametrize("f", [some_of_them, two_each, until, rows, pairs, stack])
def test_growing_over_arrays(f):
    same(f, X)


def test_growing_by_integers():
    same(counted, 4)


@pytest.mark.parametrize("f", [one_each, seen_while_it_grows, by_a_function])
def test_derivatives_of_growing(f):
    tp.check_grads(lambda x: np.sum(f(x, 4)[0] ** 2), (1.5,))


@pytest.mark.thorough
@pytest.mark.parametrize("f", [some_of_them, two_each, rows, pairs])
def test_derivatives_of_growing_over_arrays(f):
    tp.check_grads(lambda a: np.sum(f(a)[0] ** 2), (X,))


def squares_in_parallel(a):
    out = []
    for i in tp.prange(len(a)):
        out.append(a[i] ** 2)
    return np.array(out)


def test_growing_in_parallel():
    same(squares_in_parallel, X)


# -- what is refused

OUTSIDE = [1.0, 2.0]


def change_of_an_argument(l):
    l.append(1.0)
    return sum(l)


def change_of_an_argument_in_place(l):
    l += [1.0]
    return sum(l)


def change_of_a_global(x):
    OUTSIDE.append(x)
    return x


def change_of_one_of_two(x):
    a, b = [x], [2.0]
    c = a if x > 0 else b
    c.append(1.0)
    return sum(a)


def read_after_one_of_two_changed(x):
    a, b = [x], [2.0]
    c = a if x > 0 else b
    a[0] = 5.0
    return c[0]


def changes_what_comes(x):
    a = [x, 1.0, 2.0]
    s = 0.0
    for k, v in enumerate(a):
        if k < 2:
            a[k + 1] = 7.0
        s += v
    return s


def holds_itself(x):
    a = [x]
    a.append(a)
    return x


def in_a_mapped_function(a):
    found = []

    def f(q):
        found.append(q)
        return q

    return tp.map(f, a)


def the_same_array_again(n):
    u = np.zeros(2)
    out = []
    for i in range(n):
        u += i
        out.append(u)
    return np.array(out)


def the_array_of_before(n):
    u = np.zeros(2)
    out = [u]
    for i in range(n):
        u += i
        out.append(u)
    return np.array(out)


def the_array_of_the_iteration_before(n):
    u = np.zeros(2)
    out = [np.ones(2)]
    for i in range(n):
        u[0] = i
        u = u * 2
        out.append(u)
    return np.array(out)


def written_after_the_loop(n):
    u = np.zeros(2)
    out = []
    for i in range(n):
        out.append(u)
    u[0] = 1.0
    return np.array(out)


def view_of_keys(x):
    d = {"a": x}
    keys = d.keys()
    d["b"] = 1.0
    return len(keys)


def position_at_run_time(x, n):
    a = [x, (1.0, 2.0)]
    a[n] = 2.0
    return a[0]


@pytest.mark.parametrize(
    "f, args, reason",
    [
        (change_of_an_argument, ([1.0],), "did not make"),
        (change_of_an_argument_in_place, ([1.0],), "did not make"),
        (change_of_a_global, (1.0,), "did not make"),
        (change_of_one_of_two, (1.0,), "not known at compile time which list"),
        (read_after_one_of_two_changed, (1.0,), "changed since"),
        (changes_what_comes, (1.0,), "meanwhile"),
        (holds_itself, (1.0,), "itself"),
        (in_a_mapped_function, (X,), "surroundings"),
        (the_same_array_again, (3,), "put into a list"),
        (the_array_of_before, (3,), "put into a list"),
        (the_array_of_the_iteration_before, (3,), "put into a list"),
        (written_after_the_loop, (3,), "put into a list"),
        (view_of_keys, (1.0,), "changed since"),
        (position_at_run_time, (1.0, 0), "position in a list"),
    ],
)
def test_refused(f, args, reason):
    assert reason in refused(f, *args)


# -- large functions, which are compiled once


def large(l, x):
    for _ in range(2):
        l[0] = np.sin(l[0]) + np.cos(x) * np.exp(-x) + np.log(x * x + 1) + np.tanh(x) * np.sqrt(x + 1)
    l[1] = l[0] * 2
    return l


def called_again(x):
    a, b = [x, 0.0], [2 * x, 0.0]
    c = large(a, x)
    d = large(b, x)
    e = large(c, x)
    a[1] += 1.0
    return a, b, c, d, e, e is a


def test_large_functions(monkeypatch):
    from tapeless.ir import calls

    monkeypatch.setattr(calls, "SMALL", 1)
    same(called_again, 0.5)


# -- lists in lists, of lengths that are known when it runs


def table_of(a):
    out = []
    for q in a:
        row = []
        for p in a:
            row.append(p - q)
        out.append(row)
    return np.array(out), np.array([[p * q for p in a] for q in a])


def table_of_numbers(n, m):
    return np.array([[i * 10.0 + j for j in range(m)] for i in range(n)])


def made_of_arrays(a):
    l = list(a)
    l[0] = 5.0
    return np.array(l), len(list(range(len(a)))), sum(list(range(2 * len(a)))), a + [q for q in a]


@pytest.mark.thorough
def test_lists_in_lists():
    same(table_of, X)
    same(table_of_numbers, 3, 4)
    same(table_of_numbers, 4, 1)
    same(made_of_arrays, X)
    tp.check_grads(lambda a: np.sum(table_of(a)[1] ** 2), (X,))
