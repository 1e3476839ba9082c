"""The derivatives of digamma as functions of emitted code, for every target: Note [Polygamma] of ops/table.py.

Gives `polygamma`, the sequence of that row. Hurwitz' zeta(s, q), for q > 0, is the sum of its first ten terms and the
formula of Euler and Maclaurin for the others, from a = q + 10 on:
    a ** (1 - s) / (s - 1) + a ** -s / 2 + sum over j of B(2j) / (2j)! s (s + 1) ... (s + 2j - 2) a ** (1 - s - 2j)
Twelve Bernoulli numbers B(2j) are more than rounding leaves room for.
"""

from __future__ import annotations

import math
from fractions import Fraction

from tapeless.backends.llvm.c_functions import call_foreign, call_libm
from tapeless.backends.llvm.digamma import double, pure_function, trigamma
from tapeless.backends.llvm.writer import Module, Writer, literal
from tapeless.ir.types import DType
from tapeless.ops.evaluations import LARGEST_ORDER
from tapeless.ops.op import Foreign

FIRST_TERMS = 10
BERNOULLI = ("1/6", "-1/30", "1/42", "-1/30", "5/66", "-691/2730", "7/6", "-3617/510", "43867/798", "-174611/330",
             "854513/138", "-236364091/2730")  # fmt: skip
F64 = DType.f64


def polygamma(w: Writer, dtype: DType, args: list[str], reassoc: bool) -> str:
    single = dtype is DType.f32
    n, x = (w.let(f"fpext float {arg} to double") for arg in args) if single else args
    if args[0] == literal(1.0, dtype)[0]:  # that of gradients
        result = trigamma(w, x)
    else:
        callee = w.module.helper("tapeless.polygamma", lambda: _polygamma(w.module))
        result = w.let(f"call double {callee}(double {n}, double {x})")
    return w.let(f"fptrunc double {result} to float") if single else result


def _zeta(module: Module) -> str:
    w = Writer(module, "")
    w.open("start")
    s, q = "%s", "%q"
    power = w.fp("fneg", "double", s)
    total = call_libm(w, "pow", F64, [q, power])
    for k in range(1, FIRST_TERMS):
        total = w.fp("fadd", "double", total, call_libm(w, "pow", F64, [_plus(w, q, k), power]))
    a = _plus(w, q, FIRST_TERMS)
    last = call_libm(w, "pow", F64, [a, power])
    integral = w.fp("fdiv", "double", call_libm(w, "pow", F64, [a, _plus(w, power, 1)]), _plus(w, s, -1))
    total = w.fp("fadd", "double", total, integral)
    total = w.fp("fadd", "double", total, w.fp("fmul", "double", last, double(0.5)))
    term = w.fp("fdiv", "double", w.fp("fmul", "double", last, s), a)  # s (s + 1) ... (s + 2j - 2) a ** (1 - s - 2j)
    for j, bernoulli in enumerate(BERNOULLI, 1):
        factor = float(Fraction(bernoulli) / math.factorial(2 * j))
        total = w.fp("fadd", "double", total, w.fp("fmul", "double", term, double(factor)))
        for k in (2 * j - 1, 2 * j):
            term = w.fp("fdiv", "double", w.fp("fmul", "double", term, _plus(w, s, k)), a)
    return pure_function(w, "@tapeless.zeta(double %s, double %q)", total)


def _plus(w: Writer, x: str, number: float) -> str:
    return w.fp("fadd", "double", x, double(number))


def _polygamma(module: Module) -> str:
    zeta_at = module.helper("tapeless.zeta", lambda: _zeta(module))
    w = Writer(module, "")
    w.open("start")
    n, x, nan = "%n", "%x", double(math.nan)

    def zeta(q: str) -> str:
        return w.let(f"call double {zeta_at}(double {s}, double {q})")

    def whole(rounding: str, value: str) -> str:
        return w.intrinsic(rounding, "double", value)

    known, right, left, merge = "known", "right", "left", "merge"
    at_least = w.let(f"fcmp oge double {n}, {double(1)}")
    at_most = w.let(f"fcmp ole double {n}, {double(LARGEST_ORDER)}")
    is_whole = w.let(f"fcmp oeq double {n}, {whole('floor', n)}")
    ordered = w.let(f"fcmp ord double {x}, {x}")
    fits = w.op("and", "i1", w.op("and", "i1", at_least, at_most), w.op("and", "i1", is_whole, ordered))
    w.branch(fits, known, merge)

    w.open(known)
    s = _plus(w, n, 1)
    half = w.fp("fmul", "double", n, double(0.5))
    odd = w.let(f"fcmp une double {half}, {whole('floor', half)}")
    factorial = call_foreign(w, Foreign("gamma", "tgamma"), F64, [s])
    scale = w.select(odd, "double", factorial, w.fp("fneg", "double", factorial))
    w.branch(w.let(f"fcmp ogt double {x}, {double(0)}"), right, left)

    w.open(right)
    above_zero = w.fp("fmul", "double", scale, zeta(x))
    w.jump(merge)

    w.open(left)
    down = zeta(w.fp("fsub", "double", x, whole("floor", x)))
    up = zeta(w.fp("fsub", "double", whole("ceil", x), x))
    mirrored = zeta(w.fp("fsub", "double", double(1), x))
    up, mirrored = (
        w.select(odd, "double", up, w.fp("fneg", "double", up)),
        w.select(odd, "double", w.fp("fneg", "double", mirrored), mirrored),
    )
    total = w.fp("fadd", "double", w.fp("fadd", "double", down, up), mirrored)
    below_zero = w.fp("fmul", "double", scale, total)
    w.jump(merge)

    w.open(merge)
    result = w.let(f"phi double [ {nan}, %start ], [ {above_zero}, %{right} ], [ {below_zero}, %{left} ]")
    return pure_function(w, "@tapeless.polygamma(double %n, double %x)", result)
