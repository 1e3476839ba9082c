"""np.subtract.reduce, np.maximum.accumulate, np.add.reduceat and their kin."""

import numpy as np

from tests.prelude.cases import test_numpy_raises_too, test_refused, test_slopes, test_values  # noqa: F401
from tests.quick import unoptimized  # noqa: F401  (for all tests here)

VECTOR = np.array([0.5, -1.5, 2.0, 0.25, 1.1, -0.75, 3.25])
MATRIX = np.sin(np.arange(12.0) * 2 + 0.3).reshape(3, 4)
WHOLE = np.array([[3, -1, 4], [1, -5, 9], [2, 6, 5]])
SHORT = WHOLE.astype(np.int32)
VALUES = {
    "reduce": (
        lambda x, m, w: (
            np.subtract.reduce(x),
            np.divide.reduce(m),
            np.subtract.reduce(m, axis=-1),
            np.hypot.reduce(m, axis=1, keepdims=True),
            np.bitwise_xor.reduce(w),
            np.logical_xor.reduce(w > 2, axis=0),
            np.add.reduce(m, keepdims=True),
            np.maximum.reduce(m, axis=None),
            np.divide.reduce(w),
        ),
        VECTOR,
        MATRIX,
        WHOLE,
    ),
    "accumulate": (
        lambda x, m, w, i: (
            np.maximum.accumulate(x),
            np.minimum.accumulate(m, axis=1),
            np.maximum.accumulate(w),
            np.minimum.accumulate(i, axis=-1),
            np.subtract.accumulate(m),
            np.divide.accumulate(w, axis=1),
            np.logical_or.accumulate(w > 3),
            np.maximum.accumulate(w > 3, axis=1),
            np.add.accumulate(w),
        ),
        VECTOR,
        MATRIX,
        WHOLE,
        SHORT,
    ),
    "reduceat": (
        lambda x, m, w, i: (
            np.add.reduceat(x, [0, 2, 5]),
            np.add.reduceat(x, [3, 1, 1, 6]),
            np.maximum.reduceat(m, [0, 1], axis=0),
            np.multiply.reduceat(m, [0, 2], axis=1),
            np.add.reduceat(i, [0, 1]),
            np.add.reduceat(w > 2, [0, 2], axis=1),
        ),
        VECTOR,
        MATRIX,
        WHOLE,
        SHORT,
    ),
    "outer": (
        lambda x, w: (
            np.subtract.outer(x, x),
            np.maximum.outer(w, w[0]),
            np.divide.outer(w[0], w),
            np.logaddexp.outer(x, 2.0),
        ),
        VECTOR,
        WHOLE,
    ),
    "with NaN": (lambda x: (np.maximum.accumulate(x), np.fmin.accumulate(x)), np.array([1.0, np.nan, 2.0])),
}
SLOPES = {
    "all": (
        lambda x: (
            np.divide.reduce(x),
            np.maximum.accumulate(x),
            np.subtract.accumulate(x),
            np.add.reduceat(x, [0, 2, 5]),
        ),
        VECTOR,
    ),
}
ERRORS = {
    "nothing": (ValueError, lambda x: np.subtract.reduce(x), VECTOR[:0]),
    "outside": (IndexError, lambda x: np.add.reduceat(x, [9]), VECTOR),
    "several axes": (ValueError, lambda m: np.subtract.reduce(m, axis=None), MATRIX),
}
REFUSED = {
    "a comparison": (lambda x: np.less.reduce(x), VECTOR),
    "no axis": (lambda m: np.maximum.accumulate(m, axis=None), MATRIX),
}
