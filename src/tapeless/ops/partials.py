"""Partial derivatives of the rows of the ops table, written with other rows.

`PARTIALS[name]` has one entry for each operand: a function `(b, result, *operands) -> factor`, or None where the slope
is zero everywhere (comparisons, rounding, positions). `b` applies rows to operands and Python numbers: `b("mul", x, 2.0)`; it
folds constants, so a rule may write what reads best. The tangent of the result is the sum of factor times tangent; the
adjoint of an operand grows by factor times the adjoint of the result. Both are skipped where the operand does not vary.
"""

from __future__ import annotations

from collections.abc import Callable
from typing import Protocol

from tapeless.ir.types import Atom


class Scalars(Protocol):
    """Applies rows of the ops table; Python numbers become constants of the type that the other operands have."""

    def __call__(self, op: str, *args: Atom | float) -> Atom: ...


Partial = Callable[..., Atom | float]

PARTIALS: dict[str, tuple[Partial | None, ...]] = {
    "add": (lambda b, r, x, y: 1.0, lambda b, r, x, y: 1.0),
    "sub": (lambda b, r, x, y: 1.0, lambda b, r, x, y: -1.0),
    "mul": (lambda b, r, x, y: y, lambda b, r, x, y: x),
    "sin": (lambda b, r, x: b("cos", x),),
}
