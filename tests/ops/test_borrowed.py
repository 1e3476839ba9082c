"""Rows that are SciPy's functions: its values, slopes against mpmath, and what has no slope says so."""

import mpmath as mp
import numpy as np
import pytest
import scipy.special

import tapeless as tp
from tapeless.ops.borrowed import BORROWED, SHAPED
from tapeless.ops.op import NoSlope
from tests.ops.test_partials import slope
from tests.quick import unoptimized  # noqa: F401

POINTS = (0.15, 0.4, 0.85)
FAR = (0.01, 3.0, 12.0, 60.0)
LINE = (-6.0, -0.5, 0.0, 0.5, 6.0)


def inverse(function, start):
    """The x at which a rising or falling function has the value y."""
    return lambda *args: mp.findroot(lambda x: function(*args[:-1], x) - args[-1], start(*args))


def ndtr(x):
    return mp.erfc(-x / mp.sqrt(2)) / 2


def student(v, t):
    half = mp.betainc(v / 2, 0.5, 0, v / (v + t * t), regularized=True) / 2
    return 1 - half if t > 0 else half


def scipy_at(name):
    return lambda *args: mp.mpf(float(getattr(scipy.special, name)(*map(float, args))))


def owens_t(h, a):
    return mp.quad(lambda t: mp.exp(-(h**2) * (1 + t * t) / 2) / (1 + t * t), [0, a]) / (2 * mp.pi)


# The function by mpmath, the operands before the last one, and values of the last.
CASES = {
    "j0": (lambda x: mp.besselj(0, x), (), (*LINE, *FAR)),
    "j1": (lambda x: mp.besselj(1, x), (), (*LINE, *FAR, 1e-9, 0.99, -1.01)),
    "jv": (mp.besselj, (2.5,), FAR),
    "y0": (lambda x: mp.bessely(0, x), (), FAR),
    "y1": (lambda x: mp.bessely(1, x), (), FAR),
    "yv": (mp.bessely, (2.5,), FAR),
    "yn": (mp.bessely, (2.0,), FAR),
    "i0": (lambda x: mp.besseli(0, x), (), (*LINE, *FAR)),
    "i1": (lambda x: mp.besseli(1, x), (), (*LINE, *FAR, 1e-9, 0.99, -1.01)),
    "iv": (mp.besseli, (2.5,), FAR),
    "i0e": (lambda x: mp.besseli(0, x) * mp.exp(-abs(x)), (), (-6.0, -0.5, 0.5, 6.0)),
    "i1e": (lambda x: mp.besseli(1, x) * mp.exp(-abs(x)), (), (-6.0, -0.5, 0.5, 6.0)),
    "ive": (lambda v, x: mp.besseli(v, x) * mp.exp(-abs(x)), (2.5,), (0.5, 6.0)),
    "k0": (lambda x: mp.besselk(0, x), (), FAR),
    "k1": (lambda x: mp.besselk(1, x), (), FAR),
    "kv": (mp.besselk, (2.5,), FAR),
    "k0e": (lambda x: mp.besselk(0, x) * mp.exp(x), (), POINTS),
    "k1e": (lambda x: mp.besselk(1, x) * mp.exp(x), (), POINTS),
    "kve": (lambda v, x: mp.besselk(v, x) * mp.exp(x), (2.5,), POINTS),
    "erfcx": (lambda x: mp.exp(x * x) * mp.erfc(x), (), (-5.0, -0.5, 0.0, 0.5, 6.0, 51.0, 1e3)),
    "erfi": (mp.erfi, (), LINE),
    "dawsn": (lambda x: mp.sqrt(mp.pi) / 2 * mp.exp(-x * x) * mp.erfi(x), (), (-0.5, 0.0, 0.5, 6.0, 51.0, 1e3)),
    "erfinv": (mp.erfinv, (), (-0.9, 0.0, 0.5, 0.999)),
    "erfcinv": (lambda x: mp.erfinv(1 - x), (), (0.1, 0.5, 1.9)),
    "ndtri": (lambda y: mp.sqrt(2) * mp.erfinv(2 * y - 1), (), (0.01, 0.5, 0.9)),
    "ndtri_exp": (lambda y: mp.sqrt(2) * mp.erfinv(2 * mp.exp(y) - 1), (), (-3.0, -1.0, -0.1)),
    "log_ndtr": (lambda x: mp.log(ndtr(x)), (), (-40.0, -6.0, -0.5, 0.0, 3.0, 8.0)),
    "owens_t": (owens_t, (0.75,), (-2.0, 0.3, 1.5)),
    "gammainc": (lambda a, x: mp.gammainc(a, 0, x, regularized=True), (2.5,), FAR),
    "gammaincc": (lambda a, x: mp.gammainc(a, x, mp.inf, regularized=True), (2.5,), FAR),
    "gammaincinv": (
        inverse(lambda a, x: mp.gammainc(a, 0, x, regularized=True), scipy_at("gammaincinv")), (2.5,), POINTS
    ),
    "gammainccinv": (
        inverse(lambda a, x: mp.gammainc(a, x, mp.inf, regularized=True), scipy_at("gammainccinv")), (2.5,), POINTS
    ),
    "betainc": (lambda p, q, x: mp.betainc(p, q, 0, x, regularized=True), (1.5, 2.5), POINTS),
    "betaincc": (lambda p, q, x: mp.betainc(p, q, x, 1, regularized=True), (1.5, 2.5), POINTS),
    "betaincinv": (
        inverse(lambda p, q, x: mp.betainc(p, q, 0, x, regularized=True), scipy_at("betaincinv")), (1.5, 2.5), POINTS
    ),
    "stdtr": (student, (3.0,), (-6.0, -0.5, 0.5, 6.0)),
    "stdtrit": (inverse(student, scipy_at("stdtrit")), (3.0,), POINTS),
    "rgamma": (mp.rgamma, (), (-1.5, 0.5, 3.0, 20.0)),
    "loggamma": (mp.loggamma, (), (0.5, 3.0, 20.0)),
    "scipy_betaln": (lambda p, q: mp.log(mp.beta(p, q)), (1.5,), FAR),
    "beta": (mp.beta, (1.5,), FAR),
    "poch": (mp.rf, (1.5,), (0.5, 3.0, 12.0, 60.0)),
    "binom": (mp.binomial, (7.5,), (0.5, 2.0, 6.5)),
    "exp1": (mp.e1, (), FAR),
    "expi": (mp.ei, (), (-3.0, 0.2, 1.0, 20.0)),
    "expn": (mp.expint, (2,), FAR),
    "ellipk": (mp.ellipk, (), (-30.0, -0.31, -0.2, 0.0, 1e-9, 0.29, 0.31, 0.5, 0.99)),
    "ellipe": (mp.ellipe, (), (-30.0, -0.31, -0.2, 0.0, 1e-9, 0.29, 0.31, 0.5, 0.99)),
    "wrightomega": (lambda x: mp.lambertw(mp.exp(x)).real, (), LINE),
    "hyp0f1": (mp.hyp0f1, (1.5,), LINE),
    "hyp1f1": (mp.hyp1f1, (1.5, 2.5), LINE),
    "hyp2f1": (mp.hyp2f1, (1.0, 1.5, 2.5), (-3.0, -0.5, 0.0, 0.5, 0.9)),
}  # fmt: skip


