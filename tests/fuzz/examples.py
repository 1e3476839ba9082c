"""Calls of every function that compiled code may call, taken from the tables of the other tests.

`examples_of(name)` gives `Example`s: an expression with one call of that function, and what its names stand for. They come from
the tables of `tests/prelude`, from `tests/trust/grid_cases.py`, from `tests/ops/test_borrowed.py` and from the docstrings of NumPy and SciPy. All of
them run in plain Python. What is meant to differ there is left out here; a function without any example fails a test.
"""

from __future__ import annotations

import ast
import builtins
import cmath
import copy
import importlib
import itertools
import math
import operator
import types
import warnings
from collections.abc import Iterator
from dataclasses import dataclass
from functools import cache
from pathlib import Path
from typing import Any

import numpy as np
import scipy
import scipy.fft
import scipy.integrate
import scipy.linalg
import scipy.signal
import scipy.spatial.distance
import scipy.special
import scipy.stats

import tapeless as tp
from tapeless.frontend.numpy.elementwise import ROWS, RULES, rule_of
from tapeless.frontend.state.handlers import BY_NAME, handler_of, resolve
from tapeless.ir.types import FROM_NUMPY
from tests.ops import test_borrowed
from tests.prelude import docstrings, test_discrete_distributions, test_distributions, test_special_functions
from tests.trust import grid_cases, test_numpy_grid

SCOPE: dict[str, Any] = {
    "np": np, "math": math, "cmath": cmath, "operator": operator, "scipy": scipy, "linalg": scipy.linalg, "special": scipy.special,
    "st": scipy.stats, "tp": tp,
}  # fmt: skip
DTYPES = frozenset(FROM_NUMPY)
NUMBERS = (bool, int, float, complex, np.generic)
OPERATORS = "add and_ floordiv lshift matmul mod mul or_ pow rshift sub truediv xor".split()
LEFT_OUT = {n for names in grid_cases.LEFT_OUT.values() for n in names} - {
    "np.diagonal",
    *(f"operator.{n}" for n in OPERATORS),
} | {f"scipy.sparse.{kind}_{form}" for kind in ("coo", "csc", "csr") for form in ("array", "matrix")}  # containers
NOT_CALLS = ("ERRORS", "REFUSED")  # tables of calls that fail


@dataclass(frozen=True)
class Example:
    name: str
    text: str
    given: tuple[tuple[str, Any], ...]  # what its names stand for: numbers and arrays

    def run(self) -> Any:
        """What plain Python gives; arrays are not changed."""
        with np.errstate(all="ignore"), warnings.catch_warnings():
            warnings.simplefilter("ignore")
            return eval(self.text, {**SCOPE, **copy.deepcopy(dict(self.given))})

    def works(self) -> bool:
        """Whether it gives numbers."""
        try:
            return all(map(_supported, [*(v for _, v in parts(self.run())), *(v for _, v in self.given)]))
        except Exception:
            return False


def _supported(value: Any) -> bool:
    """Numbers and arrays of the element types that there are. Arrays without dimensions are NumPy's numbers here."""
    kind = np.asarray(value).dtype if isinstance(value, (np.ndarray, *NUMBERS)) else None
    return kind in DTYPES and not (isinstance(value, np.ndarray) and value.ndim == 0)


def parts(value: Any, path: str = "") -> Iterator[tuple[str, Any]]:
    """The numbers and arrays of a result, with how they are reached from it."""
    if isinstance(value, tuple | list):
        for k, part in enumerate(value):
            yield from parts(part, f"{path}[{k}]")
    elif value is not None:
        yield path, value


handler_of(None)  # what waits for SciPy is entered into the table
NAMES = sorted(n for n in BY_NAME if n not in LEFT_OUT)
NAME_OF = {id(resolve(n)): n for n in reversed(NAMES)}
ALIASES = {n: NAME_OF[id(resolve(n))] for n in NAMES}  # np.abs and np.absolute are one function


@cache
def examples_of(name: str) -> tuple[Example, ...]:
    """Those that work. Docstrings are read where the tables have few."""
    found = [e for e in _of_tables().get(ALIASES[name], ()) if e.works()]
    return tuple(found if len(found) > 12 else [*found, *(e for e in _of_docstrings(name) if e.works())])


def has_example(name: str) -> bool:
    return any(e.works() for e in itertools.chain(_of_tables().get(ALIASES[name], ()), _of_docstrings(name)))


@cache
def _of_tables() -> dict[str, list[Example]]:
    found: dict[str, list[Example]] = {}
    for example in (*_of_grid(), *_of_numbers(), *_of_special_functions(), *_of_distributions(), *_of_prelude()):
        if example.name in ALIASES:
            found.setdefault(ALIASES[example.name], []).append(example)
    return found


def _example(name: str, text: str, **given: Any) -> Example:
    return Example(name, text, tuple(given.items()))


# -- tables of expressions and of values

