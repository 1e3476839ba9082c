"""Every row of the ops table, and the functions made of several, at the singular points of their slopes.

First and second derivatives in every mode must agree with each other, and with the limit that mpmath sees from inside the
domain. `CHOICES` lists the points where there is none: what stands there is the convention.
"""

import itertools
import math
from collections.abc import Callable
from dataclasses import dataclass

import mpmath
import numpy as np
import pytest
from scipy import special

import tapeless as tp
from tapeless.ops.partials import FIRST_WINS, PARTIALS
from tapeless.ops.table import TABLE

INF, NAN = math.inf, math.nan
mp = mpmath


# -- six ways to two derivatives, for many points in one program


def along(f):
    return lambda x: tp.jvp(f, (x,), (1.0,))[1]


def unary(function: Callable) -> Callable:
    def f(x):
        return function(x)

    def all_modes(x):
        second = tp.grad(tp.grad(f))(x), along(tp.grad(f))(x), tp.grad(along(f))(x), along(along(f))(x)
        return (tp.grad(f)(x), along(f)(x), *second)

    return tp.function(lambda xs: tp.map(all_modes, xs))


def partial(f, k):
    unit = (1.0, 0.0) if k == 0 else (0.0, 1.0)
    return lambda x, y: tp.jvp(f, (x, y), unit)[1]


def component(f, k):
    return lambda x, y: tp.grad(f, (0, 1))(x, y)[k]


def binary(function: Callable) -> Callable:
    """Slopes in x and in y by each mode; then their slopes in x and y."""

    def f(x, y):
        return function(x, y)

    def all_modes(x, y):
        found = (*tp.grad(f, (0, 1))(x, y), partial(f, 0)(x, y), partial(f, 1)(x, y))
        for of in (component, partial):
            found += (*tp.grad(of(f, 0), (0, 1))(x, y), *tp.grad(of(f, 1), (0, 1))(x, y))
            found += (partial(of(f, 0), 0)(x, y), partial(of(f, 0), 1)(x, y))
            found += (partial(of(f, 1), 0)(x, y), partial(of(f, 1), 1)(x, y))
        return found

    return tp.function(lambda xs, ys: tp.map(all_modes, xs, ys))


def same(found: float, wanted: float) -> bool:
    """Up to rounding; infinities by their sign, NaN as NaN."""
    if math.isnan(wanted) or math.isinf(wanted):
        return found == wanted or (math.isnan(found) and math.isnan(wanted))
    return abs(found - wanted) <= 1e-11 * abs(wanted) + 1e-15


# -- rows of one operand


@dataclass(frozen=True)
class Row:
    """`points` come with the side that is inside the domain: 1, -1, or 0 where it is on both."""

    function: Callable
    reference: Callable
    points: tuple[tuple[float, int], ...] = ((0.0, 0),)
    digits: int = 700


ENDS = ((INF, -1), (-INF, 1))
REGULAR = ((0.0, 0), (1e-9, 0), (-1e-9, 0), (1e-200, 0), (0.5, 0), (-3.0, 0))
UNIT = ((1.0, -1), (-1.0, 1), (0.0, 0), (1e-9, 0), (1 - 2.0**-53, 0))
POSITIVE = ((0.0, 1), (1e-200, 0), (1.0, 0), (INF, -1))


def logarithm(base: float) -> Callable:
    return lambda x: mp.log(x) / mp.log(base)


def cube_root(x):
    return mp.sign(x) * mp.cbrt(abs(x))


def log_gamma(x):
    return mp.log(abs(mp.gamma(x)))


