"""Numbers that go to native code or decide it: in range, or an error that says what the range is."""

import numpy as np
import pytest

import tapeless as tp


def total(x):
    s = 0.0
    for i in tp.prange(len(x)):
        s += x[i]
    return s


def steps(x, n):
    for _ in range(n):
        x = np.sin(x) * 1.1
    return x


@pytest.mark.parametrize("threads", [0, -1, 1025, 2**31, 2**63, 2**64 + 2, 10**30, True, 1.5, "2"])
def test_w6_threads(threads):
    with pytest.raises(ValueError, match="threads must be a number from 1 to 1024"):
        tp.function(total, threads=threads)


def test_w6_threads_of_an_object_that_was_changed():
    f = tp.Function(total, threads=2)
    f.threads = 2**63
    assert f(np.ones(5000)) == 5000.0
    assert tp.function(total, threads=1024)(np.ones(5000)) == 5000.0


@pytest.mark.parametrize("given", ["abc", "0", "-2", "1.5", "1025", "1" + "0" * 30, "9" * 5000])
def test_w6_threads_of_the_environment(given, monkeypatch):
    monkeypatch.setenv("TAPELESS_THREADS", given)
    with pytest.raises(ValueError, match="TAPELESS_THREADS=.*: it must be a number from 1 to 1024"):
        tp.function(total)
    with pytest.raises(ValueError, match="TAPELESS_THREADS"):
        tp.grad(steps)
    assert tp.function(total, threads=2).threads == 2
    monkeypatch.setenv("TAPELESS_THREADS", "3")
    assert tp.function(total).threads == tp.grad(steps).threads == 3


def test_w6_budgets_beyond_all_memory_are_plenty():
    expected = tp.grad(steps)(0.5, 20)
    for size in ("9" * 20 + "B", "9" * 20 + "TB", "9" * 400 + "TB", "9" * 5000 + "TB", "0." + "9" * 400 + "TiB"):
        assert tp.grad(steps, memory=size)(0.5, 20) == pytest.approx(expected, rel=1e-12)

    @tp.function
    def inside(x):
        return tp.grad(steps, memory="99999999999999999999TB")(x, 20)

    assert inside(0.5) == pytest.approx(expected, rel=1e-12)
    for size in ("0B", "40B"):
        with pytest.raises(tp.RecoveryError):
            tp.grad(steps, memory=size)(0.5, 20)


@pytest.mark.parametrize("number", ["9" * 19, "9" * 30, "9" * 5000, "0" * 30 + "64"])
def test_w6_numbers_of_recoveries(number):
    def turn(x, n):
        s = 0.0
        for _ in range(n):
            x = 2.0 - x
            s += x * x
        return s

    assert tp.grad(turn, recover=f"invert:{number}")(0.5, 4) == pytest.approx(tp.grad(turn)(0.5, 4))
    with pytest.raises(tp.RecoveryError, match="depth 16"):
        tp.grad(turn, recover=f"checkpoint:{number}")(0.5, 4)
    with pytest.raises(ValueError, match="positive"):
        tp.grad(turn, recover="invert:0000")
