"""Jacobians and Hessians in compiled code: rows by backward runs, columns by forward runs with several tangents at
once.
"""

from __future__ import annotations

from collections.abc import Callable, Sequence

from tapeless.ad.holomorphic import conjugates
from tapeless.frontend.data.leaves import kept_leaves, leaves_of, rebuilt, tangents_like, type_of, value_of
from tapeless.frontend.state.context import Context, type_text
from tapeless.frontend.state.values import Array, Builtin, Scalar, Sequence_, Static, Value
from tapeless.ir.core import At, Range
from tapeless.ir.types import Atom, Const, Dim, DType, Type, Var, const, dim_atom, one_of
from tapeless.ops.emit import Emit, differentiable, whole
from tapeless.passes.inline import inline_here
from tapeless.transforms.options import by_argument, constant, function_and_options, policy_from, positions
from tapeless.transforms.traced import (
    BY_ARGNUMS,
    Arguments,
    Keywords,
    Traced,
    here,
    parameters_of,
    pull,
    push,
    results_of,
    trace,
)


def _size(ctx: Context, shape: Sequence[Dim]) -> Atom:
    emit = Emit(ctx.b)
    total: Atom = Const(1, DType.i64)
    for d in shape:
        total = emit("mul", total, dim_atom(d))
    return total


def _as_dim(atom: Atom) -> Dim:
    return atom if isinstance(atom, Var) else int(atom.value.real)


def _one_hot(ctx: Context, type: Type, place: Atom, total: Dim, one: Const | None = None) -> Atom:
    """1, or another number, at a place of the flattened array, else 0."""
    emit = Emit(ctx.b)
    one = one or one_of(type.dtype)
    if not type.shape:
        return one

    def element(i: Var) -> tuple[Atom]:
        return (emit("select", emit("eq", i, place), one, emit.zero(Type(type.dtype))),)

    flat = ctx.b.map(total, [], element, "seed")[0]
    return flat if type.rank == 1 else ctx.b.reshape(flat, type.shape)


def jacobian_like(name: str, forward: bool | None) -> Callable[[Context, Arguments, Keywords], Value]:
    def make(ctx: Context, args: Arguments, keywords: Keywords) -> Value:
        keywords = dict(keywords)
        sparse = keywords.pop("sparse", None)
        if sparse is not None and constant(ctx, name, "sparse", sparse):
            ctx.fail("TP303", "sparse Jacobians are not supported yet", "leave sparse out for a dense one.")
        function, options = function_and_options(ctx, name, args, keywords)
        has_aux = bool(options.get("has_aux", False))

        def run(ctx: Context, args: Arguments, keywords: Keywords) -> Value:
            wrt, single = positions(ctx, options.get("argnums", 0), len(args))
            traced = trace(ctx, function, args, keywords, wrt, policy_from(ctx, options), BY_ARGNUMS)
            value: Value = traced.result
            if has_aux:
                if not isinstance(value, Sequence_) or len(value.items) != 2:
                    ctx.fail("TP302", f"tp.{name} with has_aux needs a function that returns a pair (value, aux)")
                value = value.items[0]
            if any(map(any, map(kept_leaves, (value, *(args[k] for k in wrt))))):
                ctx.fail("TP303", f"tp.{name} by or of a sparse matrix is not supported", "use its .data.")
            table = iter(_jacobian(traced, len(leaves_of(value)), forward))
            outs = leaves_of(value)  # None stands for what has no derivative
            leaves = [o if o == Static(None) else by_argument(traced, args, wrt, single, next(table)) for o in outs]
            found = tangents_like(value, leaves)
            if not has_aux:
                return found
            assert isinstance(traced.result, Sequence_)
            whole_result = rebuilt(traced.result, results_of(traced, here(traced)))
            assert isinstance(whole_result, Sequence_)
            return Sequence_((found, whole_result.items[1]))

        return Builtin(f"tp.{name}", run, parameters_of(function))

    return make


def _jacobian(traced: Traced, count: int, forward: bool | None) -> list[list[Value]]:
    """For each leaf of the result, the derivative by each differentiated leaf: axes of the result, then of the leaf."""
    ctx = traced.ctx
    outs = [out for out in traced.leaves[:count] if out != Static(None)]
    for out in outs:
        type = type_of(out)
        if type is None or not differentiable(type):
            ctx.fail("TP302", f"the result has {type_text(out)} in it, which has no derivative")
    types = [t for t in map(type_of, outs) if t is not None]
    turning = any(p.type.dtype.is_complex for p in traced.params)
    if turning and any(t.dtype.is_complex for t in types):
        _holomorphic(traced, len(types))
    if turning and not all(t.dtype.is_complex for t in types):
        if forward:
            ctx.fail("TP302", "a real result of a complex argument has no derivative by columns", "use tp.jacrev.")
        forward = False
    if forward is None:
        forward = not all(not t.shape for t in types)
    return _by_columns(traced, types) if forward else _by_rows(traced, types)


