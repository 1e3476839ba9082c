"""Numbers: shapes of scalars, edges of integers, ints and floats that meet, what is converted without a word."""

import math

import numpy as np
import pytest

import tapeless as tp
from tests.trust.grid import differs, outcome, same

pytestmark = pytest.mark.filterwarnings("ignore")


# -- numbers have no axes


def shapes(x, s, o):
    return (
        np.tensordot(x, 2.0, axes=0), np.transpose(s), np.roll(s, 1), np.flip(s), np.kron(x, s), np.kron(s, s),
        np.sum(s, keepdims=True), np.max(s, keepdims=True), np.mean(s, keepdims=True), np.einsum("i,->i", x, s), s.T, s[None],
        np.squeeze(o), o.reshape(()), np.reshape(o, ()), np.expand_dims(s, (0, 1)), np.cumsum(s), np.atleast_2d(s),
    )  # fmt: skip


def test_w13_numbers_stay_numbers():
    args = np.array([1.0, 2.0, 3.0, 4.0]), np.float64(1.5), np.array([7.0])
    assert same(shapes(*args), tp.function(shapes)(*args)) == ""


NO_AXIS = [
    lambda s: np.concatenate((s, s)), lambda s: np.sort(s), lambda s: np.diff(s), lambda s: np.moveaxis(s, 0, 0),
    lambda s: np.swapaxes(s, 0, 0), lambda s: np.roll(s, 1, axis=0), lambda s: np.mean(s, axis=0), lambda s: np.flipud(s),
    lambda s: np.diag(s), lambda s: np.split(s, 1), lambda s: np.trapezoid(s), lambda s: np.add.accumulate(s), lambda s: s[0],
    lambda s: np.linalg.norm(s, axis=0), lambda s: np.searchsorted(s, 1.0), lambda s: np.interp(s, s, s), lambda s: np.cross(s, s),
]  # fmt: skip


@pytest.mark.parametrize("number", range(len(NO_AXIS)))
def test_w13_functions_that_need_an_axis_refuse_numbers(number):
    function = NO_AXIS[number]
    assert isinstance(outcome(function, (np.float64(1.5),)), Exception)
    with pytest.raises(tp.CompileError) as caught:
        tp.function(function)(np.float64(1.5))
    assert "test_numbers.py" in str(caught.value)


def test_python_floats_have_no_methods_of_arrays():
    with pytest.raises(tp.CompileError, match="has no attribute 'sum'"):
        tp.function(lambda x: x.sum())(2.0)
    assert tp.function(lambda x: x.sum())(np.float64(2.0)) == 2.0


# -- extremes


@tp.function
def remainders(a, b):
    return np.fmod(a, b), np.remainder(a, b), np.floor_divide(a, b), a % b, a // b


@pytest.mark.parametrize("dtype", [np.int64, np.int32])
def test_w14_remainders_of_extremes(dtype):
    low, high = np.iinfo(dtype).min, np.iinfo(dtype).max
    values = np.array([low, low + 1, -7, -2, -1, 0, 1, 2, 3, 10, high - 1, high], dtype)
    a, b = (v.ravel() for v in np.meshgrid(values, values))
    with np.errstate(all="ignore"):
        assert same(remainders.python(a, b), remainders(a, b)) == ""


@tp.function
def strided(x, k):
    return x[::k], x[1::k], x[5:0:k], x[:3:k], x[-3::k]


@pytest.mark.parametrize("step", [2**63 - 1, -(2**63), -(2**63) + 1, 2**62, 7, -7, 6, 1, -1, 3])
def test_w14_slices_with_long_steps(step):
    x = np.arange(7.0)
    assert same(strided.python(x, step), strided(x, step)) == ""


def test_w14_constant_long_steps():
    def function(x):
        return x[::9223372036854775807], x[::-9223372036854775808], x[9223372036854775807:-9223372036854775808]

    x = np.arange(4.0)
    assert same(function(x), tp.function(function)(x)) == ""


@tp.function
def steps(a, b, c):
    return np.arange(a, b, c)


