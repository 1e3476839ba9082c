"""Sequences of instructions for the operations that are no single instruction or call: the `Special` rows.

Each takes the writer, the operands' element type, the operands, and whether the order of a reduction may change.
The meaning of each is the `numpy` column of the ops table; the notes of ops/table.py say what happens at the edges.
"""

from __future__ import annotations

import math

from tapeless.backends.llvm import whole_division
from tapeless.backends.llvm.c_functions import call_libm
from tapeless.backends.llvm.digamma import digamma
from tapeless.backends.llvm.exact import EXACT_NUMBERS
from tapeless.backends.llvm.polygamma import polygamma
from tapeless.backends.llvm.representation import (
    Sequence_,
    count_bits,
    invert,
    isfinite,
    isinf,
    isnan,
    number,
    pattern,
    shl,
    shr,
    sign,
    signbit,
)
from tapeless.backends.llvm.writer import REGISTER, Writer, literal
from tapeless.ir.target import Target
from tapeless.ir.types import DType

# --- integers and floats: division (Note [Division] of ops/table.py) ---------------------------------------------


def fmod(w: Writer, dtype: DType, args: list[str], reassoc: bool = False) -> str:
    """The remainder towards zero, exactly.

    Where the quotient is below 2^53 (2^24 for f32), x - q y with q = trunc(x / y) is exact in one fused operation: its
    magnitude is at most |y|, also where rounding made q one too large, which shows in its sign. The library's own
    function, which takes ten times as long, is left for the rest.
    """
    kind, (x, y) = REGISTER[dtype], args
    ratio = w.fp("fdiv", kind, x, y, exact=True)
    limit = number(2.0**24 if dtype is DType.f32 else 2.0**53, dtype)
    small = w.let(f"fcmp olt {kind} {w.intrinsic('fabs', kind, ratio, flags='')}, {limit}")
    usual, rare, merge = w.label("usual"), w.label("rare"), w.label("merge")
    w.branch(w.op("and", "i1", small, isfinite(w, dtype, [y], False)), usual, rare, w.weights(1 << 20, 1))
    w.open(usual)
    q = w.fp("fneg", kind, w.intrinsic("trunc", kind, ratio, flags=""), exact=True)
    r = w.intrinsic("fma", kind, q, y, x, flags="")
    wrong = w.let(f"fcmp olt {kind} {_signed(w, kind, r, x)}, {number(0, dtype)}")
    back = w.fp("fadd", kind, r, w.intrinsic("copysign", kind, y, x, flags=""), exact=True)
    r = w.intrinsic("copysign", kind, w.select(wrong, kind, back, r), x, flags="")
    w.jump(merge)
    w.open(rare)
    if w.target.kind == Target.ptx:  # where LLVM's frem is not exact
        slow = call_libm(w, "fmod", dtype, args)
    else:  # in a function, since LLVM would speculate a plain frem
        callee = w.module.helper(f"tapeless.fmod.{kind}", lambda: _fmod_helper(kind))
        slow = w.let(f"call {kind} {callee}({kind} {x}, {kind} {y})")
    w.jump(merge)
    w.open(merge)
    return w.let(f"phi {kind} [ {r}, %{usual} ], [ {slow}, %{rare} ]")


def _fmod_helper(kind: str) -> str:
    return f"""
define internal {kind} @tapeless.fmod.{kind}({kind} %x, {kind} %y) noinline cold memory(none) nounwind {{
  %r = frem {kind} %x, %y
  ret {kind} %r
}}"""


def _signed(w: Writer, kind: str, r: str, x: str) -> str:
    """r, negated where x is negative."""
    bits = "i32" if kind == "float" else "i64"
    sign = w.op("and", bits, w.let(f"bitcast {kind} {x} to {bits}"), str(-(2 ** (int(bits[1:]) - 1))))
    return w.let(f"bitcast {bits} {w.op('xor', bits, w.let(f'bitcast {kind} {r} to {bits}'), sign)} to {kind}")


