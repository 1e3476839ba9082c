"""The operations on complex numbers, each part a value of its own.

Products follow the schoolbook and quotients Smith's way, as NumPy's do. Functions are those of <complex.h> on doubles,
whose edges NumPy shares; c64 goes through them too, since the ABI of single-precision pairs differs among machines.
Where there is no such library, the formulas of complexformulas.py serve.
"""

from __future__ import annotations

import math
from collections.abc import Sequence

from tapeless.backends.llvm.c_functions import call_complex, call_libm
from tapeless.backends.llvm.complexformulas import FORMULAS, log_of_modulus
from tapeless.backends.llvm.representation import isfinite, isinf, isnan
from tapeless.backends.llvm.writer import REGISTER, Value, Writer, literal
from tapeless.ir.target import Target
from tapeless.ir.types import DType

LIBRARY = {
    "log": "clog", "sqrt": "csqrt", "sin": "csin", "cos": "ccos", "tan": "ctan",
    "asin": "casin", "acos": "cacos", "atan": "catan", "sinh": "csinh", "cosh": "ccosh", "tanh": "ctanh",
    "asinh": "casinh", "acosh": "cacosh", "atanh": "catanh",
}  # fmt: skip
PREDICATES = {"isnan": (isnan, "or"), "isinf": (isinf, "or"), "isfinite": (isfinite, "and")}


def apply_complex(w: Writer, name: str, dtype: DType, args: Sequence[Value]) -> Value:
    """`dtype` is the operands' type; for `complex` it is real."""
    real = dtype.real
    kind = REGISTER[real]
    match name:
        case "complex":
            return (args[0][0], args[1][0])
        case "real":
            return args[0][:1]
        case "imag":
            return args[0][1:]
        case "identity" | "stop_gradient":
            return args[0]
        case "add" | "sub":
            return tuple(w.fp(f"f{name}", kind, a, b) for a, b in zip(*args, strict=True))
        case "neg":
            return tuple(w.fp("fneg", kind, a) for a in args[0])
        case "conj":
            return (args[0][0], w.fp("fneg", kind, args[0][1]))
        case "mul" | "times":
            return multiply(w, kind, args[0], args[1])
        case "square":
            return multiply(w, kind, args[0], args[0])
        case "div" | "quotient":
            return divide(w, real, args[0], args[1])
        case "reciprocal":
            return reciprocal(w, real, args[0])
        case "abs":
            return (call_libm(w, "hypot", real, args[0]),)
        case "angle":
            return (call_libm(w, "atan2", real, [args[0][1], args[0][0]]),)
        case "select":
            return tuple(w.select(args[0][0], kind, a, b) for a, b in zip(args[1], args[2], strict=True))
        case "eq" | "ne":
            both, compare = ("and", "oeq") if name == "eq" else ("or", "une")
            parts = [w.let(f"fcmp {compare} {kind} {a}, {b}") for a, b in zip(*args, strict=True)]
            return (w.op(both, "i1", *parts),)
        case "isnan" | "isinf" | "isfinite":
            predicate, join = PREDICATES[name]
            return (w.op(join, "i1", *(predicate(w, real, [part], False) for part in args[0])),)
        case "exp":
            return exponential(w, real, args[0])
        case "exp2":
            return exponential(w, real, _scaled(w, real, args[0], math.log(2)))
        case "expm1":
            return exponential_minus_one(w, real, args[0])
        case "log2":
            return _scaled(w, real, _function(w, "log", real, args[0]), 1 / math.log(2))
        case "log10":
            return _scaled(w, real, _function(w, "log", real, args[0]), 1 / math.log(10))
        case "log1p":
            x, y = args[0]
            shifted = w.fp("fadd", kind, x, literal(1, real)[0], exact=True), y
            return log_of_modulus(w, real, shifted)
        case "sinc":
            zero = apply_complex(w, "eq", dtype, [args[0], literal(0, dtype)])
            ratio = divide(w, real, _function(w, "sin", real, args[0]), args[0])
            return apply_complex(w, "select", dtype, [zero, literal(1, dtype), ratio])
        case "pow":
            return power(w, real, args[0], args[1])
        case _ if name in LIBRARY:
            return _function(w, name, real, args[0])
    raise NotImplementedError(f"the operation {name} has no LLVM spelling on {dtype!r}")


def multiply(w: Writer, kind: str, x: Value, y: Value) -> Value:
    (a, b), (c, d) = x, y
    real = w.fp("fsub", kind, w.fp("fmul", kind, a, c), w.fp("fmul", kind, b, d))
    return real, w.fp("fadd", kind, w.fp("fmul", kind, a, d), w.fp("fmul", kind, b, c))