ROWS = {
    "neg": Row(np.negative, lambda x: -x),
    "abs": Row(np.abs, abs, ((1e-200, 0), (-1.0, 0), *ENDS)),
    "square": Row(np.square, lambda x: x * x, REGULAR),
    "reciprocal": Row(np.reciprocal, lambda x: 1 / x, ((1.0, 0), (-2.0, 0), *ENDS)),
    "sqrt": Row(np.sqrt, mp.sqrt, POSITIVE),
    "times_root": Row(lambda x: x * np.sqrt(x), lambda x: x * mp.sqrt(x), POSITIVE),
    "cbrt": Row(np.cbrt, cube_root, ((0.0, 1), (-0.0, -1), (1.0, 0), (-8.0, 0), *ENDS)),
    "exp": Row(np.exp, mp.exp, ((0.0, 0), (-800.0, 0), *ENDS)),
    "exp2": Row(np.exp2, lambda x: mp.mpf(2) ** x, ((0.0, 0), *ENDS)),
    "expm1": Row(np.expm1, mp.expm1, ((0.0, 0), (1e-9, 0), *ENDS)),
    "log": Row(np.log, mp.log, POSITIVE),
    "log2": Row(np.log2, logarithm(2), POSITIVE),
    "log10": Row(np.log10, logarithm(10), POSITIVE),
    "log1p": Row(np.log1p, lambda x: mp.log(1 + x), ((-1.0, 1), (0.0, 0), (1e-9, 0), (INF, -1))),
    "sin": Row(np.sin, mp.sin, REGULAR),
    "cos": Row(np.cos, mp.cos, REGULAR),
    "tan": Row(np.tan, mp.tan, REGULAR),
    "asin": Row(np.arcsin, mp.asin, UNIT),
    "acos": Row(np.arccos, mp.acos, UNIT),
    "atan": Row(np.arctan, mp.atan, (*REGULAR, *ENDS)),
    "sinh": Row(np.sinh, mp.sinh, (*REGULAR, *ENDS)),
    "cosh": Row(np.cosh, mp.cosh, (*REGULAR, *ENDS)),
    "tanh": Row(np.tanh, mp.tanh, (*REGULAR, (800.0, 0), *ENDS)),
    "asinh": Row(np.arcsinh, mp.asinh, (*REGULAR, (1e200, 0), *ENDS)),
    "acosh": Row(np.arccosh, mp.acosh, ((1.0, 1), (1 + 2.0**-52, 0), (2.0, 0), (INF, -1))),
    "atanh": Row(np.arctanh, mp.atanh, UNIT),
    "sinc": Row(
        lambda x: np.sinc(x), lambda x: mp.sincpi(x), (*REGULAR, (1e-5, 0), (-1e-5, 0), (0.63, 0), (0.64, 0), (1.0, 0))
    ),
    "deg2rad": Row(np.deg2rad, mp.radians),
    "rad2deg": Row(np.rad2deg, mp.degrees),
    "erf": Row(special.erf, mp.erf, (*REGULAR, (40.0, 0), *ENDS)),
    "erfc": Row(special.erfc, mp.erfc, ((0.0, 0), (1e-9, 0), (40.0, 0), *ENDS), 250),
    "gamma": Row(special.gamma, mp.gamma, ((1.0, 0), (0.5, 0), (-0.5, 0)), 250),
    "gammaln": Row(special.gammaln, log_gamma, ((0.0, 1), (-0.0, -1), (1.0, 0), (-0.5, 0)), 250),
    "digamma": Row(special.digamma, mp.digamma, ((1.0, 0), (-0.5, 0)), 250),
    "expit": Row(special.expit, lambda x: 1 / (1 + mp.exp(-x)), (*REGULAR, (800.0, 0), (-800.0, 0), *ENDS)),
    "logit": Row(
        special.logit, lambda x: mp.log(x / (1 - x)), ((0.0, 1), (1.0, -1), (1e-200, 0), (0.5, 0), (1 - 2.0**-53, 0))
    ),
    "pow": Row(lambda x: x**1.5, lambda x: x ** mp.mpf(1.5), POSITIVE),
    "pow with a whole exponent": Row(lambda x: x**3, lambda x: x**3, ((0.0, 0), (-0.0, 0), (-2.0, 0), *ENDS)),
    "softplus": Row(lambda x: np.logaddexp(0.0, x), lambda x: mp.log(1 + mp.exp(x)), ((0.0, 0), (800.0, 0), *ENDS)),
}
# Where there is no limit, or it lies beyond what differences show: slope and slope of the slope.
CHOICES = {
    "abs": ((0.0, (0, 0)), (-0.0, (0, 0))),
    "reciprocal": ((0.0, (-INF, INF)), (-0.0, (-INF, -INF))),
    "sqrt": ((-0.0, (-INF, INF)),),  # its root is -0.0: the sign of zero is that of the slope
    "log": ((-0.0, (-INF, -INF)),),
    "sin": ((INF, (NAN, NAN)),),
    "sinc": ((INF, (NAN, NAN)),),
    "asin": ((2.0, (NAN, NAN)),),
    "gamma": ((INF, (INF, INF)),),
    "gammaln": ((INF, (INF, 0)), (-1.0, (NAN, INF))),
    "digamma": ((0.0, (INF, NAN)), (INF, (0, 0))),
}


