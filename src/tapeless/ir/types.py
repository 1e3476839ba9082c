"""Types of Core and Loop IR: element types, and arrays of them with constant or symbolic dimensions.

Gives `DType`, `Type`, `Var` and `Const`. Relies on nothing else in the project.
A dimension is a Python int or an i64 `Var`; a literal shape stays constant here and ends up in registers.

Note [Stored integers]
Integers of 8 and 16 bits and unsigned ones are types of memory: they are moved, compared for equality, chosen and
converted, and no other row takes them. The front end converts to `DType.work`, computes there and converts the result
back, which wraps it. That is what NumPy computes: i32 and i64 wrap themselves, and hold every number of a narrower type.
So no rule of algebra, bounds or derivatives has to know of widths and signs, and LLVM narrows what need not be wide.
Only u64 has no wider type: its bits are computed with as i64, by the rows of ops/unsigned.py where the sign matters.
"""

from __future__ import annotations

import enum
from collections.abc import Iterable
from dataclasses import field
from functools import lru_cache

import numpy as np

from tapeless.ir.node import node

LARGEST_SIZE = 2**60  # of a dimension, and of the number of elements: binding of arguments and allocation refuse more


class DType(enum.Enum):
    """Element types, in promotion order within a kind."""

    bool = "bool"
    i8 = "i8"
    u8 = "u8"
    i16 = "i16"
    u16 = "u16"
    i32 = "i32"
    u32 = "u32"
    i64 = "i64"
    u64 = "u64"
    f32 = "f32"
    f64 = "f64"
    c64 = "c64"
    c128 = "c128"

    # Members are compared and hashed by identity: dictionaries of types are everywhere in the compiler.
    __hash__ = object.__hash__

    def __init__(self, name: str) -> None:
        self.is_float = name in ("f32", "f64")
        self.is_unsigned = name[0] == "u"
        self.is_int = name[0] == "i" or self.is_unsigned
        self.is_complex = name in ("c64", "c128")
        bytes = 1 if name == "bool" else int(name[1:]) // 8
        self.numpy: np.dtype[np.generic] = np.dtype("?" if name == "bool" else f"{name[0]}{bytes}")
        self.bytes = bytes

    @property
    def real(self) -> DType:
        """The type of the real part of a complex type; any other type itself."""
        return {DType.c64: DType.f32, DType.c128: DType.f64}.get(self, self)

    @property
    def complex(self) -> DType:
        """The complex type of this precision."""
        return DType.c64 if self in (DType.f32, DType.c64) else DType.c128

    @property
    def work(self) -> DType:
        """The type in which integers of this type are computed with: Note [Stored integers]."""
        return _WORK.get(self, self)

    @property
    def lowest(self) -> int:
        """Of an integer type."""
        return 0 if self.is_unsigned else -(1 << (8 * self.bytes - 1))

    @property
    def highest(self) -> int:
        return self.lowest + (1 << (8 * self.bytes)) - 1

    def __repr__(self) -> str:
        return self.value


_WORK: dict[DType, DType] = {
    DType.i8: DType.i32,
    DType.u8: DType.i32,
    DType.i16: DType.i32,
    DType.u16: DType.i32,
    DType.u32: DType.i64,
    DType.u64: DType.i64,
}
FROM_NUMPY: dict[np.dtype[np.generic], DType] = {dtype.numpy: dtype for dtype in DType}


@node(frozen=True)
class Type:
    """An array type; rank 0 is a scalar. `acc` names the operator of a write-only accumulator, or is empty."""

    dtype: DType
    shape: tuple[Dim, ...] = ()
    acc: str = ""

    @property
    def rank(self) -> int:
        return len(self.shape)

    @property
    def is_scalar(self) -> bool:
        return not self.shape and not self.acc

    def row(self, axes: int = 1) -> Type:
        """The type after indexing the first `axes` axes."""
        return Type(self.dtype, self.shape[axes:])

    def with_shape(self, shape: Iterable[Dim]) -> Type:
        return Type(self.dtype, tuple(shape))

    def with_dtype(self, dtype: DType) -> Type:
        return Type(dtype, self.shape)

    def __repr__(self) -> str:
        dims = "".join(f"[{d.name if isinstance(d, Var) else d}]" for d in self.shape)
        return f"acc<{self.acc},{dims}{self.dtype!r}>" if self.acc else f"{dims}{self.dtype!r}"


@node(frozen=True, eq=False)
class Var:
    """A name bound once. Compared by identity, so two variables may print alike until the printer tells them apart."""

    name: str
    type: Type

    def __repr__(self) -> str:
        return f"{self.name}:{self.type!r}"


@node(frozen=True)
class Const:
    """A scalar constant of a given element type."""

    value: bool | int | float | complex
    dtype: DType = field(default=DType.f64)

    @property
    def type(self) -> Type:
        return SCALAR[self.dtype]

    # 0.0 and -0.0 are different constants and NaN is one constant: passes that merge equal expressions rely on it.
    def __eq__(self, other: object) -> bool:
        if self is other:
            return True
        if not isinstance(other, Const) or self.dtype is not other.dtype:
            return False
        mine, its = self.value, other.value
        if type(mine) is int or type(its) is int:
            return type(mine) is type(its) and mine == its
        return mine is its or repr(mine) == repr(its)

    def __hash__(self) -> int:
        return hash(self.value) if self.value == self.value else 0  # NaN would be hashed by its identity

    def __repr__(self) -> str:
        return f"{self.value!r}:{self.dtype!r}"


Dim = int | Var
Atom = Var | Const

SCALAR: dict[DType, Type] = {dtype: Type(dtype) for dtype in DType}
BOOL, I32, I64 = SCALAR[DType.bool], SCALAR[DType.i32], SCALAR[DType.i64]
F32, F64 = SCALAR[DType.f32], SCALAR[DType.f64]
C64, C128 = SCALAR[DType.c64], SCALAR[DType.c128]


@lru_cache(4096)  # mostly 0 and 1
def i64(value: int) -> Const:
    return Const(int(value), DType.i64)


def dim_atom(dim: Dim) -> Atom:
    """A dimension as an operand."""
    return dim if isinstance(dim, Var) else i64(dim)


def atom_dim(atom: Atom) -> Dim:
    """An i64 operand as a dimension."""
    return atom if isinstance(atom, Var) else int(atom.value.real)


def zero_of(dtype: DType) -> Const:
    return Const(_cast(0, dtype), dtype)


def nothing_of(dtype: DType) -> Const:
    """A sum of nothing: what is added to it, and what it is added to, keeps the sign of a zero, which 0.0 would take."""
    if dtype.is_complex:
        return Const(complex(-0.0, -0.0), dtype)
    return Const(-0.0, dtype) if dtype.is_float else zero_of(dtype)


def one_of(dtype: DType) -> Const:
    return Const(_cast(1, dtype), dtype)


def const(value: bool | int | float | complex | np.generic, dtype: DType) -> Const:
    """A constant converted to `dtype` as NumPy would convert it."""
    return Const(_cast(value, dtype), dtype)


def _cast(value: bool | int | float | complex | np.generic, dtype: DType) -> bool | int | float | complex:
    if isinstance(value, int) and not isinstance(value, bool) and dtype.is_int:
        return (value - dtype.lowest) % (1 << (8 * dtype.bytes)) + dtype.lowest  # wraps like machine integers
    if dtype is DType.bool:
        return bool(value)
    if dtype is DType.f64 and type(value) is float:
        return value
    with np.errstate(all="ignore"):
        item: bool | int | float | complex = np.asarray(value).astype(dtype.numpy).item()
    return item
