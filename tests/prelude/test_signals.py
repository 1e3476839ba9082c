"""np.convolve, np.correlate, np.gradient, np.unwrap, np.ediff1d, windows."""

import numpy as np

from tests.prelude.cases import test_numpy_raises_too, test_refused, test_slopes, test_values  # noqa: F401
from tests.prelude.judged import judge
from tests.quick import unoptimized  # noqa: F401  (for all tests here)

VECTOR = np.array([0.5, -1.5, 2.0, 0.25, 1.1, -0.75, 3.25])
MATRIX = np.sin(np.arange(12.0) * 2 + 0.3).reshape(3, 4)
CUBE = np.cos(np.arange(24.0) ** 2).reshape(2, 3, 4)
WHOLE = np.array([[3, -1, 4], [1, -5, 9], [2, 6, 5]])
COMPLEX = VECTOR + 1j * VECTOR[::-1]
VALUES = {
    "convolve": (
        lambda x: (
            np.convolve(x, x[:3]),
            np.convolve(x[:2], x, "same"),
            np.convolve(x, x[:2], "valid"),
            np.convolve(x, x[:4], mode="same"),
            np.convolve(2.0, x),
        ),
        VECTOR,
    ),
    "correlate": (
        lambda x: (
            np.correlate(x, x[:3]),
            np.correlate(x[:2], x, "same"),
            np.correlate(x[:3], x, "same"),
            np.correlate(x, x[:2], "full"),
            np.correlate(x, x[:4], "same"),
            np.correlate(x[:3], x),
        ),
        VECTOR,
    ),
    "complex": (
        lambda x: (np.correlate(x, x[:3] * (1 + 2j)), np.correlate(x[:2] * (1 - 3j), x, "same"), np.convolve(x, x)),
        COMPLEX,
    ),
    "integers": (
        lambda w: (np.convolve(w[0], w[1]), np.convolve([1, 2, 3], w[0] > 0), np.convolve(w[0] > 0, w[1] < 0)),
        WHOLE,
    ),
    "ediff1d": (
        lambda x, w: (np.ediff1d(x), np.ediff1d(w), np.ediff1d(w, to_begin=3), np.ediff1d(x, [1.0, 2.0], [[4.0]])),
        VECTOR,
        WHOLE,
    ),
    "unwrap": (
        lambda x, m, w: (
            np.unwrap(x * 5),
            np.unwrap(m * 10, axis=0),
            np.unwrap(m * 10, discont=4.0),
            np.unwrap(x, period=1.5),
            np.unwrap(w, period=4),
            np.unwrap(w, period=5),
            np.unwrap(w),
        ),
        VECTOR,
        MATRIX,
        WHOLE,
    ),
    "gradient": (
        lambda x, m, w: (
            np.gradient(x),
            np.gradient(m),
            np.gradient(m, 2.0, 0.5),
            np.gradient(w),
            np.gradient(x, edge_order=2),
        ),
        VECTOR,
        MATRIX,
        WHOLE,
    ),
    "gradient by axis": (
        lambda m, c: (
            np.gradient(m, 2.0, axis=0),
            np.gradient(c, axis=(0, 2)),
            np.gradient(c, 2.0, [0.0, 1.0, 3.0], axis=(0, -2)),
        ),
        MATRIX,
        CUBE,
    ),
    "gradient at points": (
        lambda x, m: (
            np.gradient(m, np.array([0.0, 1.0, 3.0]), [1, 2, 4, 8], edge_order=2),
            np.gradient(x, np.cumsum(np.abs(x))),
        ),
        VECTOR,
        MATRIX,
    ),
    **{
        f"windows of {n}": (lambda n: (np.hanning(n), np.hamming(n), np.blackman(n), np.bartlett(n)), n)
        for n in (-3, 0, 1, 2, 7, 8)
    },
}
SLOPES = {
    "convolve": (lambda x: (np.convolve(x, x[:3]), np.correlate(x[:2], x, "same")), VECTOR),
    "gradient": (lambda x: (np.gradient(x), np.gradient(x, np.cumsum(x * x), edge_order=2)), VECTOR),
    "unwrap": (lambda x: (np.unwrap(x * 5), np.ediff1d(x, to_end=x[:2])), VECTOR),
}
ERRORS = {
    "nothing": (ValueError, lambda x, y: np.convolve(x, y), VECTOR[:0], VECTOR),
    "no kernel": (ValueError, lambda x, y: np.correlate(y, x), VECTOR[:0], VECTOR),
    "short": (ValueError, lambda x: np.gradient(x[:1]), VECTOR),
    "order": (ValueError, lambda x: np.gradient(x, edge_order=3), VECTOR),
    "points": (ValueError, lambda x: np.gradient(x, [1.0, 2.0]), VECTOR),
}
REFUSED = {
    "a matrix": (lambda m: np.convolve(m, m), MATRIX),
}


def test_float32():
    x = VECTOR.astype(np.float32)
    judge(lambda x: (np.convolve(x, x), np.gradient(x, np.cumsum(np.abs(x) * 1.0))), x, order=0, rtol=1e-5)
