"""Distributions of scipy.stats: values, slopes, ends of supports, tails, frozen ones."""

import time
from functools import cache, partial

import mpmath as mp
import numpy as np
import pytest
from scipy import stats as st

import tapeless as tp
from tests.prelude.judged import judge, same

INF, NAN = np.inf, np.nan
# name -> (shapes, points inside of the support)
CONTINUOUS = {
    "beta": ((2.0, 3.5), (0.1, 0.45, 0.8)),
    "cauchy": ((), (-3.0, 0.2, 1.5)),
    "chi2": ((3.5,), (0.3, 2.0, 9.0)),
    "expon": ((), (0.2, 1.0, 5.0)),
    "f": ((3.0, 7.0), (0.3, 1.2, 4.0)),
    "gamma": ((2.5,), (0.3, 2.0, 9.0)),
    "gumbel_r": ((), (-1.0, 0.3, 4.0)),
    "halfcauchy": ((), (0.1, 0.9, 5.0)),
    "halfnorm": ((), (0.1, 0.9, 3.0)),
    "invgamma": ((2.5,), (0.2, 0.9, 3.0)),
    "laplace": ((), (-2.0, 0.3, 1.0)),
    "logistic": ((), (-2.0, 0.0, 3.0)),
    "lognorm": ((0.7,), (0.2, 0.9, 3.0)),
    "norm": ((), (-2.0, 0.3, 1.0)),
    "pareto": ((2.5,), (1.1, 1.9, 6.0)),
    "rayleigh": ((), (0.2, 0.9, 3.0)),
    "t": ((4.5,), (-2.0, 0.3, 1.0)),
    "truncnorm": ((-1.0, 2.0), (-0.7, 0.1, 1.8)),
    "uniform": ((), (0.1, 0.4, 0.9)),
    "weibull_min": ((1.7,), (0.2, 0.9, 2.0)),
    "vonmises": ((1.5,), (-2.0, 0.3, 1.0)),
}
LARGE = {
    "beta": ((30.0, 400.0), (1.0, 12345.0)),
    "chi2": ((150.0,),),
    "f": ((60.0, 90.0), (2.0, 90.0)),
    "gamma": ((80.0,),),
    "t": ((1e5,),),
    "vonmises": ((300.0,), (0.5,)),
}
MORE_SHAPES = {
    "beta": ((0.5, 0.5), (1.0, 1.0), (1.0, 4.0), (3.0, 1.0)),
    "chi2": ((1.0,), (2.0,)),
    "f": ((1.0, 3.0), (2.0, 5.0)),
    "gamma": ((0.5,), (1.0,)),
    "t": ((0.5,), (INF,)),
    "truncnorm": ((1.0, 3.0), (-3.0, -1.0), (-INF, 1.0), (2.0, INF), (30.0, 31.0)),
    "weibull_min": ((0.5,), (1.0,)),
    "vonmises": ((0.0,), (1.0,)),
}
WITH_ALL = sorted(CONTINUOUS.keys() - {"vonmises"})  # has no cdf
BY_SHAPES = {"beta", "chi2", "f", "gamma", "invgamma", "lognorm", "pareto", "t", "truncnorm", "weibull_min", "vonmises"}
ENDS = [-INF, -1e4, -740.0, -40.0, -1.0, -0.5, -1e-9, 0.0, 1e-9, 0.25, 1.0, 1.5, 2.0, 3.0, 40.0, 800.0, 1e4, INF, NAN]
QUANTILES = np.array([-0.1, 0.0, 1e-12, 1e-3, 0.3, 0.5, 0.75, 0.999, 1.0, 1.1, NAN])


@cache
def methods(name):
    """Those that take points, and those that take quantiles: functions of them, loc, scale and the shapes."""
    d = getattr(st, name)
    if name == "vonmises":
        return lambda x, loc, scale, *a: (d.logpdf(x, *a, loc, scale), d.pdf(x, *a, loc=loc, scale=scale)), None
    return (
        lambda x, loc, scale, *a: (
            d.logpdf(x, *a, loc, scale),
            d.pdf(x, *a, loc=loc, scale=scale),
            d.cdf(x, *a, loc, scale),
            d.sf(x, *a, loc, scale=scale),
            d.logcdf(x, *a, loc, scale),
            d.logsf(x, *a, loc, scale),
        ),
        lambda q, loc, scale, *a: (d.ppf(q, *a, loc, scale), d.isf(q, *a, loc, scale)),
    )