INF, NAN = math.inf, math.nan
BOUNDS = [(0.0, 1.0, INF), (0.0, 1.0, -INF), (1.0, 0.0, -INF), (0.0, 0.0, INF), (0.0, 5e-324, 1e300), (0.0, 1.0, NAN), (0.0, INF, 1.0),
          (NAN, 1.0, 1.0), (0.0, 1.0, 0.25), (0.0, 1.0, 0.0)]  # fmt: skip


@pytest.mark.parametrize("bounds", BOUNDS)
def test_w14_arange_with_infinite_steps(bounds):
    assert differs(outcome(steps.python, bounds), outcome(steps, bounds)) == ""


def test_w14_sizes_that_a_failed_test_left_are_sizes():
    def function():
        return np.arange(math.nan)

    with pytest.raises(ValueError, match="cannot compute length"):
        tp.function(function)()


def test_w14_hist_refuses_a_negative_number_of_bins():
    @tp.function
    def function(values, keys, n):
        return tp.hist(lambda a, b: a + b, 0.0, n, keys, values)

    args = np.ones(2), np.array([0, 1])
    for run in (function, function.python):
        with pytest.raises(ValueError, match="negative dimensions"):
            run(*args, -1)
    assert function(*args, 2).tolist() == [1.0, 1.0]


def test_w14_complex_edges():
    @tp.function
    def function(z):
        return np.sign(z), z**0.5, 1 / z, np.reciprocal(z), np.exp(z), z**-2, z**3

    parts = [0.0, -0.0, 1.0, -2.0, 1e-310, INF, -INF, NAN]
    z = np.array([complex(a, b) for a in parts for b in parts])
    with np.errstate(all="ignore"):
        assert same(function.python(z), function(z), 8) == ""


def test_integers_of_math():
    @tp.function
    def function(a, b):
        return math.gcd(a, b), math.isqrt(abs(a)), math.comb(64, 32)

    for pair in [(1, -(2**63)), (12, 18), (2, 0), (3, 9), (2**63 - 1, 7)]:
        assert function(*pair) == function.python(*pair)


# -- ints and floats


@tp.function
def compared(a, b):
    return a < b, a <= b, a > b, a >= b, a == b, a != b, b < a, b == a


def test_ints_and_floats_of_python_compare_by_value():
    ints = [0, 1, -1, 2**53, 2**53 + 1, -(2**53) - 1, 2**63 - 1, -(2**63), 2**62 + 1]
    floats = [0.0, 0.5, 2.0**53, 2.0**53 + 2, -(2.0**53), 2.0**63, -(2.0**63), 2.0**62, INF, -INF, NAN]
    assert all(compared(a, b) == compared.python(a, b) for a in ints for b in floats)


def test_numbers_of_numpy_compare_by_promotion():
    args = np.int64(2**53 + 1), np.float64(2.0**53)
    assert compared(*args) == compared.python(*args) == (False, True, False, True, True, False, False, True)


@tp.function
def chosen(n, x):
    return n if x > 0 else 0.5


@tp.function
def total(n, x):
    s = n
    for v in x:
        s += v
    return s


@tp.function
def largest(n, x):
    return max(n, x)


@tp.function
def place(x):
    found = -1.0
    for i in range(len(x)):
        if x[i] > 0.5:
            found = i
    return found


@tp.function
def array_chosen(a, b, n):
    return a if n > 0 else b


def test_w15_an_int_that_a_float_does_not_hold_is_an_error():
    for run in (lambda: chosen(2**53 + 1, 1.0), lambda: total(2**53 + 1, np.ones(2)), lambda: largest(2**53 + 1, 1.0)):
        with pytest.raises(OverflowError, match=r"9007199254740993 becomes a float64 here.*test_numbers"):
            run()
    with pytest.raises(OverflowError):
        array_chosen(np.array([1, 2**53 + 1]), np.ones(1), 1)


