"""The examples in the docstrings of NumPy and SciPy, of every function that compiled code may call.

`FUNCTIONS` holds the functions, `calls_of` runs the examples of one in plain Python and gives its calls with their arguments,
`judge` compiles such a call and compares it with the library: values, shapes, element types, written arguments.
What is meant to differ stands in `KNOWN` with its reason. `python -m tests.prelude.docstrings` prints what is refused and why.
"""

from __future__ import annotations

import ast
import contextlib
import copy
import doctest
import io
import itertools
import linecache
import os
import sys
import tempfile
import warnings
from collections.abc import Callable, Iterator
from dataclasses import dataclass, field, replace
from functools import partial
from typing import Any
from unittest import mock

import numpy as np
import scipy.fft
import scipy.integrate
import scipy.linalg
import scipy.signal
import scipy.sparse
import scipy.spatial.distance
import scipy.special
import scipy.stats

import tapeless as tp
from tapeless.api import function as api_function
from tapeless.errors import InternalError
from tapeless.frontend.state import handlers
from tapeless.runtime.compile import compile_specs
from tests.trust.grid import outcome

LEFT_OUT = {
    "about element types, which have no values": ("np.dtype", "np.finfo", "np.iinfo", "np.promote_types", "np.result_type"),
    "float32 is summed one by one, which NumPy does in pairs: how far off depends on the threads": (
        "np.mean: np.mean(a)", "np.std: np.std(a)", "np.var: np.var(a)",
    ),
    "a matrix that is singular but for rounding, which the processor decides": ("np.linalg.inv: inv(a)",),
}  # fmt: skip
KNOWN: dict[str, tuple[str, ...]] = {
    "eigenvalues are complex, whatever their values": (
        "np.linalg.eig: LA.eig(np.diag((1, 2, 3)))", "np.linalg.eig: LA.eig(a)",
        "np.linalg.eigvals: LA.eigvals(D)", "np.linalg.eigvals: LA.eigvals(A)",
    ),
    "vectors of two elements, which NumPy 2.0 deprecates": ("np.cross: np.cross(x, y)",),
    "arrays without dimensions are NumPy's numbers here": ("np.isscalar: np.isscalar(np.array(3.1))",),
    "no element type holds the result (NumPy: float16)": ("np.ldexp: np.ldexp(5, np.arange(4))",),
    "a polynomial that the points do not determine is an error": ("np.polyfit: np.polyfit(x, y, 30)",),
    "any basis of what is left will do": (
        "np.linalg.svd: np.linalg.svd(a, full_matrices=True)", "np.linalg.svd: np.linalg.svd(b, full_matrices=True)",
        "scipy.linalg.svd: linalg.svd(a)", "scipy.linalg.qr: linalg.qr(a)",
    ),
    "what it gives is for scipy.linalg.lu_solve": ("scipy.linalg.lu_factor: lu_factor(A)",),
}  # fmt: skip
DEFINED: dict[str, tuple[Callable[[Any], Any], tuple[str, ...]]] = {  # what of an array of a result the library promises
    "shape and element type": (np.zeros_like, ("np.empty", "np.empty_like")),
    "the elements, but not their order within a part": (np.sort, ("np.partition", "np.argpartition")),
    "vectors but for a factor of size 1": (np.abs, ("np.linalg.eigh", "np.linalg.svd", "scipy.linalg.eigh", "scipy.linalg.svd")),
    "one triangle": (lambda a: np.triu(a) if np.ndim(a) == 2 else a, ("scipy.linalg.cho_factor",)),
}  # fmt: skip
TOLERANCE = {"float64": 1e-10, "complex128": 1e-10, "float32": 2e-5, "complex64": 2e-5}
MANY = 40  # arrays in a list: more are not worth a parameter each
_numbers = itertools.count()


def _functions() -> dict[str, Any]:
    """By name, each once. SciPy's are there since this module has imported it."""
    handlers.handler_of(None)
    names = [n for n in sorted(handlers.BY_NAME) if n.startswith(("np.", "scipy.")) and not listed(LEFT_OUT, n)]
    found = {id(f): (name, f) for name in reversed(names) if (f := handlers.resolve(name)) is not None}
    return dict(sorted((name, f) for name, f in found.values() if examples(f)))


def listed(table: dict[str, tuple[str, ...]], entry: str) -> bool:
    return any(entry in entries for entries in table.values())


def examples(function: Any) -> list[doctest.Example]:
    return doctest.DocTestParser().get_examples(getattr(function, "__doc__", "") or "")


FUNCTIONS = _functions()


# -- running docstrings


@dataclass(frozen=True)
class Call:
    """A call in an example and its arguments: of `function`, of its `method`, or of the `method` of what `of` gives."""

    text: str
    function: Any
    method: str
    args: tuple[Any, ...]
    kwargs: dict[str, Any]
    of: Call | None = None


