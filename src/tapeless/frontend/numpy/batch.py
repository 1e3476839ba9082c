"""Doing something for each lane of an array, as maps over the axes that stay.

Takes arrays with the number of trailing axes that belong to a lane; gives new arrays. Used by reductions, sorting and
linear algebra, whose Core operations work on single vectors and matrices.
"""

from __future__ import annotations

from collections.abc import Callable, Sequence

from tapeless.frontend.data.arrays import read, wrap
from tapeless.frontend.data.dimensions import outer_dims
from tapeless.frontend.data.maps import broadcast_shapes
from tapeless.frontend.state.context import Context
from tapeless.frontend.state.values import Array, Scalar, Sequence_, Value
from tapeless.ir.core import Sweep
from tapeless.ir.types import I64, Atom, Const, Dim, Type, Var, i64

Body = Callable[..., Sequence[Atom]]


def along(ctx: Context, value: Array, axes: Sequence[int], lane: Callable[[Var], Atom]) -> Array:
    """`lane` of each part of the array along these axes; gives an array in its place, of the same rank."""
    result = over_leading(ctx, [(lanes_last(ctx, read(ctx, value), axes), len(axes))], lambda var: [lane(var)])
    assert isinstance(result, Array)
    back = lanes_back(ctx, read(ctx, result), axes)
    return result if back is read(ctx, result) else ctx.new_cell(back)


def over_leading(ctx: Context, operands: Sequence[tuple[Var, int]], body: Body, what: str = "operands") -> Value:
    """`body` of the lanes of each operand (the last axes, as many as said); the axes before them are broadcast."""
    shape = broadcast_shapes(ctx, [v.type.shape[: v.type.rank - lane] for v, lane in operands], what)
    results = _nest(ctx, shape, list(operands), body, what)
    values = [Scalar(r) if isinstance(r, Const) or r.type.is_scalar else wrap(ctx, r) for r in results]
    return values[0] if len(values) == 1 else Sequence_(tuple(values))


def _nest(
    ctx: Context, shape: tuple[Dim, ...], operands: list[tuple[Var, int]], body: Body, what: str
) -> Sequence[Atom]:
    if not shape:
        return body(*(v for v, _ in operands))
    width = shape[0]
    moving: list[int] = []
    still = list(operands)
    for k, (v, lane) in enumerate(operands):
        if v.type.rank - lane < len(shape):
            continue
        if v.type.shape[0] == 1 and width != 1:
            still[k] = (ctx.b.row(v, i64(0), v.name), lane)
        else:
            moving.append(k)

    def step(index: Var, *rows: Var) -> Sequence[Atom]:
        inner = list(still)
        for k, row in zip(moving, rows, strict=True):
            inner[k] = (row, operands[k][1])
        return _nest(ctx, shape[1:], inner, body, what)

    arrays = [operands[k][0] for k in moving]
    lam = ctx.b.lam([Var("i", I64), *(Var(a.name, a.type.row()) for a in arrays)], step)
    vars = [Var("m", Type(t.dtype, (width, *outer_dims(ctx, what, t.shape, lam)))) for t in lam.result_types]
    return ctx.b.bind(vars, Sweep(width, tuple(arrays), lam))


def lanes_last(ctx: Context, var: Var, axes: Sequence[int]) -> Var:
    """The array with these axes moved behind the others, in order."""
    kept = [k for k in range(var.type.rank) if k not in axes]
    perm = [*kept, *axes]
    return var if perm == sorted(perm) else ctx.b.transpose(var, perm)


def lanes_back(ctx: Context, var: Var, axes: Sequence[int]) -> Var:
    """The inverse of `lanes_last`."""
    kept = [k for k in range(var.type.rank) if k not in axes]
    order = [*kept, *axes]
    perm = [order.index(k) for k in range(var.type.rank)]
    return var if perm == sorted(perm) else ctx.b.transpose(var, perm)
