"""`tp.check_grads`: derivatives against differences of the function itself.

`compare` takes a function and floats; gives an `Entry` for each derivative that was looked at. `check_grads` raises for
the worst one. In reverse mode all results are weighed and pulled back at once; only where that shows an error is the
one result looked for that has it, so that what is shown is always an entry of the Jacobian.

Complex numbers are looked at part by part: in the place of one, the last index is 0 for the real part and 1 for the imaginary
one. The adjoint of x + i y has the slope by y with the other sign, as in JAX.
"""

from __future__ import annotations

import functools
import inspect
import types
from collections.abc import Callable, Iterator, Mapping, Sequence
from dataclasses import dataclass, replace
from typing import Any

import numpy as np

from tapeless.api.directions import jvp, vjp
from tapeless.api.foreign import with_numpy
from tapeless.api.function import Function
from tapeless.frontend.entry import written_function
from tapeless.ir import pytree

ENTRIES = 64  # of each argument that are tried, at most
STEP = {8: 1e-3, 4: 3e-2}  # relative, by bytes of a number; the differences are of fourth order
TOLERANCE = {8: 1e-6, 4: 2e-2}

Place = tuple[int, tuple[int, ...]]  # number of a leaf, and the index in it


@dataclass(frozen=True)
class Entry:
    """A derivative: of what by what, as found in a mode and as differences give it. `error` is 1 at the limit."""

    of: str
    by: str
    mode: str
    order: int
    found: float
    expected: float
    error: float

    def __str__(self) -> str:
        what = f"the derivative of {self.of} by {self.by}"
        return f"{self.mode} mode gives {self.found!r} for {what}, differences give {self.expected!r}"


@dataclass(frozen=True)
class Limits:
    """What counts as equal; None for what suits the type of an argument."""

    atol: float | None = None
    rtol: float | None = None
    eps: float | None = None

    def error(self, found: float, expected: float, size: float, leaf: Any) -> float:
        usual = TOLERANCE[_parts(leaf).dtype.itemsize]
        limit = (usual if self.atol is None else self.atol) + (usual if self.rtol is None else self.rtol) * size
        difference = abs(found - expected)
        if difference == 0.0:
            return 0.0
        return np.inf if difference != difference or limit == 0.0 else difference / limit


