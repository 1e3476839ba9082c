"""What cannot be undone is refused, or found when it runs: the messages, line and values."""

import re

import numpy as np
import pytest

import tapeless as tp

A, X = 2.0, np.array([1.0, 2.0, 3.0])
COUNT = 3


@tp.reversible
def step(u, v):
    u += np.sin(v)


def plain(x):
    return x


@tp.reversible
def without_a_way_back(x):
    while x < 10.0:
        x += 1.0


@tp.reversible
def target_is_read(x, y):
    y -= y * x


@tp.reversible
def cell_is_read(x, i):
    x[i] += np.sin(x[i])


@tp.reversible
def whole_is_read(x):
    x[0] += np.sum(x)


@tp.reversible
def assigned(x, y):
    y = x


@tp.reversible
def returned(x, y):
    y += x
    return y


@tp.reversible
def left_early(x):
    for i in range(3):
        x += 1.0
        break


@tp.reversible
def power(x, y):
    x **= y


@tp.reversible
def own_place(x):
    x[int(x[0])] += 1.0


@tp.reversible
def bound_changed(x, n):
    for _ in range(n):
        x += 1.0
        n += 1


@tp.reversible
def counter_changed(x):
    for i in range(3):
        i += 1


@tp.reversible
def keyword_changed(x, *, k=1.0):
    k += x


@tp.reversible
def global_changed(x):
    COUNT += 1  # noqa: F823


@tp.reversible
def never_back(x, y):
    with tp.ancilla(0.0) as t:
        t += x
        y += t


@tp.reversible
def used_after(x, y):
    with tp.ancilla(0.0) as t:
        y += t
    x += t


@tp.reversible
def in_use(x, y):
    with tp.ancilla(0.0) as y:
        x += y


@tp.reversible
def origin_changed(x, y):
    with tp.ancilla(x) as t:
        y += t
        x += 1.0


@tp.reversible
def used_block(x, y):
    with tp.ancilla(0.0) as t:
        with tp.compute:
            t += x * x
        y += t
        x += 1.0


@tp.reversible
def twice(x):
    x, x = step(x, x)


@tp.reversible
def not_reversible(x):
    plain(x)


@tp.reversible
def other_targets(x, y, z):
    x, z = step(x, y)


@tp.reversible
def nothing_to_undo(x):
    x += 1.0
    tp.uncompute()


@tp.reversible
def default(x=1.0):
    x += 1.0


@tp.reversible
def no_swap(x, y):
    x, y = y, y


@tp.reversible
def with_a_file(x):
    with open("f") as f:
        x += 1.0


def inverse_of_one_condition():
    @tp.reversible
    def f(x, y):
        if x > 0.0:
            x -= y

    return ~f


def inverse_of_a_caller():
    @tp.reversible
    def f(x):
        (x,) = without_a_way_back(x)

    return ~f


STATIC = {
    "target_is_read": lambda: target_is_read(A, A),
    "cell_is_read": lambda: cell_is_read(X.copy(), 1),
    "whole_is_read": lambda: whole_is_read(X.copy()),
    "assigned": lambda: assigned(A, A),
    "returned": lambda: returned(A, A),
    "left_early": lambda: left_early(A),
    "power": lambda: power(A, A),
    "own_place": lambda: own_place(X.copy()),
    "bound_changed": lambda: bound_changed(A, 3),
    "counter_changed": lambda: counter_changed(A),
    "keyword_changed": lambda: keyword_changed(A),
    "global_changed": lambda: global_changed(A),
    "never_back": lambda: never_back(A, A),
    "used_after": lambda: used_after(A, A),
    "in_use": lambda: in_use(A, A),
    "origin_changed": lambda: origin_changed(A, A),
    "used_block": lambda: used_block(A, A),
    "twice": lambda: twice(A),
    "not_reversible": lambda: not_reversible(A),
    "other_targets": lambda: other_targets(A, A, A),
    "nothing_to_undo": lambda: nothing_to_undo(A),
    "default": lambda: default(A),
    "no_swap": lambda: no_swap(A, A),
    "with_a_file": lambda: with_a_file(A),
    "inverse_of_one_condition": inverse_of_one_condition,
    "inverse_of_a_caller": inverse_of_a_caller,
    "same_array_twice": lambda: step(X, X),
    "outside": lambda: tp.ancilla(0.0),
}


@tp.reversible
def wrong_branch(x):
    if tp.branch(x > 0.0, x > 5.0):
        x += 2.0


@tp.reversible
def wrong_entry(x):
    while tp.between(x < 100, x > -10):
        x += 9


@tp.reversible
def wrong_iteration(x):
    while tp.between(x < 100, x > 50):
        x += 9


@tp.reversible
def dirty(x):
    with tp.ancilla(0.0) as z:
        z += 1.0
        z -= x


@tp.reversible
def dirty_cells(x):
    with tp.ancilla(np.zeros(3)) as z:
        z += x
        z -= 1.0


@tp.reversible
def zero_factor(x, y):
    x *= y


@tp.reversible
def same_cell(x, i, j):
    x[i] -= x[j]


@tp.reversible
def overlapping(x, n):
    x[:n] += x[1:]


AT_RUN_TIME = {
    "wrong_branch": (wrong_branch, (1.0,)),
    "wrong_entry": (wrong_entry, (0,)),
    "wrong_iteration": (wrong_iteration, (0,)),
    "dirty": (dirty, (10.0,)),
    "dirty_nan": (dirty, (float("nan"),)),
    "dirty_cells": (dirty_cells, (X,)),
    "zero_factor": (zero_factor, (1.0, 0.0)),
    "same_cell": (same_cell, (X, 1, -2)),
    "overlapping": (overlapping, (X, 2)),
}


def shown(error):
    return re.sub(r"\S*test_errors\.py:\d+", "test_errors.py", str(error))


@pytest.mark.parametrize("name", STATIC)
def test_static(golden, name):
    with pytest.raises(tp.InvertibilityError) as caught:
        STATIC[name]()
    golden(shown(caught.value), name)


@pytest.mark.parametrize("name", AT_RUN_TIME)
def test_at_run_time(golden, name):
    f, args = AT_RUN_TIME[name]

    def given():
        return [a.copy() if isinstance(a, np.ndarray) else a for a in args]

    with pytest.raises(tp.InvertibilityError) as caught:
        f(*given())
    assert caught.value.line
    golden(shown(caught.value), name)
    with pytest.raises(tp.InvertibilityError) as in_python:
        f.python(*given())
    assert in_python.value.line == caught.value.line


def test_tests_can_be_left_out():
    def z(x):
        with tp.ancilla(0.0) as t:
            t += 1.0
            t -= x

    assert tp.reversible(z, check=False)(10.0) == (10.0,)


def test_tolerance():
    def z(x):
        with tp.ancilla(0.0) as t:
            t += 1.0
            t -= x

    assert tp.reversible(z, tolerance=0.1)(1.01) == (1.01,)
    with pytest.raises(tp.InvertibilityError):
        tp.reversible(z)(1.01)
    with pytest.raises(ValueError, match="tolerance"):
        tp.reversible(z, tolerance=2.0)
