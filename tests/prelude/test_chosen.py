"""where= and initial= of reductions, where= of ufuncs."""

import numpy as np
import pytest

import tapeless as tp
from tests.prelude.judged import judge
from tests.quick import unoptimized  # noqa: F401  (for all tests here)

X = np.sin(np.arange(12.0) * 2 + 0.3).reshape(3, 4)
GAPS = np.where(X > 0.8, np.nan, X)
WHOLE = np.array([[3, -1, 4, 0], [1, -5, 9, 2], [2, 6, 5, 8]])
MASK = WHOLE % 3 != 0
ROW = np.array([True, False, True, True])
Z = X[:, :2] + 1j * X[:, 2:]

VALUES = {
    "sums": lambda x, n, m: (
        np.sum(x, where=m), np.sum(x, axis=0, where=m, initial=2), np.prod(x, axis=1, initial=3.0, where=m), x.sum(initial=1),
        np.sum(n, where=m, initial=0.5), np.sum(m, where=~m), np.prod(n, axis=0, keepdims=True, initial=2), np.sum(x, where=False),
        np.sum(n, initial=1.5, dtype=float), np.sum(2.0, initial=3, where=True), np.sum(x, axis=1, where=ROW), np.sum(x, where=m[:, :1]),
        np.add.reduce(x, initial=2.0, where=m), np.multiply.reduce(x, axis=1, where=m), np.sum(x[:0], initial=4.0, axis=0),
    ),
    "extrema": lambda x, n, m: (
        np.max(x, initial=0.5), np.max(x, axis=0, initial=-np.inf, where=m), x.min(axis=1, initial=0.2, where=m, keepdims=True),
        np.max(n, initial=5.9), np.min(n, initial=9, where=n > 3, axis=1), np.max(m, initial=False, where=m), np.min(m, initial=True, axis=0),
        np.max(x[:0], initial=3), np.min(x[:0], axis=0, initial=-1), np.max(x, initial=np.nan), np.maximum.reduce(x, where=m, initial=0),
    ),
    "truth": lambda x, n, m: (
        np.any(n, where=~m), np.all(n, axis=0, where=m), np.any(m, axis=1, where=ROW), x.all(where=x > 0), np.all(x, where=False),
    ),
    "means": lambda x, n, m: (
        np.mean(x, where=m), np.mean(n, axis=0, where=m, keepdims=True), x.mean(axis=1, where=ROW), np.mean(x, where=x > 9),
        np.var(x, where=m), np.var(x, axis=1, where=m, ddof=1), x.std(axis=0, where=m), np.std(n, where=m, keepdims=True),
        np.std(x, where=ROW, ddof=20), np.mean(x, where=True),
    ),
    "missing": lambda x, n, m: (
        np.nansum(x, where=m), np.nanprod(x, axis=0, initial=2), np.nanmax(x, initial=0, where=m), np.nanmin(x, axis=1, initial=0.9),
        np.nanmean(x, where=m), np.nanmean(x, axis=0, where=ROW), np.nanvar(x, where=m, axis=1), np.nanstd(x, where=m), np.nanvar(n, where=m),
    ),
}  # fmt: skip


@pytest.mark.parametrize("name", VALUES)
def test_values(name):
    judge(VALUES[name], GAPS if name == "missing" else X, WHOLE, MASK, order=0)
    judge(VALUES[name], (GAPS if name == "missing" else X).astype(np.float32), WHOLE, MASK, order=0, rtol=1e-5)


def test_complex_numbers():
    judge(
        lambda z: (
            np.max(z, axis=0, initial=0.1j), np.min(z, initial=0, where=z.real > 0), np.sum(z, where=z.imag > 0, initial=1j),
            np.max(z[:0], initial=2 - 1j), np.mean(z, where=z.imag > 0), np.var(z, where=z.real < 0.5),
        ),
        Z,
    )  # fmt: skip


@pytest.mark.thorough
def test_slopes():
    judge(
        lambda x, s: (
            np.sum(x * x, axis=0, where=MASK, initial=s * s), np.prod(x, axis=1, where=MASK, initial=s), np.max(x, axis=0, initial=s),
            np.min(x, where=MASK, initial=2 * s), np.mean(x**2, where=MASK), np.var(x, where=MASK, axis=0), np.std(x, where=ROW, axis=1),
            np.nansum(x**2, where=MASK), np.nanvar(x, where=MASK),
        ),
        X, 0.4, order=2,
    )  # fmt: skip


def divided(x, y):
    return np.divide(x, y, out=np.ones(4), where=y != 0)


def test_functions_of_elements():
    x, y = np.array([1.0, -2.0, 3.0, 4.0]), np.array([2.0, 0.0, 0.5, 0.0])
    judge(divided, x, y, order=0)
    judge(lambda x, n: np.power(n, n[::-1], out=np.zeros(4), where=n[::-1] >= 0), x, WHOLE[1], order=0)

    def in_place(x, m):
        y = x.copy()
        np.sqrt(y, out=y, where=m)
        np.add(y, 1, y, where=[True, False, True, True])
        return y

    judge(in_place, X[0] ** 2, MASK[0], order=0)
    tp.check_grads(lambda x: in_place(x, MASK[0]), (X[0] ** 2,), order=2)
    found = tp.jacrev(lambda y: divided(x, y))(y), tp.jacfwd(lambda y: divided(x, y))(y)
    for slope in found:  # where nothing is divided there is no slope
        np.testing.assert_allclose(slope, np.diag(np.where(y == 0, 0, -x / np.where(y == 0, 1, y) ** 2)))


REFUSED = [
    ("where without initial", lambda x: np.max(x, where=x > 0)),
    ("made of bools", lambda x: np.sum(x, where=x)),
    ("made of bools", lambda x: np.mean(x, where=x)),
    ("more dimensions", lambda x: np.sum(x[0], where=x > 0)),
    ("must be a number", lambda x: np.sum(x, axis=0, initial=x[0])),
    ("complex 'initial'", lambda x: np.sum(x, initial=1j)),
    ("where without out", lambda x: np.sin(x, where=x > 0)),
    ("do not fit into 'out'", lambda x: np.sin(x, where=x > 0, out=np.zeros(4, dtype=int))),
]


@pytest.mark.parametrize("says, function", REFUSED, ids=[str(k) for k in range(len(REFUSED))])
def test_refused(says, function):
    with pytest.raises((tp.CompileError, TypeError), match=says):
        tp.function(function)(X)


def test_sizes_that_do_not_fit():
    with pytest.raises((tp.ShapeError, ValueError)):
        tp.function(lambda x, m: np.sum(x, where=m))(X[:1], MASK)
