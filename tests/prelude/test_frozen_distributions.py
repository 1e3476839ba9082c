"""Distributions of scipy.stats: what they take, their frozen ones, and what is refused."""

import time
from pathlib import Path

import numpy as np
import pytest
from scipy import stats as st

import tapeless as tp
from tests.prelude.differences import agree, differences
from tests.prelude.judged import judge
from tests.quick import unoptimized  # noqa: F401  (for all tests here)

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
    assert Path(__file__).name in str(found.value)
