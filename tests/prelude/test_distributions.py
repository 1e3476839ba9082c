"""Continuous distributions of scipy.stats: values, slopes, ends of supports, tails, digits, moments."""

from functools import cache

import mpmath as mp
import numpy as np
import pytest
from scipy import stats as st

import tapeless as tp
from tests.prelude.differences import agree, differences, total
from tests.prelude.judged import judge, same
from tests.quick import unoptimized  # noqa: F401  (for all tests here)

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


@pytest.mark.sampled(4)
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


@pytest.mark.thorough
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