def test_every_one_is_here():
    assert set(CASES) == set(BORROWED)


def scipy_of(name):
    return getattr(scipy.special, name.removeprefix("scipy_"))


@pytest.mark.parametrize("name", [n for n in CASES if not n.startswith("scipy_")])
def test_compiled_values_are_scipys(name):
    _, lead, points = CASES[name]
    function, x = scipy_of(name), np.array(points)
    compiled = tp.function(lambda x: function(*lead, x))
    np.testing.assert_allclose(compiled(x), function(*lead, x), rtol=1e-15)  # it may be built twice in SciPy
    rounded = function(*lead, x.astype(np.float32).astype(float)).astype(np.float32)
    single = compiled(x.astype(np.float32))  # rounded once, where SciPy may compute in single precision
    np.testing.assert_allclose(single, rounded, rtol=2e-7)
    assert single.dtype == np.float32


SPECIALS = np.array([np.nan, np.inf, -np.inf, 0.0, -0.0, -1.0, 1.0, 2.0, -0.5, 5e-324])


@pytest.mark.parametrize("name", [n for n in CASES if not n.startswith("scipy_")])
def test_special_values_are_scipys(name):
    _, lead, _ = CASES[name]
    function = scipy_of(name)
    points = SPECIALS if name != "hyp1f1" else SPECIALS[np.isfinite(SPECIALS)]  # SciPy's own does not end at infinity
    with np.errstate(all="ignore"):
        np.testing.assert_allclose(
            tp.function(lambda x: function(*lead, x))(points), function(*lead, points), rtol=1e-15
        )


