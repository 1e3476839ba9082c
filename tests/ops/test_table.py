"""Every row of the ops table against Python's own numbers and mpmath, in every element type that it takes.

Sample points are short binary fractions, so that arithmetic on them is exact in f32 too. Rows that round are compared
with a reference of 30 digits; the others must agree to the last bit and the sign of a zero.
"""

import cmath
import ctypes
import ctypes.util
import itertools
import math
import operator
import struct
from collections.abc import Callable, Sequence
from dataclasses import dataclass
from fractions import Fraction

import mpmath
import numpy as np
import pytest
from scipy.special import cython_special

from tapeless.ir.types import DType
from tapeless.ops import op as schema
from tapeless.ops.evaluations import ON_SCALARS
from tapeless.ops.table import FAMILIES, TABLE, op

pytestmark = pytest.mark.filterwarnings("error")

INF, NAN = math.inf, math.nan
ANY = (-3.5, -1.0, -0.25, 0.0, 0.5, 2.0, 7.75)
NONZERO = tuple(x for x in ANY if x)
POSITIVE = (0.0625, 0.5, 1.0, 2.75, 40.0)
UNIT = (-0.75, -0.125, 0.0, 0.25, 0.875)
INSIDE = (0.125, 0.4375, 0.5, 0.875)
ABOVE_ONE = (1.0, 1.5, 9.25)
SPECIALS = (NAN, INF, -INF, 0.0, -0.0, -1.5, 2.0)
ORDERED = tuple(x for x in SPECIALS if not math.isnan(x))
INTEGERS = (-7, -2, -1, 0, 1, 3, 5)
COMPLEX = (0.5 + 0.25j, -1.5 + 2j, 0.75 - 1.25j, -0.5 - 0.125j)


@dataclass(frozen=True)
class Case:
    """`points` are for the first operand in floating types, `second` for the second. `exact`: to the bit,
    as integers always are."""

    reference: Callable[..., object]
    points: Sequence[float] = ANY
    second: Sequence[float] | None = None
    exact: bool = True
    integers: Sequence[int] = INTEGERS
    second_integers: Sequence[int] | None = None

    def operands(self, arity: int, dtype: DType) -> list[tuple[bool | int | float | complex, ...]]:
        if dtype is DType.bool:
            columns = [(False, True)] * arity
        elif dtype.is_int:
            given = [self.integers, self.second_integers or self.integers][:arity]
            columns = [[n for n in numbers if n >= dtype.lowest] for numbers in given]
        elif dtype.is_complex:
            columns = [COMPLEX] * arity
        else:
            columns = [self.points, self.second or self.points][:arity]
        return list(itertools.product(*columns))


def rounded(reference: Callable[..., object], points: Sequence[float] = ANY, second: Sequence[float] = ()) -> Case:
    return Case(lambda *args: reference(*map(mpmath.mpmathify, args)), points, second or None, exact=False)


def truncated_power(x: int, n: int) -> int:
    if n >= 0:
        return x**n
    return int(Fraction(x) ** n) if x else 0


def xlogy(x: mpmath.mpf, y: mpmath.mpf) -> object:
    return x * mpmath.log(y) if x else 0


