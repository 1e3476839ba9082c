"""Elementary functions of scipy.special."""

import numpy as np
import pytest
from scipy import special

import tapeless as tp
from tests.prelude.judged import judge, same
from tests.quick import unoptimized  # noqa: F401  (for all tests here)

INF, NAN = np.inf, np.nan
ONE = {
    "cosdg": (30.0, -200.0, 77.0),
    "cosm1": (0.3, -2.0, 1e-5),
    "cotdg": (30.0, -200.0, 77.0),
    "exp10": (0.3, -2.0, 1e-5),
    "exprel": (0.3, -2.0, 1e-5, 0.0, -0.05),
    "factorial": (0.3, 2.0, 4.5),
    "log_expit": (0.3, -2.0, 0.0, -40.0, 40.0),
    "sindg": (30.0, -200.0, 77.0),
    "softplus": (0.3, -2.0, 0.0, -40.0, 40.0),
    "tandg": (30.0, -200.0, 77.0),
}
TWO = {
    "boxcox": ((0.5, 2.0, 3.0), (0.5, 0.0, -1.5)),
    "boxcox1p": ((-0.5, 2.0, 3.0), (0.5, 0.0, -1.5)),
    "huber": ((1.0, 1.0, 0.5), (0.3, -2.0, 0.0)),
    "inv_boxcox": ((-0.5, 1.0, 0.3), (0.5, 0.0, -1.5)),
    "inv_boxcox1p": ((-0.5, 1.0, 0.3), (0.5, 0.0, -1.5)),
    "kl_div": ((0.3, 2.0, 1.0), (0.5, 2.00001, 9.0)),
    "perm": ((7.0, 9.5, 200.0), (2.0, 0.5, 3.5)),
    "pseudo_huber": ((1.0, 1.0, 0.5), (0.3, -2.0, 0.0)),
    "rel_entr": ((0.3, 2.0, 1.0), (0.5, 2.00001, 9.0)),
}
ENDS = {
    "cosdg": (0, 45, 60, 90, 180, 270, 360, -90, 1e15),
    "cosm1": (0, 1e-200, INF, NAN),
    "cotdg": (0, 45, 60, 90, 180, 270, 360, -90, 1e15),
    "exp10": (400, -400, INF, -INF, NAN, 3),
    "exprel": (0, 1e-300, -1e-12, 800, -800, INF, NAN),
    "factorial": (-1, -0.5, 0, 1, 5, 170, 171, INF, NAN),
    "log_expit": (-800, 800, -INF, INF, NAN),
    "sindg": (0, 45, 60, 90, 180, 270, 360, -90, 1e15),
    "softplus": (-800, 800, -INF, INF, NAN),
    "tandg": (0, 45, 60, 90, 180, 270, 360, -90, 1e15),
}
NEAR = np.array([-3.0, -1.0, -0.5, 0.0, 1e-3, 0.2, 1.0, 1.0 + 1e-9, 3.0, 40.0])


@pytest.mark.sampled(2)
@pytest.mark.parametrize("name", ONE)
def test_of_one(name):
    function = getattr(special, name)
    judge(lambda x: function(x), np.array(ONE[name]))
    judge(lambda x: function(x), np.array(ENDS[name], dtype=float), order=0)
    judge(lambda x: function(x), np.arange(1, 5), order=0)
    judge(lambda x: function(x), np.array([0.25, 3.0], dtype=np.float32), order=0, rtol=1e-6)


@pytest.mark.sampled(2)
@pytest.mark.parametrize("name", TWO)
def test_of_two(name):
    function = getattr(special, name)
    judge(lambda x, y: function(x, y), *map(np.array, TWO[name]))
    judge(lambda x, y: function(x, y), NEAR[:, None], NEAR, order=0, atol=1e-15)
    judge(lambda x, y: function(x, y), np.arange(-1, 4)[:, None], np.arange(-1, 4), order=0)
    small = np.array([0.5, 2.0], dtype=np.float32)
    judge(lambda x, y: function(x, y), small, small[:, None], order=0, rtol=2e-6)
    slopes = tp.grad(lambda x, y: np.sum(function(x, y)), (0, 1))
    x, y = np.meshgrid(NEAR[3:], NEAR[3:])
    for s in slopes(np.maximum(x, 0.1) if name == "perm" else x, y if name != "perm" else np.minimum(x, y)):
        assert not np.any(np.isnan(s))


def test_slopes_that_a_kink_would_hide():
    """Where formulas have a kink that the function has not."""
    assert tp.grad(lambda x: special.log_expit(x))(0.0) == 0.5
    np.testing.assert_allclose(tp.grad(tp.grad(lambda x: special.softplus(x)))(0.0), 0.25, rtol=1e-14)
    np.testing.assert_allclose(tp.grad(tp.grad(lambda x: special.exprel(x)))(0.0), 1 / 3, rtol=1e-14)
    assert tp.grad(lambda x: special.boxcox(x, 1.0))(0.0) == 1.0
    np.testing.assert_allclose(tp.grad(lambda p: special.boxcox(2.0, p))(0.0), np.log(2) ** 2 / 2, rtol=1e-14)


