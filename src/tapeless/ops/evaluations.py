"""Evaluations of rows that NumPy does not have under one name.

Functions of NumPy scalars or arrays, which keep the type. The notes that they cite are in ops/table.py.
"""

from __future__ import annotations

import math
import operator
from collections.abc import Callable, Mapping
from fractions import Fraction
from importlib import import_module
from typing import Any

import numpy as np

LARGEST_ORDER = 170  # of polygamma: the factorial of 171 is infinite


def special(name: str) -> Callable[..., Any]:
    """A function of scipy.special, which takes long to import: when it is called for the first time."""

    def call(*args: Any) -> Any:
        return getattr(import_module("scipy.special"), name)(*args)

    return call


def integer_power(x: Any, n: Any) -> Any:
    sign = np.where(np.bitwise_and(n, 1) == 1, x, 1)  # of 1 ** n and (-1) ** n
    return np.where(n >= 0, np.power(x, np.maximum(n, 0)), np.where(np.abs(x) == 1, sign, 0)).astype(x.dtype)


def count_bits(x: Any) -> Any:
    x = np.asarray(x)
    return np.bitwise_count(x.view(np.dtype(f"u{x.itemsize}"))).astype(x.dtype)[()]


def quotient_by(x: Any, y: Any, factor: Any, shift: Any) -> Any:
    """x // y. Note [Quotients by products] in `lower/core/code.py`"""
    wide, factor, shift = (np.asarray(v).astype(object) for v in (x, factor, shift))
    return np.asarray((wide * 2 * (factor % 2**64) >> 64) >> shift).astype(np.int64)


def mul_error(x: Any, y: Any) -> Any:
    """x y - fl(x y)"""

    def of_one(a: float, b: float) -> float:
        product = a * b
        if not math.isfinite(product):
            return math.nan
        return float(Fraction(a) * Fraction(b) - Fraction(product))

    wide = np.asarray(x).dtype == np.float64
    if not wide:  # a product of single precision fits into double precision
        return (np.float64(x) * np.float64(y) - np.float64(np.multiply(x, y))).astype(np.float32)
    return np.vectorize(of_one, otypes=[np.float64])(np.float64(x), np.float64(y))[()]


def ieee_remainder(x: Any, y: Any) -> Any:
    """x - n y, where n is the whole number next to x / y, the even one of two: exact."""

    def of_one(a: float, b: float) -> float:
        return math.remainder(a, b) if math.isfinite(a) and b != 0 else math.nan

    dtype = np.result_type(x, y)
    return np.vectorize(of_one, otypes=[np.float64])(np.float64(x), np.float64(y)).astype(dtype)[()]


def is_nan(x: Any) -> Any:
    return np.not_equal(x, x)


def convert(x: Any, target: np.dtype[Any]) -> Any:
    x = np.asarray(x)
    if target.kind == "b":
        return x != 0
    if x.dtype.kind == "c" and target.kind != "c":
        x = x.real
    if x.dtype.kind == "f" and target in (np.int32, np.int64):
        least = np.iinfo(target).min
        inside = np.abs(x) < -float(least)
        return np.where(inside, np.where(inside, x, 0).astype(target), np.array(least, target))
    if x.dtype.kind == "f" and target == np.uint64:
        high = x >= 2.0**63
        whole = convert(np.where(high, x - x.dtype.type(2.0**63), x), np.dtype(np.int64)).astype(target)
        return np.where(high, whole ^ np.uint64(2**63), whole)
    if x.dtype.kind == "f" and target.kind in "iu":
        return convert(x, np.dtype(np.int64)).astype(target)
    return x.astype(target)


def make_complex(x: Any, y: Any) -> Any:  # x + 1j * y would make NaN of infinite parts
    z = np.empty(np.broadcast(x, y).shape, np.result_type(x, y, np.complex64))
    z.real, z.imag = x, y
    return z


def polygamma(n: Any, x: Any) -> Any:
    functions = import_module("scipy.special")
    dtype, n, x = np.result_type(n, x), np.asarray(n, np.float64), np.asarray(x, np.float64)
    known = (n >= 1) & (n <= LARGEST_ORDER) & (n == np.floor(n))
    s, odd = np.where(known, n, 1) + 1, n % 2 == 1
    below = np.where(x > 0, np.nan, x)
    down, up = functions.zeta(s, below - np.floor(below)), functions.zeta(s, np.ceil(below) - below)
    right, left = functions.zeta(s, np.where(x > 0, x, np.nan)), functions.zeta(s, 1 - below)
    value = np.where(x > 0, right, np.where(odd, down + up - left, down - up + left))  # Note [Polygamma]
    return np.where(known & ~np.isnan(x), np.where(odd, 1, -1) * functions.gamma(s) * value, np.nan).astype(dtype)


def sinc(x: Any) -> Any:
    return np.where(x == 0, np.ones_like(x), np.sin(x) / x)


def direction(x: Any, y: Any) -> Any:
    size = np.hypot(x, y)
    ratio = x / np.where(size == 0, np.ones_like(size), size)
    return np.where(np.isinf(x), np.sign(x), ratio)


def sech2(x: Any) -> Any:
    e = np.exp(-2 * np.abs(x))  # of the type of x, as 2 is a Python number
    return 4 * e / np.square(1 + e)


ON_SCALARS: Mapping[str, Callable[..., Any]] = {  # what rows give on NumPy's scalars but for warnings, in a tenth of the time
    "add": operator.add, "sub": operator.sub, "mul": operator.mul, "and": operator.and_, "or": operator.or_,
    "minimum": lambda a, b: a if a <= b or a != a else b, "maximum": lambda a, b: a if a >= b or a != a else b,
    "min": lambda a, b: b if b < a else a, "max": lambda a, b: b if b > a else a,
    "lt": operator.lt, "le": operator.le, "gt": operator.gt, "ge": operator.ge, "eq": operator.eq, "ne": operator.ne,
}  # fmt: skip
