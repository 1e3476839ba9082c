"""Element types of mixed operands: NumPy 2's promotion, where Python numbers are weak.

Takes the types of two operands, each with a mark whether it is a Python number (bool, i64, f64 or c128), and gives
the type in which NumPy computes with the mark of the result. Relies on nothing but the types.
"""

from __future__ import annotations

from functools import cache

from tapeless.ir.types import DType

KIND: dict[DType, int] = {
    DType.bool: 0,
    DType.i32: 1,
    DType.i64: 1,
    DType.f32: 2,
    DType.f64: 2,
    DType.c64: 3,
    DType.c128: 3,
}


@cache
def promote(a: DType, a_weak: bool, b: DType, b_weak: bool) -> tuple[DType, bool]:
    """A weak operand widens the other only to a higher kind. A Python bool never does: it behaves like np.bool_."""
    if a_weak == b_weak:  # two Python numbers follow Python, which comes to the same
        return _promote_strong(a, b), a_weak
    weak, strong = (a, b) if a_weak else (b, a)
    if KIND[weak] <= KIND[strong]:
        return strong, False
    return (strong.complex if weak.is_complex else weak), False


def float_dtype(dtype: DType) -> DType:
    """The type of np.sin and the like. NumPy takes bool to float16, which we do not have: here it is f64."""
    return dtype if KIND[dtype] >= KIND[DType.f32] else DType.f64


def _promote_strong(a: DType, b: DType) -> DType:
    low, high = sorted((a, b), key=lambda dtype: (KIND[dtype], dtype.bytes))
    if low is DType.bool or KIND[low] == KIND[high]:
        return high
    if low.is_int or low is DType.f64:  # a 24-bit significand holds neither of these
        return DType.c128 if high.is_complex else DType.f64
    return high
