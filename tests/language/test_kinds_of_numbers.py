"""Every operator on every pair of kinds of numbers: the value and the type of plain Python's result, or its error."""

from __future__ import annotations

import warnings

import numpy as np
import pytest

import tapeless as tp
from tests.quick import unoptimized  # noqa: F401  (for all tests here)

KINDS = {
    "bool": (True, False),
    "int": (3, -2),
    "float": (2.5, -0.5),
    "complex": (1 + 2j, -0.5j),
    "np.bool_": (np.bool_(True), np.bool_(False)),
    "np.int32": (np.int32(3), np.int32(-2)),
    "np.int64": (np.int64(3), np.int64(-2)),
    "np.float32": (np.float32(2.5), np.float32(-0.5)),
    "np.float64": (np.float64(2.5), np.float64(-0.5)),
    "np.complex128": (np.complex128(1 + 2j), np.complex128(-0.5j)),
}


def add(a, b):
    return a + b


def sub(a, b):
    return a - b


def mul(a, b):
    return a * b


def div(a, b):
    return a / b


def floordiv(a, b):
    return a // b


def mod(a, b):
    return a % b


def power(a, b):
    return a**b


def less(a, b):
    return a < b


def greater_or_equal(a, b):
    return a >= b


def equal(a, b):
    return a == b


def unequal(a, b):
    return a != b


def negative(a):
    return -a


def positive(a):
    return +a


def inverted(a):
    return ~a


def negated(a):
    return not a


def absolute(a):
    return abs(a)


BINARY = [add, sub, mul, div, floordiv, mod, power, less, greater_or_equal, equal, unequal]
UNARY = [negative, positive, inverted, negated, absolute]


def outcome(f, *args):
    with np.errstate(all="ignore"), warnings.catch_warnings():
        warnings.simplefilter("ignore")
        try:
            return f(*args)
        except Exception as problem:
            return type(problem)


# What a compiled function cannot give, and so refuses: a type that depends on the value (an int to a negative power, a root of a
# negative float), and NumPy's order of complex numbers, which Python has not.
def may_be_refused(f, expected, args):
    depends = f is power and type(expected) in (float, complex) and all(type(x) in (bool, int, float) for x in args)
    return depends or (f in (less, greater_or_equal) and any(isinstance(x, complex) for x in args))


def check(f, *args):
    """The same type and value; where Python raises, an error too."""
    expected = outcome(f, *args)
    got = outcome(tp.function(f), *args)
    if isinstance(expected, type):
        assert isinstance(got, type), f"Python raises {expected.__name__}, compiled: {got!r}"
        return
    if isinstance(got, type) and may_be_refused(f, expected, args):
        return
    assert not isinstance(got, type), f"Python: {expected!r}, compiled raises {got.__name__}"
    kind = np.int64 if type(expected) is np.int8 else type(expected)  # np.bool_ // np.bool_: there are no 8 bits here
    assert type(got) is kind, f"Python: {expected!r}, compiled: {got!r}"
    np.testing.assert_allclose(got, expected, rtol=1e-6 if type(got) in (np.float32, np.complex64) else 1e-13)


@pytest.mark.sampled(10, each="f")
@pytest.mark.parametrize("f", BINARY)
@pytest.mark.parametrize("b", KINDS)
@pytest.mark.parametrize("a", KINDS)
def test_pairs(f, a, b):
    for x in KINDS[a]:
        for y in KINDS[b]:
            check(f, x, y)


@pytest.mark.sampled(2, each="f")
@pytest.mark.parametrize("f", UNARY)
@pytest.mark.parametrize("a", KINDS)
def test_single(f, a):
    for x in KINDS[a]:
        check(f, x)
