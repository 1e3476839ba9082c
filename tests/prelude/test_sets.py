"""np.union1d, np.intersect1d, np.setdiff1d, np.setxor1d."""

import numpy as np

from tests.prelude.cases import test_slopes, test_values  # noqa: F401
from tests.quick import unoptimized  # noqa: F401  (for all tests here)

VECTOR = np.array([3.0, 1.0, 2.0, 2.0, 7.5])
MATRIX = np.array([[2.0, 7.5], [9.0, 9.0]])
WHOLE = np.array([4, 1, 4, -2, 9])
HOLES = np.array([np.nan, 1.0, np.nan, 2.0])


def all_four(a, b):
    return np.union1d(a, b), np.intersect1d(a, b), np.setdiff1d(a, b), np.setxor1d(a, b)


VALUES = {
    "floats": (all_four, VECTOR, MATRIX),
    "nothing before": (all_four, VECTOR[:0], MATRIX),
    "nothing after": (all_four, VECTOR, MATRIX[:0]),
    "integers and floats": (all_four, WHOLE, MATRIX),
    "widths": (all_four, WHOLE, WHOLE[:2].astype(np.int32)),
    "not a number": (all_four, HOLES, VECTOR),
    "where": (lambda a, b: np.intersect1d(a, b, return_indices=True), VECTOR, MATRIX),
    "where in rows": (lambda a, b: np.intersect1d(b, a, return_indices=True), VECTOR, MATRIX),
    "once": (
        lambda a, b: (
            np.intersect1d(a, b, assume_unique=True),
            np.intersect1d(a, b, assume_unique=True, return_indices=True),
            np.setdiff1d(a, b, True),
            np.setxor1d(a, b, True),
        ),
        WHOLE[2:],
        WHOLE[:2],
    ),
}
SLOPES = {"all": (all_four, np.array([0.5, -1.5, 2.0, 0.25]), np.array([0.75, 3.0]))}