MATRIX, VECTOR, HALF = (
    np.array([[1.5, 2.0], [0.5, 4.0]]),
    np.array([0.3, -1.2, 0.7, 2.9, 0.4]),
    np.array([2 + 0j, 1 - 1j, 0.5j]),
)
DISTANCES = "euclidean sqeuclidean cityblock chebyshev minkowski cosine correlation canberra braycurtis hamming".split()
# Functions whose tests are not tables.
MORE = (
    ("np.linalg.eigvals", "np.linalg.eigvals(x + 0j)", {"x": MATRIX}),
    ("np.linalg.matrix_transpose", "np.linalg.matrix_transpose(x)", {"x": MATRIX}),
    ("np.mask_indices", "np.mask_indices(3, np.triu)", {}),
    ("scipy.fft.fftshift", "scipy.fft.fftshift(x)", {"x": VECTOR}),
    ("scipy.fft.irfft", "scipy.fft.irfft(x)", {"x": HALF}),
    ("scipy.fft.irfft", "scipy.fft.irfft(x, n=5)", {"x": HALF}),
    *((f"scipy.fft.{name}", f"scipy.fft.{name}(x)", {"x": MATRIX}) for name in ("idst", "dctn", "idctn", "dstn", "idstn")),
    *((f"scipy.integrate.{name}", f"scipy.integrate.{name}(x, t)", {"x": VECTOR, "t": np.arange(5.0) ** 1.5}) for name in ("trapezoid", "cumulative_trapezoid")),
    ("scipy.integrate.simpson", "scipy.integrate.simpson(x, x=t)", {"x": VECTOR, "t": np.arange(5.0) ** 1.5}),
    ("scipy.integrate.simpson", "scipy.integrate.simpson(x, axis=0)", {"x": MATRIX}),
    ("scipy.signal.lfilter", "scipy.signal.lfilter(b, a, x)", {"b": VECTOR[:2], "a": np.array([1.0, -0.5, 0.2]), "x": VECTOR}),
    *((f"scipy.spatial.distance.{name}", f"scipy.spatial.distance.{name}(x, y)", {"x": VECTOR, "y": VECTOR[::-1] ** 2}) for name in DISTANCES),
    *((f"scipy.spatial.distance.{name}", f"scipy.spatial.distance.{name}(x{y}, 'cosine')", {"x": MATRIX}) for name, y in (("cdist", ", x + 1"), ("pdist", ""))),
    ("scipy.spatial.distance.squareform", "scipy.spatial.distance.squareform(x)", {"x": VECTOR[:3]}),
    ("scipy.stats.kurtosis", "st.kurtosis(x)", {"x": VECTOR}),
    ("scipy.stats.skew", "st.skew(x, bias=False)", {"x": VECTOR}),
    ("scipy.stats.pearsonr", "st.pearsonr(x, y)", {"x": VECTOR, "y": VECTOR[::-1] ** 2}),
    ("scipy.stats.multivariate_normal", "st.multivariate_normal.logpdf(x, m, c)", {"x": VECTOR[:2], "m": VECTOR[1:3], "c": np.diag([2.0, 0.5])}),
)  # fmt: skip


def _of_grid() -> Iterator[Example]:
    letters = grid_cases.ARGUMENTS
    meant = {text for texts in grid_cases.MEANT.values() for text in texts}
    for name, texts in grid_cases.CASES.items():
        full = f"scipy.{name}" if name.startswith("special.") else name
        for text in texts:
            if text not in meant:
                used = {n.id for n in ast.walk(ast.parse(text)) if isinstance(n, ast.Name)} & letters.keys()
                yield _example(full, text, **{n: letters[n] for n in sorted(used)})
    for name in [*(f"np.{n}" for n in ROWS), *(n for n in RULES if n.startswith("np."))]:
        for first, second in ("gu", "vv", "dd", "pp", "yy", "sw", "bb", "wk", "wg"):
            names = ("x", "y")[: rule_of(name)[0]]
            given = dict(zip(names, (letters[first], letters[second]), strict=False))
            yield _example(name, f"{name}({', '.join(names)})", **given)


def _of_numbers() -> Iterator[Example]:
    for name, sets in test_numpy_grid.PYTHON.items():
        for given in sets[::7]:
            names = "xy"[: len(given)]
            yield _example(name, f"{name}({', '.join(names)})", **dict(zip(names, given, strict=True)))
    yield from (_example(name, text, **given) for name, text, given in MORE)
    for name, text in test_numpy_grid.OF_SEQUENCES.items():
        yield _example(name, text, a=0.5, b=2.0, c=-1.5)
    for name in OPERATORS:
        for x, y in ((7, 2), (MATRIX, MATRIX.T + 1.0)):
            yield _example(f"operator.{name}", f"operator.{name}(x, y)", x=x, y=y)


