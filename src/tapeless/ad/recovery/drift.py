"""How far a loop that ran backwards is from the initial values, which are known.

`Inverse` of `reversible.invert` computes the values at the start of iterations from those at their end; floats come
back up to rounding, which may grow. `compare_inputs` looks at the last ones it finds, `ad.recovery.trails` at all those
in between. What is off leaves an `InversionDrift`, a warning.

Note [Drift]
How far a number is off, relative to its first value; to its last one where that is 0. A cell of an array counts by the
larger of both, and not less than `FAINT` of the largest cell: zeros that rounding has left beside large cells are no
loss.
"""

from __future__ import annotations

from collections.abc import Callable, Sequence

from tapeless.ir.core import Check, Reduction, Sweep
from tapeless.ir.span import Span
from tapeless.ir.types import F64, I64, Atom, Const, DType, Var, const
from tapeless.ops.emit import Emit

TOLERANCE = {DType.f32: 3e-4, DType.c64: 3e-4, DType.f64: 1.5e-8, DType.c128: 1.5e-8}  # relative, about half the digits
FAINT = 1e-6


def compare_inputs(emit: Emit, p: Var, start: Atom, end: Atom, last: Atom, span: Span) -> None:
    """Warns where the backward pass began at `last`, and did not end at the initial value `start`."""
    drift = _of_array(emit, start, end, last) if p.type.shape else _of_number(emit, start, end, last)
    text = f"running backwards, '{p.name}' did not come back to its first value: the relative error is {{0}}"
    warn(emit, drift, const(TOLERANCE[p.type.dtype], DType.f64), text, span)


def warn(emit: Emit, drift: Atom, limit: Atom, text: str, span: Span) -> None:
    before, emit.b.span = emit.b.span, span
    emit.b.effect(Check(emit("le", drift, limit), "InversionDrift", text, (drift,)))
    emit.b.span = before


def size_of(emit: Emit, x: Atom) -> Atom:
    return emit.convert(emit("abs", x), DType.f64)


def _or_one(emit: Emit, size: Atom, other: Atom | float = 1.0) -> Atom:
    return emit("select", emit("gt", size, 0.0), size, other)


def _of_number(emit: Emit, start: Atom, end: Atom, last: Atom) -> Atom:
    scale = _or_one(emit, size_of(emit, start), _or_one(emit, size_of(emit, last)))
    return emit("div", size_of(emit, emit("sub", end, start)), scale)


def _of_array(emit: Emit, start: Atom, end: Atom, last: Atom) -> Atom:
    largest = _greatest_of(emit, [start, last], lambda x, z: emit("maximum", size_of(emit, x), size_of(emit, z)))
    least = _or_one(emit, emit("mul", largest, FAINT))

    def cell(x: Atom, y: Atom, z: Atom) -> Atom:
        scale = emit("maximum", emit("maximum", size_of(emit, x), size_of(emit, z)), least)
        return emit("div", size_of(emit, emit("sub", y, x)), scale)

    return _greatest_of(emit, [start, end, last], cell)


def _greatest_of(emit: Emit, arrays: Sequence[Atom], cell: Callable[..., Atom]) -> Atom:
    """Over all cells."""
    if not arrays[0].type.shape:
        return cell(*arrays)
    vars = [a for a in arrays if isinstance(a, Var)]
    rows = [Var("i", I64), *(Var(v.name, v.type.row()) for v in vars)]
    lam = emit.b.lam(rows, lambda _, *cells: (_greatest_of(emit, cells, cell),))
    return emit.b.bind([Var("off", F64)], Sweep(vars[0].type.shape[0], tuple(vars), lam, (greatest(emit),)))[0]


def greatest(emit: Emit) -> Reduction:
    left, right = Var("x", F64), Var("y", F64)
    op = emit.b.lam([left, right], lambda x, y: (emit("maximum", x, y),))
    return Reduction(op, (Const(0.0, DType.f64),), commutative=True)
