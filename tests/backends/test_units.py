"""Large programs in several modules: the same code on any number of threads, and the same results as in one."""

import os
import threading

import numpy as np
import pytest

import tapeless as tp
from tapeless.backends.cpu.compile import compile_program
from tapeless.backends.llvm import pieces, units
from tapeless.backends.llvm.at_once import AtOnce
from tapeless.backends.llvm.emit import emit
from tapeless.backends.llvm.host import host


def waves(x, n):
    total = 0.0
    for i in range(n):
        y = np.sin(x * (i + 1.0))
        z = np.cumsum(y) * np.exp(-y)
        while total < 0.5:
            total += abs(y[i]) + 0.1
        x = x + 0.1 * z / (1.0 + z @ z)
        if x[0] > 1.0:
            x = np.where(x > 0.5, x - 0.2, x * y)
        total += np.sum(x * np.tanh(z))
    return total


X = np.linspace(0.1, 1.3, 7)


@pytest.fixture
def small_units(monkeypatch, compiled_anew):
    monkeypatch.setattr(units, "UNIT", 50)
    monkeypatch.setattr(units, "EARLY", 150)


def lowered():
    return tp.function(tp.grad(waves), cache=False).compiled(X, 4).lowered.program


def test_gradients_in_many_units(small_units):
    gradient = tp.function(tp.grad(waves), cache=False)
    assert len(gradient.compiled(X, 4).binary.objects) > 3
    steps = 1e-6 * np.eye(len(X))
    slopes = [(waves(X + s, 4) - waves(X - s, 4)) / 2e-6 for s in steps]
    np.testing.assert_allclose(gradient(X, 4), slopes, rtol=1e-6)


def test_one_unit_is_the_whole_text():
    emitted = emit(tp.function(lambda x: np.sin(x) + 1.0, cache=False).compiled(X).lowered.program, host())
    assert [unit.text for unit in emitted.units] == [emitted.text]


@pytest.mark.thorough
def test_code_does_not_depend_on_the_number_of_threads(small_units, monkeypatch):
    program = lowered()
    made = []
    for cores in (1, 2, 5):
        monkeypatch.setattr(os, "sched_getaffinity", lambda _, cores=cores: set(range(cores)))
        made.append(compile_program(program).objects)
    assert made[0] == made[1] == made[2]


def test_functions_that_others_call_are_seen_by_them(small_units):
    texts = [unit.text for unit in emit(lowered(), host()).units]
    defined = [line.split("@")[1].split("(")[0] for t in texts for line in t.splitlines() if line.startswith("define ")]
    helpers = {name for name in defined if name.startswith("tapeless.")}
    rest = [name for name in defined if name not in helpers]
    assert len(set(rest)) == len(rest)  # each in one unit, small helpers apart
    assert sum(text.count("define void") for text in texts) > 1


def test_units_are_handed_on_while_the_others_are_written(small_units):
    written = []
    emitted = emit(lowered(), host(), early=written.append)
    assert 1 < len(written) < len(emitted.units)
    assert emitted.units[: len(written)] == tuple(written)


def at_once(work, items, early=0):
    with AtOnce(work) as made:
        for item in items[:early]:
            made.put(item)
        return made.results(items[early:])


@pytest.mark.parametrize("early", [0, 1, 4, 9])
def test_at_once_keeps_the_order_and_hands_problems_on(monkeypatch, early):
    monkeypatch.setattr(os, "sched_getaffinity", lambda _: {0, 1, 2})
    everybody = threading.Barrier(3, timeout=30)

    def work(k):
        if k < 3:
            everybody.wait()  # three threads are inside
        return k * k

    assert at_once(work, range(9), early) == [k * k for k in range(9)]

    def fails(k):
        raise ValueError(k)

    with pytest.raises(ValueError):
        at_once(fails, range(9), early)
    assert at_once(fails, []) == []


def test_at_once_ends_where_the_caller_fails(monkeypatch):
    monkeypatch.setattr(os, "sched_getaffinity", lambda _: {0, 1})
    before = threading.active_count()
    with pytest.raises(KeyError), AtOnce(abs) as made:
        made.put(-1)
        raise KeyError
    assert threading.active_count() == before


@pytest.mark.thorough
def test_functions_are_compiled_by_several_threads_at_once(small_units):
    gradients = [tp.function(tp.grad(lambda x, n, k=k: waves(x, n) * k), cache=False) for k in range(1, 4)]
    found = {}
    threads = [threading.Thread(target=lambda k=k, g=g: found.update({k: g(X, 4)})) for k, g in enumerate(gradients)]
    for thread in threads:
        thread.start()
    for thread in threads:
        thread.join()
    for k in range(3):
        np.testing.assert_allclose(found[k], (k + 1) * found[0], rtol=1e-9)


def elements_set(x):
    x[0] = x[1] * 0.5 + x[0]
    x[1] = x[2] * 0.5 + x[0]
    x[2] = x[3] * 0.5 + x[0]
    x[3] = x[4] * 0.5 + x[0]
    x[4] = x[5] * 0.5 + x[0]
    x[5] = x[6] * 0.5 + x[0]


def elements_set_twice(x):
    x[0] = x[1] * 0.5 + x[0]
    x[0] = x[2] * 0.5 + x[0]
    x[0] = x[3] * 0.5 + x[0]
    x[0] = x[4] * 0.5 + x[0]
    x[0] = x[5] * 0.5 + x[0]
    x[0] = x[6] * 0.5 + x[0]


@pytest.mark.parametrize(("function", "plain"), [(elements_set, True), (elements_set_twice, False)])
def test_straight_code_that_overwrites_nothing_is_plain(function, plain, small_units, monkeypatch):
    for name, size in {"LARGE": 4, "PIECE": 3, "RUN": 14}.items():
        monkeypatch.setattr(pieces, name, size)
    monkeypatch.setattr(units, "UNIT", 10)
    compiled = tp.function(function, cache=False)
    emitted = emit(compiled.compiled(X).lowered.program, host())
    assert any(unit.plain for unit in emitted.units) == plain
    got, want = X.copy(), X.copy()
    compiled(got), function(want)
    np.testing.assert_array_equal(got, want)
