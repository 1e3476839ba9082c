"""Transforms of transforms, and transforms inside compiled code."""

import math

import numpy as np
import pytest

import tapeless as tp
from tests.gradients.jacobians import flat, like

X = np.array([0.7, -1.3, 2.1, 0.4])
RANDOM = np.random.default_rng(7)


def array(*values):
    return np.array(values, float)


# -- orders


@pytest.mark.parametrize("x", [0.3, -1.2])
def test_four_derivatives(x) -> None:
    f = lambda x: math.sin(x) * x
    expected = [
        math.sin(x) + x * math.cos(x),
        2 * math.cos(x) - x * math.sin(x),
        -3 * math.sin(x) - x * math.cos(x),
        -4 * math.cos(x) + x * math.sin(x),
    ]
    backward, mixed = f, f
    for k, value in enumerate(expected):
        backward = tp.grad(backward)
        mixed = tp.grad(mixed) if k % 2 else tp.jacfwd(mixed)
        np.testing.assert_allclose(backward(x), value, rtol=1e-12)
        np.testing.assert_allclose(mixed(x), value, rtol=1e-12)


def through_a_loop(x):
    p = 1.0
    for i in range(5):
        p = p * x
    return p


def through_a_while(x):
    p = x
    while p < 100.0:
        p = p * x
    return p


def through_an_array(x):
    y = np.ones(6)
    for i in range(1, 6):
        y[i] = y[i - 1] * x
    return y[5]


def through_a_branch(x):
    y = x * x
    if y > 1:
        y = y * x
    return y * x * x


def through_a_map(x):
    return np.sum(tp.map(lambda e: e * x**5, array(0.25, 0.75)))


def through_a_reduction(x):
    return tp.reduce(lambda a, b: a * b, 1.0, np.full(5, x))


def through_a_scan(x):
    return tp.scan(lambda a, b: a * b, 1.0, np.full(5, x))[4]


def through_a_gather(x):
    y = np.full(3, x) * array(1, 2, 3)
    z = y[np.array([0, 0, 1, 2, 0])] / array(1, 1, 2, 3, 1)
    return z[0] * z[1] * z[2] * z[3] * z[4]


def through_a_parallel_loop(x):
    y = np.zeros(4)
    s = 0.0
    for i in tp.prange(4):
        y[i] = x**2
        s += x**3 / 4
    return y[1] * s


POWERS = [
    through_a_loop, through_an_array, through_a_branch, through_a_map, through_a_reduction, through_a_scan,
    through_a_gather, through_a_parallel_loop,
]  # fmt: skip

NESTINGS = {
    "reverse over reverse over reverse": lambda f: tp.grad(tp.grad(tp.grad(f))),
    "forward over reverse over reverse": lambda f: tp.jacfwd(tp.grad(tp.grad(f))),
    "reverse over forward over reverse": lambda f: tp.grad(tp.jacfwd(tp.grad(f))),
    "reverse over reverse over forward": lambda f: tp.grad(tp.grad(tp.jacfwd(f))),
}


@pytest.mark.sampled(4, each="nesting")
@pytest.mark.parametrize("nesting", NESTINGS)
@pytest.mark.parametrize("f", POWERS)
def test_third_derivative_of_a_fifth_power(f, nesting) -> None:
    np.testing.assert_allclose(NESTINGS[nesting](f)(1.5), 60 * 1.5**2, rtol=1e-11)


def test_third_derivative_through_a_while() -> None:
    """3 ** 5 is the first power of 3 that is at least 100."""
    for nest in NESTINGS.values():
        np.testing.assert_allclose(nest(through_a_while)(3.0), 60 * 3.0**2, rtol=1e-11)


# -- Hessians


def f_loop(x):
    s = 1.0
    for i in range(len(x)):
        s = s * math.cos(x[i]) + x[i] ** 2 * x[0]
    return s


