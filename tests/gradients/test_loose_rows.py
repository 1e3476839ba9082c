"""What is run again for slopes alone takes rows that do with less: Note [Loose rows] of `ops.table`."""

import re

import numpy as np
import pytest
from scipy.special import expit

import tapeless as tp

X, W = np.linspace(-1.5, 2.0, 41), np.linspace(0.3, 1.2, 41)
FEW = (X[::10], W[::10])  # differences are taken of each element


def rows(gradient, *args):
    """How often each row that has to do with tanh is there."""
    text = gradient.ir(*args, stage="optimized")
    return {name: len(re.findall(rf"= {name} ", text)) for name in ("tanh", "loose_tanh", "sech2", "cosh")}


def stepped(x, w, n):
    for _ in range(n):
        x = w * np.tanh(x) - 0.1 * x
    return (x * x).sum()


def decided(x, w, n):
    total = 0.0
    for _ in range(n):
        t = np.tanh(x)
        total += np.where(t < 0.5, t * w, 2.0 * t).sum()
        x = x * w
    return total


def once(x, w):
    return (np.tanh(x * w) * w).sum()


@pytest.mark.thorough
def test_run_again_for_slopes() -> None:
    gradient = tp.grad(tp.function(stepped, threads=1), argnums=(0, 1))
    assert rows(gradient, X, W, 3) == {"tanh": 1, "loose_tanh": 1, "sech2": 1, "cosh": 0}
    tp.check_grads(lambda x, w: stepped(x, w, 3), FEW, order=3)


def test_a_function_and_its_slope_share_what_they_call() -> None:
    """With the function for the adjoint of w there is no call more than with the slope alone."""

    def calls(argnums):
        text = tp.grad(tp.function(stepped, threads=1), argnums=argnums).ir(X, W, 3, stage="llvm")
        return len(re.findall(r"call [^\n]*expm1\(", text))

    assert calls(0) == calls((0, 1)) > 0


def test_what_decides_is_run_again_as_it_was() -> None:
    gradient = tp.grad(tp.function(decided, threads=1), argnums=(0, 1))
    assert rows(gradient, X, W, 3)["loose_tanh"] == 0
    tp.check_grads(lambda x, w: decided(x, w, 3), FEW)


def test_values_are_the_same_with_a_gradient_and_without() -> None:
    f = tp.function(once, threads=1)
    both = tp.value_and_grad(f, argnums=(0, 1))
    assert rows(both, X, W) == {"tanh": 1, "loose_tanh": 0, "sech2": 1, "cosh": 0}
    assert both(X, W)[0] == f(X, W)


@pytest.mark.parametrize("x", [-1000.0, -360.0, -30.0, -1e-9, 0.0, 1e-300, 25.0, 350.0, 710.0, 1e300])
def test_slopes_far_out(x: float) -> None:
    """Neither NaN nor cut off, in either mode, and to the second order."""
    e = np.exp(-2 * abs(x))
    slope = 4 * e / (1 + e) ** 2
    array = np.full(9, x)
    np.testing.assert_allclose(tp.grad(lambda x: np.tanh(x).sum())(array), slope, rtol=1e-14, atol=1e-307)
    np.testing.assert_allclose(tp.grad(np.tanh)(x), slope, rtol=1e-14, atol=1e-307)
    np.testing.assert_allclose(tp.jacfwd(np.tanh)(x), slope, rtol=1e-14, atol=1e-307)
    np.testing.assert_allclose(tp.grad(tp.grad(np.tanh))(x), -2 * np.tanh(x) * slope, rtol=1e-14, atol=1e-307)


def test_complex_operands_keep_their_rows() -> None:
    def loss(z, n):
        for _ in range(n):
            z = np.tanh(z) * (0.5 + 0.2j)
        return np.abs(z).sum()

    z = np.array([0.3 + 0.4j, -0.2 + 0.1j])
    assert rows(tp.grad(loss), z, 2)["loose_tanh"] == rows(tp.grad(loss), z, 2)["sech2"] == 0


@pytest.mark.sampled(2)
@pytest.mark.parametrize(
    "f",
    [
        lambda x, w: np.logaddexp(x, w).sum(),
        lambda x, w: (np.logaddexp(0.0, x) * w).sum(),
        lambda x, w: (expit(x) * w).sum(),
        lambda x, w: (w / (1.0 + np.exp(-x))).sum(),
    ],
    ids=["logaddexp", "softplus", "expit", "logistic"],
)
def test_slopes_make_do_with_the_calls_of_the_function(f) -> None:
    def calls(function):
        return len(re.findall(r"call [^\n]*exp\(", function.ir(X, W, stage="llvm")))

    plain = tp.function(f, threads=1)
    both = tp.value_and_grad(plain, argnums=(0, 1))
    assert calls(both) == calls(plain) > 0
    tp.check_grads(f, FEW)
