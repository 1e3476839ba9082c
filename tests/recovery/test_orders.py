"""Recoveries in other transforms: second derivatives, pullbacks, Jacobians, in compiled code, with checks."""

import math

import numpy as np
import pytest

import tapeless as tp
from tests.quick import unoptimized  # noqa: F401  (for all tests here)
from tests.recovery.same import same

X = np.array([0.7, -0.3, 0.2, 0.9])
TRIPS = (0, 1, 2, 8, 9)
RECOVER = ("undo", "checkpoint", "checkpoint:3", "recompute")


def sine(x, a, n):
    for i in range(n):
        x = a * math.sin(x) + 0.1
    return x * x


def cells(x, n):
    for i in range(n):
        x[i % 4] = math.sin(x[(i + 1) % 4]) * x[i % 4] + 0.3
    return np.sum(x * x)


def leapfrog(x, v, n):
    for i in range(n):
        v = v - 0.1 * math.sin(x)
        x = x + 0.1 * v
    return x * v


# -- second order

HESSIAN, HESSIAN_OF_CELLS = tp.hessian(sine, (0, 1)), tp.hessian(cells)


@pytest.mark.sampled(3)
@pytest.mark.parametrize("recover", RECOVER)
def test_hessian(recover: str) -> None:
    of_floats, of_arrays = tp.hessian(sine, (0, 1), recover=recover), tp.hessian(cells, recover=recover)
    for n in TRIPS:
        same(of_floats(0.7, 1.1, n), HESSIAN(0.7, 1.1, n), 1e-11)
        same(of_arrays(X, n), HESSIAN_OF_CELLS(X, n), 1e-11)


@pytest.mark.sampled(4, each="outer")
@pytest.mark.parametrize("inner", ["auto", *RECOVER])
@pytest.mark.parametrize("outer", ["checkpoint", "recompute"])
def test_gradient_of_a_gradient(outer: str, inner: str) -> None:
    twice = tp.grad(tp.grad(sine, recover=inner), (0, 1), recover=outer)
    plain = tp.grad(tp.grad(sine), (0, 1))
    for n in TRIPS:
        same(twice(0.7, 1.1, n), plain(0.7, 1.1, n), 1e-11)


def test_gradient_of_a_gradient_of_an_array() -> None:
    def norm(x, n):
        g = tp.grad(cells, recover="checkpoint")(x, n)
        return np.sum(g * g)

    def plain(x, n):
        g = tp.grad(cells, recover="store")(x, n)
        return np.sum(g * g)

    found, expected = tp.grad(norm, recover="checkpoint"), tp.grad(plain, recover="store")
    for n in TRIPS:
        same(found(X, n), expected(X, n), 1e-11)


def test_second_order_by_inversion() -> None:
    for n in TRIPS:
        expected = tp.hessian(leapfrog, (0, 1))(0.3, 0.2, n)
        same(tp.hessian(leapfrog, (0, 1), recover="invert")(0.3, 0.2, n), expected, 1e-9)


def test_gradient_of_a_gradient_by_inversion() -> None:
    twice = tp.grad(tp.grad(leapfrog, recover="invert"), (0, 1))
    for n in TRIPS:
        same(twice(0.3, 0.2, n), tp.grad(tp.grad(leapfrog), (0, 1))(0.3, 0.2, n), 1e-9)


@pytest.mark.sampled(3)
@pytest.mark.parametrize("memory", ["400B", "1KB", "1MB"])
def test_second_order_with_a_budget(memory: str) -> None:
    hessian, stored = tp.hessian(sine, (0, 1), memory=memory), tp.hessian(sine, (0, 1))
    for n in (0, 1, 2, 9, 27):
        same(hessian(0.7, 1.1, n), stored(0.7, 1.1, n), 1e-11)


@pytest.mark.thorough
@pytest.mark.parametrize("inner, outer", [("200B", None), (None, "2KB")])
def test_gradient_of_a_gradient_with_a_budget(inner: str | None, outer: str | None) -> None:
    twice, plain = tp.grad(tp.grad(sine, memory=inner), memory=outer), tp.grad(tp.grad(sine))
    for n in (0, 1, 2, 9, 27):
        same(twice(0.7, 1.1, n), plain(0.7, 1.1, n), 1e-11)


@pytest.mark.slow
def test_gradient_of_a_gradient_with_two_budgets() -> None:
    twice, plain = tp.grad(tp.grad(sine, memory="200B"), memory="2KB"), tp.grad(tp.grad(sine))
    for n in (0, 1, 2, 9, 27):
        same(twice(0.7, 1.1, n), plain(0.7, 1.1, n), 1e-11)


def test_third_order() -> None:
    third = tp.grad(tp.grad(tp.grad(sine, recover="checkpoint"), recover="recompute"))
    for n in (0, 1, 4):
        same(third(0.7, 1.1, n), tp.grad(tp.grad(tp.grad(sine)))(0.7, 1.1, n), 1e-10)


# -- other transforms


@pytest.mark.parametrize("recover", RECOVER)
def test_pullbacks(recover: str) -> None:
    def f(x):
        for i in range(9):
            x[i % 4] = math.sin(x[(i + 1) % 4]) * x[i % 4] + 0.3
        return x

    weights = np.array([1.0, 0.5, -2.0, 3.0])
    out, pullback = tp.vjp(f, X, recover=recover)
    expected, plain = tp.vjp(f, X)
    same(out, expected)
    for w in (weights, 2 * weights, np.eye(4)[1]):
        same(pullback(w), plain(w))
    same(tp.jacrev(f, recover=recover)(X), tp.jacfwd(f)(X), 1e-11)