def floordiv(w: Writer, dtype: DType, args: list[str], reassoc: bool) -> str:
    kind, (x, y) = REGISTER[dtype], args
    if dtype.is_int:
        return whole_division.quotient(w, kind, x, y)
    zero, one = number(0, dtype), number(1, dtype)
    r = fmod(w, dtype, args)
    q = w.fp("fdiv", kind, w.fp("fsub", kind, x, r, exact=True), y, exact=True)
    q = w.select(_opposite(w, kind, r, y, zero), kind, w.fp("fsub", kind, q, one, exact=True), q)
    below = w.intrinsic("floor", kind, q, flags="")
    high = w.let(f"fcmp ogt {kind} {w.fp('fsub', kind, q, below, exact=True)}, {number(0.5, dtype)}")
    nearest = w.select(high, kind, w.fp("fadd", kind, below, one, exact=True), below)
    ratio = w.fp("fdiv", kind, x, y, exact=True)
    signed = w.intrinsic("copysign", kind, zero, ratio, flags="")
    result = w.select(w.let(f"fcmp oeq {kind} {q}, {zero}"), kind, signed, nearest)
    return w.select(w.let(f"fcmp oeq {kind} {y}, {zero}"), kind, ratio, result)


def quotient_by(w: Writer, dtype: DType, args: list[str], reassoc: bool) -> str:
    x, _, factor, shift = args
    wide = [w.let(f"zext i64 {v} to i128") for v in (w.op("shl", "i64", x, "1"), factor)]
    high = w.let(f"trunc i128 {w.op('lshr', 'i128', w.op('mul', 'i128', *wide), '64')} to i64")
    return w.op("lshr", "i64", high, shift)


def _opposite(w: Writer, kind: str, r: str, y: str, zero: str) -> str:
    """r != 0, and of the other sign than y."""
    differ = w.op("xor", "i1", w.let(f"fcmp olt {kind} {r}, {zero}"), w.let(f"fcmp olt {kind} {y}, {zero}"))
    return w.op("and", "i1", w.let(f"fcmp une {kind} {r}, {zero}"), differ)


def mod(w: Writer, dtype: DType, args: list[str], reassoc: bool) -> str:
    kind, (x, y) = REGISTER[dtype], args
    if dtype.is_int:
        return whole_division.remainder(w, kind, x, y)
    zero = number(0, dtype)
    r = fmod(w, dtype, args)
    moved = w.select(_opposite(w, kind, r, y, zero), kind, w.fp("fadd", kind, r, y, exact=True), r)
    signed = w.intrinsic("copysign", kind, zero, y, flags="")
    return w.select(w.let(f"fcmp oeq {kind} {r}, {zero}"), kind, signed, moved)


def ipow(w: Writer, dtype: DType, args: list[str], reassoc: bool) -> str:
    kind, (x, n) = REGISTER[dtype], args
    if n.isdigit() and int(n) <= 64:
        return power(w, kind, x, int(n))
    callee = w.module.helper(f"tapeless.ipow.{kind}", lambda: _ipow_helper(kind))
    return w.let(f"call {kind} {callee}({kind} {x}, {kind} {n})")


def _ipow_helper(kind: str) -> str:
    return f"""
define internal {kind} @tapeless.ipow.{kind}({kind} %x, {kind} %n) memory(none) nounwind willreturn {{
entry:
  %negative = icmp slt {kind} %n, 0
  br i1 %negative, label %reciprocal, label %loop
reciprocal:
  %odd = and {kind} %n, 1
  %is_odd = icmp ne {kind} %odd, 0
  %one = icmp eq {kind} %x, 1
  %minus = icmp eq {kind} %x, -1
  %sign = select i1 %is_odd, {kind} -1, {kind} 1
  %r0 = select i1 %minus, {kind} %sign, {kind} 0
  %r1 = select i1 %one, {kind} 1, {kind} %r0
  ret {kind} %r1
loop:
  %left = phi {kind} [ %n, %entry ], [ %rest, %step ]
  %base = phi {kind} [ %x, %entry ], [ %squared, %step ]
  %acc = phi {kind} [ 1, %entry ], [ %next, %step ]
  %done = icmp eq {kind} %left, 0
  br i1 %done, label %exit, label %step
step:
  %bit = and {kind} %left, 1
  %set = icmp ne {kind} %bit, 0
  %factor = select i1 %set, {kind} %base, {kind} 1
  %next = mul {kind} %acc, %factor
  %squared = mul {kind} %base, %base
  %rest = lshr {kind} %left, 1
  br label %loop
exit:
  ret {kind} %acc
}}"""


