"""Every function that compiled code may call, compared with NumPy (and Python) over special values.

NaN, infinities, zeros of both signs, subnormals, the extremes of integers; numbers, arrays without dimensions, empty ones and those of
one element: value by its bits, shape, element type, number or array. What is meant to differ stands in `grid_cases.py` with its reason.
"""

import ast
import cmath
import math
import warnings

import numpy as np
import pytest

import tapeless as tp
from tapeless.frontend.numpy.elementwise import ROWS, RULES, SPECIAL, rule_of
from tapeless.frontend.state.handlers import BY_NAME, handler_of
from tapeless.ops.table import TABLE
from tapeless.prelude.registry import WRITTEN
from tapeless.testing.compare import Returned
from tapeless.testing.stages import by_core, trace
from tests.trust.grid import F64, I64, PARTS, VALUES, compile_all, differs, outcome, pairs, same
from tests.trust.grid_cases import (
    ARGUMENTS,
    CASES,
    EXACT_ON_REALS,
    LEFT_OUT,
    MEANT,
    NO_BOOLS,
    NO_COMPLEX,
    ROUNDED,
    SIMPLE,
    ULPS,
)

pytestmark = pytest.mark.filterwarnings("ignore")
OWN = [n for n, row in SPECIAL.items() if not TABLE[row.op].borrowed]  # the others: tests/ops/test_borrowed.py
ELEMENTWISE = list(dict.fromkeys([*(f"np.{n}" for n in ROWS), *(f"special.{n}" for n in OWN), *RULES]))


# -- functions of arrays


def cases_of(name, tmp_path, arguments=ARGUMENTS, among=frozenset(ARGUMENTS)):
    """Python functions of the expressions with their arguments; of those that use some `among` these."""
    texts = [e for e in CASES[name] if among & {n.id for n in ast.walk(ast.parse(e)) if isinstance(n, ast.Name)}]
    used = [sorted({n.id for n in ast.walk(ast.parse(e)) if isinstance(n, ast.Name)} & set(ARGUMENTS)) for e in texts]
    found = compile_all(tmp_path, [", ".join(u) for u in used], texts, "cases_" + name.replace(".", "_"))
    return [(e, f, [arguments[letter] for letter in u]) for e, f, u in zip(texts, found, used, strict=True)]


def copies(args):
    return [a.copy() if isinstance(a, np.ndarray) else a for a in args]


def interpreted(function, args):
    try:
        traced = trace(function, copies(args))
        found = by_core(traced, traced.core, lambda: copies(args))
    except Exception as error:
        return error
    return found.result if isinstance(found, Returned) else found.error


def native(function, args):
    return outcome(tp.function(function), copies(args))


def meant(text):
    return any(text in texts for texts in MEANT.values())


def wrong_cases(names, run, tmp_path):
    found = []
    for name in names:
        for text, function, args in cases_of(name, tmp_path):
            ulps = 16 if name.startswith(ROUNDED) else 0
            whole = name.startswith("np.linalg")
            problem = differs(outcome(function, copies(args)), run(function, args), ulps, whole)
            if bool(problem) != meant(text):
                found.append(f"{text}: {problem or 'agrees, but is listed as different'}")
    return found


NAMES = sorted(CASES)


@pytest.mark.sampled(3)
@pytest.mark.parametrize("part", range(8))
def test_cases_by_the_interpreter(part, tmp_path):
    assert wrong_cases(NAMES[part::8], interpreted, tmp_path) == []


@pytest.mark.thorough
@pytest.mark.sampled(2)
@pytest.mark.parametrize("part", range(2))
def test_cases_in_native_code(part, tmp_path):
    assert wrong_cases(NAMES[part * 12 :: 24], native, tmp_path) == []


@pytest.mark.slow
@pytest.mark.parametrize("part", range(16))
def test_all_cases_in_native_code(part, tmp_path):
    assert wrong_cases(NAMES[part::16], native, tmp_path) == []


INTEGERS_OF_CASES = frozenset("ipxj")
STORED_OTHERWISE = {
    "np.modf(i)": "there is no float16",
    "special.softmax(p)": "SciPy's own wraps unsigned numbers below the largest one",
}