def calls_of(function: Any) -> Iterator[Call]:
    """Each call is given before its example runs, since that may change the arguments. Examples that fail are passed over."""
    names: dict[str, Any] = {"np": np, "scipy": scipy, "__name__": "docstring"}
    objects: dict[str, Call] = {}  # distributions with their arguments, by the names they are given
    seen = set()
    with _quiet():
        for example in examples(function):
            for node in ast.walk(_parsed(example.source)):
                match node:
                    case ast.Assign([ast.Name(name)], ast.Call() as made_by) if _is_class(function):
                        if (call := _call(made_by, function, names, objects)) and not call.method:
                            objects[name] = call
                    case ast.Call() if call := _call(node, function, names, objects):
                        key = f"{call.text} {call.args!r} {call.kwargs!r}"
                        if key not in seen and call.method != "rvs" and (call.method or not _is_class(function)):
                            seen.add(key)
                            yield call
            with contextlib.suppress(Exception), contextlib.redirect_stdout(io.StringIO()):
                exec(made(example.source), names)


def _is_class(function: Any) -> bool:
    """Distributions: calls give objects, and `rvs` random numbers. Their methods are what is compared."""
    return hasattr(function, "rvs")


def _parsed(source: str) -> ast.AST:
    try:
        return ast.parse(source)
    except SyntaxError:
        return ast.Module([], [])


def _call(node: ast.Call, function: Any, names: dict[str, Any], objects: dict[str, Call]) -> Call | None:
    """The call, if it is one of the function and its arguments can be had."""
    if any(not isinstance(n, ast.Name | ast.Attribute | ast.Load) for n in ast.walk(node.func)):
        return None
    taken = ast.Expression(ast.Call(ast.Name("arguments_of", ast.Load()), node.args, node.keywords))
    of = (
        objects.get(node.func.value.id)
        if isinstance(node.func, ast.Attribute) and isinstance(node.func.value, ast.Name)
        else None
    )
    try:
        called = eval(ast.unparse(node.func), names)
        if of is None and called is not function and getattr(called, "__self__", None) is not function:
            return None
        with contextlib.redirect_stdout(io.StringIO()):
            args, kwargs = eval(made(ast.unparse(taken), "eval"), {**names, "arguments_of": lambda *a, **k: (a, k)})
    except Exception:
        return None
    return Call(ast.unparse(node), function, "" if called is function else called.__name__, args, kwargs, of)


@contextlib.contextmanager
def _quiet() -> Iterator[None]:
    """The same random numbers in every run; no pictures."""
    random = np.random.default_rng
    with (
        warnings.catch_warnings(),
        np.errstate(all="ignore"),
        mock.patch.object(np.random, "default_rng", lambda seed=None: random(0 if seed is None else seed)),
        mock.patch.dict(sys.modules, {"matplotlib": None, "matplotlib.pyplot": None}),
    ):
        warnings.simplefilter("ignore")
        np.random.seed(0)
        yield


def made(text: str, mode: str = "exec") -> Any:
    """Code whose source can be found, which the compiler reads."""
    name = f"<docstring {next(_numbers)}>"
    linecache.cache[name] = (len(text), None, text.splitlines(True), name)
    return compile(text, name, mode)


# -- a call as a function


@dataclass
class Written:
    """Builds the text of a call. Arrays become parameters, so do numbers in `numbers`; the rest stands in it or is closed over."""

    numbers: bool
    given: list[Any] = field(default_factory=list)
    names: dict[str, Any] = field(default_factory=dict)

    def call(self, call: Call) -> str:
        self.names["called"] = call.function
        called = self.call(call.of) if call.of else "called"
        parts = [self.argument(v) for v in call.args] + [f"{n}={self.text(v)}" for n, v in call.kwargs.items()]
        return f"{called}{'.' if call.method else ''}{call.method}({', '.join(parts)})"

    def argument(self, value: Any) -> str:
        if self.numbers and type(value) in (int, float, complex):
            return self.parameter(value)
        return self.text(value)

    def text(self, value: Any) -> str:
        if type(value) is np.ndarray or isinstance(value, np.number):
            return self.parameter(value)
        if type(value) in (list, tuple) and _arrays(value) <= MANY:
            inner = ", ".join(self.text(v) for v in value)
            return f"[{inner}]" if type(value) is list else f"({inner},)" if value else "()"
        if _literal(value):
            return repr(value)
        name = f"constant{len(self.names)}"
        self.names[name] = value
        return name

    def parameter(self, value: Any) -> str:
        self.given.append(value)
        return f"a{len(self.given) - 1}"


def _arrays(value: Any) -> int:
    if type(value) in (list, tuple):
        return sum(map(_arrays, value))
    return isinstance(value, np.ndarray | np.generic)


def _literal(value: Any) -> bool:
    if type(value) in (float, complex):
        return bool(np.isfinite(value)) and "-" not in repr(value)  # -0.0 and 1-0j are other numbers when read again
    return value is None or type(value) in (int, bool, str)


def function_of(call: Call, numbers: bool) -> tuple[Callable[..., Any], list[Any]]:
    """A Python function that makes the call, and its arguments."""
    written = Written(numbers)
    text = written.call(call)
    parameters = ", ".join(f"a{k}" for k in range(len(written.given)))
    exec(made(f"def example({parameters}):\n    return {text}\n"), written.names)
    return written.names["example"], written.given