def f_update(x):
    for i in range(1, len(x)):
        x[i] = x[i] * x[i - 1] + math.sin(x[i - 1])
    return np.sum(x * x)


def f_map(x):
    y = tp.map(lambda e: e * np.sum(np.sin(x)) + e**3, x)
    return np.dot(y, y)


def f_gather(x):
    k = np.array([2, 0, 2, 1])
    return np.sum(x[k] ** 2 * x) * x[3]


def f_scan(x):
    return np.sum(tp.scan(lambda a, b: a * b + a + b, 0.0, x) ** 2)


def f_linalg(x):
    a = np.outer(x, x) + 5 * np.eye(4)
    return np.linalg.slogdet(a)[1] + x @ np.linalg.solve(a, x)


def f_histogram(x):
    h = tp.hist(lambda a, b: a * b, 1.0, 2, np.array([0, 1, 0, 1]), x)
    return h[0] * h[0] * h[1]


FUNCTIONS = [f_loop, f_update, f_map, f_gather, f_scan, f_linalg, f_histogram]


def differences_of_gradients(f, x, h=1e-5):
    """Of gradients that are differences of plain Python in their turn: four digits."""

    def gradient(x):
        return [(f(x + h * e) - f(x - h * e)) / (2 * h) for e in np.eye(len(x))]

    step = 1e-3
    rows = [np.subtract(gradient(x + step * e), gradient(x - step * e)) / (2 * step) for e in np.eye(len(x))]
    return np.array(rows)


@pytest.mark.thorough
@pytest.mark.sampled(3)
@pytest.mark.parametrize("f", FUNCTIONS)
def test_hessians_in_every_nesting(f) -> None:
    expected = tp.hessian(f)(X)
    np.testing.assert_allclose(expected, differences_of_gradients(f, X), rtol=1e-3, atol=1e-3)
    np.testing.assert_allclose(expected, expected.T, rtol=1e-10, atol=1e-10)
    for found in (
        tp.jacrev(tp.grad(f))(X),
        tp.jacfwd(tp.jacfwd(f))(X),
        tp.jacrev(tp.jacfwd(f))(X),
    ):
        np.testing.assert_allclose(found, expected, rtol=1e-10, atol=1e-10)
    v = array(1, -2, 0.5, 3)
    gradient, product = tp.hvp(f, (X,), (v,))
    np.testing.assert_allclose(gradient, tp.grad(f)(X), rtol=1e-12)
    np.testing.assert_allclose(product, expected @ v, rtol=1e-10, atol=1e-10)
    twice = tp.grad(lambda x: np.dot(tp.grad(f)(x), v))(X)
    np.testing.assert_allclose(twice, expected @ v, rtol=1e-10, atol=1e-10)


def test_hessian_of_several_arguments() -> None:
    def f(x, y):
        return x**2 * y**3

    assert tp.hessian(f, argnums=(0, 1))(2.0, 3.0) == ((2 * 27, 2 * 2 * 27), (2 * 2 * 27, 4 * 6 * 3))
    gradient, product = tp.hvp(f, (2.0, 3.0), (1.0, 10.0))
    assert gradient == (108.0, 108.0)
    assert product == (54.0 + 1080.0, 108.0 + 720.0)


# -- perturbation confusion


def test_perturbation_confusion() -> None:
    """d/dx (x * d/dy (x + y)) is 1, not 2."""
    for outer in (tp.grad, tp.jacfwd, tp.jacrev):
        for inner in (tp.grad, tp.jacfwd, tp.jacrev):
            assert outer(lambda x: x * inner(lambda y: x + y)(1.0))(1.0) == 1.0
            assert outer(lambda x: x * inner(lambda y: x * y)(x))(3.0) == 6.0


def test_inner_derivative_by_the_same_variable() -> None:
    def f(x):
        return tp.grad(lambda y: y**3 * x)(x)

    assert tp.grad(f)(2.0) == 9 * 4.0
    assert tp.function(f)(2.0) == 24.0


