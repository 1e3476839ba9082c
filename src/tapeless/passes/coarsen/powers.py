"""Many trips of a linear recurrence at once: x becomes A x + b, n times, in a number of steps like that of the digits of n.

`trips` emits it for given coefficients. Squaring A doubles the trips; b becomes (A + 1) b; where a binary digit of n is
1, the map of that many trips is applied to x.

Note [Digits of powers]
A rounding of A counts as often as A is a factor of the power: after a million trips six digits would be gone, though a
loop loses three. So A has two parts (Note [Two parts] of ops/table.py) and its powers are right to the last digit; b
and x need no more than their own, because they enter once. A + 1 is made from the first part, exactly if that is near
-1, where it matters.
"""

from __future__ import annotations

from collections.abc import Iterable, Sequence
from dataclasses import dataclass

from tapeless.ir.builder import Builder
from tapeless.ir.core import Body, If, While
from tapeless.ir.types import Atom, Const, Type, Var, const
from tapeless.ops.emit import Emit
from tapeless.passes.coarsen.forms import Coefficient


@dataclass(frozen=True)
class Pair:
    """The sum of two floats: Note [Two parts] of ops/table.py."""

    high: Atom
    low: Atom


class Powers:
    """Of one recurrence, which has `size` values."""

    def __init__(self, b: Builder, type: Type) -> None:
        self.b, self.emit, self.type = b, Emit(b), type

    def trips(
        self, matrix: Sequence[Sequence[Coefficient]], shift: Sequence[Atom], start: Sequence[Atom], count: Atom
    ) -> tuple[list[Atom], list[Atom]]:
        """The values after `count` trips, of which there is at least one, and the last powers and shifts."""
        size = len(start)
        still = all(isinstance(s, Const) and s.value == 0 for s in shift)
        kept = 0 if still else size  # shifts that change
        first = [[self.exact(c) for c in row] for row in matrix]
        carried = [count, *start, *shift[:kept], *(x for row in first for p in row for x in (p.high, p.low))]
        params = [Var("x", a.type) for a in carried]
        left, values = params[0], params[1 : 1 + size]
        shifts = [*params[1 + size : 1 + size + kept], *shift[kept:]]
        powers = _matrix(params[1 + size + kept :], size)
        with self.b.region() as asking:
            more = self.emit("gt", left, 1)
        with self.b.region() as stms:
            odd = self.emit("eq", self.emit("and", left, 1), 1)
            with self.b.region() as applied:
                moved = self.applied(powers, shifts, values)
            now = [Var("x", self.type) for _ in values]
            self.b.bind(now, If(odd, Body(tuple(applied), tuple(moved)), Body((), tuple(values))))
            squared = self.squared(powers)
            half = self.emit("shr", left, 1)
            doubled = self.doubled(powers, shifts) if kept else []
            results = (half, *now, *doubled, *(x for row in squared for p in row for x in (p.high, p.low)))
        ends = [Var("x", a.type) for a in carried]
        loop = While(tuple(params), tuple(carried), Body(tuple(asking), (more,)), Body(tuple(stms), results))
        self.b.bind(ends, loop)
        shifts = [*ends[1 + size : 1 + size + kept], *shift[kept:]]
        last = _matrix(ends[1 + size + kept :], size)
        return self.applied(last, shifts, ends[1 : 1 + size]), [*shifts, *(p.high for row in last for p in row)]

    # -- matrices of two parts

    def applied(self, a: list[list[Pair]], shift: Sequence[Atom], x: Sequence[Atom]) -> list[Atom]:
        """a x + shift"""
        found: list[Atom] = []
        for row, s in zip(a, shift, strict=True):
            small = self.sum([s, *(self.emit("mul", p.low, v) for p, v in zip(row, x, strict=True))])
            found.append(self.sum([small, *(self.emit("mul", p.high, v) for p, v in zip(row, x, strict=True))]))
        return found

    def doubled(self, a: list[list[Pair]], shift: Sequence[Atom]) -> list[Atom]:
        """(a + 1) shift"""
        found: list[Atom] = []
        for k, row in enumerate(a):
            factors = [self.emit("add", p.high, 1.0) if k == j else p.high for j, p in enumerate(row)]
            factors = [self.emit("add", f, p.low) for f, p in zip(factors, row, strict=True)]
            found.append(self.sum(self.emit("mul", f, s) for f, s in zip(factors, shift, strict=True)))
        return found

    def squared(self, a: list[list[Pair]]) -> list[list[Pair]]:
        size = range(len(a))
        return [[self.dot([a[i][k] for k in size], [a[k][j] for k in size]) for j in size] for i in size]

    def dot(self, x: Sequence[Pair], y: Sequence[Pair]) -> Pair:
        emit = self.emit
        high: Atom | None = None
        low: Atom | None = None
        for p, q in zip(x, y, strict=True):
            product = emit("mul_rounded", p.high, q.high)
            small = emit("add", emit("mul", p.high, q.low), emit("mul", p.low, q.high))
            small = emit("add", emit("mul_error", p.high, q.high), small)
            if high is None or low is None:
                high, low = product, small
            else:
                high, lost = self.two_sum(high, product)
                low = emit("add", low, emit("add", lost, small))
        assert high is not None and low is not None
        total = emit("add", high, low)  # the second part is the smaller one
        return Pair(total, emit("sub", low, emit("sub", total, high)))

    def two_sum(self, x: Atom, y: Atom) -> tuple[Atom, Atom]:
        """The sum, and what rounding took away."""
        emit = self.emit
        total = emit("add", x, y)
        of_y = emit("sub", total, x)
        return total, emit("add", emit("sub", x, emit("sub", total, of_y)), emit("sub", y, of_y))

    def exact(self, c: Coefficient) -> Pair:
        """Note [One and a little] of `forms`."""
        zero, whole = const(0.0, self.type.dtype), const(c.whole, self.type.dtype)
        if c.rest is None:
            return Pair(whole, zero)
        return Pair(*self.two_sum(whole, c.rest)) if c.whole else Pair(c.rest, zero)

    def sum(self, terms: Iterable[Atom]) -> Atom:
        first, *others = terms
        for t in others:
            first = self.emit("add", first, t)
        return first


def _matrix(parts: Sequence[Atom], size: int) -> list[list[Pair]]:
    pairs = [Pair(*parts[k : k + 2]) for k in range(0, len(parts), 2)]
    return [pairs[k * size : (k + 1) * size] for k in range(size)]
