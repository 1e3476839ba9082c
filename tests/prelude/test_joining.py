"""np.dstack and its kin, np.block, np.array_split, np.rot90."""

import numpy as np
import pytest

import tapeless as tp
from tests.prelude.cases import test_numpy_raises_too, test_refused, test_slopes, test_values  # noqa: F401
from tests.quick import unoptimized  # noqa: F401  (for all tests here)

VECTOR = np.array([0.5, -1.5, 2.0, 0.25, 1.1, -0.75, 3.25])
MATRIX = np.sin(np.arange(12.0) * 2 + 0.3).reshape(3, 4)
CUBE = np.cos(np.arange(24.0) ** 2).reshape(2, 3, 4)
WHOLE = np.array([[3, -1, 4], [1, -5, 9], [2, 6, 5]])
VALUES = {
    "dstack": (lambda x, m: (np.dstack([x, 2 * x]), np.dstack([m, 2 * m]), np.dstack((1, 2))), VECTOR, MATRIX),
    "atleast_3d": (lambda x, s: (np.atleast_3d(x), np.atleast_3d(s)), VECTOR, 1.5),
    "rows of one": (
        lambda x, m, c: (
            np.hstack(x),
            np.hstack(m),
            np.hstack(c),
            np.vstack(x),
            np.vstack(m),
            np.vstack(c),
            np.dstack(x),
            np.dstack(m),
            np.dstack(c),
            np.column_stack(x),
            np.column_stack(m),
            np.column_stack(c),
        ),
        VECTOR,
        MATRIX,
        CUBE,
    ),
    "rows of many axes": (
        lambda q, c, w: (
            np.hstack(q),
            np.vstack(q),
            np.dstack(q),
            np.concatenate(q),
            np.concatenate(c, axis=1),
            np.concatenate(c, -1),
            np.concatenate(c, axis=None),
            np.stack(c),
            np.stack(c, axis=-1),
            np.hstack(w),
        ),
        np.arange(48.0).reshape(2, 3, 4, 2),
        CUBE,
        WHOLE,
    ),
    "block": (
        lambda m, w: (
            np.block([[m, m * 2], [m * 3, m]]),
            np.block([m[0], 1.0]),
            np.block([[1, 2], [3, 4]]),
            np.block(m),
            np.block([[m], [m[0]]]),
            np.block([[w[0]], [w]]),
        ),
        MATRIX,
        WHOLE,
    ),
    "block of cubes": (lambda c: (np.block([[c], [c]]), np.block([c, c]), np.block([[[c]], [[c]]])), CUBE),
    "array_split": (
        lambda x, m: (
            np.array_split(x, 3),
            np.array_split(x, 9),
            np.array_split(m, 2, axis=1),
            np.array_split(m, [1, 2], axis=-1),
            np.array_split(x, [2, 4, 20]),
        ),
        VECTOR,
        MATRIX,
    ),
    "splits": (
        lambda m, c, x: (
            np.vsplit(m, 3),
            np.hsplit(m, 2),
            np.hsplit(m, [1]),
            np.hsplit(x, 7),
            np.dsplit(c, 2),
            np.vsplit(c, [1]),
        ),
        MATRIX,
        CUBE,
        VECTOR,
    ),
    "rot90": (
        lambda m, c: (
            np.rot90(m),
            np.rot90(m, 2),
            np.rot90(m, -1),
            np.rot90(m, 0),
            np.rot90(c, 1, (1, 2)),
            np.rot90(c, 3, axes=(2, 0)),
            np.rot90(c, 7),
        ),
        MATRIX,
        CUBE,
    ),
    "rollaxis": (
        lambda c: (
            np.rollaxis(c, 2),
            np.rollaxis(c, 0, 3),
            np.rollaxis(c, 1, 1),
            np.rollaxis(c, -1, 1),
            np.rollaxis(c, 0, -1),
            np.matrix_transpose(c),
        ),
        CUBE,
    ),
    "broadcast_arrays": (
        lambda m, x: (
            np.broadcast_arrays(m, x[:4]),
            np.broadcast_arrays(x),
            np.broadcast_arrays(x[:, None], x[:4], 2.0),
            np.broadcast_arrays(1, 2),
        ),
        MATRIX,
        VECTOR,
    ),
}
SLOPES = {
    "stacks": (
        lambda x, m, c: (np.hstack(m), np.dstack(m), np.column_stack(c), np.dstack([x, x * x])),
        VECTOR,
        MATRIX,
        CUBE,
    ),
    "parts": (
        lambda x, m, c: (np.block([[m], [m[0]]]), np.array_split(x, 3), np.rot90(m), np.rollaxis(c, 2)),
        VECTOR,
        MATRIX,
        CUBE,
    ),
}
ERRORS = {
    "no rows": (ValueError, lambda m: np.concatenate(m), np.zeros((0, 2))),
    "one axis": (ValueError, lambda x: np.vsplit(x, 7), VECTOR),
    "uneven": (ValueError, lambda m: np.hsplit(m, 3), MATRIX),
    "twice": (ValueError, lambda m: np.rot90(m, 1, (0, 0)), MATRIX),
}
REFUSED = {
    "an axis too far": (lambda m: np.rollaxis(m, 2), MATRIX),
}


def turned(m):
    r = np.rot90(m)
    r[0, 0] = 100.0
    return m


def split(m):
    parts = np.array_split(m, 2, axis=1)
    parts[1][0] = 100.0
    return m


def stacked(m):
    s = np.vstack(m)
    s[0, 0] = 100.0
    return m


@pytest.mark.parametrize("function", [turned, split, stacked])
def test_views_and_copies(function):
    assert np.array_equal(tp.function(function)(MATRIX.copy()), function(MATRIX.copy()))
