"""Cells that a loop adds to again and again are summed up in registers."""

import numpy as np
import pytest

import tapeless as tp
from tapeless.frontend.entry import trace
from tapeless.interp.evaluate import evaluate
from tapeless.ir.core import For, UpdateAcc, While
from tapeless.ir.target import Target
from tapeless.ir.walk import all_stms
from tapeless.passes.check.consumption import check_in_place
from tapeless.passes.pipeline import finished
from tapeless.testing.stages import leaves_of, parameters_of
from tests.agreement import agree


def rows(y, a, x):
    for i in tp.prange(len(y)):
        for j in range(len(x)):
            y[i] += a[i, j] * x[j]
    return y


def two_loops_deep(y, a, x):
    for i in tp.prange(len(y)):
        for j in range(len(x)):
            for k in range(3):
                y[i] += a[i, j] * x[j] ** k
    return y


def until_small(y, a, x):
    for i in tp.prange(len(y)):
        t = x[i]
        while t > 0.01:
            y[i] += t
            t *= 0.5 * a[i, 0]
    return y


def by_another_index(y, a, x):
    for i in tp.prange(len(y)):
        for j in range(len(x)):
            y[j] += a[i, j] * x[j]
    return y


def whole_numbers(y, a, x):
    for i in tp.prange(len(y)):
        for j in range(4):
            y[i] += j * i
    return y


A = np.random.default_rng(2).uniform(0.1, 0.9, (5, 5))
X = np.linspace(0.3, 1.0, 5)
PROGRAMS = [rows, two_loops_deep, until_small, by_another_index, whole_numbers]


@pytest.mark.parametrize("program", PROGRAMS, ids=lambda f: f.__name__)
def test_the_same_results(program):
    y = np.arange(5) if program is whole_numbers else np.linspace(-1.0, 1.0, 5)
    agree(program, y, A, X, levels=(0, 3))


@pytest.mark.thorough
@pytest.mark.parametrize("program", PROGRAMS[:4], ids=lambda f: f.__name__)
def test_gradients(program):
    tp.check_grads(lambda y, a, x: np.sum(program(y.copy(), a, x) ** 2), (np.linspace(-1.0, 1.0, 5), A, X), order=1)


def updates_in_loops(program):
    core = tp.function(program).compiled(np.zeros(5), A, X).optimized
    loops = [s.exp for s in all_stms(core.body) if isinstance(s.exp, For | While)]
    return sum(isinstance(s.exp, UpdateAcc) for loop in loops for s in all_stms(loop.body))


@pytest.mark.parametrize("program", [rows, two_loops_deep, until_small], ids=lambda f: f.__name__)
def test_no_update_is_left_in_a_loop(program):
    assert updates_in_loops(program) == 0


def nothing(y, n):
    for i in tp.prange(len(y)):
        for _ in range(n):
            y[i] += 1.0
    return y


def test_zeros_keep_their_sign():
    found = tp.function(nothing)(np.array([-0.0, 0.0]), 0)
    assert np.signbit(found).tolist() == [True, False]


def test_zeros_keep_their_sign_after_the_passes_for_a_gpu():
    y = np.array([-0.0, 0.0])
    traced = trace(nothing, (y, 0))
    core = check_in_place(finished(traced.core, target=Target.ptx))[0]
    assert any(isinstance(s.exp, UpdateAcc) for s in all_stms(core.body))
    found = evaluate(core, parameters_of(traced, leaves_of((y, 0))))
    assert np.signbit(found[0]).tolist() == [True, False]