def test_closed_over_array_is_a_constant() -> None:
    def f(x):
        return np.sum(tp.grad(lambda y: np.sum(x * y * y))(x))

    np.testing.assert_allclose(tp.function(f)(X), np.sum(2 * X * X))
    np.testing.assert_allclose(tp.grad(f)(X), 4 * X)


def test_perturbations_in_a_map() -> None:
    def f(x):
        return np.sum(tp.map(lambda a: tp.grad(lambda b: a * b * b * x[0])(a), x))

    np.testing.assert_allclose(tp.grad(f)(X), [*(2 * 2 * X * X[0])] + np.array([np.sum(2 * X * X), 0, 0, 0]))


# -- transforms inside compiled code


def test_optimiser_in_a_compiled_loop() -> None:
    @tp.function
    def minimise(x, steps, rate):
        def cost(x):
            return np.sum((x - 3.0) ** 2) + x[0] ** 2

        for i in range(steps):
            x = x - rate * tp.grad(cost)(x)
        return x

    np.testing.assert_allclose(minimise(np.zeros(3), 500, 0.1), [1.5, 3, 3], atol=1e-9)


def test_newton_in_a_compiled_while() -> None:
    @tp.function
    def root(c):
        def f(x):
            return x**3 - c

        x, k = 1.0, 0
        while abs(f(x)) > 1e-13 and k < 50:
            x = x - f(x) / tp.grad(f)(x)
            k += 1
        return x

    np.testing.assert_allclose(root(5.0), 5 ** (1 / 3), rtol=1e-13)
    np.testing.assert_allclose(tp.grad(root)(5.0), 5 ** (-2 / 3) / 3, rtol=1e-6)


def test_hyperparameter_through_the_optimiser() -> None:
    """x after n steps from 0 is 1 - (1 - 2 r) ** n."""

    def final(rate):
        x = 0.0
        for i in range(5):
            x = x - rate * tp.grad(lambda y: (y - 1) ** 2)(x)
        return x

    np.testing.assert_allclose(tp.grad(final)(0.1), 10 * 0.8**4, rtol=1e-12)
    np.testing.assert_allclose(tp.jacfwd(final)(0.1), 10 * 0.8**4, rtol=1e-12)


def test_every_transform_inside_a_function() -> None:
    def g(x):
        return x[0] ** 2 * x[1]

    @tp.function
    def all_of_them(x, v):
        value, pullback = tp.vjp(g, x)
        (first,) = pullback(1.0)
        (second,) = pullback(2.0)
        out, tangent = tp.jvp(g, (x,), (v,))
        again, linear = tp.linearize(g, x)
        _, product = tp.hvp(g, (x,), (v,))
        both = tp.value_and_grad(g)(x)
        return value, first, second, tangent, linear(v), product, tp.hessian(g)(x), tp.jacrev(g)(x), both

    value, first, second, tangent, linear, product, hessian, jacobian, both = all_of_them(array(2, 3), array(1, 10))
    gradient, second_derivatives = array(12, 4), array(6, 4, 4, 0).reshape(2, 2)
    assert value == 12 and both[0] == 12
    for found, expected in [
        (first, gradient), (second, 2 * gradient), (tangent, 52), (linear, 52), (product, second_derivatives @ [1, 10]),
        (hessian, second_derivatives), (jacobian, gradient), (both[1], gradient),
    ]:  # fmt: skip
        np.testing.assert_allclose(found, expected)


def test_gradient_of_rows_in_a_map() -> None:
    def f(a):
        return tp.map(lambda row: tp.grad(lambda r: np.prod(r))(row), a)

    a = np.array([[2.0, 3, 4], [1, 0, 5]])
    np.testing.assert_allclose(tp.function(f)(a), [[12, 8, 6], [0, 5, 0]])
    np.testing.assert_allclose(tp.vmap(tp.grad(lambda r: np.prod(r)))(a), [[12, 8, 6], [0, 5, 0]])


