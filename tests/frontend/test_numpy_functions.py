"""Functions that compiled code may call: each as Core in the reference evaluator against plain NumPy.

Values, element types and shapes are compared; arguments that are written, too.
"""

import cmath
import linecache
import math
from typing import Any, NamedTuple

import numpy as np
import pytest
import scipy.special as sp
from scipy.special import expit, logsumexp

from tapeless.errors import CompileError, ShapeError
from tapeless.frontend.state.context import Options
from tests.frontend.tracing import check, run
from tests.quick import unoptimized  # noqa: F401  (for all tests here)

V = np.array([0.5, -1.25, 3.0, 2.0])
W = np.array([1.5, 2.5, -0.5, 2.0])
P = np.array([0.5, 0.25, 0.125, 0.75])
V32, W32, P32 = V.astype("f4"), W.astype("f4"), P.astype("f4")
I = np.array([3, -7, 0, 5])
J = np.array([2, 3, 5, -4])
I32 = I.astype("i4")
B = np.array([True, False, True, True])
C = np.array([False, False, True, True])
M = np.arange(12.0).reshape(3, 4) / 7 - 0.6
M32 = M.astype("f4")
K = np.arange(12).reshape(3, 4) % 5
T = np.arange(24.0).reshape(2, 3, 4)
Z = np.array([1 + 2j, -0.5j, 3.0, -1 - 1j])
Z64 = Z.astype("c8")
E = np.zeros(0)
E23 = np.zeros((0, 3))
NAN = np.array([1.0, np.nan, -np.inf, np.inf, -0.0])
A = np.array([[4.0, 1.0, 0.5], [1.0, 5.0, 2.0], [0.5, 2.0, 6.0]])
AA = np.stack([A, A @ A])
AZ = A + 0.5j * (A - A.T + np.eye(3))

UNARY = "sin cos tan sinh cosh tanh exp exp2 expm1 arctan arcsinh sqrt cbrt square abs fabs sign floor ceil rint trunc"
UNARY += " negative positive deg2rad rad2deg radians degrees isnan isinf isfinite signbit logical_not sinc conj"
POSITIVE = "log log2 log10 log1p arcsin arccos arctanh reciprocal"
BINARY = (
    "add subtract multiply divide maximum minimum fmax fmin arctan2 hypot copysign logaddexp floor_divide remainder"
)
BINARY += " mod fmod heaviside nextafter float_power equal not_equal less less_equal greater greater_equal"
BINARY += " logical_and logical_or logical_xor true_divide"
BITS = "bitwise_and bitwise_or bitwise_xor maximum minimum add multiply logical_xor equal less"
COMPLEX = "sin cos exp log sqrt tanh arcsin arctan square abs conj angle real imag negative log10 isnan sign reciprocal"
SPECIAL = "erf erfc gammaln digamma psi gamma expit log1p expm1 entr ndtr"
MATH = "sqrt exp expm1 log log2 log10 log1p sin cos tan asin acos atan sinh cosh tanh asinh atanh erf erfc gamma lgamma"
MATH += " fabs degrees radians isnan isinf isfinite floor ceil cbrt exp2 ulp modf"
CMATH = "sqrt exp log log10 sin cos tan asin acos atan sinh cosh tanh asinh acosh atanh phase polar isnan"


@pytest.mark.parametrize("name", UNARY.split())
def test_unary(name):
    f = getattr(np, name)
    for x in (V, V32, I, I32, M, E, NAN, 0.5, 2, np.float32(0.25)):
        check(lambda a: f(a), x)


@pytest.mark.parametrize("name", POSITIVE.split())
def test_positive(name):
    f = getattr(np, name)
    for x in (P, P32, 0.5, np.float32(0.25)):
        check(lambda a: f(a), x)


PAIRS = [(V, W), (V32, W32), (I, J), (I32, J), (V32, 2.5), (I32, 2), (I, 2.5), (3, 2), (M, V), (V32, V), (NAN, 1.0)]


@pytest.mark.parametrize("name", BINARY.split())
def test_binary(name):
    f = getattr(np, name)
    for x, y in PAIRS:
        check(lambda a, b: f(a, b), x, y)


@pytest.mark.parametrize("name", BITS.split())
def test_bits(name):
    f = getattr(np, name)
    for x, y in [(I, J), (B, C), (I32, J), (B, I)]:
        check(lambda a, b: f(a, b), x, y)


@pytest.mark.parametrize("name", COMPLEX.split())
def test_complex(name):
    f = getattr(np, name)
    for x in (Z[:2], Z64):
        check(lambda a: f(a), x)


@pytest.mark.parametrize("name", SPECIAL.split())
def test_special(name):
    f = getattr(sp, name)
    for x in (P, P32, 2, 0.5):
        check(lambda a: f(a), x)


@pytest.mark.parametrize("name", MATH.split())
def test_math(name):
    f = getattr(math, name)
    for x in (0.5, np.float32(0.25), np.float64(0.75)):
        check(lambda a: f(a), x)


@pytest.mark.parametrize("name", CMATH.split())
def test_cmath(name):
    f = getattr(cmath, name)
    for x in (0.5 + 0.25j, 2.0):
        check(lambda a: f(a), x)


class Point(NamedTuple):
    x: Any
    y: Any = 2.0