def _holomorphic(traced: Traced, outs: int) -> None:
    body = inline_here(traced.lam.body, traced.ctx.b.functions, everything=True)
    found = conjugates(body, [p for p in traced.params if p.type.dtype.is_complex], outs)
    if found is not None:
        traced.ctx.fail(
            "TP302",
            f"a complex result of a complex argument, through '{found[0]}' (line {found[1].line}), which has no complex derivative",
            "take derivatives by the real and the imaginary part, or use tp.jvp or tp.vjp.",
        )


def _by_rows(traced: Traced, types: Sequence[Type]) -> list[list[Value]]:
    """One backward run for each element of the result."""
    ctx = traced.ctx
    total = sum(isinstance(leaf, (Scalar, Array)) for leaf in traced.leaves)
    shapes = _shapes_here(traced)
    table: list[list[Value]] = []
    for k, type in enumerate(types):

        def row(place: Atom, size: Dim, k: int = k, type: Type = type) -> list[Atom]:
            seeds: list[Atom | None] = [None] * total
            seeds[k] = _one_hot(ctx, type.with_shape(shapes[k]), place, size)
            _, adjoints = pull(traced, seeds)
            if not type.dtype.is_complex or all(p.type.dtype.is_complex for p in traced.params):
                return adjoints
            seeds[k] = _one_hot(ctx, type.with_shape(shapes[k]), place, size, const(-1j, type.dtype))
            _, others = pull(traced, seeds)
            return [_joined(ctx, a, b) for a, b in zip(adjoints, others, strict=True)]

        if not type.shape:
            adjoints = row(Const(0, DType.i64), 1)
            table.append([value_of(ctx, a, traced.weak(j)) for j, a in enumerate(adjoints)])
            continue
        size = _as_dim(_size(ctx, shapes[k]))
        rows = ctx.b.map(size, [], lambda i, row=row, size=size: row(i, size), "jacobian")
        found = []
        for p, part in zip(traced.params, rows, strict=True):
            found.append(value_of(ctx, ctx.b.reshape(part, (*shapes[k], *p.type.shape))))
        table.append(found)
    return table


def _joined(ctx: Context, real: Atom, imaginary: Atom) -> Atom:
    """The derivative by a real argument, from those of the real and of the imaginary part of the result."""
    if real.type.dtype.is_complex:
        return real
    if not real.type.shape:
        return Emit(ctx.b)("complex", real, imaginary)
    assert isinstance(real, Var)
    assert isinstance(imaginary, Var)
    return ctx.b.map(real.type.shape[0], [real, imaginary], lambda _, a, b: (_joined(ctx, a, b),))[0]


def _shapes_here(traced: Traced) -> list[tuple[Dim, ...]]:
    """Shapes of the results. Sizes that are made in the region are computed here too: it runs once more for them."""
    body = traced.lam.body
    made = {v for s in body.stms for v in s.vars}
    results = body.results if made.isdisjoint(d for r in body.results for d in r.type.shape) else here(traced)
    return [r.type.shape for r in results]


LANES = 8  # tangents at once


def _by_columns(traced: Traced, types: Sequence[Type]) -> list[list[Value]]:
    """Forward runs with several tangents at once, for all elements of the arguments: Note [Lanes] in `ad.forward`."""
    ctx = traced.ctx
    shapes = _shapes_here(traced)
    table: list[list[Value]] = [[] for _ in types]
    scalars = [j for j, p in enumerate(traced.params) if not p.type.shape]
    columns: dict[int, list[Atom]] = {}
    if len(scalars) == 1:
        tangents: list[Atom | None] = [None] * len(traced.params)
        tangents[scalars[0]] = one_of(traced.params[scalars[0]].type.dtype)
        columns[scalars[0]] = push(traced, tangents)[1][: len(types)]
    elif scalars:
        columns |= _scalar_columns(traced, scalars, len(types))
    for j, p in enumerate(traced.params):
        if not p.type.shape:
            for k, t in enumerate(columns[j]):
                table[k].append(value_of(ctx, t, traced.weak(j) and not t.type.shape))
            continue
        for k, c in enumerate(_array_columns(traced, j, shapes[: len(types)])):
            table[k].append(value_of(ctx, ctx.b.reshape(c, (*shapes[k], *p.type.shape))))
    return table


