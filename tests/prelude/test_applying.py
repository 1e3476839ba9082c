"""np.piecewise, np.apply_along_axis, np.fromfunction, np.choose."""

import numpy as np

import tapeless as tp
from tests.prelude.cases import test_numpy_raises_too, test_refused, test_slopes, test_values  # noqa: F401
from tests.quick import unoptimized  # noqa: F401  (for all tests here)

VECTOR = np.array([0.5, -1.5, 2.0, 0.25, 1.1, -0.75, 3.25])
MATRIX = np.sin(np.arange(12.0) * 2 + 0.3).reshape(3, 4)
CUBE = np.cos(np.arange(24.0) ** 2).reshape(2, 3, 4)
WHOLE = np.array([[3, -1, 4], [1, -5, 9], [2, 6, 5]])
VALUES = {
    "along": (
        lambda m, c: (
            np.apply_along_axis(np.sum, 0, m),
            np.apply_along_axis(lambda r: r * 2, 1, m),
            np.apply_along_axis(lambda r: r[:2].sum(), -1, c),
            np.apply_along_axis(np.diag, 1, m),
            np.apply_along_axis(lambda r, k: r[::-1] * k, 1, c, 3.0),
            np.apply_along_axis(np.mean, 0, m[0]),
        ),
        MATRIX,
        CUBE,
    ),
    "over": (
        lambda m, c: (
            np.apply_over_axes(np.sum, c, [0, 2]),
            np.apply_over_axes(np.max, m, 1),
            np.apply_over_axes(np.cumsum, m, (0,)),
        ),
        MATRIX,
        CUBE,
    ),
    "fromfunction": (
        lambda m: (
            np.fromfunction(lambda i, j: i + 2 * j, (3, 4)),
            np.fromfunction(lambda i, j: i == j, (3, 3), dtype=int),
            np.fromfunction(lambda i: np.sin(i), (4,)),
            np.indices((2, 3)),
            np.indices((2, 3), sparse=True),
            np.indices((2,), dtype=float),
        ),
        MATRIX,
    ),
    "choose": (
        lambda w, m: (
            np.choose([1, 2, 0], [w[0], w[1], w[2]]),
            np.choose([0, 2, 1], (m[:, 0], 1, m[:, 1])),
            np.choose(w, [w * 2, w * 3], mode="wrap"),
            np.choose(w, [1, 2.5], mode="clip"),
            np.choose(1, [3, 4]),
        ),
        WHOLE,
        MATRIX,
    ),
    "piecewise": (
        lambda x, w, m: (
            np.piecewise(x, [x < 0, x >= 1], [lambda v: v * 2, np.sqrt]),
            np.piecewise(x, [x < 0, x >= 1], [-1, 1, 9.0]),
            np.piecewise(x, [x < 0], [np.abs, lambda v: v - v.mean()]),
            np.piecewise(w, [w > 2], [2.5, lambda v: v * 10]),
            np.piecewise(m, [m < 0, m > 0.5], [0, lambda v: v**2]),
        ),
        VECTOR,
        WHOLE,
        MATRIX,
    ),
    "one condition": (
        lambda x: (
            np.piecewise(x, x > 0, [7, 8]),
            np.piecewise(x, [x > 0], [lambda v, k: v * k], 3.0),
            np.piecewise(2.5, [2.5 > 1], [4.0, 5.0]),
        ),
        VECTOR,
    ),
}
SLOPES = {
    "along": (lambda m: np.apply_along_axis(lambda r: r * r[0], 1, m), MATRIX),
    "piecewise": (
        lambda x: np.piecewise(x, [x > 0], [np.sqrt, lambda v: v * v.sum()]),
        np.array([0.0, -1.5, 2.0, -0.25])[1:],
    ),
    "choose": (lambda m: np.choose([0, 2, 1], (m[:, 0], m[:, 1] ** 2, 1.0)), MATRIX),
}
ERRORS = {
    "nothing": (ValueError, lambda m: np.apply_along_axis(np.sum, 0, m), np.zeros((2, 0))),
    "choice": (ValueError, lambda w: np.choose(w, [1, 2]), WHOLE),
    "too few": (ValueError, lambda x: np.piecewise(x, [x > 0, x < -1, x < -2], [1]), VECTOR),
}
REFUSED = {
    "rows": (lambda m: np.piecewise(m, m > 0, [1, 2]), MATRIX),
    "an array": (lambda w: np.choose([1, 2, 0], w), WHOLE),
}


def test_only_what_is_chosen_is_evaluated():
    root = tp.grad(lambda x: np.sum(np.piecewise(x, [x > 0], [np.sqrt, 0.0])))
    assert np.array_equal(root(np.array([0.0, 4.0])), [0.0, 0.25])