@cache
def compiled(name):
    """The same, and the gradient of the sum of all by points, loc and scale."""
    points, quantiles = methods(name)
    return (
        tp.function(points),
        tp.grad(lambda x, loc, scale, *a: total(points(x, loc, scale, *a)), (0, 1, 2)),
        None if quantiles is None else tp.function(quantiles),
    )


def total(parts):
    """With weights, so that nothing cancels."""
    result, weight = 0.0, 1.0
    for part in parts:
        result, weight = result + weight * np.sum(part), weight + 1.0
    return result


def differences(function, *args):
    """Derivatives of a number by each argument, element by element."""
    return [
        np.reshape([slope(function, args, k, i) for i in np.ndindex(np.shape(a))], np.shape(a))
        for k, a in enumerate(args)
    ]


def slope(function, args, k, i):
    step = 1e-3 * max(1.0, abs(np.asarray(args[k])[i]))

    def at(h):
        moved = np.array(args[k], dtype=float)
        moved[i] += h * step
        return function(*args[:k], moved if moved.ndim else float(moved), *args[k + 1 :])

    return (8 * (at(1) - at(-1)) - at(2) + at(-2)) / (12 * step)


def agree(function, *args, **tolerance):
    """Values are SciPy's, and slopes of the sum of all results are those of differences."""
    judge(function, *args, order=0, **tolerance)
    found = tp.grad(lambda *a: total(function(*a)), tuple(range(len(args))))(*args)
    for x, y in zip(found, differences(lambda *a: total(function(*a)), *args), strict=True):
        np.testing.assert_allclose(x, y, rtol=2e-6, atol=1e-7)


@pytest.mark.sampled(3)
@pytest.mark.parametrize("name", CONTINUOUS)
def test_values_and_slopes(name):
    shapes, points = CONTINUOUS[name]
    function, gradient, _ = compiled(name)
    args = (1.5 + 0.8 * np.array(points), 1.5, 0.8)
    same(function(*args, *shapes), methods(name)[0](*args, *shapes), 1e-12, 1e-13)
    wanted = differences(lambda *a: total(methods(name)[0](*a, *shapes)), *args)
    for x, y in zip(gradient(*args, *shapes), wanted, strict=True):
        np.testing.assert_allclose(x, y, rtol=1e-5, atol=1e-7)


@pytest.mark.sampled(2)
@pytest.mark.parametrize("name", sorted(BY_SHAPES))
def test_slopes_by_shapes(name):
    """Of densities, also for large shapes. SciPy's would be too coarse there for differences of it."""
    d = getattr(st, name)
    shapes, points = CONTINUOUS[name]
    gradient = tp.grad(lambda x, *a: np.sum(d.logpdf(x, *a)) + np.sum(d.pdf(x, *a)), tuple(range(1, len(shapes) + 1)))
    value = tp.function(lambda x, *a: np.sum(d.logpdf(x, *a)) + np.sum(d.pdf(x, *a)))
    for given in (shapes, *LARGE.get(name, ())):
        x = np.array(points) * (0.1 if max(given) > 300 else given[0] if max(given) in (80.0, 150.0) else 1.0)
        for u, v in zip(gradient(x, *given), differences(lambda *a: value(x, *a), *given), strict=True):
            np.testing.assert_allclose(u, v, rtol=2e-6, atol=1e-7)
        np.testing.assert_allclose(value(x, *given), np.sum(d.logpdf(x, *given) + d.pdf(x, *given)), rtol=2e-10)