ELEMENTWISE = [
    (lambda a: np.where(a > 0, a, 0.0), V32),
    (lambda a: np.where(a > 0, 1, 0), V),
    (lambda a, b: np.where(a, b, 2.5), B, I),
    (lambda a: np.where(a > 0, 1.0, 2), 3.0),
    (lambda a: np.clip(a, -1, 1), V32),
    (lambda a: np.clip(a, None, 1.0), V),
    (lambda a: np.clip(a, 0, None), I),
    (lambda a: np.clip(a, 0.5, 2.5), I),
    (lambda a: np.clip(a, min=0.0, max=1.0), V),
    (lambda a: a.clip(0.0, 1.0), V),
    (lambda a: np.clip(a, 1, 2), 3),
    (lambda a: np.round(a, 1), V32),
    (lambda a: np.round(a * 100, -1), V),
    (lambda a: np.round(a), I),
    (lambda a: a.round(1), V),
    (lambda a: np.power(a, 2), V),
    (lambda a: np.power(a, 3), I),
    (lambda a: np.power(a, 0.5), P32),
    (lambda a, b: np.power(a, b), P, V),
    (lambda a, b: np.left_shift(a, 2) + np.right_shift(b, 1), I, J),
    (lambda a: np.invert(a), I32),
    (lambda a: np.invert(a), B),
    (lambda a, b: np.divmod(a, b), I, J),
    (lambda a: np.modf(a), V),
    (lambda a: np.nan_to_num(a), NAN),
    (lambda a: np.nan_to_num(a, nan=1.0, posinf=2.0, neginf=3.0), NAN),
    (lambda a: np.isclose(a, 3.0), V),
    (lambda a, b: np.allclose(a, b), V, V + 1e-12),
    (lambda a: np.array_equal(a, a), V),
    (lambda a: np.real(a), V),
    (lambda a: np.imag(a), V),
    (lambda a: a.real + a.imag, Z),
    (lambda a: a.conj() * a.conjugate(), Z),
    (lambda a: a.conjugate() + a.real, 1 + 2j),
    (lambda a: np.angle(a), V32),
    (lambda a: np.select([a > 1, a > 0], [a, 2 * a], -1.0), V),
    (lambda a, b: np.add(a, b, out=a), V, W),
    (lambda a, b: np.multiply(a, b, a), V32, 2.0),
    (lambda a: np.fix(a), V),
    (lambda x, y: sp.xlogy(x, y), np.array([0.0, 2.0]), np.array([0.0, 3.0])),
    (lambda x: sp.logit(x) + expit(x), P32),
    (lambda x, y: sp.xlog1py(x, y) + sp.betaln(x + 1, y + 1), P, P),
    (lambda a: np.sin([a, 2.0]), 1.0),
    (lambda a: np.add(1, 2) + a, np.int32(3)),
    (lambda a: np.float32(a) + np.float64(1), 2),
    (lambda a: np.float32(a), V),
    (lambda a: np.int32(a), V),
    (lambda a: np.bool_(a), V),
    (lambda a: np.complex64(a), V),
    (lambda a: np.int64(a) + np.float64(), 2.7),
    (lambda a: a + np.float64("inf"), 2.7),
    (lambda a: np.finfo(a.dtype).eps * a, V32),
    (lambda a: np.iinfo(np.int32).max + a, 1),
]

PYTHON = [
    (lambda x, y: math.atan2(x, y) + math.hypot(x, y) + math.copysign(x, -y), 0.5, 2.0),
    (lambda x: math.log(x, 2) + math.log(x), 8.0),
    (lambda x: math.pow(x, 2) + math.fmod(x, 1.5) + math.nextafter(x, 3.0), 2.25),
    (lambda x: (math.floor(x), math.ceil(x), math.trunc(x)), -2.5),
    (lambda x: (math.floor(x), math.gcd(x, 12), math.lcm(x, 4), math.factorial(5)), 18),
    (lambda n: (math.isqrt(n), math.comb(n, 3), math.gcd(n, n + 5, 10)), 40),
    (lambda x, y: (math.remainder(x, y), math.remainder(-x, y), math.remainder(x, 2.0)), 7.5, 3.0),
    (lambda n: (math.perm(n, 3), math.perm(n, 0), math.perm(3, n)), 7),
    (lambda x: math.isclose(x, 1.0), 1.0 + 1e-12),
    (lambda x: math.prod((x, 2, 3.0)) + math.dist((x, 0.0), (0.0, 1.0)), 2.0),
    (lambda a: math.prod(a), V),
    (lambda x: math.ldexp(x, 5) + math.hypot(x, 1.0, 2.0), 0.75),
    (lambda x: math.sqrt(2.0) * x + math.pi + math.inf, 1.0),
    (lambda x: math.exp(x) + math.acosh(2.0), 1),
    (lambda z: cmath.rect(2.0, 0.5) + cmath.log(z, 2), 1 + 1j),
    (lambda a: len(a), V),
    (lambda a: len(a.shape) + len((1, 2)) + len(range(3, 9, 2)), M),
    (lambda x, y: min(x, y) + max(x, y, 3), 2, 5.5),
    (lambda x, y: (min(x, y), max(x, y)), 2, 5),
    (lambda x, y: (min(x, y), max(x, y)), 2.0, math.nan),
    (lambda a: (min(a), max(a)), V),
    (lambda a: max(a), I32),
    (lambda x: max((x, 2.0, 3.0)), 2.5),
    (lambda a: max(a, 0.0), np.float32(2.0)),
    (lambda a: sum(a), V),
    (lambda a: sum(a), V32),
    (lambda a: sum(a), I32),
    (lambda a: sum(a, 2.5), I),
    (lambda a: sum(a), M),
    (lambda a: sum(a), B),
    (lambda n: sum(range(n)), 10),
    (lambda x: sum((x, 2, 3.5)), 1),
    (lambda a: sum(x * x for x in (a, 2.0)), 3.0),
    (lambda x: (abs(x), abs(-3), round(x), round(x, 1), pow(x, 2)), -2.25),
    (lambda a: abs(a), V32),
    (lambda a: abs(a), Z),
    (lambda z: abs(z), 3 + 4j),
    (lambda x: (round(x), round(2.5), round(3.5)), np.float64(0.5)),
    (lambda x: (int(x), float(x), bool(x), complex(x)), -2.75),
    (lambda x: (int(x), float(x), bool(x), complex(x, 2)), np.int32(3)),
    (lambda x: (0, 0.0, False, x), 1),
    (lambda x: x + float("inf"), 1.0),
    (lambda x: x + int("12"), 1),
    (lambda x, y: (divmod(x, y), divmod(-x, 2)), 7.5, 2.0),
    (lambda x, y: divmod(x, y), -7, 2),
    (lambda x: tuple(range(3)) + (x,), 1),
    (lambda x: list((x, 2)) + [3], 1),
    (lambda x: (isinstance(x, float), isinstance(x, int), isinstance(x, (int, float)), isinstance(x, np.ndarray)), 1.5),
    (lambda x: (isinstance(x, float), isinstance(x, np.floating), isinstance(x, np.generic)), np.float64(1.5)),
    (lambda a: (isinstance(a, np.ndarray), isinstance((a, 1), tuple), isinstance(None, type(None))), V),
    (lambda x, y: (any((x > 1, y > 1)), all((x > 1, y > 1))), 0.5, 2.0),
    (lambda a: (any(a > 1), all(a > 1)), V),
    (lambda p: Point(p) if True else p, 3.0),
    (lambda p: Point(x=p, y=1).y + Point(p).x, 3.0),
    (lambda a: (np.shape(a), np.ndim(a), np.size(a), np.size(a, 1), np.isscalar(a[0, 0])), M),
    (lambda d: sum(d.values()) + d.get("b", 3.0) + d.get("c", 5.0), {"a": 1.0, "b": 2.0}),
    (lambda x: x.real, 2.5),
    (lambda a: a[slice(1, 3)], V),
    (lambda a: (a[0].item(), a.item(1), a[0].astype(np.int32)), V32),
    (lambda x: (x.is_integer(), (x + 0.5).is_integer()), 2.0),
    (lambda n: (n.bit_count(), (-n).bit_count(), (n > 0).bit_count()), 1023),
    (
        lambda a: (np.bitwise_count(a), a[1].bit_count(), np.bitwise_count(a > 0)),
        np.array([-(2**63), -1, 0, 5, 2**62 + 1]),
    ),
    (lambda a: np.bitwise_count(a), np.array([-128, -1, 127], np.int8)),
    (
        lambda a: (np.gcd(a, a[::-1]), np.lcm(a, a[::-1]), np.gcd(a, 12), np.gcd(a[0], a[1])),
        np.array([-128, -1, 12, 18, 0], np.int8),
    ),
    (lambda a: (np.gcd(a, a[::-1]), np.lcm(a, 3)), np.array([2**64 - 6, 2**63, 9, 0], np.uint64)),
    (lambda a: (np.gcd(a, 6), np.lcm(a, a[::-1])), np.array([-(2**63), 4, 6, 2**62])),
    (lambda a: np.bitwise_count(a), np.array([2**64 - 1, 2**63, 0], np.uint64)),
]


