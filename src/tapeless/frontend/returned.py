"""Results: which of them Core computes, and which are the caller's arrays or views of them.

Takes the value that a function returns; gives an `Output`, and the atoms that Core returns for it.

Note [Returned views]
NumPy returns `a[1:3]` as a view of the caller's array, so that is what a call gives. The view is made again from the
array by the steps that the front end knows, with the positions and sizes that the program has computed: Core returns
those instead of the elements. Whether a reshaped array is a view, where that depends on strides, is then up to NumPy,
as in Python. Only where a name refers to different arrays on different paths is the result a new array.
"""

from __future__ import annotations

from collections.abc import Callable, Mapping
from dataclasses import dataclass
from typing import Any

import numpy as np

from tapeless.frontend.data.arrays import read
from tapeless.frontend.data.iterables import grown_rows, items_of
from tapeless.frontend.state.context import Context, type_text
from tapeless.frontend.state.parts import is_deque
from tapeless.frontend.state.values import (
    Array,
    Borrowed,
    Box,
    Cell,
    Columns,
    Grown,
    RangeValue,
    Reshaped,
    Scalar,
    Sequence_,
    Static,
    Step,
    Value,
)
from tapeless.ir.core import At, Range
from tapeless.ir.types import Atom, Const, Dim


@dataclass(frozen=True)
class Leaf:
    """A result: number `k` of the Core results; `python` for a Python number, else a NumPy one."""

    k: int
    python: bool = False


@dataclass(frozen=True)
class Argument:
    """A result that is the caller's own array; arrays of the surroundings follow the leaves of the arguments."""

    position: int


@dataclass(frozen=True)
class Result:
    """A whole number that Core returns as its result `k`."""

    k: int


Whole = int | Result


@dataclass(frozen=True)
class Slice:
    """A range on one axis of a view."""

    start: Whole
    length: Whole
    step: Whole


@dataclass(frozen=True)
class Taken:
    """Basic indexing, then the remaining axes in `order` (None: a new axis)."""

    items: tuple[Whole | Slice, ...]
    order: tuple[int | None, ...]


@dataclass(frozen=True)
class Shaped:
    """The elements in order, in another shape."""

    shape: tuple[Whole, ...]


@dataclass(frozen=True)
class Called:
    """One of `CALLS` with these arguments."""

    name: str
    args: tuple[Whole, ...]


CALLS: dict[str, Callable[..., Any]] = {
    "real": np.real,
    "imag": np.imag,
    "diagonal": np.diagonal,
    "ascontiguousarray": np.ascontiguousarray,
    "broadcast_to": lambda array, *shape: np.broadcast_to(array, shape),
}


@dataclass(frozen=True)
class View:
    """A result that is a view of the caller's array: Note [Returned views]."""

    position: int
    steps: tuple[Taken | Shaped | Called, ...]


@dataclass(frozen=True)
class Known:
    """A Python object that was known at compile time."""

    value: Any


@dataclass(frozen=True)
class Tree:
    """A tuple, list, dict, NamedTuple or dataclass of results. `keys` for dicts and named fields. Lists and dicts with the
    same number are one.
    """

    kind: str
    items: tuple[Output, ...]
    keys: tuple[Any, ...] = ()
    cls: Any = None
    number: int = 0


@dataclass(frozen=True)
class Listed:
    """A list of the numbers of a result that is an array, or of its rows: as `form`, arrays if there is none. `python` for Python
    numbers. Lists with the same number are one.
    """

    leaf: Leaf
    python: bool
    form: str = ""
    number: int = 0
    columns: Columns = ()  # of tuples of several types

    def of(self, array: Any) -> list[Any]:
        if array.ndim == 1:
            return array.tolist() if self.python else list(array)
        if not self.form:
            return [row.copy() for row in array]
        if self.columns:
            types = [d.numpy.type(0).item().__class__ if weak else d.numpy.type for d, weak in self.columns]
            return [tuple(type(x) for type, x in zip(types, row, strict=True)) for row in array]
        kind = tuple if self.form == "tuple" else list
        return [kind(row) for row in (array.tolist() if self.python else array)]


@dataclass(frozen=True)
class Chosen:
    """The caller's own array at one of `positions`, by the number that is the result `k`, or else a new one."""

    k: int
    positions: tuple[tuple[int, int], ...]  # by number
    otherwise: Leaf


Output = Leaf | Argument | View | Chosen | Known | Tree | Listed
PARTS = (Result, Slice, Taken, Shaped, Called)  # of views


def output_of(ctx: Context, result: Value, positions: Mapping[Cell, int]) -> tuple[Output, list[Atom]]:
    """`positions`: of the arrays that come from outside."""
    maker = _Maker(ctx, positions)
    return maker.output(result), maker.results


