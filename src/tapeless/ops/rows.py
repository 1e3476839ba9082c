"""Makers of rows of the ops table: what rows of one kind have in common, and which types they give.

Relies on `ops/op.py` for the row itself, and on `ops/partials.py` for slopes.
"""

from __future__ import annotations

import math
from collections.abc import Callable, Sequence
from typing import Any

from tapeless.ir.types import DType
from tapeless.ops.op import FLOATS, REAL, Comparison, Extremum, Instruction, Libm, Nan, Op, Special, Spelling, Unit
from tapeless.ops.partials import PARTIALS

CHEAP, DIVIDE, CALL, HEAVY = 1, 4, 15, 30  # costs, in additions

# --- results -----------------------------------------------------------------------------------------------------


def gives_bool(dtypes: Sequence[DType]) -> DType:
    return DType.bool


def gives_real(dtypes: Sequence[DType]) -> DType:
    return dtypes[0].real


def gives_complex(dtypes: Sequence[DType]) -> DType:
    return dtypes[0].complex


def gives_pattern(dtypes: Sequence[DType]) -> DType:
    return DType.i32 if dtypes[0] is DType.f32 else DType.i64


def gives_second(dtypes: Sequence[DType]) -> DType:
    return dtypes[1]


def gives_target(dtypes: Sequence[DType]) -> DType:
    raise TypeError("the result type of convert is that of the variable it is bound to: Note [Convert]")


# --- rows --------------------------------------------------------------------------------------------------------


def new_row(
    arity: int, name: str, dtypes: frozenset[DType], numpy: Callable[..., Any], llvm: Spelling, cost: int, **more: Any
) -> Op:
    def evaluate(*args: Any) -> Any:
        return numpy(*args)[()]  # a scalar rather than an array of rank 0

    return Op(name, arity, dtypes, evaluate, llvm, cost=cost, partials=PARTIALS[name], **more)


def unary(
    name: str, dtypes: frozenset[DType], numpy: Callable[..., Any], llvm: Spelling, cost: int = CHEAP, **more: Any
) -> Op:
    return new_row(1, name, dtypes, numpy, llvm, cost, **more)


def binary(
    name: str, dtypes: frozenset[DType], numpy: Callable[..., Any], llvm: Spelling, cost: int = CHEAP, **more: Any
) -> Op:
    return new_row(2, name, dtypes, numpy, llvm, cost, **more)


def compare(
    name: str,
    symbol: str,
    dtypes: frozenset[DType],
    numpy: Callable[..., Any],
    integer: str,
    floating: str,
    means: Comparison,
) -> Op:
    llvm = Instruction(f"icmp {integer}", f"fcmp {floating}")
    commutative = means.mirrored == name
    return binary(
        name, dtypes, numpy, llvm, result=gives_bool, symbol=symbol, commutative=commutative, comparison=means
    )


def extremum(name: str, greatest: bool, nan: Nan, numpy: Callable[..., Any]) -> Op:
    unit = Unit(lambda dtype: _extreme(dtype, nan, greatest))
    return binary(
        name, REAL, numpy, Special(name), extremum=Extremum(greatest, nan), unit=unit, decides=True, monotone=True
    )


def _extreme(dtype: DType, nan: Nan, greatest: bool) -> float:
    """What an extremum of nothing is."""
    if dtype.is_float:
        return math.nan if nan is Nan.loses else -math.inf if greatest else math.inf
    return dtype.lowest if greatest else dtype.highest


def libm(name: str, numpy: Callable[..., Any], dtypes: frozenset[DType] = FLOATS, **more: Any) -> Op:
    """A function of one argument that both libm and libmvec have under this name."""
    return unary(name, dtypes, numpy, Libm(name, vector=True), CALL, **more)


def always(value: float) -> Callable[[DType], float]:
    return lambda dtype: value
