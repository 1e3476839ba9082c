"""The parallel operators as plain Python: what `f.python` runs, and what compiled code is compared with.

Takes NumPy arrays or containers (pytrees) of them that share a leading length; gives new arrays, never views of these.
Relies on `ir.pytree` for containers, and on NumPy 2's promotion rules for the types of results.
"""

from __future__ import annotations

from collections.abc import Callable, Sequence
from dataclasses import dataclass
from functools import cached_property
from importlib import import_module
from typing import Any, SupportsIndex, TypeVar

import numpy as np
from numpy.typing import NDArray

from tapeless.api.stacked import WEAK, is_count, of_none, plain, snapshot, stack
from tapeless.ir.hints import unknown, wish_of
from tapeless.ir.pytree import (
    TreeDef,
    broadcast_prefix,
    difference,
    flatten,
    leaf_paths,
    ordered_like,
    unflatten,
)

__all__ = [
    "Vmapped",
    "check_recover",
    "hist",
    "loop",
    "map",
    "prange",
    "reduce",
    "scan",
    "scatter",
    "vmap",
]

Array = NDArray[Any]
DType = np.dtype[Any]
Function = Callable[..., Any]
T = TypeVar("T")


# --- the operators ----------------------------------------------------------------------------------------------------


def map(f: Function, *args: Any) -> Any:
    """`f` of every row of the arguments, or of every `i < n` for `map(f, n)`; results are stacked leaf by leaf.

    An argument is an array or a container of arrays; all have the same leading length, and `f` gets the containers with
    rows (scalars, for a 1-d array) in place of the arrays. If there are no rows, `f` is called with ones, then with
    zeros, to learn what it returns; if it raises for both, the result is an empty float64 array of shape (0,).
    """
    body = plain(f)
    if len(args) == 1 and is_count(args[0]):
        results = [snapshot(body(i)) for i in range(int(args[0]))]
        trials = [(0,), (1,)]
    else:
        rows = _rows("tp.map", "argument", args)
        results = [snapshot(body(*rows[i])) for i in range(rows.length)]
        trials = [rows.made_of(1), rows.made_of(0)]
    if results:
        return stack("tp.map", results)
    empty = of_none("tp.map", body, trials)
    return np.empty((0,)) if empty is None else empty


def reduce(op: Function, ne: Any, xs: Any, commutative: bool = False) -> Any:
    """`op(...op(op(ne, x[0]), x[1])..., x[n-1])`, and `ne` for no elements.

    For a tuple of arrays, `ne` is a tuple and `op` takes two tuples and returns one. `op` must be associative with `ne`
    its neutral element; `commutative=True` adds that the order of elements is free, which this version does not use.
    The elements and `ne` are first brought to their common type.
    """
    rows, acc, combine = _fold("tp.reduce", op, ne, xs)
    for i in range(rows.length):
        acc = combine(acc, rows.copy(i))
    return acc


def scan(op: Function, ne: Any, xs: Any, exclusive: bool = False, reverse: bool = False) -> Any:
    """All partial results of `reduce`: `y[i]` combines `x[0..i]`, or `x[0..i-1]` with `exclusive` (so `y[0]` is `ne`).

    With `reverse` it goes from the right: `y[i]` combines `x[i..n-1]`, or `x[i+1..n-1]` with `exclusive`. The elements
    stay in their order from left to right, `y[i] = op(x[i], y[i+1])`, which shows where `op` does not commute.
    """
    rows, acc, combine = _fold("tp.scan", op, ne, xs)
    if rows.length == 0:
        return unflatten(rows.treedef, [np.empty_like(array) for array in rows.arrays])
    results: list[Any] = []
    for i in reversed(range(rows.length)) if reverse else range(rows.length):
        before = snapshot(acc)  # an operator may work in place on its arguments
        acc = combine(rows.copy(i), acc) if reverse else combine(acc, rows.copy(i))
        results.append(before if exclusive else snapshot(acc))
    return stack("tp.scan", results[::-1] if reverse else results)


