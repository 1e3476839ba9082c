"""Each row of the ops table on each of its element types: compiled code against the row's NumPy column."""

import itertools

import mpmath
import numpy as np
import pytest

from tapeless.ir.types import SCALAR, DType, Var, i64
from tapeless.lower.ir.loopir import For, Let, Load, Store, Tag
from tapeless.ops.op import Instruction, Intrinsic, Special
from tapeless.ops.table import TABLE
from tests.backends.native import call, param, prepare, program, var

FLOATS = [0.0, -0.0, 1.0, -1.0, 0.5, -0.5, 2.0, 3.0, -2.5, 0.3, 0.7, 1e-9, 7.25, -7.25, 12.5, 1e10, -3e5, 1e-30,
          np.inf, -np.inf, np.nan]  # fmt: skip
INTEGERS = [0, 1, -1, 2, -2, 3, 7, -7, 10, 31, 32, 63, 64, -64, 200, 1000, 10**12]
ULPS = {DType.f32: 8e-7, DType.f64: 2e-15}
LOOSE = {
    "gamma": 20,
    "gammaln": 20,
    "digamma": 4,
    "polygamma": 8,
    "erfc": 20,
    "pow": 4,
    "logit": 8,
    "log1p": 2,
    "tan": 4,
}
ROUNDED = {"expit", "logit", "logaddexp", "xlogy", "deg2rad", "rad2deg", "rsqrt", "reciprocal", "polygamma", "loose_tanh",
           "sech2", "sinc", "direction"}  # fmt: skip
SUMS = {"logaddexp"}  # of an operand and something: rounded as the operand is, also where the two nearly cancel
# LLVM's own minimum and maximum of integers and the like: nothing to round.
CASES = [
    (name, d)
    for name, row in TABLE.items()
    for d in DType
    if d in row.dtypes and name not in ("convert", "quotient_by")  # tests/lower/test_places.py
    if not row.borrowed  # tests/ops/test_borrowed.py
]


def values(dtype):
    if dtype is DType.bool:
        return [False, True]
    if dtype.is_int:
        return [*(n for n in INTEGERS if dtype.lowest <= n <= dtype.highest), dtype.lowest, dtype.highest]
    if dtype.is_complex:
        parts = [0.0, -0.0, 1.0, -1.0, 0.5, -2.5, 0.3, 3.0, 12.5]
        return [complex(a, b) for a in parts for b in parts]
    return FLOATS


def inputs(name, row, dtype):
    """Columns of all combinations of the interesting values, one for each operand."""
    columns = [[False, True]] if name == "select" else []
    columns += [values(dtype)[: 21 if row.arity < 3 else 8]] * (row.arity - len(columns))
    rows = list(itertools.product(*columns))
    dtypes = [DType.bool] * (name == "select") + [dtype] * 3
    return [np.array([r[k] for r in rows], dtypes[k].numpy) for k in range(row.arity)], dtypes[: row.arity]


def evaluate(name, columns, dtypes, result):
    """Compiles a loop over the columns."""
    buffers = [param(f"x{k}", d, written=False) for k, d in enumerate(dtypes)]
    out, n, i, y = param("out", result), var("n"), var("i"), Var("y", SCALAR[result])
    args = [Var(f"a{k}", SCALAR[d]) for k, d in enumerate(dtypes)]
    body = [Load(a, b, i) for a, b in zip(args, buffers)] + [Let(y, name, tuple(args)), Store(out, i, y)]
    prog = program([*buffers, out, n], [For(i, i64(0), n, tuple(body), tag=Tag.simd)])
    answer = np.zeros(len(columns[0]), result.numpy)
    assert call(prog, *prepare(prog), *columns, answer, len(answer)).code == 0
    return answer


def is_exact(name, row, result):
    return not (result.is_float or result.is_complex) or (
        isinstance(row.llvm, (Instruction, Intrinsic, Special)) and name not in ROUNDED and not result.is_complex
    )