def power(w: Writer, kind: str, x: str, n: int) -> str:
    """x to a constant power, by squaring."""
    floating = kind in ("float", "double")
    one = literal(1, DType.f32 if kind == "float" else DType.f64)[0] if floating else "1"

    def times(a: str, b: str) -> str:
        return w.fp("fmul", kind, a, b) if floating else w.op("mul", kind, a, b)

    result, base, left = "", x, abs(n)
    while left:
        if left & 1:
            result = times(result, base) if result else base
        left >>= 1
        if left:
            base = times(base, base)
    result = result or one
    return w.fp("fdiv", kind, one, result) if n < 0 else result


# --- extrema (Note [Ties] of ops/table.py) -----------------------------------------------------------------------

# name: (LLVM's intrinsic on integers, the ordered comparison after which the first operand stays,
#        whose NaN also lets the first operand stay)
EXTREMA = {"min": ("smin", "ole", ""), "max": ("smax", "oge", ""),
           "minimum": ("smin", "ole", "a"), "maximum": ("smax", "oge", "a"),
           "fmin": ("smin", "ole", "b"), "fmax": ("smax", "oge", "b")}  # fmt: skip
REDUCTIONS = {"min": "minimum", "max": "maximum", "minimum": "minimum", "maximum": "maximum",
              "fmin": "minnum", "fmax": "maxnum"}  # fmt: skip


def _extremum(name: str) -> Sequence_:
    def write(w: Writer, dtype: DType, args: list[str], reassoc: bool) -> str:
        kind, (a, b) = REGISTER[dtype], args
        integer, keeps, nan = EXTREMA[name]
        if dtype.is_int:
            return w.intrinsic(integer, kind, a, b)
        if reassoc:  # a reduction: LLVM vectorises its own intrinsics, which differ in the sign of zero only
            return w.intrinsic(REDUCTIONS[name], kind, a, b)
        # b if b < a else a: one instruction of the processor, which answers a when either is NaN
        smaller = w.select(w.let(f"fcmp {'olt' if keeps == 'ole' else 'ogt'} {kind} {b}, {a}"), kind, b, a)
        if not nan:
            return smaller
        lost = b if nan == "a" else a  # the operand whose NaN makes b the answer
        if w.in_place:  # Note [Extrema in place]: LLVM makes one choice by two comparisons of these
            return w.select(w.let(f"fcmp uno {kind} {lost}, {number(0, dtype)}"), kind, b, smaller)
        return w.select(w.let(f"fcmp ord {kind} {lost}, {number(0, dtype)}"), kind, smaller, b)

    return write


# --- functions made of others ------------------------------------------------------------------------------------


def identity(w: Writer, dtype: DType, args: list[str], reassoc: bool) -> str:
    return args[0]


def square(w: Writer, dtype: DType, args: list[str], reassoc: bool) -> str:
    return power(w, REGISTER[dtype], args[0], 2)


def mul_rounded(w: Writer, dtype: DType, args: list[str], reassoc: bool) -> str:
    return w.fp("fmul", REGISTER[dtype], *args, exact=True)


def mul_error(w: Writer, dtype: DType, args: list[str], reassoc: bool) -> str:
    kind = REGISTER[dtype]
    product = w.fp("fneg", kind, w.fp("fmul", kind, *args, exact=True), exact=True)
    return w.intrinsic("fma", kind, *args, product, flags="")


def reciprocal(w: Writer, dtype: DType, args: list[str], reassoc: bool) -> str:
    return w.fp("fdiv", REGISTER[dtype], number(1, dtype), args[0])


def times_root(w: Writer, dtype: DType, args: list[str], reassoc: bool) -> str:
    kind = REGISTER[dtype]
    return w.fp("fmul", kind, args[0], w.intrinsic("sqrt", kind, args[0]))