class _Maker:
    def __init__(self, ctx: Context, positions: Mapping[Cell, int]) -> None:
        self.ctx, self.positions = ctx, positions
        self.results: list[Atom] = []
        self.made: dict[tuple[Cell, Any], int] = {}
        self.boxes: dict[Box, int] = {}

    def output(self, value: Value) -> Output:
        if isinstance(value, (Sequence_, Grown)) and value.ref is not None and value.ref.lazy:
            self.ctx.fail("TP109", "a map, filter or generator cannot be returned", "return list(...) of it.")
        if is_deque(value):
            self.ctx.fail("TP109", "a deque cannot be returned from a compiled function", "return list(...) of it.")
        match value:
            case Scalar(atom=atom, weak=is_weak):
                return Leaf(self._number(atom), is_weak)
            case Array():
                return self._array(value)
            case Sequence_(items=items, kind=kind, keys=keys, cls=cls, ref=box):
                number = 0 if box is None else self.boxes.setdefault(box, 1 + len(self.boxes))
                return Tree(kind, tuple(self.output(v) for v in items), keys, cls, number)
            case Static(value=known) if known is None or isinstance(known, (str, bool, int, float)):
                return Known(known)
            case Grown(length=Scalar(atom=Const()), array=Array(), ref=box):
                return self.output(Sequence_(tuple(items_of(self.ctx, "return", value)), "list", ref=box))
            case Grown(array=Array(), ref=box, weak=is_weak, form=form, columns=columns) if form != "mixed" or columns:
                leaf = Leaf(self._number(read(self.ctx, grown_rows(self.ctx, value))))
                number = 0 if box is None else self.boxes.setdefault(box, 1 + len(self.boxes))
                return Listed(leaf, is_weak, form, number, columns if form == "mixed" else ())
            case RangeValue():
                self.ctx.fail("TP109", "a range cannot be returned", "return an array: np.arange.")
            case _:
                hint = "return np.array(...) of it." if isinstance(value, Grown) else ""
                self.ctx.fail("TP109", f"{type_text(value)} cannot be returned from a compiled function", hint)

    def _number(self, atom: Atom) -> int:
        self.results.append(atom)
        return len(self.results) - 1

    def _array(self, array: Array) -> Output:
        base, steps = array.cell, list[Step | Borrowed](array.view)
        while base.seen_through is not None and base not in self.ctx.state.stale:
            below, step = base.seen_through
            base, steps = below.cell, [*below.view, step, *steps]
        if base in self.positions:
            position = self.positions[base]
            return View(position, tuple(self._step(s) for s in steps)) if steps else Argument(position)
        key = (array.cell, array.view)
        if key not in self.made:
            self.made[key] = self._number(read(self.ctx, array))
        leaf = Leaf(self.made[key])
        if base.which is None or steps:
            return leaf
        numbers = self.ctx.arguments
        known = sorted((numbers[c], self.positions[c]) for c in base.possible if c in numbers and c in self.positions)
        return Chosen(self._number(base.which), tuple(known), leaf)

    def _step(self, step: Step | Borrowed) -> Taken | Shaped | Called:
        match step:
            case Borrowed(name=name, args=args):
                return Called(name, tuple(self._whole(a) for a in args))
            case Reshaped(shape=shape):
                return Shaped(tuple(self._size(d) for d in shape))
        items: list[Whole | Slice] = []
        for axis in step.axes:
            match axis:
                case At(index=index):
                    items.append(self._whole(index))
                case Range(start=start, length=length, step=by):
                    items.append(Slice(self._whole(start), self._size(length), self._whole(by)))
        return Taken(tuple(items), step.order)

    def _size(self, dim: Dim) -> Whole:
        return self._whole(self.ctx.size_atom(dim))

    def _whole(self, atom: Atom) -> Whole:
        return int(atom.value.real) if isinstance(atom, Const) else Result(self._number(atom))


# -- making a view again


def view_maker(view: View, read: Callable[[int], Callable[[Any], int]]) -> Callable[[Any, Any], Any]:
    """A function of the array and of the memory of the results; `read` says where in it a result lies."""

    def number(whole: Whole) -> Callable[[Any], int]:
        return read(whole.k) if isinstance(whole, Result) else lambda _: whole

    def item(part: Whole | Slice) -> Callable[[Any], Any]:
        if not isinstance(part, Slice):
            return number(part)
        start, length, step = number(part.start), number(part.length), number(part.step)
        return lambda results: _slice(start(results), length(results), step(results))

    def made(step: Taken | Shaped | Called) -> Callable[[Any, Any], Any]:
        match step:
            case Called(name=name, args=args):
                call, given = CALLS[name], [number(a) for a in args]
                return lambda array, results: call(array, *(a(results) for a in given))
            case Shaped(shape=shape):
                sizes = [number(d) for d in shape]
                return lambda array, results: array.reshape(tuple(d(results) for d in sizes))
        parts = [item(i) for i in step.items]
        kept = [o for o in step.order if o is not None]
        places = tuple(np.newaxis if o is None else slice(None) for o in step.order)

        def taken(array: Any, results: Any) -> Any:
            return array[(*(p(results) for p in parts), ...)].transpose(kept)[places]

        return taken

    steps = [made(s) for s in view.steps]

    def run(array: Any, results: Any) -> Any:
        for step in steps:
            array = step(array, results)
        return array

    return run


def _slice(start: int, length: int, step: int) -> slice:
    if not length:
        return slice(0, 0)
    stop = start + length * step
    return slice(start, stop if stop >= 0 else None, step)
