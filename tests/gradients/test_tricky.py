"""Corners: empty arrays, ties, zeros in products, arrays used in several ways, keys out of range, odd operators."""

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


# -- ties: the first operand, the first element


def test_ties_of_extrema() -> None:
    expect(lambda x: np.min(x), array(1, 1), gradient=[1, 0])
    expect(lambda x: np.max(x), array(0, 3, 3, 3), gradient=[0, 1, 0, 0])
    expect(lambda x: tp.reduce(min, INF, x), array(2, 1, 1), gradient=[0, 1, 0])
    expect(lambda x: tp.reduce(max, -INF, x * x), array(-2, 2), gradient=[-4, 0])
    expect(lambda x: max(x[0], x[1]), array(1, 1), gradient=[1, 0])
    expect(lambda x: min(x[0], x[1]), array(1, 1), gradient=[1, 0])
    expect(lambda x: np.sum(np.maximum(x, 1.0)), array(1, 2, 0), gradient=[1, 1, 0])
    expect(lambda x: np.sum(np.minimum(1.0, x)), array(1, 2, 0), gradient=[0, 0, 1])


def test_ties_along_an_axis() -> None:
    check(
        lambda a: np.max(a, axis=1), np.array([[1.0, 1], [0, 2]]), jacobian=[[1, 0, 0, 0], [0, 0, 0, 1]], differ=False
    )


def test_ties_in_a_histogram_of_maxima() -> None:
    """The destination wins, then the lowest index."""
    keys = np.array([0, 0, 1, 1, 1])

    def f(d, x):
        return tp.hist(max, -INF, d, keys, x)

    jacobian = [[1, 0, 0, 0, 0, 0, 0], [0, 0, 0, 0, 0, 1, 0]]
    check(f, array(5, 1), array(5, 2, 3, 7, 7), jacobian=jacobian, differ=False)


# -- products with zeros


@pytest.mark.parametrize(
    "x, gradient",
    [((1, 2, 3, 4), (24, 12, 8, 6)), ((1, 0, 3, 4), (0, 12, 0, 0)), ((0, 0, 3, 4), (0, 0, 0, 0)), ((0,), (1,)),
     ((0, 0), (0, 0)), ((-2, 0), (0, -2))],
)  # fmt: skip
def test_products_with_zeros(x, gradient) -> None:
    expect(lambda x: np.prod(x), array(*x), gradient=gradient)
    expect(lambda x: tp.reduce(lambda a, b: a * b, 1.0, x), array(*x), gradient=gradient)


def test_scaled_product_with_a_zero() -> None:
    expect(lambda x: np.prod(x) * 3, array(1, 0, 3, 4), gradient=[0, 36, 0, 0])


def test_running_product_with_zeros() -> None:
    x = array(2, 0, 3, 0)
    jacobian = [[1, 0, 0, 0], [0, 2, 0, 0], [0, 6, 0, 0], [0, 0, 0, 0]]
    check(lambda x: np.cumprod(x), x, jacobian=jacobian)


def test_histogram_of_products_with_zeros() -> None:
    keys = np.array([0, 0, 1, 1, 1, 2])

    def f(d, x):
        return tp.hist(lambda a, b: a * b, 1.0, d, keys, x)

    check(f, array(2, 0, 3), array(5, 0, 2, 3, 4, 0))


@pytest.mark.parametrize("f", [lambda x: np.prod(x), lambda x: tp.reduce(lambda a, b: a * b, 1.0, x)])
def test_hessian_of_a_product_at_zeros(f) -> None:
    ways = [
        tp.hessian(f),
        tp.jacrev(tp.grad(f)),
        tp.jacfwd(tp.jacfwd(f)),
        tp.jacrev(tp.jacfwd(f)),
    ]
    for a, b, c in [(2, 3, 5), (0, 3, 5), (0, 0, 5), (0, 0, 0)]:
        for way in ways:
            np.testing.assert_allclose(way(array(a, b, c)), [[0, c, b], [c, 0, a], [b, a, 0]], atol=1e-12)


# -- empty arrays and single elements


@pytest.mark.parametrize(
    "f",
    [
        lambda x: np.sum(x),
        lambda x: np.prod(x),
        lambda x: tp.reduce(max, 0.0, x),
        lambda x: tp.reduce(lambda a, b: a * b * 2.0, 0.5, x),
        lambda x: np.sum(tp.scan(lambda a, b: a * b, 1.0, x)),
        lambda x: np.sum(np.cumsum(x)),
        lambda x: np.sum(np.sort(x)),
        lambda x: np.sum(tp.map(lambda e: e * e, x)),
        lambda x: np.dot(x, x),
        lambda x: np.sum(np.outer(x, x)),
    ],
)
def test_empty_arrays(f) -> None:
    for found in gradients(f, np.zeros(0)):
        assert found.shape == (0,)


