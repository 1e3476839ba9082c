"""Every partial of the ops table against derivatives by mpmath, in every floating type, and once more differentiated.

Factors are evaluated by the `numpy` column; `Forward` and `Reverse` apply the rules to the factors themselves, as
derivatives of derivatives do. Errors are relative to the slope, in units of the type's epsilon.
"""

import cmath
import inspect
import itertools
import math
from collections.abc import Callable, Sequence
from dataclasses import dataclass

import mpmath
import numpy as np
import pytest

from tapeless.ir.types import Const, DType, Type, const, one_of, zero_of
from tapeless.ops.partials import FIRST_WINS, PARTIALS
from tapeless.ops.table import TABLE

INF, NAN = math.inf, math.nan
mp = mpmath

# --- evaluation: numbers, numbers with tangents, numbers with a history ------------------------------------------


def operands(args: Sequence[object]) -> list[object]:
    """Python numbers take the type of the other operands."""
    kinds = [a.type.dtype for a in args if hasattr(a, "type")]
    kind = next((k for k in kinds if k is not DType.bool), kinds[0])
    return [a if hasattr(a, "type") else const(a, kind) for a in args]


def evaluate(name: str, *args: Const | float) -> Const:
    atoms = operands(args)
    dtypes = [a.dtype for a in atoms]
    assert all(d in TABLE[name].dtypes for d in dtypes[-1:]) and len(set(dtypes[name == "select" :])) == 1, (name, args)
    return const(TABLE[name].numpy(*(a.dtype.numpy.type(a.value) for a in atoms)), TABLE[name].result(dtypes))


@dataclass(frozen=True)
class Dual:
    primal: object
    tangent: object

    @property
    def type(self) -> Type:
        return self.primal.type


class Forward:
    """Applies rows to numbers with tangents, over the evaluation `base`, which may be of this kind too."""

    def __init__(self, base: Callable[..., object] = evaluate) -> None:
        self.base = base

    def __call__(self, name: str, *args: object) -> object:
        atoms = operands(args)
        primals = [a.primal if isinstance(a, Dual) else a for a in atoms]
        result = self.base(name, *primals)
        if not any(isinstance(a, Dual) for a in atoms) or not (
            result.type.dtype.is_float or result.type.dtype.is_complex
        ):
            return result
        tangents = [a.tangent if isinstance(a, Dual) else zero_of(a.type.dtype) for a in atoms]
        if name == "select":
            return Dual(result, self.base("select", primals[0], *tangents[1:]))
        total = zero_of(result.type.dtype)
        for rule, atom, tangent in zip(PARTIALS[name], atoms, tangents, strict=True):
            if rule and isinstance(atom, Dual):
                total = self.base("add", total, self.base("mul", rule(self.base, result, *primals), tangent))
        return Dual(result, total)


@dataclass(eq=False)
class Node:
    value: Const
    name: str = ""
    inputs: tuple[object, ...] = ()
    adjoint: Const | None = None

    @property
    def type(self) -> Type:
        return self.value.type


class Reverse:
    """Applies rows to numbers and remembers how each was made."""

    def __init__(self) -> None:
        self.nodes: list[Node] = []

    def __call__(self, name: str, *args: object) -> Node:
        atoms = tuple(operands(args))
        values = [a.value if isinstance(a, Node) else a for a in atoms]
        self.nodes.append(Node(evaluate(name, *values), name, atoms))
        return self.nodes[-1]

    def gradient(self, result: object, inputs: Sequence[Node]) -> list[float]:
        def grow(node: object, amount: Const) -> None:
            if isinstance(node, Node):
                node.adjoint = amount if node.adjoint is None else evaluate("add", node.adjoint, amount)

        grow(result, one_of(inputs[0].type.dtype))
        for node in reversed(self.nodes):
            if node.adjoint is None or not node.type.dtype.is_float:
                continue
            values = [a.value if isinstance(a, Node) else a for a in node.inputs]
            if node.name == "select":
                zero = zero_of(node.type.dtype)
                grow(node.inputs[1], evaluate("select", values[0], node.adjoint, zero))
                grow(node.inputs[2], evaluate("select", values[0], zero, node.adjoint))
                continue
            for rule, atom in zip(PARTIALS[node.name], node.inputs, strict=True):
                if rule and isinstance(atom, Node):
                    grow(atom, evaluate("mul", rule(evaluate, node.value, *values), node.adjoint))
        return [0.0 if x.adjoint is None else x.adjoint.value for x in inputs]


