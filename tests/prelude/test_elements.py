"""np.frexp, np.ldexp, np.logaddexp2, np.iscomplex and their kin."""

import math

import numpy as np
import pytest

import tapeless as tp
from tests.prelude.cases import test_numpy_raises_too, test_refused, test_slopes, test_values  # noqa: F401
from tests.prelude.judged import judge
from tests.quick import unoptimized  # noqa: F401  (for all tests here)

VECTOR = np.array([0.5, -1.5, 2.0, 0.25, 1.1, -0.75, 3.25])
MATRIX = np.sin(np.arange(12.0) * 2 + 0.3).reshape(3, 4)
WHOLE = np.array([[3, -1, 4], [1, -5, 9], [2, 6, 5]])
COMPLEX = MATRIX + 1j * (MATRIX > 0)
SPECIAL = np.array([0.0, np.inf, -np.inf, np.nan, 1e-310, 5e-324, 1.7e308, 2.0, 1.0, 0.5, 0.1, -8.0])
VALUES = {
    "infinite": (
        lambda s, w, h: (
            np.isposinf(s),
            np.isneginf(s),
            np.isposinf(w),
            np.isneginf(3.0),
            np.spacing(s),
            np.spacing(-s),
            np.spacing(h),
            np.spacing(w),
            np.spacing(1.0),
            np.spacing(w.astype(np.int16)),
        ),
        SPECIAL,
        WHOLE,
        np.float32([1.0, -2.0, np.inf, -0.0]),
    ),
    "complex": (
        lambda z, x, w: (
            np.iscomplex(z),
            np.isreal(z),
            np.iscomplex(x),
            np.isreal(w),
            np.iscomplexobj(z),
            np.isrealobj(z),
            np.iscomplexobj(2.0),
            np.isrealobj(w),
            np.real_if_close(x),
            np.isreal(1j),
            np.isreal(3.0),
        ),
        COMPLEX,
        VECTOR,
        WHOLE,
    ),
    "logaddexp2": (
        lambda x, w: (np.logaddexp2(x, x[::-1]), np.logaddexp2(w, 2), np.logaddexp2(-np.inf, x), np.logaddexp2(1, 2)),
        VECTOR,
        WHOLE,
    ),
    "ldexp": (
        lambda x, w: (
            np.ldexp(x, 3),
            np.ldexp(x, w[0, 0]),
            np.ldexp(w, w),
            np.ldexp(1.0, -1074),
            np.ldexp(1e300, 200),
            np.ldexp(3.0, -2000),
            np.ldexp(np.array([1e-308, 1e308]), np.array([2040, -2080])),
        ),
        VECTOR,
        WHOLE,
    ),
    "frexp": (lambda x, w, s: (np.frexp(x), np.frexp(w), np.frexp(s), np.frexp(8.0)), VECTOR, WHOLE, SPECIAL),
}
SLOPES = {
    "slopes": (lambda x: (np.logaddexp2(x, x[::-1]), np.ldexp(x, 3), np.frexp(x)[0]), np.array([0.7, -1.3, 3.1])),
}
ERRORS = {
    "no order": (TypeError, lambda z: np.isposinf(z), COMPLEX),
}
REFUSED = {
    "by data": (lambda z: np.real_if_close(z), COMPLEX),
}


def test_float32():
    judge(
        lambda x: (np.ldexp(x, 3), np.ldexp(x * 0, 999), np.ldexp(x, -150), np.frexp(x), np.logaddexp2(x, x)),
        MATRIX.astype(np.float32),
        order=0,
        rtol=1e-6,
    )


@pytest.mark.parametrize("dtype", [np.float64, np.float32])
def test_frexp_takes_every_exponent_apart(dtype):
    smallest, largest = np.finfo(dtype).smallest_subnormal, np.finfo(dtype).max
    powers = np.ldexp(dtype(1.0), np.arange(math.frexp(smallest)[1] - 1, math.frexp(largest)[1])).astype(dtype)
    x = np.concatenate([powers, -powers * dtype(0.7), np.nextafter(powers, dtype(0.0)), [largest, -smallest]]).astype(
        dtype
    )
    for found, expected in zip(tp.function(lambda x: np.frexp(x))(x), np.frexp(x), strict=True):
        np.testing.assert_array_equal(found, expected)
        assert found.dtype == expected.dtype
