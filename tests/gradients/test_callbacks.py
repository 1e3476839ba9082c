"""Derivatives around callbacks: by rules around them, or with their results as constants. No recovery runs one again."""

from __future__ import annotations

import os

import numpy as np
import pytest

import tapeless as tp

pytestmark = pytest.mark.skipif("TAPELESS_TEST_DEVICE" in os.environ, reason="a GPU does not call Python")

X = np.array([0.5, -1.0, 2.0])
CALLS: list = []


@pytest.fixture(autouse=True)
def no_calls_yet():
    CALLS.clear()


def host_sin(x):
    CALLS.append("sin")
    return np.sin(x)


def host_cos(x):
    CALLS.append("cos")
    return np.cos(x)


@tp.custom_vjp
def sine(x):
    return tp.callback(host_sin, x, x)


sine.defvjp(lambda x: (tp.callback(host_sin, x, x), x), lambda x, adj: (tp.callback(host_cos, x, x) * adj,))


@tp.custom_jvp
def forward_sine(x):
    return tp.callback(host_sin, x, x)


@forward_sine.defjvp
def _(primals, tangents):
    (x,), (t,) = primals, tangents
    return tp.callback(host_sin, x, x), tp.callback(host_cos, x, x) * t


def repeated(x, n, f):
    for i in range(n):
        y = f(x) if i % 3 else x * 1.5
        x = y * x + np.tanh(y)
    return np.sum(x * x)


def data(i):
    CALLS.append(i)
    return np.cos(np.arange(3.0) + i)


def weighed(x, n):
    """Its results are constants for the derivative, which needs them."""
    s = 0.0
    for i in range(n):
        w = tp.callback(data, np.zeros(3), i)
        s = s * w[0] + np.sum(w * x * x) * np.sin(s)
        x = x * w
    return s + np.sum(x)


def plain(x, n):
    s = 0.0
    for i in range(n):
        w = np.cos(np.arange(3.0) + i)
        s = s * w[0] + np.sum(w * x * x) * np.sin(s)
        x = x * w
    return s + np.sum(x)


def expected(n):
    return tp.grad(lambda x: repeated(x, n, np.sin))(X)


def test_rules_around_it():
    found = tp.grad(lambda x: repeated(x, 7, sine))(X)
    np.testing.assert_allclose(found, expected(7), rtol=1e-13)
    assert CALLS == ["sin"] * 4 + ["cos"] * 4
    CALLS.clear()
    _, slope = tp.jvp(lambda x: repeated(x, 7, forward_sine), (X,), (X,))
    np.testing.assert_allclose(slope, expected(7) @ X, rtol=1e-13)
    assert CALLS == ["sin", "cos"] * 4
    tp.check_grads(lambda x: repeated(x, 4, sine), (0.3 * X,), order=1, modes=("rev",))
    value, pull = tp.vjp(sine, X)
    np.testing.assert_array_equal(pull(X)[0], np.cos(X) * X)


@pytest.mark.parametrize("recover", ["auto", "store", "recompute", "checkpoint:3", "2KB"])
def test_recoveries_do_not_run_it_again(recover):
    n, memory, recover = 31, recover if "KB" in recover else None, recover if "KB" not in recover else "auto"
    found = tp.grad(weighed, recover=recover, memory=memory)(X, n)
    np.testing.assert_allclose(found, tp.grad(plain)(X, n), rtol=1e-11)
    assert CALLS == list(range(n))
    CALLS.clear()
    found = tp.grad(lambda x: repeated(x, n, sine), recover=recover, memory=memory)(X * 0.3)
    np.testing.assert_allclose(found, tp.grad(lambda x: repeated(x, n, np.sin))(X * 0.3), rtol=1e-11)
    assert CALLS.count("sin") == CALLS.count("cos") == sum(1 for i in range(n) if i % 3)


def test_second_order_and_stopped():
    found = tp.hvp(lambda x: weighed(x, 5), (X,), (X,))[1]
    np.testing.assert_allclose(found, tp.hvp(lambda x: plain(x, 5), (X,), (X,))[1], rtol=1e-12)
    assert CALLS == list(range(5))
    stopped = tp.grad(lambda x: np.sum(x * tp.callback(host_sin, x, tp.stop_gradient(x))))(X)
    np.testing.assert_array_equal(stopped, np.sin(X))


def test_what_differs_for_the_same_arguments_raises():
    """In the backward pass it could not be told which result it was."""
    state = np.random.default_rng(0)

    def f(x, n):
        s = 1.0
        for _ in range(n):
            s = s * np.sin(x * tp.callback(lambda: state.normal(), 0.0))
        return s

    assert tp.grad(f)(0.5, 1) != 0.0
    with pytest.raises(RuntimeError, match=r"different results for the same arguments.*test_callbacks\.py"):
        tp.grad(f)(0.5, 3)


@pytest.mark.parametrize("transform", [tp.grad, tp.jacfwd, lambda f: lambda x: tp.jvp(f, (x,), (x,))])
def test_without_a_rule(transform):
    with pytest.raises(
        tp.CompileError, match=r"callback has no derivative[\s\S]*host_sin, x, x[\s\S]*tp\.custom_vjp"
    ) as info:
        transform(lambda x: np.sum(tp.callback(host_sin, x, x)))(X)
    assert info.value.code == "TP303"
