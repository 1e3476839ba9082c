"""Iterations solved for the values at their start, from those at their end: a loop that runs backwards needs no memory.

`invert` takes a loop and the carried values that are needed; gives an `Inverse`, or in words what stands in the way.
Integers come back exactly. Floats come back up to rounding, which grows or not with the loop, so the way back measures
where it ends: `Inverse.test`.

Note [Solving]
What is known: the values at the end, the index, everything from outside. Statements whose operands are known are run
again; of a statement whose result is known and that has one operand that is not, the operand is solved for. That goes
on until nothing new is learned. Sweeps, branches and loops are solved by the same means inside.

Note [Drift]
How far a number is off, relatively to its first value; to its last one where that is 0. A cell of an array counts by the larger
of both, and not less than `FAINT` of the largest cell: zeros that rounding has left beside large cells are no loss.
"""

from __future__ import annotations

from dataclasses import dataclass
from typing import TYPE_CHECKING

from tapeless.ad.emit import Emit
from tapeless.ad.solve import Solver
from tapeless.ir.builder import Builder
from tapeless.ir.core import Body, Check, For, Lambda, Reduction, Sweep
from tapeless.ir.span import Span
from tapeless.ir.types import F64, I64, Atom, Const, DType, Var, const
from tapeless.passes.dce import live_part

if TYPE_CHECKING:
    from collections.abc import Callable, Sequence

    from tapeless.ad.reverse import Reverse

TOLERANCE = {DType.f32: 3e-4, DType.c64: 3e-4, DType.f64: 1.5e-8, DType.c128: 1.5e-8}  # relative, about half the digits
FAINT = 1e-6


@dataclass
class Inverse:
    """`lam` takes the index and the values of `state` at the end of an iteration, and gives those at its start."""

    state: list[Var]
    lam: Lambda

    def emit(self, b: Builder, index: Var, ends: Sequence[Var]) -> list[Atom]:
        return list(b.inline(self.lam, [index, *ends]))

    def test(self, reverse: Reverse, exp: For, found: Sequence[Var], lasts: Sequence[Atom], span: Span) -> None:
        """Warns where the way back did not end at the initial values. `lasts`: where it began."""
        b, emit = reverse.b, reverse.emit
        for p, end, last in zip(self.state, found, lasts, strict=True):
            start = exp.inits[exp.params.index(p)]
            if p.type.dtype not in TOLERANCE:
                continue
            drift = _of_array(emit, start, end, last) if p.type.shape else _of_number(emit, start, end, last)
            limit = const(TOLERANCE[p.type.dtype], DType.f64)
            before, b.span = b.span, span
            message = f"running backwards, '{p.name}' did not come back to its first value: off by {{0}}, relatively"
            b.effect(Check(emit("le", drift, limit), "InversionDrift", message, (drift,)))
            b.span = before


def _size(emit: Emit, x: Atom) -> Atom:
    return emit.convert(emit("abs", x), DType.f64)


def _or_one(emit: Emit, size: Atom, other: Atom | float = 1.0) -> Atom:
    return emit("select", emit("gt", size, 0.0), size, other)


def _of_number(emit: Emit, start: Atom, end: Atom, last: Atom) -> Atom:
    """Note [Drift]."""
    scale = _or_one(emit, _size(emit, start), _or_one(emit, _size(emit, last)))
    return emit("div", _size(emit, emit("sub", end, start)), scale)


def _of_array(emit: Emit, start: Atom, end: Atom, last: Atom) -> Atom:
    largest = _greatest_of(emit, [start, last], lambda x, z: emit("maximum", _size(emit, x), _size(emit, z)))
    least = _or_one(emit, emit("mul", largest, FAINT))

    def cell(x: Atom, y: Atom, z: Atom) -> Atom:
        scale = emit("maximum", emit("maximum", _size(emit, x), _size(emit, z)), least)
        return emit("div", _size(emit, emit("sub", y, x)), scale)

    return _greatest_of(emit, [start, end, last], cell)


def _greatest_of(emit: Emit, arrays: Sequence[Atom], cell: Callable[..., Atom]) -> Atom:
    """Over all cells."""
    if not arrays[0].type.shape:
        return cell(*arrays)
    b = emit.b
    vars = [a for a in arrays if isinstance(a, Var)]
    rows = [Var("i", I64), *(Var(v.name, v.type.row()) for v in vars)]
    lam = b.lam(rows, lambda _, *cells: (_greatest_of(emit, cells, cell),))
    return b.bind([Var("off", F64)], Sweep(vars[0].type.shape[0], tuple(vars), lam, (_greatest(b, emit),)))[0]


def _greatest(b: Builder, emit: Emit) -> Reduction:
    left, right = Var("x", F64), Var("y", F64)
    op = b.lam([left, right], lambda x, y: (emit("maximum", x, y),))
    return Reduction(op, (Const(0.0, DType.f64),), commutative=True)


def invert(exp: For, needed: set[Var], exact: bool) -> Inverse | str:
    """`exact`: only by operations that lose nothing."""
    body = exp.body
    candidates = [p for p in exp.params if not (exact and p.type.dtype in TOLERANCE)]
    while True:
        b = Builder()
        index = Var(exp.index.name, exp.index.type)
        ends = {p: Var(p.name, p.type) for p in candidates}
        solver = Solver(b, body, (*exp.params, exp.index), exact)
        solver.learn(exp.index, index)
        for p, end in ends.items():
            solver.learn(body.results[exp.params.index(p)], end)
        solver.run()
        solved = [p for p in candidates if solver.knows(p)]
        if set(solved) == set(candidates):
            break
        candidates = solved
    if not needed <= set(candidates):
        lost = next(p for p in exp.params if p in needed and p not in candidates)
        return f"'{lost.name}' at the start of an iteration cannot be solved for from the values at its end"
    return _least(
        Lambda((index, *ends.values()), Body(tuple(b.stms), tuple(solver.atom(p) for p in ends))), ends, needed
    )


def _least(lam: Lambda, ends: dict[Var, Var], needed: set[Var]) -> Inverse:
    """Without values that are only there because they could be solved for."""
    names, results = list(ends), dict(zip(ends, lam.body.results, strict=True))
    state = set(needed)
    while True:
        live, vars = live_part(Body(lam.body.stms, tuple(results[p] for p in names if p in state)))
        used = {p for p in names if ends[p] in vars or any(r is ends[p] for r in live.results)}
        if used <= state:
            kept = [p for p in names if p in state]
            return Inverse(kept, Lambda((lam.params[0], *(ends[p] for p in kept)), live))
        state |= used
