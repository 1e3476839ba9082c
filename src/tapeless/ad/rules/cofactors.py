"""The cofactors of a matrix, singular or not: the gradient of its determinant, in a form that is differentiated again.

`cofactors` takes a square matrix, emits Core and gives the matrix of its cofactors. Relies on forward and reverse mode
for the derivatives of that: it is made of loops, maps and `solve`.

Note [Cofactors]
det(A) A^-T is no way to them near a singular matrix: its derivative is a difference of terms of the size det(A)
|A^-1|^2, where the result has the size of det(A) |A^-1|, and det(A) is rounded. But cofactors of a product are products
of cofactors, so with A = P L D U Q they are sign(P) sign(Q) P L^-T C U^-T Q, where C is diagonal: the products of all
pivots but one, without a division. By elimination with complete pivoting L and U have ones on the diagonal and nothing
larger beside it, whatever the rank. The last pivot, which is 0 for rank n - 1, divides nothing. An earlier one that
vanishes divides zeros; where they have derivatives it gets a constant in the size of a rounding of A added. So both
derivatives are as right as those of a matrix that differs from A by roundings: they are polynomials of A and do not
mind. Differences in the second one are of multipliers, which are not larger than 1. (Third derivatives are right for
rank n - 1 and more.)
"""

from __future__ import annotations

from collections.abc import Callable

import numpy as np

from tapeless.ir.core import At, Library
from tapeless.ir.types import Atom, DType, Var, dim_atom, i64, one_of, zero_of
from tapeless.ops.emit import Emit

Element = Callable[[Var, Var], Atom]  # of two indices


def cofactors(emit: Emit, a: Var) -> Var:
    """Note [Cofactors]."""
    return _Elimination(emit, a).cofactors()