# -- judging


@dataclass(frozen=True)
class Verdict:
    """`problem` says how we differ, `refusal` why it is not compiled; neither: it agrees."""

    call: Call
    problem: str = ""
    refusal: str = ""


def verdicts(name: str) -> Iterator[Verdict]:
    """Of all examples of a function. What is listed to differ and does not is a problem."""
    found: dict[str, bool] = {}
    view = next((view for view, names in DEFINED.values() if name in names), lambda a: a)
    for call in calls_of(FUNCTIONS[name]):
        entry = f"{name}: {call.text}"
        if listed(LEFT_OUT, entry):
            continue
        verdict = judge(call, view)
        if listed(KNOWN, entry):  # a text may stand for several calls: one has to differ
            found[entry] = found.get(entry, False) or bool(verdict.problem)
            verdict = replace(verdict, problem="")
        yield verdict
    for entry, differed in found.items():
        if not differed:
            yield replace(verdict, problem=f"{entry} is listed as different, but agrees or is refused")


def judge(call: Call, view: Callable[[Any], Any]) -> Verdict:
    verdict = Verdict(call)
    for numbers in (True, False):  # where a number has to be known, it is written in the call
        function, given = function_of(call, numbers)
        ours, theirs = copy.deepcopy(given), copy.deepcopy(given)
        found = outcome(tp.function(function), ours)
        if not isinstance(found, tp.CompileError) or isinstance(found, InternalError):
            return Verdict(call, _compared(found, outcome(function, theirs), ours, theirs, view))
        verdict = Verdict(call, refusal=found.reason)
    return verdict


def _compared(found: Any, wanted: Any, ours: list[Any], theirs: list[Any], view: Callable[[Any], Any]) -> str:
    if isinstance(found, Exception) or isinstance(wanted, Exception):
        same = isinstance(found, type(wanted)) or isinstance(wanted, type(found))
        return "" if same else f"{found!r} and {wanted!r}"
    if problem := differs(found, wanted, view):
        return problem
    return next(
        (f"argument {k} afterwards: {p}" for k, pair in enumerate(zip(ours, theirs)) if (p := differs(*pair))), ""
    )


def differs(found: Any, wanted: Any, view: Callable[[Any], Any] = lambda a: a) -> str:
    """How two results differ, ours first; nothing if they agree. An array without dimensions is NumPy's number here."""
    if isinstance(wanted, tuple | list):
        if _container(found) != _container(wanted) or len(found) != len(wanted):
            return f"{found!r} and {wanted!r}"
        pairs = enumerate(zip(found, wanted, strict=True))
        return next((f"[{k}] {text}" for k, (x, y) in pairs if (text := differs(x, y, view))), "")
    found, wanted = (v[()] if isinstance(v, np.ndarray) and not v.ndim else v for v in (found, wanted))
    if _kind(found) is not _kind(wanted):
        return f"{type(found).__name__} and {type(wanted).__name__}: {found!r} and {wanted!r}"
    x, y = (np.asarray(v.toarray() if scipy.sparse.issparse(v) else v) for v in (found, wanted))
    if x.dtype != y.dtype or x.shape != y.shape:
        return f"{x.dtype}{x.shape} and {y.dtype}{y.shape}"
    return "" if _close(view(x), view(y)) else f"{found!r} and {wanted!r}"


def _container(value: Any) -> tuple[bool, bool, Any]:
    """Lists, tuples, tuples with names: not what their classes are called."""
    return isinstance(value, list), isinstance(value, tuple), getattr(value, "_fields", None)


def _kind(value: Any) -> type:
    return bool if isinstance(value, np.bool_) else type(value)


def _close(x: np.ndarray, y: np.ndarray) -> bool:
    """Up to rounding, relative to each number and, a thousandth as much, to the largest one beside it."""
    tolerance = TOLERANCE.get(x.dtype.name)
    if tolerance is None or not x.size:
        return np.array_equal(x, y)
    largest = np.max(np.abs(y), initial=0.0, where=np.isfinite(y))
    return np.allclose(x, y, rtol=tolerance, atol=1e-3 * tolerance * largest, equal_nan=True)


def main() -> None:
    with (
        tempfile.TemporaryDirectory() as folder,
        mock.patch.dict(os.environ, TAPELESS_CACHE_DIR=folder),
        mock.patch.object(api_function, "compile_specs", partial(compile_specs, level=0)),  # as the test does
    ):
        found = [(name, v) for name in FUNCTIONS for v in verdicts(name)]
    refused = [(name, v) for name, v in found if v.refusal]
    for name, v in refused:
        print(f"{name}: {v.call.text}: {v.refusal}")
    for name, v in found:
        if v.problem:
            print(f"WRONG: {name}: {v.call.text}: {v.problem}")
    functions = len({name for name, _ in found})
    print(f"{functions} functions, {len(found)} examples, {len(refused)} refused")


if __name__ == "__main__":
    main()
