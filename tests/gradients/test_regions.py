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
