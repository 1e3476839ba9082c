"""What goes into transforms and what comes out: containers, argnums, aux, element types, closures, arrays that stay."""

import copy
import math
from dataclasses import dataclass
from typing import Any, NamedTuple

import numpy as np
import pytest

import tapeless as tp
from tapeless.transforms import jacobians
from tests.gradients.jacobians import leaves, same_arguments

X = np.array([0.7, -1.3, 2.1, 0.4])


class Layer(NamedTuple):
    weights: Any
    bias: Any


@dataclass
class Model:
    first: Any
    scale: Any


def loss(p, x):
    y = np.tanh(p["layer"].weights @ x + p["layer"].bias)
    return np.sum(y * y) * p["scale"][0] + p["scale"][1]


def parameters() -> dict[str, Any]:
    return {"layer": Layer(np.array([[0.1, 0.2], [0.3, -0.4]]), np.array([0.5, -0.6])), "scale": (2.0, 3.0)}


# -- containers


def test_gradient_has_the_structure_of_its_argument() -> None:
    p, x = parameters(), np.array([1.0, 2.0])
    g = tp.grad(loss)(p, x)
    y = np.tanh(p["layer"].weights @ x + p["layer"].bias)
    inner = 2.0 * 2 * y * (1 - y * y)
    assert list(g) == ["layer", "scale"] and isinstance(g["layer"], Layer) and isinstance(g["scale"], tuple)
    np.testing.assert_allclose(g["layer"].weights, np.outer(inner, x))
    np.testing.assert_allclose(g["layer"].bias, inner)
    np.testing.assert_allclose(g["scale"], (np.sum(y * y), 1.0))


def test_dataclasses_and_lists() -> None:
    def f(m):
        return m.first[0] * m.first[1] * m.scale

    g = tp.grad(f)(Model([2.0, 3.0], 5.0))
    assert isinstance(g, Model) and isinstance(g.first, list)
    assert (g.first, g.scale) == ([15.0, 10.0], 6.0)


def test_jacobian_of_a_tuple_by_a_tuple() -> None:
    """Result first, then argument, then axes of the result, then axes of the argument."""

    def f(x, y):
        return x * y, {"sum": np.sum(x), "outer": np.outer(x, x)}

    x = np.array([2.0, 3.0])
    for transform in (tp.jacfwd, tp.jacrev, tp.jacobian):
        (dx, dy), rest = transform(f, argnums=(0, 1))(x, 5.0)
        np.testing.assert_allclose(dx, 5 * np.eye(2))
        np.testing.assert_allclose(dy, x)
        np.testing.assert_allclose(rest["sum"][0], [1, 1])
        assert rest["sum"][1] == 0
        assert rest["outer"][0].shape == (2, 2, 2)
        np.testing.assert_allclose(rest["outer"][0][0, 1], [3, 2])
        np.testing.assert_allclose(rest["outer"][1], np.zeros((2, 2)))


def test_pullback_takes_the_structure_of_the_result() -> None:
    def f(x, y):
        return {"a": x * y, "b": (np.sum(x), y)}

    x = np.array([2.0, 3.0])
    out, pullback = tp.vjp(f, x, 5.0)
    np.testing.assert_allclose(out["a"], x * 5)
    gx, gy = pullback({"a": np.array([1.0, 10.0]), "b": (100.0, 1000.0)})
    np.testing.assert_allclose(gx, [105, 150])
    assert gy == 2 + 30 + 1000


def test_tangent_has_the_structure_of_the_result() -> None:
    def f(p):
        return [p[0] * p[1], (p[1],)]

    out, tangent = tp.jvp(f, ((2.0, 3.0),), ((1.0, 10.0),))
    assert out == [6.0, (3.0,)] and tangent == [23.0, (10.0,)]


# -- argnums, aux, keywords


def product(x, y, z):
    return x * y * z


@pytest.mark.parametrize(
    "argnums, expected",
    [(0, 15.0), (1, 10.0), (-1, 6.0), ((0, 2), (15.0, 6.0)), ((2, 0), (6.0, 15.0)), ((1,), (10.0,)), ([0, 1], (15.0, 10.0)), ((1, 1), (10.0, 10.0))],
)  # fmt: skip
def test_argnums(argnums, expected) -> None:
    assert tp.grad(product, argnums)(2.0, 3.0, 5.0) == expected
    value, gradient = tp.value_and_grad(product, argnums=argnums)(2.0, 3.0, 5.0)
    assert (value, gradient) == (30.0, expected)