def empty_then_filled(a):
    b, c = np.empty_like(a), np.empty(a.shape, dtype=np.int32)
    b[...] = 1.5
    c.fill(2)
    return b * c


CREATION = [
    (lambda n: np.zeros(n), 3),
    (lambda n: np.zeros((n, 2), dtype=np.float32), 3),
    (lambda n: np.ones((2, n), np.int32), 3),
    (lambda n: np.ones(n, dtype=bool), 3),
    (lambda n: np.ones(n, dtype="complex64"), 3),
    (lambda n: np.full(n, 2), 3),
    (lambda n: np.full((n, 2), 2.5), 3),
    (lambda n, x: np.full((n, 2), x, dtype=np.float32), 3, 1.5),
    (lambda n: np.full((n, 2), [1.0, 2.0]), 3),
    (lambda a: np.zeros_like(a) + np.ones_like(a) + np.full_like(a, 2.5), M32),
    (lambda a: np.zeros_like(a, dtype=np.int64), M),
    (lambda a: np.full_like(a, 7), I32),
    (empty_then_filled, M32),
    (lambda n: np.zeros(0), 1),
    (lambda a: np.array(a), V32),
    (lambda x: np.array([x, 1, 2.0]), 1),
    (lambda x: np.array([[x, 1], [2, 3]]), np.float32(2)),
    (lambda x: np.array([x, 1], dtype=np.float32), 2),
    (lambda x: np.array((x, True)), True),
    (lambda a, b: np.array([a, b, a]), V, V32),
    (lambda x: np.array(x) + 1, 2.5),
    (lambda x: np.array(range(4)), 2.5),
    (lambda a: np.array([a], ndmin=2), V),
    (lambda a: np.asarray(a, dtype=np.float32), V),
    (lambda a: np.ascontiguousarray(a.T), M),
    (lambda a: np.copy(a[1:]), V),
    (lambda a: np.atleast_1d(a) + np.atleast_2d(a), V),
    (lambda a: np.atleast_1d(a), 2.5),
    (lambda n: np.arange(n), 5),
    (lambda n: np.arange(-n), 5),
    (lambda n: np.arange(2, n), 7),
    (lambda n: np.arange(n, 2, -2), 9),
    (lambda n: np.arange(1, n, 3), 9),
    (lambda n, k: np.arange(1, n, k), 9, 4),
    (lambda n: np.arange(n, dtype=np.float32), 4),
    (lambda n: np.arange(n, dtype=np.int32), 4),
    (lambda x: np.arange(0.0, x, 0.1), 1.0),
    (lambda x: np.arange(x), 3.5),
    (lambda x: np.arange(1, x, -0.5), -1.0),
    (lambda x: np.arange(1, x, 0.5), -1.0),
    (lambda x: np.linspace(0, x, 5), 1.0),
    (lambda x: np.linspace(0, x, 5), np.float32(1)),
    (lambda x, n: np.linspace(x, 2 * x, n), 1.5, 7),
    (lambda x, n: np.linspace(x, 2 * x, n, endpoint=False), 1.5, 7),
    (lambda x, n: np.linspace(x, 2 * x, n), 1.5, 1),
    (lambda x, n: np.linspace(x, 2 * x, n), 1.5, 0),
    (lambda x: np.linspace(0, x, 5, retstep=True), 2),
    (lambda x: np.linspace(0, x), 2),
    (lambda n: np.eye(n), 3),
    (lambda n: np.eye(n, 4, k=1, dtype=np.int32), 3),
    (lambda n: np.identity(n, dtype=np.float32), 2),
    (lambda a: np.diag(a), V),
    (lambda a: np.diag(a, 1), V32),
    (lambda a: np.diag(a, k=-2), I),
    (lambda a: np.diag(a) + 0, M),
    (lambda a: np.diag(a, 1), M),
    (lambda a: np.diag(a, -1), M),
    (lambda a: a.diagonal() * 2, A),
    (lambda n: np.tri(n, 4, 1), 3),
    (lambda a: np.tril(a) + np.triu(a, 1), M),
    (lambda a: np.tril(a, -1), T),
    (lambda a: np.triu(a), M32),
    (lambda a, b: np.meshgrid(a, b)[0] + np.meshgrid(a, b)[1], V, P[:3]),
    (lambda a, b: np.meshgrid(a, b, indexing="ij")[0], V, P[:3]),
]

