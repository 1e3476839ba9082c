"""np.histogram, np.digitize, np.bincount, np.isin."""

import numpy as np
import pytest

import tapeless as tp
from tests.prelude.cases import test_numpy_raises_too, test_refused, test_slopes, test_values  # noqa: F401
from tests.quick import unoptimized  # noqa: F401  (for all tests here)

VECTOR = np.array([0.5, -1.5, 2.0, 0.25, 1.1, -0.75, 3.25])
MATRIX = np.sin(np.arange(12.0) * 2 + 0.3).reshape(3, 4)
WHOLE = np.array([[3, -1, 4], [1, -5, 9], [2, 6, 5]])
NUMBERS = np.array([1, 3, 0, 3, 7])
HOLES = np.array([0.5, np.nan, 2.0, 0.75])
VALUES = {
    "histogram": (
        lambda x, m, w: (
            np.histogram(x),
            np.histogram(x, 4),
            np.histogram(m, 5, (-1, 0.5)),
            np.histogram(w, 3),
            np.histogram(x, [-1, 0.25, 1.0, 2.0]),
            np.histogram(w, [1, 2, 3, 5]),
        ),
        VECTOR,
        MATRIX,
        WHOLE,
    ),
    "weights": (
        lambda x, m, w: (
            np.histogram(x, 4, weights=x * x),
            np.histogram(m, [-1.0, 0.0, 1.0], weights=m * 2),
            np.histogram(w, 3, weights=w),
            np.histogram(x, 3, weights=x * x, density=True),
            np.histogram(x, 3, density=True),
            np.histogram(x, np.array([-2.0, 0, 3]), None, True),
        ),
        VECTOR,
        MATRIX,
        WHOLE,
    ),
    "few": (lambda x: (np.histogram(x[:0], 3), np.histogram(x[:1], 3), np.histogram(x[:0], [0.0, 1.0])), VECTOR),
    "types": (
        lambda f, i, n: (
            np.histogram(f, 4),
            np.histogram(i, 4),
            np.histogram(n, 3, (0.0, 1.0)),
            np.histogram(f, 4, (-1.0, 1.0)),
            np.histogram(n, [0.0, 1.0, 2.0]),
        ),
        MATRIX.astype(np.float32),
        WHOLE.astype(np.int32),
        HOLES,
    ),
    "edges": (
        lambda x, w: (
            np.histogram_bin_edges(x, 5),
            np.histogram_bin_edges(w),
            np.histogram_bin_edges(x, [1, 2, 3]),
            np.histogram_bin_edges(x, 3, (0, 9)),
        ),
        VECTOR,
        WHOLE,
    ),
    "digitize": (
        lambda x, w: (
            np.digitize(x, [-1, 0.0, 1.0, 2.0]),
            np.digitize(x, [2.0, 1.0, 0.0, -1.0]),
            np.digitize(x, [0.25, 1.0], right=True),
            np.digitize(x, [1.0, 0.25], True),
            np.digitize(w, [1, 3, 5]),
            np.digitize(0.7, [0.0, 1.0]),
            np.digitize(x, [1.0, 1.0]),
        ),
        VECTOR,
        WHOLE,
    ),
    "bincount": (
        lambda n, x: (
            np.bincount(n),
            np.bincount(n, minlength=12),
            np.bincount(n, x[:5]),
            np.bincount(n[:0]),
            np.bincount(n[:0], minlength=3),
            np.bincount(n > 1),
            np.bincount(n, n),
        ),
        NUMBERS,
        VECTOR,
    ),
    "isin": (
        lambda x, w, n: (
            np.isin(x, [0.5, 2.0, 9.0]),
            np.isin(w, n),
            np.isin(w, n, invert=True),
            np.isin(w, n[:0]),
            np.isin(x, w),
            np.isin(w, [1.0, 2.5]),
            np.isin(3, n),
            np.isin(w > 2, [True]),
        ),
        VECTOR,
        WHOLE,
        NUMBERS,
    ),
}
SLOPES = {
    "weights": (
        lambda x: (
            np.histogram(x, 4, (-1.7, 4.0), weights=x * x)[0],
            np.histogram(x, [-2.0, 0.1, 4.0], weights=x**2, density=True)[0],
            np.bincount(NUMBERS, x[:5]),
        ),
        VECTOR,
    ),
}
ERRORS = {
    "falling": (ValueError, lambda x: np.histogram(x, [2.0, 1.0]), VECTOR),
    "no bins": (ValueError, lambda x: np.histogram(x, x.shape[0] - 7), VECTOR),
    "range": (ValueError, lambda x: np.histogram(x, 3, (2.0, x[1])), VECTOR),
    "NaN": (ValueError, lambda x: np.histogram(x), HOLES),
    "not in order": (ValueError, lambda x: np.digitize(x, [1.0, 3.0, 2.0]), VECTOR),
    "negative": (ValueError, lambda n: np.bincount(n - 2), NUMBERS),
    "lengths": (ValueError, lambda n: np.bincount(n, [1.0]), NUMBERS),
    "floats": (TypeError, lambda x: np.bincount(x), VECTOR),
}
REFUSED = {
    "rules": (lambda x: np.histogram(x, "auto"), VECTOR),
}


EXTREMES = np.array([2**63 - 1, -(2**63), 0, 5])


@pytest.mark.parametrize("wanted, given", [
    (np.arange(-3, 9), np.array([5, 2, 2, -1])),  # by a table
    (np.arange(6, dtype=np.int32).reshape(2, 3), np.array([200, 3], dtype=np.uint8)),
    (EXTREMES, EXTREMES[:2]),  # a table would be too long
    (EXTREMES, np.array([0, 10**12])),
    (EXTREMES, np.array([5, -(2**61), 2**61 - 1])),
    (np.array([4, 5]), np.array([], dtype=int)),
    (np.array([], dtype=int), np.array([4, 5])),
    (EXTREMES.view(np.uint64), EXTREMES[1:].view(np.uint64)),
    (np.array([True, False]), np.array([True])),
    (np.array([1.5, 2.0, np.nan]), np.array([2, 7])),
])  # fmt: skip
def test_membership(wanted, given):
    for invert in (False, True):
        f = tp.function(lambda w, g, invert=invert: np.isin(w, g, invert=invert))
        np.testing.assert_array_equal(f(wanted, given), np.isin(wanted, given, invert=invert))