def rsqrt(w: Writer, dtype: DType, args: list[str], reassoc: bool) -> str:
    return reciprocal(w, dtype, [w.intrinsic("sqrt", REGISTER[dtype], args[0])], reassoc)


def _scaled(factor: float) -> Sequence_:
    return lambda w, dtype, args, reassoc: w.fp("fmul", REGISTER[dtype], args[0], number(factor, dtype))


def expit(w: Writer, dtype: DType, args: list[str], reassoc: bool) -> str:
    """With e = exp(-|x|), which cannot overflow: 1 / (1 + e), or e / (1 + e) for negative x."""
    kind, (x,) = REGISTER[dtype], args
    e = call_libm(w, "exp", dtype, [w.fp("fneg", kind, w.intrinsic("fabs", kind, x))])
    r = reciprocal(w, dtype, [w.fp("fadd", kind, e, number(1, dtype))], reassoc)
    return w.select(w.let(f"fcmp olt {kind} {x}, {number(0, dtype)}"), kind, w.fp("fmul", kind, e, r), r)


def loose_tanh(w: Writer, dtype: DType, args: list[str], reassoc: bool) -> str:
    """s / (s + 2) with s = exp(2 |x|) - 1; that is 1 long before s is infinite."""
    kind, (x,) = REGISTER[dtype], args
    s, inverse = _tanh_parts(w, dtype, x)
    far = w.let(f"fcmp ogt {kind} {w.intrinsic('fabs', kind, x)}, {number(40, dtype)}")
    size = w.select(far, kind, number(1, dtype), w.fp("fmul", kind, s, inverse))
    return w.intrinsic("copysign", kind, size, x)


def sech2(w: Writer, dtype: DType, args: list[str], reassoc: bool) -> str:
    """1 / cosh(x)^2 as 4 q (1 - q), with q = 1 / (s + 2), which is 1/2 at most."""
    kind = REGISTER[dtype]
    _, inverse = _tanh_parts(w, dtype, args[0])
    rest = w.fp("fsub", kind, number(1, dtype), inverse, exact=True)
    return w.fp("fmul", kind, w.fp("fmul", kind, inverse, number(4, dtype)), rest)


def _tanh_parts(w: Writer, dtype: DType, x: str) -> tuple[str, str]:
    """s = exp(2 |x|) - 1 and 1 / (s + 2): the same instructions for a function and its slope, which LLVM merges."""
    kind = REGISTER[dtype]
    size = w.intrinsic("fabs", kind, x)
    s = call_libm(w, "expm1", dtype, [w.fp("fadd", kind, size, size)])
    return s, reciprocal(w, dtype, [w.fp("fadd", kind, s, number(2, dtype))], False)


def sinc(w: Writer, dtype: DType, args: list[str], reassoc: bool) -> str:
    kind, (x,) = REGISTER[dtype], args
    ratio = w.fp("fdiv", kind, call_libm(w, "sin", dtype, [x]), x)
    return w.select(w.let(f"fcmp oeq {kind} {x}, {number(0, dtype)}"), kind, number(1, dtype), ratio)


def one_minus_square(w: Writer, dtype: DType, args: list[str], reassoc: bool) -> str:
    kind, (x,), one = REGISTER[dtype], args, number(1, dtype)
    return w.fp(
        "fmul", kind, w.fp("fsub", kind, one, x, exact=True), w.fp("fadd", kind, one, x, exact=True), exact=True
    )


def direction(w: Writer, dtype: DType, args: list[str], reassoc: bool) -> str:
    """x / hypot(x, y), with the edges of Note [Direction] of ops/table.py."""
    kind, (x, y), one = REGISTER[dtype], args, number(1, dtype)
    size = call_libm(w, "hypot", dtype, [x, y])
    nothing = w.let(f"fcmp oeq {kind} {size}, {number(0, dtype)}")
    ratio = w.fp("fdiv", kind, x, w.select(nothing, kind, one, size))
    sign = w.intrinsic("copysign", kind, one, x, flags="")
    return w.select(isinf(w, dtype, [x], reassoc), kind, sign, ratio)


