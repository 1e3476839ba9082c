"""Loops that start with a number and go on with an array, as sums of rows and series do."""

import numpy as np
import pytest

import tapeless as tp
from tests.language.same import same, same_values
from tests.quick import unoptimized  # noqa: F401  (for all tests here)

X = np.array([0.3, -1.2, 2.0])


def powers(x):
    s = 0
    for k in range(3):
        s += x**k
    return s


def horner(x, n):
    r = 0.0
    for k in range(n):
        r = r * x + (k + 0.5)
    return r


def mean_of_rows(x, n):
    s = 0.0
    rows = np.outer(np.arange(1.0, n + 1), x)
    for row in rows:
        s = s + row
    return s / len(rows)


def series(x, n):
    """The sum is an array one iteration later than the term."""
    s, term = 0.0, 1.0
    for k in range(n):
        s = s + term
        term = term * x / (k + 1)
    return s


def nested(x, n):
    t = 0.0
    for _ in range(n):
        s = 1.0
        for j in range(2):
            s = s + x * j
        t += s * s
    return t


def seen_as_a_number(x, n):
    """What the first iteration sees is a number."""
    s, seen = 2.0, 0.0
    for k in range(n):
        seen = seen + np.sum(s)
        s = s + x * k
    return s * seen


def kept(x, n):
    s, out = 0, []
    for k in range(n):
        s = s + x * k
        out.append(s)
    return np.array(out)


CASES = [
    (powers, ()),
    (horner, (4,)),
    (mean_of_rows, (3,)),
    (series, (5,)),
    (nested, (3,)),
    (seen_as_a_number, (3,)),
    (kept, (3,)),
]


@pytest.mark.parametrize(("f", "more"), CASES, ids=lambda f: getattr(f, "__name__", ""))
def test_values_and_gradients(f, more):
    want, got = f(X, *more), tp.function(f)(X, *more)
    np.testing.assert_allclose(got, want, rtol=1e-14)
    assert got.dtype == want.dtype
    steps = 1e-6 * np.eye(3)
    slopes = [(np.sum(f(X + s, *more) ** 2) - np.sum(f(X - s, *more) ** 2)) / 2e-6 for s in steps]
    np.testing.assert_allclose(tp.grad(lambda x: np.sum(f(x, *more) ** 2))(X), slopes, rtol=1e-6)


def test_integers_keep_their_type():
    def total(a):
        s = 0
        for row in a:
            s += row
        return s

    for dtype in (np.int32, np.int64, np.float32):
        a = np.arange(6).reshape(2, 3).astype(dtype)
        got = tp.function(total)(a)
        np.testing.assert_array_equal(got, total(a))
        assert got.dtype == dtype


def test_without_an_iteration_it_would_be_a_number():
    with pytest.raises(ValueError, match="'r' is an array after an iteration of this loop, and a number without one"):
        tp.function(horner)(X, 0)


# -- None at first


def largest(x):
    best = None
    where = None
    for i in range(len(x)):
        if best is None or x[i] > best:
            best = x[i]
            where = i
    return best, where


def variation(x):
    before, total = None, 0.0
    for v in x:
        if before is not None:
            total += abs(v - before)
        before = v
    return total


def carried_rows(x, n):
    last = None
    for i in range(n):
        row = x * i
        if last is not None:
            row = row + last
        last = row
    return np.sum(last)


@pytest.mark.parametrize("n", [1, 2, 5])
def test_none_before_the_first_iteration(n):
    x = np.random.default_rng(1).random(n)
    same(largest, x)
    same_values(variation, x)
    same(carried_rows, x, n)
    with pytest.raises(TypeError, match="'best' is None here"):
        tp.function(largest)(np.zeros(0))


def test_without_an_iteration_nobody_asks():
    same_values(variation, np.zeros(0))


def test_slopes_through_none():
    x = np.array([0.3, 0.9, 0.1])
    np.testing.assert_allclose(tp.grad(variation)(x), [-1.0, 2.0, -1.0])