CASES = {
    "add": Case(operator.add),
    "sub": Case(operator.sub),
    "mul": Case(operator.mul),
    "times": Case(operator.mul),
    "mul_rounded": Case(operator.mul),
    "mul_error": Case(lambda x, y: float(Fraction(x) * Fraction(y) - Fraction(x * y))),
    "neg": Case(operator.neg),
    "abs": Case(abs, exact=False),
    "sign": Case(lambda x: (x > 0) - (x < 0), (*ANY, -0.0, INF, -INF)),
    "div": rounded(operator.truediv, second=NONZERO),
    "quotient": rounded(operator.truediv, second=NONZERO),
    "floordiv": Case(operator.floordiv, (*ANY, -0.0, 6.0), NONZERO, second_integers=(-3, -1, 1, 2, 7)),
    "mod": Case(operator.mod, (*ANY, -0.0, 6.0), (*NONZERO, INF, -INF), second_integers=(-3, -1, 1, 2, 7)),
    "fmod": Case(math.fmod, (*ANY, -0.0, 6.0), (*NONZERO, INF)),
    "ieee_remainder": Case(math.remainder, (*ANY, -0.0, 6.0), (*NONZERO, INF)),
    "pow": rounded(operator.pow, POSITIVE, ANY),
    "ipow": Case(truncated_power),
    "square": Case(lambda x: x * x),
    "reciprocal": rounded(lambda x: 1 / x, NONZERO),
    "identity": Case(lambda x: x, SPECIALS),
    "stop_gradient": Case(lambda x: x, SPECIALS),
    "min": Case(min, SPECIALS),
    "max": Case(max, SPECIALS),
    "minimum": Case(lambda a, b: NAN if a != a or b != b else min(a, b), SPECIALS),
    "maximum": Case(lambda a, b: NAN if a != a or b != b else max(a, b), SPECIALS),
    "fmin": Case(lambda a, b: b if a != a else min(a, b), SPECIALS),
    "fmax": Case(lambda a, b: b if a != a else max(a, b), SPECIALS),
    "lt": Case(operator.lt, SPECIALS),
    "le": Case(operator.le, SPECIALS),
    "gt": Case(operator.gt, SPECIALS),
    "ge": Case(operator.ge, SPECIALS),
    "eq": Case(operator.eq, SPECIALS),
    "ne": Case(operator.ne, SPECIALS),
    "and": Case(operator.and_),
    "or": Case(operator.or_),
    "xor": Case(operator.xor),
    "not": Case(lambda x: not x if isinstance(x, bool) else ~x),
    "count_bits": Case(lambda x: x.bit_count(), integers=(0, 1, 5, 2**31 - 1)),
    "shl": Case(operator.lshift, second_integers=(0, 1, 5, 20)),
    "shr": Case(operator.rshift, second_integers=(0, 1, 5, 31)),
    "floor": Case(lambda x: math.copysign(math.floor(x), x)),
    "ceil": Case(lambda x: math.copysign(math.ceil(x), x)),
    "rint": Case(lambda x: math.copysign(round(x), x), (*ANY, -0.5, 1.5, 2.5)),
    "trunc": Case(lambda x: math.copysign(math.trunc(x), x)),
    "sqrt": rounded(mpmath.sqrt, (0.0, *POSITIVE)),
    "times_root": rounded(lambda x: x * mpmath.sqrt(x), POSITIVE),
    "rsqrt": rounded(lambda x: 1 / mpmath.sqrt(x), POSITIVE),
    "cbrt": rounded(lambda x: mpmath.sign(x) * mpmath.cbrt(abs(x))),
    "exp": rounded(mpmath.exp),
    "exp2": rounded(lambda x: mpmath.mpf(2) ** x),
    "expm1": rounded(mpmath.expm1, (*ANY, 2.0**-30)),
    "log": rounded(mpmath.log, POSITIVE),
    "log2": rounded(lambda x: mpmath.log(x, 2), POSITIVE),
    "log10": rounded(mpmath.log10, POSITIVE),
    "log1p": rounded(mpmath.log1p, (-0.75, 2.0**-30, 0.0, 3.5)),
    "sin": rounded(mpmath.sin),
    "cos": rounded(mpmath.cos),
    "tan": rounded(mpmath.tan),
    "asin": rounded(mpmath.asin, UNIT),
    "acos": rounded(mpmath.acos, UNIT),
    "atan": rounded(mpmath.atan),
    "sinh": rounded(mpmath.sinh),
    "cosh": rounded(mpmath.cosh),
    "tanh": rounded(mpmath.tanh),
    "loose_tanh": rounded(mpmath.tanh),
    "sech2": rounded(lambda x: mpmath.sech(x) ** 2),
    "sinc": rounded(mpmath.sinc),
    "one_minus_square": rounded(lambda x: (1 - x) * (1 + x)),
    "direction": rounded(lambda x, y: x / mpmath.hypot(x, y), second=NONZERO),
    "asinh": rounded(mpmath.asinh),
    "acosh": rounded(mpmath.acosh, ABOVE_ONE),
    "atanh": rounded(mpmath.atanh, UNIT),
    "atan2": rounded(mpmath.atan2, NONZERO),
    "hypot": rounded(mpmath.hypot),
    "logaddexp": rounded(lambda a, b: mpmath.log(mpmath.exp(a) + mpmath.exp(b))),
    "xlogy": rounded(xlogy, ANY, POSITIVE),
    "deg2rad": rounded(mpmath.radians),
    "rad2deg": rounded(mpmath.degrees),
    "erf": rounded(mpmath.erf),
    "erfc": rounded(mpmath.erfc),
    "gamma": rounded(mpmath.gamma, (*POSITIVE[:-1], -0.25, -3.5)),
    "gammaln": rounded(lambda x: mpmath.log(abs(mpmath.gamma(x))), (*POSITIVE, -0.25, -3.5)),
    "digamma": rounded(mpmath.digamma, (*POSITIVE, -0.25, -3.5)),
    "polygamma": rounded(mpmath.polygamma, (1.0, 2.0, 3.0, 12.0), (*POSITIVE, -0.25, -3.5, -70.75)),
    "expit": rounded(lambda x: 1 / (1 + mpmath.exp(-x))),
    "logit": rounded(lambda x: mpmath.log(x / (1 - x)), INSIDE),
    "isnan": Case(cmath.isnan, SPECIALS),
    "isinf": Case(cmath.isinf, SPECIALS),
    "isfinite": Case(cmath.isfinite, SPECIALS),
    "signbit": Case(lambda x: math.copysign(1, x) < 0, ORDERED),
    "copysign": Case(math.copysign, ORDERED),
    "nextafter": Case(math.nextafter),
    "real": Case(lambda z: z.real),
    "imag": Case(lambda z: z.imag),
    "conj": Case(lambda z: z.conjugate()),
    "angle": rounded(mpmath.arg),
    "complex": Case(complex, SPECIALS),
}
OTHERS = {"select", "convert", "pattern", "quotient_by"} | {
    name for name, row in TABLE.items() if row.patterns or row.borrowed
}
ROW_DTYPES = [
    pytest.param(name, dtype, id=f"{name}-{dtype!r}")
    for name in CASES
    for dtype in DType
    if dtype in TABLE[name].dtypes and (name, dtype) != ("nextafter", DType.f32)  # Python steps in f64 only
]


