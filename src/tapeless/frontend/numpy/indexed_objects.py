"""Objects of NumPy that are indexed in place of being called: np.r_, np.c_, np.mgrid, np.ogrid, np.s_.

Takes what stands between the brackets, gives a value. Slices there are np.arange, or np.linspace where the step is
imaginary.
"""

from __future__ import annotations

from collections.abc import Callable, Sequence

import numpy as np

from tapeless.frontend.data.arguments import numeric
from tapeless.frontend.data.arrays import cast, read
from tapeless.frontend.data.indexing import get_item
from tapeless.frontend.numpy.elementwise import common_dtype
from tapeless.frontend.numpy.shapes import WHOLE, joined
from tapeless.frontend.state.context import Context, type_text
from tapeless.frontend.state.handlers import BY_NAME
from tapeless.frontend.state.values import Array, Scalar, Sequence_, SliceValue, Static, Value, weak
from tapeless.ir.types import Const, DType

Rule = Callable[[Context, Value], Value]

INDEXED: dict[int, tuple[object, Rule]] = {}  # by the object's id; the object is kept, so that its id stays its own


def rule_of(target: object) -> Rule | None:
    found = INDEXED.get(id(target))
    return None if found is None else found[1]


def indexed(name: str) -> Callable[[Rule], Rule]:
    def decorate(rule: Rule) -> Rule:
        target = getattr(np, name)
        INDEXED[id(target)] = (target, rule)
        return rule

    return decorate


def _items(index: Value) -> Sequence[Value]:
    return index.items if isinstance(index, Sequence_) and index.kind == "tuple" else (index,)


@indexed("s_")
def _s(ctx: Context, index: Value) -> Value:
    return index


@indexed("index_exp")
def _index_exp(ctx: Context, index: Value) -> Value:
    return Sequence_(tuple(_items(index)))


# -- joining


@indexed("r_")
def _r(ctx: Context, index: Value) -> Value:
    return _joined(ctx, "np.r_", index, False)


@indexed("c_")
def _c(ctx: Context, index: Value) -> Value:
    return _joined(ctx, "np.c_", index, True)


def _joined(ctx: Context, name: str, index: Value, columns: bool) -> Value:
    """The parts one after another, or side by side with vectors as columns; numbers are arrays of one element."""
    found: list[Scalar | Array] = []
    for item in _items(index):
        if isinstance(item, Static) and isinstance(item.value, str):
            ctx.fail("TP112", f"{name} with a string cannot be compiled", "use np.concatenate or np.stack.")
        found.append(_range(ctx, name, item) if isinstance(item, SliceValue) else numeric(ctx, name, item))
    kind = common_dtype([Scalar(Const(0, v.type.dtype)) if isinstance(v, Array) else v for v in found])
    parts = []
    for v in found:
        made = v if isinstance(v, Array) else ctx.new_cell(ctx.b.array([v.atom]))
        if made.type.dtype is not kind:
            made = ctx.new_cell(cast(ctx, read(ctx, made), kind))
        if columns and made.type.rank == 1:
            made = _array(get_item(ctx, made, Sequence_((WHOLE, Static(None)))))
        parts.append(made)
    return joined(ctx, name, parts, parts[0].type.rank - 1 if columns else 0)


def _array(value: Value) -> Array:
    assert isinstance(value, Array)
    return value


def _bounds(ctx: Context, name: str, part: SliceValue) -> tuple[Scalar, Scalar, Scalar]:
    found = []
    for value, usual in ((part.start, 0), (part.stop, None), (part.step, 1)):
        if value is None or value == Static(None):
            if usual is None:
                ctx.fail("TP112", f"{name}: a slice needs an end", "write start:stop.")
            value = weak(usual)
        if not isinstance(value, Scalar):
            ctx.fail("TP104", f"{name}: the bounds of slices are numbers, not {type_text(value)}")
        found.append(value)
    return found[0], found[1], found[2]


def _range(ctx: Context, name: str, part: SliceValue) -> Array:
    start, stop, step = _bounds(ctx, name, part)
    if not step.dtype.is_complex:
        return _array(BY_NAME["np.arange"](ctx, [start, stop, step], {}))
    if not isinstance(step.atom, Const):
        ctx.fail("TP104", f"{name}: an imaginary step must be known at compile time", "use np.linspace.")
    return _array(BY_NAME["np.linspace"](ctx, [start, stop, weak(int(abs(step.atom.value)))], {}))


# -- grids


@indexed("mgrid")
def _mgrid(ctx: Context, index: Value) -> Value:
    vectors = _vectors(ctx, "np.mgrid", index)
    if isinstance(index, SliceValue):
        return vectors[0]
    grids = BY_NAME["np.meshgrid"](ctx, list(vectors), {"indexing": Static("ij")})
    return BY_NAME["np.stack"](ctx, [grids], {})


@indexed("ogrid")
def _ogrid(ctx: Context, index: Value) -> Value:
    vectors = _vectors(ctx, "np.ogrid", index)
    if isinstance(index, SliceValue):
        return vectors[0]
    open_axes = []
    for k, v in enumerate(vectors):
        items = tuple(WHOLE if j == k else Static(None) for j in range(len(vectors)))
        open_axes.append(get_item(ctx, v, Sequence_(items)))
    return Sequence_(tuple(open_axes))


def _vectors(ctx: Context, name: str, index: Value) -> list[Array]:
    """One range for each axis, all of one element type."""
    kinds, found = [weak(0)], []
    for item in _items(index):
        if not isinstance(item, SliceValue):
            ctx.fail("TP104", f"{name} takes slices, not {type_text(item)}", "write start:stop.")
        start, stop, step = _bounds(ctx, name, item)
        kinds += [start, stop, weak(0.0) if step.dtype.is_complex else step]
        found.append(_range(ctx, name, item))
    kind = common_dtype(kinds)
    kind = DType.i64 if kind is DType.bool else kind
    return [v if v.type.dtype is kind else ctx.new_cell(cast(ctx, read(ctx, v), kind)) for v in found]