@pytest.mark.parametrize("part", range(4))
@pytest.mark.parametrize("dtype", [np.uint8, np.int16, np.uint64])
def test_cases_with_stored_integers(dtype, part, tmp_path):
    arguments = {k: v.astype(dtype) if k in INTEGERS_OF_CASES else v for k, v in ARGUMENTS.items()}
    wrong = []
    for name in NAMES[part::4]:
        for text, function, args in cases_of(name, tmp_path, arguments, INTEGERS_OF_CASES):
            want = outcome(function, copies(args))
            problem = differs(want, interpreted(function, args), 16)
            halves = isinstance(want, np.ndarray | np.generic) and want.dtype == np.float16
            if problem and not halves and not meant(text) and text not in STORED_OTHERWISE:
                wrong.append(f"{text}: {problem}")
    assert wrong == []


# -- element-wise functions


def apart(name, dtype):
    """Tried by `CASES`: integers to negative powers raise."""
    return name == "np.power" and dtype in ("int32", "int64", "int16")


def refused(name, dtype):
    """Whether it is meant that this is refused though NumPy does it."""
    if dtype == "bool":
        return name in NO_BOOLS
    if dtype.startswith(("int", "uint")):
        return name == "np.reciprocal"
    return dtype.startswith("complex") and name in NO_COMPLEX


def ulps_of(name, dtype):
    exact = SIMPLE if dtype.startswith("complex") else EXACT_ON_REALS
    return 0 if name.partition(".")[2] in exact and name.startswith("np.") else ULPS.get(name, 8)


def accepted(names, parameters, args, dtype, tmp_path, kind):
    """Those that both NumPy and the compiler take; asserts that they take the same, or that the difference is meant."""
    texts = [f"{n}({parameters})" for n in names]
    both, wrong = [], []
    found = compile_all(tmp_path, [parameters] * len(texts), texts, f"single_{kind}_{dtype}_{len(args)}")
    for name, function in zip(names, found, strict=True):
        numpy = not isinstance(outcome(function, args), Exception)
        ours = outcome(lambda *a, f=function: trace(f, a), args)
        assert not isinstance(ours, Exception) or isinstance(ours, tp.CompileError), (name, dtype, ours)
        compiled = not isinstance(ours, Exception)
        if numpy and compiled:
            both.append((name, function))
        if (numpy and not compiled) != (numpy and refused(name, dtype)) or (compiled and not numpy):
            wrong.append((name, dtype, f"NumPy takes it: {numpy}; compiled: {compiled}"))
    assert wrong == []
    return both


def expected(function, args):
    """NumPy's result; bools and bytes become float64 where NumPy makes float16 of them, which we have not."""
    want = outcome(function, args)
    if np.asarray(want).dtype in (np.float16, np.float32) and np.asarray(args[0]).dtype in (bool, np.uint8):
        return outcome(function, [a.astype(np.float64) for a in args])
    return want


def unlike(name, function, args, got, dtype):
    """Where a result differs from NumPy's, on the array and on each number: NumPy's two ways do not always agree."""
    ulps = ulps_of(name, dtype)
    want = expected(function, args)
    if not same(want, got, ulps):
        return ""
    if np.shape(want) != np.shape(got) or np.asarray(want).dtype != np.asarray(got).dtype:
        return f"{name} of {dtype}: {same(want, got, ulps)}"
    if not np.shape(want):
        want, got, args = [want], [got], [[a] for a in args]
    for k, (a, b) in enumerate(zip(want, got, strict=True)):
        at = tuple(v[k] for v in args)
        if (
            same(a, b, ulps)
            and same(expected(function, at), b, ulps)
            and not difference_is_meant(name, dtype, at, a, b)
        ):
            return f"{name} of {dtype} at {at}: {a!r} and {b!r}"
    return ""


def difference_is_meant(name, dtype, at, want, got):
    if name in ("np.maximum", "np.minimum", "np.fmax", "np.fmin"):
        return want == got == 0  # the first of equal numbers wins, so that gradients know which
    if name in ("np.multiply", "np.square") and dtype.startswith("complex"):
        return not np.isfinite(want)  # contraction decides between an infinity and NaN
    if name in ("np.power", "np.float_power") and dtype == "complex64":
        return abs(at[1]) > 1e20  # the angle has no digits left
    if name == "special.betaln":
        tiny, huge = min(abs(v) for v in at), max(abs(v) for v in at)
        return tiny < 1e-300 or huge > 1e38 or not np.isfinite(want)  # gammaln overflows, in scipy at other places
    return False


