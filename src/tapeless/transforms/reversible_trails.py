"""Trails of reversible functions in compiled code: what `reversible/dialect/trails.py` writes around steps.

A trail is a tuple: two totals, the number of steps so far, and for each watched name the size below which nothing
counts. The way there adds to the totals at each watched step, the way back subtracts what it finds there: Note [Trails]
of ad/recovery/trails.py says what is added, and what is left of it when the values were others. Of an array a few cells
count, others at each step.
"""

from __future__ import annotations

from collections.abc import Iterator, Sequence

import numpy as np

from tapeless.ad.recovery.drift import TOLERANCE, greatest, warn
from tapeless.ad.recovery.trails import MIX, NEIGHBOUR, STRIDE
from tapeless.frontend.data.arrays import read
from tapeless.frontend.data.indexing import get_item, set_item
from tapeless.frontend.data.leaves import number_of, type_of
from tapeless.frontend.python.choices import conditional
from tapeless.frontend.state.context import Context
from tapeless.frontend.state.handlers import call_numpy, operator
from tapeless.frontend.state.values import Array, Scalar, Sequence_, Static, Value, weak
from tapeless.ir.core import Sweep
from tapeless.ir.types import F64, I64, Atom, Const, DType, Var, const, dim_atom, i64
from tapeless.ops.emit import Emit, differentiable

TOTALS, COUNT, FIRST_SLOT = 2, 2, 3
CELLS = 4  # of an array that count at a step
SPREAD = 64.0 * 2.0**52  # the mean weight, of odd numbers from -127 to 127, times the slope of the pattern
LEAST = {DType.f64: 1e-5, DType.f32: 1e-2}  # of the first size that is not 0: roundings are small beside it


@operator("reversible.seen")
def _seen(ctx: Context, args: list[Value], keywords: dict[str, Value]) -> Value:
    """The sizes of numbers in some places, as a tuple of tuples."""
    trail, places = args
    assert isinstance(trail, Sequence_) and isinstance(places, Sequence_)
    return Sequence_(tuple(Sequence_(tuple(_sizes(ctx, trail, place))) for place in places.items))


def _sizes(ctx: Context, trail: Sequence_, place: Value) -> Iterator[Value]:
    for number, leaf in enumerate(_floats(place)):
        if isinstance(leaf, Scalar):
            yield Scalar(Emit(ctx.b)("abs", leaf.atom))
            continue
        assert isinstance(leaf, Array)
        for k in range(CELLS):
            yield _cell(ctx, leaf, _seed(ctx, trail, number * CELLS + k))


def _floats(value: Value) -> Iterator[Value]:
    """The leaves that rounding can spoil."""
    if number_of(value) is not value:  # an exact number
        return
    if isinstance(value, Sequence_):
        for item in value.items:
            yield from _floats(item)
        return
    type = type_of(value)
    if type is not None and differentiable(type):
        yield value


def _cell(ctx: Context, array: Array, seed: Atom) -> Value:
    emit, sizes = Emit(ctx.b), [dim_atom(d) for d in ctx.dims(array.type.shape)]
    filled: Atom = Const(True, DType.bool)
    for n in sizes:
        filled = emit("and", filled, emit("gt", n, 0))

    def chosen() -> Value:
        found = read(ctx, array)
        for axis, n in enumerate(sizes):
            at = emit("mod", emit("and", emit("shr", seed, 5 + 9 * axis), i64(2**31 - 1)), n, label="at")
            found = ctx.b.row(found, at)
        return Scalar(emit("abs", found))

    return conditional(ctx, filled, chosen, lambda: Scalar(const(0.0, array.type.dtype.real)))


def _seed(ctx: Context, trail: Sequence_, number: int) -> Atom:
    count = trail.items[COUNT]
    assert isinstance(count, Scalar)
    emit = Emit(ctx.b)
    mixed = emit("add", emit("mul", count.atom, i64(STRIDE)), i64((number + 1) * MIX % 2**63))
    return emit("xor", mixed, emit("shr", mixed, 29))


