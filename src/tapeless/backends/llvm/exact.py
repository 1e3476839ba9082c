"""Rows on exact numbers in LLVM: Note [Patterns] of ops/exact.py."""

from __future__ import annotations

from tapeless.backends.llvm.c_functions import call_libm
from tapeless.backends.llvm.writer import Writer, literal
from tapeless.ir.types import DType
from tapeless.ops.exact import UNITS

ALL_BUT_SIGN = str(2**63 - 1)
LEAST = str(-(2**63))


def order_of_fixed(w: Writer, dtype: DType, args: list[str], reassoc: bool) -> str:
    """Its units, as an integer."""
    return _turned(w, w.let(f"bitcast double {args[0]} to i64"))


def to_fixed(w: Writer, dtype: DType, args: list[str], reassoc: bool) -> str:
    scaled = w.fp("fmul", "double", args[0], _number(UNITS), exact=True)
    whole = w.intrinsic("rint", "double", scaled, flags="")
    inside = w.let(f"fcmp olt double {w.intrinsic('fabs', 'double', whole, flags='')}, {_number(2.0**63)}")
    units = w.let(f"fptosi double {w.select(inside, 'double', whole, _number(0.0))} to i64")
    return _pattern(w, w.select(inside, "i64", units, LEAST))


def of_fixed(w: Writer, dtype: DType, args: list[str], reassoc: bool) -> str:
    units = w.let(f"sitofp i64 {order_of_fixed(w, dtype, args, reassoc)} to double")
    return w.fp("fmul", "double", units, _number(1 / UNITS), exact=True)


def fixed_add(w: Writer, dtype: DType, args: list[str], reassoc: bool) -> str:
    return _pattern(w, w.op("add", "i64", *(order_of_fixed(w, dtype, [arg], reassoc) for arg in args)))


def fixed_sub(w: Writer, dtype: DType, args: list[str], reassoc: bool) -> str:
    return _pattern(w, w.op("sub", "i64", *(order_of_fixed(w, dtype, [arg], reassoc) for arg in args)))


def to_lognum(w: Writer, dtype: DType, args: list[str], reassoc: bool) -> str:
    return to_fixed(w, dtype, [call_libm(w, "log", dtype, args)], reassoc)


def of_lognum(w: Writer, dtype: DType, args: list[str], reassoc: bool) -> str:
    return call_libm(w, "exp", dtype, [of_fixed(w, dtype, args, reassoc)])


def _turned(w: Writer, bits: str) -> str:
    """Negative numbers with all bits but the sign turned: its own inverse."""
    return w.op("xor", "i64", bits, w.op("and", "i64", w.op("ashr", "i64", bits, "63"), ALL_BUT_SIGN))


def _pattern(w: Writer, units: str) -> str:
    return w.let(f"bitcast i64 {_turned(w, units)} to double")


def _number(value: float) -> str:
    return literal(value, DType.f64)[0]


EXACT_NUMBERS = {
    "order_of_fixed": order_of_fixed, "to_fixed": to_fixed, "of_fixed": of_fixed, "fixed_add": fixed_add,
    "fixed_sub": fixed_sub, "to_lognum": to_lognum, "of_lognum": of_lognum,
}  # fmt: skip