def number(factor: object, dtype: DType) -> Const:
    return factor if hasattr(factor, "type") else const(factor, dtype)


def slope(name: str, k: int, point: Sequence[complex], dtype: DType = DType.f64) -> complex:
    atoms = [const(x, dtype) for x in point]
    factor = PARTIALS[name][k](evaluate, evaluate(name, *atoms), *atoms)
    assert isinstance(factor, float) or factor.dtype is dtype, factor
    return number(factor, dtype).value


def second(name: str, k: int, m: int, point: Sequence[complex], dtype: DType = DType.f64) -> complex:
    """The slope in operand m of the slope in operand k; the other operands are constants."""
    forward = Forward()
    atoms = [const(x, dtype) for x in point]
    atoms[m] = Dual(atoms[m], one_of(dtype))
    factor = PARTIALS[name][k](forward, forward(name, *atoms), *atoms)
    return factor.tangent.value if isinstance(factor, Dual) else 0.0


def second_reverse(name: str, k: int, point: Sequence[float]) -> list[float]:
    reverse = Reverse()
    atoms = [Node(const(x, DType.f64)) for x in point]
    factor = PARTIALS[name][k](reverse, reverse(name, *atoms), *atoms)
    return reverse.gradient(factor, atoms)


# --- rows with slopes --------------------------------------------------------------------------------------------

TINY = (1e-300, -1e-300, 1e-30, -1e-9)
ANY = (-300.0, -40.5, -3.5, -1.0, -0.25, *TINY, 0.0, 1e-12, 0.5, 1.0, 2.0, 7.75, 20.25, 300.0)
NONZERO = tuple(x for x in ANY if x)
POSITIVE = (1e-300, 1e-20, 1e-8, 0.0625, 0.5, 0.99, 1.0, 1.01, 2.75, 40.0, 1e6, 1e150)
MODERATE = (-7.75, -3.5, -1.0, -0.25, -1e-9, 0.5, 1.0, 1.4375, 2.0, 4.25, 7.75)
UNIT = (-1 + 2.0**-40, -0.99, -0.5, -1e-9, 0.0, 1e-300, 1e-5, 0.25, 0.875, 1 - 2.0**-20, 1 - 2.0**-50)
INSIDE = (1e-300, 1e-9, 0.125, 0.4375, 0.5, 0.875, 1 - 2.0**-30)
ABOVE_ONE = (1 + 2.0**-50, 1 + 2.0**-20, 1.5, 9.25, 1e8, 1e200)
AROUND_POLES = (1e-9, 0.0625, 0.5, 1.0, 1.4616321449683622, 2.0, 2.75, 9.5, 40.0, -0.25, -1e-9, -0.75, -3.25, -20.5625)
REMAINDERS = (-7.75, 0.5, 1.0, 5.1, 1e6 + 0.5), (-3.5, -0.3, 0.1, 0.7, 2.0)  # 1 / 0.1 rounds up to 10
COMPLEX = (0.5 + 0.25j, -1.5 + 2j, 0.75 - 1.25j, -0.5 - 0.125j, 1e-9 + 1e-5j, 3 - 0.001j, -0.001 + 1.0001j, 8 + 9j)


@dataclass(frozen=True)
class Smooth:
    """`points` are for the first operand, `others` for the second; `digits` of the reference are many, since some
    are nearly flat. `ulps` bounds the error of a slope in epsilons; what `condition` says of a point is added.
    """

    reference: Callable[..., object]
    points: Sequence[float] = ANY
    others: Sequence[float] = ()
    digits: int = 800
    ulps: float = 4
    condition: Callable[..., float] = lambda *args: 0

    def grid(self, arity: int, dtype: DType) -> list[tuple[complex, ...]]:
        columns = [COMPLEX] * arity if dtype.is_complex else [self.points, self.others or self.points][:arity]
        found = []
        for point in itertools.product(*columns):
            rounded = tuple(const(x, dtype).value for x in point)
            moved = any(a != b and b in (0, 1, -1) for a, b in zip(point, rounded, strict=True))
            if not moved and all(map(np.isfinite, rounded)) and rounded not in found:
                found.append(rounded)
        return found


def root(x: object) -> object:
    return mp.sign(x) * mp.cbrt(abs(x))