@pytest.mark.sampled(3, each="name")
@pytest.mark.parametrize("name, dtype", CASES, ids=lambda v: v if isinstance(v, str) else v.value)
def test_row(name, dtype):
    row = TABLE[name]
    columns, dtypes = inputs(name, row, dtype)
    result = row.result(dtypes)
    got, want = evaluate(name, columns, dtypes, result), np.asarray(row.numpy(*columns))
    if is_exact(name, row, result) and not dtype.is_complex:
        np.testing.assert_array_equal(got, want)
        if result.is_float:
            finite = ~np.isnan(want)
            np.testing.assert_array_equal(np.signbit(got[finite]), np.signbit(want[finite]))
        return
    tolerance = ULPS.get(result.real, 0) * LOOSE.get(name, 1)
    if result.is_complex:
        compare_complex(columns, got, want, tolerance * 8)
    else:
        if name in SUMS:
            largest = np.max(np.abs(columns), axis=0)
            rounded = np.abs(got - want) <= largest * np.finfo(result.numpy).eps
            got = np.where(rounded & np.isfinite(largest), want, got)
        np.testing.assert_allclose(got, want, rtol=tolerance, atol=tolerance * 1e-3)


TAILS = [1e-300, 1e-9, 0.01, 0.3, 1.0, 3.0, 9.0, 18.0, 21.0, 39.9, 40.1, 43.0, 44.5]


@pytest.mark.parametrize("name, exact", [("loose_tanh", mpmath.tanh), ("sech2", lambda x: mpmath.sech(x) ** 2)])
@pytest.mark.parametrize("dtype", [DType.f64, DType.f32])
def test_tanh_and_its_slope_in_the_tails(name, exact, dtype):
    """To a few ulp of the result itself, however small that is, and not NaN where exp(2 |x|) is infinite."""
    x = np.array([s * t for t in TAILS + [100.0, 300.0, 354.0] * (dtype is DType.f64) for s in (1, -1)], dtype.numpy)
    x = x[x != 0]
    got = evaluate(name, [x], [dtype], dtype)
    with mpmath.workdps(400):
        want = [exact(mpmath.mpf(float(v))) for v in x]
        errors = [abs(mpmath.mpf(float(g)) / w - 1) for g, w in zip(got, want)]
    tiny = np.array([abs(w) < np.finfo(dtype.numpy).tiny for w in want])
    assert max(e for e, t in zip(errors, tiny) if not t) < 5 * np.finfo(dtype.numpy).eps, (x, errors)
    far = np.array([400.0, -1000.0, 1e30, np.inf, -np.inf]).astype(dtype.numpy)
    np.testing.assert_array_equal(evaluate(name, [far], [dtype], dtype), 0.0 if name == "sech2" else np.sign(far))


def compare_complex(columns, got, want, tolerance):
    """By the distance of the numbers; where NumPy gives NaN or infinity, only that neither is finite."""
    finite = np.isfinite(want)
    np.testing.assert_array_equal(np.isfinite(got), finite, err_msg=str(columns))
    distance = np.abs(got[finite] - want[finite])
    bad = distance > tolerance * np.maximum(np.abs(want[finite]), 1e-3)
    assert not bad.any(), [(c[finite][bad], got[finite][bad], want[finite][bad]) for c in columns]


@pytest.mark.sampled(2, each="target")
@pytest.mark.parametrize("source", list(DType), ids=lambda d: d.value)
@pytest.mark.parametrize("target", list(DType), ids=lambda d: d.value)
def test_convert(source, target):
    x = np.array(values(source) + ([] if source.is_complex or not source.is_float else [2.0**31, -(2.0**63), 2.0**70]),
                 source.numpy)  # fmt: skip
    got = evaluate("convert", [x], [source], target)
    np.testing.assert_array_equal(got, TABLE["convert"].numpy(x, target.numpy))