def test_empty_histograms_and_scatters() -> None:
    none = np.zeros(0, np.int64)
    check(lambda d, x: tp.hist(lambda a, b: a * b, 1.0, d, none, x), array(1, 2), np.zeros(0), jacobian=np.eye(2))
    check(lambda d, x: tp.scatter(d, none, x), array(1, 2), np.zeros(0), jacobian=np.eye(2))
    check(lambda d, x: tp.hist(max, -INF, d, none, x), array(1, 2), np.zeros(0), jacobian=np.eye(2))


def test_single_elements() -> None:
    one = np.array([0])
    expect(lambda x: np.max(x), array(3), gradient=[1])
    expect(lambda x: np.sum(tp.scan(lambda a, b: a * b, 1.0, x)), array(3), gradient=[1])
    expect(lambda x: tp.scatter(np.zeros(1), one, x)[0], array(3), gradient=[1])
    expect(lambda x: tp.scatter(x, one, x * x)[0], array(3), gradient=[6])


def test_extremum_of_neutral_elements_only() -> None:
    """No element beats -inf; the first one is it, and nothing else is touched."""
    np.testing.assert_array_equal(tp.grad(lambda x: np.max(x))(array(-INF, -INF)), [1, 0])
    np.testing.assert_array_equal(tp.grad(lambda x: np.min(x))(array(INF)), [1])
    for f, x in (
        (np.max, array(-INF, -INF)),
        (np.min, array(INF)),
        (np.max, array(-INF, 2, 1)),
        (np.max, array(1, math.nan)),
    ):
        rows = [
            jacobian(lambda x, f=f: f(3 * x))(x)
            for jacobian in (
                tp.grad,
                tp.jacrev,
                tp.jacfwd,
                lambda g: lambda x: [tp.jvp(g, (x,), (e,))[1] for e in np.eye(len(x))],
            )
        ]
        for row in rows[1:]:
            np.testing.assert_array_equal(row, rows[0])
    np.testing.assert_array_equal(
        tp.jacfwd(lambda a: a.max(axis=1))(np.array([[-INF, -INF], [1, 2]]))[:, 0, :], [[1, 0], [0, 0]]
    )


# -- arrays that are used in several ways


def test_mapped_over_and_free() -> None:
    def f(x):
        return tp.map(lambda e: e * x[0], x)

    check(f, array(2, 3, 4), jacobian=[[4, 0, 0], [3, 2, 0], [4, 0, 2]])


def test_free_matrix_indexed_inside_a_map() -> None:
    columns = np.array([1, 0, 1])

    def f(a, x):
        return tp.map(lambda e, k: e * a[k, 1 - k], x, columns)

    check(f, np.array([[1.0, 2], [3, 4]]), array(5, 6, 7))


def test_the_same_array_read_twice_at_data_dependent_places() -> None:
    def f(x):
        k = int(x[0])
        y = tp.map(lambda i: x[i] * x[(i + k) % 3], 3)
        return np.sum(y)

    check(f, array(1.3, 2, 3))


def test_repeated_gathers() -> None:
    first, second = np.array([0, 0, 1, 3]), np.array([2, 2, 0])
    check(lambda x: x[first][second] ** 2, array(1, 2, 3, 4), jacobian=[[0, 4, 0, 0], [0, 4, 0, 0], [2, 0, 0, 0]])


@pytest.mark.thorough
def test_destination_also_used_before() -> None:
    keys = np.array([0, 1, 0])

    def added(d, x):
        e = d * d
        return tp.hist(lambda a, b: a + b, 0.0, d, keys, x) * e

    def multiplied(d, x):
        e = d * d
        return tp.hist(lambda a, b: a * b, 1.0, d, keys, x) * e

    def scattered(d, x):
        e = d * d
        return tp.scatter(d, keys[:2], x[:2]) * e

    for f in (added, multiplied, scattered):
        check(f, array(2, 3), array(5, 7, 11))


def test_two_carried_arrays_from_one_input() -> None:
    def f(x):
        a, b = x.copy(), x.copy()
        for i in range(3):
            a = a * 2
            b = b + x * i
        return a[0] + b[0] + a[1] + b[1] + a[2] + b[2]

    expect(f, array(1, 2, 3), gradient=[8 + 1 + 3] * 3)

    def g(x):
        a, b = x, x
        for i in range(3):
            a, b = a + b, a
        return np.sum(a) + np.sum(b)

    expect(g, array(1, 2, 3), gradient=[5 + 3] * 3)


def test_two_carried_arrays_from_one_input_written_in_place() -> None:
    def f(x):
        a, b = x.copy(), x.copy()
        for i in range(3):
            a[i] = a[i] * b[i] * 2
            b[i] = a[i] + b[i]
        return np.sum(a * b)

    check(f, array(1, 2, 3))