def limit(row: Row, point: float, side: int, order: int) -> float:
    """The derivative of the reference, beside the point where that is on the edge. What is huge there is infinite."""
    with mp.workdps(row.digits):
        away = mp.mpf(10) ** -30
        x = mp.mpf(point) + side * away if math.isfinite(point) else mp.sign(point) / away
        step = (away if side and math.isfinite(point) else abs(x) or 1) * mp.mpf(10) ** -60
        shifts = range(-order, order + 1, 2)
        terms = [
            (-1) ** k * mp.binomial(order, k) * row.reference(x + s * step) for k, s in enumerate(reversed(shifts))
        ]
        found = mp.re(sum(terms)) / (2 * step) ** order
        if side and abs(found) > 1e9:
            return math.copysign(INF, found)
        return float(found) if not side or abs(found) > 1e-9 else 0.0


@pytest.mark.sampled(2)
@pytest.mark.parametrize("name", ROWS)
def test_rows_at_singular_points(name):
    row = ROWS[name]
    limits = [(x, tuple(limit(row, x, side, order) for order in (1, 2))) for x, side in row.points]
    points = [*limits, *CHOICES.get(name, ())]
    found = np.array(unary(row.function)(np.array([x for x, _ in points])))
    for (x, (first, second)), column in zip(points, found.T, strict=True):
        assert all(same(v, first) for v in column[:2]), (x, "first", first, column[:2])
        assert all(same(v, second) for v in column[2:]), (x, "second", second, column[2:])


# -- rows of two operands: the slopes, and the four slopes of these

FLAT = ((0, 0), (0, 0))
FIRST = ((), ())  # no more than the slopes: those of a power with an infinite operand have 0 times infinity for slopes
LOG2 = math.log(2)
PAIRS = {
    "hypot": (np.hypot, {
        (0.0, 0.0): ((0, 0), FLAT), (3.0, 0.0): ((1, 0), ((0, 0), (0, 1 / 3))), (0.0, -2.0): ((0, -1), ((0.5, 0), (0, 0))),
        (3.0, 4.0): ((0.6, 0.8), ((0.128, -0.096), (-0.096, 0.072))), (1e200, 1e200): ((0.5**0.5, 0.5**0.5), FLAT),
        (INF, 2.0): ((1, 0), FLAT), (0.0, -INF): ((0, -1), FLAT), (INF, INF): ((1, 1), FLAT), (1.0, 1e-9): ((1, 1e-9), ((1e-18, -1e-9), (-1e-9, 1))),
    }),
    "atan2": (np.arctan2, {
        (0.0, 0.0): ((0, 0), FLAT), (0.0, 1.0): ((1, 0), ((0, -1), (-1, 0))), (0.0, -1.0): ((-1, 0), ((0, -1), (-1, 0))),
        (2.0, 0.0): ((0, -0.5), ((0, 0.25), (0.25, 0))), (1.0, INF): ((0, 0), FLAT), (INF, 1.0): ((0, 0), FLAT), (-INF, INF): ((0, 0), FLAT),
    }),
    "logaddexp": (np.logaddexp, {
        (3.0, 3.0): ((0.5, 0.5), ((0.25, -0.25), (-0.25, 0.25))), (INF, INF): ((0.5, 0.5), FLAT), (-INF, -INF): ((0.5, 0.5), FLAT),
        (INF, 1.0): ((1, 0), FLAT), (-INF, 1.0): ((0, 1), FLAT), (INF, -INF): ((1, 0), FLAT),
    }),
    "xlogy": (special.xlogy, {
        (0.0, 2.0): ((LOG2, 0), ((0, 0.5), (0.5, 0))), (0.0, INF): ((INF, 0), ((0, 0), (0, 0))), (2.0, 0.0): ((-INF, INF), ((0, INF), (INF, -INF))),
    }),
    "pow": (np.power, {
        (0.0, 0.0): ((0, 0), FLAT), (0.0, 3.0): ((0, 0), FLAT), (2.0, 0.0): ((0, LOG2), ((0, 0.5), (0.5, LOG2**2))),
        (0.0, -1.0): ((-INF, 0), None), (0.0, 0.5): ((INF, 0), None), (-2.0, 2.0): ((-4, 0), None), (1e-200, 0.0): ((0, math.log(1e-200)), None),
        (INF, 2.0): ((INF, INF), FIRST), (INF, -1.0): ((0, 0), FIRST), (INF, 0.0): ((0, INF), FIRST), (1.0, INF): ((INF, 0), FIRST),
        (0.5, INF): ((0, 0), FIRST), (2.0, -INF): ((0, 0), FIRST), (-1.0, 0.5): ((NAN, NAN), FIRST),
    }),
    "div": (np.divide, {
        (1.0, 0.0): ((INF, -INF), ((0, -INF), (-INF, INF))), (1.0, INF): ((0, 0), FLAT), (1.0, 1e-200): ((1e200, -INF), ((0, -INF), (-INF, INF))),
    }),
    "copysign": (np.copysign, {(2.0, -0.0): ((-1, 0), FLAT), (-0.0, -1.0): ((1, 0), FLAT), (INF, 1.0): ((1, 0), FLAT)}),
    "mod": (np.mod, {(5.0, 2.0): ((1, -2), FLAT), (-1.0, INF): ((1, 1), FLAT)}),
    "ieee_remainder": (math.remainder, {(5.0, 2.0): ((1, -2), FLAT), (5.0, INF): ((1, 0), FLAT)}),
    "fmod": (np.fmod, {(5.0, 2.0): ((1, -2), FLAT), (5.0, INF): ((1, 0), FLAT)}),
    "maximum": (np.maximum, {(2.0, 2.0): ((1, 0), FLAT), (INF, INF): ((1, 0), FLAT), (-INF, 1.0): ((0, 1), FLAT)}),
    "minimum": (np.minimum, {(2.0, 2.0): ((1, 0), FLAT), (-INF, -INF): ((1, 0), FLAT), (INF, 1.0): ((0, 1), FLAT)}),
    "fmax": (np.fmax, {(2.0, 2.0): ((1, 0), FLAT), (NAN, 1.0): ((0, 1), FLAT), (1.0, NAN): ((1, 0), FLAT)}),
    "fmin": (np.fmin, {(2.0, 2.0): ((1, 0), FLAT), (NAN, 1.0): ((0, 1), FLAT), (1.0, NAN): ((1, 0), FLAT)}),
    "max": (lambda x, y: max(x, y), {(2.0, 2.0): ((1, 0), FLAT), (INF, 1.0): ((1, 0), FLAT)}),
    "min": (lambda x, y: min(x, y), {(2.0, 2.0): ((1, 0), FLAT), (INF, 1.0): ((0, 1), FLAT)}),
    "mul": (np.multiply, {(0.0, 2.0): ((2, 0), ((0, 1), (1, 0)))}),
    "add": (np.add, {(0.0, INF): ((1, 1), FLAT)}),
    "sub": (np.subtract, {(0.0, INF): ((1, -1), FLAT)}),
}  # fmt: skip