def test_bits_are_counted_of_twos_complement():
    for dtype in (DType.i32, DType.i64):
        counts = op("count_bits").numpy(np.array([-1, -2, dtype.lowest], dtype.numpy))
        assert counts.dtype == dtype.numpy and counts.tolist() == [8 * dtype.bytes, 8 * dtype.bytes - 1, 1]


def same(a: complex, b: complex) -> bool:
    """Equal to the sign of a zero, and NaN equals NaN."""

    def key(x: float) -> tuple[str, float]:
        return repr(float(x)), math.copysign(1, x) if x == x else 0

    return key(a.real) == key(b.real) and key(a.imag) == key(b.imag)


def near(got: np.generic, expected: object) -> bool:
    """Within eight units in the last place, relative to the number as a whole where it is complex."""
    eps = np.finfo(got.dtype).eps
    return abs(got - complex(expected)) <= 8 * eps * abs(complex(expected))


def test_every_row_is_here_once():
    names = [row.name for family in FAMILIES for row in family]
    assert sorted(names) == sorted(CASES | dict.fromkeys(OTHERS))
    assert all(op(name).name == name for name in names)


@pytest.mark.parametrize("name, dtype", ROW_DTYPES)
def test_values_and_types(name: str, dtype: DType):
    row, case = op(name), CASES[name]
    points = case.operands(row.arity, dtype)
    columns = [np.array(column, dtype.numpy) for column in zip(*points)]
    result = row.result([dtype] * row.arity).numpy

    together = row.numpy(*columns)
    assert together.shape == (len(points),) and together.dtype == result
    for args, element, *operands in zip(points, together, *columns):
        alone = row.numpy(*operands)
        assert isinstance(alone, np.generic) and alone.dtype == result, args
        with mpmath.workdps(30):
            expected = case.reference(*args)
        for got in (alone, element):
            assert same(got.item(), expected) if case.exact or dtype.is_int else near(got, expected), (
                args,
                got,
                expected,
            )


@pytest.mark.parametrize("name", [name for name in CASES if TABLE[name].arity == 2 and name != "times"])
def test_commutative_rows_and_no_others(name: str):
    def commutes(x: np.generic, y: np.generic) -> bool:
        return same(op(name).numpy(x, y).item(), op(name).numpy(y, x).item())

    pairs = [
        (dtype.numpy.type(x), dtype.numpy.type(y))
        for dtype in op(name).dtypes
        for x, y in itertools.combinations(CASES[name].operands(1, dtype), 2)
        for x, y in [(x[0], y[0])]
    ]
    assert all(commutes(x, y) for x, y in pairs) == op(name).commutative