SMOOTH = {
    "add": Smooth(lambda x, y: x + y),
    "sub": Smooth(lambda x, y: x - y),
    "mul": Smooth(lambda x, y: x * y),
    "times": Smooth(lambda x, y: x * y),
    "mul_rounded": Smooth(lambda x, y: x * y),
    "div": Smooth(lambda x, y: x / y, ANY, NONZERO),
    "quotient": Smooth(lambda x, y: x / y, ANY, NONZERO),
    "mod": Smooth(lambda x, y: x - y * mp.floor(x / y), *REMAINDERS),
    "fmod": Smooth(lambda x, y: x - y * (mp.floor if x / y > 0 else mp.ceil)(x / y), *REMAINDERS),
    "ieee_remainder": Smooth(lambda x, y: x - y * mp.nint(x / y), REMAINDERS[0], (-3.5, -0.3, 0.11, 0.7, 1.9)),
    "pow": Smooth(
        lambda x, y: x**y,
        POSITIVE[1:-1],
        (-3.0, -0.5, 1e-9, 0.5, 1.0, 2.0, 3.0, 7.75),
        condition=lambda x, y: abs(cmath.log(x)) * (2 * abs(y) if isinstance(y, complex) else 1),
    ),
    "neg": Smooth(lambda x: -x),
    "abs": Smooth(abs, NONZERO),
    "square": Smooth(lambda x: x * x),
    "reciprocal": Smooth(lambda x: 1 / x, NONZERO),
    "sqrt": Smooth(mp.sqrt, POSITIVE),
    "times_root": Smooth(lambda x: x * mp.sqrt(x), POSITIVE),
    "rsqrt": Smooth(lambda x: 1 / mp.sqrt(x), POSITIVE),
    "cbrt": Smooth(root, NONZERO),
    "exp": Smooth(mp.exp),
    "exp2": Smooth(lambda x: mp.mpf(2) ** x),
    "expm1": Smooth(mp.expm1),
    "log": Smooth(mp.log, POSITIVE),
    "log2": Smooth(lambda x: mp.log(x) / mp.log(2), POSITIVE),
    "log10": Smooth(lambda x: mp.log(x) / mp.log(10), POSITIVE),
    "log1p": Smooth(lambda x: mp.log(1 + x), (-1 + 2.0**-40, -0.75, *TINY, 0.0, 3.5, 1e20)),
    "sin": Smooth(mp.sin),
    "cos": Smooth(mp.cos),
    "tan": Smooth(mp.tan, (*MODERATE, *TINY, 1.5703125)),
    "asin": Smooth(mp.asin, UNIT),
    "acos": Smooth(mp.acos, UNIT),
    "atan": Smooth(mp.atan, (*ANY, 1e100)),
    "sinh": Smooth(mp.sinh),
    "cosh": Smooth(mp.cosh),
    "tanh": Smooth(mp.tanh),
    "loose_tanh": Smooth(mp.tanh),
    "sech2": Smooth(lambda x: mp.sech(x) ** 2),
    "asinh": Smooth(mp.asinh, (*ANY, 1e200)),
    "acosh": Smooth(mp.acosh, ABOVE_ONE),
    "atanh": Smooth(mp.atanh, UNIT),
    "atan2": Smooth(mp.atan2, (-1e200, -3.5, -1e-9, 0.5, 4.0), (-7.75, 0.25, 1e-200, 2.0, 1e200)),
    "hypot": Smooth(mp.hypot, (-1e200, -3.5, -1e-9, 0.5, 4.0), (-7.75, 0.25, 1e-200, 2.0, 1e200)),
    "direction": Smooth(
        lambda x, y: x / mp.hypot(x, y), (-1e200, -3.5, -1e-9, 0.5, 4.0), (-7.75, 0.25, 1e-200, 2.0, 1e200), ulps=8
    ),
    "one_minus_square": Smooth(lambda x: (1 - x) * (1 + x)),
    "sinc": Smooth(lambda x: mp.sin(x) / x if x else mp.mpf(1), (*NONZERO, 1.99, 2.01, 1e-5)),
    "logaddexp": Smooth(
        lambda x, y: mp.log(mp.exp(x) + mp.exp(y)), (-300.0, -3.5, -1.0, 0.5, 20.25), (-40.5, -1.0, 0.0, 300.0)
    ),
    "xlogy": Smooth(lambda x, y: x * mp.log(y), ANY, POSITIVE),
    "deg2rad": Smooth(mp.radians),
    "rad2deg": Smooth(mp.degrees),
    "erf": Smooth(mp.erf, (*MODERATE, *TINY, 0.0, 12.5, 20.25), condition=lambda x: x * x),
    "erfc": Smooth(mp.erfc, (*MODERATE, *TINY, 0.0, 12.5, 20.25), condition=lambda x: x * x),
    "gamma": Smooth(mp.gamma, AROUND_POLES, digits=150, ulps=16),
    "gammaln": Smooth(lambda x: mp.log(abs(mp.gamma(x))), AROUND_POLES, digits=150, ulps=16),
    "digamma": Smooth(mp.digamma, AROUND_POLES, digits=150, ulps=16),
    "polygamma": Smooth(lambda n, x: mp.re(mp.polygamma(int(n), x)), (1.0, 2.0, 3.0, 6.0), AROUND_POLES, digits=150),
    "expit": Smooth(lambda x: 1 / (1 + mp.exp(-x))),
    "logit": Smooth(lambda x: mp.log(x / (1 - x)), INSIDE),
    "copysign": Smooth(lambda x, y: abs(x) * mp.sign(y), (-3.5, -1e-9, 0.5), (-1.0, 2.0)),
}
SLOPES = [
    pytest.param(name, k, dtype, id=f"{name}-{k}-{dtype!r}")
    for name in SMOOTH
    for k, rule in enumerate(PARTIALS[name])
    for dtype in (DType.f64, DType.f32, DType.c128)
    if rule and dtype in TABLE[name].dtypes and (name, dtype) != ("abs", DType.c128)
]