def test_w15_other_ints_become_floats():
    assert (chosen(3, 1.0), chosen(2**60, 1.0), chosen(2**53 + 1, -1.0)) == (3.0, 2.0**60, 0.5)
    assert (total(3, np.ones(2)), largest(3, 2.5), place(np.array([1.0, 0.0, 1.0]))) == (5.0, 3.0, 2.0)
    assert array_chosen(np.array([1, 2]), np.ones(1), 1).tolist() == [1.0, 2.0]


def test_w15_constants_must_fit():
    with pytest.raises(tp.CompileError, match="9007199254740993 becomes a float64"):
        tp.function(lambda x: 9007199254740993 if x > 0 else 0.5)(1.0)


# -- conversions


def test_w19_interp_of_complex_values():
    @tp.function
    def function(x, xp, fp):
        return np.interp(x, xp, fp)

    args = np.array([0.5, -1.0, 3.0, NAN]), np.array([0.0, 1.0]), np.array([1j, 2.0])
    assert same(function.python(*args), function(*args)) == ""
    for wrong in ((args[2], args[1], args[1]), (args[0], args[2], args[1])):
        with pytest.raises(tp.CompileError, match="does not take complex numbers"):
            function(*wrong)


@tp.function
def put(a, v):
    a[0] = v
    a[1:] = v
    return a


@pytest.mark.parametrize("dtype", [np.int64, np.int32])
@pytest.mark.parametrize(
    "value", [NAN, INF, 1e300, 2.7, -2.7, 2**40, -(2.0**63), 2147483647.5, np.float64(NAN), np.int64(2**40), True]
)
def test_w19_numbers_that_an_array_of_integers_does_not_hold(dtype, value):
    assert differs(outcome(put.python, (np.zeros(3, dtype), value)), outcome(put, (np.zeros(3, dtype), value))) == ""


@tp.function
def beside(j, n):
    return np.add(j, n), np.maximum(j, n), np.where(j > 0, j, n), j * n


def test_w19_ints_of_python_beside_int32():
    j = np.ones(2, np.int32)
    assert same(beside.python(j, 5), beside(j, 5)) == ""
    with pytest.raises(OverflowError, match="out of bounds for int32"):
        beside(j, 2**40)


def test_w19_weights_that_sum_to_zero():
    @tp.function
    def function(x, w):
        return np.average(x, weights=w)

    with pytest.raises(ZeroDivisionError, match="Weights sum to zero"):
        function(np.ones(2), np.array([1.0, -1.0]))
    assert function(np.ones(2), np.array([1.0, 3.0])) == 1.0


REFUSED = [
    lambda x, z: np.nan_to_num(x, nan=1j), lambda x, z: np.select([x], [x]), lambda x, z: np.full(2, 1j, dtype=np.float64),
    lambda x, z: np.array([1j], dtype=np.float64), lambda x, z: np.float64(1j), lambda x, z: np.interp(x, x, x, left=1j),
]  # fmt: skip


@pytest.mark.parametrize("number", range(len(REFUSED)))
def test_w19_nothing_is_dropped(number):
    with pytest.raises(tp.CompileError):
        tp.function(REFUSED[number])(np.ones(2), np.ones(2) * 1j)


# -- check=True

B, LOWEST = 2**62, -(2**63)
OVERFLOWING = [
    lambda a, m, k: np.sum(a), lambda a, m, k: np.cumsum(a), lambda a, m, k: np.prod(a), lambda a, m, k: np.cumprod(a),
    lambda a, m, k: np.dot(a, a), lambda a, m, k: m @ m, lambda a, m, k: m @ m[0], lambda a, m, k: np.einsum("ij,jk->ik", m, m),
    lambda a, m, k: np.einsum("i,i->", a, a), lambda a, m, k: np.tensordot(m, m, axes=1), lambda a, m, k: np.vdot(a, a),
    lambda a, m, k: np.outer(a, a), lambda a, m, k: np.trace(m), lambda a, m, k: np.add(a, a), lambda a, m, k: np.negative(a - a + k),
    lambda a, m, k: np.abs(a - a + k), lambda a, m, k: abs(k), lambda a, m, k: -k, lambda a, m, k: np.square(a),
    lambda a, m, k: np.left_shift(a, 3), lambda a, m, k: a << 3, lambda a, m, k: np.power(a, 2), lambda a, m, k: a**2,
    lambda a, m, k: np.floor_divide(k, -a[2]), lambda a, m, k: divmod(k, -1), lambda a, m, k: a.astype(np.int32),
    lambda a, m, k: np.int32(a[0]), lambda a, m, k: (a * 4.0).astype(np.int64), lambda a, m, k: sum(a), lambda a, m, k: np.diff(m),
    lambda a, m, k: np.add.reduce(a), lambda a, m, k: a[a[0] * 4 + a[1] * 4 + 1], lambda a, m, k: int(a[0] * 1e9),
]  # fmt: skip


