"""tp.map and tp.vmap inside compiled functions.

Takes a function and what to map over as front-end values; emits one sweep.
"""

from __future__ import annotations

from collections.abc import Sequence

from tapeless.frontend.data import atoms, scalars
from tapeless.frontend.data.arrays import transpose
from tapeless.frontend.data.dimensions import outer_dims
from tapeless.frontend.operators.applied import (
    atoms_of,
    bound_arguments,
    common_width,
    element,
    need,
    no_keywords,
    pure_region,
    rebuild,
    rows_of,
)
from tapeless.frontend.state.context import Context
from tapeless.frontend.state.handlers import call_value, operator
from tapeless.frontend.state.values import Array, Builtin, Scalar, Sequence_, Static, Value, weak
from tapeless.ir.core import Sweep
from tapeless.ir.types import I64, Atom, Const, Dim, Type, Var, i64


@operator("map")
def op_map(ctx: Context, args: list[Value], keywords: dict[str, Value]) -> Value:
    no_keywords(ctx, "tp.map", keywords)
    if len(args) < 2:
        ctx.fail("TP112", "tp.map takes a function and what to map over")
    function, *inputs = args
    if len(inputs) == 1 and isinstance(inputs[0], Scalar):
        count = scalars.to_index(ctx, inputs[0], "the length given to tp.map")
        width = ctx.atom_dim(atoms.apply(ctx, "max", count, i64(0)))
        return _map(ctx, function, width, [], [Scalar(Var("i", I64), True)], index_only=True)
    return map_values(ctx, "tp.map", function, inputs)


def map_values(ctx: Context, what: str, function: Value, inputs: Sequence[Value]) -> Value:
    arrays = [a for v in inputs for a in rows_of(ctx, what, v)]
    if not arrays:
        ctx.fail("TP112", f"{what} has nothing to map over")
    return _map(ctx, function, common_width(ctx, what, arrays), arrays, inputs, what=what)


def _map(
    ctx: Context,
    function: Value,
    width: Dim,
    arrays: Sequence[Var],
    inputs: Sequence[Value],
    index_only: bool = False,
    what: str = "tp.map",
) -> Value:
    index = Var("i", I64)
    rows = [Var(a.name, a.type.row()) for a in arrays]
    shape: list[Value] = []

    def make() -> list[Atom]:
        if index_only:
            result = call_value(ctx, function, [Scalar(index, True)])
        else:
            parts: list[Value] = [element(ctx, what, r) for r in rows]
            result = call_value(ctx, function, [rebuild(v, parts) for v in inputs])
        shape.append(result)
        return atoms_of(ctx, what, result)

    lam = pure_region(ctx, what, [index, *rows], make)
    vars = [Var("m", Type(r.type.dtype, (width, *outer_dims(ctx, what, r.type.shape, lam)))) for r in lam.body.results]
    ctx.b.bind(vars, Sweep(width, tuple(arrays), lam))
    made: list[Value] = [ctx.new_cell(v) for v in vars]
    return rebuild(shape[0], made)


# -- vmap


@operator("vmap")
def op_vmap(ctx: Context, args: list[Value], keywords: dict[str, Value]) -> Value:
    a = bound_arguments(ctx, "tp.vmap", args, keywords, ("f", "in_axes", "out_axes"))
    need(ctx, "tp.vmap", a, ("f",))
    in_axes, out_axes = a.get("in_axes", weak(0)), a.get("out_axes", weak(0))

    def mapped(ctx: Context, values: list[Value], keys: dict[str, Value]) -> Value:
        no_keywords(ctx, "a function made by tp.vmap", keys)
        axes = list(in_axes.items) if isinstance(in_axes, Sequence_) else [in_axes] * len(values)
        if len(axes) != len(values):
            ctx.fail("TP112", f"tp.vmap: {len(axes)} in_axes for {len(values)} arguments")
        moved = [_move(ctx, v, _axis(ctx, x), front=True) for v, x in zip(values, axes, strict=True)]
        moving = [k for k, x in enumerate(axes) if _axis(ctx, x) is not None]

        def apply(ctx: Context, rows: list[Value], _: dict[str, Value]) -> Value:
            full = list(values)
            for k, r in zip(moving, rows, strict=True):
                full[k] = r
            return call_value(ctx, a["f"], full)

        result = map_values(ctx, "tp.vmap", Builtin("vmap", apply), [moved[k] for k in moving])
        if isinstance(out_axes, Sequence_) and isinstance(result, Sequence_):
            items = [
                _move(ctx, r, _axis(ctx, x), front=False) for r, x in zip(result.items, out_axes.items, strict=True)
            ]
            return Sequence_(tuple(items), result.kind, result.keys, result.cls)
        return _move(ctx, result, _axis(ctx, out_axes), front=False)

    return Builtin("vmap", mapped)


def _axis(ctx: Context, value: Value) -> int | None:
    if isinstance(value, Static) and value.value is None:
        return None
    if isinstance(value, Scalar) and isinstance(value.atom, Const):
        return int(value.atom.value.real)
    ctx.fail("TP104", "the axes of tp.vmap must be constants: integers or None")


def _move(ctx: Context, value: Value, axis: int | None, front: bool) -> Value:
    """The mapped axis to the front, or from the front to its place."""
    if isinstance(value, Sequence_):
        return Sequence_(tuple(_move(ctx, v, axis, front) for v in value.items), value.kind, value.keys, value.cls)
    if axis is None or not isinstance(value, Array):
        return value
    rank = value.type.rank
    if not -rank <= axis < rank:
        ctx.fail("TP202", f"tp.vmap: axis {axis} is out of bounds for an array of {rank} dimensions")
    place = axis % rank
    if place == 0:
        return value
    others = [k for k in range(rank) if k != place]
    if front:
        return transpose(ctx, value, [place, *others])
    order = list(range(1, rank))
    order.insert(place, 0)
    return transpose(ctx, value, order)
