"""Bits of numbers: their operations, signs, kinds of floats, and conversions from one element type to another.

Sequences of instructions as those in `special.py`, where they are listed. `convert` takes and gives values of any type.
"""

from __future__ import annotations

import math
from collections.abc import Callable

from tapeless.backends.llvm.writer import REGISTER, Value, Writer, literal
from tapeless.ir.target import Target
from tapeless.ir.types import DType

Sequence_ = Callable[[Writer, DType, list[str], bool], str]
LEAST = {DType.i32: -(2**31), DType.i64: -(2**63)}


def number(value: float, dtype: DType) -> str:
    return literal(value, dtype)[0]


def invert(w: Writer, dtype: DType, args: list[str], reassoc: bool) -> str:
    return w.op("xor", REGISTER[dtype], args[0], "true" if dtype is DType.bool else "-1")


def count_bits(w: Writer, dtype: DType, args: list[str], reassoc: bool) -> str:
    return w.intrinsic("ctpop", REGISTER[dtype], args[0])


def shl(w: Writer, dtype: DType, args: list[str], reassoc: bool) -> str:
    kind, (x, n), width = REGISTER[dtype], args, 8 * dtype.bytes
    if (
        w.target.kind == Target.ptx
    ):  # LLVM's code for the select below looks at 32 bits of n alone: two halves of a shift
        whole = w.intrinsic("umin", kind, n, str(width))
        half = w.op("lshr", kind, whole, "1")
        return w.op("shl", kind, w.op("shl", kind, x, half), w.op("sub", kind, whole, half))
    inside = w.let(f"icmp ult {kind} {n}, {width}")
    return w.select(inside, kind, w.op("shl", kind, x, w.select(inside, kind, n, "0")), "0")


def shr(w: Writer, dtype: DType, args: list[str], reassoc: bool) -> str:
    kind, (x, n) = REGISTER[dtype], args
    inside = w.let(f"icmp ult {kind} {n}, {8 * dtype.bytes}")
    return w.op("ashr", kind, x, w.select(inside, kind, n, str(8 * dtype.bytes - 1)))


def sign(w: Writer, dtype: DType, args: list[str], reassoc: bool) -> str:
    kind, (x,) = REGISTER[dtype], args
    if dtype.is_int:
        positive = w.let(f"zext i1 {w.let(f'icmp sgt {kind} {x}, 0')} to {kind}")
        return w.op("sub", kind, positive, w.let(f"zext i1 {w.let(f'icmp slt {kind} {x}, 0')} to {kind}"))
    zero = number(0, dtype)
    rest = w.select(w.let(f"fcmp oeq {kind} {x}, {zero}"), kind, zero, x)
    rest = w.select(w.let(f"fcmp olt {kind} {x}, {zero}"), kind, number(-1, dtype), rest)
    return w.select(w.let(f"fcmp ogt {kind} {x}, {zero}"), kind, number(1, dtype), rest)


def isnan(w: Writer, dtype: DType, args: list[str], reassoc: bool) -> str:
    return w.let(f"fcmp uno {REGISTER[dtype]} {args[0]}, {number(0, dtype)}")


def isinf(w: Writer, dtype: DType, args: list[str], reassoc: bool) -> str:
    kind = REGISTER[dtype]
    return w.let(f"fcmp oeq {kind} {w.intrinsic('fabs', kind, args[0], flags='')}, {number(math.inf, dtype)}")


def isfinite(w: Writer, dtype: DType, args: list[str], reassoc: bool) -> str:
    kind = REGISTER[dtype]
    return w.let(f"fcmp one {kind} {w.intrinsic('fabs', kind, args[0], flags='')}, {number(math.inf, dtype)}")


def signbit(w: Writer, dtype: DType, args: list[str], reassoc: bool) -> str:
    bits = "i32" if dtype is DType.f32 else "i64"
    return w.let(f"icmp slt {bits} {w.let(f'bitcast {REGISTER[dtype]} {args[0]} to {bits}')}, 0")


def pattern(w: Writer, dtype: DType, args: list[str], reassoc: bool) -> str:
    return w.let(f"bitcast {REGISTER[dtype]} {args[0]} to {'i32' if dtype is DType.f32 else 'i64'}")


# --- conversions (Note [Convert] of ops/table.py) ----------------------------------------------------------------


def convert(w: Writer, source: DType, target: DType, value: Value) -> Value:
    if source is target:
        return value
    if source.is_complex:
        if target is DType.bool:
            parts = [convert(w, source.real, target, (part,))[0] for part in value]
            return (w.op("or", "i1", *parts),)
        if target.is_complex:
            return tuple(convert(w, source.real, target.real, (part,))[0] for part in value)
        return convert(w, source.real, target, value[:1])
    if target.is_complex:
        return (*convert(w, source, target.real, value), number(0, target.real))
    x, old, new = value[0], REGISTER[source], REGISTER[target]
    if target is DType.bool:
        return (w.let(f"fcmp une {old} {x}, {number(0, source)}" if source.is_float else f"icmp ne {old} {x}, 0"),)
    if source is DType.bool:
        return (w.let(f"{'uitofp' if target.is_float else 'zext'} i1 {x} to {new}"),)
    if source.is_int and target.is_int:
        if old == new:
            return value
        longer = "zext" if source.is_unsigned else "sext"
        return (w.let(f"{longer if target.bytes > source.bytes else 'trunc'} {old} {x} to {new}"),)
    if source.is_int:
        return (w.let(f"{'uitofp' if source.is_unsigned else 'sitofp'} {old} {x} to {new}"),)
    if target.is_float:
        return (w.let(f"{'fpext' if target is DType.f64 else 'fptrunc'} {old} {x} to {new}"),)
    if target is DType.u64:
        return (_unsigned(w, source, x),)
    if target not in LEAST:
        return convert(w, DType.i64, target, convert(w, source, DType.i64, value))
    magnitude = w.intrinsic("fabs", old, x, flags="")
    inside = w.let(f"fcmp olt {old} {magnitude}, {number(-float(LEAST[target]), source)}")
    whole = w.let(f"fptosi {old} {w.select(inside, old, x, number(0, source))} to {new}")
    return (w.select(inside, new, whole, str(LEAST[target])),)


def _unsigned(w: Writer, source: DType, x: str) -> str:
    """A float as u64: what i64 does not hold is moved into its range, and back by turning the highest bit."""
    kind, half = REGISTER[source], number(2.0**63, source)
    high = w.let(f"fcmp oge {kind} {x}, {half}")
    near = w.select(high, kind, w.fp("fsub", kind, x, half), x)
    (whole,) = convert(w, source, DType.i64, (near,))
    return w.select(high, "i64", w.op("xor", "i64", whole, str(LEAST[DType.i64])), whole)
