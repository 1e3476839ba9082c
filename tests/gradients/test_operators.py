"""Parallel operators: maps, reductions, scans, histograms, scatters; with tuples, free variables, nested."""

import math

import numpy as np

import tapeless as tp
from tests.gradients.jacobians import Case, Cases

case = Cases()

X = np.array([0.7, -1.3, 2.1, 0.4])
Y = np.array([1.5, 0.2, -0.6, 0.9])
A = np.arange(6.0).reshape(2, 3) / 5 + 0.1
M = np.array([[[1.0, 2.0], [0.5, 1.0]], [[0.3, -1.0], [2.0, 1.0]], [[1.0, 0.0], [1.5, 0.7]]])
KEYS = np.array([2, 0, 2, 0])
WILD = np.array([1, -1, 1, 7])


# -- map


@case(X)
def map_over_one(x):
    return tp.map(lambda e: math.sin(e) * e, x)


@case(X, Y)
def map_over_two_to_two(x, y):
    return tp.map(lambda a, b: (a * b, a + b * b), x, y)


@case(A, 2.0)
def map_over_rows_with_a_free_scalar(a, c):
    return tp.map(lambda row: row * np.sum(row) * c, a)


@case(X, Y)
def map_over_a_count_with_free_arrays(x, y):
    n = len(x)
    return tp.map(lambda i: x[i] * y[n - 1 - i] + x[0], n)


@case(X)
def mapped_over_and_free(x):
    return tp.map(lambda e: e * x[1] + np.sum(x) * e, x)


@case(A, X[:3])
def nested_maps(a, x):
    return tp.map(lambda row: tp.map(lambda e, c: e * c * row[0], row, x), a)


@case(X)
def map_with_a_branch_and_a_loop(x):
    def f(e):
        s = 1.0
        for i in range(3):
            if e > 0:
                s = s * e
            else:
                s = s + e * x[i]
        return s

    return tp.map(f, x)


@case(X)
def map_with_its_own_array(x):
    def f(e):
        y = np.zeros(3)
        y[0] = e
        for i in range(1, 3):
            y[i] = y[i - 1] * e
        return y

    return tp.map(f, x)


# -- reduce


@case(X, jacobian=np.ones(4))
def reduce_by_addition(x):
    return tp.reduce(lambda a, b: a + b, 0.0, x)


@case(np.array([2.0, 3.0, 4.0]), jacobian=[12, 8, 6])
def reduce_by_product(x):
    return tp.reduce(lambda a, b: a * b, 1.0, x)


@case(X, jacobian=[0, 0, 1, 0])
def reduce_by_maximum(x):
    return tp.reduce(max, -math.inf, x)


@case(X, jacobian=[0, 1, 0, 0])
def reduce_by_minimum(x):
    return tp.reduce(lambda a, b: min(a, b), math.inf, x)


@case(X, Y)
def composition_of_linear_functions(x, y):
    """Does not commute."""
    return tp.reduce(lambda f, g: (f[0] * g[0], g[0] * f[1] + g[1]), (1.0, 0.0), (x, y))


@case(M)
def product_of_matrices(m):
    return tp.reduce(lambda a, b: a @ b, np.eye(2), m)


@case(X)
def sums_and_products_together(x):
    return tp.reduce(lambda a, b: (a[0] + b[0] + a[1] * b[1], a[1] + b[1]), (0.0, 0.0), (x * x, x))


@case(X)
def the_place_of_the_maximum(x):
    def better(a, b):
        return a if a[0] >= b[0] else b

    value, place = tp.reduce(better, (-math.inf, -1), (x, np.arange(len(x))))
    return value * x[place] * x[0]


@case(X, 1.7)
def free_variable_in_the_operator(x, c):
    """x0 + c x1 + c x2 + ... in any order of brackets."""
    return tp.reduce(lambda a, b: a * b * c, 1 / c, x)


@case(X, 0.5, jacobian=[0, 0, 1, 0, 0])
@case(X, 2.5, jacobian=[0, 0, 0, 0, 1])
@case(X, 2.1, jacobian=[0, 0, 0, 0, 1], differ=False)
def maximum_of_at_least(x, c):
    return tp.reduce(max, c, x)


@case(X, 0.5)
def parallel_sums_that_start_from_varying_values(x, c):
    s, h = c * c, x * c
    for i in tp.prange(len(x)):
        s += x[i] * c
        h[i] += x[i] ** 2
    return s, h


# -- scan


@case(X, jacobian=np.tri(4))
def scan_by_addition(x):
    return tp.scan(lambda a, b: a + b, 0.0, x)


@case(X)
def scan_by_product(x):
    return tp.scan(lambda a, b: a * b, 1.0, x)