def derivative(case: Smooth, point: Sequence[complex], orders: Sequence[int]) -> object:
    """Of these orders in each operand, by central differences: the step is 1e-30 times x, the error 1e-60."""

    def difference(k: int, inner: Callable[..., object]) -> Callable[..., object]:
        step = (abs(mp.mpmathify(point[k])) or 1) * mp.mpf(10) ** -30

        def function(*args: object) -> object:
            ends = [inner(*args[:k], args[k] + sign * step, *args[k + 1 :]) for sign in (1, -1)]
            return (ends[0] - ends[1]) / (2 * step)

        return function

    with mp.workdps(case.digits):
        function = case.reference
        for k in [k for k, order in enumerate(orders) for _ in range(order)]:
            function = difference(k, function)
        return function(*map(mp.mpmathify, point))


def error(got: complex, want: object, dtype: DType) -> float:
    """In epsilons of the type, relative to the number as a whole. Below the normal range, to its smallest number."""
    info = np.finfo(dtype.real.numpy)
    size = abs(want)
    if size > info.max:
        return 0.0 if math.isinf(got) and got * want > 0 else INF
    return float(abs(mp.mpmathify(got) - want) / max(size, mp.mpf(float(info.tiny))) / mp.mpf(float(info.eps)))


def unit(arity: int, *which: int) -> list[int]:
    return [which.count(k) for k in range(arity)]


# --- that every row is here --------------------------------------------------------------------------------------


def test_every_row_has_an_entry_for_each_operand():
    assert sorted(PARTIALS) == sorted(TABLE)
    for name, row in TABLE.items():
        assert row.partials is PARTIALS[name] and len(row.partials) == row.arity
        for rule in filter(None, () if row.borrowed else row.partials):
            assert len(inspect.signature(rule).parameters) == row.arity + 2


def test_rows_without_slopes():
    """Integers, truth values and steps; and what differentiation treats itself."""
    flat = {name for name, rules in PARTIALS.items() if not any(rules)}
    steps = {"floordiv", "sign", "floor", "ceil", "rint", "trunc", "mul_error"}
    no_numbers = {n for n, row in TABLE.items() if row.result is not TABLE["convert"].result and not is_inexact(n)}
    assert flat == steps | no_numbers | {n for n, row in TABLE.items() if row.own_rule} | {"stop_gradient"}
    elsewhere = {
        n for n, row in TABLE.items() if row.patterns or row.borrowed
    }  # test_exact_numbers.py, test_borrowed.py
    assert set(SMOOTH) | set(FIRST_WINS) | {"nextafter"} == set(PARTIALS) - flat - elsewhere


