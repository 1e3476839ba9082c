"""Reductions of columns go through memory in its order: Note [Columns] in lower/parallel/columns.py."""

import numpy as np
import pytest

import tapeless as tp
from tests.agreement import agree
from tests.quick import unoptimized  # noqa: F401


def several(a):
    return np.sum(a, axis=0), np.max(a, axis=0), np.std(a, axis=0), np.any(a > 1.0, axis=0), np.argmin(a, axis=0)


def weighted(a, w):
    return np.sum(a * w[:, None], axis=0), np.mean(a, axis=0) * w[0]


def middle(a):
    return np.sum(a, axis=1), np.prod(a, axis=(0, 1))


def sums(a):
    return np.sum(a, axis=0), np.sum((a - np.max(a, axis=0)) ** 2, axis=0), np.argmax(a, axis=0)


@pytest.mark.parametrize("shape", [(5, 3), (1, 1), (2, 1100), (300, 2)])
def test_of_any_shape(shape):
    a = np.random.default_rng(0).normal(size=shape)
    for function, args in (
        (several, (a,)),
        (weighted, (a, a[:, 0].copy())),
        (middle, (a.reshape(*shape, 1) + np.zeros(4),)),
    ):
        for threads in (1, 2):
            for found, wanted in zip(tp.function(function, threads=threads)(*args), function(*args), strict=True):
                np.testing.assert_allclose(found, wanted, rtol=1e-12)
                assert found.dtype == wanted.dtype


def test_by_all_stages():
    """Sums of whole numbers have no rounding."""
    agree(sums, np.arange(12.0).reshape(4, 3) % 5)
    agree(sums, np.arange(24).reshape(6, 4) % 7)


def test_none_at_all():
    for shape in ((0, 3), (3, 0)):
        np.testing.assert_array_equal(tp.function(lambda a: np.sum(a, axis=0))(np.zeros(shape)), np.zeros(shape[1]))


def test_slopes():
    a = np.random.default_rng(0).normal(size=(4, 3))
    tp.check_grads(lambda a: np.sum(np.std(a, axis=0) * np.max(a, axis=0)), (a,), order=2)


def test_threads_have_columns_of_their_own():
    a = np.random.default_rng(0).normal(size=(500, 5000))
    found = tp.function(several, threads=2)(a)
    for one, wanted in zip(found, several(a), strict=True):
        np.testing.assert_allclose(one, wanted, rtol=1e-12)


def total(a):
    return np.sum(np.tanh(np.mean(a, axis=0)) + a[0]), np.max(np.sum(a, axis=0) * a[1])


def affine(a):
    """An operator that does not commute, over what columns give."""
    return tp.reduce(lambda p, q: (q[0] * p[0], q[0] * p[1] + q[1]), (1.0, 0.0), (np.min(a, axis=0), np.sum(a, axis=0)))


@pytest.mark.parametrize("function", [total, affine])
@pytest.mark.parametrize("shape", [(2, 1), (5, 3), (3, 1030), (200, 400)])
def test_what_columns_give_is_reduced_on_the_way(function, shape):
    a = np.random.default_rng(0).normal(size=shape)
    for threads in (1, 2):
        np.testing.assert_allclose(tp.function(function, threads=threads)(a), function(a), rtol=1e-12)


def test_one_pass_for_what_stands_between_reductions():
    def chain(a):
        return np.sqrt(np.abs(np.tanh(np.sum(a, axis=0) * 2.0) + 1.0)) * a[0]

    text = tp.function(chain).ir(np.ones((3, 4)), stage="loops")
    assert text.count("{simd}") == 3  # neutral elements, the sum, all the rest
