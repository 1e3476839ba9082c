"""np.median, np.percentile, np.quantile and what leaves out NaN."""

import numpy as np

from tests.prelude.cases import test_numpy_raises_too, test_refused, test_slopes, test_values  # noqa: F401
from tests.prelude.judged import judge
from tests.quick import unoptimized  # noqa: F401  (for all tests here)

VECTOR = np.array([0.5, -1.5, 2.0, 0.25, 1.1, -0.75, 3.25])
MATRIX = np.sin(np.arange(12.0) * 2 + 0.3).reshape(3, 4)
CUBE = np.cos(np.arange(24.0) ** 2).reshape(2, 3, 4)
WHOLE = np.array([[3, -1, 4], [1, -5, 9], [2, 6, 5]])
SINGLE = MATRIX.astype(np.float32)
HOLES = MATRIX.copy()
HOLES[0, 1] = HOLES[2, 1] = HOLES[2, 2] = np.nan
HOLES[:, 3] = np.nan
VALUES = {
    "median": (
        lambda x, m, c: (
            np.median(x),
            np.median(x[:4]),
            np.median(m, axis=0),
            np.median(c, axis=(0, -1)),
            np.median(c, axis=1, keepdims=True),
            np.median(c, keepdims=True),
            np.median(x[:0]),
        ),
        VECTOR,
        MATRIX,
        CUBE,
    ),
    "median of others": (
        lambda w, f, n: (
            np.median(w),
            np.median(w, axis=1),
            np.median(f, axis=0),
            np.median(n),
            np.median(n, axis=0),
            np.median(3),
            np.median(w > 2, axis=0),
        ),
        WHOLE,
        SINGLE,
        HOLES,
    ),
    "percentile": (
        lambda x, m, c: (
            np.percentile(x, 30),
            np.percentile(m, [10, 55.5], axis=0),
            np.percentile(c, 77, axis=(0, 2)),
            np.percentile(c, [10, 20, 100], axis=1, keepdims=True),
            np.percentile(m, 50, keepdims=True),
        ),
        VECTOR,
        MATRIX,
        CUBE,
    ),
    "methods": (
        lambda x, m: (
            np.percentile(x, 30, method="lower"),
            np.percentile(m, [10, 55.5], axis=0, method="higher"),
            np.percentile(m, 77, method="nearest"),
            np.percentile(m, [10, 20, 100, 50], axis=1, method="midpoint"),
        ),
        VECTOR,
        MATRIX,
    ),
    "types": (
        lambda w, f: (
            np.percentile(w, 30, method="lower"),
            np.percentile(w, [0, 33.0, 50]),
            np.percentile(f, [20, 30], axis=0),
            np.quantile(w, 1),
            np.quantile(w, [0, 1], axis=0),
            np.quantile(f, 1),
            np.quantile(w, [0, 1], method="midpoint"),
            np.quantile(w, 0, method="nearest"),
        ),
        WHOLE,
        SINGLE,
    ),
    "with NaN": (
        lambda n: (
            np.percentile(n, 30, axis=0),
            np.nanpercentile(n, 30, axis=0),
            np.nanpercentile(n, [30, 60.0]),
            np.nanquantile(n, [0.1, 0.5], axis=1, keepdims=True),
            np.nanquantile(n, 0.4, axis=1, method="higher"),
        ),
        HOLES,
    ),
    "nanmedian": (
        lambda n, w: (
            np.nanmedian(n),
            np.nanmedian(n, axis=0),
            np.nanmedian(n, axis=1, keepdims=True),
            np.nanmedian(w),
            np.nanquantile(w, 0.3),
        ),
        HOLES,
        WHOLE,
    ),
}
SLOPES = {
    "median": (lambda x, m: (np.median(x), np.median(m, axis=1), np.nanmedian(m, axis=0)), VECTOR, MATRIX),
    "quantile": (lambda x, q: (np.quantile(x, q), np.percentile(x, [10.0, 90.0]), np.nanquantile(x, 0.3)), VECTOR, 0.3),
    "around NaN": (lambda x: np.nanquantile(np.array([x[0], np.nan, x[1], x[2]]), 0.3), VECTOR),
}
ERRORS = {
    "percent": (ValueError, lambda x: np.percentile(x, 101), VECTOR),
    "fraction": (ValueError, lambda x: np.quantile(x, [0.5, -0.1]), VECTOR),
}
REFUSED = {
    "method": (lambda x: np.quantile(x, 0.5, method="hazen"), VECTOR),
    "weights": (lambda x: np.quantile(x, 0.5, weights=x), VECTOR),
    "complex": (lambda x: np.percentile(x * 1j, 5), VECTOR),
}


def test_float32():
    calls = lambda x: (
        np.percentile(x, 20, axis=0),
        np.percentile(x, np.float32(3)),
        np.quantile(x, 0.3),
        np.nanmedian(x),
    )
    judge(calls, SINGLE, order=0, rtol=1e-6)
