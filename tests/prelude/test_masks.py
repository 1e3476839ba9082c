"""Masks: what they choose, read and written, and arrays whose size the data decide."""

import numpy as np
import pytest

import tapeless as tp
from tests.prelude.cases import test_slopes, test_values  # noqa: F401
from tests.prelude.judged import judge
from tests.quick import unoptimized  # noqa: F401

V = np.array([0.5, -1.5, 2.0, -0.25, 3.0])
M = np.arange(12.0).reshape(3, 4) - 5.5
K = np.array([3, 1, 3, 2, 1, 1])


def assigned(x):
    y = x.copy()
    y[y > 0] = np.sin(y[y > 0])
    return y


def updated(x):
    y = x.copy()
    y[x > 0] *= x[x > 0]
    y[x < 0] += 1.0
    return y


def of_rows(x):
    y = x.copy()
    y[x[:, 0] > -3] = 1.5
    y[x[:, 1] < -3, 2] = x[0, :1]
    return y


def in_a_loop(x):
    total = 0.0
    for i in range(x.shape[0]):
        row = x[i]
        total += np.sum(row[row > i - 3] ** 2)
    return total


SLOPES = {
    "chosen": (lambda x: x[x > 0], V),
    "mean": (lambda x: x[x > 0].mean(), V),
    "none": (lambda x: np.sum(x[x > 100.0]), V),
    "of a matrix": (lambda x: x[x > 0], M),
    "of rows": (lambda x: x[x[:, 0] > -3.0], M),
    "of columns": (lambda x: x[:, x[0] > -4.0], M),
    "a mask and a position": (lambda x: x[x[:, 0] > -3.0, 1], M),
    "a list of bools": (lambda x: x[[True, False, True]], M),
    "assigned": (assigned, V),
    "updated": (updated, V),
    "rows assigned": (of_rows, M),
    "in a loop": (in_a_loop, M),
    "by positions": (lambda x: x[np.nonzero(x > 0)] * 2, M),
    "by np.where": (lambda x: x[np.where(x > 0)[0]], V),
    "compress": (lambda x: np.compress(x > 0, x), V),
    "compress along an axis": (lambda x: np.compress(np.array([True, False, True]), x, axis=0), M),
    "extract": (lambda x: np.extract(x > 0, x), M),
    "unique": (lambda x: np.unique(np.concatenate([x, x])), V),
}
VALUES = {
    "nonzero": (lambda x: np.nonzero(x), np.array([[1, 0, 2], [0, 0, 3]])),
    "methods": (lambda x, k: (x.nonzero(), np.sort(x[0, x[0].argpartition(1)]), k.choose([x[0, 0] + k, -k])), M, K % 2),
    "argwhere": (lambda x: np.argwhere(x > 0), M),
    "flatnonzero": (lambda x: np.flatnonzero(x > 0), M),
    "size": (lambda x: (x[x > 0].size, len(x[x > 0])), M),
    "unique": (lambda k: np.unique(k, return_index=True, return_inverse=True, return_counts=True), K),
    "unique of nothing": (lambda k: np.unique(k[:0], return_counts=True), K),
    "unique with NaN": (lambda x: np.unique(x), np.array([np.nan, 1.0, np.nan, 1.0])),
}


def test_second_derivatives():
    tp.check_grads(lambda x: np.sum(x[x > 0] ** 3), (V,), order=2)


def test_place():
    def function(x):
        y = x.copy()
        np.place(y, y > 0, np.array([10.0, 20.0]))
        return y

    judge(function, V)


def test_a_mask_that_does_not_fit():
    with pytest.raises(IndexError, match="size of axis is 5 but size of corresponding boolean axis is 4"):
        tp.function(lambda x, m: x[m])(V, np.ones(4, bool))
    with pytest.raises(tp.TapelessError):
        tp.function(lambda x: x[np.ones((2, 2), bool)])(V)
