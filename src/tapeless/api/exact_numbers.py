"""Exact numbers: `tp.fixed43`, on which `+=` and `-=` are undone to the last bit, and `tp.lognum`, on which `*=` and `/=` are.

Both are numbers or arrays of them, in plain Python and in compiled code, which compiles the methods below. What is
computed from them otherwise is a float64. Their derivatives are floats.
"""

from __future__ import annotations

from dataclasses import dataclass
from typing import Any, Self, TypeVar

import numpy as np

from tapeless.ops.exact import LIMIT
from tapeless.ops.table import TABLE

__all__ = ["fixed43", "lognum"]
Number = TypeVar("Number")


def row(name: str, *operands: Any, rounded: str = "") -> Any:
    """A row of the ops table on numbers or arrays. `rounded`: the one that floats have in its place, by which compiled code
    with check=True finds out whether a sum of fixed-point numbers wraps.
    """
    return TABLE[name].numpy(*(np.asarray(x, np.float64) for x in operands))


def kept(cls: type[Number], pattern: Any) -> Number:
    """The number that is kept as the pattern."""
    made = object.__new__(cls)
    object.__setattr__(made, "pattern", pattern)
    return made


row.__tapeless__, kept.__tapeless__ = "row", "kept"  # type: ignore[attr-defined]


@dataclass(frozen=True, eq=False, repr=False, init=False)
class _Exact:
    """`pattern` is how the number is kept: Note [Patterns] of ops/exact.py. All but exact steps goes through `value`."""

    pattern: Any
    __tapeless_tangent__ = "pattern"  # derivatives are those of this field, and stand for the whole number
    __hash__ = None  # type: ignore[assignment]

    def __init__(self, value: Any) -> None:
        if np.asarray(value).dtype.kind not in "biuf":
            raise TypeError(f"a {type(self).__name__} is made of real numbers, not of {value!r}")
        object.__setattr__(self, "pattern", np.copy(self._patterns(value))[()])

    @classmethod
    def __tapeless_new__(cls, value: Any) -> Any:
        return kept(cls, cls._patterns(value))

    @classmethod
    def _patterns(cls, value: Any) -> Any:
        raise NotImplementedError

    @property
    def value(self) -> Any:
        raise NotImplementedError

    # -- as arrays

    @property
    def shape(self) -> tuple[int, ...]:
        return np.shape(self.pattern)

    @property
    def ndim(self) -> int:
        return np.ndim(self.pattern)

    def __len__(self) -> int:
        return len(self.pattern)

    def __getitem__(self, at: Any) -> Self:
        return kept(type(self), self.pattern[at])

    def __setitem__(self, at: Any, value: Any) -> None:
        self.pattern[at] = self._patterns(value)

    def copy(self) -> Self:
        return kept(type(self), np.copy(self.pattern))

    # -- as floats

    def __array__(self, dtype: Any = None, copy: Any = None) -> Any:
        return self.value

    def __float__(self) -> float:
        return float(self.value)

    def __bool__(self) -> bool:
        return bool(self.value != 0)

    def __abs__(self) -> Any:
        return abs(self.value)

    def __add__(self, other: Any) -> Any:
        return self.value + other

    def __radd__(self, other: Any) -> Any:
        return other + self.value

    def __sub__(self, other: Any) -> Any:
        return self.value - other

    def __rsub__(self, other: Any) -> Any:
        return other - self.value

    def __mul__(self, other: Any) -> Any:
        return self.value * other

    def __rmul__(self, other: Any) -> Any:
        return other * self.value

    def __truediv__(self, other: Any) -> Any:
        return self.value / other

    def __rtruediv__(self, other: Any) -> Any:
        return other / self.value

    def __floordiv__(self, other: Any) -> Any:
        return self.value // other

    def __rfloordiv__(self, other: Any) -> Any:
        return other // self.value

    def __mod__(self, other: Any) -> Any:
        return self.value % other

    def __rmod__(self, other: Any) -> Any:
        return other % self.value

    def __pow__(self, other: Any) -> Any:
        return self.value**other

    def __rpow__(self, other: Any) -> Any:
        return other**self.value

    def __matmul__(self, other: Any) -> Any:
        return self.value @ np.asarray(other)

    def __rmatmul__(self, other: Any) -> Any:
        return np.asarray(other) @ self.value

    def __neg__(self) -> Any:
        return -self.value

    def __pos__(self) -> Self:
        return self

    # -- in order

    def __eq__(self, other: Any) -> Any:
        if isinstance(other, type(self)):
            return row("order_of_fixed", self.pattern) == row("order_of_fixed", other.pattern)
        return self.value == other

    def __ne__(self, other: Any) -> Any:
        if isinstance(other, type(self)):
            return row("order_of_fixed", self.pattern) != row("order_of_fixed", other.pattern)
        return self.value != other

    def __lt__(self, other: Any) -> Any:
        if isinstance(other, type(self)):
            return row("order_of_fixed", self.pattern) < row("order_of_fixed", other.pattern)
        return self.value < other

    def __le__(self, other: Any) -> Any:
        if isinstance(other, type(self)):
            return row("order_of_fixed", self.pattern) <= row("order_of_fixed", other.pattern)
        return self.value <= other

    def __gt__(self, other: Any) -> Any:
        if isinstance(other, type(self)):
            return row("order_of_fixed", self.pattern) > row("order_of_fixed", other.pattern)
        return self.value > other

    def __ge__(self, other: Any) -> Any:
        if isinstance(other, type(self)):
            return row("order_of_fixed", self.pattern) >= row("order_of_fixed", other.pattern)
        return self.value >= other

    # -- in Python alone

    def __repr__(self) -> str:
        return (
            f"tp.{type(self).__name__}({self.value!r})" if self.ndim else f"tp.{type(self).__name__}({float(self)!r})"
        )

    def __array_ufunc__(self, ufunc: Any, method: str, *inputs: Any, **options: Any) -> Any:
        """NumPy's numbers and arrays on the left leave operators to the methods above."""
        reflected = REFLECTED.get(ufunc) if method == "__call__" and len(inputs) == 2 and inputs[1] is self else None
        if reflected is not None and not isinstance(inputs[0], _Exact):
            return getattr(self, reflected)(inputs[0])
        return getattr(ufunc, method)(*(x.value if isinstance(x, _Exact) else x for x in inputs), **options)


