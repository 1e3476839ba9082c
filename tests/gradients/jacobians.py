"""Jacobians of one program in every way we can compute them, and the same expected of all.

`jacobians` takes a function of float arguments and gives one matrix for each way: rows are the floats of the result,
columns those of the arguments. `Cases` collects programs with their arguments and what mathematics says about them.
Relies on `f.python`: differences are taken of plain Python, never of compiled code.
"""

from __future__ import annotations

import copy
from collections.abc import Callable
from dataclasses import dataclass
from typing import Any

import numpy as np
import pytest

import tapeless as tp
from tapeless.ir import pytree

STEP = 1e-3
TOLERANCE = {"float64": 1e-9, "float32": 2e-5}
OF_DIFFERENCES = 1e-7


def jacobians(f: Callable[..., Any], *args: Any) -> dict[str, np.ndarray]:
    """By columns and by rows, each by the transform that gives all at once and by one call after the other."""
    out, pullback = tp.vjp(f, *args)
    everything = tuple(range(len(args)))
    return {
        "jacfwd": matrix(tp.jacfwd(f, everything)(*args), out, args),
        "jacrev": matrix(tp.jacrev(f, everything)(*args), out, args),
        "jvp": np.stack([flat(tp.jvp(f, args, unit)[1]) for unit in units(args)], axis=-1),
        "vjp": np.stack([flat(pullback(unit)) for unit in units(out)]) if flat(out).size else empty(args),
    }


def matrix(found: Any, out: Any, args: Any) -> np.ndarray:
    """The blocks of a Jacobian, by leaves of the result and of the arguments, as one matrix."""
    blocks = iter(leaves(found))
    rows = [
        np.concatenate([np.reshape(next(blocks), (np.size(o), np.size(a))) for a in leaves(args)], axis=1)
        for o in leaves(out)
    ]
    assert next(blocks, None) is None
    return np.concatenate(rows)


def differences(f: Callable[..., Any], *args: Any) -> np.ndarray:
    """Central differences of fourth order of plain Python."""
    python = getattr(f, "python", f)
    start = flat(args)

    def at(k: int, step: float) -> np.ndarray:
        moved = start.copy()
        moved[k] += step
        return flat(python(*like(args, moved)))

    columns = [
        (8 * (at(k, STEP) - at(k, -STEP)) - (at(k, 2 * STEP) - at(k, -2 * STEP))) / (12 * STEP)
        for k in range(start.size)
    ]
    return np.stack(columns, axis=-1)


# -- containers of floats


def leaves(tree: Any) -> list[Any]:
    return pytree.flatten(tree)[0]


def flat(tree: Any) -> np.ndarray:
    return np.concatenate([np.zeros(0), *(np.ravel(leaf) for leaf in leaves(tree))])


def empty(args: Any) -> np.ndarray:
    return np.zeros((0, flat(args).size))


def like(tree: Any, values: np.ndarray) -> Any:
    """The container with other numbers, each leaf of its own kind."""
    found, structure = pytree.flatten(tree)
    parts = np.split(values, np.cumsum([np.size(leaf) for leaf in found])[:-1])
    made = [kind_like(leaf, np.reshape(part, np.shape(leaf))) for leaf, part in zip(found, parts, strict=True)]
    return pytree.unflatten(structure, made)


def kind_like(leaf: Any, value: np.ndarray) -> Any:
    if isinstance(leaf, np.ndarray):
        return value.astype(leaf.dtype)
    return type(leaf)(value)


def units(tree: Any) -> list[Any]:
    return [like(tree, row) for row in np.eye(flat(tree).size)]


# -- checks


def check(f: Callable[..., Any], *args: Any, jacobian: Any = None, differ: bool = True, tolerance: float = 0) -> None:
    """Every way agrees with `jacobian` and, where the function is smooth, with differences; no argument changes."""
    __tracebackhide__ = True
    before = copy.deepcopy(args)
    found = jacobians(f, *args)
    same_arguments(before, args)
    tolerance = tolerance or max([1e-9, *(TOLERANCE[np.asarray(leaf).dtype.name] for leaf in leaves(args))])
    if jacobian is not None:
        expected = np.asarray(jacobian, float)
        for way, value in found.items():
            assert value.shape == (expected.shape if expected.ndim == 2 else (1, expected.size)), way
            np.testing.assert_allclose(
                value, np.reshape(expected, value.shape), rtol=tolerance, atol=tolerance, err_msg=way
            )
    if differ:
        expected = differences(f, *copy.deepcopy(args))
        for way, value in found.items():
            np.testing.assert_allclose(value, expected, rtol=OF_DIFFERENCES, atol=OF_DIFFERENCES, err_msg=way)


def same_arguments(before: Any, after: Any) -> None:
    """Bit for bit."""
    for a, b in zip(leaves(before), leaves(after), strict=True):
        np.testing.assert_array_equal(np.asarray(a), np.asarray(b))
        assert np.asarray(a).dtype == np.asarray(b).dtype


@dataclass
class Case:
    function: Callable[..., Any]
    arguments: tuple[Any, ...]
    options: dict[str, Any]

    def check(self) -> None:
        __tracebackhide__ = True
        check(self.function, *copy.deepcopy(self.arguments), **self.options)


class Cases:
    """The programs of one file: `@case(1.0, jacobian=[2])` adds one, `@case.all` is what a test goes through."""

    def __init__(self) -> None:
        self.cases: list[Any] = []

    def __call__(self, *arguments: Any, open: str = "", **options: Any) -> Callable[[Any], Any]:
        """`open`: the compiler is known to be wrong here, in these words."""
        marks = [pytest.mark.skip(reason=f"open: {open}")] if open else []

        def add(function: Any) -> Any:
            named = sum(function.__name__ == p.values[0].function.__name__ for p in self.cases)
            name = function.__name__ + (f"_{named + 1}" if named else "")
            self.cases.append(pytest.param(Case(function, arguments, options), id=name, marks=marks))
            return function

        return add

    def all(self, test: Any) -> Any:
        """`make test` runs one in three."""
        return pytest.mark.sampled(3)(pytest.mark.parametrize("program", self.cases)(test))
