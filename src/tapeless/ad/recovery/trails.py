"""Compares all values that a loop finds in its backward pass with those of its forward run, without keeping them.

A `Trail` belongs to one carried value of a loop that is inverted (`reversible.invert`). Both runs add to a few
integers; where these differ by more than rounding explains, an `InversionDrift` is left, a warning.

Note [Trails]
A loop that expands and then contracts loses its digits in the backward pass and finds them again: at the inputs nothing
shows. So both runs add up, over all iterations k and cells c, the integers
    w(k, c) * pattern(size of the cell after iteration k)
modulo 2^64. The bit pattern of a positive float, read as an integer, is its logarithm but for a factor of up to 2 in
the slope, and w are pseudo-random integers of 64 to 127 with random signs. The two totals differ by the sum of w times
(relative error), exactly, since integers do not round. One cell that is off by e shows as that; errors of N cells that
are off by e in the square mean are a random walk, about e sqrt(N) long. Totals that are `TOLERANCE` sqrt(N) apart or
less pass. So the mean error is held to the precision that the inputs are held to, one single cell among N to sqrt(N)
times that. A walk may come back by chance: there are `TOTALS` of them with other weights, and the longest counts. For
errors a hundred times as large as what is allowed, all three are that short in one of two million cases. That takes
three integers for each carried value, and the comparison is one with the forward run itself: what it rounded away (x +
1e16 - 1e16), which no backward run could see, is found too. Sizes: numbers count together with their neighbour at the
other end of the iteration, so that a number on its way through zero counts by its step. Cells of arrays count as in
Note [Drift], by the largest of the moment. Both count not less than `LEAST` of the first size that is not zero:
something that is zero for a while may come back as 1e-17. Cells: of arrays that are made anew in each iteration a
sample of rows counts, another one in each iteration; small ones count as a whole. Where an iteration updates a few
cells, only these count (`ad.recovery.written_cells`): every error enters by a cell that is written, and is compared
after the iteration that wrote it.
"""

from __future__ import annotations

from collections.abc import Callable, Sequence
from dataclasses import dataclass

from tapeless.ad.recovery.drift import FAINT, TOLERANCE, greatest, size_of, warn
from tapeless.ad.recovery.written_cells import written_cells
from tapeless.ir.core import For, Lambda, Reduction, Sweep
from tapeless.ir.span import Span
from tapeless.ir.types import I64, Atom, Dim, DType, Var, atom_dim, const, dim_atom, i64
from tapeless.ir.walk import refresh_lambda
from tapeless.ops.emit import Emit, sum_operator

TOTALS = 3
LEAST = 1e-8
NEIGHBOUR = 0.6180339887498949  # the share of the neighbour: maps by which both would cancel are not met by accident
SPREAD = 97.0 * 2.0**52  # the mean weight times the slope of the pattern
LARGE, SAMPLED = 64, 8  # arrays from that many rows on: one of so many counts
STRIDE, MIX = 0x1E3779B97F4A7C15, 0x1B873593CC9E2D51  # odd


@dataclass(frozen=True)
class Sample:
    """Every so many rows, `width` in all; the first one is among `firsts`."""

    stride: Atom
    width: Dim
    firsts: Atom

    def place(self, emit: Emit, seed: Atom, j: Atom) -> Atom:
        return emit("add", emit("mul", j, self.stride), emit("mod", emit("shr", seed, 1), self.firsts))


