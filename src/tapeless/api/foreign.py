"""Arguments and results of other libraries: Note [Arrays of other libraries] in `frontend/source/foreign_arrays.py`.

`taken` replaces their arrays among arguments by NumPy's, and gives `Taken`, which turns results into what the caller
expects: those of PyTorch for PyTorch's arguments, of JAX for JAX's, else NumPy's.
"""

from __future__ import annotations

import importlib
from collections.abc import Callable, Sequence
from itertools import combinations
from typing import Any

import numpy as np

from tapeless.errors import ArgumentError
from tapeless.frontend.entry import unsupported
from tapeless.frontend.source.foreign_arrays import Unreadable, array_of, is_foreign, library_of
from tapeless.ir import pytree
from tapeless.runtime.device_arrays import is_on_device

PLAIN = frozenset({np.ndarray, int, float, complex, bool, str, np.float64, np.float32, np.int64, np.int32, np.bool_})


def _for_torch(array: np.ndarray[Any, Any]) -> Any:
    if not array.flags.writeable or any(stride < 0 for stride in array.strides):  # PyTorch has no such tensors
        array = array.copy()
    return importlib.import_module("torch").from_numpy(array)


def _for_jax(array: np.ndarray[Any, Any]) -> Any:
    return importlib.import_module("jax.numpy").array(array)  # a copy, since arrays of JAX never change


LIBRARIES: dict[str, Callable[[np.ndarray[Any, Any]], Any]] = {"torch": _for_torch, "jax": _for_jax}


class Taken:
    """Arguments of a call with arrays of NumPy in the place of those of other libraries."""

    def __init__(self, leaves: Sequence[Any], function: Any, tree: Any) -> None:
        found: dict[int, np.ndarray[Any, Any]] = {}  # by id: what is passed twice is one array
        self.leaves: list[Any] = []
        for k, leaf in enumerate(leaves):
            if _is_taken(leaf) and id(leaf) not in found:
                try:
                    found[id(leaf)] = array_of(leaf)
                except Unreadable as problem:
                    raise unsupported(function, tree, k, problem.what, problem.hint) from None
            self.leaves.append(found.get(id(leaf), leaf))
        others = [leaf for leaf in leaves if id(leaf) in found]
        _refuse_other_labels(others)
        kinds = [library_of(type(leaf)) for leaf in others]
        self.make = next((LIBRARIES[kind] for kind in kinds if kind in LIBRARIES), None)
        self.given = {id(found[id(leaf)]): leaf for leaf in others}

    def back(self, result: Any) -> Any:
        """A result as the caller expects it; an argument that is given back is the very argument."""
        return pytree.tree_map(self._leaf, result)

    def _leaf(self, value: Any) -> Any:
        if id(value) in self.given:
            return self.given[id(value)]
        if self.make is None or not isinstance(value, (np.ndarray, np.generic)):
            return value
        return self.make(np.asarray(value))


def _is_taken(leaf: Any) -> bool:
    return type(leaf) not in PLAIN and is_foreign(leaf) and not is_on_device(leaf)


def _refuse_other_labels(arrays: Sequence[Any]) -> None:
    """pandas adds what has the same label, compiled code what has the same place."""
    labelled = [a for a in arrays if hasattr(a, "axes") and library_of(type(a)) == "pandas"]
    for a, b in combinations(labelled, 2):
        if a.shape == b.shape and not all(x.equals(y) for x, y in zip(a.axes, b.axes, strict=True)):
            raise ArgumentError(
                f"two arguments of pandas have {a.shape} elements under different labels, which compiled code does not"
                " look at: pass .to_numpy() of them, or .align them first"
            )


def taken(leaves: Sequence[Any], function: Any = None, tree: Any = None) -> Taken | None:
    """None where all arguments are NumPy's or Python's. `function` and `tree` are for messages."""
    return Taken(leaves, function, tree) if any(map(_is_taken, leaves)) else None


def with_numpy(function: Any, args: Any) -> tuple[Any, Callable[[Any], Any]]:
    """Arguments with NumPy's arrays, and what becomes of results."""
    leaves, tree = pytree.flatten(args)
    found = taken(leaves, function, tree)
    return (args, _same) if found is None else (pytree.unflatten(tree, found.leaves), found.back)


def _same(result: Any) -> Any:
    return result
