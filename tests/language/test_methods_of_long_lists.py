"""Methods and functions of lists whose length or items are known when they run."""

from collections import deque

import numpy as np
import pytest

import tapeless as tp
from tests.language.same import raises, same_values
from tests.quick import unoptimized  # noqa: F401  (for all tests here)

X = np.array([5.0, 3.0, 8.0, 1.0, 3.0, -2.0, 5.0, 0.5])
LONG = np.random.default_rng(6).integers(-9, 9, 150).astype(float)


def recently_used(x, n):
    cache, hits = [], 0
    for k in range(n):
        v = int(x[k % len(x)] * 7) % 5
        if v in cache:
            hits += cache.index(v)
            cache.remove(v)
        elif len(cache) >= 3:
            del cache[0]
        cache.append(v)
        if k % 7 == 6:
            cache.clear()
    return hits, cache, cache.count(2)


def the_last_three(n, m):
    last, s = [], 0
    for k in range(n):
        if k == m:
            last.pop(1)
        elif len(last) >= 3:
            last.pop(0)
        last.append(k)
        s = s * 10 + last.index(k)
    return last, s


def without_one(n, m):
    last, s = [], 0
    for k in range(n):
        if k == m:
            last.remove(m - 2)
        elif len(last) >= 3:
            del last[0]
        last.append(k)
        s = s * 10 + last[0]
    return last, s


def extended(x, n):
    some, numbers = [], []
    for k in range(n):
        repeated = [x[k]] * (k % 3)
        some.extend(repeated)
        numbers.extend(range(k % 4))
        numbers += [j * k for j in range(len(some) % 3)]
    return some, numbers


def one_or_another(x, n):
    either, both_ends, mixed, left = [], deque(), [], []
    for k in range(n):
        if x[k] > 0:
            either.append(x[k])
        else:
            either.append(-2.0 * x[k])
        if k % 2:
            both_ends.append(k)
        else:
            both_ends.appendleft(k)
        if k % 3:
            mixed.append(k / 2)
        else:
            mixed.append(0.0)
        left.append(k)
        left.append(2 * k)
        left.pop()
    return either, list(both_ends), mixed, left, len(left)


def in_threes(x):
    sums, now = [], []
    for v in x:
        now.append(v)
        if len(now) == 3:
            sums.append(sum(now))
            now.clear()
    return sums, now


def from_the_middle(x):
    found = [v for v in x if v > 0]
    while len(found) > 1:
        del found[len(found) // 2]
    return found


def every_second(n):
    circle, out = deque(range(n)), []
    while len(circle) > 1:
        circle.rotate(-2)
        out.append(circle.popleft())
    return circle[0], out


def known_item_by_item(x, n):
    values = [x[0], x[1], x[2]]
    values.remove(x[1])
    numbers = [1, 2, 3, 2]
    at, times = numbers.index(n), numbers.count(n)
    del numbers[n]
    turned = deque([1, 2, 3])
    turned.rotate(1)
    return values, numbers, at, times, turned[0], numbers[n - 1 :], [4, 5, 6][:n]


def by_tuples(x):
    order = sorted(range(len(x)), key=lambda i: (x[i], -i))
    pairs = []
    for i in order:
        pairs.append((x[i], i))
    again = sorted(pairs, reverse=True)
    pairs.sort(key=lambda pair: (pair[1] % 3, pair[0]))
    return order, pairs, again, [i for i in reversed(order)]


@pytest.mark.parametrize(
    "f, args",
    [
        (recently_used, (X, 40)),
        (recently_used, (X, 35)),
        (the_last_three, (7, 4)),
        (the_last_three, (3, 9)),
        (without_one, (8, 5)),
        (extended, (X, 8)),
        (extended, (LONG, 150)),
        (extended, (X, 0)),
        (one_or_another, (X, 8)),
        (one_or_another, (X, 0)),
        (one_or_another, (LONG, 150)),
        (in_threes, (X,)),
        (in_threes, (LONG,)),
        (from_the_middle, (X,)),
        (every_second, (100,)),
        (known_item_by_item, (X, 2)),
        (by_tuples, (X,)),
        (by_tuples, (LONG,)),
    ],
)
def test_as_in_python(f, args):
    same_values(f, *args)


def missing(x, v):
    found = [u for u in x if u > 0]
    found.remove(v)
    return found


def without_place(x, v):
    return [u for u in x if u > 0].index(v)


def deleted(x, k):
    found = [u for u in x if u > 0]
    del found[k]
    return found


@pytest.mark.parametrize(
    "f, args, error",
    [(missing, (X, 7.0), ValueError), (without_place, (X, -2.0), ValueError), (deleted, (X, 7), IndexError)],
)
def test_errors(f, args, error):
    raises(error, f, *args)


def test_derivatives():
    def total(x):
        order = sorted(range(len(x)), key=lambda i: (int(x[i]), x[i]))
        left = [x[i] for i in order if x[i] > 0]
        del left[1]
        return sum(v * v * k for k, v in enumerate(left))

    tp.check_grads(total, (X + 0.01 * np.arange(8),))