@pytest.mark.sampled(3)
@pytest.mark.parametrize("name", CONTINUOUS)
def test_ends_and_tails(name):
    """SciPy's values, but where it says NaN of the density at infinity; slopes are never NaN where values are not."""
    function, gradient, _ = compiled(name)
    for shapes in (CONTINUOUS[name][0], *MORE_SHAPES.get(name, ())):
        x = np.array(ENDS)
        found = function(x, 0.0, 1.0, *shapes)
        with np.errstate(all="ignore"):
            wanted = methods(name)[0](x, 0.0, 1.0, *shapes)
        for k, (u, v) in enumerate(zip(found, wanted, strict=True)):
            if k < 2 and name != "vonmises":
                v = np.where(np.isinf(x), -INF if k == 0 else 0.0, v)
            if name in ("gumbel_r", "halfnorm", "laplace"):  # SciPy takes the logarithm of what is nearly 0
                v = np.where((np.abs(x) > 700) & (k in (0, 4, 5)) | (np.abs(x) == 40) & np.isinf(v), u, v)
            np.testing.assert_allclose(u, v, rtol=2e-12, atol=1e-15 if name == "f" else 1e-300)
        x = x[np.isfinite(x)] if name == "vonmises" else x[~np.isnan(x)]
        for s in gradient(x, 0.0, 1.0, *shapes):
            assert not np.any(np.isnan(s)), (shapes, x, s)


@pytest.mark.sampled(3)
@pytest.mark.parametrize("name", WITH_ALL)
def test_quantiles(name):
    """SciPy's isf is ppf(1 - q) for some, which has no digits for small q: sf finds it back."""
    shapes = CONTINUOUS[name][0]
    function, _, quantiles = compiled(name)
    found = quantiles(QUANTILES, 1.5, 2.0, *shapes)
    loose = 3e-4 if name in ("f", "halfcauchy", "halfnorm", "truncnorm") else 1e-11
    for u, v in zip(found, methods(name)[1](QUANTILES, 1.5, 2.0, *shapes), strict=True):
        np.testing.assert_allclose(u, v, rtol=loose)
    few = QUANTILES[3:-3]
    np.testing.assert_allclose(function(quantiles(few, 1.5, 2.0, *shapes)[0], 1.5, 2.0, *shapes)[2], few, rtol=1e-11)
    np.testing.assert_allclose(function(quantiles(few, 1.5, 2.0, *shapes)[1], 1.5, 2.0, *shapes)[3], few, rtol=1e-11)


@pytest.mark.parametrize("name", ["cauchy", "f", "norm", "t", "truncnorm"])
def test_slopes_of_quantiles(name):
    shapes = CONTINUOUS[name][0]
    function = methods(name)[1]
    agree(lambda q, loc, scale: function(q, loc, scale, *shapes), np.array([0.05, 0.4, 0.93]), 1.5, 0.8, rtol=1e-11)


INVALID = [(0.0, -1.0), (0.0, 0.0), (NAN, 1.0), (0.0, NAN)]


@pytest.mark.sampled(2)
@pytest.mark.parametrize("name", CONTINUOUS)
def test_invalid_parameters(name):
    shapes = CONTINUOUS[name][0]
    for given in [(*pair, *shapes) for pair in INVALID] + [(0.0, 1.0, *(-5.0 for _ in shapes))] * bool(shapes):
        args = (np.array([0.5, 1.5]), *given)
        for u, v in zip(compiled(name)[0](*args), methods(name)[0](*args), strict=True):
            np.testing.assert_array_equal(u, v)


def test_far_tails():
    """Of the normal distribution: neither 0 nor 1 - cdf."""
    function = compiled("norm")[0]
    _, _, cdf, sf, logcdf, logsf = function(np.array([-40.0, -8.0, 8.0, 40.0]), 0.0, 1.0)
    with mp.workdps(40):
        small, log = mp.ncdf(-8), mp.log(mp.ncdf(-40))
        np.testing.assert_allclose([cdf[1], sf[2]], float(small), rtol=1e-14)
        np.testing.assert_allclose([logcdf[0], logsf[3]], float(log), rtol=1e-15)
        np.testing.assert_allclose([logcdf[2], logsf[1]], float(mp.log1p(-small)), rtol=1e-14)
    assert (logcdf[3], logsf[0]) == (0.0, 0.0)