def test_argnums_of_containers_out_of_order() -> None:
    def f(p, q):
        return p[0] * q["a"] + p[1]

    g = tp.grad(f, (1, 0))((2.0, 3.0), {"a": 5.0})
    assert g == ({"a": 2.0}, (5.0, 1.0))
    assert tp.jacfwd(f, (1, 0))((2.0, 3.0), {"a": 5.0}) == g


def test_aux() -> None:
    def f(x):
        return x * x, {"cube": x**3, "count": 7}

    assert tp.grad(f, has_aux=True)(2.0) == (4.0, {"cube": 8.0, "count": 7})
    assert tp.value_and_grad(f, has_aux=True)(2.0) == ((4.0, {"cube": 8.0, "count": 7}), 4.0)
    assert tp.jacrev(f, has_aux=True)(2.0) == (4.0, {"cube": 8.0, "count": 7})


def test_aux_contributes_nothing() -> None:
    def f(x):
        y = x * x
        return y, np.sqrt(y - 4.0)

    gradient, aux = tp.grad(f, has_aux=True)(2.0)
    assert gradient == 4.0 and aux == 0.0


def test_keywords_and_static_arguments() -> None:
    def f(x, n, *, mode, scale=1.0):
        return x**n * scale if mode == "power" else x

    assert tp.grad(f)(2.0, 3, mode="power", scale=10.0) == 120.0
    assert tp.grad(f)(2.0, 3, mode="plain") == 1.0


def test_integers_beside_the_differentiated_argument() -> None:
    def f(x, k):
        return np.sum(x[k] ** 2)

    np.testing.assert_allclose(tp.grad(f)(X, np.array([0, 0, 3])), [2 * 2 * 0.7, 0, 0, 2 * 0.4])


# -- element types


@pytest.mark.parametrize("dtype", [np.float32, np.float64])
def test_arrays_keep_their_element_type(dtype) -> None:
    def f(x):
        return np.sum(x * x * 0.5)

    x = X.astype(dtype)
    for g in (tp.grad(f)(x), tp.vjp(f, x)[1](dtype(1))[0], tp.jacfwd(f)(x), tp.jacrev(f)(x)):
        assert isinstance(g, np.ndarray) and g.dtype == dtype
        np.testing.assert_allclose(g, x)
    assert tp.hessian(f)(x).dtype == dtype


@pytest.mark.parametrize("kind", [float, np.float32, np.float64])
def test_numbers_keep_their_type(kind) -> None:
    def f(x):
        return x * x

    assert tp.grad(f)(kind(3)) == 6
    assert type(tp.grad(f)(kind(3))) is kind
    assert type(tp.vjp(f, kind(3))[1](kind(1))[0]) is kind


def test_each_argument_has_its_own_element_type() -> None:
    def f(x, y):
        return np.sum(x * y)

    gx, gy = tp.grad(f, (0, 1))(X.astype(np.float32), X)
    assert (gx.dtype, gy.dtype) == (np.float32, np.float64)


def test_strided_and_transposed_arguments() -> None:
    def f(a):
        return np.sum(a[0] ** 2 * a[1])

    base = np.arange(12.0).reshape(4, 3)
    a = base.T[::2]
    g = tp.grad(f)(a)
    np.testing.assert_allclose(g, [2 * a[0] * a[1], a[0] ** 2])
    np.testing.assert_array_equal(base, np.arange(12.0).reshape(4, 3))


# -- arrays of the caller


def writes(x, y):
    x[0] = x[1] * y[0]
    y[1:] += x[0]
    x *= y
    return np.sum(x * x)


