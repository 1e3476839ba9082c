"""Element types of mixed operands: NumPy 2's promotion, where Python numbers are weak.

Takes the types of two operands, each with a mark whether it is a Python number (bool, i64, f64 or c128), and gives
the type in which NumPy computes with the mark of the result. Relies on nothing but the types.
"""

from __future__ import annotations

from functools import cache

import numpy as np

from tapeless.ir.types import FROM_NUMPY, DType

KIND: dict[DType, int] = {d: 3 if d.is_complex else 2 if d.is_float else 1 if d.is_int else 0 for d in DType}


@cache
def promote(a: DType, a_weak: bool, b: DType, b_weak: bool) -> tuple[DType, bool]:
    """A weak operand widens the other only to a higher kind. A Python bool never does: it behaves like np.bool_."""
    if a_weak == b_weak:  # two Python numbers follow Python, which comes to the same
        return FROM_NUMPY[np.promote_types(a.numpy, b.numpy)], a_weak
    weak, strong = (a, b) if a_weak else (b, a)
    if KIND[weak] <= KIND[strong]:
        return strong, False
    return (strong.complex if weak.is_complex else weak), False


def float_dtype(dtype: DType) -> DType:
    """The type of np.mean and the like."""
    return dtype if KIND[dtype] >= KIND[DType.f32] else DType.f64


def ufunc_dtype(dtype: DType) -> DType:
    """The type of np.sin and the like. NumPy takes bools and integers of 8 bits to float16, which we do not have: here
    it is f64.
    """
    return DType.f32 if dtype.is_int and dtype.bytes == 2 else float_dtype(dtype)
