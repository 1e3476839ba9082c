"""np.r_, np.c_, np.mgrid, np.ogrid, np.s_."""

import numpy as np

from tests.prelude.cases import test_numpy_raises_too, test_refused, test_slopes, test_values  # noqa: F401
from tests.quick import unoptimized  # noqa: F401  (for all tests here)

VECTOR = np.array([0.5, -1.5, 2.0, 0.25, 1.1, -0.75, 3.25])
MATRIX = np.sin(np.arange(12.0) * 2 + 0.3).reshape(3, 4)
WHOLE = np.array([[3, -1, 4], [1, -5, 9], [2, 6, 5]])
SINGLE = MATRIX.astype(np.float32)
VALUES = {
    "r_": (
        lambda x, m: (
            np.r_[x, 1.0, x[:2]],
            np.r_[m, m],
            np.r_[0:5, x],
            np.r_[0:1:5j, 1],
            np.r_[1, 2, 3],
            np.r_[x],
            np.r_[:3],
            np.r_[0.0 : x.shape[0] : 2],
        ),
        VECTOR,
        MATRIX,
    ),
    "types": (
        lambda f, w, i: (np.r_[f[0], 1.5], np.r_[f[0], 0:3], np.r_[w[0], 1.5], np.r_[i[0], 3], np.r_[True, w[0]]),
        SINGLE,
        WHOLE,
        WHOLE.astype(np.int32),
    ),
    "c_": (
        lambda x, m: (
            np.c_[x, x * 2],
            np.c_[m, m],
            np.c_[m[0], 0:4, x[:4]],
            np.c_[m, m[:, 0]],
            np.c_[1.0, 2],
            np.c_[x],
            np.c_[-1:1:7j, x],
        ),
        VECTOR,
        MATRIX,
    ),
    "mgrid": (
        lambda x: (
            np.mgrid[0:3],
            np.mgrid[0:3, 1:5:2],
            np.mgrid[0:1:4j],
            np.mgrid[-1:1:3j, 0:2],
            np.mgrid[0:2, 0:3.5, :2],
            np.mgrid[0 : x.shape[0], 0:2],
        ),
        VECTOR,
    ),
    "ogrid": (
        lambda x: (np.ogrid[0:3], np.ogrid[0:3, 1:5:2], np.ogrid[0:1:4j], np.ogrid[-1:1:3j, 0:2], np.ogrid[0:2, 0:3.5]),
        VECTOR,
    ),
    "s_": (lambda m: (m[np.s_[1:3]], m[np.s_[1:, ::2]], m[np.index_exp[0]], m[np.s_[..., 0]]), MATRIX),
}
SLOPES = {
    "joined": (lambda x, m: (np.r_[x, 1.0, x[:2] ** 2], np.c_[m, m[:, 0]]), VECTOR, MATRIX),
    "ends": (lambda a: (np.r_[a:3:4j], np.mgrid[a:2:0.7]), 0.3),
}
ERRORS = {
    "shapes": (ValueError, lambda x: np.c_[x, x[:3]], VECTOR),
}
REFUSED = {
    "a string": (lambda x: np.r_["c", x, x], VECTOR),
    "no end": (lambda x: np.mgrid[1:], VECTOR),
    "a number": (lambda x: np.ogrid[3], VECTOR),
}