@operator("reversible.left")
def _left(ctx: Context, args: list[Value], keywords: dict[str, Value]) -> Value:
    """The trail behind a step, on the way there."""
    return _passed(ctx, args, forwards=True)


@operator("reversible.found")
def _found(ctx: Context, args: list[Value], keywords: dict[str, Value]) -> Value:
    """The trail behind a step that was undone."""
    return _passed(ctx, args, forwards=False)


def _passed(ctx: Context, args: list[Value], forwards: bool) -> Value:
    trail, slots, before, places = args
    sizes = (before, _seen(ctx, [trail, places], {}))
    found = _Sum(ctx, trail, forwards)
    found.add(slots, *(sizes if forwards else reversed(sizes)))
    return found.trail(1 if forwards else 0)


@operator("reversible.back_to")
def _back_to(ctx: Context, args: list[Value], keywords: dict[str, Value]) -> Value:
    """The trail before a step is undone."""
    return _Sum(ctx, args[0], forwards=False).trail(-1)


@operator("reversible.joined")
def _joined(ctx: Context, args: list[Value], keywords: dict[str, Value]) -> Value:
    """The trail with what was not found in a block."""
    trail, block = args
    assert isinstance(trail, Sequence_) and isinstance(block, Sequence_)
    emit, parts = Emit(ctx.b), [_atom(item) for item in trail.items]
    for k in range(TOTALS):
        parts[k] = emit("add", parts[k], _atom(block.items[k]))
    return Sequence_(tuple(Scalar(p, True) for p in parts))


class _Sum:
    def __init__(self, ctx: Context, trail: Value, forwards: bool) -> None:
        assert isinstance(trail, Sequence_)
        self.ctx, self.emit, self.given, self.forwards = ctx, Emit(ctx.b), trail, forwards
        self.parts = [_atom(item) for item in trail.items]

    def add(self, slots: Value, earlier: Value, later: Value) -> None:
        """The sizes of each place before and after the step, as the way there had them."""
        assert isinstance(slots, Sequence_) and isinstance(earlier, Sequence_) and isinstance(later, Sequence_)
        emit, number = self.emit, 0
        for slot, old, new in zip(slots.items, earlier.items, later.items, strict=True):
            assert isinstance(slot, Scalar) and isinstance(slot.atom, Const)
            assert isinstance(old, Sequence_) and isinstance(new, Sequence_)
            at = FIRST_SLOT + int(slot.atom.value.real)
            for a, b in zip(old.items, new.items, strict=True):
                x, y = (emit.convert(_atom(v), DType.f64) for v in (a, b))
                if self.forwards:
                    size = emit("mul", emit("maximum", x, y), LEAST[_atom(a).type.dtype])
                    self.parts[at] = emit("select", emit("gt", self.parts[at], 0.0), self.parts[at], size)
                least = self.parts[at]
                whole = emit("add", emit("add", y, emit("mul", x, NEIGHBOUR)), least)
                bits = emit("sub", emit("pattern", whole), emit("pattern", least))
                seed = _seed(self.ctx, self.given, 1000 + number)
                for k in range(TOTALS):
                    w = emit("or", emit("shr", emit("shl", seed, 8 * k), 56), 1)
                    term = emit("mul", w, bits)
                    self.parts[k] = emit("add" if self.forwards else "sub", self.parts[k], term)
                number += 1

    def trail(self, step: int) -> Value:
        parts = list(self.parts)
        parts[COUNT] = self.emit("add", parts[COUNT], i64(step)) if step else parts[COUNT]
        return Sequence_(tuple(Scalar(p, True) for p in parts))


def _atom(value: Value) -> Atom:
    assert isinstance(value, Scalar)
    return value.atom


# -- rows: a pair of arrays, of totals and numbers of steps, and of sizes


@operator("reversible.rows")
def _rows(ctx: Context, args: list[Value], keywords: dict[str, Value]) -> Value:
    count, slots = args
    integers = call_numpy(ctx, "zeros", [Sequence_((count, weak(FIRST_SLOT))), Static(np.dtype(np.int64))])
    return Sequence_((integers, call_numpy(ctx, "zeros", [Sequence_((count, slots))])))


