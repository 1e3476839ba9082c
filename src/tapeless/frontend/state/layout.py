"""Where NumPy reshapes in place: strides of views as products of sizes.

Takes the sizes and strides of a view and a new shape; gives the new strides, or None where NumPy would copy. Sizes are
known only by name, so two products are equal when they have the same factors.
"""

from __future__ import annotations

from collections.abc import Callable, Sequence
from itertools import pairwise

from tapeless.frontend.state.values import Reshaped, Step
from tapeless.ir.core import Range
from tapeless.ir.types import I64, Const, Dim, Var
from tapeless.symbolic.polynomials import number, symbol
from tapeless.symbolic.positions import Position, elements

Canon = Callable[[Dim], Dim]


def row_major(shape: Sequence[Dim]) -> list[Position]:
    return [elements(shape[k + 1 :]) for k in range(len(shape))]


def unknown() -> Position:
    """A stride that is like no other."""
    return symbol(Var("stride", I64))


class Unknown(Exception):
    """Whether NumPy copies depends on sizes that are only known when the program runs."""


def view_strides(
    shape: Sequence[Dim], view: Sequence[Step], canon: Canon, scattered: bool = False
) -> tuple[list[Dim], list[Position]]:
    """Sizes and strides of what is seen through a view of a contiguous array, or of one with unknown strides."""
    dims = [canon(d) for d in shape]
    strides = [unknown() for _ in dims] if scattered else row_major(dims)
    for step in view:
        if isinstance(step, Reshaped):
            new = [canon(d) for d in step.shape]
            strides = regrouped(dims, strides, new) or row_major(new)
            dims = new
            continue
        ranges = [(a, s) for a, s in zip(step.axes, strides, strict=True) if isinstance(a, Range)]
        kept = [
            (canon(a.length), s.scaled(int(a.step.value.real)) if isinstance(a.step, Const) else unknown())
            for a, s in ranges
        ]
        dims = [1 if o is None else kept[o][0] for o in step.order]
        strides = [number(1) if o is None else kept[o][1] for o in step.order]
    return dims, strides


def regrouped(dims: Sequence[Dim], strides: Sequence[Position], new: Sequence[Dim]) -> list[Position] | None:
    """The strides of the same memory in another shape, or None when it has to be copied."""
    old = [(d, s) for d, s in zip(dims, strides, strict=True) if d != 1]
    wanted = [d for d in new if d != 1]
    found: list[Position] = []
    while old or wanted:
        p, q, certain = _first_group([d for d, _ in old], wanted)
        group, old = old[:p], old[p:]
        if not all(stride == elements([d]).times(s) for (_, stride), (d, s) in pairwise(group)):
            if not certain and q > 1:
                raise Unknown
            return None
        last = group[-1][1] if group else number(1)
        part, wanted = wanted[:q], wanted[q:]
        found += [elements(part[k + 1 :]).times(last) for k in range(q)]
    rest = iter(found)
    return [number(1) if d == 1 else next(rest) for d in new]


def _first_group(old: Sequence[Dim], new: Sequence[Dim]) -> tuple[int, int, bool]:
    """The fewest leading sizes of both that have the same product; all of them when that cannot be told."""
    for total in range(2, len(old) + len(new) + 1):
        for p in range(max(1, total - len(new)), min(len(old), total - 1) + 1):
            if elements(old[:p]) == elements(new[: total - p]):
                return p, total - p, True
    return len(old), len(new), False


def contiguous(dims: Sequence[Dim], strides: Sequence[Position]) -> bool:
    return all(s == r for d, s, r in zip(dims, strides, row_major(dims), strict=True) if d != 1)
