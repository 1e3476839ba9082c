"""Discrete distributions of scipy.stats: masses, ends of supports, probabilities at their ends."""

import numpy as np
import pytest
from scipy import stats as st

import tapeless as tp
from tests.prelude.differences import agree
from tests.prelude.judged import same
from tests.quick import unoptimized  # noqa: F401  (for all tests here)

INF, NAN = np.inf, np.nan
DISCRETE = {
    "bernoulli": ((0.3,), (0, 1)),
    "binom": ((7.0, 0.3), (0, 2, 7)),
    "geom": ((0.3,), (1, 2, 9)),
    "nbinom": ((3.5, 0.4), (0, 2, 9)),
    "poisson": ((2.5,), (0, 2, 30)),
}
COUNTS = np.array([-INF, -1.0, 0.0, 0.5, 1.0, 2.0, 3.0, 6.0, 7.0, 7.5, 8.0, 40.0, INF, NAN])


@pytest.mark.thorough
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
