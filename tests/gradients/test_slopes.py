"""Kinks, infinite slopes, and what is not taken: it contributes nothing."""

import math

import numpy as np
import pytest

import tapeless as tp
from tests.gradients.jacobians import check

INF = math.inf


def gradients(f, *args):
    """By columns and by rows, of a function that gives one number, by its first argument."""
    return [np.asarray(tp.jacfwd(f)(*args)), np.asarray(tp.grad(f)(*args))]


def expect(f, *args, gradient) -> None:
    for found in gradients(f, *args):
        np.testing.assert_allclose(found, gradient, rtol=1e-12, atol=1e-12)


def array(*values):
    return np.array(values, float)


# -- kinks and infinite slopes


@pytest.mark.parametrize(
    "f, x, slope",
    [
        (lambda x: abs(x), 0.0, 0),
        (lambda x: np.abs(x), 0.0, 0),
        (lambda x: max(x, 0.0), 0.0, 1),
        (lambda x: max(0.0, x), 0.0, 0),
        (lambda x: np.sqrt(x), 0.0, INF),
        (lambda x: x**0.5, 0.0, INF),
        (lambda x: np.cbrt(x), 0.0, INF),
        (lambda x: np.hypot(x, 0.0), 0.0, 0),
        (lambda x: x**0, 0.0, 0),
        (lambda x: x**0.0, 0.0, 0),
        (lambda x: x**1, 0.0, 1),
        (lambda x: x**1.0, 0.0, 1),
        (lambda x: x**2, 0.0, 0),
        (lambda x: x**3, -2.0, 12),
        (lambda x: np.sign(x) + np.floor(x) + np.round(x), 1.0, 0),
        (lambda x: np.log(x), 0.0, INF),
    ],
)
def test_slopes_at_points(f, x, slope) -> None:
    expect(f, x, gradient=slope)


@pytest.mark.parametrize(
    "x, y, expected", [(0.0, 0.0, (0, 0)), (0.0, 1.0, (1, 0)), (0.0, 2.0, (0, 0)), (2.0, 0.0, (0, math.log(2)))]
)
def test_powers_at_zero(x, y, expected) -> None:
    def f(x, y):
        return x**y

    np.testing.assert_allclose(tp.grad(f, (0, 1))(x, y), expected, atol=1e-15)
    np.testing.assert_allclose(tp.jacfwd(f, (0, 1))(x, y), expected, atol=1e-15)


def test_second_derivative_of_a_power_at_zero() -> None:
    for n, expected in ((2, 2.0), (3, 0.0), (1, 0.0), (0, 0.0)):
        assert tp.grad(tp.grad(lambda x: x**n))(0.0) == expected
    assert tp.grad(tp.grad(lambda x: x**2.0))(0.0) == 2.0


# -- what is not taken contributes nothing


def test_branch_that_is_not_taken() -> None:
    def root(x):
        if x > 0:
            return math.sqrt(x)
        return 0.0

    expect(root, 0.0, gradient=0)
    expect(lambda x: np.sqrt(x) if x > 0 else x, 0.0, gradient=1)
    expect(lambda x: x[0] / x[1] if x[1] != 0 else x[0], array(3, 0), gradient=[1, 0])


def test_element_that_is_not_taken() -> None:
    """The infinite slope at 0 is of an element that the maximum does not choose."""
    expect(lambda x: tp.reduce(max, -INF, tp.map(lambda e: np.sqrt(e), x)), array(4, 0), gradient=[0.25, 0])
    expect(lambda x: np.max(np.sqrt(x)), array(0, 4), gradient=[0, 0.25])


def test_where_of_an_infinite_slope() -> None:
    expect(lambda x: np.sum(np.where(x > 0, np.sqrt(x), 0.0)), array(4, 0), gradient=[0.25, 0])
    expect(lambda x: np.where(x > 0, np.log(x), x), 0.0, gradient=1)


def test_where_of_values_that_are_not_there() -> None:
    """The arm that is not taken is NaN or overflows, and so are its slopes."""
    expect(lambda x: np.sum(np.where(x > 0, np.sqrt(x), x)), array(4, -4), gradient=[0.25, 1])
    expect(lambda x: np.sum(np.where(x < 100, np.exp(x), 0.0)), array(0, 1000), gradient=[1, 0])
    expect(lambda x: np.sum(np.where(x != 0, np.sin(x) / x, 1.0)), array(math.pi, 0), gradient=[-1 / math.pi, 0])


def test_where_of_a_product_with_an_infinite_value() -> None:
    expect(lambda x: np.sum(np.where(x > 0, x * np.log(x), 0.0)), array(1, 0), gradient=[1, 0])


