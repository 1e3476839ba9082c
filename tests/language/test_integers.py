"""Integers: division that rounds down, bit operations, shifts, overflow that wraps, and `check=True` that raises."""

from __future__ import annotations

import math

import numpy as np
import pytest

import tapeless as tp
from tests.language.same import raises, same
from tests.quick import unoptimized  # noqa: F401  (for all tests here)

LARGE = 2**62


def divisions(a, b):
    return a // b, a % b, divmod(a, b), a / b


SIGNS = [(7, 2), (-7, 2), (7, -2), (-7, -2), (6, 3), (-6, 3), (0, 5), (1, LARGE), (-1, LARGE), (-LARGE, 3)]


@pytest.mark.parametrize("a, b", SIGNS)
def test_division_rounds_down(a, b):
    same(divisions, a, b)
    same(divisions, np.int64(a), np.int64(b))


def test_division_of_arrays():
    a, b = np.array(SIGNS).T.copy()
    same(divisions, a, b)
    same(divisions, np.clip(a, -(2**30), 2**30).astype(np.int32), np.clip(b, -(2**30), 2**30).astype(np.int32))
    same(divisions, a, 3)
    same(divisions, -17, b)


def whole(a, b):
    return a // b, a % b


def constant_divisors(n):
    return n // 4, n % 4, n // 3, n % 3, n // -5, n % -5, n // 1, n % 1, n // 1024, n % 1024


def test_constant_divisors():
    for n in (0, 1, 17, -1, -17, LARGE + 3, -LARGE - 3):
        same(constant_divisors, n)
        same(constant_divisors, np.array([n, n + 1]))


def test_division_by_zero():
    raises(ZeroDivisionError, whole, 1, 0)
    same(whole, np.array([1, -1, 0]), np.array([0, 0, 0]))  # 0 in NumPy
    same(whole, np.int64(5), np.int64(0))


def bits(a, b):
    return a & b, a | b, a ^ b, ~a, ~b


def shifts(a, k):
    return a << k, a >> k


@pytest.mark.parametrize("a, b", [(12, 10), (-12, 10), (0, -1), (LARGE, 1), (True, 3), (True, False)])
def test_bit_operations(a, b):
    same(bits, a, b)


def test_bit_operations_on_arrays():
    a, b = np.array([12, -12, 0]), np.array([10, 7, -1])
    same(bits, a, b)
    same(bits, a.astype(np.int32), b.astype(np.int32))
    same(bits, a.astype(np.int32), 5)
    same(bits, a > 0, b > 0)
    same(shifts, a, np.array([1, 2, 3]))
    same(shifts, a.astype(np.int32), 2)
    same(shifts, 1, np.arange(5))


def test_shifts():
    for a in (1, -1, 12, -13):
        for k in (0, 1, 5, 40):
            same(shifts, a, k)
    for a, k in ((-8, 63), (8, 63), (0, 63)):
        assert tp.function(lambda a, k: a >> k)(a, k) == a >> k


def shifted_right(a, k):
    return a >> k


def test_shifts_beyond_the_width():
    """Python shifts every bit out; there is nothing undefined."""
    for a in (5, -5):
        same(shifted_right, a, 64)
        same(shifted_right, a, 100)
        same(shifted_right, np.int64(a), np.int64(64))
        same(shifted_right, np.array([a]), 70)
        same(shifted_right, np.array([a], np.int32), 40)
    raises(ValueError, shifted_right, 5, -1)


def added(a, b):
    return a + b


def multiplied(a, b):
    return a * b


def subtracted(a, b):
    return a - b


TOP, BOTTOM = 2**63 - 1, -(2**63)


def test_overflow_wraps():
    """Compiled integers have 64 bits, as NumPy's."""
    for f, a, b in ((added, TOP, 1), (subtracted, BOTTOM, 1), (multiplied, LARGE, 4), (multiplied, TOP, TOP)):
        want = f(a, b) % 2**64
        want -= 2**64 if want >= 2**63 else 0
        assert tp.function(f)(a, b) == want
        same(f, np.int64(a), np.int64(b))
        same(f, np.array([a]), np.array([b]))
    same(added, np.array([2**31 - 1], np.int32), np.array([1], np.int32))
    same(multiplied, np.int32(2**30), np.int32(4))


def negated(a):
    return -a, abs(a)


def floored(a, b):
    return a // b


def incremented(x):
    x[0] += 1
    return x


def accumulated(x):
    s = 0
    for v in x:
        s += v
    return s


