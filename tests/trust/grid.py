"""What the grid of special values is made of: values by element type, how results are compared, functions made of text.

Gives `VALUES`, `pairs`, `same`, `outcome` and `compile_all`. Relies on NumPy for what is right.
"""

import importlib.util
import itertools
import math

import numpy as np

import tapeless as tp

INF, NAN = math.inf, math.nan
F64 = [
    0.0, -0.0, 1.0, -1.0, 0.5, -0.5, 1.5, 2.5, -2.5, 2.0, -3.0, 0.1, 7.3, math.pi, 1e-8, 5e-324, -5e-324, 1e-310,
    2.2250738585072014e-308, 1.7976931348623157e308, -1.7976931348623157e308, 2.0**53, 2.0**63, -(2.0**63), 1e16, 710.0, -746.0, 4503599627370497.5,
    INF, -INF, NAN,
]  # fmt: skip
F32 = [
    0.0, -0.0, 1.0, -1.0, 0.5, 1.5, 2.5, -2.5, 2.0, -3.0, 0.1, 3.1415927, 1e-45, -1e-45, 1e-40, 1.1754944e-38, 3.4028235e38,
    -3.4028235e38, 16777216.0, 2.0**31, -(2.0**63), 89.0, -104.0, INF, -INF, NAN,
]  # fmt: skip
I64 = [
    0,
    1,
    -1,
    2,
    -2,
    3,
    7,
    -7,
    10,
    63,
    64,
    65,
    -64,
    2**31,
    2**53 + 1,
    -(2**53) - 1,
    2**62,
    2**63 - 1,
    -(2**63),
    -(2**63) + 1,
]
I32 = [0, 1, -1, 2, -3, 7, 31, 32, -32, 2**24 + 1, 2**31 - 1, -(2**31), -(2**31) + 1]
PARTS = [0.0, -0.0, 1.0, -1.0, 0.5, 1e-310, -1e-310, 1e300, 3.0, INF, -INF, NAN]
C128 = [complex(a, b) for a in PARTS for b in PARTS]
C64 = [
    complex(a, b) for a in (0.0, -0.0, 1.0, -2.0, 1e-40, 1e30, INF, -INF, NAN) for b in (0.0, -0.0, 1.0, -0.5, INF, NAN)
]
VALUES = {
    "float64": np.array(F64), "float32": np.array(F32, np.float32), "int64": np.array(I64), "int32": np.array(I32, np.int32),
    "uint8": np.array([0, 1, 2, 3, 7, 127, 128, 200, 255], np.uint8),
    "int16": np.array([0, 1, -1, 2, 3, -3, 100, 181, 182, 255, -(2**15), 2**15 - 1], np.int16),
    "uint64": np.array([0, 1, 2, 3, 7, 63, 64, 2**32, 2**53 + 1, 2**63 - 1, 2**63, 2**63 + 1025, 2**64 - 1], np.uint64),
    "bool": np.array([True, False]), "complex128": np.array(C128), "complex64": np.array(C64, np.complex64),
}  # fmt: skip
TINY = {np.dtype(t): np.finfo(t).smallest_normal for t in (np.float32, np.float64)}


def pairs(dtype):
    """Each value beside each: two arrays."""
    found = VALUES[dtype]
    if dtype.startswith("complex"):
        found = found[:: 5 if dtype == "complex128" else 3]
    return tuple(np.array(v) for v in zip(*itertools.product(found, found), strict=True))


# -- comparing


