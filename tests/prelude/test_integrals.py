"""scipy.integrate of functions that are known at points."""

import numpy as np
from scipy import integrate

from tests.prelude.cases import test_numpy_raises_too, test_slopes, test_values  # noqa: F401
from tests.prelude.judged import judge
from tests.quick import unoptimized  # noqa: F401  (for all tests here)

TIMES = np.arange(8.0) + 0.3 * np.sin(np.arange(8.0))
TABLE = np.cos(np.arange(56.0) ** 2).reshape(8, 7)
CUBE = np.sin(np.arange(48.0) ** 2).reshape(2, 8, 3)


def along(y, x):
    return (
        integrate.simpson(y, x=x), integrate.simpson(y, dx=0.5), integrate.trapezoid(y, x), integrate.trapezoid(y, dx=2.0),
        integrate.cumulative_trapezoid(y, x), integrate.cumulative_trapezoid(y, dx=0.3, initial=0),
    )  # fmt: skip


def by_axes(y, c, x):
    return (
        integrate.simpson(y, x=x, axis=0), integrate.simpson(y, axis=1), integrate.simpson(c, axis=-2),
        integrate.trapezoid(y, x, axis=0), integrate.cumulative_trapezoid(y, x, axis=0, initial=0), integrate.cumulative_trapezoid(c, x, axis=1),
        integrate.simpson(c, x=c + 3.0 * np.arange(8.0)[:, None], axis=1),
    )  # fmt: skip


VALUES = {
    **{f"{n} points": (along, TABLE[:n, 0].copy(), TIMES[:n].copy()) for n in (1, 2, 3, 4, 7, 8)},
    "axes": (by_axes, TABLE, CUBE, TIMES),
    "integers": (along, np.array([1, 5, -2, 4]), np.array([0, 1, 3, 4])),
    "points that are equal": (along, TABLE[:6, 2].copy(), np.array([0.0, 1.0, 1.0, 2.0, 3.0, 3.0])),
}
SLOPES = {name: case for name, case in VALUES.items() if "points" in name and "equal" not in name} | {
    "axes": VALUES["axes"]
}
ERRORS = {
    "too few points": (ValueError, lambda y, x: integrate.simpson(y, x=x[1:]), TABLE[0], TIMES[:7].copy()),
    "too few times": (ValueError, lambda y, x: integrate.cumulative_trapezoid(y, x), TABLE[0], TIMES),
    "none": (ValueError, lambda y: integrate.cumulative_trapezoid(y), np.zeros(0)),
    "initial": (ValueError, lambda y: integrate.cumulative_trapezoid(y, initial=1), TABLE[0]),
}


def test_single_precision():
    judge(along, TABLE[:5, 1].astype(np.float32), TIMES[:5].astype(np.float32), order=0, rtol=1e-6)