@pytest.mark.parametrize("name", PAIRS)
def test_pairs_at_singular_points(name):
    """None: second derivatives are only asked to be the same in every mode."""
    function, points = PAIRS[name]
    found = np.array(binary(function)(*np.array(list(points)).T))
    for (point, (first, second)), column in zip(points.items(), found.T, strict=True):
        for k, want in enumerate(first):
            assert same(column[k], want) and same(column[2 + k], want), (point, k, want, column[:4])
        for e, (k, m) in enumerate(itertools.product((0, 1), repeat=2)):
            if second is FIRST:
                continue
            modes = column[4 + e :: 4]
            want = modes[0] if second is None else second[k][m]
            assert all(same(v, want) for v in modes), (point, k, m, want, modes)


# What derivatives are made of, and the rows that a program reaches it by.
REACHED = {
    "quotient": "sqrt", "times": "div", "rsqrt": "acosh", "sech2": "tanh", "loose_tanh": "tanh", "direction": "hypot",
    "one_minus_square": "asin", "polygamma": "digamma", "nextafter": "copysign", "mul_rounded": "mul",
}  # fmt: skip


def test_every_row_with_a_slope_is_here():
    sloped = {
        name for name, rules in PARTIALS.items() if any(rules) and not TABLE[name].patterns and not TABLE[name].borrowed
    } | set(FIRST_WINS)
    assert sloped - {name for name, row in TABLE.items() if row.own_rule} - set(ROWS) - set(PAIRS) == set(REACHED)
    assert set(REACHED.values()) <= set(ROWS) | set(PAIRS) and set(CHOICES) <= set(ROWS)


# -- functions of several rows