def hist(op: Function, ne: Any, n_or_dest: Any, keys: Any, vals: Any) -> Any:
    """Reduce by key: `dest[k] = op(dest[k], v)` for each key and value; keys outside `0 <= k < n` are ignored.

    An integer `n` stands for `n` cells holding `ne`, of the type of `vals`. A destination is copied, never written, and
    its type is the type of the result. `vals`, `ne` and the destination may be tuples (`op` then takes two tuples) and
    `vals` may have rows for elements; `keys` is one array of integers.
    """
    values = _rows("tp.hist", "vals", vals)
    neutral = _leaves_like("tp.hist", "the neutral element", ne, values.treedef)
    if is_count(n_or_dest):
        cells = [
            np.full((int(n_or_dest), *array.shape[1:]), _exact("tp.hist", leaf, array.dtype), array.dtype)
            for leaf, array in zip(neutral, values.arrays, strict=True)
        ]
        dest = Rows(values.treedef, cells, int(n_or_dest))
    else:
        dest = _destination("tp.hist", n_or_dest, values)
    values = values.astype("tp.hist", [array.dtype for array in dest.arrays])
    combine = _Combine("tp.hist", plain(op), dest)
    for i, key in enumerate(_indices("tp.hist", "keys", keys, values.length)):
        if 0 <= key < dest.length:
            dest.put("tp.hist", key, combine(dest.copy(key), values.copy(i)))
    return dest.tree()


def scatter(dest: Any, idx: Any, vals: Any) -> Any:
    """A copy of `dest` with `dest[idx[i]] = vals[i]`; indices outside `0 <= k < len(dest)`, so negative ones too, are
    ignored. Of equal indices the last wins. `dest` and `vals` may be tuples of arrays; `dest` keeps its type.
    """
    values = _rows("tp.scatter", "vals", vals)
    result = _destination("tp.scatter", dest, values)
    values = values.astype("tp.scatter", [array.dtype for array in result.arrays])
    for i, key in enumerate(_indices("tp.scatter", "idx", idx, values.length)):
        if 0 <= key < result.length:
            result.put("tp.scatter", key, values[i])
    return result.tree()


def prange(*bounds: SupportsIndex) -> range:
    """`range(n)` or `range(start, stop[, step])`: a loop whose iterations may run in any order, and at once."""
    return range(*bounds)


def loop(iterable: T, recover: str = "auto") -> T:
    """The iterable itself. `recover` says how the reverse sweep gets back the values that the loop overwrites."""
    check_recover(recover)
    return iterable


def check_recover(recover: str) -> None:
    """Raise ValueError for a value of `recover` that does not exist."""
    if wish_of(recover) is None:
        raise ValueError(unknown(recover))


def vmap(f: Function, in_axes: Any = 0, out_axes: Any = 0) -> Vmapped:
    """`f` over an axis of its arguments, as in JAX: `in_axes` has one entry for all positional arguments or a tuple of
    one each, and an entry is an axis, None (the same value for every call) or a container of these that fits the
    argument or the top of it. `out_axes` places the new axis in the results in the same way; keyword arguments are
    mapped over axis 0. For an axis of length 0, `f` is tried out as by `map`.
    """
    return Vmapped(f, in_axes, out_axes)


