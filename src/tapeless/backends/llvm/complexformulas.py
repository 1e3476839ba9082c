"""Functions of complex numbers from functions of real ones, for targets without <complex.h>.

`FORMULAS` maps an operation to a function of the writer, the real element type and the operand. They agree with the C
library to rounding for finite operands of moderate size, `sqrt` for all; at infinities and far from the origin only it is
exact.
"""

from __future__ import annotations

from collections.abc import Callable
from functools import partial

from tapeless.backends.llvm.c_functions import call_libm
from tapeless.backends.llvm.writer import REGISTER, Value, Writer, literal
from tapeless.ir.types import DType

Formula = Callable[[Writer, DType, Value], Value]


def _product(w: Writer, real: DType, a: str, b: str) -> str:
    return w.fp("fmul", REGISTER[real], a, b)


def log_of_modulus(w: Writer, real: DType, z: Value) -> Value:
    """As NumPy's log1p has it: the real part is lost where the modulus is about 1."""
    modulus = call_libm(w, "hypot", real, z)
    return call_libm(w, "log", real, [modulus]), call_libm(w, "atan2", real, [z[1], z[0]])


def log(w: Writer, real: DType, z: Value) -> Value:
    """Where the modulus is about 1, m = |z|^2 - 1 comes from exact products, and log(1 + m) / 2 is the real part:
    for m from -1/2 to 3.
    """
    kind, one, half = REGISTER[real], literal(1, real)[0], literal(0.5, real)[0]
    exact = partial(w.fp, exact=True)
    squares = [exact("fmul", kind, part, part) for part in z]
    lost = [
        w.intrinsic("fma", kind, part, part, exact("fneg", kind, square), flags="")
        for part, square in zip(z, squares, strict=True)
    ]
    ordered = w.let(f"fcmp ogt {kind} {squares[0]}, {squares[1]}")
    large, small = w.select(ordered, kind, *squares), w.select(ordered, kind, *reversed(squares))
    first = exact("fsub", kind, large, one)
    lost.append(exact("fsub", kind, large, exact("fadd", kind, first, one)))
    above = exact("fadd", kind, first, small)
    m = exact("fadd", kind, above, exact("fadd", kind, exact("fadd", kind, lost[0], lost[1]), lost[2]))
    from_middle = w.intrinsic("fabs", kind, exact("fsub", kind, m, literal(1.25, real)[0]))
    near = w.let(f"fcmp olt {kind} {from_middle}, {literal(1.75, real)[0]}")
    rounded = exact("fadd", kind, one, m)
    rest = w.fp("fdiv", kind, exact("fsub", kind, m, exact("fsub", kind, rounded, one)), rounded)
    found = call_libm(w, "log", real, [w.select(near, kind, rounded, call_libm(w, "hypot", real, z))])
    close = _product(w, real, half, exact("fadd", kind, found, rest))
    return w.select(near, kind, close, found), call_libm(w, "atan2", real, [z[1], z[0]])


def sqrt(w: Writer, real: DType, z: Value) -> Value:
    """Of an operand that is scaled into the middle of the range. With an infinite imaginary part it is infinite."""
    kind = REGISTER[real]
    sizes = [w.intrinsic("fabs", kind, part) for part in z]
    size = w.select(w.let(f"fcmp ogt {kind} {sizes[0]}, {sizes[1]}"), kind, sizes[0], sizes[1])
    wide = real is DType.f64
    scale, back = literal(1, real)[0], literal(1, real)[0]
    for comparison, limit, power in (
        ("ogt", 1020 if wide else 124, -2),
        ("olt", -900 if wide else -90, 108 if wide else 48),
    ):
        beyond = w.let(f"fcmp {comparison} {kind} {size}, {literal(2.0**limit, real)[0]}")
        scale = w.select(beyond, kind, literal(2.0**power, real)[0], scale)
        back = w.select(beyond, kind, literal(2.0 ** (-power // 2), real)[0], back)
    root = _sqrt_in_range(w, real, (_product(w, real, z[0], scale), _product(w, real, z[1], scale)))
    infinity = literal(float("inf"), real)[0]
    infinite = w.let(f"fcmp oeq {kind} {sizes[1]}, {infinity}")
    re, im = (_product(w, real, part, back) for part in root)
    return w.select(infinite, kind, infinity, re), w.select(infinite, kind, z[1], im)


def _sqrt_in_range(w: Writer, real: DType, z: Value) -> Value:
    """With t = sqrt((|z| + |x|) / 2), the parts are t and |y| / 2t, in the order that the sign of x says."""
    kind, (x, y) = REGISTER[real], z
    zero, half = literal(0, real)[0], literal(0.5, real)[0]
    total = w.fp("fadd", kind, call_libm(w, "hypot", real, z), w.intrinsic("fabs", kind, x))
    t = w.intrinsic("sqrt", kind, _product(w, real, half, total))
    rest = w.fp("fdiv", kind, _product(w, real, half, w.intrinsic("fabs", kind, y)), t)
    rest = w.select(w.let(f"fcmp oeq {kind} {t}, {zero}"), kind, zero, rest)
    right = w.let(f"fcmp oge {kind} {x}, {zero}")
    imaginary = w.intrinsic("copysign", kind, w.select(right, kind, rest, t), y)
    return w.select(right, kind, t, rest), imaginary


def _mixed(first: str, second: str, sign: bool = False) -> Formula:
    """f(x) g(y) + i f'(x) g'(y) for products of a circular and a hyperbolic function."""
    (f, g), (df, dg) = first.split(), second.split()

    def write(w: Writer, real: DType, z: Value) -> Value:
        x, y = z
        re = _product(w, real, call_libm(w, f, real, [x]), call_libm(w, g, real, [y]))
        im = _product(w, real, call_libm(w, df, real, [x]), call_libm(w, dg, real, [y]))
        return re, w.fp("fneg", REGISTER[real], im) if sign else im

    return write


def tanh(w: Writer, real: DType, z: Value) -> Value:
    """With s = sinh x and u = tan y: (tanh x (1 + u^2) + i u / cosh^2 x) / (1 + u^2 tanh^2 x), by cosines of y."""
    kind, (x, y) = REGISTER[real], z
    one = literal(1, real)[0]
    t = call_libm(w, "tanh", real, [x])
    c, s = call_libm(w, "cos", real, [y]), call_libm(w, "sin", real, [y])
    squares = [_product(w, real, v, v) for v in (t, c, s)]
    below = w.fp("fadd", kind, squares[1], _product(w, real, squares[0], squares[2]))
    flat = w.fp("fsub", kind, one, squares[0])  # 1 / cosh^2 x
    im = _product(w, real, _product(w, real, s, c), flat)
    return w.fp("fdiv", kind, t, below), w.fp("fdiv", kind, im, below)


def tan(w: Writer, real: DType, z: Value) -> Value:
    """tan z = -i tanh(i z)."""
    kind = REGISTER[real]
    re, im = tanh(w, real, (w.fp("fneg", kind, z[1]), z[0]))
    return im, w.fp("fneg", kind, re)


FORMULAS: dict[str, Formula] = {
    "log": log,
    "sqrt": sqrt,
    "sin": _mixed("sin cosh", "cos sinh"),
    "cos": _mixed("cos cosh", "sin sinh", sign=True),
    "sinh": _mixed("sinh cos", "cosh sin"),
    "cosh": _mixed("cosh cos", "sinh sin"),
    "tan": tan,
    "tanh": tanh,
}