@pytest.mark.sampled(3)
@pytest.mark.parametrize("number", range(len(OVERFLOWING)))
def test_check_raises_where_integers_overflow(number):
    m = np.array([[LOWEST + 1, B], [1, LOWEST + 1]]) if number == 12 else np.array([[B, -B - 1], [1, B]])
    with pytest.raises(OverflowError):
        tp.function(OVERFLOWING[number], check=True)(np.array([B, B, 1]), m, LOWEST)


def test_check_lets_fitting_results_pass():
    @tp.function(check=True)
    def function(a, m, k):
        return (
            np.sum(a),
            np.dot(a, a),
            m @ m,
            np.abs(a),
            a**2,
            a << 3,
            a.astype(np.int32),
            (-2) ** (k + 60),
            k**1,
            np.cumsum(a),
        )

    args = np.array([3, -4, 5]), np.array([[1, 2], [3, 4]]), 3
    assert same(function.python(*args), function(*args)) == ""


def test_without_check_integers_wrap():
    @tp.function
    def function(a):
        return a + a, np.sum(a), a * 4, -(a - a - 9223372036854775807 - 1)

    with np.errstate(all="ignore"):
        assert same(function.python(np.array([B, B, 1])), function(np.array([B, B, 1]))) == ""


def _running_maximum(x):
    b = 0
    for v in x:
        if v > b:
            b = v
    return x + b


def _larger(x, lo):
    return max(x[0], lo) * x


def _filtered(x, s):
    for v in x:
        s = 0.5 * s + v
    return s * x


def _sum_of_some(x):
    s = 0.0
    for v in x:
        if v > 0:
            s += v
    return x * s


def _below_the_largest(x):
    b = -math.inf
    for v in x:
        b = max(b, v)
    return x - b


BYTES, SINGLES = np.array([200, 100], np.uint8), np.array([1.0, -0.3], np.float32)


@pytest.mark.filterwarnings("ignore:overflow")
@pytest.mark.parametrize(
    ("f", "args"),
    [
        (_running_maximum, (BYTES,)),
        (_running_maximum, (SINGLES,)),
        (_larger, (BYTES, 0)),
        (_larger, (SINGLES, 0.5)),
        (_filtered, (SINGLES, 0.1)),
        (_sum_of_some, (SINGLES,)),
        (_below_the_largest, (SINGLES,)),
    ],
)
def test_python_numbers_take_the_type_of_numpy_numbers_where_paths_meet(f, args):
    want, got = f(*args), tp.function(f)(*args)
    np.testing.assert_array_equal(got, want)
    assert got.dtype == want.dtype


def _last_large(x):
    r = -1
    for i in range(len(x)):
        if x[i] > 150:
            r = x[i]
    return r


def _one_of(c, p, x):
    return p if c else x[0]


def test_what_a_narrow_type_does_not_hold_stays():
    assert tp.function(_last_large)(BYTES) == 200 and tp.function(_last_large)(BYTES[1:]) == -1
    assert tp.function(lambda c, i, v: (i if c else v[0]) + 100)(True, 200, BYTES) == 300
    assert tp.function(lambda n, v: max(n, v[0], v[1]))(300, BYTES) == 300
    for p in (1e300, 1e-300, 0.1):
        assert tp.function(_one_of)(True, p, SINGLES) == p
    with pytest.raises(OverflowError, match="300"):  # as NumPy, beside the array
        tp.function(_larger)(BYTES, 300)
