"""Scalar expressions: arithmetic, comparisons, `and/or/not`, conditional expressions, chains, math functions, kinds."""

from __future__ import annotations

import math

import numpy as np
import pytest

import tapeless as tp
from tests.language.same import raises, same, same_values
from tests.quick import unoptimized  # noqa: F401  (for all tests here)


def arithmetic(x, y):
    return x + y, x - y, x * y, x / y, -x, +y, abs(x), x**2, x**3 - y


@pytest.mark.parametrize(
    "x, y",
    [
        (2.5, -1.5),
        (7, 2),
        (7, -2.0),
        (np.float32(1.25), 3),
        (np.float64(0.1), np.int32(3)),
        (np.int64(-7), 2),
        (True, 3),
    ],
)
def test_arithmetic(x, y):
    same(arithmetic, x, y)


def divisions(x, y):
    return x // y, x % y, divmod(x, y)


@pytest.mark.parametrize("x", [7, -7, 7.5, -7.5, 0.0])
@pytest.mark.parametrize("y", [2, -2, 2.5, -2.5])
def test_divisions_round_down(x, y):
    same(divisions, x, y)


def truediv(x, y):
    return x / y


def floordiv(x, y):
    return x // y


def modulo(x, y):
    return x % y


@pytest.mark.parametrize("f", [truediv, floordiv, modulo])
@pytest.mark.parametrize("x, y", [(1, 0), (1.0, 0.0), (2, 0.0), (True, 0)])
def test_python_numbers_refuse_zero_division(f, x, y):
    raises(ZeroDivisionError, f, x, y)


@pytest.mark.parametrize("x, y", [(1.0, 0.0), (-1.0, 0.0), (0.0, 0.0), (1.0, -0.0)])
def test_numpy_numbers_divide_by_zero(x, y):
    same(truediv, np.float64(x), np.float64(y))
    same(truediv, np.float32(x), y)
    same(modulo, np.float64(x), np.float64(y))
    same(floordiv, np.float64(x), np.float64(y))


def powers(x, n):
    return x**n, x**0, x**0.5, x**-1, x**4, 2**x


@pytest.mark.parametrize("x, n", [(2.5, 3.0), (4.0, -2.0), (np.float64(2.0), 5), (np.float32(3.0), 2.5), (0.5, 2)])
def test_powers(x, n):
    same(powers, x, n)


def power(x, y):
    return x**y


def test_powers_that_python_refuses():
    raises(ZeroDivisionError, power, 0.0, -1.0)
    same(power, np.float64(0.0), -1.0)
    same(power, np.float64(-4.0), 0.5)
    with pytest.raises(ValueError):  # complex in Python, which a float cannot become at run time
        tp.function(power)(-4.0, 0.5)


@pytest.mark.parametrize("x, y", [(10.0, 400.0), (1e-300, -2.0), (-1e200, 3.0), (2, 1025.0), (1e200 + 0j, 5.5 + 0j)])
def test_powers_that_overflow(x, y):
    raises(OverflowError, power, x, y)
    if type(x) is not complex:
        assert math.isinf(same(power, np.float64(x), np.float64(y)))


@pytest.mark.parametrize(
    "x, y",
    [
        (math.inf, 2.0),
        (2.0, math.inf),
        (0.0, -math.inf),
        (math.nan, 2.0),
        (0.0, 0.0),
        (1.0, math.nan),
        (-2.0, math.inf),
    ],
)
def test_powers_of_infinities(x, y):
    same(power, x, y)


def inverse(x):
    return x**-1, x**-2.0, x**10


def test_constant_powers_that_overflow():
    same(inverse, 2.0)
    raises(OverflowError, inverse, 5e-324)
    raises(OverflowError, inverse, 1e40)
    raises(ZeroDivisionError, inverse, 0.0)
    raises(ZeroDivisionError, power, 0j, -1)
    raises(ZeroDivisionError, power, 0j, 1j)


def squares(x):
    return x**2, x**3, x**4.0


def test_small_constant_powers_are_products():
    """As x * x does they give inf, where Python's ** raises: Weak numbers in docs/design/frontend.md."""
    same(squares, 1e50)
    assert tp.function(squares)(1e200) == (math.inf, math.inf, math.inf)