EXACT = {
    "gamma": (lambda x, a: (a - 1) * mp.log(x) - x - mp.loggamma(a), (95.0, 100.0)),
    "beta": (lambda x, a, b: (a - 1) * mp.log(x) + (b - 1) * mp.log1p(-x) - mp.log(mp.beta(a, b)), (0.3, 300.0, 800.0)),
    "beta of one": (
        lambda x, a, b: (a - 1) * mp.log(x) + (b - 1) * mp.log1p(-x) - mp.log(mp.beta(a, b)),
        (1e-4, 1.5, 12345.0),
    ),
    "t": (
        lambda x, n: (
            mp.loggamma((n + 1) / 2) - mp.loggamma(n / 2) - mp.log(n * mp.pi) / 2 - (n + 1) / 2 * mp.log1p(x * x / n)
        ),
        (1.3, 123456.0),
    ),
    "poisson": (lambda k, m: k * mp.log(m) - m - mp.loggamma(k + 1), (1010.0, 1000.0)),
    "binom": (
        lambda k, n, p: mp.log(mp.binomial(n, k)) + k * mp.log(p) + (n - k) * mp.log1p(-p),
        (250.0, 1000.0, 0.25),
    ),
}


@pytest.mark.parametrize("name", EXACT)
def test_digits(name):
    """As many as there are, where SciPy has fewer."""
    formula, args = EXACT[name]
    d = getattr(st, name.split()[0])
    log = d.logpmf if name in ("poisson", "binom") else d.logpdf
    if len(args) == 2:
        found = tp.function(lambda x, a: log(x, a))(*args)
    else:
        found = tp.function(lambda x, a, b: log(x, a, b))(*args)
    with mp.workdps(40):
        np.testing.assert_allclose(found, float(formula(*map(mp.mpf, args))), rtol=3e-15)


# name -> shapes, of which the last ones are differentiated by
MOMENTS = {name: shapes for name, (shapes, _) in CONTINUOUS.items() if name not in ("truncnorm", "vonmises", "t", "f")}


@pytest.mark.sampled(2)
@pytest.mark.parametrize("name", MOMENTS)
def test_moments(name):
    d, shapes = getattr(st, name), MOMENTS[name]
    judge(
        lambda loc, scale: (
            d.mean(*shapes, loc, scale),
            d.var(*shapes, loc, scale),
            d.std(*shapes, loc=loc, scale=scale),
            d.entropy(*shapes, loc, scale),
            d.median(*shapes, loc, scale),
        ),
        1.5,
        0.8,
        order=0,
        rtol=1e-11,
    )


def test_moments_that_shapes_decide():
    df = np.array([0.5, 1.0, 1.5, 2.0, 3.0, 5.0, INF])
    judge(
        lambda df: (
            st.t.mean(df),
            st.t.var(df),
            st.f.mean(2.0, df[:-1]),
            st.f.var(2.0, df[:-1]),
            st.invgamma.mean(df),
            st.invgamma.var(df),
            st.pareto.mean(df[:-1]),
            st.pareto.var(df[:-1]),
            st.gamma.entropy(df[:-1] * 100.0),
            st.vonmises.entropy(2.0),
        ),
        df,
        order=0,
    )


# -- discrete ones

DISCRETE = {
    "bernoulli": ((0.3,), (0, 1)),
    "binom": ((7.0, 0.3), (0, 2, 7)),
    "geom": ((0.3,), (1, 2, 9)),
    "nbinom": ((3.5, 0.4), (0, 2, 9)),
    "poisson": ((2.5,), (0, 2, 30)),
}
COUNTS = np.array([-INF, -1.0, 0.0, 0.5, 1.0, 2.0, 3.0, 6.0, 7.0, 7.5, 8.0, 40.0, INF, NAN])


