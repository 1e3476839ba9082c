"""Derivatives taken inside compiled code, of functions that see arrays of outside."""

import numpy as np

import tapeless as tp


def test_a_row_whose_size_is_known_outside_only():
    def scaled(a, row):
        return a * row[0]

    @tp.function
    def slopes(x, rows):
        return tp.map(lambda i: tp.grad(scaled)(x[i], rows[i % 2]), len(x))

    x, rows = np.array([1.0, 2.0, 3.0]), np.array([[4.0, 0.0, 1.0, 2.0], [5.0, 1.0, 0.0, 2.0]])
    np.testing.assert_allclose(slopes(x, rows), [4.0, 5.0, 4.0])


def test_branches_keep_costly_values():
    """Both arms, with slopes that are used for several results and in second derivatives."""

    def f(x, y):
        if x > 0.0:
            r = np.sqrt(x * y)
            return np.sin(r) / r, r * y
        return np.exp(x) / y, x

    @tp.function
    def rows(x, y):
        return tp.jacrev(f, argnums=(0, 1))(x, y)

    @tp.function
    def second(x, y):
        return tp.grad(lambda x: tp.grad(lambda x: f(x, y)[0])(x))(x)

    for x, y in ((0.7, 1.3), (-0.4, 2.0)):
        tp.check_grads(f, (x, y))
        h = 1e-5
        (by_x, by_y), (r_x, r_y) = rows(x, y)
        np.testing.assert_allclose(by_x, (f(x + h, y)[0] - f(x - h, y)[0]) / (2 * h), rtol=1e-8)
        np.testing.assert_allclose(by_y, (f(x, y + h)[0] - f(x, y - h)[0]) / (2 * h), rtol=1e-8)
        np.testing.assert_allclose(r_x, (f(x + h, y)[1] - f(x - h, y)[1]) / (2 * h), rtol=1e-8)
        np.testing.assert_allclose(r_y, (f(x, y + h)[1] - f(x, y - h)[1]) / (2 * h), rtol=1e-8, atol=1e-12)
        np.testing.assert_allclose(second(x, y), (rows(x + h, y)[0][0] - rows(x - h, y)[0][0]) / (2 * h), rtol=1e-7)


def test_the_nearest_of_points_that_are_computed():
    """The place of an extremum whose operands are sums themselves, and one with a start value that wins."""

    def cost(c, p):
        return tp.map(lambda x: ((c - x) ** 2).sum(axis=1).min(), p).sum()

    def clipped(c, p):
        return tp.map(lambda x: tp.reduce(min, 0.04, tp.map(lambda y: ((y - x) ** 2).sum(), c)), p).sum()

    p = np.array([[0.1, 0.2], [0.9, 0.8], [0.4, 0.6], [0.2, 0.1]])
    c = np.array([[0.0, 0.0], [1.0, 1.0], [0.5, 0.5]])
    tp.check_grads(cost, (c, p))
    tp.check_grads(clipped, (c, p))