REDUCTIONS = [
    *((lambda a, f=f: f(a), x) for f in (np.sum, np.prod, np.min, np.max, np.mean, np.var, np.std, np.any, np.all)
      for x in (V, V32, I, I32, B, M, M32, K, T)),
    *((lambda a, f=f: (f(a, axis=0), f(a, axis=-1), f(a, axis=(0, 1)), f(a, axis=1, keepdims=True)), x)
      for f in (np.sum, np.prod, np.min, np.max, np.mean, np.var, np.std, np.any, np.all) for x in (M, M32, K, T)),
    *((lambda a, f=f: (f(a), f(a, axis=0), f(a, axis=1, keepdims=True)), x) for f in (np.argmin, np.argmax)
      for x in (M, M32, K, K > 2, np.array([[1.0, np.nan], [np.nan, 3.0]]))),
    *((lambda a, f=f: f(a), E) for f in (np.sum, np.prod, np.mean, np.any, np.all)),
    *((lambda a, f=f: (f(a), f(a, axis=0), f(a, axis=1)), E23)
      for f in (np.sum, np.prod, np.mean, np.var, np.any, np.all)),
    *((lambda a, f=f: f(a), NAN) for f in (np.nansum, np.nanmax, np.nanmin, np.nanmean, np.max, np.argmax, np.argmin)),
    (lambda a: np.nanprod(a), NAN[:2]),
    (lambda a: np.nanmax(a), NAN[1:2]),
    (lambda a: np.max(a, axis=1), E23),
    (lambda a: (a.sum(), a.prod(), a.min(), a.max(), a.mean(), a.var(), a.std(), a.any(), a.all()), M),
    (lambda a: (a.argmin(), a.argmax(axis=1), a.sum(0), a.max(axis=1), a.mean(axis=(0,), keepdims=True)), M),
    (lambda a: (a.sum(), np.mean(a), np.prod(a), np.var(a)), Z),
    (lambda a: np.sum(a, axis=(0, 2)), T),
    (lambda a: np.sum(a, axis=(1, 2), keepdims=True), T),
    (lambda a: np.max(a, axis=(0, 1)), T),
    (lambda a: np.sum(a, axis=()), M),
    (lambda a: np.sum(a, dtype=np.float64), V32),
    (lambda a: np.mean(a, dtype=np.float64), V32),
    (lambda a: np.var(a, ddof=1) + np.std(a, ddof=1.0), V),
    (lambda a: np.std(a, axis=0, ddof=1), M32),
    (lambda a: (np.count_nonzero(a), np.count_nonzero(a, axis=0)), K),
    (lambda a: np.ptp(a, axis=0), M),
    (lambda a, w: np.average(a, weights=w), V, P),
    (lambda a, w: np.average(a, axis=1, weights=w), M, P),
    (lambda a: np.average(a, axis=0), M),
    (lambda x: (np.sum(x), np.max(x), np.mean(x)), 3),
    (lambda x: np.sum([x, 2.0, 3.0]), 1.0),
    (lambda a: np.sum(a.T, axis=0) + np.sum(a[:, ::-1], axis=1), M),
    (lambda a: np.max(a[1:, 1:]), M),
    (lambda a: logsumexp(a), V),
    (lambda a: logsumexp(a, axis=0), M32),
    (lambda a: logsumexp(a, axis=1, keepdims=True), M * 1000),
    (lambda a: logsumexp(a), np.array([-np.inf, -np.inf])),
    (lambda a: sp.softmax(a, axis=0) + sp.log_softmax(a, axis=1), M),
    (lambda a: sp.softmax(a), V),
    (lambda a: (np.add.reduce(a), np.maximum.reduce(a, axis=1), np.add.reduce(a, axis=None)), M),
]  # fmt: skip

SCANS = [
    (lambda a: np.cumsum(a), V),
    (lambda a: np.cumsum(a), V32),
    (lambda a: np.cumsum(a), I32),
    (lambda a: np.cumsum(a), B),
    (lambda a: np.cumsum(a), E),
    (lambda a: np.cumsum(a), M),
    (lambda a: np.cumsum(a, axis=0), M),
    (lambda a: np.cumsum(a, axis=1), T),
    (lambda a: np.cumprod(a, axis=-1), M32),
    (lambda a: np.cumprod(a), I),
    (lambda a: a.cumsum(), V),
    (lambda a: np.add.accumulate(a), M),
    (lambda a: np.diff(a), V),
    (lambda a: np.diff(a, n=2), I32),
    (lambda a: np.diff(a, axis=0), M),
    (lambda a: np.diff(a), B),
    (lambda a: np.diff(a), E),
    (lambda a: np.trapezoid(a), V),
    (lambda a, x: np.trapezoid(a, x), V, W),
    (lambda a: np.trapezoid(a, dx=0.5, axis=0), M),
    (lambda p, x: np.polyval(p, x), V, M),
    (lambda p, x: np.polyval(p, x), I32, 0.5),
    (lambda p, x: np.polyval(p, x=x), V32, Z64),
    (lambda p, x: np.polyval(p, x), E, V),
    (lambda x: np.polyval([2, x[0], 0.5], x), V),
]