class _Elimination:
    def __init__(self, emit: Emit, a: Var) -> None:
        self.emit, self.b, self.a = emit, emit.b, a
        self.size = a.type.shape[0]
        self.n = dim_atom(self.size)
        self.last = emit("sub", self.n, 1)
        self.dtype, self.zero, self.one = a.type.dtype, zero_of(a.type.dtype), one_of(a.type.dtype)

    def cofactors(self) -> Var:
        b = self.b
        order = b.map(self.size, [], lambda i: (i,))[0]
        least = self._least() if b.again else zero_of(self.dtype.real)
        w, rows, columns, sign = b.for_(
            self.n,
            [self.a, order, order, self.one],
            lambda k, w, rows, columns, sign: self._step(k, w, rows, columns, sign, least),
            ["w", "rows", "columns", "sign"],
        )
        inner = self._scaled(w, sign)
        back = [b.let(p.type, Library("argsort", (p,)), "back") for p in (rows, columns)]
        return self._matrix(lambda i, j: b.index(inner, [At(b.index(back[0], [At(i)])), At(b.index(back[1], [At(j)]))]))

    def _matrix(self, element: Element) -> Var:
        b = self.b
        return b.map(self.size, [], lambda i: b.map(self.size, [], lambda j: (element(i, j),)))[0]

    def _at(self, w: Var, i: Atom, j: Atom) -> Atom:
        return self.b.index(w, [At(i), At(j)])

    # -- elimination

    def _least(self) -> Atom:
        """What a pivot is at least where it is differentiated: a rounding of the largest element."""
        info = np.finfo(np.float32 if self.dtype.real is DType.f32 else np.float64)
        _, _, largest = self._largest(self.a, i64(0))
        tiny = float(info.tiny) ** 0.25  # for a matrix of zeros
        return self.emit("max", self.emit("mul", largest, float(info.eps)), tiny)

    def _divisor(self, wanted: Atom, pivot: Atom) -> Atom:
        """The pivot, or 1 where it divides nothing or zeros."""
        divides = self.emit("and", wanted, self.emit("ne", pivot, self.zero))
        return self.emit("select", divides, pivot, self.one)

    def _largest(self, w: Var, k: Atom) -> tuple[Atom, Atom, Atom]:
        """Row, column and size of the largest element from (k, k) on; as constants."""
        emit, b = self.emit, self.b
        count = emit("sub", self.n, k)

        def along(di: Var, *best: Atom) -> tuple[Atom, ...]:
            i = emit("add", k, di)

            def across(dj: Var, *best: Atom) -> tuple[Atom, ...]:
                j = emit("add", k, dj)
                size = emit("abs", emit("stop_gradient", self._at(w, i, j)))
                larger = emit("gt", size, best[2])
                return tuple(emit("select", larger, new, old) for new, old in zip((i, j, size), best, strict=True))

            return b.for_(count, list(best), across, ["row", "column", "size"])

        start = [k, k, zero_of(self.dtype.real)]
        row, column, size = b.for_(count, start, along, ["row", "column", "size"])
        return row, column, size

    def _swapped(self, i: Atom, k: Atom, p: Atom) -> Atom:
        """Where the element at `i` comes from when those at `k` and `p` change places."""
        emit = self.emit
        return emit("select", emit("eq", i, k), p, emit("select", emit("eq", i, p), k, i))

    def _step(self, k: Var, w: Var, rows: Var, columns: Var, sign: Var, least: Atom) -> tuple[Atom, ...]:
        emit, b = self.emit, self.b
        row, column, size = self._largest(w, k)
        vanishes = emit("and", emit("le", size, least), emit("lt", k, self.last))
        more = emit("select", vanishes, least, zero_of(least.type.dtype))
        pivot = emit("add", self._at(w, row, column), emit.convert(more, self.dtype))

        def element(i: Var, j: Var) -> Atom:
            i_from, j_from = self._swapped(i, k, row), self._swapped(j, k, column)
            old = self._at(w, i_from, j_from)
            inside = emit("and", emit("gt", i, k), emit("gt", j, k))
            here = emit("and", emit("eq", i, k), emit("eq", j, k))
            ratio = emit("div", self._at(w, i_from, column), self._divisor(inside, pivot))
            new = emit("sub", old, emit("mul", ratio, self._at(w, row, j_from)))
            return emit("select", here, pivot, emit("select", inside, new, old))

        def moved(order: Var, p: Atom) -> Var:
            return b.map(self.size, [], lambda i: (b.index(order, [At(self._swapped(i, k, p))]),))[0]

        same = emit("eq", emit("eq", row, k), emit("eq", column, k))  # two exchanges, or none
        return (
            self._matrix(element),
            moved(rows, row),
            moved(columns, column),
            emit("select", same, sign, emit("neg", sign)),
        )

    # -- what it leaves: D on the diagonal, L D below, D U above

    def _scaled(self, w: Var, sign: Atom) -> Var:
        """L^-T C U^-T with the sign."""
        b = self.b
        lower_turned = self._unit(w, lambda i, j: self._at(w, j, i))
        upper = self._unit(w, lambda i, j: self._at(w, i, j))
        others = b.map(self.size, [], lambda i: (self._others(w, i, sign),))[0]
        middle = self._matrix(
            lambda i, j: self.emit("select", self.emit("eq", i, j), b.index(others, [At(i)]), self.zero)
        )
        left = b.let(w.type, Library("solve", (lower_turned, middle)), "left")
        both = b.let(w.type, Library("solve", (upper, b.transpose(left, (1, 0)))), "both")
        return b.transpose(both, (1, 0))

    def _unit(self, w: Var, above: Element) -> Var:
        """The upper triangular matrix of `above(i, j)` over the pivot of row i, with ones on the diagonal."""
        emit = self.emit

        def element(i: Var, j: Var) -> Atom:
            right = emit("lt", i, j)
            ratio = emit("div", above(i, j), self._divisor(right, self._at(w, i, i)))
            return emit("select", right, ratio, emit("select", emit("eq", i, j), self.one, self.zero))

        return self._matrix(element)

    def _others(self, w: Var, i: Var, sign: Atom) -> Atom:
        """The product of the pivots but number i."""
        emit = self.emit

        def step(j: Var, product: Var) -> tuple[Atom, ...]:
            return (emit("mul", product, emit("select", emit("eq", i, j), self.one, self._at(w, j, j))),)

        return self.b.for_(self.n, [sign], step, ["product"])[0]
