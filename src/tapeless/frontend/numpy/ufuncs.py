"""Methods of NumPy's ufuncs: np.add.at, np.add.reduce, np.add.accumulate, np.add.reduceat, np.add.outer.

Takes the ufunc and the arguments. `at` is a loop that updates the array in order, as NumPy does it; the others are the
functions of the same meaning, where there is one, and loops of the package `prelude` for the rest.
"""

from __future__ import annotations

from collections.abc import Callable, Sequence

import numpy as np

from tapeless.frontend.data import atoms, scalars
from tapeless.frontend.data.arguments import axis as axis_argument
from tapeless.frontend.data.arguments import numeric, with_signature
from tapeless.frontend.data.arrays import (
    before_write,
    broadcast_to,
    elementwise,
    read,
    shape_of,
    write,
)
from tapeless.frontend.data.maps import broadcast_shapes, map_nest
from tapeless.frontend.numpy.batch import along
from tapeless.frontend.numpy.elementwise import ScalarRule, rule_of
from tapeless.frontend.numpy.reductions import all_, any_, max_, min_, prod, sum_
from tapeless.frontend.numpy.scans import cumprod, cumsum, running
from tapeless.frontend.numpy.shapes import FIRST, reshaped
from tapeless.frontend.numpy.small_functions import inline
from tapeless.frontend.state.context import Context, type_text
from tapeless.frontend.state.handlers import Handler, bound_to
from tapeless.frontend.state.values import Array, Scalar, Sequence_, Static, Value, weak
from tapeless.ir.core import At, Axis, Range
from tapeless.ir.types import Atom, Dim, DType, Var, i64
from tapeless.ops.promotion import KIND
from tapeless.prelude import ufunc_methods

REDUCE: dict[str, Callable[..., Value]] = {
    "add": sum_, "multiply": prod, "maximum": max_, "minimum": min_, "logical_and": all_, "logical_or": any_,
}  # fmt: skip
ACCUMULATE: dict[str, Callable[..., Value]] = {"add": cumsum, "multiply": cumprod}
SCANS = {"maximum": ("maximum", "or"), "minimum": ("minimum", "and")}  # rows, and those for bools
# Whose results are of the kind of their operands, or become that: those that can go along an axis.
STEPS = frozenset((
    "add", "multiply", "maximum", "minimum", "logical_and", "logical_or", "logical_xor", "subtract", "divide",
    "floor_divide", "remainder", "fmod", "power", "fmax", "fmin", "hypot", "arctan2", "logaddexp", "bitwise_and",
    "bitwise_or", "bitwise_xor",
))  # fmt: skip


@bound_to(np.ufunc)
def ufunc_method(ufunc: np.ufunc, name: str) -> Handler | None:
    """A handler for `ufunc.name`, or None."""
    full = f"np.{ufunc.__name__}.{name}"
    found = rule_of(f"np.{ufunc.__name__}")
    along_axis = _along_axis(full, ufunc, name) if found is not None and ufunc.__name__ in STEPS else None
    if along_axis is not None:
        return with_signature(full, along_axis)
    if found is None or found[0] != 2:
        return None
    rule = found[1]
    match name:
        case "at":
            return with_signature(full, lambda ctx, a, indices, b: _at(ctx, full, rule, a, indices, b))
        case "outer":
            return with_signature(full, lambda ctx, a, b: _outer(ctx, full, rule, a, b))
    return None


def _along_axis(full: str, ufunc: np.ufunc, name: str) -> Callable[..., Value] | None:
    """Unlike np.sum, these methods work along axis 0 unless told otherwise; None still means all axes."""

    def reduce(
        ctx: Context, array: Value, axis: Value | None = FIRST, keepdims: Value | None = None,
        initial: Value | None = None, where: Value | None = None,
    ) -> Value:  # fmt: skip
        function = REDUCE.get(ufunc.__name__)
        start = {} if initial is None else {"initial": initial}
        truth = ufunc.__name__ in ("logical_and", "logical_or")
        if function is not None and not (truth and start):
            return function(ctx, array, axis, keepdims=keepdims, where=where, **start)
        for key, value in (("initial", initial), ("where", where)):
            if value is not None:
                ctx.fail(
                    "TP112", f"{full}: the argument '{key}' cannot be compiled", "leave it out if its default is meant."
                )
        return inline(ctx, ufunc_methods.reduced, [Static(ufunc), array, axis or Static(None), keepdims or weak(False)])

    def accumulate(ctx: Context, array: Value, axis: Value | None = FIRST) -> Value:
        value = numeric(ctx, full, array)
        if isinstance(value, Scalar):
            ctx.fail("TP202", f"{full} works along an axis, and a number has none")
        if axis is None:
            ctx.fail("TP112", f"{full} needs one axis", "use .ravel() first.")
        function = ACCUMULATE.get(ufunc.__name__)
        if function is not None:
            return function(ctx, value, axis)
        kind = value.type.dtype
        if ufunc.__name__ in SCANS and not kind.is_complex:
            row = SCANS[ufunc.__name__][kind is DType.bool]
            place = axis_argument(ctx, full, axis, value.type.rank)
            return along(ctx, value, [place], lambda lane: running(ctx, row, lane, kind))
        return inline(ctx, ufunc_methods.accumulated, [Static(ufunc), value, axis])

    def reduceat(ctx: Context, array: Value, indices: Value, axis: Value | None = FIRST) -> Value:
        return inline(ctx, ufunc_methods.reduced_at, [Static(ufunc), array, indices, axis or FIRST])

    methods: dict[str, Callable[..., Value]] = {"reduce": reduce, "accumulate": accumulate, "reduceat": reduceat}
    return methods.get(name)