def test_pullbacks_with_a_budget() -> None:
    def f(x):
        for i in range(30):
            x = math.sin(x) * 1.1
        return x

    same(tp.vjp(f, 0.7, memory="100B")[1](2.0), tp.vjp(f, 0.7)[1](2.0))
    out, pullback = tp.vjp(f, 0.7, memory="40B")
    with pytest.raises(tp.RecoveryError):
        pullback(1.0)


def test_hessian_times_vector() -> None:
    f = lambda x: cells(x, 9)
    v = np.array([1.0, -1.0, 0.5, 2.0])
    for options in ({"recover": "checkpoint"}, {"recover": "recompute"}, {"memory": "2KB"}):
        same(tp.hvp(f, (X,), (v,), **options), tp.hvp(f, (X,), (v,)), 1e-11)


def test_value_and_gradient_with_more() -> None:
    def f(x, n):
        k = 0
        for i in range(n):
            x = math.sin(x)
            k += 2
        return x, k

    for recover in RECOVER:
        (value, aux), slope = tp.value_and_grad(f, has_aux=True, recover=recover)(0.7, 9)
        assert aux == 18
        same((value, slope), (tp.value_and_grad(f, has_aux=True)(0.7, 9)[0][0], tp.grad(f, has_aux=True)(0.7, 9)[0]))


# -- in compiled code


def test_in_a_compiled_loop() -> None:
    def descend(recover: str):
        @tp.function
        def run(x, n):
            for i in range(5):
                x -= 0.1 * tp.grad(sine, recover=recover)(x, 1.1, n)
            return x

        return run

    expected = [descend("store")(0.7, n) for n in TRIPS]
    for recover in ("checkpoint:3", "recompute"):
        run = descend(recover)
        assert [run(0.7, n) for n in TRIPS] == pytest.approx(expected, rel=1e-12)


def test_a_budget_in_compiled_code() -> None:
    @tp.function
    def slope(x, n):
        return tp.grad(sine, memory="100B")(x, 1.1, n), tp.grad(cells, memory="1KB")(x + X, n)

    expected = (tp.grad(sine)(0.7, 1.1, 27), tp.grad(cells)(0.7 + X, 27))
    same(slope(0.7, 27), expected, 1e-11)


def test_gradients_through_a_gradient_step() -> None:
    def trained(rate, n):
        x = 0.7
        for i in tp.loop(range(n), recover="checkpoint"):
            x -= rate * tp.grad(sine, recover="recompute")(x, 1.1, 4)
        return x

    def plain(rate, n):
        x = 0.7
        for i in range(n):
            x -= rate * tp.grad(sine)(x, 1.1, 4)
        return x

    for n in TRIPS:
        same(tp.grad(trained)(0.1, n), tp.grad(plain)(0.1, n), 1e-11)


# -- checks


def test_with_checks() -> None:
    def f(x, n):
        for i in range(n):
            x[i % 4] = math.sin(x[(i + 1) % 4])
        return np.sum(x)

    for options in ({"recover": "checkpoint"}, {"recover": "recompute"}, {"memory": "500B"}):
        same(tp.grad(tp.function(f, check=True), **options)(X, 9), tp.grad(f)(X, 9))


@pytest.mark.parametrize("options", [{"recover": "checkpoint"}, {"recover": "recompute"}, {"memory": "200B"}])
def test_errors_of_the_loop_are_raised_once_and_first(options) -> None:
    def f(x, n):
        for i in range(n):
            x[i] = math.sin(x[0]) * x[i]
        return np.sum(x)

    with pytest.raises(IndexError, match="4"):
        tp.grad(f, **options)(X, 5)
    same(tp.grad(f, **options)(X, 4), tp.grad(f)(X, 4))


@pytest.mark.parametrize("recover", ["auto", "checkpoint", "checkpoint:3", "recompute"])
def test_adjoints_that_are_no_numbers(recover: str) -> None:
    def f(x, n):
        for i in range(n):
            x = math.sqrt(x) * math.sin(x)
        return x

    derived = tp.grad(tp.function(f, debug_nans=True), recover=recover)
    same(derived(0.5, 5), tp.grad(f)(0.5, 5))

    def zero(x, n):
        for i in range(n):
            x = np.sqrt(x * x) / x * x
        return x

    with pytest.raises(FloatingPointError, match="NaN"):
        tp.grad(tp.function(zero, debug_nans=True), recover=recover)(0.0, 5)


@pytest.mark.parametrize("options", [{"recover": "checkpoint"}, {"recover": "recompute"}, {"memory": "200B"}])
def test_nothing_is_printed_again(options, capfd) -> None:
    def f(x, n):
        for i in range(n):
            x = math.sin(x)
            print("step", i)
        return x

    tp.grad(f, **options)(0.5, 9)
    assert capfd.readouterr().out.splitlines() == [f"step {i}" for i in range(9)]


@pytest.mark.thorough
def test_as_it_is_shipped(optimized: None) -> None:
    """With LLVM's optimiser."""
    for options in ({"recover": "checkpoint"}, {"recover": "recompute"}, {"memory": "400B"}, {"memory": "1KB"}):
        derived = tp.grad(cells, **options)
        for n in (0, 1, 2, 9, 27, 64):
            same(derived(X, n), tp.grad(cells, recover="store")(X, n), 1e-11)
