"""The digamma function and its derivative as functions of emitted code, for every target.

Gives `digamma`, the sequence of that row, and `trigamma`, for the first order of polygamma. Between 1 and 2, and around
the largest of its negative roots, digamma is the distance to the root there times what has no root, so that it is right
to some ulp at the root too; the places of the roots are known to twice the digits. The one factor is a polynomial. From
there psi(x + 1) = psi(x) + 1 / x leads up to 8, where the asymptotic series begins, and psi(1 - x) = psi(x) + pi /
tan(pi x) below 0. The derivatives of all these are sums of positive terms.
"""

from __future__ import annotations

import math
from collections.abc import Sequence

from tapeless.backends.llvm.c_functions import call_libm
from tapeless.backends.llvm.writer import Module, Writer, literal
from tapeless.ir.types import DType

F64, KIND = DType.f64, "double"
FAR = 8  # from where on the series serves
NEAR = 0.3  # of the negative root
SHORT = 6  # coefficients
ROOT = 1.4616321449683622, 9.549995429965697e-17
NEGATIVE_ROOT = -0.5040830082644554, -8.15428206243813e-18
# Of t, the distance to the root: psi(x) / t between 1 and 2, and (psi(x + 2) - psi(root + 2)) / t. Interpolated with 60
# digits at the zeros of Chebyshev's polynomials: off by less than 5e-17 of the value.
SLOPE = (
    0.9676722454476212, -0.4427631689835921, 0.2584997609556486, -0.16394270544241185, 0.1078240506916922, -0.07219956125611147,
    0.048804288134436574, -0.03316112647814546, 0.02259764928437279, -0.015424766261277919, 0.010538769938576956,
    -0.007204519666511045, 0.0049270580267742016, -0.0033700680515484165, 0.0023028895420557894, -0.00157420216813665,
    0.0010901225234458578, -0.0007549229618596274, 0.0004717939701691318, -0.0002843132292526133, 0.0002805343686746867,
    -0.0002785074876883787, 0.00011881232908510335,
)  # fmt: skip
NEGATIVE_SLOPE = (
    0.9381979690834112, -0.4172895303446853, 0.23722825947363854, -0.1466662943240164, 0.09410557231181114, -0.061506005401532254,
    0.040595095795466773, -0.02693878004396243, 0.017931313719171206, -0.011956595485860304, 0.007980947747955163,
    -0.0053332949159351824, 0.003563364082582723, -0.00234726824153445, 0.0015688196368649023, -0.0012647836301821625,
    0.0008454399636412761,
)  # fmt: skip
# B(2k) / 2k
ASYMPTOTIC = (1 / 12, -1 / 120, 1 / 252, -1 / 240, 1 / 132, -691 / 32760, 1 / 12, -3617 / 8160, 43867 / 14364)


def digamma(w: Writer, dtype: DType, args: list[str], reassoc: bool) -> str:
    single = dtype is DType.f32
    x = w.let(f"fpext float {args[0]} to double") if single else args[0]
    callee = w.module.helper("tapeless.digamma", lambda: _digamma(w.module))
    result = w.let(f"call double {callee}(double {x})")
    return w.let(f"fptrunc double {result} to float") if single else result


def trigamma(w: Writer, x: str) -> str:
    return w.let(f"call double {w.module.helper('tapeless.trigamma', lambda: _trigamma(w.module))}(double {x})")


def double(value: float) -> str:
    return literal(value, F64)[0]


def pure_function(w: Writer, header: str, result: str) -> str:
    w.do(f"ret double {result}")
    return f"\ndefine internal double {header} memory(none) nounwind willreturn {{\n{w.body()}\n}}"


class _Numbers:
    """Arithmetic of one function."""

    def __init__(self, w: Writer) -> None:
        self.w = w

    def add(self, a: str, b: str | float) -> str:
        return self._of("fadd", a, b)

    def sub(self, a: str, b: str | float) -> str:
        return self._of("fsub", a, b)

    def mul(self, a: str, b: str | float) -> str:
        return self._of("fmul", a, b)

    def over(self, a: float, b: str) -> str:
        return self.w.fp("fdiv", KIND, double(a), b, exact=True)

    def _of(self, name: str, a: str, b: str | float) -> str:
        return self.w.fp(name, KIND, a, b if isinstance(b, str) else double(b), exact=True)

    def polynomial(self, coefficients: Sequence[float], t: str) -> str:
        """Long ones by halves, which do not wait for each other."""
        if len(coefficients) > SHORT:
            square = self.mul(t, t)
            even, odd = (self.polynomial(coefficients[k::2], square) for k in (0, 1))
            return self.add(even, self.mul(odd, t))
        total = double(coefficients[-1])
        for c in reversed(coefficients[:-1]):
            total = self.add(self.mul(total, t), c)
        return total

    def distance(self, x: str, root: tuple[float, float]) -> str:
        return self.sub(self.sub(x, root[0]), root[1])

    def less(self, a: str, b: float) -> str:
        return self.w.let(f"fcmp olt {KIND} {a}, {double(b)}")


