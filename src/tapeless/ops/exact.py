"""Numbers whose sums or products can be undone to the last bit: fixed point, and logarithms in fixed point.

Takes and gives NumPy's float64, as scalars or arrays: numbers, or the patterns that exact numbers are kept as.

Note [Patterns]
A fixed-point number is a whole number of units of 2**-43 in 64 bits; sums are those of 64-bit integers and wrap. Core
and Loop IR keep it as the float64 with these bits, so that it is a differentiable value like any other: its adjoint is
a float64, loops carry it, arrays hold it. No row but those of its family may look at it. Negative numbers have all bits
but the sign turned, as the bits of floats grow with their size: patterns are ordered like the numbers, and none is NaN
or infinite for numbers within `LIMIT`.
A logarithmic number is the fixed-point number of its logarithm. Derivatives are by the number, not by the logarithm.
"""

from __future__ import annotations

from typing import Any

import numpy as np

UNITS = 2.0**43  # of one
LIMIT = 2.0**20 - 2.0**9  # what a number must stay below: from here on patterns have the exponent of infinity
_ALL_BUT_SIGN = np.int64(2**63 - 1)


def order(pattern: Any) -> Any:
    """The whole number of units."""
    bits = np.asarray(pattern, np.float64).view(np.int64)
    return np.where(bits < 0, bits ^ _ALL_BUT_SIGN, bits)


def pattern_of(units: Any) -> Any:
    return np.where(units < 0, units ^ _ALL_BUT_SIGN, units).view(np.float64)


def to_fixed(x: Any) -> Any:
    scaled = np.rint(np.asarray(x, np.float64) * UNITS)
    inside = np.abs(scaled) < 2.0**63
    return pattern_of(np.where(inside, np.where(inside, scaled, 0.0).astype(np.int64), np.int64(-(2**63))))


def of_fixed(pattern: Any) -> Any:
    return order(pattern) / UNITS


def fixed_add(a: Any, b: Any) -> Any:
    return pattern_of(order(a) + order(b))


def fixed_sub(a: Any, b: Any) -> Any:
    return pattern_of(order(a) - order(b))


def to_lognum(x: Any) -> Any:
    return to_fixed(np.log(x))


def of_lognum(pattern: Any) -> Any:
    return np.exp(of_fixed(pattern))
