"""`tp.callback`: Python called from compiled code, by all stages; once for each time, in order, with its own exceptions."""

from __future__ import annotations

import functools
import os
import threading
from typing import NamedTuple

import numpy as np
import pytest

import tapeless as tp
from tapeless.frontend.entry import trace
from tapeless.frontend.state.context import Options
from tapeless.ir import calls
from tests.agreement import agree
from tests.language.same import same

pytestmark = pytest.mark.skipif("TAPELESS_TEST_DEVICE" in os.environ, reason="a GPU does not call Python")

X = np.array([3.0, 1.0, 2.0])
CALLS: list = []


class Pair(NamedTuple):
    first: float
    second: np.ndarray


@pytest.fixture(autouse=True)
def no_calls_yet():
    CALLS.clear()


def ordered(x, k):
    CALLS.append((float(x[0]), k))
    return np.sort(x) * k


def note(*values):
    CALLS.append(values)


def parts(x, n, flag, names):
    assert names == ["a", None]
    return {"a": Pair(np.float32(2.5), x[::-1]), "b": (float(n), n, not flag), "n": None}


def in_loops_and_branches(x, n):
    total, y, z = np.float64(0.0), x.copy(), x.copy()
    for i in range(n):
        if i % 2 == 0:
            y = tp.callback(ordered, x, y[::-1] + i, i)
            tp.callback(ordered, y, y, 10)  # nobody needs what it gives
        tp.callback(note, None, i, total)
        while total < y[0]:
            total += tp.callback(np.sum, np.float64(0.0), y * 0.5)
        z = tp.callback(ordered, x, x, 1)  # the same every time
    return total, y, z


def containers(x, n):
    like = {"a": Pair(np.float32(0), x), "b": (0.0, 0, True), "n": None}
    return tp.callback(parts, like, x, n, n > 2, ["a", None])


def matrices(a, c):
    turned = tp.callback(np.ascontiguousarray, a, a.T.copy().T)
    row = tp.callback(lambda v: v * 2, a[0], a[1])
    nothing = tp.callback(np.copy, a[:0], a[:0])
    return turned, row, nothing, tp.callback(np.conj, c, c), tp.callback(bool, True, a[0, 0] > 0)


@pytest.mark.parametrize("n", [0, 1, 4])
def test_every_stage(n):
    same(in_loops_and_branches, X, n)
    agree(in_loops_and_branches, X, n)


def test_what_goes_in_and_out():
    same(containers, X, 3)
    same(matrices, np.arange(4.0).reshape(2, 2), np.array([1 + 2j, 3j]))
    agree(matrices, np.arange(4.0, dtype=np.float32).reshape(2, 2), np.complex64(1j) * np.ones(2, np.complex64))


def test_once_for_each_time_and_in_order():
    in_loops_and_branches(X, 5)
    expected = list(CALLS)
    CALLS.clear()
    for options in ({}, {"check": True}, {"threads": 1}, {"coarsen": False}):
        f = tp.function(in_loops_and_branches, **options)
        for _ in range(2):
            CALLS.clear()
            f(X, 5)
            assert CALLS == expected
    small = tp.function(lambda x: tp.callback(lambda v: v + 1.0, 0.0, x))
    assert [small(float(k)) for k in range(300)] == [k + 1.0 for k in range(300)]  # by every way into native code


def test_functions_of_the_program(monkeypatch):
    """One callback, called from several places."""
    monkeypatch.setattr(calls, "SMALL", 0)

    def helper(x, k):
        y = np.sin(x) * k + np.cos(x) ** 2
        return tp.callback(ordered, x, y, 1)

    @tp.function
    def f(x):
        return helper(x, 1.0) + helper(x, 1.0) + helper(x, 2.0) + helper(x, 1.0)

    np.testing.assert_allclose(f(X), f.python(X), rtol=1e-14)
    assert len(CALLS) == 8


