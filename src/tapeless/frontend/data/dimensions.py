"""Sizes that the user gives and sizes of arrays, as sizes of Core.

Takes numbers and tuples of them; gives dimensions. A negative size raises ValueError when the program runs.
"""

from __future__ import annotations

from collections.abc import Sequence

from tapeless.frontend.data import scalars
from tapeless.frontend.data.atoms import apply
from tapeless.frontend.state.context import Context, type_text
from tapeless.frontend.state.values import Scalar, Sequence_, Value
from tapeless.ir.types import Atom, Const, Dim, DType, Var, i64


def total_size(ctx: Context, shape: Sequence[Dim]) -> Atom:
    """The number of elements."""
    constant, rest = 1, []
    for d in map(ctx.canon, shape):
        if isinstance(d, int):
            constant *= d
        else:
            rest.append(d)
    if constant == 0 or not rest:
        return i64(constant)
    total: Atom = rest[0]
    for v in rest[1:]:
        total = apply(ctx, "mul", total, v)
    return total if constant == 1 else apply(ctx, "mul", total, i64(constant))


def dim_of(ctx: Context, value: Value, what: str = "a dimension") -> Dim:
    """A size given by the user: not negative."""
    if not isinstance(value, Scalar):
        ctx.fail("TP104", f"{what} must be an integer, not {type_text(value)}")
    atom = scalars.to_index(ctx, value, what)
    if isinstance(atom, Const):
        if int(atom.value.real) >= 0:
            return int(atom.value.real)
        ctx.check(Const(False, DType.bool), "ValueError", "negative dimensions are not allowed")
        return 0
    if not is_size(ctx, atom):
        ctx.check(apply(ctx, "ge", atom, i64(0)), "ValueError", "negative dimensions are not allowed")
    return ctx.atom_dim(atom)


def is_size(ctx: Context, var: Var) -> bool:
    """Whether it is known to be the size of something."""
    return var in ctx.sizes or any(var in v.type.shape for v in ctx.state.cells.values())


def shape_of(ctx: Context, value: Value) -> tuple[Dim, ...]:
    """The argument shape=: an integer or a tuple of them."""
    items = value.items if isinstance(value, Sequence_) else (value,)
    return tuple(dim_of(ctx, item) for item in items)