def is_inexact(name: str) -> bool:
    """Whether a row gives a float or complex number for one."""
    row = TABLE[name]
    dtype = next((d for d in row.dtypes if d.is_float or d.is_complex), DType.bool)
    return row.result([dtype] * row.arity) in (DType.f32, DType.f64, DType.c64, DType.c128)


# --- slopes, and slopes of slopes --------------------------------------------------------------------------------


@pytest.mark.sampled(3)
@pytest.mark.parametrize("name, k, dtype", SLOPES)
def test_slopes(name: str, k: int, dtype: DType):
    case, arity = SMOOTH[name], TABLE[name].arity
    for point in case.grid(arity, dtype):
        want = derivative(case, point, unit(arity, k))
        got = slope(name, k, point, dtype)
        assert error(got, want, dtype) <= case.ulps + case.condition(*point), (point, got, mp.nstr(want, 20))


@pytest.mark.sampled(10)
@pytest.mark.parametrize("name, k, dtype", [p for p in SLOPES if p.values[2] is not DType.f32])
def test_slopes_of_slopes(name: str, k: int, dtype: DType):
    """To 1e-13 of the terms that they are made of, of which the slope over x is one."""
    case, arity = SMOOTH[name], TABLE[name].arity
    for point, m in itertools.product(case.grid(arity, dtype), range(arity)):
        if PARTIALS[name][m] is None or not all(1e-20 < abs(x) < 1e20 for x in point):
            continue
        first = derivative(case, point, unit(arity, k))
        want = derivative(case, point, unit(arity, k, m))
        got = second(name, k, m, point, dtype)
        scale = abs(want) + abs(first) * (1 + 1 / abs(point[m])) * (1 + case.condition(*point))
        assert abs(got - want) <= 1e-13 * scale, (point, m, got, mp.nstr(want, 20))
        if dtype.is_float:
            back = second_reverse(name, k, point)[m]  # in another order, in which products may underflow
            assert abs(back - want) <= 1e-13 * max(scale, 1e-150), (point, m, back, mp.nstr(want, 20))


@pytest.mark.parametrize("x", [-2.0, -0.5])
@pytest.mark.parametrize("y", [-3.0, -2.0, -1.0, 0.0, 1.0, 2.0, 3.0])
def test_powers_of_negative_numbers(x: float, y: float):
    assert slope("pow", 0, (x, y)) == pytest.approx(y * x ** (y - 1), rel=1e-15)
    assert second("pow", 0, 0, (x, y)) == pytest.approx(y * (y - 1) * x ** (y - 2), rel=1e-15)
    assert slope("pow", 1, (x, y)) == 0


CUTS = {
    "sqrt": -2.0, "log": -2.0, "log10": -2.0, "asin": 2.0, "acos": 2.0, "asinh": 2j, "acosh": 0.5, "atan": 2j, "atanh": 2.0,
}  # fmt: skip


@pytest.mark.parametrize("name, at", [(n, z * s) for n, z in CUTS.items() for s in (1, -1)])
def test_branch_cuts_belong_to_the_side_of_the_sign_of_zero(name: str, at: complex):
    """The slope on a cut is that beside it. `acosh` has no cut right of 1, nor `sqrt` and `log` right of 0."""
    for sign in (1.0, -1.0):
        if isinstance(at, complex):
            on, beside = complex(math.copysign(0, sign), at.imag), complex(sign * 1e-30, at.imag)
        else:
            on, beside = complex(at, math.copysign(0, sign)), complex(at, sign * 1e-30)
        got, want = (slope(name, 0, (z,), DType.c128) for z in (on, beside))
        assert abs(got - want) <= 1e-15 * abs(want), (on, got, want)


# --- where the slope is a choice (Note [Choices] in ops/partials.py) ---------------------------------------------