@pytest.mark.sampled(4, each="count")
@pytest.mark.parametrize("dtype", VALUES)
@pytest.mark.parametrize("count", [1, 2])
def test_elementwise(dtype, count, tmp_path):
    names = [n for n in ELEMENTWISE if rule_of(n)[0] == count and not apart(n, dtype)]
    parameters = "x, y"[: 3 * count - 2]
    args = (VALUES[dtype],) if count == 1 else pairs(dtype)
    both = accepted(names, parameters, args, dtype, tmp_path, "array")
    (together,) = compile_all(
        tmp_path, [parameters], [f"({', '.join(f'{n}({parameters})' for n, _ in both)},)"], f"all_{dtype}_{count}"
    )
    compiled = tp.function(together)
    problems = []
    numbers = [tuple(a[k] for a in args) for k in range(0, len(args[0]), 1 if count == 1 else 11)]
    for given in (args, *(tuple(a[:n] for a in args) for n in (0, 1)), *numbers):
        with warnings.catch_warnings():
            warnings.simplefilter("ignore")
            results = compiled(*given)
            problems += [unlike(n, f, given, r, dtype) for (n, f), r in zip(both, results, strict=True)]
    assert [p for p in problems if p] == []


# -- functions of Python's numbers

REALS = [v for v in F64 if abs(v) != 5e-324]
INTEGERS = [0, 1, -1, 2, 3, 7, 12, 20, 21, 62, 2**31, 2**53 + 1, 2**63 - 1, -(2**63)]
COMPLEX = [complex(a, b) for a in PARTS for b in PARTS[::2]]
UNARY = [
    "acos", "acosh", "asin", "asinh", "atan", "atanh", "cbrt", "ceil", "cos", "cosh", "degrees", "erf", "erfc", "exp", "exp2",
    "expm1", "fabs", "floor", "gamma", "isfinite", "isinf", "isnan", "lgamma", "log", "log10", "log1p", "log2", "modf", "radians",
    "sin", "sinh", "sqrt", "tan", "tanh", "trunc", "ulp",
]  # fmt: skip
SOME = [0.0, -0.0, 1.0, -1.0, 0.5, 2.0, -3.0, 1e-310, 1e308, 1e16, math.inf, -math.inf, math.nan]
PYTHON: dict[str, list[tuple]] = {
    **{f"math.{n}": [(v,) for v in REALS] for n in UNARY},
    **{f"math.{n}": [(a, b) for a in SOME for b in SOME] for n in ("atan2", "copysign", "fmod", "remainder", "hypot", "nextafter", "pow", "isclose")},
    **{f"math.{n}": [(a, b) for a in INTEGERS for b in INTEGERS] for n in ("gcd", "lcm")},
    "math.comb": [(n, k) for n in (0, 1, 5, 20, 61, 66, 67, -1) for k in (0, 1, 3, 30, 33, -1)],
    "math.factorial": [(n,) for n in (0, 1, 5, 20, 21, -1)],
    "math.perm": [(n, k) for n in (0, 1, 5, 20, 25, -1) for k in (0, 1, 3, 20, 21, 30, -1)],
    "math.isqrt": [(n,) for n in INTEGERS],
    "math.ldexp": [(a, n) for a in SOME for n in (0, 1, -1, 1023, -1074, 2000, -2000)],
    **{f"cmath.{n}": [(z,) for z in COMPLEX] for n in (
        "acos", "acosh", "asin", "asinh", "atan", "atanh", "cos", "cosh", "exp", "isfinite", "isinf", "isnan", "log", "log10", "phase",
        "polar", "sin", "sinh", "sqrt", "tan", "tanh",
    )},
    "cmath.rect": [(a, b) for a in SOME for b in SOME],
    "abs": [*((v,) for v in REALS), *((n,) for n in INTEGERS[:-1]), *((z,) for z in COMPLEX)],
    "bool": [(v,) for v in (*REALS, *INTEGERS, *COMPLEX)],
    "complex": [*((v,) for v in (*REALS, *INTEGERS, *COMPLEX)), *((a, b) for a in SOME for b in SOME)],
    "divmod": [*((a, b) for a in SOME for b in SOME), *((a, b) for a in INTEGERS for b in INTEGERS)],
    "float": [(v,) for v in (*REALS, *INTEGERS)],
    "int": [(v,) for v in (*REALS, *INTEGERS)],
    "pow": [*((a, b) for a in SOME for b in SOME), *((a, b) for a in INTEGERS for b in (0, 1, 2, 3))],
    "round": [(v,) for v in (*REALS, *INTEGERS)],
    **{n: [*((a, b) for a in SOME for b in SOME), *((a, b) for a in I64 for b in I64)] for n in ("max", "min")},
}  # fmt: skip
OF_SEQUENCES = {
    "math.dist": "math.dist((a, b), (b, c))", "math.prod": "math.prod((a, b, c))", "sum": "sum((a, b, c))",
    "all": "all((a, b, c))", "any": "any((a, b, c))",
}  # fmt: skip
MEANT_OF_NUMBERS = {
    # Python's complex functions follow tables of their own at infinities and NaN, ours those of C
    *(f"cmath.{n}" for n in ("acos", "acosh", "asin", "asinh", "atan", "atanh", "cos", "cosh", "exp", "log", "log10", "sin", "sinh", "sqrt", "tan", "tanh", "rect")),
}  # fmt: skip


