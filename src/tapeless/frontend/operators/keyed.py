"""tp.hist and tp.scatter inside compiled functions.

Takes keys, values and destinations as front-end values; emits one histogram or scatter. Destinations are never written:
results are new arrays.
"""

from __future__ import annotations

from collections.abc import Sequence

from tapeless.frontend.data import atoms
from tapeless.frontend.data.arrays import cast, read
from tapeless.frontend.data.atoms import same_size
from tapeless.frontend.data.dimensions import dim_of
from tapeless.frontend.operators.applied import bound_arguments, common_width, need, rebuild, rows_of
from tapeless.frontend.operators.folding import Operator
from tapeless.frontend.state.context import Context, type_text
from tapeless.frontend.state.handlers import operator
from tapeless.frontend.state.values import Array, Scalar, Value
from tapeless.ir.core import Body, Hist, Lambda, Reduction, Scatter
from tapeless.ir.types import I64, Atom, Dim, DType, Type, Var


@operator("hist")
def op_hist(ctx: Context, args: list[Value], keywords: dict[str, Value]) -> Value:
    a = bound_arguments(ctx, "tp.hist", args, keywords, ("op", "ne", "n_or_dest", "keys", "vals"))
    need(ctx, "tp.hist", a, ("op", "ne", "n_or_dest", "keys", "vals"))
    values = rows_of(ctx, "tp.hist", a["vals"])
    keys = _keys(ctx, "tp.hist", a["keys"])
    width = common_width(ctx, "tp.hist", [keys, *values])
    target = a["n_or_dest"]
    if isinstance(target, Scalar):
        rows = [v.type.row() for v in values]
        op = Operator(ctx, "tp.hist", a["op"], a["ne"], rows, a["vals"])
        n = dim_of(ctx, target, "the number of bins")
        dests = [_full_rows(ctx, n, t, ne) for t, ne in zip(op.types, op.neutral, strict=True)]
    else:
        dests = rows_of(ctx, "tp.hist", target)
        n = common_width(ctx, "tp.hist", dests)
        op = Operator(ctx, "tp.hist", a["op"], a["ne"], [d.type.row() for d in dests], a["vals"])
        for d, v in zip(dests, values, strict=False):
            if d.type.rank != v.type.rank:
                ranks = f"elements of dest have {d.type.rank - 1} dimensions, those of vals {v.type.rank - 1}"
                ctx.shape_error("TP201", f"tp.hist: {ranks}")
            for m, n_v in zip(d.type.shape[1:], v.type.shape[1:], strict=True):
                same_size(ctx, m, n_v, "tp.hist")
        for d, t in zip(dests, op.types, strict=True):
            if d.type.dtype is not t.dtype:
                have, want = t.dtype.numpy.name, d.type.dtype.numpy.name
                ctx.fail("TP104", f"tp.hist: values of {have} do not fit into a destination of {want}")
    lam = _keyed(ctx, keys, values, [t.dtype for t in op.types])
    vars = [Var("h", d.type) for d in dests]
    ctx.b.bind(vars, Hist(Reduction(op.lam, op.neutral, True), tuple(dests), width, (keys, *values), lam))
    return rebuild(a["vals"], [ctx.new_cell(v) for v in vars])


@operator("scatter")
def op_scatter(ctx: Context, args: list[Value], keywords: dict[str, Value]) -> Value:
    a = bound_arguments(ctx, "tp.scatter", args, keywords, ("dest", "idx", "vals"))
    need(ctx, "tp.scatter", a, ("dest", "idx", "vals"))
    dests = rows_of(ctx, "tp.scatter", a["dest"])
    values = rows_of(ctx, "tp.scatter", a["vals"])
    keys = _keys(ctx, "tp.scatter", a["idx"])
    width = common_width(ctx, "tp.scatter", [keys, *values])
    common_width(ctx, "tp.scatter", dests)
    if len(dests) != len(values):
        ctx.fail("TP112", f"tp.scatter: {len(values)} arrays of values for {len(dests)} destinations")
    for d, v in zip(dests, values, strict=True):
        if d.type.rank != v.type.rank:
            ctx.shape_error(
                "TP202", f"tp.scatter: values of rank {v.type.rank} for a destination of rank {d.type.rank}"
            )
        for x, y in zip(d.type.shape[1:], v.type.shape[1:], strict=True):
            same_size(ctx, x, y, "tp.scatter: rows of destination and values")
    lam = _keyed(ctx, keys, values, [d.type.dtype for d in dests])
    vars = [Var("s", d.type) for d in dests]
    ctx.b.bind(vars, Scatter(tuple(dests), width, (keys, *values), lam))
    return rebuild(a["dest"], [ctx.new_cell(v) for v in vars])


def _full_rows(ctx: Context, n: Dim, t: Type, ne: Atom) -> Var:
    if not t.shape:
        return ctx.b.full((n,), ne, t.dtype, "h")
    assert isinstance(ne, Var)
    spread = ctx.b.broadcast(ne, (n, *t.shape), tuple(range(1, t.rank + 1)), "h")
    return ctx.b.copy(spread)


def _keys(ctx: Context, what: str, value: Value) -> Var:
    if not isinstance(value, Array) or value.type.rank != 1 or not value.type.dtype.is_int:
        ctx.fail("TP104", f"{what}: positions must be a one-dimensional array of integers, not {type_text(value)}")
    return read(ctx, value)


def _keyed(ctx: Context, keys: Var, values: Sequence[Var], dtypes: Sequence[DType]) -> Lambda:
    """(index, key, rows) -> (key, rows), in the right types."""
    index, key = Var("i", I64), Var("key", Type(keys.type.dtype))
    rows = [Var(v.name, v.type.row()) for v in values]
    with ctx.b.region() as stms:
        results: list[Atom] = [atoms.convert(ctx, key, DType.i64)]
        for r, dtype in zip(rows, dtypes, strict=True):
            results.append(cast(ctx, r, dtype) if r.type.shape else atoms.convert(ctx, r, dtype))
    return Lambda((index, key, *rows), Body(tuple(stms), tuple(results)))
