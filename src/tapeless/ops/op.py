"""What a row of the ops table holds.

Gives `Op` and the ways an operation can be spelled in LLVM. The rows are in `ops/table.py`.
A pass never asks for an operation by name to learn a property: it reads the row.
"""

from __future__ import annotations

from collections.abc import Callable, Sequence
from dataclasses import dataclass, field
from typing import Any

from tapeless.ir.types import DType

INTS = frozenset({DType.i32, DType.i64})
FLOATS = frozenset({DType.f32, DType.f64})
COMPLEX = frozenset({DType.c64, DType.c128})
BOOLS = frozenset({DType.bool})
REAL = INTS | FLOATS
NUMERIC = REAL | COMPLEX
ALL = NUMERIC | BOOLS


@dataclass(frozen=True)
class Instruction:
    """LLVM instructions by kind of operand, e.g. Instruction("add", "fadd"); complex ones are hand-written in
    the emitter.
    """

    integer: str = ""
    floating: str = ""


@dataclass(frozen=True)
class Intrinsic:
    """`llvm.NAME.f64` and the like on floats; `integer` likewise on integers."""

    floating: str = ""
    integer: str = ""


@dataclass(frozen=True)
class Libm:
    """A C library function on f64 (`NAMEf` on f32); `vector` when libmvec has it in SIMD form."""

    name: str
    vector: bool = False


@dataclass(frozen=True)
class Special:
    """A sequence that the emitter writes by hand, under this name; `vector` when all that it calls is in libmvec."""

    name: str
    vector: bool = False


@dataclass(frozen=True)
class Foreign:
    """A C function pointer of `scipy.special.cython_special`, f64 in and out."""

    name: str


Spelling = Instruction | Intrinsic | Libm | Special | Foreign


@dataclass(frozen=True)
class Op:
    """One operation on scalars. Operands have one element type among `dtypes` unless `result` says otherwise.

    partials: for each operand, a function (b, result, *operands) -> factor, or None; they are in ops/partials.py.
    inverse:  for operations that can be undone; filled in with the reversible dialect.
    """

    name: str
    arity: int
    dtypes: frozenset[DType]
    numpy: Callable[..., Any]
    llvm: Spelling
    result: Callable[[Sequence[DType]], DType] = field(default=lambda dtypes: dtypes[0])
    cost: int = 1
    commutative: bool = False
    symbol: str = ""
    partials: tuple[Callable[..., Any] | None, ...] = ()
    inverse: str | None = None
