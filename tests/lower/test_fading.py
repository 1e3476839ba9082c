"""Maps that are made in the memory of an array that nobody needs any more, and those that must not be."""

import numpy as np
import pytest

import tapeless as tp
from tapeless.lower.ir.loopir import Alloc
from tapeless.lower.ir.walk import walk
from tapeless.testing.stages import outcomes

X = np.linspace(0.1, 1.0, 7)


def chain(x):
    a = np.cumsum(x)
    b = np.cumsum(a * 2.0)
    return np.cumsum(np.sin(b) + np.sum(b))


def seen_later(x):
    a = np.cumsum(x)
    b = np.cumsum(np.sin(a))
    return b + np.cumsum(a)


def backwards(x):
    a = np.cumsum(x)
    b = a[::-1] + a
    return np.cumsum(b) * np.sum(b)


def under_two_names(x):
    a = np.cumsum(x)
    v = a[1:]
    b = np.sin(a)
    return np.cumsum(b)[1:] + np.cumsum(v)


def a_row_of_it(x):
    a = np.cumsum(np.outer(x, x), axis=0)
    b = a * a[0]
    return np.cumsum(b, axis=1)


def rows(x):
    a = np.cumsum(np.outer(x, x), axis=1)
    b = np.sin(a) + 1.0
    return np.cumsum(b * 2.0, axis=0)


def two_results(x):
    a = np.cumsum(x)
    b, c = np.sin(a), np.cos(a)
    return np.cumsum(b) * np.cumsum(c) + np.sum(b)


def given_back(x):
    a = np.cumsum(x)
    b = np.sin(a) * np.sum(a)
    return a, b


def in_a_loop(x):
    total = np.zeros_like(x)
    for i in range(4):
        a = np.cumsum(x * (i + 1.0))
        b = np.sin(a) + np.sum(a)
        total += np.cumsum(b)
    return total


def in_branches(x):
    a = np.cumsum(x)
    if a[1] > 0.2:
        b = np.sin(a) + np.sum(a)
    else:
        b = np.cos(a) + a[0]
    return np.cumsum(b) + a


def of_another_size(x):
    a = np.cumsum(x)
    b = np.sin(a[1:])
    return np.cumsum(b) + np.sum(b)


def updated(x):
    a = np.cumsum(x)
    a[2] = 5.0
    b = np.sin(a) + np.sum(a)
    b[0] = a.size
    return np.cumsum(b)


FUNCTIONS = [
    chain, seen_later, backwards, under_two_names, a_row_of_it, rows, two_results, given_back, in_a_loop, in_branches,
    of_another_size, updated,
]  # fmt: skip


@pytest.mark.parametrize("f", FUNCTIONS, ids=lambda f: f.__name__)
def test_results(f):
    results = dict(outcomes(f, lambda: [X.copy()]))
    expected = results.pop("python")
    for name, found in results.items():
        np.testing.assert_allclose(found.result, expected.result, rtol=1e-12, err_msg=name)


@pytest.mark.thorough
@pytest.mark.parametrize("f", FUNCTIONS, ids=lambda f: f.__name__)
def test_many_elements_on_threads(f):
    x = np.linspace(0.1, 1.0, 300 if f in (a_row_of_it, rows) else 70_000)
    for threads in (1, 2):
        found = tp.function(f, threads=threads)(x)
        np.testing.assert_allclose(found, f(x), rtol=1e-9)


@pytest.mark.thorough
@pytest.mark.parametrize("f", FUNCTIONS, ids=lambda f: f.__name__)
def test_gradients(f):
    loss = (lambda x: np.sum(f(x)[0] * f(x)[1])) if f is given_back else (lambda x: np.sum(f(x) ** 2))
    tp.check_grads(loss, (X,), order=1)


def allocations(f, x):
    program = tp.function(f, cache=False).compiled(x).lowered.program
    return sum(isinstance(stm, Alloc) for stm in walk(program.body))


def test_memory_is_used_again():
    assert allocations(chain, X) <= 3  # two arrays, and partial sums
    assert allocations(seen_later, X) > 1
