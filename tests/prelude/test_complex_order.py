"""Functions of complex numbers that NumPy takes part by part: their order, and exponentials and logarithms at the edges."""

import numpy as np
import pytest

import tapeless as tp
from tests.prelude.judged import judge
from tests.quick import unoptimized  # noqa: F401  (for all tests here)

PARTS = [0.0, -0.0, 1.0, -1.0, 2.5, np.inf, -np.inf, np.nan, 800.0, 1e-9]
EDGES = np.array([complex(a, b) for a in PARTS for b in PARTS])
Z = np.array([[0.3 + 0.4j, -1.2 + 0.1j, 2.0 - 1j], [1.3 + 0.4j, -1.2 + 0.3j, 2.0 - 2j]])
APART = Z + np.array([[0.0], [0.25]])  # no two real parts are equal
TIES = np.array([1 + 2j, 3 - 1j, 3 - 1j, 3 - 2j, -1 + 0j, -1 + 5j])


def parts_agree(found, wanted):
    """NaN and signs of zeros too; the distance counts for the number as a whole."""
    assert found.dtype == wanted.dtype
    for x, y in ((found.real, wanted.real), (found.imag, wanted.imag)):
        near = np.abs(x - y) <= 4e-16 * np.abs(wanted)
        agree = (np.isnan(x) & np.isnan(y)) | ((np.signbit(x) == np.signbit(y)) & ((x == y) | near))
        assert agree.all(), list(zip(EDGES[~agree], found[~agree], wanted[~agree], strict=True))


def elementwise(z):
    return (
        np.exp(z), np.exp2(z), np.expm1(z), np.log2(z), np.log1p(z), np.log10(z), np.rint(z), np.nan_to_num(z),
        np.nan_to_num(z, nan=2.0, posinf=7, neginf=-7.5), np.sign(z),
    )  # fmt: skip


def test_edges_are_those_of_numpy():
    with np.errstate(all="ignore"):
        for found, wanted in zip(tp.function(elementwise)(EDGES), elementwise(EDGES), strict=True):
            parts_agree(found, wanted)


def pairs(a, b):
    return (
        np.maximum(a, b), np.minimum(a, b), np.fmax(a, b), np.fmin(a, b), np.less(a, b), np.less_equal(a, b), a > b, a >= b,
        np.clip(a, -1 + 1j, b), a[0] < b[0], a[0] < 2.5,
    )  # fmt: skip


def test_order_of_pairs():
    judge(pairs, *(v.ravel() for v in np.meshgrid(EDGES[::3], EDGES[::2])), order=0)


def extrema(z):
    return (
        np.max(z, axis=1), np.min(z, axis=1, keepdims=True), np.argmax(z, axis=1), np.argmin(z, axis=0), np.nanmax(z, axis=1),
        np.nanmin(z, axis=0), np.max(z), z.min(axis=(0, 1)), np.maximum.accumulate(z, axis=1), np.minimum.reduce(z),
    )  # fmt: skip


def test_extrema_of_arrays():
    judge(extrema, np.random.default_rng(0).choice(EDGES, (12, 5)), order=0)
    judge(extrema, Z.astype(np.complex64), order=0)


def test_order_of_arrays():
    rows = np.random.default_rng(1).choice(EDGES, (6, 9))
    judge(lambda z: (np.sort(z, axis=1), np.sort(z, axis=0), np.sort_complex(z)), rows, order=0)
    judge(lambda z: (np.argsort(z), np.median(z), np.unique(z), np.ptp(z, axis=0), np.nanargmax(z)), Z, order=0)


@pytest.mark.thorough
def test_slopes():
    judge(lambda z: (np.exp2(z), np.expm1(z), np.log2(z), np.log1p(z)), Z, order=2)
    judge(
        lambda z, w: (np.maximum(z, w), np.fmin(z, w) ** 2, np.clip(z, -1, w)), APART, APART[::-1] + 0.1 + 0.1j, order=2
    )
    judge(
        lambda z: (np.max(z, axis=1) ** 2, np.nanmin(z), np.sort(z) * np.arange(3), np.median(z, axis=1)),
        APART,
        order=2,
    )


@pytest.mark.parametrize("mode", [tp.jacfwd, tp.jacrev])
def test_the_first_of_equal_elements_takes_the_slope(mode):
    np.testing.assert_array_equal(mode(np.max)(TIES), [0, 1, 0, 0, 0, 0])
    np.testing.assert_array_equal(mode(lambda z: np.maximum(z, z[::-1])[2])(TIES), [0, 0, 1, 0, 0, 0])


def test_refused():
    with pytest.raises(tp.CompileError, match="not supported"):
        tp.function(lambda z: z < 1j)(1j)  # Python has no order either
    with pytest.raises(tp.CompileError, match="complex"):
        tp.function(lambda z: np.searchsorted(z, 1j))(TIES)
