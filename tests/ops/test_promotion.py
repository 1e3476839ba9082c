"""Promotion against np.result_type, for every pair of element types and marks."""

import itertools

import numpy as np
import pytest

from tapeless.ir.types import FROM_NUMPY, DType
from tapeless.ops.promotion import float_dtype, promote, ufunc_dtype

PYTHON = {DType.bool: True, DType.i64: 1, DType.f64: 1.0, DType.c128: 1j}  # what a Python number of the type is
OPERANDS = [(dtype, weak) for weak in (False, True) for dtype in DType if not weak or dtype in PYTHON]
PAIRS = list(itertools.product(OPERANDS, OPERANDS))
STRONG_OR_MIXED = [(a, b) for a, b in PAIRS if not (a[1] and b[1])]
WEAK = [(a, b) for a, b in PAIRS if a[1] and b[1]]


def sample(dtype: DType, weak: bool) -> object:
    return PYTHON[dtype] if weak else np.ones(2, dtype.numpy)


@pytest.mark.parametrize("a, b", STRONG_OR_MIXED)
def test_follows_numpy(a: tuple[DType, bool], b: tuple[DType, bool]):
    assert promote(*a, *b) == (FROM_NUMPY[np.result_type(sample(*a), sample(*b))], False)


@pytest.mark.parametrize("a, b", WEAK)
def test_two_python_numbers_follow_python(a: tuple[DType, bool], b: tuple[DType, bool]):
    by_class = {bool: DType.bool, int: DType.i64, float: DType.f64, complex: DType.c128}
    left, right = PYTHON[a[0]], PYTHON[b[0]]
    expected = left & right if isinstance(left, bool) and isinstance(right, bool) else left + right  # bool & bool stays
    assert promote(*a, *b) == (by_class[type(expected)], True)


@pytest.mark.parametrize("dtype", list(DType))
def test_float_functions(dtype: DType):
    result = np.sin(np.ones(2, dtype.numpy)).dtype
    assert ufunc_dtype(dtype) is (DType.f64 if result == np.float16 else FROM_NUMPY[result])
    assert float_dtype(dtype) is FROM_NUMPY[np.linalg.inv(np.eye(2, dtype=dtype.numpy)).dtype]