@pytest.mark.parametrize("dtype", [DType.i32, DType.i64])
def test_integer_rows_are_total(dtype: DType):
    def evaluate(name: str, *args: int) -> int:
        results = {
            int(op(name).numpy(*(dtype.numpy.type(x) for x in args))),
            int(op(name).numpy(*(np.full(33, x, dtype.numpy) for x in args))[-1]),
        }
        assert len(results) == 1
        return results.pop()

    width = 8 * dtype.bytes
    least = -(1 << (width - 1))
    for x in (*INTEGERS, least):
        assert evaluate("floordiv", x, 0) == evaluate("mod", x, 0) == 0
        for shift in (width, width + 1, 1000, -1):
            assert evaluate("shl", x, shift) == 0
            assert evaluate("shr", x, shift) == (-1 if x < 0 else 0)
    assert evaluate("floordiv", least, -1) == least
    assert evaluate("mod", least, -1) == 0
    assert evaluate("neg", least) == evaluate("abs", least) == least
    assert evaluate("ipow", 3, 64) == (3**64 - least) % (1 << width) + least
    assert evaluate("ipow", least, -1) == 0


@pytest.mark.parametrize("dtype", [DType.f32, DType.f64])
@pytest.mark.parametrize(
    "name, args, expected",
    [
        ("div", (1.0, 0.0), INF), ("div", (1.0, -0.0), -INF), ("div", (0.0, 0.0), NAN),
        ("floordiv", (1.0, 0.0), INF), ("floordiv", (-1.0, 0.0), -INF), ("mod", (1.0, 0.0), NAN),
        ("mod", (INF, 2.0), NAN), ("fmod", (1.0, 0.0), NAN), ("pow", (0.0, 0.0), 1.0), ("pow", (-8.0, 0.5), NAN),
        ("sign", (NAN,), NAN), ("sqrt", (-1.0,), NAN), ("rsqrt", (0.0,), INF), ("log", (0.0,), -INF),
        ("log1p", (-1.0,), -INF), ("exp", (1e4,), INF), ("acosh", (0.5,), NAN), ("gamma", (0.0,), INF),
        ("gammaln", (0.0,), INF), ("expit", (-1e4,), 0.0), ("expit", (1e4,), 1.0), ("logit", (0.0,), -INF),
        ("logit", (1.0,), INF), ("xlogy", (0.0, 0.0), 0.0), ("xlogy", (0.0, NAN), NAN), ("xlogy", (2.0, 0.0), -INF),
        ("logaddexp", (-INF, -INF), -INF), ("logaddexp", (INF, INF), INF), ("logaddexp", (1000.0, 0.0), 1000.0),
        ("atan2", (0.0, -1.0), math.pi), ("atan2", (-0.0, -1.0), -math.pi), ("hypot", (INF, NAN), INF),
        ("polygamma", (1.0, 0.0), INF), ("polygamma", (1.0, -3.0), INF), ("polygamma", (2.0, -3.0), NAN),
        ("polygamma", (1.0, INF), 0.0), ("polygamma", (1.0, -INF), NAN), ("polygamma", (1.0, NAN), NAN),
        ("polygamma", (0.0, 1.0), NAN), ("polygamma", (1.5, 1.0), NAN), ("polygamma", (171.0, 1.0), NAN),
    ],
)  # fmt: skip
def test_float_rows_at_the_edge(name: str, args: tuple[float, ...], expected: float, dtype: DType):
    got = op(name).numpy(*map(dtype.numpy.type, args))
    assert same(got.item(), dtype.numpy.type(expected).item())


def test_nextafter_steps_by_one_bit():
    bits = np.array([1, 2, 0x3F800000, 0x7F7FFFFF], np.int32)
    up = op("nextafter").numpy(bits.view(np.float32), np.full(4, np.inf, np.float32))
    assert up.view(np.int32).tolist() == (bits + 1).tolist()


@pytest.mark.parametrize("dtype", list(DType))
def test_select(dtype: DType):
    row, (a, b) = op("select"), np.array([0, 1], dtype.numpy)
    assert row.result([DType.bool, dtype, dtype]) is dtype
    assert row.numpy(np.True_, a, b) == a and row.numpy(np.False_, a, b) == b
    assert row.numpy(np.True_, a, b).dtype == dtype.numpy
    assert row.numpy(np.array([True, False]), np.array([a, a]), np.array([b, b])).tolist() == [a, b]


