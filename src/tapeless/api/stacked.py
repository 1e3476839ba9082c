"""Results of single calls as one: containers of arrays with a leading axis more.

`stack` takes what a function gave for each element; `of_none` finds out what it would give where there is no element.
"""

from __future__ import annotations

from collections.abc import Callable, Sequence
from typing import Any

import numpy as np
from numpy.typing import NDArray

from tapeless.ir.pytree import difference, flatten, leaf_paths, ordered_like, tree_map, unflatten

Array = NDArray[Any]
DType = np.dtype[Any]
Function = Callable[..., Any]
WEAK: dict[type, Any] = {bool: False, int: 0, float: 0.0, complex: 0j}  # Python numbers, which adapt to NumPy's types


def plain(f: Function) -> Function:
    """The plain Python of a compiled function, and any other callable as it is."""
    python: Function = getattr(f, "python", f)
    return python


def is_count(value: Any) -> bool:
    return isinstance(value, (int, np.integer)) and not isinstance(value, bool)


def snapshot(tree: Any) -> Any:
    """The result of one call, safe from later writes to a buffer that the function may use again."""
    return tree_map(lambda leaf: leaf.copy() if isinstance(leaf, np.ndarray) else leaf, tree)


def of_none(what: str, body: Function, trials: Sequence[Sequence[Any]]) -> Any:
    """No results, of the structure, shapes and types that `body` gives for the first trial that it does not refuse;
    None if it refuses all.
    """
    for args in trials:
        try:
            with np.errstate(all="ignore"):
                result = snapshot(body(*args))
        except Exception:  # whatever it is, it is no fault of the caller, who has no elements
            continue
        return tree_map(lambda array: array[:0], stack(what, [result]))
    return None


def stack(what: str, results: Sequence[Any]) -> Any:
    """One container of arrays from the containers that single calls gave."""
    treedef = flatten(results[0])[1]
    rows = []
    for i, result in enumerate(results):
        leaves, found = flatten(ordered_like(result, treedef))
        if found != treedef:
            raise ValueError(f"{what}: result {i} has another structure than result 0: {difference(found, treedef)}")
        rows.append(leaves)
    columns = zip(*rows, strict=True)
    stacked = [_stack_leaf(f"{what}: result{path}", c) for path, c in zip(leaf_paths(treedef), columns, strict=True)]
    return unflatten(treedef, stacked)


def _stack_leaf(name: str, values: Sequence[Any]) -> Array:
    shape = np.shape(values[0])
    stacked: Array = np.empty((len(values), *shape), common_type(values))
    for i, value in enumerate(values):
        if np.shape(value) != shape:  # which an assignment would broadcast in silence
            raise ValueError(f"{name} has shape {np.shape(value)} at {i} and {shape} at 0")
        stacked[i] = value
    return stacked


def common_type(values: Sequence[Any]) -> DType:
    """The type that holds all values; Python numbers count as NumPy counts them beside its own."""
    # One representative a type, since result_type takes only a few dozen arguments.
    weak = {type(v) for v in values if type(v) in WEAK}
    strong = {np.asarray(v).dtype for v in values if type(v) not in WEAK}
    return np.result_type(*strong, *(WEAK[kind] for kind in weak))