def divide(w: Writer, real: DType, x: Value, y: Value) -> Value:
    """Smith's algorithm: divides both parts of y by the larger one first. With y = 0, x / 0 in each part."""
    kind = REGISTER[real]
    (a, b), (c, d) = x, y
    wide = w.let(f"fcmp oge {kind} {w.intrinsic('fabs', kind, c)}, {w.intrinsic('fabs', kind, d)}")
    large, small = w.select(wide, kind, c, d), w.select(wide, kind, d, c)
    ratio = w.fp("fdiv", kind, small, large)
    zero = w.let(f"fcmp oeq {kind} {large}, {literal(0, real)[0]}")
    scale = w.fp("fdiv", kind, literal(1, real)[0], w.fp("fadd", kind, large, w.fp("fmul", kind, small, ratio)))
    endless = w.fp("fadd", kind, literal(math.inf, real)[0], w.intrinsic("fabs", kind, c))  # c is 0 here, or NaN
    scale = w.select(zero, kind, endless, scale)
    # |c| >= |d|: (a + b r, b - a r);  otherwise: (a r + b, b r - a)
    ar, br = w.fp("fmul", kind, a, ratio), w.fp("fmul", kind, b, ratio)
    top = w.fp("fadd", kind, w.select(wide, kind, a, ar), w.select(wide, kind, br, b))
    bottom = w.fp("fsub", kind, w.select(wide, kind, b, br), w.select(wide, kind, ar, a))
    top, bottom = w.select(zero, kind, a, top), w.select(zero, kind, b, bottom)
    return w.fp("fmul", kind, top, scale), w.fp("fmul", kind, bottom, scale)


def reciprocal(w: Writer, real: DType, z: Value) -> Value:
    """Smith's way as well, but 0 gives NaN: NumPy's function differs from its quotient there."""
    kind, one = REGISTER[real], literal(1, real)[0]
    c, d = z
    wide = w.let(f"fcmp oge {kind} {w.intrinsic('fabs', kind, c)}, {w.intrinsic('fabs', kind, d)}")
    large, small = w.select(wide, kind, c, d), w.select(wide, kind, d, c)
    ratio = w.fp("fdiv", kind, small, large)
    below = w.fp("fadd", kind, large, w.fp("fmul", kind, small, ratio))
    top, bottom = w.select(wide, kind, one, ratio), w.select(wide, kind, ratio, one)
    return w.fp("fdiv", kind, top, below), w.fp("fdiv", kind, w.fp("fneg", kind, bottom), below)


def exponential(w: Writer, real: DType, z: Value) -> Value:
    """exp(x) (cos y + i sin y), which vectorises. A large x is taken in two steps, so that only the product overflows;
    y = 0 stays, and where y is not finite exp(-inf) is 0 and exp(inf) infinite, where the products would be NaN.
    """
    kind, (x, y) = REGISTER[real], z
    infinite = literal(math.inf, real)[0]
    turning = w.let(f"fcmp uno {kind} {w.fp('fsub', kind, y, y, exact=True)}, {literal(0, real)[0]}")  # y is not finite
    endless = w.op("and", "i1", turning, w.let(f"fcmp oeq {kind} {x}, {infinite}"))
    zero, step = literal(0, real)[0], 80.0 if real is DType.f32 else 700.0
    large = w.let(f"fcmp ogt {kind} {x}, {literal(step, real)[0]}")
    rest = w.select(large, kind, w.fp("fsub", kind, x, literal(step, real)[0], exact=True), x)
    scale = w.select(large, kind, literal(math.exp(step), real)[0], literal(1, real)[0])
    e = call_libm(w, "exp", real, [rest])
    nothing = w.op("and", "i1", turning, w.let(f"fcmp oeq {kind} {e}, {zero}"))
    flat = w.let(f"fcmp oeq {kind} {y}, {zero}")
    parts = []
    signed = w.intrinsic("copysign", kind, zero, y)
    for function, at_zero, end in (("cos", w.fp("fmul", kind, e, scale, exact=True), zero), ("sin", y, signed)):
        part = w.fp("fmul", kind, e, call_libm(w, function, real, [y]), exact=True)
        part = w.select(flat, kind, at_zero, w.fp("fmul", kind, part, scale, exact=True))
        parts.append(w.select(nothing, kind, end, part))
    return w.select(endless, kind, infinite, parts[0]), parts[1]


