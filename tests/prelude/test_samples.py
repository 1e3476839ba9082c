"""Functions of samples of scipy.stats."""

from functools import partial

import numpy as np
import pytest
from scipy import stats as st

import tapeless as tp
from tests.prelude.differences import agree
from tests.prelude.judged import judge
from tests.quick import unoptimized  # noqa: F401  (for all tests here)

SAMPLE = np.array([[0.3, 1.2, 0.7, 2.9], [1.4, 0.2, 2.2, 0.9], [0.6, 3.1, 1.7, 0.4]])


@pytest.mark.thorough
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


def test_lists():
    values = [0.3, 1.2, 0.7, 2.9]
    judge(lambda x: (st.zscore([x, *values]), st.skew([x, *values]), st.kurtosis([x, *values])), 1.5, order=0)
    judge(lambda x: (st.gmean([x, 1, 4]), st.hmean([x, 1, 4]), st.pearsonr([x, 1, 4], [2, x, x])[0]), 2.5, order=0)


def test_correlation():
    def f(x, y):
        r, p = st.pearsonr(x, y)
        return r, p, st.pearsonr(x, y).statistic

    agree(f, SAMPLE[0], SAMPLE[1])


def test_samples_of_equal_numbers():
    found = tp.function(lambda a: (st.skew(a), st.kurtosis(a), st.zscore(a)))(np.full(4, 3.0))
    assert all(np.all(np.isnan(part)) for part in found)