def _scalar_columns(traced: Traced, scalars: Sequence[int], count: int) -> dict[int, list[Atom]]:
    """One lane for each scalar argument."""
    ctx = traced.ctx
    emit = Emit(ctx.b)
    lanes = len(scalars)
    tangents: list[Atom | None] = [None] * len(traced.params)
    for lane, j in enumerate(scalars):
        dtype = traced.params[j].type.dtype
        zero, one = emit.zero(Type(dtype)), one_of(dtype)
        tangents[j] = ctx.b.array([one if k == lane else zero for k in range(lanes)], "seed")
    found = push(traced, tangents, (lanes,))[1][:count]
    return {j: [_lane(ctx, t, Const(lane, DType.i64)) for t in found] for lane, j in enumerate(scalars)}


def _lane(ctx: Context, t: Atom, lane: Atom) -> Var:
    assert isinstance(t, Var)
    return ctx.b.index(t, (*whole(Type(t.type.dtype, t.type.shape[:-1])), At(lane)))


def _array_columns(traced: Traced, j: int, shapes: Sequence[tuple[Dim, ...]]) -> list[Var]:
    """Derivatives by all elements of one array argument: the axes of each result, then the elements in order."""
    ctx, p = traced.ctx, traced.params[j]
    emit = Emit(ctx.b)
    size = _as_dim(_size(ctx, p.type.shape))
    lanes = LANES if ctx.options.device == "cpu" else 1  # a GPU has enough threads for one each
    if isinstance(size, int) and 0 < size <= 2 * LANES:
        lanes = size

    def columns(first: Atom) -> list[Atom]:
        """The lanes from element `first` on; beyond the last one they are 0."""

        def element(i: Var) -> tuple[Atom]:
            place = emit("sub", i, first)

            def lane(k: Atom) -> tuple[Atom]:
                here = emit("eq", k, place)
                return (emit("select", here, one_of(p.type.dtype), emit.zero(Type(p.type.dtype))),)

            return (ctx.b.map(lanes, [], lane, "seed")[0],) if axes else lane(Const(0, DType.i64))

        axes = (lanes,) if lanes > 1 else ()
        flat = ctx.b.map(size, [], element, "seed")[0]
        tangents: list[Atom | None] = [None] * len(traced.params)
        tangents[j] = ctx.b.reshape(flat, (*p.type.shape, *axes))
        found = push(traced, tangents, axes)[1]
        return [_with_shape(ctx, t, (*shape, lanes)) for t, shape in zip(found, shapes, strict=False)]

    if lanes == size:
        return [c for c in columns(Const(0, DType.i64)) if isinstance(c, Var)]
    blocks = _as_dim(emit("floordiv", emit("add", dim_atom(size), lanes - 1), lanes))
    found = ctx.b.map(blocks, [], lambda block: columns(emit("mul", block, lanes)), "jacobian")
    padded = emit("mul", dim_atom(blocks), lanes)
    results = []
    for array, shape in zip(found, shapes, strict=True):
        rank = len(shape)
        turned = ctx.b.transpose(array, (*range(1, rank + 1), 0, rank + 1))
        joined = ctx.b.reshape(turned, (*shape, _as_dim(padded)))
        axes = (*whole(Type(joined.type.dtype, tuple(shape))), Range(Const(0, DType.i64), size, Const(1, DType.i64)))
        results.append(ctx.b.index(joined, axes))
    return results


def _with_shape(ctx: Context, t: Atom, shape: Sequence[Dim]) -> Atom:
    """Sizes that are computed inside are those of outside. One lane may have no axis."""
    if not t.type.shape:
        return ctx.b.array([t], "lane")
    assert isinstance(t, Var)
    return t if t.type.shape == tuple(shape) else ctx.b.reshape(t, shape)


def op_hessian(ctx: Context, args: Arguments, keywords: Keywords) -> Value:
    inner = {k: v for k, v in keywords.items() if k in ("argnums", "has_aux", "memory", "recover", "sparse")}
    gradient = jacobian_like("hessian", False)(ctx, args[:1], dict(inner))
    return jacobian_like("hessian", True)(ctx, [gradient], dict(inner))