def fits(value):
    """Integers of more than 64 bits wrap."""
    parts = value if isinstance(value, tuple) else (value,)
    return not any(isinstance(p, int) and not -(2**63) <= p < 2**63 for p in parts)


@pytest.mark.sampled(4)
@pytest.mark.parametrize("name", [*PYTHON, *OF_SEQUENCES])
def test_functions_of_python_numbers(name, tmp_path):
    if name in OF_SEQUENCES:
        parameters, text = "a, b, c", OF_SEQUENCES[name]
        sets = [(a, b, c) for a in SOME for b in SOME[::2] for c in (1.0, -0.0, math.nan)]
    else:
        sets = PYTHON[name]
        parameters = ", ".join("ab"[: max(len(s) for s in sets)])
        text = f"{name}({parameters})"
    texts = [(p, f"{name}({p})") for p in ("a", "a, b")] if name == "complex" else [(parameters, text)]
    made = compile_all(tmp_path, [p for p, _ in texts], [t for _, t in texts], "numbers")
    wrong = []
    compiled = [tp.function(f) for f in made]
    for given in sets:
        which = len(given) - 1 if name == "complex" else 0
        want, got = outcome(made[which], given), outcome(compiled[which], given)
        if not isinstance(want, Exception) and not fits(want):
            continue
        problem = differs(want, got, 16)
        if problem and not meant_of_numbers(name, given, want, got):
            wrong.append(f"{given}: {problem}")
    assert wrong[:20] == []


def meant_of_numbers(name, given, want, got):
    match name:
        case "pow":  # of floats that Python makes a complex number of
            return isinstance(want, complex) and isinstance(got, ValueError)
        case "math.lgamma":  # a few more ulps near its zeros; overflows where scipy's does
            return given[0] == -2.5 or (
                isinstance(got, Exception) and (abs(given[0]) < 1e-300 or given[0] == -math.inf)
            )
        case "cmath.phase":  # Python raises where the angle underflows
            return isinstance(want, OverflowError)
    return name in MEANT_OF_NUMBERS and not all(cmath.isfinite(v) for v in given)


# -- nothing is forgotten


def test_every_function_is_tried():
    tried = {*ELEMENTWISE, *CASES, *PYTHON, *OF_SEQUENCES, *(n for names in LEFT_OUT.values() for n in names)}
    handler_of(None)  # for what waits until SciPy is imported
    names = {n.removeprefix("scipy.") if n.startswith("scipy.special.") else n for n in BY_NAME}
    elsewhere = {n.removeprefix("scipy.") if n.startswith("scipy.special.") else n for n in WRITTEN}  # tests/prelude
    borrowed = {f"special.{n}" for n in SPECIAL if n not in OWN}
    assert sorted(names - tried - elsewhere - borrowed) == []
    assert sorted(n for names in LEFT_OUT.values() for n in names if n not in BY_NAME) == []