def write_through_reshape(a):
    b = a.reshape(2, -1)
    b[1, 0] = 7.0
    c = a[1:].reshape(-1)
    c[0] = 9.0
    d = a[::2].reshape(1, -1)
    d[0, 0] = 11.0
    return b, d


def write_through_strided_reshape(a):
    c = a[:, 1].reshape(-1, 1)
    c[2, 0] = 5.0
    b = a[::2, ::3]
    d = b.reshape(b.shape[0], 1, -1)
    d[1, 0, 1] = 6.0
    e = a.T.reshape(-1)
    e[0] = 7.0
    f = a[::-1, ::-1].reshape(-1)
    f[0] = 8.0
    return e


def write_through_views(a):
    t = np.transpose(a)
    t[0, 1] = 5.0
    r = np.ravel(a)
    r[2] = 6.0
    f = a.flatten()
    f[0] = 100.0
    g = np.flip(a, 1)
    g[0, 0] = -1.0
    s = np.expand_dims(a, 0)
    s[0, 2, 2] = 12.0
    h, k = np.split(a, [1])
    h[0, 3] = 13.0
    c = a.T.reshape(-1)
    c[0] = 99.0
    return f


def asarray_is_the_same(a):
    b = np.asarray(a)
    b[0] = 3.0
    c = np.array(a)
    c[1] = 4.0
    return b, c


def fill_and_sort(a):
    b = a.copy()
    b.fill(2.5)
    a.sort()
    return b


def sort_rows(a):
    a.sort(axis=0)
    a[1].sort()


def add_at(a, idx, v):
    np.add.at(a, idx, v)
    np.multiply.at(a, 0, 2.0)
    np.maximum.at(a, idx[:2], 0.25)


def add_at_rows(a, idx, v):
    np.add.at(a, idx, v)
    np.subtract.at(a, (idx, idx), 1.0)


SHAPES = [
    (lambda a: a.reshape(2, 2), V),
    (lambda a: a.reshape((4, 3)), M),
    (lambda a: a.reshape(-1), M),
    (lambda a: a.reshape(2, -1), M),
    (lambda a: a.reshape(a.shape[0], -1), T),
    (lambda a: a.reshape(a.shape[0], 2, 2), M),
    (lambda a: np.reshape(a, (-1, 2)), T),
    (lambda a: np.reshape(a.T, -1), M),
    (lambda a: a.T.reshape(3, 4), M),
    (lambda a: a.ravel() + np.ravel(a), M),
    (lambda a: a.T.ravel(), M),
    (lambda a: a.flatten(), M[:, ::2]),
    (lambda a: (a.T, a.transpose(), np.transpose(a)), M),
    (lambda a: (a.transpose(2, 0, 1), a.transpose((1, 0, 2)), np.transpose(a, (0, 2, 1))), T),
    (lambda a: (a.swapaxes(0, 2), np.swapaxes(a, 0, -1), np.moveaxis(a, 0, -1), np.moveaxis(a, (0, 1), (2, 0))), T),
    (lambda a: np.squeeze(a[:, None, :, None]), M),
    (lambda a: np.squeeze(a[None], axis=0).squeeze(), M),
    (lambda a: np.squeeze(a), np.array([2.5])),
    (lambda a: (np.expand_dims(a, 0), np.expand_dims(a, -1), np.expand_dims(a, (0, 2))), V),
    (lambda a: a[:, np.newaxis] * a, V),
    (lambda a: (np.flip(a), np.flip(a, 0), np.flipud(a), np.fliplr(a)), M),
    (lambda a, b: np.concatenate((a, b, a)), V, W32),
    (lambda a: np.concatenate([a, a], axis=1), M),
    (lambda a: np.concatenate((a, a[1:]), axis=0), M),
    (lambda a: np.concatenate((a, a), axis=None), M),
    (lambda a, b: np.stack((a, b)), V, W),
    (lambda a, b: np.stack((a, b), axis=1), V, W32),
    (lambda a: np.stack([a, a, a], axis=-1), M),
    (lambda a, b: (np.hstack((a, b)), np.vstack((a, b)), np.column_stack((a, b))), V, W),
    (lambda a: (np.hstack((a, a)), np.vstack((a, a[:1]))), M),
    (lambda a: np.column_stack((a, a[:, 0])), M),
    (lambda a: np.append(a, 3), V),
    (lambda a: np.split(a, 2), V),
    (lambda a: np.split(a, [1, 3], axis=1), M),
    (lambda a: np.broadcast_to(a, (3, 4)) + 0, V),
    (lambda a, b: np.zeros(np.broadcast_shapes(a.shape, b.shape, (1, 1, 1))) + a + b, V, V[:, None]),
    (lambda a: np.broadcast_to(a, (2, 3)) * 1, 2.5),
    (lambda a: np.broadcast_to(a[:, None], (4, 3)), V),
    (lambda a: (np.tile(a, 2), np.tile(a, (2, 1)), np.tile(a, (2, 3))), V),
    (lambda a: np.tile(a, 2), M32),
    (lambda a: (np.repeat(a, 2), np.repeat(a, 2, axis=0), a.repeat(3, axis=1)), M),
    (lambda a, n: np.repeat(a, n), V, 3),
    (lambda a: (np.roll(a, 1), np.roll(a, -1), np.roll(a, 6)), V),
    (lambda a, k: np.roll(a, k), V, -3),
    (lambda a: (np.roll(a, 1), np.roll(a, 1, axis=0), np.roll(a, -1, axis=1), np.roll(a, (1, 2), axis=(0, 1))), M),
    (lambda a: np.roll(a, 1), E),
    (lambda a: (a.astype(np.float32), a.astype(int), a.astype("bool"), a.astype(complex)), V),
    (lambda a: a.copy(), V32),
    (write_through_reshape, V),
    (write_through_strided_reshape, M),
    (write_through_views, M),
    (asarray_is_the_same, V),
    (fill_and_sort, V),
    (sort_rows, M[::-1].copy()),
    (add_at, V, np.array([0, 1, 1, -1]), W),
    (add_at, V, np.array([0, 1, 1, -1]), 2.0),
    (add_at_rows, A, np.array([0, 2, 2, -2]), V[:3]),
    (add_at_rows, A, np.array([0, 2]), A[:2]),
    (lambda a, b: (np.multiply.outer(a, b), np.add.outer(a, b)), V, P[:3]),
]