def same(want, got, ulps=0, whole=False):
    """Where two results differ, in words: by kind, element type, shape, or bits. NaN equals NaN. Arrays of no dimension count as
    NumPy's numbers. Finite floats may be so many units of their last place apart, complex ones of the larger part's, those
    of an array that is right as a `whole` (the solution of equations) of its largest number's."""
    if isinstance(want, tuple | list):
        if type(want) is not type(got) or len(want) != len(got):
            return f"{type(want).__name__} of {len(want)} and {type(got).__name__}"
        found = [same(a, b, ulps, whole) for a, b in zip(want, got, strict=True)]
        return next((f"[{k}] {text}" for k, text in enumerate(found) if text), "")
    if not isinstance(want, int | float | complex | np.generic | np.ndarray):
        return "" if type(want) is type(got) and want == got else f"{want!r} and {got!r}"
    want, got = (v[()] if isinstance(v, np.ndarray) and not v.ndim else v for v in (want, got))
    if type(want) is not type(got):
        return f"{type(want).__name__} and {type(got).__name__} ({want!r:.60} and {got!r:.60})"
    x, y = np.asarray(want), np.asarray(got)
    if x.dtype != y.dtype or x.shape != y.shape:
        return f"{x.dtype}{x.shape} and {y.dtype}{y.shape}"
    wrong = _wrong(x, y, ulps, whole)
    if not wrong.any():
        return ""
    where = tuple(int(k) for k in np.argwhere(wrong)[0])
    return f"{list(where)} of {int(wrong.sum())}: {x[where]!r} and {y[where]!r}"


def _wrong(x, y, ulps, whole):
    if x.dtype.kind not in "fc":
        return np.asarray(x != y)
    with np.errstate(all="ignore"):
        if x.dtype.kind == "c":
            scale = _scale(np.maximum(np.abs(x.real), np.abs(x.imag)), whole)
            return _apart(x.real, y.real, ulps, scale) | _apart(x.imag, y.imag, ulps, scale)
        return _apart(x, y, ulps, _scale(np.abs(x), whole))


def _scale(sizes, whole):
    return np.full(sizes.shape, np.max(sizes[np.isfinite(sizes)], initial=0), sizes.dtype) if whole else sizes


def _apart(x, y, ulps, scale):
    equal = (np.isnan(x) & np.isnan(y)) | ((x == y) & (np.signbit(x) == np.signbit(y)))
    if not ulps:
        return ~equal
    unit = np.maximum(np.spacing(np.where(np.isfinite(scale), np.abs(scale), 0)), np.finfo(x.dtype).smallest_subnormal)
    return ~(equal | (np.isfinite(x) & np.isfinite(y) & (np.abs(x - y) <= ulps * unit)))


def outcome(function, args):
    """What a call returns, or what it raises."""
    try:
        with np.errstate(all="ignore"):
            return function(*args)
    except Exception as error:  # whatever NumPy raises
        return error


def differs(want, got, ulps=0, whole=False):
    """Where two outcomes differ. Errors of compilation stand for any; others must be of NumPy's class, or TypeError's kind."""
    if isinstance(want, Exception):
        if not isinstance(got, Exception):
            return f"NumPy raises {want!r:.80}, but {got!r:.80} was returned"
        known = isinstance(got, tp.TapelessError) or isinstance(got, type(want)) or isinstance(want, type(got))
        return "" if known and not _internal(got) else f"NumPy raises {want!r:.80}, but {got!r:.80} was raised"
    if isinstance(got, Exception):
        return f"NumPy returns {want!r:.60}, but raised {type(got).__name__}: {str(got).splitlines()[0]:.120}"
    return same(want, got, ulps, whole)


def _internal(error):
    return getattr(error, "code", "") == "TP900"


# -- functions made of text


def compile_all(tmp_path, parameters, bodies, name="cases"):
    """A Python function for each text, in a module of their own."""
    lines = ["import cmath, math", "import numpy as np", "from scipy import special"]
    for k, (names, body) in enumerate(zip(parameters, bodies, strict=True)):
        lines += ["", "", f"def case{k}({names}):", f"    return {body}"]
    path = tmp_path / f"{name}.py"
    path.write_text("\n".join(lines) + "\n", encoding="utf-8")
    spec = importlib.util.spec_from_file_location(name, path)
    module = importlib.util.module_from_spec(spec)
    spec.loader.exec_module(module)
    return [getattr(module, f"case{k}") for k in range(len(bodies))]