@pytest.mark.parametrize("name", DISCRETE)
def test_masses(name):
    shapes, points = DISCRETE[name]
    d, k, first = getattr(st, name), np.array(points), shapes[:-1]
    agree(
        lambda p: (
            d.logpmf(k, *first, p),
            d.pmf(k, *first, p, loc=0),
            d.cdf(2, *first, p),
            d.sf(1, *first, p),
            d.mean(*first, p),
            d.var(*first, p),
            d.std(*first, p, 3),
        ),
        shapes[-1],
    )
    function = lambda k, loc: (
        d.logpmf(k, *shapes, loc),
        d.pmf(k, *shapes, loc),
        d.cdf(k, *shapes, loc),
        d.sf(k, *shapes, loc),
        d.logcdf(k, *shapes, loc),
        d.logsf(k, *shapes, loc),
    )
    with np.errstate(all="ignore"):
        found, wanted = tp.function(function)(COUNTS, 1), function(COUNTS, 1)
    for k, (u, v) in enumerate(zip(found, wanted, strict=True)):
        v = np.where(np.isinf(COUNTS), -INF if k == 0 else 0.0, v) if k < 2 else v
        np.testing.assert_allclose(u, v, rtol=1e-11, atol=1e-16)


@pytest.mark.parametrize("name", DISCRETE)
def test_probabilities_at_their_ends(name):
    """0 and 1 as parameters: slopes of pmf are those of one side, those of logpmf are finite."""
    d, first = getattr(st, name), DISCRETE[name][0][:-1]
    k = np.array([0, 1, 2, 7])
    values = tp.function(lambda p: (d.logpmf(k, *first, p), d.pmf(k, *first, p)))
    slopes = tp.jacfwd(lambda p: (d.logpmf(k, *first, p), d.pmf(k, *first, p)))
    for p in (0.0, 1.0):
        same(values(p), (d.logpmf(k, *first, p), d.pmf(k, *first, p)), 1e-12, 1e-13)
        if not (p == 0.0 and name in ("geom", "nbinom")):
            step = 1e-6 if p == 0.0 else -1e-6
            log, plain = slopes(p)
            np.testing.assert_allclose(plain, (d.pmf(k, *first, p + step) - d.pmf(k, *first, p)) / step, atol=1e-4)
            assert np.all(np.isfinite(log))


def test_slope_by_a_count_that_need_not_be_whole():
    agree(lambda n, p: (st.nbinom.logpmf(np.array([0, 3, 20]), n, p), st.nbinom.pmf(4, n, p)), 2.5, 0.4)


# -- what x may be


@pytest.mark.parametrize("x", [2, 2.0, np.float32(0.3), np.arange(3), np.linspace(0, 1, 3, dtype=np.float32)])
def test_element_types(x):
    judge(lambda x: (st.norm.logpdf(x), st.gamma.pdf(x, 2), st.expon.cdf(x, scale=2), st.poisson.pmf(x, 2)), x, order=0)


def test_broadcasting():
    agree(
        lambda x, loc, s: (st.norm.logpdf(x, loc, s), st.beta.pdf(x / 4, loc, s)),
        np.array([[1.5], [2.5]]),
        np.array([1.0, 2.0, 3.0]),
        0.7,
    )


# -- frozen ones

SCALES = np.array([0.5, 1.0, 2.0])
OUTSIDE = st.gamma(2.5, scale=SCALES)
COUNTED = st.poisson(mu=3.5, loc=1)


def test_frozen_inside():
    def f(x, loc, scale):
        d = st.norm(loc, scale=scale)
        return d.logpdf(x), d.cdf(x), d.ppf(0.3), d.mean(), st.poisson(scale).pmf(3), d.entropy()

    agree(f, np.array([0.3, 2.0]), 0.5, 1.5)


def test_frozen_outside():
    agree(lambda x: (OUTSIDE.logpdf(x), OUTSIDE.cdf(x), OUTSIDE.mean(), OUTSIDE.isf(0.3)), 1.5)
    judge(lambda k: (COUNTED.logpmf(k), COUNTED.sf(k)), np.arange(5), order=0)


def test_arguments_of_frozen_ones_are_read_again():
    compiled = tp.function(lambda x: OUTSIDE.mean() * x)
    before = SCALES.copy()
    assert compiled(1.0).tolist() == (2.5 * before).tolist()
    SCALES[:] = 7.0
    try:
        assert compiled(1.0).tolist() == [17.5, 17.5, 17.5]
    finally:
        SCALES[:] = before


def test_one_of_two():
    def f(x, c):
        d = st.norm(0.0, 1.0) if c else st.norm(2.0, 3.0)
        return d.logpdf(x)

    for c in (True, False):
        judge(f, 0.7, c, order=0)


