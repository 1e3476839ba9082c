"""Lists that get longer in loops that look at them: stacks, queues, iterates; deques; tuples of several types as items."""

from __future__ import annotations

import collections
from collections import deque

import numpy as np
import pytest

import tapeless as tp
from tests.language.same import raises, same, same_values
from tests.quick import unoptimized  # noqa: F401  (for all tests here)

rng = np.random.default_rng(3)


def random_graph(n, most):
    degree = rng.integers(0, most, n)
    start = np.concatenate([[0], np.cumsum(degree)])
    return start, rng.integers(0, n, start[-1]), rng.normal(size=start[-1])


SMALL = np.array([0, 2, 4, 5, 5]), np.array([1, 2, 2, 3, 3]), np.arange(1.0, 6.0)
LARGE = random_graph(300, 6)  # more items than there is room for at first
POINTS = np.stack([np.linspace(0.0, 3.0, 40), rng.normal(size=40)], axis=1)
MANY = rng.normal(size=200)


def newton(x, a):
    xs = [x]
    while abs(xs[-1] ** 2 - a) > 1e-9:
        xs.append(0.5 * (xs[-1] + a / xs[-1]))
    return sum(xs), len(xs)


def collatz(n):
    xs = [n]
    while xs[-1] != 1:
        if xs[-1] % 2 == 0:
            xs.append(xs[-1] // 2)
        else:
            xs.append(3 * xs[-1] + 1)
    return np.array(xs)


def primes(n):
    found = []
    k = 2
    while len(found) < n:
        for p in found:
            if k % p == 0:
                break
        else:
            found.append(k)
        k += 1
    return found


def depth_first(start, to, w):
    seen = np.zeros(len(start) - 1)
    stack = [0]
    total = 0.0
    while stack:
        v = stack.pop()
        if seen[v] > 0:
            continue
        seen[v] = 1.0
        for k in range(start[v], start[v + 1]):
            total += w[k] * w[k] * len(stack)
            if seen[to[k]] == 0:
                stack.append(to[k])
    return total


def breadth_first(start, to, w):
    distance = np.full(len(start) - 1, -1)
    distance[0] = 0
    queue = [0]
    total, i = 0.0, 0
    while i < len(queue):
        v = queue[i]
        i += 1
        for k in range(start[v], start[v + 1]):
            u = to[k]
            if distance[u] < 0:
                distance[u] = distance[v] + 1
                total += np.sin(w[k]) * distance[u]
                queue.append(u)
    return total, distance


def taken_from_the_front(start, to, w):
    waits = np.zeros(len(start) - 1, dtype=int)
    for u in to:
        waits[u] += 1
    ready = [v for v in range(len(waits)) if waits[v] == 0]
    order, total = [], 0.0
    while ready:
        v = ready.pop(0)
        order.append(v)
        for k in range(start[v], start[v + 1]):
            total += w[k] ** 2 * len(order)
            waits[to[k]] -= 1
            if waits[to[k]] == 0:
                ready.append(to[k])
    return total, np.array(order)


def with_a_deque(start, to, w):
    distance = np.full(len(start) - 1, -1)
    queue = deque([0])
    distance[0] = 0
    total = 0.0
    while queue:
        v = queue.popleft()
        for k in range(start[v], start[v + 1]):
            if distance[to[k]] < 0:
                distance[to[k]] = distance[v] + 1
                total += w[k] ** 3
                queue.append(to[k])
    return total


def parts(start, to, w):
    seen = np.zeros(len(start) - 1, dtype=bool)
    sizes, total = [], 0.0
    for first in range(len(seen)):
        if seen[first]:
            continue
        stack, size = [first], 0
        seen[first] = True
        while stack:
            v = stack.pop()
            size += 1
            for k in range(start[v], start[v + 1]):
                if not seen[to[k]]:
                    seen[to[k]] = True
                    total += w[k] * size
                    stack.append(to[k])
        sizes.append(size)
    return total, sizes


def by_a_helper(start, to, w):
    seen = np.zeros(len(start) - 1, dtype=bool)

    def push(stack, v):
        for k in range(start[v], start[v + 1]):
            if not seen[to[k]]:
                seen[to[k]] = True
                stack.append(to[k])

    stack, total = [0], 0.0
    seen[0] = True
    while stack:
        v = stack.pop()
        total += w[v] ** 2
        push(stack, v)
    return total


def goes_on_until(start, to, goal):
    stack, count = [0], 0
    while True:
        if not stack:
            return -1
        v = stack.pop()
        count += 1
        if v == goal or count > 1000:
            return count
        for k in range(start[v], start[v + 1]):
            if to[k] == goal:
                break
            stack.append(to[k])
        else:
            count += 100


def left_or_not(x, limit):
    xs = [x]
    while len(xs) < 500:
        if xs[-1] > limit:
            break
        xs.append(xs[-1] * 1.01 + 0.01)
    else:
        return -xs[-1]
    return xs[-1] + len(xs)


def hull(points):
    lower = []
    for p in points:
        while len(lower) >= 2:
            a, b = lower[-2], lower[-1]
            if (b[0] - a[0]) * (p[1] - a[1]) - (b[1] - a[1]) * (p[0] - a[0]) > 0:
                break
            lower.pop()
        lower.append(p)
    total = 0.0
    for k in range(1, len(lower)):
        total += np.sqrt(np.sum((lower[k] - lower[k - 1]) ** 2))
    return total


def next_larger(x):
    found = np.zeros(len(x))
    stack = []
    for i in range(len(x)):
        while stack and x[stack[-1]] < x[i]:
            found[stack.pop()] = x[i]
        stack.append(i)
    return found


def adaptive(a, b, tol):
    todo = [(a, b, 0)]
    total, deepest = 0.0, 0
    while todo:
        low, high, depth = todo.pop()
        deepest = max(deepest, depth)
        m = 0.5 * (low + high)
        one = (high - low) * np.sin(m)
        two = 0.5 * (high - low) * (np.sin(0.5 * (low + m)) + np.sin(0.5 * (m + high)))
        if abs(one - two) < tol or depth > 20:
            total += two
        else:
            todo.append((low, m, depth + 1))
            todo.append((m, high, depth + 1))
    return total, deepest


def step_sizes(x):
    ts, xs, h = [0.0], [x], 0.1
    while ts[-1] < 1.0:
        if abs(xs[-1]) * h * h > 0.02:
            h *= 0.5
            continue
        xs.append(xs[-1] + h * xs[-1])
        ts.append(ts[-1] + h)
    return xs[-1], np.array(ts)


def tree(depth, x):
    todo = [(1, 0)]
    total = 0.0
    while len(todo) > 0:
        k, level = todo.pop()
        total += x**level * k
        if level < depth:
            todo += [(2 * k, level + 1), (2 * k + 1, level + 1)]
    return total


def sliding_maximum(x, k):
    queue = collections.deque()
    found = np.zeros(len(x))
    for i in range(len(x)):
        while queue and x[queue[-1]] <= x[i]:
            queue.pop()
        queue.append(i)
        if queue[0] <= i - k:
            queue.popleft()
        found[i] = x[queue[0]]
    return found


def sorted_in(x):
    found = []
    for v in x:
        at = 0
        while at < len(found) and found[at] < v:
            at += 1
        found.insert(at, v)
    return np.array(found)


def last_one_out(x, k):
    ring = [0.0] * len(x)
    for i in range(len(x)):
        ring[i] = x[i]
    at = 0
    total = 0.0
    while len(ring) > 1:
        at = (at + k) % len(ring)
        total += ring.pop(at) * len(ring)
    return total + ring[0]


def becomes_floats(n):
    xs = [1]
    while len(xs) < n:
        xs.append(xs[-1] * 2)
        xs[0] = 0.5
    return xs


def goes_over_what_it_appends(start, to, w):
    seen = np.zeros(len(start) - 1, dtype=bool)
    seen[0] = True
    order, total = [0], 0.0
    for v in order:
        for k in range(start[v], start[v + 1]):
            if not seen[to[k]]:
                seen[to[k]] = True
                total += w[k] ** 2 * len(order)
                order.append(to[k])
    else:
        order.append(-1)
    return total, np.array(order)


def goes_on_for_a_while(x, n):
    xs = [x]
    for v in xs:
        if len(xs) >= n:
            break
        xs.append(0.5 * v + 1.0)
        xs.append(0.25 * v)
    return sum(xs)


def goes_over_it(x):
    a = [x, 1.0]
    for v in a:
        a.append(v)
        if len(a) > 4:
            break
    return sum(a)


def tuples_of_several_types(n):
    found, k = [], 0
    while k * k < n:
        found.append((k, 1.0 / (k + 1), k % 2 == 0))
        k += 1
    return found, sorted(found, key=lambda item: item[1])[0], found[1:]


def strong_components(start, to):
    n = len(start) - 1
    index, low, component = np.full(n, -1), np.zeros(n, dtype=int), np.full(n, -1)
    on, at = np.zeros(n, dtype=bool), start[:-1].copy()
    counter, count, path = 0, 0, []
    for root in range(n):
        if index[root] >= 0:
            continue
        calls = [root]
        while calls:
            v = calls[-1]
            if index[v] < 0:
                index[v] = low[v] = counter
                counter += 1
                path.append(v)
                on[v] = True
            if at[v] < start[v + 1]:
                u = to[at[v]]
                at[v] += 1
                if index[u] < 0:
                    calls.append(u)
                elif on[u]:
                    low[v] = min(low[v], index[u])
                continue
            calls.pop()
            if calls:
                low[calls[-1]] = min(low[calls[-1]], low[v])
            if low[v] == index[v]:
                while True:
                    u = path.pop()
                    on[u] = False
                    component[u] = count
                    if u == v:
                        break
                count += 1
    return component, count


def lists_of_both(n, most):
    todo, seen, steps = [n], [], 0
    while todo:
        v = todo.pop()
        seen.append(v)
        inner = [v]
        while inner and len(seen) < most:
            w = inner.pop()
            steps += 1
            if w > 1:
                inner.append(w - 1)
                inner.append(w // 2)
                seen.append(w)
            if w % 5 == 0 and w > 0:
                todo.append(w // 5)
    return seen, steps


def three_deep(x, n):
    a, total = [n], 0.0
    while a:
        v = a.pop()
        b = [v]
        while b:
            w = b.pop()
            c = [w]
            while c:
                u = c.pop()
                total += x[u] * x[v]
                if u > 1:
                    c.append(u - 1)
            if w > 2:
                b.append(w - 2)
        if v > 3:
            a.append(v - 3)
            a.append(v - 4)
    return total


def one_inside_another(n):
    outer = [1]
    while outer[-1] < n:
        inner = [outer[-1]]
        while inner[-1] % 5 != 0:
            inner.append(inner[-1] + 1)
        outer.append(inner[-1] + 1)
    return outer


PROGRAMS = [
    pytest.param(strong_components, LARGE[:2], marks=pytest.mark.thorough),
    pytest.param(lists_of_both, (90, 1000), marks=pytest.mark.thorough),
    (lists_of_both, (90, 100)),
    pytest.param(three_deep, (MANY, 11), marks=pytest.mark.thorough),
    (one_inside_another, (30,)),
    (newton, (3.0, 2.0)),
    (newton, (0.001, 2.0)),
    (collatz, (27,)),
    (primes, (80,)),
    (depth_first, SMALL),
    (depth_first, LARGE),
    (breadth_first, LARGE),
    (taken_from_the_front, SMALL),
    (taken_from_the_front, random_graph(200, 3)),
    (with_a_deque, LARGE),
    (parts, LARGE),
    (by_a_helper, LARGE),
    (goes_on_until, (*SMALL[:2], 3)),
    (goes_on_until, (*LARGE[:2], 7)),
    (left_or_not, (1.0, 20.0)),
    (left_or_not, (-20.0, 20.0)),
    (hull, (POINTS,)),
    (next_larger, (MANY,)),
    (adaptive, (0.0, 3.0, 1e-7)),
    (step_sizes, (2.0,)),
    (tree, (9, 0.5)),
    (sliding_maximum, (MANY, 5)),
    (sorted_in, (MANY,)),
    (last_one_out, (MANY, 7)),
    (goes_over_what_it_appends, SMALL),
    (goes_over_what_it_appends, LARGE),
    (goes_on_for_a_while, (2.0, 9)),
    (goes_on_for_a_while, (2.0, 300)),
    (goes_over_it, (2.0,)),
    (tuples_of_several_types, (30,)),
]


@pytest.mark.sampled(2)
@pytest.mark.parametrize("f, args", PROGRAMS)
def test_as_in_python(f, args):
    same(f, *args)


SMOOTH = [
    (lambda x: newton(x, 2.0)[0], (3.0,)),
    (lambda w: depth_first(*LARGE[:2], w), (LARGE[2],)),
    (lambda w: breadth_first(*LARGE[:2], w)[0], (LARGE[2],)),
    (lambda w: taken_from_the_front(*SMALL[:2], w)[0], (SMALL[2],)),
    (lambda w: with_a_deque(*LARGE[:2], w), (LARGE[2],)),
    (lambda w: by_a_helper(*LARGE[:2], w), (LARGE[2],)),
    (lambda w: goes_over_what_it_appends(*LARGE[:2], w)[0], (LARGE[2],)),
    (lambda x: goes_on_for_a_while(x, 100) ** 2, (2.0,)),
    (hull, (POINTS,)),
    (lambda x: np.sum(next_larger(x) * x), (MANY[:20],)),
    (lambda b: adaptive(0.0, b, 1e-4)[0], (3.0,)),
    (lambda x: step_sizes(x)[0], (2.3,)),
    (lambda x: np.sum(sorted_in(x) * np.arange(20.0)), (MANY[:20],)),
    (lambda x: last_one_out(x, 3) ** 2, (MANY[:20],)),
]


@pytest.mark.sampled(3)
@pytest.mark.parametrize("f, args", SMOOTH)
def test_derivatives(f, args):
    tp.check_grads(f, args, order=1)


@pytest.mark.thorough
def test_second_derivatives():
    tp.check_grads(*SMOOTH[3], order=2)


def test_with_a_budget():
    f, (w,) = SMOOTH[1]
    np.testing.assert_allclose(tp.grad(f, memory="1MB")(w), tp.grad(f)(w), rtol=1e-12)


def gives_a_value(start, to, w):
    def push(stack, v):
        for k in range(start[v], start[v + 1]):
            stack.append(to[k])
        return len(stack)

    stack, most = [0], 0
    while stack:
        most = max(most, push(stack, stack.pop()))
    return most


def too_large_for_a_float(n):
    items = [(n, 0.5)]
    while len(items) < 3:
        items.append((items[-1][0] + 1, 0.5))
    return items


def without_items(n):
    stack = [n]
    while stack[-1] > 0:
        stack.append(stack[-1] - 1)
    while True:
        stack.pop()
    return 0


def of_an_empty_deque(n):
    queue = deque([n])
    while n > -2:
        n = queue.popleft() - 1
        if n > 0:
            queue.append(n)
    return n


def test_numbers_of_other_types_and_errors():
    raises(IndexError, without_items, 100)
    raises(IndexError, of_an_empty_deque, 100)
    with pytest.raises(OverflowError, match="does not hold it exactly"):
        tp.function(too_large_for_a_float)(2**60 + 1)
    same_values(too_large_for_a_float, 5)
    same_values(becomes_floats, 5)


@pytest.mark.parametrize("f, args, reason", [(gives_a_value, SMALL, "gives a value")])
def test_refused(f, args, reason):
    with pytest.raises(tp.CompileError, match=reason):
        tp.function(f)(*args)


DEQUES = [
    (lambda: deque([1, 2]), "returned"),
    (lambda: deque([1, 2])[:1], "deque"),
    (lambda: deque([1, 2]) == [1, 2], "deque"),
    (lambda: deque([1, 2]).sort(), "no attribute"),
    (lambda: deque([1, 2], maxlen=3)[0], "no length at most"),
    (lambda: [1, 2].popleft(), "no attribute"),
]


@pytest.mark.parametrize("f, reason", DEQUES)
def test_what_deques_do_not_do(f, reason):
    with pytest.raises(tp.CompileError, match=reason):
        tp.function(f)()


def test_what_deques_do():
    def f(x):
        q = deque(x)
        for _ in range(7):
            q.appendleft(q.pop())
        q.extend(x[:2])
        return list(q), len(q), 2.0 in q, isinstance(q, list), isinstance(q, deque), q[-1]

    same(f, np.arange(10.0))