def test_swapped_arrays_in_branches() -> None:
    def f(x):
        a, b = x * 2, x * 3
        i = 0
        while i < 3:
            if x[i % 2] > 0:
                a, b = b * x[0], a
            else:
                a, b = b, a + b
            i += 1
        return np.sum(a) - np.sum(b * b)

    check(f, array(0.5, -1.5))


def test_branch_that_returns_arrays_in_other_places() -> None:
    def f(x, c):
        a, b = x * x, x + 1
        if c > 0:
            p, q = b, a
        else:
            p, q = a, b
        return p * 2, q * x

    check(f, array(2, 3), 1.0, jacobian=[[2, 0, 0], [0, 2, 0], [12, 0, 0], [0, 27, 0]])
    check(f, array(2, 3), -1.0, jacobian=[[8, 0, 0], [0, 12, 0], [5, 0, 0], [0, 7, 0]])


# -- scatters and keys


def test_duplicate_places_of_a_scatter() -> None:
    """What is there at the end has the gradient: the last one."""
    places = np.array([1, 1, 0, 1])

    def f(d, v):
        return tp.scatter(d, places, v)

    jacobian = np.zeros((3, 7))
    jacobian[0, 3 + 2] = jacobian[1, 3 + 3] = jacobian[2, 2] = 1
    check(f, array(1, 2, 3), array(5, 6, 7, 8), jacobian=jacobian)


def test_duplicates_of_one_value_count_once() -> None:
    places = np.array([2, 2])
    expect(lambda x: np.sum(tp.scatter(np.zeros(3), places, np.full(2, x))), 5.0, gradient=1)


def test_keys_far_out_of_range() -> None:
    keys = np.array([-1, 5, -100000, 1 << 40, 1])
    jacobian = np.zeros((2, 7))
    jacobian[0, 0] = jacobian[1, 1] = jacobian[1, 6] = 1
    d, x = array(1, 2), array(1, 2, 3, 4, 5)
    check(lambda d, x: tp.hist(lambda a, b: a + b, 0.0, d, keys, x), d, x, jacobian=jacobian)
    jacobian[1, 1] = 0
    check(lambda d, x: tp.scatter(d, keys, x), d, x, jacobian=jacobian)


def test_saturated_bins_have_no_gradient() -> None:
    keys = np.array([0, 0, 1, 1])

    def f(x):
        return tp.hist(lambda a, b: min(a + b, 10.0), 0.0, 2, keys, x)

    check(f, array(1, 2, 8, 7), jacobian=[[1, 1, 0, 0], [0, 0, 0, 0]])


# -- operators


def test_free_variable_of_an_operator() -> None:
    """a * b * c from 1 / c: the product of all times c ** (n - 1)."""

    def f(c, x):
        return tp.reduce(lambda a, b: a * b * c, 1 / c, x)

    x = array(2, 3, 5)
    expect(f, 1.5, x, gradient=2 * 3 * 5 * 2 * 1.5)

    def running(c, x):
        return np.sum(tp.scan(lambda a, b: a * b * c, 1 / c, x))

    expect(running, 1.5, x, gradient=6 + 30 * 2 * 1.5)


def test_operator_that_mixes_sum_product_and_maximum() -> None:
    def op(a, b):
        return a[0] + b[0], a[1] * b[1], max(a[2], b[2])

    def f(x):
        return tp.scan(op, (0.0, 1.0, -INF), (x, x, x))

    check(f, array(2, 5, 3), jacobian=[
        [1, 0, 0], [1, 1, 0], [1, 1, 1],
        [1, 0, 0], [5, 2, 0], [15, 6, 10],
        [1, 0, 0], [0, 1, 0], [0, 1, 0],
    ])  # fmt: skip


# -- what must not get in the way


def test_values_without_derivatives() -> None:
    def f(x):
        n = int(x) + (x > 1) * 2
        k = n << 1 ^ 3
        return x * k if not math.isnan(x) else 0.0

    expect(f, 2.5, gradient=(4 << 1) ^ 3)


def test_counts_from_shapes_and_integers() -> None:
    def f(x):
        return np.sum(np.full(len(x), x[0])) * len(x) + float(x.shape[0])

    expect(f, array(1, 2, 3), gradient=[9, 0, 0])


def test_while_without_iterations_on_arrays() -> None:
    def f(x):
        y = x * 1.0
        k = 0
        while k < int(x[0]):
            y[k] = y[k] * 2
            k += 1
        return np.sum(y)

    expect(f, array(0.5, 2), gradient=[1, 1])
    expect(f, array(1.5, 2), gradient=[2, 1])
