"""np.vecdot, np.cross with axes, norms of vectors and matrices, running totals."""

import numpy as np

from tests.prelude.cases import test_numpy_raises_too, test_refused, test_slopes, test_values  # noqa: F401
from tests.quick import unoptimized  # noqa: F401  (for all tests here)

VECTOR = np.array([0.5, -1.5, 2.0, 0.25, 1.1, -0.75, 3.25])
MATRIX = np.sin(np.arange(12.0) * 2 + 0.3).reshape(3, 4)
CUBE = np.cos(np.arange(24.0) ** 2).reshape(2, 3, 4)
WHOLE = np.array([[3, -1, 4], [1, -5, 9], [2, 6, 5]])
COMPLEX = MATRIX + 1j * MATRIX[::-1]
HOLES = MATRIX.copy()
HOLES[0, 1] = HOLES[2, 2] = np.nan
SHORT = WHOLE.astype(np.int32)
VALUES = {
    "vecdot": (
        lambda m, c, w, i, z: (
            np.vecdot(m, m),
            np.vecdot(c, m, axis=-2),
            np.vecdot(w, w),
            np.vecdot(i, i),
            np.vecdot(z, z * 2),
            np.linalg.vecdot(m, m, axis=0),
            np.vecdot(w > 2, w < 5),
        ),
        MATRIX,
        CUBE,
        WHOLE,
        SHORT,
        COMPLEX,
    ),
    "matvec": (
        lambda m, c, z, w: (
            np.matvec(m, m[0]),
            np.matvec(c, m[0]),
            np.vecmat(m[:, 0], m),
            np.vecmat(c[:, :, 0], c),
            np.vecmat(z[:, 0], z),
            np.matvec(w, w[0]),
            np.linalg.outer(w[0], w[1]),
        ),
        MATRIX,
        CUBE,
        COMPLEX,
        WHOLE,
    ),
    "cross": (
        lambda m, c: (
            np.cross(m, m[::-1] * 2, axis=0),
            np.cross(c, c * c, axis=1),
            np.cross(c, c[:, :, ::-1] ** 2, axisa=1, axisb=1, axisc=0),
            np.linalg.cross(m[:, :3], m[:, 1:]),
        ),
        MATRIX,
        CUBE,
    ),
    "vector norms": (
        lambda x, c, z: (
            np.linalg.vector_norm(x),
            np.linalg.vector_norm(c),
            np.linalg.vector_norm(c, axis=(0, 2)),
            np.linalg.vector_norm(c, axis=1, keepdims=True, ord=1),
            np.linalg.vector_norm(c, ord=np.inf, keepdims=True),
            np.linalg.vector_norm(c, axis=(0, 1), ord=3),
            np.linalg.vector_norm(z),
        ),
        VECTOR,
        CUBE,
        COMPLEX,
    ),
    "matrix norms": (
        lambda m, c: (
            np.linalg.matrix_norm(m),
            np.linalg.matrix_norm(c, keepdims=True),
            np.linalg.matrix_norm(c, ord=1),
            np.linalg.matrix_norm(c, ord=-np.inf),
            np.linalg.matrix_norm(m, ord=np.inf),
        ),
        MATRIX,
        CUBE,
    ),
    "totals": (
        lambda x, m, w, i, n: (
            np.cumulative_sum(x),
            np.cumulative_sum(m, axis=0),
            np.cumulative_sum(w, axis=-1, include_initial=True),
            np.cumulative_sum(i, axis=1),
            np.cumulative_prod(m, axis=1, include_initial=True),
            np.nancumsum(n),
            np.nancumprod(n, axis=0),
            np.nancumsum(w, axis=1),
        ),
        VECTOR,
        MATRIX,
        WHOLE,
        SHORT,
        HOLES,
    ),
}
SLOPES = {
    "products": (lambda m, c: (np.vecdot(c, m, axis=-2), np.matvec(c, m[0]), np.vecmat(m[:, 0], m)), MATRIX, CUBE),
    "norms": (
        lambda c: (
            np.linalg.vector_norm(c, axis=(0, 2)),
            np.linalg.matrix_norm(c, ord=1),
            np.cross(c, c[:, :, ::-1] ** 2, axis=1),
        ),
        CUBE,
    ),
    "totals": (lambda m: (np.cumulative_prod(m, axis=1, include_initial=True), np.nancumsum(m)), MATRIX),
}
ERRORS = {
    "no axis": (ValueError, lambda m: np.cumulative_sum(m), MATRIX),
    "lengths": (ValueError, lambda x: np.vecdot(x, x[:3]), VECTOR),
    "a vector": (ValueError, lambda x: np.linalg.matrix_norm(x), VECTOR),
}
REFUSED = {
    "nuclear": (lambda m: np.linalg.matrix_norm(m, ord="nuc"), MATRIX),
}