REFLECTED = {
    np.add: "__radd__", np.subtract: "__rsub__", np.multiply: "__rmul__", np.true_divide: "__rtruediv__",
    np.matmul: "__rmatmul__",
    np.less: "__gt__", np.less_equal: "__ge__", np.greater: "__lt__", np.greater_equal: "__le__",
    np.equal: "__eq__", np.not_equal: "__ne__",
}  # fmt: skip


@dataclass(frozen=True, eq=False, repr=False, init=False)
class fixed43(_Exact):
    """Fixed-point numbers: 64 bits, 43 of them behind the point, below 2**20 in size. Sums wrap and can be undone."""

    @classmethod
    def _patterns(cls, value: Any) -> Any:
        if isinstance(value, fixed43):
            return value.pattern
        if not np.all(np.abs(value) < LIMIT):
            raise OverflowError("a fixed43 is below 2**20 - 2**9 in size")
        return row("to_fixed", value)

    @property
    def value(self) -> Any:
        return row("of_fixed", self.pattern)

    def __add__(self, other: Any) -> fixed43:
        return kept(type(self), row("fixed_add", self.pattern, self._patterns(other), rounded="add"))

    def __radd__(self, other: Any) -> fixed43:
        return kept(type(self), row("fixed_add", self._patterns(other), self.pattern, rounded="add"))

    def __sub__(self, other: Any) -> fixed43:
        return kept(type(self), row("fixed_sub", self.pattern, self._patterns(other), rounded="sub"))

    def __rsub__(self, other: Any) -> fixed43:
        return kept(type(self), row("fixed_sub", self._patterns(other), self.pattern, rounded="sub"))

    def __neg__(self) -> fixed43:
        return kept(type(self), row("fixed_sub", 0.0, self.pattern, rounded="sub"))

    def __iadd__(self, other: Any) -> fixed43:
        if self.ndim == 0:
            return self.__add__(other)
        self.pattern[...] = (self + other).pattern
        return self

    def __isub__(self, other: Any) -> fixed43:
        if self.ndim == 0:
            return self.__sub__(other)
        self.pattern[...] = (self - other).pattern
        return self

    def __imul__(self, other: Any) -> fixed43:
        raise TypeError("products of fixed43 round and cannot be undone: use tp.lognum, or tp.fixed43(x * y)")

    def __itruediv__(self, other: Any) -> fixed43:
        raise TypeError("quotients of fixed43 round and cannot be undone: use tp.lognum, or tp.fixed43(x / y)")


@dataclass(frozen=True, eq=False, repr=False, init=False)
class lognum(_Exact):
    """Positive numbers that are kept as logarithms in fixed point. Products and quotients wrap and can be undone."""

    @classmethod
    def _patterns(cls, value: Any) -> Any:
        if isinstance(value, lognum):
            return value.pattern
        if not np.all(value > 0.0):
            raise ValueError("a lognum is positive")
        return row("to_lognum", value)

    @property
    def value(self) -> Any:
        return row("of_lognum", self.pattern)

    def __mul__(self, other: Any) -> lognum:
        return kept(type(self), row("lognum_mul", self.pattern, self._patterns(other)))

    def __rmul__(self, other: Any) -> lognum:
        return kept(type(self), row("lognum_mul", self._patterns(other), self.pattern))

    def __truediv__(self, other: Any) -> lognum:
        return kept(type(self), row("lognum_div", self.pattern, self._patterns(other)))

    def __rtruediv__(self, other: Any) -> lognum:
        return kept(type(self), row("lognum_div", self._patterns(other), self.pattern))

    def __imul__(self, other: Any) -> lognum:
        if self.ndim == 0:
            return self.__mul__(other)
        self.pattern[...] = (self * other).pattern
        return self

    def __itruediv__(self, other: Any) -> lognum:
        if self.ndim == 0:
            return self.__truediv__(other)
        self.pattern[...] = (self / other).pattern
        return self

    def __iadd__(self, other: Any) -> lognum:
        raise TypeError("sums of lognum round and cannot be undone: use tp.fixed43, or tp.lognum(x + y)")

    def __isub__(self, other: Any) -> lognum:
        raise TypeError("differences of lognum round and cannot be undone: use tp.fixed43, or tp.lognum(x - y)")