def test_digits_of_a_difference():
    """SciPy's kl_div has few of them here."""
    x, y = 2.0, 2.0000001
    d = y - x
    wanted = d * d / (2 * x) - d**3 / (3 * x * x)
    np.testing.assert_allclose(tp.function(lambda x, y: special.kl_div(x, y))(x, y), wanted, rtol=1e-13)


def test_lists_are_arrays():
    judge(lambda: special.huber(1.0, [1.0, 2.0]), order=0)


def test_angles():
    judge(lambda d, m, s: special.radian(d, m, s), np.array([30.0, -2.0]), 20.0, 12.5)


def test_combinations():
    n, k = np.arange(-1, 7)[:, None], np.arange(-1, 7)
    judge(lambda n, k: (special.comb(n, k), special.comb(n, k, repetition=True)), n, k, order=0)
    judge(lambda n, k: special.comb(n, k), 10, 3, order=0)


def test_multigammaln():
    judge(lambda a: special.multigammaln(a, 1), 2.5, order=0)
    judge(lambda a: special.multigammaln(a, 3), np.array([2.5, 3.0, 9.0]))
    with pytest.raises(ValueError, match="not met"):
        tp.function(lambda a: special.multigammaln(a, 3))(0.5)


# -- logsumexp

X = np.array([[0.3, -1.2, 2.0, 0.1], [1.0, 0.5, -0.3, 0.9], [0.2, 0.4, 2.2, -3.0]])
B = np.array([[0.3, 1.2, 2.0, 0.1], [1.0, 0.5, 0.3, 0.9], [0.2, 0.4, 2.2, 3.0]])


@pytest.mark.thorough
def test_logsumexp_with_weights():
    judge(lambda x, b: special.logsumexp(x, axis=0, b=b), X, B)
    judge(
        lambda x, b: (special.logsumexp(x, b=b), special.logsumexp(x, 1, b[0], True, return_sign=False)), X, B, order=0
    )
    judge(lambda x, b: special.logsumexp(x, axis=1, b=-b), X, B, order=0)
    judge(lambda x, b: special.logsumexp(x, b=b), X.astype("f"), B.astype("f"), order=0, rtol=1e-6)
    judge(lambda x, b: special.logsumexp(x, b=b), np.arange(4), np.arange(4), order=0)


@pytest.mark.parametrize("weights", [(1.0, 0.0, 2.0, 1.0), (1.0, 1.0, 2.0, 1.0), (1.0, 0.0, 1.0, -1.0)])
def test_logsumexp_of_infinities(weights):
    function = lambda x, b: special.logsumexp(x, b=b)
    x, b = np.array([1.0, INF, -INF, 800.0]), np.array(weights)
    with np.errstate(all="ignore"):
        same(tp.function(function)(x, b), function(x, b), 1e-14, 0)
    assert not np.any(np.isnan(tp.grad(function)(x, b)))


def test_slope_by_a_weight_of_zero():
    x, b = np.array([1.0, 2.0, 0.5]), np.array([1.0, 0.0, 2.0])
    slope = tp.grad(lambda b: special.logsumexp(x, b=b))(b)
    np.testing.assert_allclose(slope, np.exp(x - special.logsumexp(x, b=b)), rtol=1e-14)


# -- polynomials


@pytest.mark.sampled(2)
@pytest.mark.parametrize("name", ["legendre", "chebyt", "chebyu", "hermite", "hermitenorm", "laguerre"])
def test_orthogonal_polynomials(name):
    function = getattr(special, f"eval_{name}")
    x = np.array([-1.5, -0.4, 0.0, 0.9])
    judge(lambda x: (function(4, x), function(1, x)), x)
    run = tp.function(lambda n, x: function(n, x))
    for n in (-3, -1, 0, 1, 2, 7, 20):
        np.testing.assert_allclose(run(n, x), function(n, x), rtol=1e-12, atol=1e-12)
    judge(lambda x: function(3, x), np.float32(0.3), order=0)
    judge(lambda x: function(3, x), np.arange(3), order=0)


REFUSED = {
    "exact combinations": (lambda x: special.comb(5, 2, exact=True) * x, "exact=True"),
    "exact factorial": (lambda x: special.factorial(5, exact=True) * x, "exact=True"),
    "exact permutations": (lambda x: special.perm(5, 2, exact=True) * x, "exact=True"),
    "sign": (lambda x: special.logsumexp([x, x], return_sign=True), "return_sign"),
}


@pytest.mark.parametrize("name", REFUSED)
def test_refused(name):
    function, text = REFUSED[name]
    with pytest.raises(tp.CompileError, match=text):
        tp.function(function)(1.5)
