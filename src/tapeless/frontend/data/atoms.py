"""Operands of Core: rows of the ops table on them, conversion, conditions, sizes that must be equal.

Takes and gives atoms, emitting `Apply` statements; what is constant is folded. Relies on the ops table. What Python and
NumPy make of operators is in `scalars`.
"""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import dataclass

from tapeless.errors import ShapeError
from tapeless.frontend.state.context import Context, with_article
from tapeless.ir.core import Apply, Body, If
from tapeless.ir.types import SCALAR, Atom, Const, Dim, DType, Type, Var, const, i64
from tapeless.ops.table import op as row
from tapeless.ops.unsigned import UNSIGNED


def apply(ctx: Context, name: str, *args: Atom) -> Atom:
    """A row of the ops table on operands of fitting types, folded when all are constant."""
    spec = row(name)
    for a in args[name == "select" :]:
        if a.type.dtype not in spec.dtypes:
            if a.type.dtype.work in spec.dtypes:
                return _widely(ctx, name, *args)
            ctx.fail("TP104", f"{name} does not take {with_article(a.type.dtype.numpy.name)}")
    dtype = spec.result([a.type.dtype for a in args])
    if Var not in map(type, args):
        return _folded(name, args, dtype)
    return ctx.b.let(SCALAR[dtype], Apply(name, args), "t")


def _widely(ctx: Context, name: str, *args: Atom) -> Atom:
    """Note [Stored integers] of ir/types.py. Operands have one type."""
    dtype = args[0].type.dtype
    wide = [convert(ctx, a, dtype.work) for a in args]
    rule = UNSIGNED.get(name) if dtype is DType.u64 else None
    result = rule(_Rows(ctx), *wide) if rule else apply(ctx, name, *wide)
    return convert(ctx, result, dtype) if result.type.dtype is dtype.work else result


@dataclass(frozen=True)
class _Rows:
    """Rows where Python numbers stand for i64."""

    ctx: Context

    def __call__(self, op: str, *args: Atom | float) -> Atom:
        return apply(self.ctx, op, *(a if isinstance(a, (Var, Const)) else i64(int(a)) for a in args))


def size_op(ctx: Context, name: str, a: Atom, b: Atom) -> Atom:
    """Arithmetic of sizes and positions: done once, so that equal sizes are one variable."""
    key = (name, a, b)
    if key not in ctx.state.sizes:
        ctx.state.sizes[key] = apply(ctx, name, a, b)
    return ctx.state.sizes[key]


def _folded(name: str, args: tuple[Atom, ...], dtype: DType) -> Const:
    values = [a.type.dtype.numpy.type(a.value) for a in args if isinstance(a, Const)]
    return const(row(name).numpy(*values), dtype)


def convert(ctx: Context, atom: Atom, dtype: DType) -> Atom:
    if atom.type.dtype is dtype:
        return atom
    if isinstance(atom, Const):
        keeps = dtype.is_complex or dtype is DType.bool  # 1j is true
        return const(atom.value if keeps else atom.value.real, dtype)
    return ctx.b.let(SCALAR[dtype], Apply("convert", (atom,)), "t")


def logical_not(ctx: Context, cond: Atom) -> Atom:
    return apply(ctx, "not", cond)


def logical_and(ctx: Context, a: Atom, b: Atom) -> Atom:
    for x, y in ((a, b), (b, a)):
        if isinstance(x, Const):
            return y if x.value else x
    return apply(ctx, "and", a, b)


def logical_or(ctx: Context, a: Atom, b: Atom) -> Atom:
    for x, y in ((a, b), (b, a)):
        if isinstance(x, Const):
            return x if x.value else y
    return apply(ctx, "or", a, b)


def select(ctx: Context, cond: Atom, a: Atom, b: Atom) -> Atom:
    if isinstance(cond, Const):
        return a if cond.value else b
    return apply(ctx, "select", cond, a, b)


def lazy_if(ctx: Context, cond: Atom, then: Callable[[], Atom], orelse: Callable[[], Atom], type: Type) -> Atom:
    """A conditional on scalars whose arms are only evaluated when taken."""
    with ctx.b.region() as first:
        a = then()
    with ctx.b.region() as second:
        c = orelse()
    if isinstance(a, Const) and a == c and not first and not second:
        return a
    var = Var("t", type)
    ctx.b.bind([var], If(cond, Body(tuple(first), (a,)), Body(tuple(second), (c,))))
    return var


def same_size(ctx: Context, a: Dim, b: Dim, what: str, error: type[ShapeError] = ShapeError) -> Dim:
    """One of two sizes that must be equal; a run-time test when that is not known."""
    a, b = ctx.canon(a), ctx.canon(b)
    if a is b or (isinstance(a, int) and isinstance(b, int) and a == b):
        return a
    if isinstance(a, int) and isinstance(b, int):
        ctx.shape_error(error.code, f"{what}: sizes {a} and {b} do not fit together")
    x, y = ctx.size_atom(a), ctx.size_atom(b)
    ctx.check(apply(ctx, "eq", x, y), error.__name__, f"{what}: sizes {{0}} and {{1}} do not fit together", x, y)
    keep, drop = (a, b) if isinstance(a, int) else (b, a)
    if isinstance(drop, Var):
        ctx.state.equal[drop] = keep
    return keep
