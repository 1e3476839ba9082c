"""What a row of the ops table holds.

Gives `Op` and the ways an operation can be spelled in LLVM. The rows are in `ops/table.py`.
A pass never asks for an operation by name to learn a property: it reads the row.
"""

from __future__ import annotations

from collections.abc import Callable, Sequence
from dataclasses import dataclass, field
from enum import Enum, auto
from typing import Any, Protocol

import numpy as np

from tapeless.ir.types import Atom, Const, DType, const

INTS = frozenset({DType.i32, DType.i64})
FLOATS = frozenset({DType.f32, DType.f64})
COMPLEX = frozenset({DType.c64, DType.c128})
BOOLS = frozenset({DType.bool})
REAL = INTS | FLOATS
NUMERIC = REAL | COMPLEX
ALL = frozenset(DType)  # what moves or compares values takes, stored integers included


class NoSlope(NotImplementedError):
    """Raised by a rule for a slope that there is, but that nobody has written."""


class Scalars(Protocol):
    """Applies rows of the ops table; Python numbers become constants of the type that the other operands have."""

    def __call__(self, op: str, *args: Atom | float) -> Atom: ...


Partial = Callable[..., Atom | float]
Partials = tuple[Partial | None, ...]


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
    """A C function pointer of `scipy.special.cython_special`, f64 in and out; on a GPU the function of libdevice, if it has one."""

    name: str
    libdevice: str = ""


Spelling = Instruction | Intrinsic | Libm | Special | Foreign


@dataclass(frozen=True)
class Inverse:
    """How an operand is found from the result: by the row `op` on (result, other operand), or `swapped`.

    exact:   element types in which it comes back to the last bit
    rounded: element types in which it comes back up to rounding; in all others it is lost
    """

    op: str
    exact: frozenset[DType] = frozenset()
    rounded: frozenset[DType] = frozenset()
    swapped: bool = False


@dataclass(frozen=True)
class Unit:
    """The neutral element u: op(x, u) is x and, with `left`, op(u, x) is x too, up to the sign of a zero."""

    value: Callable[[DType], float]
    left: bool = True

    def of(self, dtype: DType) -> Const:
        return const(self.value(dtype), dtype)


class Nan(Enum):
    """What an extremum makes of a NaN: Note [Ties] of ops/table.py."""

    first_wins = auto()
    wins = auto()
    loses = auto()


@dataclass(frozen=True)
class Extremum:
    greatest: bool
    nan: Nan


@dataclass(frozen=True)
class Comparison:
    """negated:   its opposite, where neither operand is NaN
    mirrored:  the same with the operands exchanged
    order:     1 if it asks whether the first operand is above the second, -1 for below, 0 for neither
    reflexive: whether it holds for x and x, unless that is NaN
    """

    negated: str
    mirrored: str
    order: int
    reflexive: bool


@dataclass(frozen=True)
class Op:
    """One operation on scalars. Operands have one element type among `dtypes` unless `result` says otherwise.

    partials:    for each operand, a function (b, result, *operands) -> factor, or None; they are in ops/partials.py
    own_rule:    linear over the reals, picks an operand (where a factor of 0 would meet infinities) or is not
                 holomorphic: differentiation treats it itself, and partials say nothing. On complex operands `abs` is
                 one too
    of_parts:    the row that it is of these parts of a complex operand
    singular_at: operands at which a slope is infinite, NaN or nearly so, an example of each kind
    decides:     which operand or piece it takes hangs on the last bit of its operands, and slopes jump there
    linear:      in all operands together; `convert` is taken for linear
    monotone:    only rises or only falls with one operand while the others stay, a divisor on one side of 0
    nonnegative: never below 0 nor -0.0 on real operands
    inverse:     for each operand, or nothing: how it is found from the result
    patterns:    operands or results are patterns of exact numbers: Note [Patterns] of ops/exact.py
    word:        what a user calls it, where that is neither its symbol nor its name
    locates:     lowering writes it to find where an element of a nest is, and nobody else does
    borrowed:    its values are another library's, as accurate as that has them: ops/borrowed.py
    """

    name: str
    arity: int
    dtypes: frozenset[DType]
    evaluate: Callable[..., Any]
    llvm: Spelling
    result: Callable[[Sequence[DType]], DType] = field(default=lambda dtypes: dtypes[0])
    cost: int = 1
    symbol: str = ""
    word: str = ""
    partials: Partials = ()
    own_rule: bool = False
    patterns: bool = False
    locates: bool = False
    borrowed: bool = False
    of_parts: tuple[str, tuple[str, str]] | None = None
    singular_at: tuple[tuple[float, ...], ...] = ()
    decides: bool = False
    commutative: bool = False
    linear: bool = False
    monotone: bool = False
    nonnegative: bool = False
    inverse: tuple[Inverse | None, ...] = ()
    unit: Unit | None = None
    extremum: Extremum | None = None
    comparison: Comparison | None = None

    def numpy(self, *args: Any) -> Any:
        """Its value, without NumPy's warnings."""
        with np.errstate(all="ignore"):
            return self.evaluate(*args)

    @property
    def only_host(self) -> bool:
        """No GPU has it: the host computes it."""
        return isinstance(self.llvm, Foreign) and not self.llvm.libdevice

    @property
    def one_by_one(self) -> bool:
        """No vector instructions serve it."""
        return isinstance(self.llvm, Foreign) or (isinstance(self.llvm, (Libm, Special)) and not self.llvm.vector)

    @property
    def bounded_slope(self) -> bool:
        """Slopes are finite wherever the operands are."""
        return not self.singular_at
