"""`heapq` and lists of tuples whose positions are known when it runs."""

from __future__ import annotations

import heapq

import numpy as np
import pytest

import tapeless as tp
from tests.language.same import raises, same, same_values
from tests.language.test_worklists import random_graph
from tests.quick import unoptimized  # noqa: F401  (for all tests here)

rng = np.random.default_rng(4)
X = rng.normal(size=100)
START, TO, W = random_graph(200, 6)
W = W**2 + 0.1
SMALL = (*random_graph(40, 4)[:2], rng.uniform(0.1, 2.0, 40 * 4))


def shortest(start, to, w):
    distance = np.full(len(start) - 1, np.inf)
    distance[0] = 0.0
    heap = [(0.0, 0)]
    while heap:
        d, v = heapq.heappop(heap)
        if d > distance[v]:
            continue
        for k in range(start[v], start[v + 1]):
            new = d + w[k]
            if new < distance[to[k]]:
                distance[to[k]] = new
                heapq.heappush(heap, (new, to[k]))
    return distance


def sorted_by_a_heap(x):
    heap = []
    for v in x:
        heapq.heappush(heap, v)
    found, k = np.zeros(len(x)), 0
    while heap:
        found[k] = heapq.heappop(heap)
        k += 1
    return found


def largest(x, k):
    heap = list(x[:k])
    heapq.heapify(heap)
    for v in x[k:]:
        if v > heap[0]:
            heapq.heapreplace(heap, v)
    return np.array(heap)


def smaller_ones(x):
    heap = [0.5, 0.2, 0.9]
    heapq.heapify(heap)
    found = []
    for v in x:
        found.append(heapq.heappushpop(heap, v))
    return np.array(found), np.array(heap)


def two_machines(rate, n):
    events = [(0.5, 0), (0.3, 1)]
    heapq.heapify(events)
    done, waited = 0, 0.0
    while done < n:
        t, machine = heapq.heappop(events)
        if machine == 0:
            heapq.heappush(events, (t + rate, 0))
            waited += t
        else:
            heapq.heappush(events, (t + 1.5 * rate, 1))
            done += 1
    return waited


def item_of_tuples(k):
    pairs = [(1, 0.5), (2, 0.25), (3, 0.125)]
    pairs[k] = (7, 2.0)
    return pairs[k - 1], pairs[k], ((1, 2), (3, 4))[k - 1][1]


PROGRAMS = [
    (shortest, SMALL),
    pytest.param(shortest, (START, TO, W), marks=pytest.mark.thorough),
    (sorted_by_a_heap, (X,)),
    (sorted_by_a_heap, (np.round(X),)),
    (largest, (X, 5)),
    (smaller_ones, (X,)),
    (two_machines, (0.7, 30)),
]


@pytest.mark.parametrize("f, args", PROGRAMS)
def test_as_in_python(f, args):
    same(f, *args)


def test_positions_in_lists_of_tuples():
    same_values(item_of_tuples, 1)
    raises(IndexError, item_of_tuples, 3)


@pytest.mark.thorough
def test_derivatives_of_shortest_paths():
    near = np.isfinite(shortest(START, TO, W))

    def total(w):
        return np.sum(np.where(near, shortest(START, TO, w), 0.0) ** 2)

    tp.check_grads(total, (W,), order=1)


@pytest.mark.thorough
def test_derivatives():
    apart = rng.permutation(30) / 10.0
    tp.check_grads(lambda x: np.sum(sorted_by_a_heap(x) ** 2 * np.arange(30.0)), (apart,))


def test_an_empty_heap():
    def f(n):
        heap = [n]
        while n > -2:
            n = heapq.heappop(heap) - 1
            if n > 0:
                heapq.heappush(heap, n)
        return n

    raises(IndexError, f, 100)