class Vmapped:
    """What `vmap` returns. It keeps its three parts readable for those who compile it rather than call it."""

    __tapeless__ = "vmapped"

    def __init__(self, f: Function, in_axes: Any, out_axes: Any) -> None:
        if isinstance(in_axes, list):  # JAX takes a list here too
            in_axes = tuple(in_axes)
        if in_axes is not None and not isinstance(in_axes, (int, np.integer, tuple)):
            raise TypeError(f"tp.vmap: in_axes is an integer, None or a tuple, not {in_axes!r}")
        for name, axes in (("in_axes", in_axes), ("out_axes", out_axes)):
            for axis in flatten(axes)[0]:
                if not isinstance(axis, (int, np.integer)):
                    raise TypeError(f"tp.vmap: {name} holds integers and None, not {axis!r}")
        self.f, self.in_axes, self.out_axes = f, in_axes, out_axes
        self.__name__ = f"vmap({getattr(f, '__name__', 'f')})"
        self.__doc__ = getattr(f, "__doc__", None)

    def __tapeless_mark__(self) -> tuple[Any, ...]:
        return ()

    @cached_property
    def _compiled(self) -> Any:
        return import_module("tapeless.api.function").function(self)  # a layer above this one

    def ir(self, *args: Any, stage: str = "core", **kwargs: Any) -> str:
        """The program that `tp.function` makes of it, as text."""
        text: str = self._compiled.ir(*args, stage=stage, **kwargs)
        return text

    def explain(self, *args: Any, **kwargs: Any) -> Any:
        """Prints a report about that program, and returns it."""
        return self._compiled.explain(*args, **kwargs)

    def __call__(self, *args: Any, **kwargs: Any) -> Any:
        leaves, treedef = flatten((args, kwargs))
        positional, named = treedef.children
        axes = self._input_axes(positional, named)
        names = ["argument" + path for path in leaf_paths(positional) + leaf_paths(named)]
        arrays: list[Any] = [
            leaf if axis is None else _leading(f"tp.vmap: {name}", leaf, axis)
            for leaf, axis, name in zip(leaves, axes, names, strict=True)
        ]
        mapped = [array for array, axis in zip(arrays, axes, strict=True) if axis is not None]
        if not mapped:
            raise ValueError("tp.vmap: no argument is mapped; in_axes gives None for all of them")
        if len({len(array) for array in mapped}) > 1:
            sizes = (f"{n}: {len(a)}" for n, a, axis in zip(names, arrays, axes, strict=True) if axis is not None)
            raise ValueError(f"tp.vmap: the mapped axes differ in length ({', '.join(sizes)})")
        python = plain(self.f)

        def body(*leaves: Any) -> Any:
            row_args, row_kwargs = unflatten(treedef, leaves)
            return python(*row_args, **row_kwargs)

        def row(element: Callable[[Array], Any]) -> list[Any]:
            return [a if axis is None else element(a) for a, axis in zip(arrays, axes, strict=True)]

        if len(mapped[0]) == 0:
            trials = [row(lambda a, v=v: np.full(a.shape[1:], v, a.dtype)[()]) for v in (1, 0)]  # type: ignore[misc]
            empty = of_none("tp.vmap", body, trials)
            return np.empty((0,)) if empty is None else self._place(empty)
        rows = (row(lambda a, i=i: a[i]) for i in range(len(mapped[0])))  # type: ignore[misc]
        return self._place(stack("tp.vmap", [snapshot(body(*leaves)) for leaves in rows]))

    def _input_axes(self, args: TreeDef, kwargs: TreeDef) -> list[int | None]:
        try:
            return broadcast_prefix(self.in_axes, args) + [0] * kwargs.num_leaves
        except ValueError as error:
            raise ValueError(f"tp.vmap: in_axes and the arguments differ: {error}") from None

    def _place(self, stacked: Any) -> Any:
        """Move the leading axis of every result to where `out_axes` wants it."""
        leaves, treedef = flatten(stacked)
        try:
            axes = broadcast_prefix(self.out_axes, treedef)
        except ValueError as error:
            raise ValueError(f"tp.vmap: out_axes and the result differ: {error}") from None
        placed = []
        for leaf, axis, path in zip(leaves, axes, leaf_paths(treedef), strict=True):
            if axis is None:
                if len(leaf) == 0:
                    raise ValueError(f"tp.vmap: result{path} has out_axes None, but there is no row to take it from")
                # Which results depend on the mapped arguments is not known here, so the values have to tell.
                if any(not np.array_equal(row, leaf[0], equal_nan=leaf.dtype.kind in "fc") for row in leaf[1:]):
                    raise ValueError(f"tp.vmap: result{path} has out_axes None but differs along the mapped axis")
                placed.append(leaf[0])
            elif -leaf.ndim <= axis < leaf.ndim:
                placed.append(np.moveaxis(leaf, 0, axis))
            else:
                raise ValueError(f"tp.vmap: result{path} has {leaf.ndim} axes with the new one, no axis {axis}")
        return unflatten(treedef, placed)