def test_second_derivatives():
    data = np.array([1.2, 3.4, 0.7, 2.2])
    for gradient in (
        tp.grad(lambda a, s: np.sum(st.gamma(a, scale=s).logpdf(data)), (0, 1)),
        tp.grad(lambda m, s: np.sum(st.logistic.logpdf(data, m, s)), (0, 1)),
    ):
        second = tp.jacfwd(lambda a, s: gradient(a, s)[0] + 2 * gradient(a, s)[1], (0, 1))(1.2, 1.1)
        wanted = differences(lambda a, s: gradient(a, s)[0] + 2 * gradient(a, s)[1], 1.2, 1.1)
        np.testing.assert_allclose(second, wanted, rtol=1e-7)


def test_distributions_that_only_look_alike():
    class Other(type(st.norm)):
        def _pdf(self, x):
            return 0 * x + 7.0

    for d in (Other(name="norm"), type(st.norm)(name="norm", a=0.0), type(st.norm)(name="norm", badvalue=-7.0)):
        frozen = d(0.0, 1.0)
        with pytest.raises(tp.CompileError):
            tp.function(lambda x: frozen.pdf(x))(0.5)
        with pytest.raises(tp.CompileError):
            tp.function(lambda x: d.pdf(x))(0.5)


def test_compiled_once():
    """Methods are other objects each time that they are read."""
    compiled = tp.function(lambda x: st.norm.logpdf(x) + OUTSIDE.logpdf(x)[0])
    compiled(0.5)
    start = time.process_time()
    for _ in range(20):
        compiled(0.5)
    assert time.process_time() - start < 0.1


# -- multivariate ones

MEAN, COV = np.array([0.1, 0.2]), np.array([[2.0, 0.3], [0.3, 1.0]])
POINTS = np.array([[0.3, -0.5], [1.0, 2.0], [0.2, 0.1]])
NORMAL = {
    "one point": (lambda x, m, c: st.multivariate_normal.logpdf(x, m, c), POINTS[0], MEAN, COV),
    "points": (lambda x, m, c: st.multivariate_normal.logpdf(x, mean=m, cov=c), POINTS, MEAN, COV),
    "pdf of a box": (lambda x, m, c: st.multivariate_normal.pdf(x, m, c), np.stack([POINTS, POINTS]), MEAN, COV),
    "one row": (lambda x, m, c: st.multivariate_normal.logpdf(x, m, c), POINTS[:1], MEAN, COV),
    "variances": (lambda x, m, c: st.multivariate_normal.logpdf(x, m, c), POINTS, MEAN, np.array([1.0, 2.0])),
    "one variance": (lambda x, m, c: st.multivariate_normal.logpdf(x, m, c), POINTS, MEAN, 2.0),
    "no mean": (lambda x, c: st.multivariate_normal.logpdf(x, cov=c), POINTS, COV),
    "nothing": (lambda x: st.multivariate_normal.logpdf(x), POINTS[0]),
    "one dimension": (lambda x, m, c: st.multivariate_normal.logpdf(x, m, c), POINTS[0], MEAN[:1], COV[:1, :1]),
    "a number": (lambda x, m, c: st.multivariate_normal.logpdf(x, m, c), 0.3, 0.5, 1.5),
    "frozen": (lambda x, m, c: st.multivariate_normal(m, c).pdf(x), POINTS, MEAN, COV),
}


@pytest.mark.parametrize("name", NORMAL)
def test_multivariate_normal(name):
    function, *args = NORMAL[name]
    if name in ("points", "one variance", "frozen"):
        agree(lambda *a: (function(*a),), *args)
    else:
        judge(function, *args, order=0)


def test_multivariate_normal_refuses():
    f = tp.function(lambda x, m, c: st.multivariate_normal.logpdf(x, m, c))
    with pytest.raises(np.linalg.LinAlgError):
        f(MEAN, MEAN, np.array([[1.0, 2.0], [2.0, 1.0]]))
    with pytest.raises(ValueError, match="positive"):
        f(MEAN, MEAN, np.array([1.0, -1.0]))
    with pytest.raises(ValueError, match="mismatch"):
        f(MEAN, MEAN, np.eye(3))