def test_int_to_a_negative_power_says_what_to_write():
    assert tp.function(power)(2, 10) == 1024
    with pytest.raises(ValueError, match=r"is a float in Python.*float\(") as problem:
        tp.function(power)(2, -1)
    assert "test_scalars.py" in str(problem.value) or any("test_scalars" in n for n in problem.value.__notes__)


def constant_powers(n):
    return n**2, n**5, 2**n, n**-2, (-3) ** 3, 2**0.5


def test_integer_powers():
    assert same(constant_powers, 7) == (49, 7**5, 128, 7**-2, -27, 2**0.5)


def comparisons(x, y):
    return x < y, x <= y, x > y, x >= y, x == y, x != y, x is None, not x


@pytest.mark.parametrize("x, y", [(1, 2), (2, 2.0), (math.nan, 1.0), (True, 1), (np.float32(0.1), 0.1), (-0.0, 0.0)])
def test_comparisons(x, y):
    same(comparisons, x, y)


def chained(a, b, c):
    return a < b < c, a < b > c, a == b == c, 0 < a <= b != c


@pytest.mark.parametrize("a, b, c", [(1, 2, 3), (3, 2, 1), (2, 2, 2), (1, 3, 2), (-1, 0, 5)])
def test_chained_comparisons(a, b, c):
    same(chained, a, b, c)


def chain_evaluates_once(x, i):
    return 0 < x[i] < 10 / i


def test_a_chain_stops_at_the_first_false():
    x = np.array([-1.0, 2.0, 3.0])
    same(chain_evaluates_once, x, 1)
    assert same(chain_evaluates_once, x, 0) == 0  # 10 / 0 is not evaluated


def logic(a, b):
    return a and b, a or b, not a, (a and b) or a


def mixed_logic(a, b):
    return (a or b) and not (a and b)


@pytest.mark.parametrize("a, b", [(0, 5), (3, 0), (2, 7), (0.0, -1.5), (1.5, 0.0), (True, False), (False, True)])
def test_and_or_give_an_operand(a, b):
    same(logic, a, b)
    same_values(mixed_logic, a, b)


def guarded_division(x, y):
    safe = y != 0 and x / y > 1
    either = y == 0 or x / y > 1
    return safe, either


def test_and_or_are_lazy():
    assert same(guarded_division, 3.0, 0.0) == (False, True)
    assert same(guarded_division, 3.0, 2.0) == (True, True)


def conditional(x, y):
    return x / y if y != 0 else 0.0


def nested_conditional(x):
    return 1 if x > 1 else -1 if x < -1 else 0 if x == 0 else 5


def test_conditional_expressions():
    same(conditional, 1.0, 4.0)
    same(conditional, 1.0, 0.0)
    for x in (2.0, -2.0, 0.0, 0.5):
        same(nested_conditional, x)


def conditional_index(x, i):
    return x[i] if i < len(x) else -1.0


def test_the_other_side_of_a_conditional_is_not_evaluated():
    x = np.arange(3.0)
    assert same_values(conditional_index, x, 7) == -1.0
    assert same_values(conditional_index, x, 2) == 2.0


def in_a_tuple(x):
    return x in (1, 2, 3), x not in (4, 5), x in [7]


def test_membership():
    for x in (1, 4, 7):
        same(in_a_tuple, x)


def math_functions(x):
    return (
        math.sqrt(x), math.exp(x), math.log(x), math.sin(x), math.cos(x), math.tan(x), math.atan(x), math.sinh(x), math.tanh(x),
        math.log1p(x), math.expm1(x), math.log2(x), math.log10(x), math.erf(x), math.gamma(x), math.lgamma(x), math.fabs(-x),
        math.floor(x), math.ceil(x), math.trunc(-x), math.atan2(x, 2.0), math.hypot(x, 3.0), math.copysign(x, -0.0),
        math.fmod(-x, 0.3), math.pow(x, 1.5), math.isnan(x), math.isinf(x), math.isfinite(x), math.degrees(x), math.radians(x),
        math.pi, math.e, math.log(x, 3.0), math.cbrt(x),
    )  # fmt: skip


