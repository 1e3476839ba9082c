"""np.insert, np.delete, np.resize."""

import numpy as np

from tests.prelude.cases import test_numpy_raises_too, test_refused, test_slopes, test_values  # noqa: F401
from tests.quick import unoptimized  # noqa: F401  (for all tests here)

VECTOR = np.array([0.5, -1.5, 2.0, 0.25, 1.1, -0.75, 3.25])
MATRIX = np.sin(np.arange(12.0) * 2 + 0.3).reshape(3, 4)
WHOLE = np.array([[3, -1, 4], [1, -5, 9], [2, 6, 5]])
VALUES = {
    "resize": (
        lambda x, w: (
            np.resize(x, (3, 4)),
            np.resize(w, 4),
            np.resize(x, (2,)),
            np.resize(x[:0], 3),
            np.resize(w, (0,)),
        ),
        VECTOR,
        WHOLE,
    ),
    "insert": (
        lambda x, m, w: (
            np.insert(x, 1, 5.0),
            np.insert(x, -1, [5.0, 6]),
            np.insert(m, 1, 5, axis=0),
            np.insert(m, 1, m[:, 0], axis=1),
            np.insert(m, -1, m[0], axis=0),
            np.insert(m, 2, 7.0),
            np.insert(w, 1, 2.7),
            np.insert(m, 2, m[:2], axis=0),
        ),
        VECTOR,
        MATRIX,
        WHOLE,
    ),
    "insert at several": (
        lambda x, m: (
            np.insert(x, [1, 3], 5.0),
            np.insert(x, [3, 1, 1], [5.0, 6, 7]),
            np.insert(m, [1, 0], m[:, :2], axis=1),
            np.insert(x, [2], [1.0, 2.0, 3.0]),
            np.insert(x, np.array([0, 7, -1]), 1.0),
            np.insert(m, [0, 2], [[1.0], [2.0]], axis=0),
            np.insert(x, slice(1, 6, 2), 1.0),
        ),
        VECTOR,
        MATRIX,
    ),
    "delete": (
        lambda x, m, w: (
            np.delete(x, 1),
            np.delete(x, -1),
            np.delete(m, 1, axis=0),
            np.delete(m, [0, -1], axis=1),
            np.delete(m, 5),
            np.delete(x, [1, 1, 2]),
            np.delete(w, w[0] > 2, axis=0),
            np.delete(x, x > 1),
        ),
        VECTOR,
        MATRIX,
        WHOLE,
    ),
    "delete a slice": (
        lambda x, m: (
            np.delete(x, slice(1, 4)),
            np.delete(x, slice(None, None, 2)),
            np.delete(m, np.s_[::2], axis=1),
            np.delete(x, slice(5, 1, -2)),
        ),
        VECTOR,
        MATRIX,
    ),
}
SLOPES = {
    "insert": (lambda x, m: (np.insert(x, 1, x[0] ** 2), np.insert(x, [3, 1, 1], m[0, :3])), VECTOR, MATRIX),
    "delete": (
        lambda x, m: (np.delete(x, x > 1.5), np.delete(m, [0, -1], axis=1), np.resize(x, (2, 5))),
        VECTOR,
        MATRIX,
    ),
}
ERRORS = {
    "insert outside": (IndexError, lambda x: np.insert(x, 8, 1.0), VECTOR),
    "delete outside": (IndexError, lambda x: np.delete(x, -8), VECTOR),
    "delete one outside": (IndexError, lambda x: np.delete(x, [0, 7]), VECTOR),
    "a mask too short": (ValueError, lambda x: np.delete(x, [True, False]), VECTOR),
}
REFUSED = {
    "floats": (lambda x: np.delete(x, 1.5), VECTOR),
}
