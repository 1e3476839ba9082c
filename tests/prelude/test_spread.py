"""np.nanvar, np.nanstd, np.cov, np.corrcoef."""

import numpy as np

import tapeless as tp
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
    "nanvar": (
        lambda n, w, c: (
            np.nanvar(n),
            np.nanvar(n, axis=0),
            np.nanstd(n, axis=1, keepdims=True),
            np.nanvar(n, axis=1, ddof=1),
            np.nanstd(w),
            np.nanvar(c, axis=(0, 2)),
        ),
        HOLES,
        WHOLE,
        CUBE,
    ),
    "cov": (
        lambda m, x: (
            np.cov(m),
            np.cov(x),
            np.cov(m, rowvar=False),
            np.cov(m[0], m[1]),
            np.cov(m, m * m, bias=True),
            np.cov(m, ddof=2),
        ),
        MATRIX,
        VECTOR,
    ),
    "weights": (
        lambda m: (
            np.cov(m, fweights=[1, 2, 3, 1]),
            np.cov(m, aweights=np.abs(m[0])),
            np.cov(m, fweights=[1, 2, 0, 3], aweights=np.abs(m[0])),
        ),
        MATRIX,
    ),
    "others": (
        lambda w, m, f: (np.cov(w), np.cov(m + 1j * m * m), np.cov(f), np.nanvar(m * 1j + 1, axis=0)),
        WHOLE,
        MATRIX,
        SINGLE,
    ),
    "corrcoef": (
        lambda m, x: (np.corrcoef(m), np.corrcoef(m, rowvar=False), np.corrcoef(x), np.corrcoef(m[0], m[1])),
        MATRIX,
        VECTOR,
    ),
}
SLOPES = {
    "nanstd": (lambda x: (np.nanstd(x), np.nanvar(np.where(x > 2.5, np.nan, x), ddof=1)), VECTOR),
    "cov": (lambda m: (np.cov(m), np.cov(m[0], m[1], aweights=m[2] ** 2)), MATRIX),
    "corrcoef": (lambda m: np.corrcoef(m), MATRIX),
}
ERRORS = {
    "negative": (ValueError, lambda m: np.cov(m, aweights=m[0]), MATRIX),
}
REFUSED = {
    "a cube": (lambda c: np.cov(c), CUBE),
}


def test_constant_numbers_have_no_slope():
    assert np.array_equal(tp.grad(lambda x: np.nanstd(x))(np.full(3, 2.0)), np.zeros(3))


def test_float32():
    judge(lambda x: (np.nanvar(x, axis=0), np.nanstd(x), np.cov(x, dtype=np.float32)), SINGLE, order=0, rtol=1e-5)