@case(X)
def scan_by_maximum(x):
    return tp.scan(max, -math.inf, x)


@case(X, Y)
def scan_of_linear_functions(x, y):
    return tp.scan(lambda f, g: (f[0] * g[0], g[0] * f[1] + g[1]), (1.0, 0.0), (x, y))


@case(X, jacobian=np.tri(4, k=-1))
def exclusive_scan(x):
    return tp.scan(lambda a, b: a + b, 0.0, x, exclusive=True)


@case(X)
def reversed_scan(x):
    return tp.scan(lambda a, b: a * b, 1.0, x, reverse=True)


@case(X, Y)
def reversed_scan_that_does_not_commute(x, y):
    return tp.scan(lambda f, g: (f[0] * g[0], g[0] * f[1] + g[1]), (1.0, 0.0), (x, y), reverse=True, exclusive=True)


@case(M)
def scan_of_matrices(m):
    return tp.scan(lambda a, b: a @ b, np.eye(2), m)


@case(A)
def scan_of_vectors(a):
    return tp.scan(lambda p, q: p + q, np.zeros(3), a)


@case(X, 1.3)
def scan_with_a_free_variable(x, c):
    return tp.scan(lambda a, b: a * b * c, 1 / c, x)


# -- hist


@case(X, jacobian=[[0, 1, 0, 1], [0, 0, 0, 0], [1, 0, 1, 0]])
def histogram_by_addition(x):
    return tp.hist(lambda a, b: a + b, 0.0, 3, KEYS, x)


@case(X, np.array([1.0, 2.0, 3.0]))
def histogram_into_a_destination(x, d):
    return tp.hist(lambda a, b: a + b, 0.0, d * d, KEYS, x * x) * d


@case(X)
def histogram_by_product(x):
    return tp.hist(lambda a, b: a * b, 1.0, 3, KEYS, x)


@case(X, np.array([1.0, 2.0, 3.0]))
def histogram_by_maximum(x, d):
    return tp.hist(max, -math.inf, d, KEYS, x)


@case(X, jacobian=[[0, 0, 0, 0], [1, 0, 1, 0]])
def keys_out_of_range(x):
    return tp.hist(lambda a, b: a + b, 0.0, 2, WILD, x)


@case(X, Y)
def histogram_of_pairs(x, y):
    return tp.hist(lambda a, b: (a[0] + b[0] + a[1] * b[1], a[1] + b[1]), (0.0, 0.0), 3, KEYS, (x, y))


@case(X, 0.8)
def saturating_histogram(x, c):
    return tp.hist(lambda a, b: min(a + b, c), 0.0, 3, KEYS, x * x)


@case(A)
def histogram_of_rows(a):
    return tp.hist(lambda p, q: p + q, np.zeros(3), 2, np.array([1, 1]), a * a)


# -- scatter


@case(
    X, np.array([5.0, 6.0]), jacobian=[[0, 0, 0, 0, 0, 1], [0, 1, 0, 0, 0, 0], [0, 0, 1, 0, 0, 0], [0, 0, 0, 0, 1, 0]]
)
def scatter(x, v):
    return tp.scatter(x, np.array([3, 0]), v)


@case(X, np.array([5.0, 6.0, 7.0]))
def scatter_out_of_range(x, v):
    return tp.scatter(x * x, np.array([-1, 4, 1]), v * x[1]) * x


@case(A, X[:3])
def scatter_of_rows(a, x):
    return tp.scatter(a, np.array([1]), (x * a[0]).reshape(1, 3))


# -- vmap


@case(A, 0.5)
def vmap_over_rows(a, c):
    return tp.vmap(lambda row, c: np.sum(row * row) * c, in_axes=(0, None))(a, c)


@case(A)
def vmap_over_columns(a):
    return tp.vmap(lambda column: column * column[0], in_axes=1, out_axes=1)(a)


# -- together


@case(A, X[:3])
def reduce_in_map_in_reduce(a, x):
    rows = tp.map(lambda row: tp.reduce(lambda p, q: p * q, 1.0, row + x), a)
    return tp.reduce(max, -math.inf, rows)


@case(X)
def scan_in_a_loop(x):
    for i in range(2):
        x = tp.scan(lambda a, b: a * b + a, 0.5, x) if i > 5 else tp.scan(lambda a, b: a + b, 0.0, x * x)
    return x


@case(X, Y)
def softmax_by_rows(x, y):
    scores = tp.map(lambda a: tp.map(lambda b: a * b, y), x)
    top = tp.map(lambda row: tp.reduce(max, -math.inf, row), scores)
    return tp.map(lambda row, m: np.exp(row - m) / np.sum(np.exp(row - m)), scores, top)


@case.all
def test_jacobian(program: Case) -> None:
    program.check()
