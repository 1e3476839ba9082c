"""np.fill_diagonal, np.copyto, np.put, np.put_along_axis."""

import numpy as np

from tests.prelude.cases import test_numpy_raises_too, test_slopes, test_values  # noqa: F401
from tests.quick import unoptimized  # noqa: F401  (for all tests here)

VECTOR = np.array([0.5, -1.5, 2.0, 0.25])
MATRIX = np.sin(np.arange(12.0) * 2 + 0.3).reshape(3, 4)
WHOLE = np.array([[3, -1, 4], [1, -5, 9], [2, 6, 5]])


def diagonals(m, w, c):
    np.fill_diagonal(m, 7.0)
    np.fill_diagonal(m.T, [1.0, 2.0])
    np.fill_diagonal(w, 2.9)
    np.fill_diagonal(c, 3)
    return m, w, c


def copies(m, w):
    a, b = np.zeros((3, 4)), np.zeros((3, 3), int)
    np.copyto(a, m)
    np.copyto(b, w, where=w > 2)
    np.copyto(m, 1, where=m > 0)
    return a, b, m


def puts(m, w, x):
    np.put(m, [1, -1, 5], [9.0, 8.0])
    np.put(w, [100], [3], mode="clip")
    np.put(x, np.array([9, 2]), 4.0, "wrap")
    return m, w, x


def along_axes(m, w, x):
    np.put_along_axis(m, np.argmax(m, axis=0)[None], 99.0, axis=0)
    np.put_along_axis(w, np.argmin(w, axis=1)[:, None], w[:, :1] * 10, axis=1)
    np.put_along_axis(x, np.array([0, 2]), [5.0, 6.0], 0)
    return m, w, x


def all_of_them(x, m):
    a = m * 2
    np.fill_diagonal(a, x[0] ** 2)
    np.put(a, [1, 5], x[:2])
    np.put_along_axis(a, np.array([[0], [1], [2]]), x[1:2] ** 2, 1)
    return a


VALUES = {
    "diagonals": (diagonals, MATRIX, WHOLE, np.zeros((3, 3, 3))),
    "copies": (copies, MATRIX, WHOLE),
    "puts": (puts, MATRIX, WHOLE, VECTOR),
    "along axes": (along_axes, MATRIX, WHOLE, VECTOR),
}
SLOPES = {"all of them": (all_of_them, VECTOR, MATRIX)}
ERRORS = {
    "diagonal": (ValueError, lambda w: np.fill_diagonal(w[0], 1), WHOLE),
    "position": (IndexError, lambda w: np.put(w, [9], 1), WHOLE),
    "element type": (TypeError, lambda w: np.copyto(w, 1.5), WHOLE),
}
