"""Sizes that the user gives and sizes of arrays, as sizes of Core.

Takes numbers and tuples of them; gives dimensions. A negative size raises ValueError when the program runs.
"""

from __future__ import annotations

from collections.abc import Sequence

from tapeless.frontend.data import scalars
from tapeless.frontend.data.atoms import apply
from tapeless.frontend.state.context import Context, type_text
from tapeless.frontend.state.values import Scalar, Sequence_, Value
from tapeless.ir.core import Apply, Lambda
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


# -- sizes of what a function gives for each element


def outer_dims(ctx: Context, what: str, shape: tuple[Dim, ...], lam: Lambda) -> tuple[Dim, ...]:
    """Sizes of rows must be the same for all elements: known outside."""
    inside = {v for s in lam.body.stms for v in s.vars} | set(lam.params)
    found: list[Dim] = []
    for d in shape:
        d = ctx.canon(d)
        if isinstance(d, Var) and d in inside:
            d = _hoist_size(ctx, what, d, lam, inside)
        found.append(d)
    return tuple(found)


def _hoist_size(ctx: Context, what: str, size: Var, lam: Lambda, inside: set[Var]) -> Dim:
    """A size computed inside from what is known outside is computed outside as well."""
    definitions = {s.vars[0]: s for s in lam.body.stms if len(s.vars) == 1}

    def outer(a: Atom) -> Atom:
        if not isinstance(a, Var) or a not in inside:
            return a
        stm = definitions.get(a)
        if stm is None or not isinstance(stm.exp, Apply):
            ctx.shape_error(
                "TP108",
                f"the function given to {what} returns arrays whose size is different from element to element",
                "return arrays of one size.",
            )
        return apply(ctx, stm.exp.op, *(outer(x) for x in stm.exp.args))

    return ctx.atom_dim(outer(size))
