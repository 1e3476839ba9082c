"""np.einsum with '...', with lists of numbers, and with axes of length 1."""

import numpy as np

from tests.prelude.cases import test_numpy_raises_too, test_refused, test_slopes, test_values  # noqa: F401
from tests.quick import unoptimized  # noqa: F401  (for all tests here)

VECTOR = np.array([0.5, -1.5, 2.0, 0.25, 1.1, -0.75, 3.25])
MATRIX = np.sin(np.arange(12.0) * 2 + 0.3).reshape(3, 4)
CUBE = np.cos(np.arange(24.0) ** 2).reshape(2, 3, 4)
WHOLE = np.array([[3, -1, 4], [1, -5, 9], [2, 6, 5]])
VALUES = {
    "ellipsis": (
        lambda x, m, c: (
            np.einsum("...i,i->...", m, x),
            np.einsum("...i,...i", c, m),
            np.einsum("...ij,...kj->...ik", c, m),
            np.einsum("i...->...i", c),
            np.einsum("i...", c),
            np.einsum("...->...", m),
            np.einsum("...", x),
            np.einsum("...,i->...i", 2.0, x),
            np.einsum("i...j,j", c, x),
        ),
        VECTOR[:4],
        MATRIX,
        CUBE,
    ),
    "ones": (
        lambda m, c: (
            np.einsum("...ij,...ij->...", c[:, :1], c),
            np.einsum("...i,...i->...i", m[None], c),
            np.einsum("ij,ij->i", m[:1], m),
            np.einsum("ij,ij->ij", m[:, :1], m),
            np.einsum("ij->j", m[:1]),
            np.einsum("ij,ij->ij", m[:1], m[1:2]),
        ),
        MATRIX,
        CUBE,
    ),
    "lists": (
        lambda m, c: (
            np.einsum(m, [0, 1], [1, 0]),
            np.einsum(m, [0, 1], m, [2, 1], [0, 2]),
            np.einsum(m, [1, 0]),
            np.einsum(c, [Ellipsis, 3], m, [..., 3], [...]),
            np.einsum(m, (0, 1), m, (0, 1)),
            np.einsum(c, [30, 2, ...]),
        ),
        MATRIX,
        CUBE,
    ),
    "integers": (
        lambda w: (np.einsum("...ii->...", w), np.einsum("...ii->...i", w), np.einsum("ij,jk", w, w, optimize=True)),
        WHOLE,
    ),
}
SLOPES = {
    "all": (
        lambda m, c: (
            np.einsum("...i,...i", c, m),
            np.einsum("ij,ij->ij", m[:, :1], m),
            np.einsum(m, [0, 1], m, [2, 1], [0, 2]),
        ),
        MATRIX,
        CUBE,
    ),
}
ERRORS = {
    "too many": (ValueError, lambda x: np.einsum("ij...", x), VECTOR),
}
REFUSED = {
    "not in the result": (lambda c, m: np.einsum("...i,...i->", c, m), CUBE, MATRIX),
    "four dots": (lambda c: np.einsum("....i", c), CUBE),
    "one dot": (lambda c: np.einsum(".i", c), CUBE),
    "twice": (lambda c: np.einsum("...i...", c), CUBE),
}