@pytest.mark.parametrize(
    "source, value, target, expected",
    [
        ("f64", 2.9, "i64", 2), ("f64", -2.9, "i32", -2), ("f32", 2.5, "i64", 2), ("f64", 0.25, "bool", True),
        ("f64", -0.0, "bool", False), ("f64", NAN, "bool", True), ("f64", NAN, "i32", -(2**31)),
        ("f64", INF, "i64", -(2**63)), ("f64", 3e9, "i32", -(2**31)), ("f64", -3e9, "i32", -(2**31)),
        ("f64", 2147483647.5, "i32", 2**31 - 1), ("f64", 2.0**63, "i64", -(2**63)), ("f32", 1e30, "i64", -(2**63)),
        ("i64", 2**31, "i32", -(2**31)), ("i64", 2**53 + 1, "f64", 2.0**53), ("i32", 7, "c64", 7 + 0j),
        ("i64", 2, "bool", True), ("bool", True, "i32", 1), ("bool", True, "f32", 1.0), ("bool", True, "c128", 1 + 0j),
        ("c128", 2.75 - 3j, "f64", 2.75), ("c128", 2.75 - 3j, "i32", 2), ("c64", 3j, "bool", True),
        ("c64", 0j, "bool", False), ("c128", 0.1 + 0.1j, "c64", complex(np.complex64(0.1 + 0.1j))),
        ("f64", 0.1, "f32", float(np.float32(0.1))), ("f64", 1e300, "f32", INF), ("f32", 0.5, "f64", 0.5),
    ],
)  # fmt: skip
def test_convert(source: str, value: complex, target: str, expected: complex):
    x, dtype = DType(source).numpy.type(value), DType(target).numpy
    one, many = op("convert").numpy(x, dtype), op("convert").numpy(np.full(17, x), dtype)
    assert isinstance(one, np.generic) and one.dtype == many.dtype == dtype
    assert same(one.item(), expected) and same(many[-1].item(), expected)


def test_convert_has_no_result_type_of_its_own():
    with pytest.raises(TypeError, match="bound"):
        op("convert").result([DType.f64])


@pytest.mark.parametrize("name", ["identity", "real", "imag", "conj"])
def test_results_share_no_memory(name: str):
    x = np.ones(3, complex)
    assert not np.shares_memory(op(name).numpy(x), x)


LIBM = [row for row in TABLE.values() if isinstance(row.llvm, schema.Libm)]


@pytest.mark.parametrize("row", LIBM, ids=lambda row: row.name)
def test_libm_has_the_function_by_this_name(row: schema.Op):
    library = ctypes.CDLL(ctypes.util.find_library("m"))
    for dtype, suffix, c_type in ((DType.f64, "", ctypes.c_double), (DType.f32, "f", ctypes.c_float)):
        function = library[row.llvm.name + suffix]
        function.restype, function.argtypes = c_type, [c_type] * row.arity
        for args in CASES[row.name].operands(row.arity, dtype):
            got, expected = dtype.numpy.type(function(*args)), row.numpy(*map(dtype.numpy.type, args))
            assert same(got.item(), expected.item()) or near(got, expected), args


@pytest.mark.parametrize("row", LIBM, ids=lambda row: row.name)
def test_libmvec_has_the_vector_functions(row: schema.Op):
    try:
        library = ctypes.CDLL("libmvec.so.1")
    except OSError:
        pytest.skip("no libmvec here")
    names = [f"_ZGVbN{width}{'v' * row.arity}_{row.llvm.name}{suffix}" for width, suffix in ((2, ""), (4, "f"))]
    assert all(hasattr(library, name) == row.llvm.vector for name in names)


@pytest.mark.parametrize(
    "name", [r.name for r in TABLE.values() if isinstance(r.llvm, schema.Foreign) and not r.borrowed]
)
def test_scipy_has_the_foreign_function(name: str):
    function = getattr(cython_special, op(name).llvm.name)
    for (x,) in CASES[name].operands(1, DType.f64):
        assert same(function(x), op(name).numpy(np.float64(x)).item())


@pytest.mark.parametrize("dtype, width", [(DType.f32, ("<f", "<i")), (DType.f64, ("<d", "<q"))])
def test_patterns(dtype: DType, width: tuple[str, str]):
    for x in SPECIALS:
        (expected,) = struct.unpack(width[1], struct.pack(width[0], x))
        assert op("pattern").numpy(dtype.numpy.type(x)).item() == expected


@pytest.mark.parametrize("name", ON_SCALARS)
def test_shortcuts_are_the_rows(name):
    """Of two equal zeros either may be given: sizes have no sign."""
    row = TABLE[name]
    for dtype in sorted(row.dtypes & {DType.i64, DType.f64, DType.bool}, key=str):
        numbers = {DType.i64: (-7, 0, 3, 2**40), DType.bool: (False, True)}.get(dtype, (-1.5, 0.0, 2.0, np.inf, np.nan))
        for a, b in itertools.product([dtype.numpy.type(n) for n in numbers], repeat=2):
            with np.errstate(all="ignore"):
                found, expected = ON_SCALARS[name](a, b), row.numpy(a, b)
            assert found.dtype == expected.dtype and np.array_equal(
                found, expected, equal_nan=found.dtype.kind == "f"
            ), (a, b)
