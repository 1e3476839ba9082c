"""Loops that copy or clear a run of cells become calls of the C library, and do what they did."""

import numpy as np
import pytest

import tapeless as tp

KINDS = [np.float64, np.float32, np.int64, np.uint8, np.bool_, np.complex128, np.complex64]


def part(a, k, n):
    b = a[k : k + n].copy()
    a[0] = a[k]
    return b


def into_a_row(a, b, i):
    b[i, :] = a
    return b


def inside_one_array(a, k):
    a[k:] = a[:-k]
    return a


def cleared(a, k):
    a[k:] = 0
    return a


@pytest.mark.parametrize("kind", KINDS)
def test_results(kind):
    a = (np.arange(11) % 3).astype(kind)
    square = np.ones((3, 11), kind)
    for f, args in [
        (part, (a, 3, 5)), (part, (a, 3, 0)), (into_a_row, (a, square, 1)), (inside_one_array, (a, 2)), (cleared, (a, 4)),
    ]:  # fmt: skip
        expected = f(*(np.copy(x) if isinstance(x, np.ndarray) else x for x in args))
        found = tp.function(f)(*(np.copy(x) if isinstance(x, np.ndarray) else x for x in args))
        np.testing.assert_array_equal(found, expected)
        assert found.dtype == expected.dtype


def negative_zeros(n):
    return np.full(n, -0.0)


def test_a_negative_zero_is_not_cleared():
    assert np.all(np.signbit(tp.function(negative_zeros)(5)))


def every_other(a):
    return a[::2].copy()


@pytest.mark.parametrize("f, args, calls", [(part, (np.ones(9), 2, 3), "memcpy"), (cleared, (np.ones(9), 2), "memset")])
def test_there_is_no_loop(f, args, calls):
    text = tp.function(f).ir(*args, stage="llvm")
    assert f"call void @llvm.{calls}" in text and "!llvm.loop" not in text


def test_strides_are_loops():
    assert "!llvm.loop" in tp.function(every_other).ir(np.ones(9), stage="llvm")