KINKS = [
    ("abs", (0.0,), (0.0,)), ("abs", (-0.0,), (0.0,)), ("abs", (-2.0,), (-1.0,)),
    ("sqrt", (0.0,), (INF,)), ("cbrt", (0.0,), (INF,)), ("rsqrt", (0.0,), (-INF,)),
    ("log", (0.0,), (INF,)), ("log1p", (-1.0,), (INF,)), ("div", (1.0, 0.0), (INF, -INF)),
    ("asin", (1.0,), (INF,)), ("asin", (-1.0,), (INF,)), ("acos", (1.0,), (-INF,)), ("acos", (-1.0,), (-INF,)),
    ("acosh", (1.0,), (INF,)), ("atanh", (1.0,), (INF,)), ("atanh", (-1.0,), (INF,)),
    ("logit", (0.0,), (INF,)), ("logit", (1.0,), (INF,)), ("tanh", (1000.0,), (0.0,)), ("tanh", (INF,), (0.0,)),
    ("exp", (-INF,), (0.0,)), ("expit", (-1000.0,), (0.0,)), ("expit", (INF,), (0.0,)), ("atan", (INF,), (0.0,)),
    ("erf", (INF,), (0.0,)), ("asinh", (INF,), (0.0,)), ("gammaln", (INF,), (INF,)),
    ("hypot", (0.0, 0.0), (0.0, 0.0)), ("atan2", (0.0, 0.0), (0.0, 0.0)), ("atan2", (0.0, -1.0), (-1.0, 0.0)),
    ("pow", (0.0, 0.0), (0.0, 0.0)), ("pow", (0.0, 1.0), (1.0, 0.0)), ("pow", (0.0, 2.0), (0.0, 0.0)),
    ("pow", (0.0, 0.5), (INF, 0.0)), ("pow", (3.0, 0.0), (0.0, math.log(3))), ("pow", (-3.0, 0.0), (0.0, 0.0)),
    ("xlogy", (0.0, 0.0), (-INF, 0.0)), ("xlogy", (0.0, 2.0), (math.log(2), 0.0)), ("xlogy", (2.0, 0.0), (-INF, INF)),
    ("logaddexp", (-INF, -INF), (0.5, 0.5)), ("logaddexp", (INF, INF), (0.5, 0.5)),
    ("logaddexp", (-INF, 1.0), (0.0, 1.0)), ("logaddexp", (3.0, 3.0), (0.5, 0.5)),
    ("copysign", (2.0, -0.0), (-1.0, 0.0)), ("copysign", (-0.0, -1.0), (1.0, 0.0)), ("copysign", (-2.0, -1.0), (1.0, 0.0)),
    ("nextafter", (1.0, 2.0), (1.0, 0.0)), ("mod", (-1.0, INF), (1.0, 1.0)), ("fmod", (5.0, INF), (1.0, 0.0)),
    ("ieee_remainder", (5.0, INF), (1.0, 0.0)), ("ieee_remainder", (5.0, 2.0), (1.0, -2.0)),
]  # fmt: skip
# What wins: the first of (1, 2), (2, 1), (2, 2), (0.0, -0.0), (-0.0, 0.0), (nan, 1), (1, nan), (nan, nan).
PAIRS = ((1.0, 2.0), (2.0, 1.0), (2.0, 2.0), (0.0, -0.0), (-0.0, 0.0), (NAN, 1.0), (1.0, NAN), (NAN, NAN))
FIRST = {
    "min": "10111111", "max": "01111111", "minimum": "10111101", "maximum": "01111101",
    "fmin": "10111011", "fmax": "01111011",
}  # fmt: skip
KINKS += [
    (name, pair, (1.0, 0.0) if wins == "1" else (0.0, 1.0))
    for name, all_wins in FIRST.items()
    for pair, wins in zip(PAIRS, all_wins, strict=True)
]


@pytest.mark.parametrize("dtype", [DType.f64, DType.f32])
@pytest.mark.parametrize("name, point, expected", KINKS)
def test_kinks(name: str, point: tuple[float, ...], expected: tuple[float, ...], dtype: DType):
    for k, want in enumerate(expected):
        got = slope(name, k, point, dtype) if PARTIALS[name][k] else 0.0
        assert got == const(want, dtype).value, (k, got)


@pytest.mark.parametrize("name", FIRST_WINS)
def test_the_winner_is_the_result(name: str):
    for x, y in PAIRS:
        atoms = const(x, DType.f64), const(y, DType.f64)
        wins = FIRST_WINS[name](evaluate, *atoms).value
        assert repr(evaluate(name, *atoms).value) == repr(x if wins else y)


@pytest.mark.parametrize(
    "name", [n for n in SMOOTH if n not in ("copysign", "mod", "fmod", "ieee_remainder", "abs", "polygamma")]
)
def test_nan_stays_nan(name: str):
    """Where the slope depends on the operand at all."""
    arity = TABLE[name].arity
    for k, m in itertools.product(range(arity), repeat=2):
        point = [2.0 if name != "logit" else 0.5] * arity
        constant = slope(name, k, point) == slope(name, k, [x / 2 if m == j else x for j, x in enumerate(point)])
        point[m] = NAN
        assert math.isnan(slope(name, k, point)) or constant, (k, m)