def test_no_transform_changes_the_arrays_of_the_caller() -> None:
    args = (X.copy(), X[::-1].copy())
    before = copy.deepcopy(args)
    ones = (np.ones(4), np.ones(4))
    out, pullback = tp.vjp(writes, *args)
    runs = [
        lambda: tp.grad(writes, (0, 1))(*args),
        lambda: tp.value_and_grad(writes)(*args),
        lambda: pullback(1.0),
        lambda: pullback(2.0),
        lambda: tp.jvp(writes, args, ones),
        lambda: tp.hvp(writes, args, ones),
        lambda: tp.linearize(writes, *args)[1](*ones),
        lambda: tp.jacfwd(writes)(*args),
        lambda: tp.hessian(writes)(*args),
    ]
    for run in runs:
        run()
        same_arguments(before, args)
    same_arguments(ones, (np.ones(4), np.ones(4)))
    expected = writes(*copy.deepcopy(args))
    np.testing.assert_allclose(out, expected)


def test_seeds_are_not_changed() -> None:
    def f(x):
        y = x * 1.0
        y[0] = 0.0
        return y

    seed = np.array([1.0, 2.0, 3.0, 4.0])
    pullback = tp.vjp(f, X)[1]
    np.testing.assert_allclose(pullback(seed)[0], [0, 2, 3, 4])
    np.testing.assert_array_equal(seed, [1, 2, 3, 4])
    tangent = tp.jvp(f, (X,), (seed,))[1]
    np.testing.assert_allclose(tangent, [0, 2, 3, 4])
    np.testing.assert_array_equal(seed, [1, 2, 3, 4])


def test_results_are_not_the_arguments() -> None:
    def f(x):
        return x

    x, seed = X.copy(), np.ones(4)
    out, pullback = tp.vjp(f, x)
    (g,) = pullback(seed)
    g += 1
    out += 1
    np.testing.assert_array_equal(x, X)
    np.testing.assert_array_equal(seed, np.ones(4))


def test_one_array_as_two_arguments() -> None:
    """The arguments are differentiated apart, as in any function of two variables."""

    def f(x, y):
        return np.sum(x * x * y)

    gx, gy = tp.grad(f, (0, 1))(X, X)
    np.testing.assert_allclose(gx, 2 * X * X)
    np.testing.assert_allclose(gy, X * X)


# -- closures and functions


def test_closed_over_values_are_read_anew() -> None:
    factor = 2.0
    weights = np.array([1.0, 2.0, 3.0, 4.0])

    def f(x):
        return np.sum(x * x * weights) * factor

    df = tp.grad(f)
    np.testing.assert_allclose(df(X), 4 * X * weights)
    factor = 5.0
    weights[0] = -1.0
    np.testing.assert_allclose(df(X), 10 * X * weights)


def test_transforms_of_compiled_functions_lambdas_and_nested_ones() -> None:
    @tp.function
    def f(x):
        return math.sin(x)

    assert math.isclose(tp.grad(f)(0.3), math.cos(0.3))
    assert math.isclose(tp.grad(lambda x: f(x) * x)(0.3), math.cos(0.3) * 0.3 + math.sin(0.3))

    def outer(x):
        def inner(y):
            return x * y * y

        return tp.grad(inner)(x)

    assert math.isclose(tp.function(outer)(3.0), 18.0)
    assert math.isclose(tp.grad(outer)(3.0), 12.0)


def test_sizes_may_change_from_call_to_call() -> None:
    def f(x):
        s = 1.0
        for i in range(len(x)):
            s *= x[i]
        return s

    df = tp.grad(f)
    for n in (3, 1, 5, 0):
        x = np.full(n, 2.0)
        np.testing.assert_allclose(df(x), np.full(n, 2.0 ** (n - 1)) if n else np.zeros(0))


def test_every_transform_is_a_function_with_a_name() -> None:
    def cost(x):
        return x * x

    for transform in (tp.grad, tp.value_and_grad, tp.jacfwd, tp.jacrev, tp.hessian):
        made = transform(cost)
        assert "cost" in made.__name__
        assert "def " in made.ir(2.0, stage="core")


def test_errors_of_the_program_are_raised_as_in_python() -> None:
    def f(x, k):
        return x[k] * x[0]

    with pytest.raises(IndexError):
        tp.grad(f)(X, 4)
    np.testing.assert_allclose(tp.grad(f)(X, -1), [0.4, 0, 0, 0.7])