@pytest.mark.parametrize(
    ("f", "outside"),
    [
        (lambda x: np.where(x > 0, x * np.sqrt(x), 0.0), -1.0),
        (lambda x: np.where(x > 0, x * x * np.sqrt(x), x), -1.0),
        (lambda x: np.where(x < 1, x * np.arccos(x), 0.0), 2.0),
        (lambda x: np.where(x > 0, np.sin(x) * np.power(x, 0.7), 0.0), -2.0),
        (lambda x: np.where(x > 0, x * np.log1p(x - 1.0), 0.0), -1.5),
        (lambda x: np.where(x > 0, x * np.sqrt(x) * np.sqrt(x), 0.0), -1.0),
    ],
)
def test_where_of_a_product_with_a_value_that_is_not_there(f, outside) -> None:
    slope = tp.grad(f)(outside)
    assert slope == (1.0 if f(outside) == outside else 0.0)
    assert tp.jvp(f, (outside,), (1.0,))[1] == slope
    inside = 0.4
    assert tp.grad(f)(inside) == pytest.approx((f(inside + 1e-6) - f(inside - 1e-6)) / 2e-6, rel=1e-6)


def in_a_branch(x):
    return np.where(x > 0, x * np.log(x), 0.0) * 2.0 if x < 5 else x


def in_a_loop(x):
    y = 0.0
    for _ in range(2):
        y += np.where(x > 0, x * np.log(x), 0.0)
    return y


def in_a_while(x):
    y, k = 0.0, 0
    while k < 2:
        y += np.where(x > 0, x * np.log(x), 0.0)
        k += 1
    return y


def in_a_branch_of_a_loop(x):
    y = 0.0
    for i in range(3):
        if i != 1:
            y += np.where(x > 0, x * np.log(x), 0.0)
    return y


@pytest.mark.parametrize("f", [in_a_branch, in_a_loop, in_a_while, in_a_branch_of_a_loop])
def test_where_of_a_product_with_an_infinite_value_in_regions(f) -> None:
    expect(f, 0.0, gradient=0)
    expect(f, 1.0, gradient=2)


def test_norm_of_zeros() -> None:
    expect(lambda x: np.linalg.norm(x), array(0, 0), gradient=[0, 0])
    expect(lambda x: np.std(x), array(1, 1), gradient=[0, 0])


def test_derivatives_of_a_slope_where_the_adjoint_is_zero() -> None:
    """The adjoint of the root vanishes at 1, its derivative does not."""
    f = lambda x: (np.sqrt(x) - 1) ** 2
    for nest in (lambda f: tp.grad(tp.grad(f)), lambda f: tp.jacfwd(tp.grad(f)), lambda f: tp.jacfwd(tp.jacfwd(f))):
        np.testing.assert_allclose(nest(f)(1.0), 0.5)


def test_elements_that_are_not_asked_for() -> None:
    expect(lambda x: np.sqrt(x)[1], array(0, 4), gradient=[0, 0.25])
    check(lambda x: np.sqrt(x), array(0, 4), jacobian=[[INF, 0], [0, 0.25]], differ=False)
    check(lambda x: np.log(x), array(0, 4), jacobian=[[INF, 0], [0, 0.25]], differ=False)


def test_one_infinite_slope_leaves_the_others_alone() -> None:
    expect(lambda x: np.sum(np.sqrt(x)), array(0, 4), gradient=[INF, 0.25])
    expect(lambda x: np.sqrt(x[0]) + x[1], array(0, 4), gradient=[INF, 1])


def test_overwritten_result_of_an_infinite_slope() -> None:
    def f(x):
        y = np.sqrt(x)
        y[0] = 1.0
        return np.sum(y)

    expect(f, array(0, 4), gradient=[0, 0.25])


# -- a number times its own root


def test_a_number_times_its_own_root() -> None:
    for f in (lambda x: x * np.sqrt(x), lambda x: np.sqrt(x) * x):
        expect(f, 4.0, gradient=3.0)
        expect(f, 0.0, gradient=0.0)
        expect(f, INF, gradient=INF)
        assert np.isclose(tp.grad(tp.grad(f))(4.0), 0.375)
        assert np.isclose(tp.jacfwd(tp.grad(f))(4.0), 0.375)
    expect(lambda x: x * np.sqrt(x + 1.0), 3.0, gradient=2.75)  # of another number
    expect(lambda x: np.sum(np.where(x > 0, 1.0 / (x * np.sqrt(x)), x)), array(4, 0), gradient=[-1.5 / 32, 1])
    z = 3.0 + 4.0j
    slope = 1.5 * np.sqrt(z)
    re, im = tp.grad(lambda a, b: ((a + 1j * b) * np.sqrt(a + 1j * b)).real, argnums=(0, 1))(3.0, 4.0)
    np.testing.assert_allclose([re, im], [slope.real, -slope.imag], rtol=1e-12)


def test_the_slope_of_a_number_times_its_own_root_has_no_division() -> None:
    text = tp.grad(lambda x: x * math.sqrt(x)).ir(2.0, stage="optimized")
    assert "div" not in text and "reciprocal" not in text, text