def in_every_mode(f: Callable) -> Callable:
    """Two gradients and four Hessians."""

    def all_modes(x):
        reverse, forward = tp.grad(f), tp.jacfwd(f)
        return (
            reverse(x), forward(x), tp.jacfwd(reverse)(x), tp.jacrev(reverse)(x), tp.jacfwd(forward)(x), tp.jacrev(forward)(x),
        )  # fmt: skip

    return tp.function(all_modes)


def expect(f: Callable, cases: dict[tuple[float, ...], tuple[object, object]]) -> None:
    """Gradients and Hessians; None for Hessians that are only asked to agree."""
    modes = in_every_mode(f)
    for point, (gradient, hessian) in cases.items():
        found = modes(np.array(point))
        for got in found[:2]:
            np.testing.assert_allclose(got, gradient, rtol=1e-12, atol=1e-15, err_msg=str(point))
        wanted = found[2] if hessian is None else np.broadcast_to(hessian, found[2].shape)
        for got in found[2:]:
            np.testing.assert_allclose(got, wanted, rtol=1e-12, atol=1e-15, err_msg=str(point))


def test_w11_norms_are_flat_at_zero_and_at_infinity():
    flat = {(0.0, 0.0): ([0, 0], 0), (INF, 1.0): ([0, 0], 0), (INF, -INF): ([0, 0], 0)}
    expect(
        lambda x: np.linalg.norm(x), {**flat, (0.0, 2.0): ([0, 1], [[0.5, 0], [0, 0]]), (3.0, 4.0): ([0.6, 0.8], None)}
    )
    expect(lambda x: np.linalg.norm(x, ord=3), {**flat, (3.0, 4.0): (slopes_of_norm(3), None)})
    for f, order in ((lambda x: np.linalg.norm(x, ord=1.5), 1.5), (lambda x: np.linalg.norm(x, ord=-1), -1)):
        for slopes in (tp.grad(f), tp.jacfwd(f)):
            np.testing.assert_array_equal(slopes(np.zeros(2)), 0)
            np.testing.assert_allclose(slopes(np.array([3.0, 4.0])), slopes_of_norm(order), rtol=1e-14)


def slopes_of_norm(p: float) -> list[float]:
    total = (3.0**p + 4.0**p) ** (1 / p)
    return [(x / total) ** (p - 1) for x in (3.0, 4.0)]


def test_w12_logsumexp_of_infinite_elements():
    def f(x):
        return special.logsumexp(x)

    expect(f, {
        (-INF, -INF): ([0.5, 0.5], 0), (INF, 0.0): ([1, 0], 0), (INF, INF): ([0.5, 0.5], 0), (-INF, 3.0): ([0, 1], 0),
        (2.0, 2.0): ([0.5, 0.5], [[0.25, -0.25], [-0.25, 0.25]]), (1000.0, -1000.0): ([1, 0], 0), (NAN, 1.0): ([NAN, NAN], NAN),
    })  # fmt: skip


def test_products_and_extrema_with_infinite_elements():
    for found in (tp.grad(lambda x: np.prod(x)), tp.jacfwd(lambda x: np.prod(x))):
        np.testing.assert_array_equal(found(np.array([INF, 2.0, 3.0])), [6, INF, INF])
        np.testing.assert_array_equal(found(np.array([1.0, -INF, 2.0])), [-INF, 2, -INF])
        np.testing.assert_array_equal(found(np.array([0.0, 2.0, 3.0])), [6, 0, 0])
    expect(lambda x: np.max(x), {(INF, 2.0): ([1, 0], 0), (-INF, -INF): ([1, 0], 0)})
    expect(lambda x: np.std(x), {(1.0, 1.0): ([0, 0], 0)})


def test_products_with_a_value_that_is_infinite_where_it_is_not_chosen():
    def f(x, y, z):
        return np.sum(np.where(y > 0, z * special.xlogy(x, y), 0.0))

    x, y, z = np.array([1.0, 1.0]), np.array([0.0, 2.0]), np.array([3.0, 3.0])
    expected = ([0.0, 3 * math.log(2)], [0.0, 1.5], [0.0, math.log(2)])
    for got, want in zip(tp.grad(f, (0, 1, 2))(x, y, z), expected, strict=True):
        np.testing.assert_allclose(got, want, rtol=1e-15)