def _of_special_functions() -> Iterator[Example]:
    for name, values in test_special_functions.ONE.items():
        yield _example(f"scipy.special.{name}", f"special.{name}(x)", x=np.array(values))
    for name, (x, y) in test_special_functions.TWO.items():
        yield _example(f"scipy.special.{name}", f"special.{name}(x, y)", x=np.array(x), y=np.array(y))
    for name in ("legendre", "chebyt", "chebyu", "hermite", "hermitenorm", "laguerre"):
        yield _example(f"scipy.special.eval_{name}", f"special.eval_{name}(4, x)", x=np.array([-1.5, -0.4, 0.0, 0.9]))
    for name, (_, first, last) in test_borrowed.CASES.items():
        operands = {f"a{k}": v for k, v in enumerate(first)}
        text = ", ".join([*operands, "x"])
        yield _example(f"scipy.special.{name}", f"special.{name}({text})", **operands, x=np.array(last))
        yield _example(f"scipy.special.{name}", f"special.{name}({text})", **operands, x=last[0])
    for name in [n for n in BY_NAME if n.startswith("scipy.special.")]:
        for given in ((0.4,), (0.4, 0.7), (1.5, 0.7, 0.4), (2, 0.6)):
            names = "xyz"[: len(given)]
            yield _example(
                name, f"{name.removeprefix('scipy.')}({', '.join(names)})", **dict(zip(names, given, strict=True))
            )


def _of_distributions() -> Iterator[Example]:
    continuous = ("logpdf", "pdf", "cdf", "sf", "logcdf", "logsf")
    discrete = ("logpmf", "pmf", "cdf", "sf", "logcdf", "logsf")
    counts = test_discrete_distributions.DISCRETE
    for table, methods in ((test_distributions.CONTINUOUS, continuous), (counts, discrete)):
        for name, (shapes, points) in table.items():
            full, named = f"scipy.stats.{name}", {f"a{k}": v for k, v in enumerate(shapes)}
            text = "".join(f", {n}" for n in named)
            for method in methods:
                yield _example(full, f"st.{name}.{method}(x{text})", x=np.array(points), **named)
            if methods is continuous:
                yield _example(
                    full,
                    f"st.{name}.logpdf(x{text}, loc, scale)",
                    x=1.5 + 0.8 * np.array(points),
                    loc=1.5,
                    scale=0.8,
                    **named,
                )
                yield _example(full, f"st.{name}.ppf(q{text})", q=np.array([0.05, 0.4, 0.93]), **named)
            for method in ("mean", "var", "std"):
                yield _example(full, f"st.{name}.{method}({text[2:]})", **named)


# -- calls in the lambdas of tables


def _of_prelude() -> Iterator[Example]:
    for path in sorted(Path(docstrings.__file__).parent.glob("test_*.py")):
        module = importlib.import_module(f"tests.prelude.{path.stem}")
        for node in ast.parse(path.read_text()).body:
            match node:
                case ast.Assign([ast.Name(table)], ast.Dict(keys, values)) if table not in NOT_CALLS:
                    for key, value in zip(keys, values, strict=True):
                        match key, value:
                            case ast.Constant(name), ast.Tuple([ast.Lambda() as function, *_]):
                                yield from _of_lambda(module, function, getattr(module, table)[name][1:])


def _of_lambda(module: types.ModuleType, function: ast.Lambda, args: tuple[Any, ...]) -> Iterator[Example]:
    given = dict(zip([a.arg for a in function.args.args], args, strict=False))
    for node in ast.walk(function.body):
        if (
            isinstance(node, ast.Call)
            and (name := _called(module, node.func))
            and (found := _names(module, node, given)) is not None
        ):
            yield Example(name, ast.unparse(node), tuple(found.items()))


def _called(module: types.ModuleType, node: ast.expr) -> str:
    """The function of the table that is called, also by a method of it: np.add.reduce, st.norm.pdf."""
    try:
        called = eval(ast.unparse(node), vars(module))
    except Exception:
        return ""
    return NAME_OF.get(id(called)) or NAME_OF.get(id(getattr(called, "__self__", None)), "")


def _names(module: types.ModuleType, node: ast.Call, given: dict[str, Any]) -> dict[str, Any] | None:
    """What the names in a call stand for; None where it needs more than numbers and arrays."""
    found = {}
    bound = {n.arg for n in ast.walk(node) if isinstance(n, ast.arg)}
    for n in [n.id for n in ast.walk(node) if isinstance(n, ast.Name) and n.id not in bound]:
        value = given[n] if n in given else vars(module).get(n, getattr(builtins, n, None))
        if isinstance(value, (np.ndarray, *NUMBERS)):
            found[n] = value
        elif SCOPE.get(n, getattr(builtins, n, None)) is not value or value is None:
            return None
    return None if bound & found.keys() else found


# -- docstrings


def _of_docstrings(name: str) -> Iterator[Example]:
    entries = [e for table in (docstrings.KNOWN, docstrings.LEFT_OUT) for e in table.values()]
    different = {e for entry in entries for e in entry}
    for call in docstrings.calls_of(docstrings.FUNCTIONS[name]) if name in docstrings.FUNCTIONS else ():
        written = docstrings.Written(numbers=False)
        text = written.call(call)
        if f"{name}: {call.text}" not in different and written.names.keys() == {"called"} and _small(written.given):
            given = {f"a{k}": v for k, v in enumerate(written.given)}
            yield _example(name, text.replace("called", name.replace("scipy.stats", "st"), 1), **given)


def _small(values: list[Any]) -> bool:
    return all(np.size(v) <= 60 for v in values)
