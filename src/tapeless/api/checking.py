"""`tp.check_grads`: derivatives against differences of the function itself."""

from __future__ import annotations

from collections.abc import Callable, Iterator, Sequence
from typing import Any

import numpy as np

from tapeless.api.derivatives import jvp, vjp
from tapeless.api.function import Function
from tapeless.ir import pytree

ENTRIES = 64  # of each argument that are tried, at most
STEP = {8: 1e-3, 4: 3e-2}  # relative, by bytes of a number; the differences are of fourth order
TOLERANCE = {8: 1e-6, 4: 2e-2}


def check_grads(
    f: Callable[..., Any],
    args: Sequence[Any],
    order: int = 2,
    modes: Sequence[str] = ("fwd", "rev"),
    atol: float | None = None,
    rtol: float | None = None,
    eps: float | None = None,
) -> None:
    """Compares derivatives up to `order` with differences; raises AssertionError that names the worst entry.

    Every argument that is a float or an array of floats is varied, entry by entry (some of them, where there are many).
    """
    unknown = [m for m in modes if m not in ("fwd", "rev")]
    if unknown or not modes:
        raise ValueError(f"tp.check_grads: modes are 'fwd' and 'rev', not {unknown or modes!r}")
    function = f if isinstance(f, Function) else Function(f)
    problems = list(_problems(function, tuple(args), order, modes, atol, rtol, eps, "f"))
    if problems:
        _, text = max(problems, key=lambda p: p[0])
        raise AssertionError(text)


def _is_number(leaf: Any) -> bool:
    return isinstance(leaf, float) or (isinstance(leaf, np.ndarray | np.generic) and leaf.dtype.kind == "f")


def _places(leaf: Any, rng: np.random.Generator) -> list[tuple[int, ...]]:
    every = list(np.ndindex(np.shape(leaf)))
    if len(every) <= ENTRIES:
        return every
    return [every[k] for k in sorted(rng.choice(len(every), ENTRIES, replace=False))]


def _moved(leaves: list[Any], k: int, place: tuple[int, ...], by: float) -> list[Any]:
    changed = np.array(leaves[k])
    changed[place] += by
    new = list(leaves)
    new[k] = changed if isinstance(leaves[k], np.ndarray) else type(leaves[k])(changed[()])
    return new


def _called(f: Callable[..., Any], leaves: list[Any], tree: Any) -> Any:
    """With copies: a function may write its arguments."""
    return f(*pytree.unflatten(tree, [x.copy() if isinstance(x, np.ndarray) else x for x in leaves]))


def _numbers(tree: Any) -> list[Any]:
    return [np.asarray(leaf) for leaf in pytree.flatten(tree)[0] if _is_number(leaf)]


def _problems(
    f: Function[Any, Any], args: tuple[Any, ...], order: int, modes: Sequence[str], atol: float | None,
    rtol: float | None, eps: float | None, name: str,
) -> Iterator[tuple[float, str]]:  # fmt: skip
    rng = np.random.default_rng(0)
    _refuse(args)
    leaves, tree = pytree.flatten(args)
    paths = pytree.leaf_paths(tree)
    out = _called(f, leaves, tree)
    weights = pytree.tree_map(lambda x: _weight(rng, x), out)
    columns: dict[tuple[int, tuple[int, ...]], list[Any]] = {}
    for k, leaf in enumerate(leaves):
        for place in _places(leaf, rng):
            columns[k, place] = _difference(f, leaves, tree, k, place, eps)
    if "rev" in modes:
        adjoints = pytree.flatten(vjp(f, *args)[1](weights))[0]
        seeds = _numbers(weights)
        for (k, place), column in columns.items():
            expected = sum(float(np.sum(w * c)) for w, c in zip(seeds, column, strict=True))
            size = sum(float(np.sum(np.abs(w * c))) for w, c in zip(seeds, column, strict=True))
            found = float(np.asarray(adjoints[k])[place])
            yield from _compare(
                found, expected, size, leaves[k], atol, rtol, f"{name}, reverse: by argument{paths[k]}{_at(place)}"
            )
    if "fwd" in modes:
        for (k, place), column in columns.items():
            tangents = [np.zeros_like(x) if isinstance(x, np.ndarray) else type(x)(0.0) for x in leaves]
            tangents = _moved(tangents, k, place, 1.0)
            moved = _numbers(jvp(f, args, pytree.unflatten(tree, tangents))[1])
            for number, (m, c) in enumerate(zip(moved, column, strict=True)):
                for at in np.ndindex(m.shape):
                    what = f"{name}, forward: result {number}{_at(at)} by argument{paths[k]}{_at(place)}"
                    yield from _compare(float(m[at]), float(c[at]), abs(float(c[at])), leaves[k], atol, rtol, what)
    if order > 1:
        yield from _problems(_gradient(f, weights), args, order - 1, modes, atol, rtol, eps, f"derivative of {name}")


def _refuse(args: tuple[Any, ...]) -> None:
    for k, a in enumerate(args):
        if not all(map(_is_number, pytree.flatten(a)[0])):
            raise ValueError(
                f"tp.check_grads: argument {k + 1} is not made of floats; close over it: check_grads(lambda x: f(x, n), (x,))"
            )


def _gradient(f: Function[Any, Any], weights: Any) -> Function[Any, Any]:
    def gradient(*args: Any) -> Any:
        _, pullback = vjp(f, *args)
        return pullback(weights)

    return Function(gradient)


def _weight(rng: np.random.Generator, x: Any) -> Any:
    if isinstance(x, np.ndarray):
        return np.asarray(rng.uniform(0.5, 1.5, x.shape)).astype(x.dtype) if x.dtype.kind == "f" else x
    return type(x)(rng.uniform(0.5, 1.5)) if _is_number(x) else x


def _difference(
    f: Callable[..., Any], leaves: list[Any], tree: Any, k: int, place: tuple[int, ...], eps: float | None
) -> list[Any]:
    """The derivative of all results by one entry, from four values around it."""
    x = float(np.asarray(leaves[k])[place])
    step = eps if eps is not None else STEP[np.asarray(leaves[k]).dtype.itemsize] * max(1.0, abs(x))

    def at(by: float) -> list[Any]:  # in double precision
        return [np.asarray(v, np.float64) for v in _numbers(_called(f, _moved(leaves, k, place, by), tree))]

    near = zip(at(step), at(-step), at(2 * step), at(-2 * step), strict=True)
    return [(8 * (a - b) - (c - d)) / (12 * step) for a, b, c, d in near]


def _at(place: tuple[int, ...]) -> str:
    return f"[{', '.join(map(str, place))}]" if place else ""


def _compare(
    found: float, expected: float, size: float, leaf: Any, atol: float | None, rtol: float | None, what: str
) -> Iterator[tuple[float, str]]:
    usual = TOLERANCE[np.asarray(leaf).dtype.itemsize]
    limit = (usual if atol is None else atol) + (usual if rtol is None else rtol) * max(size, abs(expected))
    error = abs(found - expected)
    if not error <= limit:
        yield error / limit if error == error else np.inf, f"{what} is {found!r}, differences give {expected!r}"
