"""Distributions of vectors of scipy.stats: values, slopes, shapes, errors."""

import numpy as np
import pytest
from scipy import stats as st

import tapeless as tp
from tests.prelude.differences import agree
from tests.prelude.judged import judge
from tests.quick import unoptimized  # noqa: F401  (for all tests here)

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