def exponential_minus_one(w: Writer, real: DType, z: Value) -> Value:
    """(exp(x) - 1) cos(y) - 2 sin(y / 2)^2 + i exp(x) sin(y): no digits are lost near 0."""
    kind, (x, y) = REGISTER[real], z
    half = call_libm(w, "sin", real, [w.fp("fmul", kind, y, literal(0.5, real)[0])])
    rest = w.fp("fmul", kind, literal(2, real)[0], w.fp("fmul", kind, half, half))
    grown = w.fp("fmul", kind, call_libm(w, "expm1", real, [x]), call_libm(w, "cos", real, [y]))
    turned = w.fp("fmul", kind, call_libm(w, "exp", real, [x]), call_libm(w, "sin", real, [y]))
    return w.fp("fsub", kind, grown, rest), turned


def _scaled(w: Writer, real: DType, z: Value, factor: float) -> Value:
    return tuple(w.fp("fmul", REGISTER[real], part, literal(factor, real)[0]) for part in z)


def _widened(w: Writer, real: DType, value: Value) -> Value:
    return tuple(w.let(f"fpext float {part} to double") for part in value) if real is DType.f32 else value


def _narrowed(w: Writer, real: DType, value: Value) -> Value:
    return tuple(w.let(f"fptrunc double {part} to float") for part in value) if real is DType.f32 else value


def _function(w: Writer, name: str, real: DType, z: Value) -> Value:
    if has_library(w):
        return _narrowed(w, real, call_complex(w, LIBRARY[name], _widened(w, real, z)))
    if name in FORMULAS:
        return FORMULAS[name](w, real, z)
    raise NotImplementedError(f"complex {name} on this target")


def has_library(w: Writer) -> bool:
    return w.target.kind == Target.cpu


def power(w: Writer, real: DType, x: Value, y: Value) -> Value:
    """exp(y log(x)), except that anything to the power of 0 is 1, 0 to any other is 0 or, if that is not positive, NaN,
    and whole powers below 100 are products, as in NumPy.
    """
    kind, zero = REGISTER[real], literal(0, real)[0]
    if has_library(w):
        parts = (*_widened(w, real, x), *_widened(w, real, y))
        result = _narrowed(w, real, call_complex(w, "cpow", parts))
    else:
        result = exponential(w, real, multiply(w, kind, y, FORMULAS["log"](w, real, x)))
    size = w.intrinsic("fabs", kind, y[0])
    whole = w.let(f"fcmp oeq {kind} {w.intrinsic('floor', kind, size)}, {size}")
    for test in (f"olt {kind} {size}, {literal(100, real)[0]}", f"oeq {kind} {y[1]}, {zero}"):
        whole = w.op("and", "i1", whole, w.let(f"fcmp {test}"))
    positive = w.let(f"fcmp ogt {kind} {y[0]}, {zero}")
    products = _whole_power(w, real, x, w.select(whole, kind, size, zero), positive)
    result = tuple(w.select(whole, kind, p, r) for p, r in zip(products, result, strict=True))
    of_nothing = w.select(positive, kind, zero, literal(math.nan, real)[0])
    result = tuple(w.select(_is_zero(w, kind, x, zero), kind, of_nothing, part) for part in result)
    one = _is_zero(w, kind, y, zero)
    return tuple(w.select(one, kind, c, r) for c, r in zip(literal(1, real.complex), result, strict=True))


def _whole_power(w: Writer, real: DType, x: Value, n: str, positive: str) -> Value:
    """x to the power of n from 1 to 99, or of -n: the product of those of x, x ** 2, x ** 4, ... that n consists of."""
    kind, one = REGISTER[real], literal(1, real.complex)
    count = w.let(f"fptosi {kind} {n} to i64")
    found, power = one, x
    direct: list[Value] = []  # x, x * x, x * (x * x), without a factor 1 that would make NaN of infinities
    for bit in range(7):
        here = w.let(f"icmp ne i64 {w.op('and', 'i64', count, str(1 << bit))}, 0")
        more = multiply(w, kind, found, power)
        found = tuple(w.select(here, kind, m, f) for m, f in zip(more, found, strict=True))
        direct += [power] * (bit < 2)
        power = multiply(w, kind, power, power)
    direct.append(multiply(w, kind, x, direct[1]))
    inverse = divide(w, real, one, found)
    found = tuple(w.select(positive, kind, f, i) for f, i in zip(found, inverse, strict=True))
    for k, value in enumerate(direct, 1):
        same = w.op("and", "i1", positive, w.let(f"icmp eq i64 {count}, {k}"))
        found = tuple(w.select(same, kind, v, f) for v, f in zip(value, found, strict=True))
    return found


def _is_zero(w: Writer, kind: str, z: Value, zero: str) -> str:
    return w.op("and", "i1", *(w.let(f"fcmp oeq {kind} {part}, {zero}") for part in z))
