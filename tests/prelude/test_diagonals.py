"""np.diagonal, np.trace, and positions: np.tril_indices, np.unravel_index, np.ix_ and their kin."""

import numpy as np
import pytest

import tapeless as tp
from tests.prelude.cases import test_numpy_raises_too, test_refused, test_slopes, test_values  # noqa: F401
from tests.quick import unoptimized  # noqa: F401  (for all tests here)

MATRIX = np.sin(np.arange(12.0) * 2 + 0.3).reshape(3, 4)
CUBE = np.cos(np.arange(24.0) ** 2).reshape(2, 3, 4)
WHOLE = np.array([[3, -1, 4], [1, -5, 9], [2, 6, 5]])
VALUES = {
    "diagonal": (
        lambda m, c: (
            np.diagonal(m),
            np.diagonal(m, 1),
            np.diagonal(m, -1),
            np.diagonal(m, 5),
            np.diagonal(c),
            np.diagonal(c, 0, 1, 2),
            np.diagonal(c, 1, axis1=-1, axis2=0),
            np.diagonal(m.T, 1),
        ),
        MATRIX,
        CUBE,
    ),
    "trace": (
        lambda m, c: (
            np.trace(m),
            np.trace(m, 1),
            np.trace(c),
            np.trace(c, 0, 1, 2),
            np.trace(c, axis1=2, axis2=0, offset=-1),
            np.linalg.trace(c),
            m.trace(),
            np.linalg.diagonal(c, offset=1),
            c.diagonal(0, 1, 2),
            m.diagonal(),
        ),
        MATRIX,
        CUBE,
    ),
    "integers": (
        lambda w, i: (np.trace(w), np.trace(i), np.trace(i, dtype=float), np.diagflat(w, 1), np.diagflat(i)),
        WHOLE,
        WHOLE.astype(np.int32),
    ),
    "diagonal positions": (
        lambda w: (
            np.diag_indices(3),
            np.diag_indices(w.shape[0], 3),
            np.diag_indices_from(w),
            w[np.diag_indices_from(w)],
        ),
        WHOLE,
    ),
    "triangles": (
        lambda m: (
            np.tril_indices(3),
            np.tril_indices(3, 1),
            np.tril_indices(3, -1, 5),
            np.tril_indices_from(m),
            np.tril_indices(0),
            np.triu_indices(3),
            np.triu_indices(3, -1, 5),
            np.triu_indices(4, 2, 3),
            np.triu_indices_from(m, k=-1),
        ),
        MATRIX,
    ),
    "unravel": (
        lambda w: (
            np.unravel_index(5, (3, 4)),
            np.unravel_index(w[2] + 1, (3, 4)),
            np.unravel_index(w + 5, (3, 4, 2), order="F"),
            np.unravel_index([1, 2], 7),
        ),
        WHOLE,
    ),
    "ravel": (
        lambda w: (
            np.ravel_multi_index((1, 2), (3, 4)),
            np.ravel_multi_index((w[2], w[2]), (7, 8)),
            np.ravel_multi_index((w, w), (4, 5), mode="wrap"),
            np.ravel_multi_index((w, w), (4, 5), mode=("clip", "wrap"), order="F"),
        ),
        WHOLE,
    ),
    "masks": (lambda m: (np.mask_indices(3, np.triu), np.mask_indices(4, np.tril, -1), np.ix_(m[0] > 0, [1])), MATRIX),
    "ix_": (lambda m: (m[np.ix_([0, 2], [1, 3, 0])], np.ix_(np.array([1, 2]), [1])), MATRIX),
}
SLOPES = {
    "diagonal": (
        lambda m, c: (
            np.diagonal(c, 1, axis1=-1, axis2=0),
            np.trace(c, 0, 1, 2),
            m[np.triu_indices(3, 1)],
            np.diagflat(m),
        ),
        MATRIX,
        CUBE,
    ),
}
ERRORS = {
    "not square": (ValueError, lambda m: np.diag_indices_from(m), MATRIX),
    "outside": (ValueError, lambda m: np.unravel_index(12, m.shape), MATRIX),
    "beyond": (ValueError, lambda m: np.ravel_multi_index((3, 0), m.shape), MATRIX),
}
REFUSED = {
    "a vector": (lambda m: np.diagonal(m[0]), MATRIX),
}


def written_later(m):
    line = np.diagonal(m, 0, 0, 1)
    m[0, 0] = 9.0
    return line[0]


def test_a_diagonal_is_a_view():
    with pytest.raises(tp.CompileError, match="written since"):
        tp.function(written_later)(MATRIX.copy())
    found = tp.function(lambda c: np.diagonal(c, 0, 1, 2))(CUBE)
    assert found.base is not None and not found.flags.writeable
