"""NumPy 2's promotion in compiled code: element types of results, and Python against NumPy numbers."""

from __future__ import annotations

import math

import numpy as np
import pytest

from tests.language.same import same
from tests.quick import unoptimized  # noqa: F401  (for all tests here)

DTYPES = [np.bool_, np.int32, np.int64, np.float32, np.float64, np.complex64, np.complex128]
REAL = DTYPES[:5]
SCALARS = [
    True,
    3,
    2.5,
    1 + 2j,
    np.int32(3),
    np.int64(3),
    np.float32(2.5),
    np.float64(2.5),
    np.complex64(1 + 2j),
    np.bool_(True),
]


def arithmetic(a, b):
    return a + b, a * b


def divided(a, b):
    return a / b


def compared(a, b):
    return a == b, a != b


def ordered(a, b):
    return a < b, a >= b, np.maximum(a, b), np.where(a > b, a, b)


def array(kind):
    return np.array([1, 0, 2]).astype(kind)


@pytest.mark.thorough
@pytest.mark.sampled(8)
@pytest.mark.parametrize("a", DTYPES)
def test_arrays_with_arrays(a):
    for b in DTYPES:
        same(arithmetic, array(a), array(b))
        same(compared, array(a), array(b))


@pytest.mark.thorough
@pytest.mark.sampled(8)
@pytest.mark.parametrize("a", DTYPES)
def test_arrays_with_numbers(a):
    for b in SCALARS:
        same(arithmetic, array(a), b)
        same(arithmetic, b, array(a))


@pytest.mark.sampled(8)
@pytest.mark.parametrize("a", SCALARS)
def test_numbers_with_numbers(a):
    for b in SCALARS:
        same(arithmetic, a, b)
        same(compared, a, b)


@pytest.mark.sampled(4)
@pytest.mark.parametrize("a", REAL[1:])
def test_division_and_order(a):
    for b in REAL[1:]:
        x, y = array(a), array(b) + b(1)
        same(divided, x, y)
        same(ordered, x, y)
    same(divided, array(a), 2)
    same(divided, 2.5, array(a) + a(1))
    same(ordered, array(a), 1)
    same(ordered, array(a), 1.5)


def functions(x):
    return np.sin(x), np.sqrt(x), np.abs(x), np.exp(x), x.sum(), x.mean(), np.square(x), np.cumsum(x), x.prod()


def functions_of_numbers(x):
    return np.sin(x), np.sqrt(x), abs(x), np.abs(x), np.square(x), math.sin(x), np.floor(x)


@pytest.mark.sampled(2)
@pytest.mark.parametrize("kind", REAL[1:])
def test_functions_keep_or_widen(kind):
    same(functions, array(kind))
    same(functions_of_numbers, kind(2))


def test_functions_of_python_numbers():
    for x in (2, 2.0):
        same(functions_of_numbers, x)


def literals(x):
    return x + 1, x * 2.0, x / 3, x**2, x**0.5, 1 - x, -x, 2.0 * x + 1, x // 2, x % 2


@pytest.mark.sampled(2)
@pytest.mark.parametrize("kind", [np.int32, np.int64, np.float32, np.float64])
def test_literals_are_weak(kind):
    same(literals, array(kind))
    same(literals, kind(3))


def stored(n):
    a = np.zeros(n, dtype=np.float32)
    a[0] = 0.1
    a[1] = a[0] * 2.0
    b = a + np.float64(1)
    c = np.zeros(n, np.int32)
    c[0] = 7.9
    d = c + 1
    e = np.arange(n) * 0.5
    f = np.ones(n, bool)
    g = f + f
    return a, b, c, d, e, f, g, f.sum(), f * 2.5, ~f, f & (a > 0)


def test_stored_and_mixed():
    same(stored, 3)


def accumulated(x):
    s = 0
    t = 0.0
    for v in x:
        s += v
        t = t + v * 0.5
    return s, t


def test_accumulators():
    for kind in (np.float32, np.float64, np.int64):
        same(accumulated, array(kind))


def accumulated_i32(x):
    s = np.int32(0)
    for v in x:
        s += v
    return s


def test_small_accumulators():
    same(accumulated_i32, np.arange(5, dtype=np.int32))


def conversions(x):
    return (
        np.float32(x),
        np.float64(x),
        np.int32(x),
        np.int64(x),
        int(x),
        float(x),
        np.float32(x) * 2,
        np.int32(x) + np.int64(1),
        bool(x),
    )


def test_conversions():
    for x in (2, 2.75, -2.75, np.float32(1.5), np.int64(7), True):
        same(conversions, x)


def made(n):
    return (
        np.zeros(n),
        np.arange(n),
        np.arange(n) / 2,
        np.full(n, 1),
        np.full(n, 1.0),
        np.array([1, 2]),
        np.array([1, 2.0]),
        np.linspace(0, 1, n),
    )


def test_types_of_new_arrays():
    same(made, 3)


def bools(x, y):
    a = x > 0
    b = y > 0
    return a + b, a * b, a & b, a | b, a ^ b, a + 1, a * 2.5, -(a + 0), a == b, not a


def test_bools_of_python_and_numpy():
    same(bools, 1.0, 2.0)
    same(bools, 1, -2)
    same(bools, np.float64(1.0), np.float64(2.0))