@pytest.mark.sampled(6)
@pytest.mark.parametrize("name", CASES)
def test_slopes(name):
    reference, lead, points = CASES[name]
    last = len(lead)
    with mp.workdps(40):
        for x in points:
            expected = float(mp.diff(lambda t: reference(*map(mp.mpf, lead), t), mp.mpf(x)))
            assert slope(name, last, (*lead, x)) == pytest.approx(expected, rel=2e-11, abs=1e-300), x


@pytest.mark.parametrize("name", ["jv", "yv", "iv", "kv"])
@pytest.mark.parametrize("v", [-2.3, -0.4, 0.0, 0.4, 1.0])
def test_slopes_of_other_orders(name, v):
    reference, _, points = CASES[name]
    with mp.workdps(40):
        for x in (1e-4, *points):
            expected = float(mp.diff(lambda t, v=v: reference(mp.mpf(v), t), mp.mpf(x)))
            assert slope(name, 1, (v, x)) == pytest.approx(expected, rel=1e-10), x


@pytest.mark.parametrize(
    "name, args, expected",
    [("i1", (800.0,), np.inf), ("i1", (-800.0,), np.inf), ("kv", (0.0, 0.0), -np.inf), ("kv", (1.0, 0.0), -np.inf),
     ("k1", (0.0,), -np.inf), ("ellipk", (1.0,), np.inf), ("ellipe", (1.0,), -np.inf)],
)  # fmt: skip
def test_slopes_without_end(name, args, expected):
    assert slope(name, len(args) - 1, args) == expected


def test_slopes_by_both_operands():
    for name, point in {
        "beta": (1.5, 2.5),
        "binom": (7.5, 2.0),
        "poch": (1.5, 2.5),
        "scipy_betaln": (1.5, 2.5),
        "owens_t": (0.7, 0.3),
    }.items():
        reference = CASES[name][0]
        with mp.workdps(40):
            expected = float(mp.diff(lambda t: reference(t, mp.mpf(point[1])), mp.mpf(point[0])))
        assert slope(name, 0, point) == pytest.approx(expected, rel=1e-12)


ORDERS = [
    n
    for n, row in BORROWED.items()
    if len(row.partials) > 1 and n not in ("beta", "binom", "poch", "scipy_betaln", "owens_t", *SHAPED)
]


@pytest.mark.parametrize("name", ORDERS)
def test_slopes_that_nobody_has_written(name):
    _, lead, points = CASES[name]
    for k in range(len(lead)):
        with pytest.raises(NoSlope, match="has no derivative by its"):
            slope(name, k, (*lead, points[0]))


def test_the_line_is_named():
    with pytest.raises(tp.CompileError, match=r"scipy\.special\.jv has no derivative by its order") as info:
        tp.grad(lambda v: scipy.special.jv(v, 1.0))(0.5)
    assert info.value.line
    assert tp.grad(lambda x: scipy.special.jv(2, x))(1.0) == pytest.approx(scipy.special.jvp(2, 1.0))


@pytest.mark.thorough
@pytest.mark.parametrize("name", ["j1", "kve", "log_ndtr", "ndtri", "betainc", "ellipk", "erfcx", "dawsn"])
def test_second_derivatives(name):
    _, lead, _ = CASES[name]
    function = scipy_of(name)
    tp.check_grads(lambda x: function(*lead, x), (np.array(POINTS),), order=2)


@pytest.mark.thorough
@pytest.mark.parametrize("name", ["j1", "i1", "y1", "k1", "ellipe", "ellipk"])
def test_second_derivatives_where_formulas_change(name):
    reference, _, _ = CASES[name]
    function = scipy_of(name)
    points = np.array([0.05, 0.29, 0.31, 0.8, *([1.1, 7.0] if "ellip" not in name else ())])
    with mp.workdps(40):
        expected = [float(mp.diff(reference, mp.mpf(x), 2)) for x in points]
    found = tp.vmap(tp.grad(tp.grad(lambda x: function(x))))(points)
    np.testing.assert_allclose(found, expected, rtol=1e-12)


@pytest.mark.filterwarnings("ignore:floating point number truncated")
def test_orders_that_are_whole():
    """SciPy cuts the order of these off, and that of jn not."""
    f = lambda n, x: tuple(g(n, x) for g in (scipy.special.yn, scipy.special.kn, scipy.special.jn))
    for n in (1, 2.0, 1.7, -1.5, np.array([0.4, 2.9])):
        np.testing.assert_allclose(tp.function(f)(n, 0.7), f(n, 0.7), rtol=1e-13)
    tp.check_grads(lambda x: (scipy.special.yn(2, x), scipy.special.kn(1.5, x)), (0.7,), order=1)
