"""One function run as plain Python, by the Core interpreter and as native code, and the same expected of all three.

`same` takes a function and arguments and gives what plain Python returned; `raises` does the same for calls that raise.
Compared are values, element types, Python against NumPy numbers, containers, written arguments, and which argument a result is.
"""

from __future__ import annotations

import copy
from collections.abc import Callable, Sequence
from typing import Any

import numpy as np

import tapeless as tp
from tapeless.frontend.entry import Traced, trace
from tapeless.interp.evaluate import evaluate
from tapeless.ir import pytree
from tapeless.passes.check.verify import verify
from tapeless.runtime.calling import Caller
from tapeless.testing.compare import difference
from tapeless.testing.stages import assemble

Arguments = Callable[[], tuple[tuple[Any, ...], dict[str, Any]]]
THREADS = (1, 2)
_functions: dict[Any, tp.Function[..., Any]] = {}


def same(f: Any, *args: Any, **kwargs: Any) -> Any:
    """Runs `f` on copies of the arguments, every way; gives plain Python's result."""
    __tracebackhide__ = True
    return same_made(f, lambda: copy.deepcopy((args, kwargs)))


def same_made(f: Any, make: Arguments, kinds: bool = True, interpret: bool = True) -> Any:
    """For arguments that a copy would change, such as strided or overlapping ones: `make` makes them for each run."""
    __tracebackhide__ = True
    python = getattr(f, "python", f)
    expected: Any = None
    seen: tuple[Any, ...] | None = None
    for name, run in _ways(f, make):
        if name == "the interpreter" and not interpret:
            continue
        args, kwargs = make()
        with np.errstate(all="ignore"):
            result = run(args, kwargs)
        outcome = (result, args, kwargs)
        if seen is None:
            expected, seen = result, outcome
            continue
        found = _compare(seen, outcome, kinds)
        assert not found, f"{python.__name__}, Python and {name}: {found}"
    return expected


def same_values(f: Any, *args: Any, **kwargs: Any) -> Any:
    """As `same`, where the type of a name is that of several paths: numbers are equal, but may be of a wider type."""
    __tracebackhide__ = True
    return same_made(f, lambda: copy.deepcopy((args, kwargs)), kinds=False)


def same_native(f: Any, *args: Any) -> Any:
    """As `same_values` without the interpreter, which is too slow for arrays that are worth several threads."""
    __tracebackhide__ = True
    return same_made(f, lambda: copy.deepcopy((args, {})), kinds=False, interpret=False)


def raises(error: type[BaseException], f: Any, *args: Any, **kwargs: Any) -> None:
    """Every way of running `f` raises this error, and no subclass of ours that hides another meaning."""
    __tracebackhide__ = True
    for name, run in _ways(f, lambda: copy.deepcopy((args, kwargs))):
        given, keywords = copy.deepcopy((args, kwargs))
        try:
            with np.errstate(all="ignore"):
                result = run(given, keywords)
        except error:
            continue
        raise AssertionError(f"{name} returned {result!r} instead of raising {error.__name__}")


def _ways(f: Any, make: Arguments) -> Sequence[tuple[str, Callable[..., Any]]]:
    python = getattr(f, "python", f)
    function = f if isinstance(f, tp.Function) else _functions.setdefault(python, tp.function(python))
    args, kwargs = make()
    traced = trace(python, args, kwargs, function.options)
    verify(traced.core)
    caller, _ = function._caller(args, kwargs)
    ways: list[tuple[str, Callable[..., Any]]] = [
        ("Python", lambda a, k: python(*a, **k)),
        ("the interpreter", lambda a, k: _interpret(traced, a, k)),
        ("native code", lambda a, k: function(*a, **k)),
    ]
    for threads in THREADS if function.options.device == "cpu" else ():
        one = Caller(caller.compiled, caller.specs, threads)
        ways.append((f"native code, threads={threads}", lambda a, k, one=one: one(pytree.flatten((a, k))[0])))
    return ways


def _interpret(traced: Traced, args: tuple[Any, ...], kwargs: dict[str, Any]) -> Any:
    core = traced.core
    leaves = pytree.flatten((args, kwargs))[0]
    values = [leaves[k] for k in traced.arguments] + [c.get() for c in traced.captured]
    given = [v.copy() if isinstance(v, np.ndarray) else v for v in values]
    results: list[Any] = list(evaluate(core, given))
    plain = len(results) - len(core.written)
    for k, value in zip(core.written, results[plain:], strict=True):
        values[k][...] = value
    return assemble(traced, results, leaves)


def _compare(a: tuple[Any, ...], b: tuple[Any, ...], kinds: bool) -> str:
    """Where two runs (result, arguments, keywords) differ."""
    for label, x, y in zip(("result", "arguments", "keywords"), a, b, strict=True):
        xs, xt = pytree.flatten(x)
        ys, yt = pytree.flatten(y)
        if xt != yt or _orders(x) != _orders(y):
            return f"{label}: {xt} and {yt}"
        for path, p, q in zip(pytree.leaf_paths(xt), xs, ys, strict=True):
            if p is q:
                continue
            if not kinds and label == "result":
                p, q = (np.asarray(v, np.result_type(p, q)) for v in (p, q))
            found = difference(p, q, path=f"{label}{path}")
            if found:
                return found
    first, second = _arguments_among(a), _arguments_among(b)
    return "" if first == second else f"results that are arguments: {first} and {second}"


def _orders(tree: Any) -> list[Any]:
    """The keys of dicts in their order, which the structure of a container leaves out."""
    if isinstance(tree, dict):
        return [list(tree), *(_orders(v) for v in tree.values())]
    if isinstance(tree, tuple | list):
        return [_orders(v) for v in tree]
    return []


def _arguments_among(run: tuple[Any, ...]) -> list[int | None]:
    """For each result, the argument that it is."""
    result, args, kwargs = run
    given = pytree.flatten((args, kwargs))[0]
    places = {id(v): k for k, v in reversed(list(enumerate(given))) if isinstance(v, np.ndarray)}
    return [places.get(id(r)) for r in pytree.flatten(result)[0]]