# In x and y: what the slopes in x and in y have for slopes. Every entry is finite: nothing is 0 times infinity.
CURVES = [
    ("pow", (0.0, 2.0), ((2.0, None), (0.0, 0.0))),
    ("pow", (0.0, 1.0), ((0.0, None), (0.0, 0.0))),
    ("pow", (0.0, 3.0), ((0.0, 0.0), (0.0, 0.0))),
    ("pow", (0.0, 0.0), ((0.0, 0.0), (0.0, 0.0))),
    ("pow", (2.0, 0.0), ((0.0, 0.5), (0.5, math.log(2) ** 2))),
    ("pow", (-2.0, 0.0), ((0.0, -0.5), (0.0, 0.0))),
    ("hypot", (0.0, 0.0), ((0.0, 0.0), (0.0, 0.0))),
    ("hypot", (INF, 2.0), ((0.0, 0.0), (0.0, 0.0))),
    ("atan2", (0.0, 0.0), ((0.0, 0.0), (0.0, 0.0))),
    ("atan2", (2.0, -INF), ((0.0, 0.0), (0.0, 0.0))),
    ("sinc", (0.0,), ((-1 / 3,),)),
    ("asin", (1.0,), ((INF,),)),
    ("asin", (-1.0,), ((-INF,),)),
    ("atanh", (1.0,), ((INF,),)),
    ("acosh", (1.0,), ((-INF,),)),
    ("logit", (0.0,), ((-INF,),)),
    ("cbrt", (0.0,), ((-INF,),)),
    ("cbrt", (-0.0,), ((INF,),)),
    ("atan", (INF,), ((0.0,),)),
    ("erf", (-INF,), ((0.0,),)),
    ("logaddexp", (-INF, -INF), ((0.0, 0.0), (0.0, 0.0))),
    ("logaddexp", (3.0, 3.0), ((0.25, -0.25), (-0.25, 0.25))),
    ("tanh", (0.0,), ((0.0,),)),
    ("expit", (0.0,), ((0.0,),)),
    ("sqrt", (0.0,), ((-INF,),)),
]


@pytest.mark.parametrize("name, point, expected", CURVES)
def test_curvature_at_kinks(name: str, point: tuple[float, ...], expected: tuple[tuple[float | None, ...], ...]):
    for k, row in enumerate(expected):
        back = second_reverse(name, k, point)
        for m, want in enumerate(row):
            ahead = second(name, k, m, point)
            if want is None:  # there is no slope: any number will do
                assert math.isfinite(ahead) and math.isfinite(back[m]), (k, m, ahead, back[m])
            else:
                assert ahead == pytest.approx(want, rel=1e-15), (k, m)
                assert back[m] == pytest.approx(want, rel=1e-15), (k, m)


@pytest.mark.parametrize(
    "name, point, expected",
    [
        ("tanh", (0.0,), -2.0), ("expit", (0.0,), -0.125), ("pow", (0.0, 3.0), 6.0), ("pow", (0.0, 2.0), 0.0),
        ("pow", (0.0, 1.0), 0.0), ("pow", (-2.0, 4.0), -48.0), ("sin", (0.0,), -1.0), ("erf", (0.0,), -4 / math.sqrt(math.pi)),
        ("asinh", (0.0,), -1.0), ("log", (2.0,), 0.25), ("digamma", (1.0,), float(mpmath.polygamma(3, 1))),
    ],
)  # fmt: skip
def test_third_derivatives(name: str, point: tuple[float, ...], expected: float):
    """In the first operand, with the second one constant: through two layers of tangents."""
    one, zero = one_of(DType.f64), zero_of(DType.f64)
    twice = Forward(Forward())
    x, *others = (const(v, DType.f64) for v in point)
    x = Dual(Dual(x, one), Dual(one, zero))
    factor = PARTIALS[name][0](twice, twice(name, x, *others), x, *others)
    got = factor.tangent.tangent if isinstance(factor, Dual) and isinstance(factor.tangent, Dual) else zero
    assert got.value == pytest.approx(expected, rel=1e-14, abs=1e-300)