def test_arguments_are_copies():
    kept = []
    f = tp.function(lambda x: tp.callback(lambda v: kept.append(v), None, x * 2))
    f(X)
    kept[0][0] = 99.0
    f(X)
    np.testing.assert_array_equal(kept[1], X * 2)


def test_functions_of_all_kinds():
    class Solver:
        def __init__(self):
            self.factor = 2.0

        def solve(self, x):
            return x * self.factor

        def outer(self, x):
            return tp.callback(self.solve, x, x)

    solver, threefold = Solver(), functools.partial(np.multiply, 3.0)
    f = tp.function(lambda x: tp.callback(solver.solve, x, x) + tp.callback(threefold, x, x))
    np.testing.assert_array_equal(f(X), 5 * X)
    solver.factor = 4.0
    np.testing.assert_array_equal(f(X), 7 * X)
    np.testing.assert_array_equal(tp.function(solver.outer)(X), 4 * X)
    inner = tp.function(lambda x: tp.callback(lambda v: v + 1.0, x, x))
    np.testing.assert_array_equal(tp.function(lambda x: tp.callback(lambda v: inner(v) * 2, x, x))(X), (X + 1) * 2)


def test_exceptions_are_its_own():
    class Odd(BaseException):
        pass

    def fails(x):
        CALLS.append(x)
        raise Odd("no") if x > 1 else KeyError("small")

    @tp.function
    def f(x, n):
        y = np.zeros(n)
        for i in range(n):
            y[i] = tp.callback(fails, 0.0, x)
        return y

    for _ in range(3):
        with pytest.raises(Odd, match="no"):
            f(2.0, 3)
        with pytest.raises(KeyError, match="small"):
            f(1.0, 3)
    assert CALLS == [2.0, 1.0] * 3


@pytest.mark.parametrize(
    "function, like, reason",
    [
        (lambda x: x[:1], X, r"gave an array of shape \(1,\) and type float64 where result_like has shape \(3,\)"),
        (lambda x: x.astype("f4"), X, "type float32 where result_like has shape"),
        (lambda x: 1.5, 2, "a number of type float64 where result_like has a number of type int64"),
        (lambda x: None, X, "where result_like has shape"),
        (lambda x: x, (1.0, 2.0), "where result_like has a tuple"),
        (lambda x: x, None, "where result_like has None"),
    ],
)
def test_results_that_do_not_fit(function, like, reason):
    with pytest.raises(TypeError, match=reason + r"[\s\S]*test_callbacks\.py:\d+"):
        tp.function(lambda x: tp.callback(function, like, x))(X)


def test_refused():
    def parallel(x):
        y = np.zeros(len(x))
        for i in tp.prange(len(x)):
            y[i] = tp.callback(abs, 0.0, x[i])
        return y

    def nested(x):
        k = x[0]
        return tp.callback(lambda v: v * k, x, x)

    for f, reason in [
        (parallel, "callbacks have an order"),
        (lambda x: tp.map(lambda v: tp.callback(abs, 0.0, v), x), "callbacks have an order"),
        (nested, "which uses 'k' of the compiled function"),
        (lambda x: tp.callback(abs), "takes a function"),
        (lambda x: tp.callback(abs, "text", x), "result_like has a string"),
    ]:
        with pytest.raises(tp.CompileError, match=reason):
            tp.function(f)(X)
    with pytest.raises(tp.CompileError, match="a GPU cannot call Python"):
        trace(lambda x: tp.callback(np.sort, x, x), (X,), options=Options(device="cuda"))


def test_threads_of_python():
    """Each call has a run of its own."""
    f = tp.function(lambda x, k: tp.callback(lambda v, n: v * n, x, x, k) + k)
    f(X, 0)
    wrong = []

    def work(k):
        for _ in range(50):
            if not np.array_equal(f(X, k), X * k + k):
                wrong.append(k)

    threads = [threading.Thread(target=work, args=(k,)) for k in range(4)]
    for t in threads:
        t.start()
    for t in threads:
        t.join()
    assert not wrong