def _outer(ctx: Context, name: str, rule: ScalarRule, a: Value, b: Value) -> Value:
    x, y = numeric(ctx, name, a), numeric(ctx, name, b)
    if isinstance(x, Array) and isinstance(y, Array):
        x = reshaped(ctx, x, [*ctx.dims(x.type.shape), *[1] * y.type.rank])
    return elementwise(ctx, lambda u, v: rule(ctx, u, v), [x, y], name)


def _at(ctx: Context, name: str, rule: ScalarRule, a: Value, indices: Value, b: Value) -> Value:
    if not isinstance(a, Array):
        ctx.fail("TP104", f"{name} writes into an array, not {type_text(a)}")
    items = indices.items if isinstance(indices, Sequence_) and indices.kind == "tuple" else (indices,)
    places = [numeric(ctx, name, item) for item in items]
    if len(places) > a.type.rank:
        ctx.fail("TP202", f"{name}: too many indices for an array of {a.type.rank} dimensions")
    for p in places:
        kind = p.type.dtype if isinstance(p, Array) else p.dtype
        if not kind.is_int:
            ctx.fail("TP104", f"{name}: indices must be integers, not {kind.value}")
    shape = broadcast_shapes(ctx, [shape_of(p) for p in places], f"indices of {name}")
    rest = ctx.dims(a.type.shape[len(places) :])
    values = numeric(ctx, name, b)
    kind = values.type.dtype if isinstance(values, Array) else values.dtype
    if KIND[kind] > KIND[a.type.dtype] and not (isinstance(values, Scalar) and values.weak):
        ctx.fail("TP104", f"{name}: {kind.numpy.name} does not fit into an array of {a.type.dtype.numpy.name}")
    new = broadcast_to(ctx, values, (*shape, *rest), a.type.dtype, name)
    before_write(ctx, a.cell)
    where = [read(ctx, p) if isinstance(p, Array) else p for p in places]
    result = _update(ctx, rule, read(ctx, a), where, new, shape, rest)
    write(ctx, a, result)
    return Static(None)


def _update(
    ctx: Context, rule: ScalarRule, target: Var, where: Sequence[Var | Scalar], source: Atom, shape: Sequence[Dim],
    rest: Sequence[Dim],
) -> Var:  # fmt: skip
    """Goes through the positions in order: each reads its cells, combines and writes them back."""
    if not shape:
        axes: list[Axis] = [
            At(scalars.to_index(ctx, w if isinstance(w, Scalar) else Scalar(w)), wrap=True, check=True) for w in where
        ]
        axes += [Range(i64(0), d, i64(1)) for d in rest]
        kind = target.type.dtype

        def combine(old: Scalar, new: Scalar) -> Scalar:
            return Scalar(atoms.convert(ctx, rule(ctx, old, new).atom, kind))

        old = ctx.b.index(target, axes)
        operand = source if isinstance(source, Var) and source.type.shape else Scalar(source)
        cells = map_nest(ctx, combine, [old if rest else Scalar(old), operand], tuple(rest))
        return ctx.b.update(target, axes, cells)

    def body(i: Var, carried: Var) -> list[Atom]:
        inner: list[Var | Scalar] = []
        for w in where:
            if isinstance(w, Var) and w.type.rank == len(shape):
                row = ctx.b.row(w, i64(0) if w.type.shape[0] == 1 else i)
                inner.append(Scalar(row) if row.type.is_scalar else row)
            else:
                inner.append(w)
        part = ctx.b.row(source, i) if isinstance(source, Var) and source.type.shape else source
        return [_update(ctx, rule, carried, inner, part, shape[1:], rest)]

    return ctx.b.for_(ctx.size_atom(shape[0]), [target], body)[0]