class Trail:
    """`written` gives, for the index and the array, the cells that count; all of them where it is None."""

    def __init__(self, value: Var, written: Lambda | None) -> None:
        self.value, self.written = value, written
        self.sample: Sample | None = None

    def sized(self, emit: Emit, sizes: set[Var]) -> None:
        """To be called once, in front of the loop: how many rows a sample has."""
        if self.written is None and self.value.type.shape:
            rows = dim_atom(self.value.type.shape[0])
            stride = emit("select", emit("ge", rows, i64(LARGE)), i64(SAMPLED), i64(1))
            width = emit("floordiv", rows, stride, label="rows")
            if isinstance(width, Var):
                sizes.add(width)
            last = emit("mul", emit("sub", width, 1), stride)
            self.sample = Sample(stride, atom_dim(width), emit("max", emit("sub", rows, last), 1))

    def parts(self, emit: Emit, index: Var, end: Atom) -> Sequence[Atom]:
        """What counts of the value at the end of an iteration."""
        return (end,) if self.written is None else emit.b.inline(refresh_lambda(self.written), [index, end])

    def least(self, emit: Emit, known: Atom, index: Var, parts: Sequence[Atom], start: Atom) -> Atom:
        """The size below which nothing counts, `known` unless that is 0."""
        found = emit("mul", self._largest(emit, index, parts, start), LEAST)
        return emit("select", emit("gt", known, 0.0), known, found)

    def totals(
        self, emit: Emit, so_far: Sequence[Atom], index: Var, parts: Sequence[Atom], start: Atom, least: Atom
    ) -> list[Atom]:
        """With an iteration more. `start`: the value at its start, the neighbour of a number."""
        if self.value.type.shape:
            floor = emit("mul", self._largest(emit, index, parts, start), FAINT)
            near: Sequence[Atom] = (floor, floor)
        else:
            near = [emit("mul", s, NEIGHBOUR) for s in _sizes(emit, start)]
        none, seed = emit("pattern", least), emit("mul", index, i64(STRIDE))

        def cell(x: Atom, seed: Atom) -> list[Atom]:
            found: list[Atom] = []
            for number, (size, other) in enumerate(zip(_sizes(emit, x), near, strict=False)):
                bits = emit("sub", emit("pattern", emit("add", emit("add", size, other), least)), none)
                terms = [emit("mul", w, bits) for w in _weights(emit, emit("add", seed, i64(number)))]
                found = [emit("add", a, b) for a, b in zip(found, terms, strict=True)] if found else terms
            return found

        found = list(so_far)
        for number, part in enumerate(parts):
            begin = emit("add", seed, i64(number << 32))
            more = _reduced(emit, part, begin, cell, tuple(sum_operator(DType.i64) for _ in range(TOTALS)), self.sample)
            found = [emit("add", a, b) for a, b in zip(found, more, strict=True)]
        return found

    def _largest(self, emit: Emit, index: Var, parts: Sequence[Atom], start: Atom) -> Atom:
        if not self.value.type.shape:
            return emit("maximum", size_of(emit, parts[0]), size_of(emit, start))
        seed = emit("mul", index, i64(STRIDE))
        largest: Atom = const(0.0, DType.f64)
        for part in parts:
            found = _reduced(emit, part, seed, lambda x, _: [size_of(emit, x)], (greatest(emit),), self.sample)
            largest = emit("maximum", largest, found[0])
        return largest

    def compare(self, emit: Emit, forth: Sequence[Atom], back: Sequence[Atom], steps: Atom, span: Span) -> None:
        """Warns where the totals of both runs are apart."""
        apart: Atom = const(0.0, DType.f64)
        for one, other in zip(forth, back, strict=True):
            apart = emit("maximum", apart, emit("abs", emit.convert(emit("sub", one, other), DType.f64)))
        drift = emit("div", apart, SPREAD)
        cells = emit("mul", emit.convert(steps, DType.f64), self._cells(emit))
        limit = emit("mul", emit("sqrt", emit("maximum", cells, 1.0)), TOLERANCE[self.value.type.dtype])
        text = f"running backwards, '{self.value.name}' did not come back to the values it had on the way: "
        warn(emit, drift, limit, text + "the relative error is about {0}", span)

    def _cells(self, emit: Emit) -> Atom:
        """That count in an iteration."""
        types = [self.value.type] if self.written is None else [r.type for r in self.written.body.results]
        total: Atom = const(0.0, DType.f64)
        for t in types:
            many: Atom = const(1.0, DType.f64)
            shape = t.shape if self.sample is None else (self.sample.width, *t.shape[1:])
            for d in shape:
                many = emit("mul", many, emit.convert(dim_atom(d), DType.f64))
            total = emit("add", total, many)
        return total


def trails(exp: For, state: Sequence[Var]) -> list[Trail]:
    """Of all carried values that are not exact."""
    return [Trail(p, written_cells(exp, p) if p.type.shape else None) for p in state if p.type.dtype in TOLERANCE]


def _reduced(
    emit: Emit,
    x: Atom,
    seed: Atom,
    cell: Callable[[Atom, Atom], Sequence[Atom]],
    operators: tuple[Reduction, ...],
    sample: Sample | None = None,
) -> Sequence[Atom]:
    """What `cell` gives for each cell and its seed, reduced."""
    if not x.type.shape:
        return cell(x, seed)
    assert isinstance(x, Var)
    array = x

    def row(i: Var, r: Atom) -> Sequence[Atom]:
        return _reduced(emit, r, emit("add", seed, emit("mul", i, i64(MIX))), cell, operators)

    def sampled(j: Var) -> Sequence[Atom]:
        assert sample is not None
        at = emit("add", sample.place(emit, seed, j), 0, label="i")
        assert isinstance(at, Var)
        return row(at, emit.b.row(array, at))

    if sample is None:
        lam = emit.b.lam([Var("i", I64), Var(array.name, array.type.row())], row)
        sweep = Sweep(array.type.shape[0], (array,), lam, operators)
    else:
        sweep = Sweep(sample.width, (), emit.b.lam([Var("j", I64)], sampled), operators)
    return emit.b.bind([Var("found", op.neutral[0].type) for op in operators], sweep)


def _sizes(emit: Emit, x: Atom) -> list[Atom]:
    """Positive numbers that change by as much as the value does, relative to its size."""
    size = size_of(emit, x)
    if not x.type.dtype.is_complex:
        return [size]
    parts = [emit.convert(emit(part, x), DType.f64) for part in ("real", "imag")]
    return [emit("add", size, emit("mul", p, 0.5)) for p in parts]


def _weights(emit: Emit, seed: Atom) -> list[Atom]:
    """Numbers of 64 to 127 with any sign."""
    mixed = emit("mul", emit("xor", seed, emit("shr", seed, 31)), i64(MIX))
    mixed = emit("xor", mixed, emit("shr", mixed, 32))
    found: list[Atom] = []
    for k in range(TOTALS):
        bits = emit("shr", mixed, 7 * k)
        sign = emit("neg", emit("and", emit("shr", bits, 6), 1))
        found.append(emit("sub", emit("xor", emit("or", emit("and", bits, 63), 64), sign), sign))
    return found