def logit(w: Writer, dtype: DType, args: list[str], reassoc: bool) -> str:
    """log(p / (1 - p)); near 1/2, where that is log(1 + something small), log1p((2 p - 1) / (1 - p))."""
    kind, (p,) = REGISTER[dtype], args
    rest = w.fp("fsub", kind, number(1, dtype), p, exact=True)
    far = call_libm(w, "log", dtype, [w.fp("fdiv", kind, p, rest)])
    excess = w.fp("fsub", kind, p, rest, exact=True)
    near = call_libm(w, "log1p", dtype, [w.fp("fdiv", kind, excess, rest)])
    middle = w.intrinsic("fabs", kind, excess)
    return w.select(w.let(f"fcmp olt {kind} {middle}, {number(0.4, dtype)}"), kind, near, far)


def _log_of_more(w: Writer, dtype: DType, x: str) -> str:
    """log1p for numbers from 0 to 1: a logarithm, and what rounding 1 + x has lost. Twice as fast as the library's."""
    kind, one = REGISTER[dtype], number(1, dtype)
    more = w.fp("fadd", kind, one, x, exact=True)
    lost = w.fp("fsub", kind, x, w.fp("fsub", kind, more, one, exact=True), exact=True)
    rest = w.fp("fdiv", kind, lost, more, exact=True)
    return w.fp("fadd", kind, call_libm(w, "log", dtype, [more]), rest, exact=True)


def logaddexp(w: Writer, dtype: DType, args: list[str], reassoc: bool) -> str:
    """The larger one plus log1p(exp(-|x - y|)); equal ones may be infinite, so they are told apart. As in the slopes,
    the distance of equal infinities is 0: LLVM merges the calls.
    """
    kind, (x, y) = REGISTER[dtype], args
    zero = number(0, dtype)
    same = w.op("and", "i1", w.let(f"fcmp oeq {kind} {x}, {y}"), isinf(w, dtype, [x], reassoc))
    d = w.select(same, kind, zero, w.fp("fsub", kind, x, y))
    larger = w.select(w.let(f"fcmp ogt {kind} {d}, {zero}"), kind, x, y)
    e = call_libm(w, "exp", dtype, [w.fp("fneg", kind, w.intrinsic("fabs", kind, d))])
    apart = w.fp("fadd", kind, larger, _log_of_more(w, dtype, e))
    equal = w.fp("fadd", kind, x, number(math.log(2), dtype))
    return w.select(w.let(f"fcmp oeq {kind} {x}, {y}"), kind, equal, apart)


def xlogy(w: Writer, dtype: DType, args: list[str], reassoc: bool) -> str:
    kind, (x, y) = REGISTER[dtype], args
    zero = number(0, dtype)
    product = w.fp("fmul", kind, x, call_libm(w, "log", dtype, [y]))
    nothing = w.op("and", "i1", w.let(f"fcmp oeq {kind} {x}, {zero}"), w.let(f"fcmp ord {kind} {y}, {zero}"))
    return w.select(nothing, kind, zero, product)


SEQUENCES: dict[str, Sequence_] = {
    "floordiv": floordiv, "quotient_by": quotient_by, "mod": mod, "ipow": ipow, "sign": sign, "square": square, "reciprocal": reciprocal,
    "identity": identity, "not": invert, "count_bits": count_bits, "shl": shl, "shr": shr, "rsqrt": rsqrt, "times_root": times_root, "logaddexp": logaddexp, "xlogy": xlogy,
    "deg2rad": _scaled(math.pi / 180), "rad2deg": _scaled(180 / math.pi), "expit": expit, "logit": logit,
    "mul_rounded": mul_rounded, "mul_error": mul_error, "loose_tanh": loose_tanh, "sech2": sech2, "sinc": sinc, "direction": direction, "one_minus_square": one_minus_square,
    "digamma": digamma, "polygamma": polygamma,
    "isnan": isnan, "isinf": isinf, "isfinite": isfinite, "signbit": signbit, "pattern": pattern,
    **{name: _extremum(name) for name in EXTREMA},
    **EXACT_NUMBERS,
}  # fmt: skip
