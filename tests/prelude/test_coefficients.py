"""np.polyfit, np.polyadd and their kin."""

import numpy as np
import pytest

import tapeless as tp
from tests.prelude.cases import test_numpy_raises_too, test_refused, test_slopes, test_values  # noqa: F401
from tests.quick import unoptimized  # noqa: F401  (for all tests here)

VECTOR = np.array([0.5, -1.5, 2.0, 0.25, 1.1, -0.75, 3.25])
WHOLE = np.array([[3, -1, 4], [1, -5, 9], [2, 6, 5]])
MATRIX = np.sin(np.arange(12.0) * 2 + 0.3).reshape(3, 4)
TOLERANCE = {"rtol": 1e-10}
VALUES = {
    "sums": (
        lambda x, w: (
            np.polyadd(x, x[:3]),
            np.polyadd([1, 2], w[0]),
            np.polysub(w[0], [1, 2, 3, 4]),
            np.polysub(x[:2], x),
            np.polyadd(2, x),
        ),
        VECTOR,
        WHOLE,
    ),
    "products": (
        lambda x, w: (
            np.polymul(x, x[:3]),
            np.polymul([0, 0, 1, 2], w[0]),
            np.polymul([0, 0], [1, 2]),
            np.polymul(2.0, x),
        ),
        VECTOR,
        WHOLE,
    ),
    "calculus": (
        lambda x, w: (
            np.polyder(x),
            np.polyder(w[0]),
            np.polyder(x, 3),
            np.polyder(x, 0),
            np.polyder(w[0], 2),
            np.polyint(x),
            np.polyint(w[0]),
            np.polyint(x, 2),
            np.polyint(x, 2, [1.0, 2.0]),
            np.polyint(x, 1, 3.0),
            np.polyint(x, m=0),
        ),
        VECTOR,
        WHOLE,
    ),
    "vander": (
        lambda x, w, f: (
            np.vander(x),
            np.vander(x, 3),
            np.vander(w[0], 4, increasing=True),
            np.vander(f[0]),
            np.vander(x, 1),
            np.vander(x, 0),
        ),
        VECTOR,
        WHOLE,
        MATRIX.astype(np.float32),
    ),
    "polyfit": (
        lambda x, y: (
            np.polyfit(x, y, 2),
            np.polyfit(x, y, 0),
            np.polyfit(x, y, 3, w=np.abs(y) + 0.1),
            np.polyfit(x, np.stack([y, y * x], axis=1), 1),
            np.polyfit([1, 2, 3], [3, 1, 2], 1),
        ),
        VECTOR,
        np.cos(VECTOR),
    ),
}
SLOPES = {
    "polynomials": (
        lambda x: (np.polyadd(x, x[:3]), np.polymul(x, x[:3]), np.polyder(x, 2), np.polyint(x, 2), np.vander(x, 3)),
        VECTOR[:5],
    ),
    "at zero": (lambda x: np.vander(x, 3), np.zeros(2)),
    "polyfit": (lambda x, y: np.polyfit(x, y, 2, w=y * y + 1), VECTOR, np.cos(VECTOR)),
}
ERRORS = {
    "degree": (ValueError, lambda x: np.polyfit(x, x, -1), VECTOR),
    "lengths": (TypeError, lambda x: np.polyfit(x, x[:3], 1), VECTOR),
    "order": (ValueError, lambda x: np.polyder(x, -1), VECTOR),
    "constants": (ValueError, lambda x: np.polyint(x, 3, [1.0, 2.0]), VECTOR),
}
REFUSED = {
    "a matrix": (lambda m: np.polyadd(m, m), MATRIX),
}


def test_what_is_not_determined_is_an_error():
    with pytest.raises(ValueError, match="lower degree"):
        tp.function(lambda x: np.polyfit(x, x, 2))(np.array([1.0, 2.0, 1.0]))