LINALG = [
    (lambda a, b: (a @ b, np.dot(a, b), a.dot(b), np.vdot(a, b), np.inner(a, b), np.matmul(a, b)), V, W),
    (lambda a, b: a @ b, V, W32),
    (lambda a, b: a @ b, I, J),
    (lambda a, b: a @ b, I, V),
    (lambda a, b: (a @ b, np.dot(a, b), b @ a.T), M, V),
    (lambda a, b: (b @ a, b.dot(a)), M, P[:3]),
    (lambda a: (a @ a.T, a.T @ a, np.dot(a, a.T)), M32),
    (lambda a: a @ a.conj(), Z),
    (lambda a: np.vdot(a, a), Z),
    (lambda a, b: a @ b, T, np.arange(8.0).reshape(4, 2)),
    (lambda a, b: a @ b, T, T.transpose(0, 2, 1)),
    (lambda a, b: b @ a, T, np.arange(6.0).reshape(2, 3)),
    (lambda a, b: a @ b, T, V),
    (lambda a, b: a @ b[:, None], T[:, :1], T.transpose(0, 2, 1)),
    (lambda a, b: np.dot(a, b), T, M.T),
    (lambda a, b: np.inner(a, b), M, M),
    (lambda a: np.dot(a, 2.0) + np.dot(3, a), M),
    (lambda a, b: (np.outer(a, b), np.outer(a, a)), V, P[:3]),
    (lambda a, b: (np.kron(a, b), np.kron(a[:, None], b[None])), V, P[:2]),
    (lambda a, b: np.cross(a, b), V[:3], W[:3]),
    (lambda a, b: np.cross(a, b), A, W[:3]),
    (lambda a, b: (np.tensordot(a, b, 1), np.tensordot(a, b, axes=([1], [0]))), M, M.T),
    (lambda a: np.tensordot(a, a, axes=2), M),
    (lambda a: np.tensordot(a, a, axes=([0, 2], [0, 2])), T),
    (lambda a: (np.trace(a), np.trace(a, 1), a.trace()), A),
    (lambda a: np.trace(a), K),
    (lambda a: np.linalg.matrix_power(a, 5), A / 5),
    (lambda a, b: np.linalg.solve(a, b), A, V[:3]),
    (lambda a, b: np.linalg.solve(a, b), A, A.T.copy()),
    (lambda a, b: np.linalg.solve(a, b), A.astype("f4"), np.arange(3)),
    (lambda a, b: np.linalg.solve(a, b), AA, A),
    (lambda a: (np.linalg.inv(a), np.linalg.det(a), np.linalg.cholesky(a)), A),
    (lambda a: (np.linalg.inv(a), np.linalg.det(a)), AA),
    (lambda a: (np.linalg.inv(a), np.linalg.det(a)), AZ),
    (lambda a: np.linalg.inv(a), np.array([[2, 1], [1, 3]])),
    (lambda a: np.linalg.cholesky(a), AA),
    (lambda a: np.linalg.slogdet(a), A),
    (lambda a: np.linalg.slogdet(a)[1] + np.linalg.slogdet(a).sign, AA),
    (lambda a: (np.linalg.norm(a), np.linalg.norm(a, 1), np.linalg.norm(a, np.inf), np.linalg.norm(a, -np.inf)), V),
    (lambda a: (np.linalg.norm(a, 0), np.linalg.norm(a, 3), np.linalg.norm(a, ord=2)), V32),
    (lambda a: (np.linalg.norm(a), np.linalg.norm(a, axis=0), np.linalg.norm(a, axis=1, keepdims=True)), M),
    (lambda a: (np.linalg.norm(a, "fro"), np.linalg.norm(a, 1), np.linalg.norm(a, np.inf)), M),
    (lambda a: np.linalg.norm(a, axis=(0, 1)) + np.linalg.norm(a), T),
    (lambda a: np.linalg.norm(a), I),
    (lambda a: np.linalg.norm(a), Z),
    (lambda a, b: np.einsum("i,i->", a, b), V, W),
    (lambda a, b: np.einsum("i,i", a, b), V, W32),
    (lambda a, b: np.einsum("ij,j->i", a, b), M, V),
    (lambda a: np.einsum("ij,kj->ik", a, a), M),
    (lambda a: np.einsum("ij,kj->ki", a, a * 2), M),
    (lambda a: np.einsum("ij,jk", a, a.T), M32),
    (lambda a: np.einsum("ii->i", a), A),
    (lambda a: np.einsum("ii", a), A),
    (lambda a: np.einsum("iij->j", a), np.arange(8.0).reshape(2, 2, 2)),
    (lambda a: np.einsum("ij->ji", a), M),
    (lambda a: np.einsum("ijk->ik", a), T),
    (lambda a: np.einsum("ij->", a), K),
    (lambda a, b: np.einsum("i,j->ij", a, b), V, P[:3]),
    (lambda a, b: np.einsum("bij,bjk->bik", a, b), T, T.transpose(0, 2, 1)),
    (lambda a, b, c: np.einsum("i,ij,j->", a, b, c), P[:3], M, V),
    (lambda a, b: np.einsum("ij,ij->i", a, b), M, M32),
    (lambda a, b: np.einsum("ij, j -> i", a, b), M, I),
]