def _leading(name: str, leaf: Any, axis: int) -> Array:
    """The array with the mapped axis first."""
    array = np.asarray(leaf)
    if not -array.ndim <= axis < array.ndim:
        raise ValueError(f"{name} has shape {array.shape}, no axis {axis}")
    return np.moveaxis(array, axis, 0)


# --- elements: rows of containers of arrays ---------------------------------------------------------------------------


@dataclass(frozen=True, slots=True)
class Rows:
    """A container of arrays seen as a sequence of elements."""

    treedef: TreeDef
    arrays: list[Array]
    length: int

    def __getitem__(self, i: int) -> Any:
        return unflatten(self.treedef, [array[i] for array in self.arrays])

    def copy(self, i: int) -> Any:
        """Element `i` for an operator, which may work in place on it or return it."""
        return unflatten(self.treedef, [array[i] if array.ndim == 1 else array[i].copy() for array in self.arrays])

    def made_of(self, value: int) -> Any:
        """An element of nothing but this number."""
        filled = [np.full(array.shape[1:], value).astype(array.dtype)[()] for array in self.arrays]
        return unflatten(self.treedef, filled)

    def put(self, what: str, i: int, element: Any) -> None:
        for array, leaf in zip(self.arrays, flatten(element)[0], strict=True):
            _check_cast(what, np.result_type(leaf, array.dtype), array.dtype)
            array[i] = leaf

    def astype(self, what: str, dtypes: Sequence[DType]) -> Rows:
        for array, dtype in zip(self.arrays, dtypes, strict=True):
            _check_cast(what, array.dtype, dtype)
        cast = [array.astype(dtype, copy=False) for array, dtype in zip(self.arrays, dtypes, strict=True)]
        return Rows(self.treedef, cast, self.length)

    def tree(self) -> Any:
        return unflatten(self.treedef, self.arrays)


def _rows(what: str, name: str, tree: Any) -> Rows:
    """The elements of an array or of a container of arrays of one leading length."""
    leaves, treedef = flatten(tree)
    names = [name + path for path in leaf_paths(treedef)]
    arrays = [np.asarray(leaf) for leaf in leaves]
    if not arrays:
        raise ValueError(f"{what}: {name} holds no array")
    for leaf, array, place in zip(leaves, arrays, names, strict=True):
        if array.ndim == 0:
            raise ValueError(f"{what}: {place} is a single value ({leaf!r}); an array with a leading axis is needed")
    if len({len(array) for array in arrays}) > 1:
        lengths = (f"{place}: {len(array)}" for place, array in zip(names, arrays, strict=True))
        raise ValueError(f"{what}: the leading lengths differ ({', '.join(lengths)})")
    return Rows(treedef, arrays, len(arrays[0]))


def _destination(what: str, dest: Any, values: Rows) -> Rows:
    """A copy of the destination, whose elements must be like the values."""
    _leaves_like(what, "the destination", dest, values.treedef)
    rows = _rows(what, "dest", dest)
    for path, cell, value in zip(leaf_paths(rows.treedef), rows.arrays, values.arrays, strict=True):
        if cell.shape[1:] != value.shape[1:]:
            raise ValueError(
                f"{what}: elements of dest{path} have shape {cell.shape[1:]}, those of vals{path} {value.shape[1:]}"
            )
    return Rows(rows.treedef, [array.copy() for array in rows.arrays], rows.length)