USUAL = Limits()


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

    Every argument of floats or complex numbers is varied, entry by entry (some of them, where there are many).
    """
    worst = max(compare(f, args, order, modes, Limits(atol, rtol, eps)), key=lambda e: e.error)
    if worst.error > 1:
        raise AssertionError(f"tp.check_grads: {worst}")


def compare(
    f: Callable[..., Any],
    args: Sequence[Any],
    order: int,
    modes: Sequence[str] = ("fwd", "rev"),
    limits: Limits = USUAL,
    names: Sequence[str] = (),
) -> list[Entry]:
    """All that `check_grads` looks at; `names` are what the arguments are called, where the function does not say."""
    if not isinstance(args, (tuple, list)):
        raise TypeError("tp.check_grads takes a tuple of arguments: tp.check_grads(f, (x,))")
    if type(order) is not int or order < 1:
        raise ValueError(f"tp.check_grads: order is 1 or more, not {order!r}")
    chosen = (modes,) if isinstance(modes, str) else tuple(modes)
    unknown = [m for m in chosen if m not in ("fwd", "rev")]
    if unknown or not chosen:
        raise ValueError(f"tp.check_grads: modes are 'fwd' and 'rev', not {unknown or modes!r}")
    args = with_numpy(f, tuple(args))[0]
    names = names or parameters(f, len(args))
    for name, a in zip(names, args, strict=True):
        if not is_made_of_floats(a):
            raise ValueError(
                f"tp.check_grads: the argument {name} is not made of floats; "
                "close over it: tp.check_grads(lambda x: f(x, n), (x,))"
            )
    check = _Check(tuple(args), list(names), chosen, limits)
    found = list(check.entries(_compiled(f), order, lambda path: f"result{path}"))
    if not found:
        raise ValueError("tp.check_grads: there is nothing to check: no floats among the arguments or results")
    return found


def is_made_of_floats(argument: Any) -> bool:
    return all(map(_is_number, pytree.flatten(argument)[0]))


def holding(f: Callable[..., Any], held: Mapping[int, Any]) -> Callable[..., Any]:
    """The function of its other arguments, those at these positions being fixed."""
    for k, value in sorted(held.items(), reverse=True):  # the last first, so that positions before it stay
        f = _with_one_held(f, k, value)
    return f


def _with_one_held(f: Callable[..., Any], k: int, value: Any) -> Callable[..., Any]:
    return lambda *args: f(*args[:k], value, *args[k:])


def _compiled(f: Callable[..., Any]) -> Function[Any, Any]:
    if isinstance(f, Function):
        return f
    if isinstance(f, types.FunctionType):
        return Function(f)
    if not callable(f):
        raise TypeError(f"tp.check_grads takes a function, not {f!r}")

    def call(*args: Any) -> Any:  # a function with a rule of its own, one that is mapped, one of NumPy
        return f(*args)

    return Function(call)


def parameters(f: Any, count: int) -> list[str]:
    """What the function calls its arguments."""
    written = written_function(getattr(f, "function", f))
    try:
        names = [p.name for p in inspect.signature(written).parameters.values() if p.kind < p.VAR_POSITIONAL]
    except (TypeError, ValueError):  # a ufunc
        names = []
    return [names[k] if k < len(names) else f"argument {k}" for k in range(count)]


@dataclass
class _Check:
    args: tuple[Any, ...]
    names: list[str]
    modes: tuple[str, ...]
    limits: Limits

    def __post_init__(self) -> None:
        self.leaves, self.tree = pytree.flatten(self.args)
        self.paths = [self.named(path) for path in pytree.leaf_paths(self.tree)]

    def named(self, path: str) -> str:
        """A place in the arguments, as one would write it in the function."""
        number, _, rest = path[1:].partition("]")
        return self.names[int(number)] + rest

    def entries(
        self, f: Function[Any, Any], order: int, label: Callable[[str], str], depth: int = 1
    ) -> Iterator[Entry]:
        """Of derivatives of `f`, up to `order`; `label` names its results by their paths."""
        rng = np.random.default_rng(0)
        out = _called(f, self.leaves, self.tree)
        results = [(k, at) for k, leaf in enumerate(pytree.flatten(out)[0]) if _is_number(leaf) for at in _all(leaf)]
        if not results:
            return
        paths = pytree.leaf_paths(pytree.flatten(out)[1])
        values = pytree.flatten(out)[0]
        labels = {(k, at): label(paths[k] + _at(values[k], at)) for k, at in results}
        places = [(k, at) for k, leaf in enumerate(self.leaves) for at in _places(leaf, rng)]
        columns = {p: _difference(f, self.leaves, self.tree, *p, self.limits.eps) for p in places}

        def entry(result: Place, by: Place, mode: str, found: float) -> Entry:
            expected = float(columns[by][result[0]][result[1]])
            error = self.limits.error(found, expected, abs(expected), self.leaves[by[0]])
            where = self.paths[by[0]] + _at(self.leaves[by[0]], by[1])
            return Entry(labels[result], where, mode, depth, found, expected, error)

        if "rev" in self.modes:
            yield from self.backwards(f, out, columns, results, entry, rng)
        if "fwd" in self.modes:
            for by in columns:
                tangents = pytree.unflatten(self.tree, _unit(self.leaves, by))
                moved = pytree.flatten(jvp(f, self.args, tangents)[1])[0]
                for result in results:
                    yield entry(result, by, "forward", float(_parts(moved[result[0]])[result[1]]))
        if order > 1:
            yield from self.higher(f, out, order, labels, results, depth, rng)

    def backwards(
        self, f: Function[Any, Any], out: Any, columns: dict[Place, list[Any]], results: list[Place],
        entry: Callable[[Place, Place, str, float], Entry], rng: np.random.Generator,
    ) -> Iterator[Entry]:  # fmt: skip
        """One run for all results; where it is off, the result is looked for that has it."""
        values, tree = pytree.flatten(out)
        pullback = vjp(f, *self.args)[1]

        def slopes(weights: list[Any]) -> list[Any]:
            adjoints = pytree.flatten(pullback(pytree.unflatten(tree, _conjugate(weights))))[0]
            return _conjugate(adjoints)

        def pulled(weights: list[Any], by: Place) -> float:
            return float(_parts(slopes(weights)[by[0]])[by[1]])

        def error(weights: list[Any], by: Place, found: float) -> tuple[float, float]:
            parts = [_parts(weights[k])[at] * columns[by][k][at] for k, at in results]
            expected = float(sum(parts))
            size = float(sum(map(abs, parts)))
            return self.limits.error(found, expected, size, self.leaves[by[0]]), expected

        def alone(by: Place, part: Sequence[Place]) -> float:
            some = _only(weights, part)
            return error(some, by, pulled(some, by))[0]

        weights = _weights(values, results, rng)
        together = slopes(weights)
        for by in columns:
            found = float(_parts(together[by[0]])[by[1]])
            off, expected = error(weights, by, found)
            if off <= 1 and len(results) > 1:
                shown = entry(results[0], by, "reverse", found)
                yield replace(shown, of="a weighted sum of all results", expected=expected, error=off)
                continue
            one = _narrowed(results, functools.partial(alone, by))
            shown = entry(one, by, "reverse", pulled(_unit(values, one), by))
            if off > 1 and shown.error <= 1:  # the rule of a function is not linear
                shown = replace(shown, of="a weighted sum of all results", found=found, expected=expected, error=off)
            yield shown

    def higher(
        self, f: Function[Any, Any], out: Any, order: int, labels: dict[Place, str], results: list[Place], depth: int,
        rng: np.random.Generator,
    ) -> Iterator[Entry]:  # fmt: skip
        """Derivatives of the gradient of the weighted results; where one is off, of the result that has it."""
        values, tree = pytree.flatten(out)

        def of(weights: list[Any], what: str) -> list[Entry]:
            gradient = _gradient(f, pytree.unflatten(tree, _conjugate(weights)))
            label = lambda path: f"d({what})/d({self.named(path)})"  # noqa: E731
            return list(self.entries(gradient, order - 1, label, depth + 1))

        def worst(weights: list[Any]) -> float:
            return max(e.error for e in of(weights, ""))

        weights = _weights(values, results, rng)
        one = results[0]
        found = of(weights, labels[one] if len(results) == 1 else "the weighted sum of all results")
        if len(results) > 1 and any(e.error > 1 for e in found):
            one = _narrowed(results, lambda part: worst(_only(weights, part)))
            alone = of(_unit(values, one), labels[one])
            found = alone if any(e.error > 1 for e in alone) else found
        yield from found


# -- numbers


def _is_number(leaf: Any) -> bool:
    return isinstance(leaf, (float, complex)) or (
        isinstance(leaf, (np.ndarray, np.generic)) and leaf.dtype.kind in "fc"
    )


def _parts(leaf: Any) -> Any:
    """The real numbers of a leaf."""
    array = np.asarray(leaf)
    return np.stack([array.real, array.imag], -1) if array.dtype.kind == "c" else array


def _conjugate(leaves: list[Any]) -> list[Any]:
    return [x if not _is_number(x) else x.conjugate() for x in leaves]


def _all(leaf: Any) -> list[tuple[int, ...]]:
    return list(np.ndindex(np.shape(_parts(leaf))))


def _places(leaf: Any, rng: np.random.Generator) -> list[tuple[int, ...]]:
    every = _all(leaf)
    if len(every) <= ENTRIES:
        return every
    return [every[k] for k in sorted(rng.choice(len(every), ENTRIES, replace=False))]


def _moved(leaves: list[Any], k: int, place: tuple[int, ...], by: float) -> list[Any]:
    changed = np.array(leaves[k])
    if changed.dtype.kind == "c":
        changed[place[:-1]] += (by, by * 1j)[place[-1]]
    else:
        changed[place] += by
    new = list(leaves)
    new[k] = changed if isinstance(leaves[k], np.ndarray) else type(leaves[k])(changed[()])
    return new


def _called(f: Callable[..., Any], leaves: list[Any], tree: Any) -> Any:
    """With copies: a function may write its arguments."""
    return f(*pytree.unflatten(tree, [x.copy() if isinstance(x, np.ndarray) else x for x in leaves]))


def _zeros(leaves: list[Any]) -> list[Any]:
    """What is not a float stays as it is."""
    return [x if not _is_number(x) else np.zeros_like(x) if isinstance(x, np.ndarray) else type(x)(0.0) for x in leaves]


def _unit(leaves: list[Any], place: Place) -> list[Any]:
    return _moved(_zeros(leaves), *place, 1.0)


def _weights(values: list[Any], results: list[Place], rng: np.random.Generator) -> list[Any]:
    """Of a single number, 1."""
    if len(results) == 1:
        return _unit(values, results[0])
    return [
        x if not _is_number(x)
        else np.asarray(_random(rng, x)).astype(x.dtype) if isinstance(x, np.ndarray)
        else type(x)(_random(rng, x))
        for x in values
    ]  # fmt: skip


def _random(rng: np.random.Generator, x: Any) -> Any:
    numbers = rng.uniform(0.5, 1.5, np.shape(_parts(x)))
    return numbers[..., 0] + 1j * numbers[..., 1] if np.iscomplexobj(x) else numbers


def _only(weights: list[Any], places: Sequence[Place]) -> list[Any]:
    found = _zeros(weights)
    for k, at in places:
        found = _moved(found, k, at, float(_parts(weights[k])[at]))
    return found


def _narrowed(places: Sequence[Place], wrong: Callable[[Sequence[Place]], float]) -> Place:
    """The place that has most of an error, by halves."""
    while len(places) > 1:
        first, second = places[: len(places) // 2], places[len(places) // 2 :]
        places = first if wrong(first) >= wrong(second) else second
    return places[0]


def _gradient(f: Function[Any, Any], weights: Any) -> Function[Any, Any]:
    def gradient(*args: Any) -> Any:
        _, pullback = vjp(f, *args)
        return pullback(weights)

    return Function(gradient)


def _difference(
    f: Callable[..., Any], leaves: list[Any], tree: Any, k: int, place: tuple[int, ...], eps: float | None
) -> list[Any]:
    """The derivative of all results by one entry, from four values around it; None of what is not a float."""
    numbers = _parts(leaves[k])
    step = eps if eps is not None else STEP[numbers.dtype.itemsize] * max(1.0, abs(float(numbers[place])))

    def at(by: float) -> list[Any]:  # in double precision
        found = pytree.flatten(_called(f, _moved(leaves, k, place, by), tree))[0]
        return [np.asarray(_parts(v), np.float64) if _is_number(v) else None for v in found]

    near = zip(at(step), at(-step), at(2 * step), at(-2 * step), strict=True)
    return [None if a is None else (8 * (a - b) - (c - d)) / (12 * step) for a, b, c, d in near]


def _at(leaf: Any, place: tuple[int, ...]) -> str:
    """A place in a leaf, as one would write it."""
    part = ""
    if np.iscomplexobj(leaf):
        place, part = place[:-1], (".real", ".imag")[place[-1]]
    return (f"[{', '.join(map(str, place))}]" if place else "") + part