SORTING = [
    (lambda a: (np.sort(a), np.argsort(a)), V),
    (lambda a: (np.sort(a), np.argsort(a, kind="stable")), I32),
    (lambda a: (np.sort(a), np.sort(a, axis=0), np.sort(a, axis=None), np.argsort(a, axis=0)), -M32),
    (lambda a: np.sort(a), NAN),
    (lambda a: np.sort(a), B),
    (lambda a: np.sort(a), E),
    (lambda a: a.argsort(), V),
    (lambda a, v: (np.searchsorted(a, v), np.searchsorted(a, v, side="right")), np.array([1.0, 2.0, 2.0, 4.0]), V),
    (lambda a, v: np.searchsorted(a, v), np.array([1, 2, 2, 4]), 2),
    (lambda a, v: np.searchsorted(a, v), np.array([1.0, 2.0, np.nan]), NAN),
    (lambda x, xp, fp: np.interp(x, xp, fp), np.array([-1.0, 0.5, 1.0, 1.75, 9.0]), np.array([0.0, 1.0, 2.0]), W[:3]),
    (lambda x, xp, fp: np.interp(x, xp, fp, left=0.0, right=1), 9.0, np.array([0.0, 1.0, 2.0]), I[:3]),
    (lambda a, i: np.take(a, i), M, np.array([0, -1, 5])),
    (lambda a, i: (np.take(a, i, axis=1), a.take(i, axis=0)), M, np.array([0, -1])),
    (lambda a: np.take_along_axis(a, np.argsort(a, axis=0), axis=0), -M),
    (lambda a: np.take_along_axis(a, np.argsort(a), axis=-1), V),
]


def histogram(a, idx):
    h = np.zeros(5)
    for i in range(3):
        np.add.at(h, idx, a * i)
        h[np.argmax(h)] += 1.0
    return h


def diffusion(u, n):
    for _ in range(n):
        u = u + 0.1 * (np.roll(u, 1) - 2 * u + np.roll(u, -1))
    return u


def growing(u, n):
    s = 0.0
    for k in range(n):
        w = np.zeros(k + 1)
        w[k] = u[k]
        s += np.sum(w) + np.linalg.norm(u[: k + 1]) + max(w)
    return s


def branches(a, flag):
    if flag > 0:
        b = np.sort(a)
    else:
        b = np.cumsum(a)
    return b.mean()


def newton(a):
    x = np.ones_like(a)
    while np.max(np.abs(x * x - a)) > 1e-10:
        x = 0.5 * (x + a / x)
    return x


def likelihood(a, b):
    lower = np.linalg.cholesky(a)
    y = np.linalg.solve(lower, b)
    return y @ y + 2 * np.sum(np.log(np.diag(lower)))


def gram_schmidt(a):
    q = np.zeros_like(a)
    for j in range(a.shape[1]):
        v = a[:, j].copy()
        for k in range(j):
            v -= np.dot(q[:, k], a[:, j]) * q[:, k]
        q[:, j] = v / np.linalg.norm(v)
    return q


def results_into_arguments(a, b):
    np.dot(a, b, out=a)
    np.sin(b, out=b)
    np.sum(a, axis=0, out=b[0])


def pairs_of_coprimes(n):
    total = 0
    for i in range(1, n):
        for j in reversed(range(i)):
            if math.gcd(i, j) == 1:
                total += math.comb(i, j)
    return total


def rows_of_a_reshaped_array(a):
    s = 0.0
    for row in a.reshape(-1, 2):
        s += row[0] * row[1]
        row[0] = 0.0
    return s


def enumerated(a, b):
    s = 0.0
    for i, (x, y) in enumerate(zip(a, b)):
        s += i * x * y
    for i, x in enumerate(reversed(a), start=2):
        s -= i * x
    return s


PROGRAMS = [
    (histogram, V, np.array([0, 4, 4, -2])),
    (diffusion, V, 3),
    (growing, V, 4),
    (branches, V, 1),
    (branches, V, -1),
    (newton, np.array([2.0, 3.0])),
    (likelihood, A, V[:3]),
    (gram_schmidt, A),
    (results_into_arguments, A, A.T.copy()),
    (pairs_of_coprimes, 7),
    (rows_of_a_reshaped_array, M),
    (enumerated, V, W),
]


@pytest.mark.parametrize("case", PROGRAMS, ids=lambda c: c[0].__name__)
def test_programs(case):
    check(*case)


def test_round_is_pythons():
    for x in (4.35, 0.25, 2.675, -1.005, 1250.0, -0.04):
        check(lambda v: (round(v, 1), round(v, 2), round(v, 5), round(v, -2), round(v)), x)
    check(lambda v: round(v, 5), 1e300)


def _title(case: Any) -> str:
    code = case[0].__code__
    line = linecache.getline(code.co_filename, code.co_firstlineno).strip()
    return line.removeprefix("(lambda ").rstrip(",")[:70]


@pytest.mark.parametrize("case", ELEMENTWISE, ids=_title)
def test_elementwise(case):
    check(*case)


@pytest.mark.parametrize("case", PYTHON, ids=_title)
def test_python(case):
    check(*case)


@pytest.mark.parametrize("case", CREATION, ids=_title)
def test_creation(case):
    check(*case)


@pytest.mark.parametrize("case", REDUCTIONS, ids=range(len(REDUCTIONS)))
def test_reductions(case):
    check(*case)


@pytest.mark.parametrize("case", SCANS, ids=_title)
def test_scans(case):
    check(*case)


@pytest.mark.parametrize("case", SHAPES, ids=_title)
def test_shapes(case):
    check(*case)


@pytest.mark.parametrize("case", LINALG, ids=_title)
def test_linalg(case):
    check(*case)


@pytest.mark.parametrize("case", SORTING, ids=_title)
def test_sorting(case):
    check(*case)


# -- errors