def test_w11_size_and_angle_of_complex_numbers():
    expect(
        lambda v: np.abs(v[0] + 1j * v[1]),
        {(0.0, 0.0): ([0, 0], 0), (3.0, 4.0): ([0.6, 0.8], [[0.128, -0.096], [-0.096, 0.072]])},
    )
    expect(
        lambda v: np.angle(v[0] + 1j * v[1]), {(0.0, 0.0): ([0, 0], 0), (0.0, 2.0): ([-0.5, 0], [[0, 0.25], [0.25, 0]])}
    )
    assert tp.grad(np.angle)(0j) == 0 and tp.grad(np.abs)(0j) == 0
    assert tp.grad(lambda z: np.sinc(z).real)(1e-9 + 0j) == pytest.approx(-(math.pi**2) * 1e-9 / 3, rel=1e-12)


@pytest.mark.parametrize("function", [np.sqrt, np.log])
def test_complex_poles_have_no_finite_slope(function):
    """A complex infinity has no direction: some part of it is infinite or NaN."""
    assert not np.isfinite(tp.grad(lambda z: function(z).real)(0j))
    assert not np.isfinite(tp.jvp(lambda z: function(z), (0j,), (1 + 0j,))[1])


# -- determinants


def minor(a: np.ndarray, rows: set[int], columns: set[int]) -> object:
    kept = [
        [mp.mpmathify(e) for j, e in enumerate(row) if j not in columns] for i, row in enumerate(a) if i not in rows
    ]
    return mp.det(mp.matrix(kept)) if kept else mp.mpf(1)


def derivatives_of_det(a: np.ndarray) -> tuple[np.ndarray, np.ndarray]:
    """The cofactors and the Hessian, by minors."""
    n, number = len(a), a.dtype.type
    first, second = np.zeros((n, n), a.dtype), np.zeros((n, n, n, n), a.dtype)
    with mp.workdps(60):
        for i, j, k, m in itertools.product(range(n), repeat=4):
            if (k, m) == (0, 0):
                first[i, j] = number(minor(a, {i}, {j})) * (-1) ** (i + j)
            if i != k and j != m:
                sign = (-1) ** (i + j + k + m) * (1 if (i < k) == (j < m) else -1)
                second[i, j, k, m] = number(minor(a, {i, k}, {j, m})) * sign
    return first, second


def matrices() -> list[np.ndarray]:
    random = np.random.default_rng(7)
    found = [
        np.array([[0.1, 0.7], [0.3, 2.1]]),
        np.zeros((2, 2)),
        np.zeros((3, 3)),
        np.ones((3, 3)),
        np.eye(3),
        np.zeros((1, 1)),
    ]
    for n, rank, rest in itertools.product((2, 3), range(4), (0.0, 1e-12, 1e-5)):
        u, s, v = np.linalg.svd(random.normal(size=(n, n)))
        s[rank:] = rest
        found.append((u * s) @ v)
    return found


@pytest.mark.thorough
def test_w10_determinants_near_singular_matrices():
    """Relative to the largest entry, or to what a rounding of the matrix makes of it."""

    def det(a):
        return np.linalg.det(a)

    modes = [tp.grad(det), tp.jacfwd(tp.grad(det)), tp.jacrev(tp.grad(det))]
    for a in matrices():
        first, second = derivatives_of_det(a)
        for mode, wanted in zip(modes, (first, second, second), strict=True):
            np.testing.assert_allclose(mode(a), wanted, rtol=0, atol=1e-14 * max(1, abs(wanted).max()))


@pytest.mark.thorough
def test_w10_large_and_complex_determinants():
    a = np.arange(100.0).reshape(10, 10)  # of rank 2
    assert np.all(np.abs(tp.grad(np.linalg.det)(a)) < 1e-30 * 99.0**9)
    np.testing.assert_array_equal(tp.grad(np.linalg.det)(np.zeros((9, 9))), 0)
    z = np.array([[1 + 1j, 2.0, 1j], [2 + 2j, 4.0, 2j], [0.5, 1j, 3.0]])
    first, second = derivatives_of_det(z)

    def real(v):
        return np.linalg.det(v).real

    np.testing.assert_allclose(tp.grad(real)(z), first, rtol=0, atol=1e-14)
    direction = np.array([[1.0, 0.5, 0], [0, 2.0, 1j], [1j, 0, 1.0]])

    def slope(v):
        return tp.jvp(lambda w: np.linalg.det(w), (v,), (direction,))[1]

    moved = tp.jvp(slope, (z,), (direction,))[1]
    assert moved == pytest.approx(np.einsum("ijkl,ij,kl", second, direction, direction), rel=1e-13)