def test_math():
    for x in (0.75, 3.0, 12.25):
        same(math_functions, x)
    same(math_functions, np.float64(1.5))
    same(math_functions, 2)


def integer_math(a, b):
    return (
        math.gcd(a, b),
        math.factorial(abs(b)),
        math.isqrt(abs(a)),
        math.comb(9, abs(b)),
        math.floor(a / 2),
        math.ceil(a / 2),
    )


def test_integer_math():
    for a, b in ((12, 8), (-12, 6), (7, 3), (0, 5)):
        same(integer_math, a, b)


def sqrt(x):
    return math.sqrt(x)


def log(x):
    return math.log(x)


def test_math_domain_errors():
    raises(ValueError, sqrt, -1.0)
    raises(ValueError, log, 0.0)
    raises(ValueError, log, -1.0)
    same(sqrt, 0.0)


def conversions(x):
    return int(x), float(x), bool(x), round(x), complex(x), abs(x), int(float(x)) + 1, float(int(x)) / 2


@pytest.mark.parametrize("x", [2.5, -2.5, 3.5, 0.0, 7, -7, True, np.float32(1.75), np.float64(-0.5), np.int32(9)])
def test_conversions(x):
    same(conversions, x)


def minmax(a, b, c):
    return min(a, b), max(a, b), min(a, b, c), max(a, b, c), min((a, b)), sum((a, b, c))


@pytest.mark.parametrize("a, b, c", [(1, 2, 3), (3.5, 2.5, 7.25), (-1.0, -1.5, 2.0)])
def test_min_max_sum(a, b, c):
    same(minmax, a, b, c)


def mixed_minmax(a, b):
    return max(a, b) + 0.0


def test_min_max_of_mixed_types():
    same(mixed_minmax, 1, 2.5)
    same(mixed_minmax, 3, 2.5)


def rounding(x):
    return round(x), round(x, 2), math.floor(x), int(x), np.round(x), np.floor(x), np.rint(x), np.trunc(x)


def test_rounding_is_to_even():
    for x in (0.5, 1.5, 2.5, -0.5, -1.5, 2.675, 1234.5678):
        same(rounding, x)


def kinds(x):
    a = x + 1
    b = np.sin(x)
    c = b * 2
    d = float(c)
    e = np.float32(x) + 1
    f = np.int32(3) * 2
    return a, b, c, d, e, f, np.sqrt(4), math.sqrt(4), np.float64(2), x * np.float64(1.0), 3


@pytest.mark.parametrize("x", [1.5, 2, np.float64(1.5), np.float32(1.5), np.int64(3), np.int32(3)])
def test_python_and_numpy_numbers_are_told_apart(x):
    same(kinds, x)


def assigned(x):
    a = b = x
    a += 1
    b *= 2
    c, d = a, b
    (e, f), g = (c, d), x
    a, b = b, a
    h: float = a - b
    return a, b, c, d, e, f, g, h


def test_assignment_of_numbers():
    same(assigned, 3)
    same(assigned, 2.5)


def walrus(x):
    return (y := x * 2) + y


def test_assignment_expressions():
    same(walrus, 3.0)


def constants():
    return 1, 2.0, True, 1e300 * 10, -0.0, 7 // 2, 2**10, 1j, None, "text"


def test_constants():
    assert same(constants)[9] == "text"


def infinite(x):
    return x * math.inf, math.nan + x, x - np.inf, -math.inf < x


def test_special_values():
    same(infinite, 1.0)
    same(infinite, 0.0)


def asserts(x):
    assert x > 0, "x must be positive"
    return math.log(x)


def test_assert():
    same(asserts, 2.0)
    raises(AssertionError, asserts, -2.0)


def raising(x):
    if x < 0:
        raise ValueError("negative {value}")
    return x * 2


def test_raise():
    same(raising, 2.0)
    raises(ValueError, raising, -2.0)
    with pytest.raises(ValueError, match="negative {value}"):
        tp.function(raising)(-1.0)
