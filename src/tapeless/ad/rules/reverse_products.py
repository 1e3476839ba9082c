"""Products go back by division: all factors but one are the product of all of them, divided by that one.

Gives for reductions and histograms that multiply what `ad.rules.reverse_sweeps` seeds their operands with. Relies on
`ad.unfold` to have left those whose derivative is not differentiated again.

Note [Other factors]
The quotient has the digits of the product itself wherever that is a normal number: a partial product that overflows
ends in infinity or NaN, and digits that one loses below the least normal number are lost to the value as well. A
product that is 0, infinite, NaN or below the least normal number says nothing about the other factors, whose product
may be normal. Then, decided at run time, the factors before and after each one are multiplied up one by one, in a loop
that else runs over no elements at all: one map does for both. By its own factor the quotient has the slope 0 as a
difference of two large numbers, where the loop has it exactly. So what an outer transform differentiates once more
keeps the loop.
"""

from __future__ import annotations

from collections.abc import Callable, Sequence
from dataclasses import dataclass

import numpy as np

from tapeless.ad.reverse import Reverse
from tapeless.ir.core import At, Body, Hist, If, Lambda, Sweep
from tapeless.ir.types import I64, Atom, Dim, DType, Var, atom_dim, dim_atom, i64, one_of
from tapeless.ops.emit import sum_operator

Element = Callable[[Atom], tuple[Atom, Atom]]  # of an index: the cell of the product that it belongs to, the factor


@dataclass(frozen=True)
class Others:
    """`one_by_one` is filled unless all products are `normal`. Note [Other factors]"""

    normal: Atom
    one_by_one: Var

    def of(self, inner: Reverse, index: Atom, product: Atom, factor: Atom) -> Atom:
        """The product of the factors other than that of the element."""
        b = inner.b
        with b.region() as divided:
            quotient = inner.emit("div", product, factor)
        with b.region() as looked_up:
            found = b.index(self.one_by_one, [At(index)])
        arms = Body(tuple(divided), (quotient,)), Body(tuple(looked_up), (found,))
        return b.bind([Var("others", factor.type)], If(self.normal, *arms))[0]


def others_of_sweep(reverse: Reverse, exp: Sweep, k: int, product: Var) -> Others:
    """For the reduction that gives result `k`."""
    normal = _is_normal(reverse, product)

    def element(i: Atom) -> tuple[Atom, Atom]:
        return i64(0), _results(reverse, exp, i)[k]

    return Others(normal, _one_by_one(reverse, exp.width, product, normal, element, 1))


def others_of_hist(reverse: Reverse, exp: Hist, products: Var) -> Others:
    """For a histogram into ones."""
    b, emit = reverse.b, reverse.emit
    size = products.type.shape[0]
    i, e = Var("i", I64), Var("e", products.type.row())
    with b.region() as stms:
        unfit = emit("select", _is_normal(reverse, e), i64(0), i64(1))
    count = Var("unfit", I64)
    test = Lambda((i, e), Body(tuple(stms), (unfit,)))
    b.bind([count], Sweep(size, (products,), test, (sum_operator(I64.dtype),)))
    normal = emit("eq", count, 0)
    beyond = dim_atom(size)

    def element(i: Atom) -> tuple[Atom, Atom]:
        key, factor = _results(reverse, exp, i)
        inside = emit("and", emit("ge", key, 0), emit("lt", key, beyond))
        return emit("select", inside, key, beyond), factor

    cells = atom_dim(emit("add", beyond, 1))
    return Others(normal, _one_by_one(reverse, exp.width, products, normal, element, cells))


def _is_normal(reverse: Reverse, product: Var) -> Atom:
    emit, limits = reverse.emit, np.finfo(np.float32 if product.type.dtype is DType.f32 else np.float64)
    size = emit("abs", product)
    return emit("and", emit("ge", size, float(limits.tiny)), emit("le", size, float(limits.max)))


def _results(reverse: Reverse, exp: Sweep | Hist, i: Atom) -> Sequence[Atom]:
    """Those of the element's lambda, without its effects."""
    lam = reverse.fresh(Lambda(exp.lam.params, reverse.without_updates(exp.lam.body)))
    return reverse.b.inline(lam, [i, *(reverse.b.row(a, i, a.name) for a in exp.arrays)])


def _one_by_one(reverse: Reverse, width: Dim, like: Var, normal: Atom, element: Element, cells: Dim) -> Var:
    """For each element what the others of its cell multiply up to; for none if the products are normal."""
    b, emit = reverse.b, reverse.emit
    count = emit("select", normal, i64(0), dim_atom(width))
    last = emit("sub", count, 1)
    dtype = like.type.dtype

    def step(i: Atom, totals: Var, others: Var, seen: Callable[[Var], Atom]) -> tuple[Var, Var]:
        cell, factor = element(i)
        total = b.index(totals, [At(cell)])
        others = b.update(others, [At(i)], seen(total))
        return b.update(totals, [At(cell)], emit("mul", total, factor)), others

    def before(i: Var, totals: Var, others: Var) -> tuple[Var, Var]:
        return step(i, totals, others, lambda total: total)

    def after(j: Var, totals: Var, others: Var) -> tuple[Var, Var]:
        i = emit("sub", last, j)
        return step(i, totals, others, lambda total: emit("mul", b.index(others, [At(i)]), total))

    others = b.full((width,), None, dtype, "others")
    for way in (before, after):
        ones = b.full((cells,), one_of(dtype), dtype, "total")
        _, others = b.for_(count, [ones, others], way)
    return others