def test_gradients_of_arguments_that_do_not_matter_are_zeros() -> None:
    def f(p, q):
        return p[0] * 2

    g = tp.grad(f, (0, 1))((3.0, X), {"a": X.astype(np.float32)})
    assert leaves(g)[0] == 2.0
    np.testing.assert_array_equal(g[0][1], np.zeros(4))
    assert g[1]["a"].dtype == np.float32 and not g[1]["a"].any()


def test_dicts_keep_their_order() -> None:
    def chained(layers, x):
        for name in layers:
            x = np.sin(layers[name] * x + 1.0)
        for k, w in layers.items():
            x = x + w * len(k)
        return x

    layers = {"l2": 0.5, "l10": 2.0, "a": -1.5}
    assert tp.function(chained)(layers, 0.3) == pytest.approx(chained(layers, 0.3), rel=1e-14)
    gradient = tp.grad(chained)(layers, 0.3)
    assert list(gradient) == ["l2", "l10", "a"]
    tp.check_grads(lambda layers: chained(layers, 0.3), (layers,))
    backwards = dict(reversed(layers.items()))
    assert tp.function(chained)(backwards, 0.3) == pytest.approx(chained(backwards, 0.3), rel=1e-14)
    value, tangent = tp.jvp(lambda p: chained(p, 0.3), (layers,), ({"a": 1.0, "l2": 0.0, "l10": 0.0},))
    assert tangent == pytest.approx(gradient["a"])


def test_checking_leaves_the_arguments_alone() -> None:
    def writes(a):
        a[0] = a[1] * a[2]
        return np.sum(a**2)

    x = X.copy()
    tp.check_grads(writes, (x,))
    np.testing.assert_array_equal(x, X)


# -- complex results and arguments


@pytest.mark.parametrize("jacobian", [tp.jacfwd, tp.jacrev, tp.jacobian], ids=["columns", "rows", "either"])
def test_complex_jacobians(jacobian) -> None:
    np.testing.assert_allclose(jacobian(lambda x: np.sum(x * x) * (1 + 2j))(X), 2 * X * (1 + 2j))
    np.testing.assert_allclose(jacobian(lambda x: np.exp(1j * x))(X), np.diag(1j * np.exp(1j * X)))
    assert jacobian(lambda z: z * z)(3 + 4j) == 6 + 8j
    np.testing.assert_allclose(jacobian(lambda z, x: z * z * x, argnums=(0, 1))(3 + 4j, 2.0), (12 + 16j, -7 + 24j))
    for through in (np.conj, np.abs, np.real):
        with pytest.raises(tp.CompileError, match="TP302.*has no complex derivative"):
            jacobian(lambda z: z * through(z))(3 + 4j)


def test_real_results_of_complex_arguments() -> None:
    for jacobian in (tp.grad, tp.jacrev, tp.jacobian):
        assert jacobian(lambda z: np.abs(z))(3 + 4j) == pytest.approx(0.6 - 0.8j)
    with pytest.raises(tp.CompileError, match="TP302.*no derivative by columns"):
        tp.jacfwd(lambda z: np.abs(z))(3 + 4j)


def test_sparse_results_are_refused_for_now() -> None:
    for transform in (tp.jacobian, tp.hessian):
        with pytest.raises(tp.CompileError, match="TP303.*sparse"):
            transform(lambda x: np.sum(x**3), sparse=True)(X)


def test_one_lane_at_a_time(monkeypatch: pytest.MonkeyPatch) -> None:
    """As on a GPU, where each column has a thread: results without an axis, or that do not depend on anything, too."""

    def several(x: np.ndarray, a: np.ndarray) -> tuple[Any, ...]:
        return np.sin(x) * a.sum(), np.sum(x * x), np.outer(x, x), 3.0, x[0]

    args = np.array([0.3, 0.5, -0.2, 1.0]), np.array([[1.0, 2.0], [3.0, 4.0]])
    derivative = tp.jacfwd(several, argnums=(0, 1))
    expected = tp.function(derivative)(*args)
    monkeypatch.setattr(jacobians, "LANES", 1)
    found = tp.function(tp.jacfwd(several, argnums=(0, 1)))(*args)
    for row, wanted in zip(found, expected, strict=True):
        for got, want in zip(row, wanted, strict=True):
            np.testing.assert_array_equal(got, want)