RAISES = [  # both raise this when they run
    (ValueError, lambda n: np.zeros(n), -1),
    (ValueError, lambda n: np.ones((2, n - 5)), 3),
    (ValueError, lambda n: np.zeros(-2) + n, 3),
    (ValueError, lambda a: np.max(a), E),
    (ValueError, lambda a: a.min(axis=0), E23),
    (ValueError, lambda a: np.argmax(a), E),
    (ValueError, lambda a: max(a), E),
    (ValueError, lambda x: math.sqrt(x), -1.0),
    (ValueError, lambda x: math.log(x), 0.0),
    (ValueError, lambda x: math.acos(x), 1.5),
    (ValueError, lambda x: math.atanh(x), 1.0),
    (ValueError, lambda x: math.sin(x), math.inf),
    (ValueError, lambda x: math.gamma(x), -2.0),
    (ValueError, lambda x: math.fmod(x, 0.0), 1.0),
    (ValueError, lambda x: math.pow(x, 0.5), -1.0),
    (ValueError, lambda x: math.sqrt(-1.0) + x, 1.0),
    (ValueError, lambda n: math.factorial(n), -1),
    (OverflowError, lambda x: math.exp(x), 1000.0),
    (OverflowError, lambda x: math.pow(x, 1000.0), 1000.0),
    (OverflowError, lambda x: math.cosh(x), 1000.0),
    (ValueError, lambda x: int(x), math.nan),
    (OverflowError, lambda x: int(x), math.inf),
    (OverflowError, lambda x: math.floor(x), math.inf),
    (ValueError, lambda a: a.reshape(3, -1), V),
    (ValueError, lambda a, n: a.reshape(n, 3), V, 2),
    (ValueError, lambda a: np.split(a, 3), V),
    (ValueError, lambda a, b: a @ b, V, V[:3]),
    (ValueError, lambda a, b: np.einsum("ij,j->i", a, b), M, V[:3]),
    (ValueError, lambda a, b: np.concatenate((a, b), axis=1), M, M[:2]),
    (ValueError, lambda a, b: np.stack((a, b)), V, V[:3]),
    (ValueError, lambda a, b: np.linalg.solve(a, b), A, V),
    (ValueError, lambda a: a[:, :2].copy().item(), M),
    (ValueError, lambda a, b: np.power(a, b), I, J),
    (IndexError, lambda a, i: np.take(a, i), V, np.array([4])),
    (IndexError, lambda a, i: np.add.at(a, i, 1.0), V, np.array([4])),
    (ZeroDivisionError, lambda x: np.arange(0, 3, x), 0),
]


@pytest.mark.parametrize("case", RAISES, ids=lambda c: _title(c[1:]))
def test_raises(case):
    error, function, *args = case
    with pytest.raises(error):
        function(*(a.copy() if isinstance(a, np.ndarray) else a for a in args))
    with pytest.raises(error):
        run(function, tuple(args))


def test_unsafe_drops_the_domain_checks():
    found, _ = run(lambda x: math.sqrt(x), (-1.0,), Options(unsafe=True))
    assert math.isnan(found)


def diagonal_after_a_write(a):
    d = np.diag(a)
    a[0, 0] = 5.0
    return d


REFUSED = [  # the code and a part of the message
    ("TP103", "np.roots cannot be compiled", lambda a: np.roots(a), V),
    ("TP103", "iter cannot be compiled", lambda a: iter(a), V),
    ("TP109", "cannot be returned", lambda a: map(abs, a), V),
    ("TP103", "np.linalg.tensorinv cannot be compiled", lambda a: np.linalg.tensorinv(a), A),
    ("TP103", "make random numbers outside", lambda n: np.random.rand(n), 3),
    ("TP103", ".view of an array", lambda a: a.view(np.int64), V),
    ("TP112", "the argument 'where' cannot be compiled", lambda a: np.average(a, where=a > 0), V),
    ("TP112", "np.sin takes 1 argument", lambda a: np.sin(a, a, a), V),
    ("TP112", "np.clip is missing the argument 'a'", lambda a: np.clip(), V),
    ("TP112", "takes 2 arguments, but 1 were given", lambda a: np.maximum(a), V),
    ("TP104", "np.cbrt does not take", lambda a: np.cbrt(a), Z),
    ("TP104", "use np.sin", lambda a: math.sin(a), V),
    ("TP104", "math.sin takes real numbers", lambda a: math.sin(a), 1j),
    ("TP104", "np.searchsorted does not take complex numbers", lambda a: np.searchsorted(a, a), Z),
    ("TP104", "'@' takes arrays", lambda a: a @ 2.0, V),
    ("TP104", "must be an integer", lambda x: np.zeros(x), 2.5),
    ("TP104", "known at compile time", lambda a, k: np.sum(a, axis=k), M, 1),
    ("TP109", "float16", lambda a: a.astype(np.float16), V),
    ("TP109", "element type object", lambda n: np.zeros(n, dtype=object), 3),
    ("TP202", "axis 2 is out of bounds", lambda a: np.sum(a, axis=2), M),
    ("TP202", "an axis is given twice", lambda a: np.sum(a, axis=(0, 0)), M),
    ("TP112", "has 2 operands, but 1 were given", lambda a: np.einsum("i,i->", a), V),
    ("TP202", "names 1 axes", lambda a: np.einsum("i->", a), M),
    ("TP115", "cannot be written", lambda a: np.broadcast_to(a, (3, 4)).fill(1.0), V),
    ("TP105", "which has been written since", diagonal_after_a_write, A),
    ("TP115", "depends on its sizes", lambda a, n: a[:, :2].reshape(n, -1, 2).fill(0.0), M, 3),
    ("TP104", "do not fit into 'out'", lambda a, b: np.add(a, 0.5, out=b), V, I),
]


@pytest.mark.parametrize("case", REFUSED, ids=lambda c: c[1])
def test_refused(case):
    code, message, function, *args = case
    with pytest.raises((CompileError, ShapeError)) as found:
        run(function, tuple(args))
    assert found.value.code == code
    assert message in str(found.value)
    assert "test_numpy_functions.py" in str(found.value)
