"""Where NumPy reshapes in place: strides of views as products of sizes.

Takes the sizes and strides of a view and a new shape; gives the new strides, or None where NumPy would copy. Sizes are
known only by name, so two products are equal when they have the same factors.
"""

from __future__ import annotations

from collections.abc import Callable, Sequence
from dataclasses import dataclass
from itertools import pairwise

from tapeless.frontend.state.values import Reshaped, Step
from tapeless.ir.core import Range
from tapeless.ir.types import Const, Dim, Var

Canon = Callable[[Dim], Dim]


@dataclass(frozen=True)
class Product:
    """A constant times sizes known by name."""

    factor: int = 1
    sizes: tuple[int, ...] = ()  # identities, sorted

    def __mul__(self, other: Product) -> Product:
        return Product(self.factor * other.factor, tuple(sorted((*self.sizes, *other.sizes))))


def product(dims: Sequence[Dim]) -> Product:
    total = Product()
    for d in dims:
        total *= Product(1, (id(d),)) if isinstance(d, Var) else Product(d)
    return total


def row_major(shape: Sequence[Dim]) -> list[Product]:
    return [product(shape[k + 1 :]) for k in range(len(shape))]


class Unknown(Exception):
    """Whether NumPy copies depends on sizes that are only known when the program runs."""


def view_strides(
    shape: Sequence[Dim], view: Sequence[Step], canon: Canon, scattered: bool = False
) -> tuple[list[Dim], list[Product]]:
    """Sizes and strides of what is seen through a view of a contiguous array, or of one with unknown strides."""
    dims = [canon(d) for d in shape]
    strides = [Product(1, (-1 - k,)) for k in range(len(dims))] if scattered else row_major(dims)
    for step in view:
        if isinstance(step, Reshaped):
            new = [canon(d) for d in step.shape]
            strides = regrouped(dims, strides, new) or row_major(new)
            dims = new
            continue
        ranges = [(a, s) for a, s in zip(step.axes, strides, strict=True) if isinstance(a, Range)]
        kept = [
            (canon(a.length), s * Product(int(a.step.value.real)) if isinstance(a.step, Const) else Product(0))
            for a, s in ranges
        ]
        dims = [1 if o is None else kept[o][0] for o in step.order]
        strides = [Product() if o is None else kept[o][1] for o in step.order]
    return dims, strides


def regrouped(dims: Sequence[Dim], strides: Sequence[Product], new: Sequence[Dim]) -> list[Product] | None:
    """The strides of the same memory in another shape, or None when it has to be copied."""
    old = [(d, s) for d, s in zip(dims, strides, strict=True) if d != 1]
    wanted = [d for d in new if d != 1]
    found: list[Product] = []
    while old or wanted:
        p, q, certain = _first_group([d for d, _ in old], wanted)
        group, old = old[:p], old[p:]
        if not all(stride == product([d]) * s for (_, stride), (d, s) in pairwise(group)):
            if not certain and q > 1:
                raise Unknown
            return None
        last = group[-1][1] if group else Product()
        part, wanted = wanted[:q], wanted[q:]
        found += [product(part[k + 1 :]) * last for k in range(q)]
    rest = iter(found)
    return [Product() if d == 1 else next(rest) for d in new]


def _first_group(old: Sequence[Dim], new: Sequence[Dim]) -> tuple[int, int, bool]:
    """The fewest leading sizes of both that have the same product; all of them when that cannot be told."""
    for total in range(2, len(old) + len(new) + 1):
        for p in range(max(1, total - len(new)), min(len(old), total - 1) + 1):
            if product(old[:p]) == product(new[: total - p]):
                return p, total - p, True
    return len(old), len(new), False


def contiguous(dims: Sequence[Dim], strides: Sequence[Product]) -> bool:
    return all(s == r for d, s, r in zip(dims, strides, row_major(dims), strict=True) if d != 1)
