"""Arrays that a loop makes with sizes of its own, and that are read after it: Note [The last iteration] in loop_trials.py."""

import numpy as np
import pytest

import tapeless as tp
from tests.agreement import agree

X = np.array([1.0, 3.0, 0.5, 2.0, -1.0, 4.0])


def slices(x, n):
    for k in range(n):
        y = x[: k + 1] * 2.0
    return y


def sizes_and_counter(x, n):
    s = 0.0
    for k in range(n):
        m = k * 2 + 1
        y = np.zeros(m)
        y[k] = x[k] * s
        s += y.sum() + x[k]
    return y, k, s


def masked(x, n):
    for k in range(n):
        y = x[x > k]
    return y


def nested(x, n):
    s = 1.0
    for k in range(n):
        y = x[: k + 1] * s
        for j in range(2):
            z = y[: j + 1] + 1.0
        s = s + y.sum() + z.sum()
    return y, z, s


def with_continue(x, n):
    s = 0.0
    for k in range(n):
        y = x[k:] + s
        if k % 2:
            continue
        s += y.sum()
    return y, s


def over_rows(x, n):
    for v in x[:n]:
        y = np.full(int(abs(v)) + 1, v)
    return y


PROGRAMS = [slices, sizes_and_counter, masked, nested, with_continue, over_rows]


@pytest.mark.sampled(9)
@pytest.mark.parametrize("n", [1, 2, 5])
@pytest.mark.parametrize("function", PROGRAMS, ids=lambda f: f.__name__)
def test_programs(function, n):
    agree(function, X, n)


@pytest.mark.thorough
@pytest.mark.parametrize("function", [slices, sizes_and_counter, nested, with_continue], ids=lambda f: f.__name__)
def test_gradients(function):
    def total(x):
        found = function(x, 3)
        return np.sum(found[0] ** 2) + found[-1] if isinstance(found, tuple) else np.sum(found**2)

    tp.check_grads(total, (X,))


def test_without_an_iteration_there_is_none():
    with pytest.raises(UnboundLocalError):
        tp.function(slices)(X, 0)


def bound_sometimes(x, n):
    for k in range(n):
        if x[k] > 1.0:
            y = x[:k] * 2.0
    return y


def growing(x, n):
    y = x[:1]
    for k in range(n):
        y = np.concatenate([y, x[k : k + 1]])
    return y


@pytest.mark.parametrize(
    ("function", "match"),
    [(bound_sometimes, "TP104.*a size that is only known there"), (growing, "must keep its size in a loop")],
    ids=lambda v: getattr(v, "__name__", ""),
)
def test_what_has_to_go_around_is_refused(function, match):
    with pytest.raises(tp.TapelessError, match=match):
        tp.function(function)(X, 4)
