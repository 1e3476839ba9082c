"""np.pad."""

import numpy as np
import pytest

from tests.prelude.cases import test_numpy_raises_too, test_refused, test_slopes, test_values  # noqa: F401
from tests.prelude.judged import judge
from tests.quick import unoptimized  # noqa: F401  (for all tests here)

VECTOR = np.array([0.5, -1.5, 2.0, 0.25, 1.1, -0.75, 3.25])
MATRIX = np.sin(np.arange(12.0) * 2 + 0.3).reshape(3, 4)
CUBE = np.cos(np.arange(24.0) ** 2).reshape(2, 3, 4)
WHOLE = np.array([[3, -1, 4], [1, -5, 9], [2, 6, 5]])
PLACED = ("edge", "reflect", "symmetric", "wrap")
MODES = (*PLACED, "linear_ramp", "maximum", "minimum", "mean", "median")
VALUES = {
    "widths": (
        lambda x: (
            np.pad(x, 2),
            np.pad(x, (1, 2)),
            np.pad(x, ((1, 2),)),
            np.pad(x, ((1, 2), (0, 3))),
            np.pad(x, [[1], [2]]),
        ),
        MATRIX,
    ),
    "constants": (
        lambda x: (
            np.pad(x, 1, constant_values=((1.0, 2.0), (3.0, 4.0))),
            np.pad(x, (2, 1), "constant", constant_values=(1, 2)),
            np.pad(x, (0, 8 - x.shape[0]), constant_values=9),
        ),
        MATRIX,
    ),
    "far": (lambda x: [np.pad(x, (11, 9), m) for m in PLACED], VECTOR[:4]),
    "of one": (lambda x: [np.pad(x, (2, 3), m) for m in MODES], VECTOR[:1]),
    "of a cube": (lambda x: [np.pad(x, ((1, 2), (0, 1), (2, 0)), m) for m in PLACED], CUBE),
    "lengths": (
        lambda x: (
            np.pad(x, 2, "mean", stat_length=2),
            np.pad(x, 2, "maximum", stat_length=((1, 2), (2, 1), (1, 1))),
            np.pad(x, 1, "minimum", stat_length=9),
        ),
        CUBE,
    ),
    "ends": (
        lambda x: (
            np.pad(x, 3, "linear_ramp", end_values=(1.0, -1.0)),
            np.pad(x, 2, "reflect", reflect_type="even"),
            np.pad(x, 0, "edge"),
        ),
        VECTOR,
    ),
    "integers": (
        lambda x: (
            np.pad(x, 1, constant_values=2.75),
            np.pad(x, 1, "mean"),
            np.pad(x, 3, "linear_ramp", end_values=2),
            np.pad([1, 2, 3], 1),
            np.pad(x > 2, 1),
        ),
        WHOLE,
    ),
    "empty": (lambda x: (np.pad(x, 2), np.pad(x[:, None], ((0, 0), (1, 1)), "edge")), np.zeros(0)),
    "complex": (lambda x: np.pad(x, 2, "wrap"), MATRIX * 1j),
}
SLOPES = {
    "a value": (lambda x, v: np.pad(x, ((1, 2), (0, 1)), constant_values=v), MATRIX, 1.5),
    "placed": (lambda x: [np.pad(x, ((1, 4), (0, 1)), m) for m in PLACED], MATRIX),
    "computed": (lambda x: [np.pad(x, (2, 1), m) for m in ("linear_ramp", "maximum", "mean", "median")], VECTOR),
}
ERRORS = {
    "negative": (ValueError, lambda x: np.pad(x, x.shape[0] - 8), VECTOR),
    "empty": (ValueError, lambda x: np.pad(x[:0], 1, "edge"), VECTOR),
    "keyword": (ValueError, lambda x: np.pad(x, 1, "edge", end_values=1), VECTOR),
}
REFUSED = {
    "memory": (lambda x: np.pad(x, 1, "empty"), VECTOR),
    "odd": (lambda x: np.pad(x, 1, "reflect", reflect_type="odd"), VECTOR),
    "a function": (lambda x: np.pad(x, 1, lambda *a: None), VECTOR),
    "too many": (lambda x: np.pad(x, ((1, 1), (1, 1))), VECTOR),
}


@pytest.mark.parametrize("mode", ["constant", "reflect", "linear_ramp", "mean"])
def test_float32(mode):
    judge(lambda x: np.pad(x, 2, mode), MATRIX.astype(np.float32), order=0, rtol=1e-6)