def test_dirichlet():
    alpha = np.array([0.5, 1.0, 3.0])
    shares = np.array([[0.2, 0.1], [0.3, 0.3], [0.5, 0.6]])
    agree(lambda x, a: (st.dirichlet.logpdf(x, a),), shares[:2, 0], alpha)
    judge(lambda a: (st.dirichlet.pdf(shares, a), st.dirichlet(a).logpdf(shares[:, 0])), alpha, order=0)
    judge(lambda x, a: st.dirichlet.logpdf(x, a), np.array([0.2, 0.0, 0.8]), alpha, order=0)
    f = tp.function(lambda x, a: st.dirichlet.logpdf(x, a))
    for x, a in ((shares[:, 0] * 2, alpha), (shares[:, 0], -alpha), (shares[:1, 0], alpha), (-shares[:2, 0], alpha)):
        with pytest.raises(ValueError):
            f(x, a)


def test_multinomial():
    counts, p = np.array([[1, 2, 3], [0, 6, 0], [3, 3, 1]]), np.array([0.2, 0.3, 0.5])
    judge(lambda p: (st.multinomial.logpmf(counts, 6, p), st.multinomial(6, p).pmf(counts[0])), p, order=0)
    judge(lambda n: st.multinomial.logpmf(counts, n, np.array([0.0, 1.0, 0.0])), np.array([6, 6, 7]), order=0)
    slope = tp.grad(lambda p: st.multinomial.logpmf(counts[0], 6, p))(p)
    np.testing.assert_allclose(slope, counts[0] / p, rtol=1e-13)


# -- samples

SAMPLE = np.array([[0.3, 1.2, 0.7, 2.9], [1.4, 0.2, 2.2, 0.9], [0.6, 3.1, 1.7, 0.4]])


@pytest.mark.parametrize("axis", [0, 1, None])
def test_samples(axis):
    check = agree if axis == 1 else partial(judge, order=0)
    check(
        lambda a: (
            st.zscore(a, axis=axis),
            st.zscore(a, axis=axis, ddof=1),
            st.skew(a, axis=axis),
            st.skew(a, axis=axis, bias=False),
            st.kurtosis(a, axis=axis),
            st.gmean(a, axis=axis),
            st.hmean(a, axis=axis),
        ),
        SAMPLE,
    )
    check(lambda a: (st.kurtosis(a, axis=axis, fisher=False, bias=False),), np.concatenate([SAMPLE, SAMPLE**2], axis=0))
    judge(lambda a: (st.skew(a, axis=axis), st.gmean(a, axis=axis)), SAMPLE.astype("f"), order=0, rtol=1e-5)


def test_correlation():
    def f(x, y):
        r, p = st.pearsonr(x, y)
        return r, p, st.pearsonr(x, y).statistic

    agree(f, SAMPLE[0], SAMPLE[1])


def test_samples_of_equal_numbers():
    found = tp.function(lambda a: (st.skew(a), st.kurtosis(a), st.zscore(a)))(np.full(4, 3.0))
    assert all(np.all(np.isnan(part)) for part in found)


# -- what is refused

REFUSED = {
    "rvs": (lambda x: st.norm.rvs(x), "scipy.stats.norm.rvs cannot be compiled"),
    "method of a frozen one": (lambda x: st.norm(x).interval(0.9), "interval"),
    "no formula": (lambda x: st.vonmises.cdf(x, 1.0), "cannot be compiled"),
    "argument": (lambda x: st.norm.pdf(x, size=3), "'size'"),
    "nothing at all": (lambda x: st.norm.pdf(), "missing the argument 'x'"),
    "returned": (lambda x: st.norm(x), "cannot be returned"),
    "another distribution": (lambda x: st.levy.pdf(x), "scipy.stats.levy.pdf cannot be compiled"),
    "singular": (lambda x: st.multivariate_normal.pdf(x, 0.0, 1.0, True), "singular"),
}


@pytest.mark.parametrize("name", REFUSED)
def test_refused(name):
    function, text = REFUSED[name]
    with pytest.raises(tp.TapelessError, match=text) as found:
        tp.function(function)(1.5)
    assert "test_distributions.py" in str(found.value)