@operator("reversible.row_of")
def _row_of(ctx: Context, args: list[Value], keywords: dict[str, Value]) -> Value:
    rows, index = args
    assert isinstance(rows, Sequence_)
    parts: list[Value] = []
    for array in rows.items:
        assert isinstance(array, Array)
        width = ctx.canon(array.type.shape[1])
        assert isinstance(width, int)
        parts += [get_item(ctx, array, Sequence_((index, weak(k)))) for k in range(width)]
    return Sequence_(tuple(Scalar(_atom(p), True) for p in parts))


@operator("reversible.keep_row")
def _keep_row(ctx: Context, args: list[Value], keywords: dict[str, Value]) -> Value:
    rows, index, trail = args
    assert isinstance(rows, Sequence_) and isinstance(trail, Sequence_)
    integers, sizes = rows.items
    assert isinstance(integers, Array) and isinstance(sizes, Array)
    for k, part in enumerate(trail.items):
        array, at = (integers, k) if k < FIRST_SLOT else (sizes, k - FIRST_SLOT)
        set_item(ctx, array, Sequence_((index, weak(at))), part)
    return Static(None)


# -- at the end


def compare_trails(ctx: Context, name: str, way_there: Value, way_back: Value, dtypes: Sequence[DType]) -> None:
    """Warns where the way back did not find what the way there had left: in a trail, and in rows of them."""
    assert isinstance(way_there, Sequence_) and isinstance(way_back, Sequence_)
    tolerance = max((TOLERANCE[d] for d in dtypes), default=TOLERANCE[DType.f64])
    first, *_ = way_back.items
    assert isinstance(first, Sequence_)
    _compare(ctx, name, *_drift(Emit(ctx.b), way_there.items[0], first), tolerance)
    for there, rest in zip(way_there.items[1:], way_back.items[1:], strict=True):
        assert isinstance(there, Sequence_) and isinstance(rest, Sequence_)
        counts, totals = there.items[0], rest.items[0]
        assert isinstance(counts, Array) and isinstance(totals, Array)
        emit, arrays = Emit(ctx.b), [read(ctx, counts), read(ctx, totals)]
        rows = [Var("i", I64), *(Var(v.name, v.type.row()) for v in arrays)]

        def row(_: Var, there: Var, rest: Var, emit: Emit = emit) -> tuple[Atom, ...]:
            parts = [Sequence_(tuple(Scalar(emit.b.row(v, i64(k))) for k in range(FIRST_SLOT))) for v in (there, rest)]
            drift, steps = _drift(emit, *parts)
            return (emit("div", drift, steps),)

        lam = emit.b.lam(rows, row)
        worst = emit.b.bind([Var("off", F64)], Sweep(arrays[0].type.shape[0], tuple(arrays), lam, (greatest(emit),)))[0]
        _compare(ctx, name, worst, const(1.0, DType.f64), tolerance)


def _drift(emit: Emit, way_there: Value, way_back: Value) -> tuple[Atom, Atom]:
    """What is left of the totals, and how much would not matter, in units of the tolerance."""
    assert isinstance(way_there, Sequence_) and isinstance(way_back, Sequence_)
    rest: Atom = const(0.0, DType.f64)
    for total in way_back.items[:TOTALS]:
        rest = emit("maximum", rest, emit("abs", emit.convert(_atom(total), DType.f64)))
    steps = emit.convert(_atom(way_there.items[COUNT]), DType.f64)
    return emit("div", rest, SPREAD), emit("sqrt", emit("maximum", emit("mul", steps, float(CELLS)), 1.0))


def _compare(ctx: Context, name: str, drift: Atom, steps: Atom, tolerance: float) -> None:
    emit = Emit(ctx.b)
    text = f"running '{name}' backwards did not come by the values of the way there: the relative error is about {{0}}"
    warn(emit, drift, emit("mul", steps, tolerance), text, ctx.span)