def _leaves_like(what: str, name: str, tree: Any, treedef: TreeDef) -> list[Any]:
    leaves, found = flatten(ordered_like(tree, treedef))
    if found != treedef:
        raise ValueError(f"{what}: {name} has another structure than the elements: {difference(found, treedef)}")
    return leaves


def _indices(what: str, name: str, indices: Any, length: int) -> list[int]:
    array = np.asarray(indices)
    if array.ndim != 1:
        raise ValueError(f"{what}: {name} has {array.ndim} axes; one array of integers with one axis is needed")
    if array.size and array.dtype.kind not in "iu":
        raise TypeError(f"{what}: {name} holds {array.dtype}; integers are needed")
    if len(array) != length:
        raise ValueError(f"{what}: {len(array)} {name} for {length} values")
    return [int(k) for k in array]


# --- operators of two elements ----------------------------------------------------------------------------------------


class _Combine:
    """The user's operator, with its result checked to be an element again and owned by nobody else."""

    def __init__(self, what: str, op: Function, rows: Rows) -> None:
        self.what, self.op, self.rows = what, op, rows

    def __call__(self, left: Any, right: Any) -> Any:
        result = self.op(left, right)
        leaves = _leaves_like(self.what, "the operator's result", result, self.rows.treedef)
        for leaf, array in zip(leaves, self.rows.arrays, strict=True):
            if np.shape(leaf) != array.shape[1:]:
                raise ValueError(
                    f"{self.what}: the operator returned shape {np.shape(leaf)} for elements of shape {array.shape[1:]}"
                )
        owned = [_element(leaf, array.dtype) for leaf, array in zip(leaves, self.rows.arrays, strict=True)]
        return unflatten(self.rows.treedef, owned)


def _element(leaf: Any, dtype: DType) -> Any:
    """A leaf of an operator's result as a NumPy value: Python numbers take the elements' type where they can."""
    return np.array(leaf, np.result_type(leaf, dtype) if type(leaf) in WEAK else None)[()]


def _fold(what: str, op: Function, ne: Any, xs: Any) -> tuple[Rows, Any, _Combine]:
    """Elements and neutral element in their common type, and the operator between them."""
    rows = _rows(what, "xs", xs)
    leaves = _leaves_like(what, "the neutral element", ne, rows.treedef)
    pairs = list(zip(leaves, rows.arrays, strict=True))
    rows = rows.astype(what, [np.result_type(leaf, array.dtype) for leaf, array in pairs])
    neutral = []
    for leaf, array in zip(leaves, rows.arrays, strict=True):
        try:
            whole = np.broadcast_to(np.asarray(leaf, array.dtype), array.shape[1:])
        except ValueError:
            raise ValueError(
                f"{what}: the neutral element has shape {np.shape(leaf)}, the elements {array.shape[1:]}"
            ) from None
        neutral.append(whole.copy()[()])
    return rows, unflatten(rows.treedef, neutral), _Combine(what, plain(op), rows)


def _exact(what: str, ne: Any, dtype: DType) -> Any:
    """The neutral element in the type of the values; refused where it would become another number (inf, 0.5 as int)."""
    if not np.can_cast(np.result_type(ne, dtype), dtype, "same_kind"):
        with np.errstate(invalid="ignore"):
            if not np.array_equal(np.asarray(np.asarray(ne).astype(dtype)), ne):
                raise TypeError(f"{what}: the neutral element {ne!r} is not of type {dtype}, the type of the values")
    return ne


def _check_cast(what: str, source: DType, target: DType) -> None:
    if not np.can_cast(source, target, "same_kind"):
        raise TypeError(
            f"{what}: values of type {source} do not fit a destination of type {target}; convert one of them"
        )


# The front end recognises the operators by this mark.
for _operator in (map, reduce, scan, hist, scatter, prange, loop, vmap):
    setattr(_operator, "__tapeless__", getattr(_operator, "__name__"))  # noqa: B009, B010
