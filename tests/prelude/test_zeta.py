"""scipy.special.zeta of two arguments and polygamma."""

import numpy as np
import pytest
from scipy import special

import tapeless as tp
from tests.prelude.judged import judge
from tests.quick import unoptimized  # noqa: F401

S, Q = (
    v.ravel()
    for v in np.meshgrid(
        [1.0, 1.001, 1.5, 2.0, 3.0, 30.0, 300.0, 0.5, -1.0, np.nan, np.inf],
        [0.001, 0.5, 1.0, 7.25, 60.0, 1e7, 1e9, 0.0, -1.0, -0.5, -20.25, np.inf, -np.inf, np.nan],
    )
)
X = np.array([0.3, 1.5, 4.0, 25.0, -0.25, -3.5])


def test_values():
    judge(lambda s, q: special.zeta(s, q), S, Q, order=0, rtol=3e-15, atol=0)
    edges = np.array([0.0, -1.0, -0.5, np.inf, -np.inf, np.nan, 1e-3, 1.0, 200.0])
    judge(lambda x: tuple([special.polygamma(n, x) for n in (0, 1, 2, 5, 171)]), edges, order=0, rtol=1e-13, atol=0)
    judge(lambda n, x: special.polygamma(n[:, None], x), np.arange(5), X, order=0, rtol=1e-12, atol=0)
    judge(lambda x: (special.polygamma(2, x), special.zeta(2, x)), 0.75, order=0)


@pytest.mark.thorough
def test_slopes():
    tp.check_grads(lambda x: (special.polygamma(1, x), special.zeta(2.0, x)), (X,), order=1)
    tp.check_grads(lambda x: special.polygamma(2, x), (1.5,), order=2)
    assert np.isnan(tp.grad(lambda s: special.zeta(s, 1.5))(2.5))


def test_refused():
    with pytest.raises(tp.CompileError, match="one argument"):
        tp.function(lambda x: special.zeta(x))(2.0)