@pytest.mark.parametrize("f, args", [
    (added, (TOP, 1)), (added, (BOTTOM, -1)), (subtracted, (BOTTOM, 1)), (multiplied, (LARGE, 2)), (multiplied, (2**32, -(2**32))),
    (multiplied, (3_037_000_500, 3_037_000_500)), (negated, (BOTTOM,)),
    (added, (np.int32(2**31 - 1), np.int32(1))), (multiplied, (np.int32(2**16), np.int32(2**15))), (added, (np.array([TOP]), np.array([1]))),
    (floored, (BOTTOM, -1)), (floored, (np.int32(-(2**31)), np.int32(-1))), (floored, (np.array([BOTTOM]), np.array([-1]))),
    (incremented, (np.array([TOP]),)), (accumulated, (np.array([TOP, 1]),)),
])  # fmt: skip
def test_check_raises_on_overflow(f, args):
    with pytest.raises(OverflowError):
        tp.function(f, check=True)(*args)


@pytest.mark.parametrize("f", [math.comb, math.perm])
def test_choices_that_do_not_fit_raise(f):
    compiled = tp.function(lambda n, k: f(n, k))
    for n in (20, 21, 61, 66, 67, 68, 130, 3_037_000_499, 3_037_000_500, LARGE, TOP):
        for k in (0, 1, 2, 3, 16, 20, 21, 30, 33, 34, 66, 131):
            expected = f(n, k)
            if expected <= TOP:
                assert compiled(n, k) == expected
            else:
                with pytest.raises(OverflowError, match="does not fit into 64 bits"):
                    compiled(n, k)


@pytest.mark.parametrize("f, args", [
    (added, (TOP, 0)), (added, (TOP, BOTTOM)), (added, (TOP - 1, 1)), (subtracted, (BOTTOM + 1, 1)), (multiplied, (LARGE, -2)), (multiplied, (LARGE - 1, 2)),
    (multiplied, (3_037_000_499, 3_037_000_499)), (added, (np.int32(2**31 - 2), np.int32(1))), (multiplied, (0, BOTTOM)), (subtracted, (-1, TOP)),
    (negated, (TOP,)), (multiplied, (-1, TOP)), (floored, (BOTTOM, 1)), (floored, (BOTTOM + 1, -1)), (floored, (TOP, -1)),
])  # fmt: skip
def test_check_lets_the_largest_numbers_pass(f, args):
    assert tp.function(f, check=True)(*args) == f(*args)


def powers(a, n):
    return a**n


def test_powers():
    for a, n in ((2, 10), (-3, 3), (5, 0), (0, 0), (1, 100), (-1, 7)):
        same(powers, a, n)
        same(powers, np.int64(a), np.int64(n))
    same(powers, np.array([1, 2, -3]), np.array([3, 2, 3]))
    same(powers, np.array([1, 2, -3], np.int32), 5)
    raises(ValueError, powers, np.int64(2), np.int64(-1))
    raises(ValueError, powers, np.array([2, 3]), np.array([1, -1]))


def hash_of(x):
    h = 5381
    for v in x:
        h = ((h << 5) + h) ^ v
        h &= 0xFFFFFFFF
    return h


def popcount(n):
    c = 0
    while n:
        n &= n - 1
        c += 1
    return c


def reversed_bits(n, width):
    r = 0
    for _ in range(width):
        r = (r << 1) | (n & 1)
        n >>= 1
    return r


def gcd(a, b):
    while b:
        a, b = b, a % b
    return a


def sieve(n):
    prime = np.ones(n, dtype=bool)
    prime[:2] = False
    for i in range(2, n):
        if prime[i]:
            for j in range(i * i, n, i):
                prime[j] = False
    return prime.sum(), prime


def lcg(n):
    x = 12345
    for _ in range(n):
        x = (1103515245 * x + 12345) % 2**31
    return x


def test_integer_programs():
    same(hash_of, np.arange(20) * 37)
    for n in (0, 1, 255, 2**40 - 1):
        same(popcount, n)
    same(reversed_bits, 0b1011, 8)
    for a, b in ((48, 36), (-48, 36), (7, 0)):
        same(gcd, a, b)
    same(sieve, 50)
    same(lcg, 100)


def limits():
    return np.iinfo(np.int64).max, np.iinfo(np.int32).min, 9223372036854775807, -9223372036854775808


def test_the_ends_of_the_range():
    same(limits)


def conversions(x):
    return int(x), np.int32(x), np.int64(x)


def test_conversion_truncates():
    for x in (2.9, -2.9, 0.5, -0.0):
        same(conversions, x)


def mixed(a, b):
    return a + b, a * b, a - b, a // b, a % b, a & b


def test_mixed_widths():
    same(mixed, np.int32(7), np.int64(3))
    same(mixed, np.int32(7), 3)
    same(mixed, np.array([7, -8], np.int32), np.array([3, 5]))
    same(mixed, np.array([7, -8], np.int32), np.int64(3))


def counted(x):
    n = 0
    for v in x:
        n += v > 0
    return n, (x > 0).sum(), sum([v > 0 for v in (x[0], x[1])])


def test_bools_count():
    same(counted, np.array([1.0, -1.0, 2.0]))
