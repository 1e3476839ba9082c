"""np.lexsort, np.partition, np.nanargmax."""

import numpy as np

from tests.prelude.cases import test_numpy_raises_too, test_refused, test_slopes, test_values  # noqa: F401
from tests.quick import unoptimized  # noqa: F401  (for all tests here)

VECTOR = np.array([0.5, -1.5, 2.0, 0.25, 1.1, -0.75, 3.25])
MATRIX = np.sin(np.arange(12.0) * 2 + 0.3).reshape(3, 4)
WHOLE = np.array([[3, -1, 4], [1, -5, 9], [2, 6, 5]])
HOLES = MATRIX.copy()
HOLES[0, 1] = HOLES[2, 2] = np.nan
VALUES = {
    "lexsort": (
        lambda w, x: (
            np.lexsort((w[0], w[1])),
            np.lexsort((x, np.floor(x))),
            np.lexsort([w, w % 2]),
            np.lexsort([w, w % 3], axis=0),
        ),
        WHOLE,
        VECTOR,
    ),
    "partition": (
        lambda x, m: (
            np.partition(x, 3)[3],
            np.partition(m, 1, axis=0)[1],
            np.partition(m, 2, axis=None)[2],
            np.argpartition(x, 2)[2],
            np.partition(x, [1, -1])[-1],
        ),
        VECTOR,
        MATRIX,
    ),
    "extrema": (
        lambda n, w: (
            np.nanargmax(n),
            np.nanargmin(n),
            np.nanargmax(n, axis=0),
            np.nanargmin(n, axis=1, keepdims=True),
            np.nanargmax(w),
        ),
        HOLES,
        WHOLE,
    ),
}
SLOPES = {
    "partition": (lambda x: np.partition(x, 3)[3], VECTOR),
}
ERRORS = {
    "outside": (ValueError, lambda x: np.partition(x, 7), VECTOR),
    "nothing else": (ValueError, lambda n: np.nanargmax(n * np.nan, axis=0), HOLES),
}
REFUSED = {
    "an array": (lambda m: np.lexsort(m), MATRIX),
}