def _positive(module: Module) -> str:
    """Of what is above 0, or NaN."""
    w = Writer(module, "")
    w.open("start")
    x, n = "%x", _Numbers(w)
    w.branch(w.let(f"fcmp oge {KIND} {x}, {double(FAR)}"), "far", "near")

    w.open("far")
    z = n.over(1.0, n.mul(x, x))
    series = n.mul(n.polynomial(ASYMPTOTIC, z), z)
    far = n.sub(n.sub(call_libm(w, "log", F64, [x]), n.over(0.5, x)), series)
    w.jump("end")

    w.open("near")
    low = n.less(x, 1.0)
    above, below = w.select(low, KIND, double(-1.0), double(0.0)), w.select(low, KIND, x, double(1.0))
    y = w.select(low, KIND, n.add(x, 1.0), x)
    for _ in range(FAR - 2):  # the sum of reciprocals as one quotient
        high = w.let(f"fcmp ogt {KIND} {y}, {double(2.0)}")
        less = n.sub(y, 1.0)
        above = w.select(high, KIND, n.add(n.mul(above, less), below), above)
        below = w.select(high, KIND, n.mul(below, less), below)
        y = w.select(high, KIND, less, y)
    t = n.distance(y, ROOT)
    near = n.add(n.mul(t, n.polynomial(SLOPE, t)), w.fp("fdiv", KIND, above, below, exact=True))
    w.jump("end")

    w.open("end")
    result = w.let(f"phi double [ {far}, %far ], [ {near}, %near ]")
    return pure_function(w, "@tapeless.digamma.positive(double %x)", result)


def _digamma(module: Module) -> str:
    positive = module.helper("tapeless.digamma.positive", lambda: _positive(module))
    w = Writer(module, "")
    w.open("start")
    x, n = "%x", _Numbers(w)
    t = n.distance(x, NEGATIVE_ROOT)
    w.branch(n.less(w.intrinsic("fabs", KIND, t), NEAR), "root", "others")

    w.open("root")
    first, second = NEGATIVE_ROOT[0], 1.0 + NEGATIVE_ROOT[0]
    poles = n.add(n.over(1.0, n.mul(x, first)), n.over(1.0, n.mul(n.add(x, 1.0), second)))
    at_root = n.mul(t, n.add(n.polynomial(NEGATIVE_SLOPE, t), poles))
    w.jump("end")

    w.open("others")
    w.branch(w.let(f"fcmp ole {KIND} {x}, {double(0.0)}"), "left", "right")

    w.open("right")
    right = w.let(f"call double {positive}(double {x})")
    w.jump("end")

    w.open("left")
    part = n.sub(x, w.intrinsic("rint", KIND, x))
    turn = n.over(math.pi, call_libm(w, "tan", F64, [n.mul(part, math.pi)]))
    mirrored = n.sub(w.let(f"call double {positive}(double {n.sub(double(1.0), x)})"), turn)
    whole = w.let(f"fcmp oeq {KIND} {part}, {double(0.0)}")
    found = w.select(whole, KIND, double(math.nan), mirrored)
    at_zero = w.intrinsic("copysign", KIND, double(math.inf), w.fp("fneg", KIND, x))
    left = w.select(w.let(f"fcmp oeq {KIND} {x}, {double(0.0)}"), KIND, at_zero, found)
    w.jump("end")

    w.open("end")
    result = w.let(f"phi double [ {at_root}, %root ], [ {right}, %right ], [ {left}, %left ]")
    return pure_function(w, "@tapeless.digamma(double %x)", result)


def _trigamma(module: Module) -> str:
    w = Writer(module, "")
    w.open("start")
    x, n = "%x", _Numbers(w)
    mirrored = n.less(x, 0.0)
    y = w.select(mirrored, KIND, n.sub(double(1.0), x), x)
    w.branch(n.less(y, FAR), "near", "far")

    w.open("near")
    first = n.over(1.0, n.mul(y, y))  # alone, since it may be infinite
    above, below, next_ = double(0.0), double(1.0), n.add(y, 1.0)
    for _ in range(FAR - 1):
        low, square = n.less(next_, FAR), n.mul(next_, next_)
        above = w.select(low, KIND, n.add(n.mul(above, square), below), above)
        below = w.select(low, KIND, n.mul(below, square), below)
        next_ = w.select(low, KIND, n.add(next_, 1.0), next_)
    reach = n.add(first, w.fp("fdiv", KIND, above, below, exact=True))
    w.jump("far")

    w.open("far")
    at = w.let(f"phi double [ {y}, %start ], [ {next_}, %near ]")
    before = w.let(f"phi double [ {double(0.0)}, %start ], [ {reach}, %near ]")
    inverse = n.over(1.0, at)
    z = n.mul(inverse, inverse)
    series = n.mul(n.polynomial([2 * k * b for k, b in enumerate(ASYMPTOTIC, 1)], z), z)
    rest = n.mul(n.add(series, n.add(double(1.0), n.mul(inverse, 0.5))), inverse)
    total = n.add(rest, before)
    w.branch(mirrored, "turned", "end")

    w.open("turned")
    part = n.sub(x, w.intrinsic("rint", KIND, x))
    sine = call_libm(w, "sin", F64, [n.mul(part, math.pi)])
    turned = n.sub(n.over(math.pi**2, n.mul(sine, sine)), total)
    w.jump("end")

    w.open("end")
    result = w.let(f"phi double [ {total}, %far ], [ {turned}, %turned ]")
    return pure_function(w, "@tapeless.trigamma(double %x)", result)