# -- pullbacks, linear maps, constants


def test_pullback_called_many_times() -> None:
    def f(x):
        y = x.copy()
        for i in range(1, len(x)):
            y[i] = y[i] * y[i - 1]
        return y

    _, pullback = tp.vjp(f, X)
    jacobian = tp.jacfwd(f)(X)
    for _ in range(3):
        for row, unit in zip(jacobian, np.eye(4), strict=True):
            np.testing.assert_allclose(pullback(unit)[0], row)


def test_linear_map_of_linearize() -> None:
    def f(x, y):
        return x * y, np.sum(x)

    out, linear = tp.linearize(f, X, 2.0)
    np.testing.assert_allclose(out[0], 2 * X)
    for a, b in [(np.ones(4), 0.0), (np.zeros(4), 1.0), (X, -3.0)]:
        first, second = linear(a, b)
        np.testing.assert_allclose(first, 2 * a + X * b)
        np.testing.assert_allclose(second, np.sum(a), atol=1e-15)


def test_stop_gradient() -> None:
    assert tp.grad(lambda x: tp.stop_gradient(x) * x)(3.0) == 3.0
    assert tp.grad(lambda x: tp.stop_gradient(x * x))(3.0) == 0.0
    assert tp.jvp(lambda x: tp.stop_gradient(x) * x, (3.0,), (1.0,)) == (9.0, 3.0)
    assert tp.grad(tp.grad(lambda x: tp.stop_gradient(x) * x * x))(3.0) == 6.0
    g = tp.grad(lambda p: np.sum(tp.stop_gradient(p)["a"] * p["a"] * tp.stop_gradient(p["b"])))({"a": X, "b": 2.0})
    np.testing.assert_allclose(g["a"], 2 * X)
    assert g["b"] == 0.0
    assert tp.stop_gradient(3.0) == 3.0


def test_stop_gradient_of_a_carried_value() -> None:
    def f(x):
        s = x
        for i in range(3):
            s = tp.stop_gradient(s) * x
        return s

    assert tp.grad(f)(2.0) == 2.0**3
    assert tp.jacfwd(f)(2.0) == 2.0**3


def running(x):
    return np.cumprod(np.cumsum(x)), np.sort(x), np.linalg.norm(x)


@pytest.mark.sampled(3)
@pytest.mark.parametrize("f", [*map(tp.grad, FUNCTIONS), running], ids=lambda f: f.__name__)
def test_forward_and_reverse_are_adjoint(f) -> None:
    """<w, J v> == <J^T w, v>; the Jacobian of a gradient is the Hessian."""
    for _ in range(2):
        v = RANDOM.normal(size=4)
        out, tangent = tp.jvp(f, (X,), (v,))
        w = like(out, RANDOM.normal(size=flat(out).size))
        (adjoint,) = tp.vjp(f, X)[1](w)
        np.testing.assert_allclose(np.dot(flat(w), flat(tangent)), np.dot(adjoint, v), rtol=1e-10)


@pytest.mark.parametrize("transform", [tp.jacfwd, tp.jacrev])
def test_a_jacobian_runs_its_function_once(transform):
    """A function that may raise stays even where nobody uses its value: it must not be there twice."""

    def falling(x):
        steps = 0
        while x > 1.0:
            x = x - 1.0 / math.sqrt(x)
            steps += 1
        return x * steps

    def loops(f):
        return tp.function(f).ir(5.0, stage="optimized").count("while")

    jacobian = transform(falling)
    assert loops(jacobian) == (1 if transform is tp.jacfwd else loops(tp.grad(falling)))
    assert np.isclose(jacobian(5.0), (falling(5.0 + 1e-6) - falling(5.0 - 1e-6)) / 2e-6, rtol=1e-6)
