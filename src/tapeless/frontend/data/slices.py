"""One item of a subscript on one axis: positions, and slices with Python's clamping.

Takes scalars and slices, and the length of the axis; gives Core axes. Negative positions count from the end, slices are
clamped, a position outside raises IndexError.
"""

from __future__ import annotations

from tapeless.frontend.data import atoms, scalars
from tapeless.frontend.data.arrays import is_full
from tapeless.frontend.state.context import Context, type_text
from tapeless.frontend.state.values import Scalar, SliceValue, Static, Value
from tapeless.ir.core import Apply, At, Range
from tapeless.ir.types import Atom, Const, Dim, i64

LOWEST = -(2**63)

# -- positions


def position_of(ctx: Context, outer: Range, item: Scalar, length: Dim, base: Dim, axis: int) -> At:
    if is_full(outer, base):
        return position(ctx, item, length, axis)
    inside = checked_position(ctx, scalars.to_index(ctx, item, "an index"), length, axis)
    return At(_affine(ctx, outer.start, inside, outer.step))


def position(ctx: Context, item: Scalar, length: Dim, axis: int) -> At:
    """Of a whole axis of an array."""
    index = scalars.to_index(ctx, item, "an index")
    if not isinstance(index, Const):
        return At(index, wrap=True, check=True)
    at = int(index.value.real)
    if not isinstance(length, int):
        return At(index, wrap=at < 0, check=True)
    if not -length <= at < length:
        ctx.fail("TP203", f"index {at} is out of bounds for axis {axis} with size {length}")
    return At(i64(at % length))


def checked_position(ctx: Context, index: Atom, length: Dim, axis: int) -> Atom:
    """A position of an axis of this length, wrapped and tested by explicit statements."""
    n = ctx.size_atom(length)
    zero = i64(0)
    if isinstance(index, Const) and int(index.value.real) >= 0:
        wrapped: Atom = index
    elif isinstance(index, Const):
        wrapped = atoms.apply(ctx, "add", index, n)
    else:
        negative = atoms.apply(ctx, "lt", index, zero)
        wrapped = atoms.select(ctx, negative, atoms.apply(ctx, "add", index, n), index)
    if not ctx.options.unsafe:
        low = atoms.apply(ctx, "ge", wrapped, zero)
        high = atoms.apply(ctx, "lt", wrapped, n)
        message = f"index {{0}} is out of bounds for axis {axis} with size {{1}}"
        ctx.check(atoms.logical_and(ctx, low, high), "IndexError", message, index, n)
    return wrapped


def _affine(ctx: Context, start: Atom, index: Atom, step: Atom) -> Atom:
    """start + index * step."""
    if step != i64(1):
        index = atoms.apply(ctx, "mul", index, step)
    return index if start == i64(0) else atoms.apply(ctx, "add", start, index)


# -- slices


def slice_of(ctx: Context, item: SliceValue, length: Dim) -> Range:
    """Python's clamping: start, number of elements, step."""
    n = ctx.size_atom(length)
    step = _bound(ctx, item.step) or i64(1)
    if not (
        isinstance(step, Const) and step.value.real > LOWEST
    ):  # the lowest integer has no counterpart, the next goes as far
        step = atoms.apply(ctx, "max", step, i64(LOWEST + 1))
    start, stop = _bound(ctx, item.start), _bound(ctx, item.stop)
    if not isinstance(step, Const):
        return _slice_by(ctx, start, stop, step, n)
    by = int(step.value.real)
    if by == 0:
        ctx.fail("TP112", "slice step cannot be zero")
    if start is None and stop is None and abs(by) == 1:  # the length stays
        return Range(i64(0) if by == 1 else atoms.size_op(ctx, "sub", n, i64(1)), length, step)
    simple = _simple_slice(ctx, start, stop, n) if by == 1 else None
    if simple is not None:
        return simple
    low, span = _rising(ctx, start, stop, n) if by > 0 else _falling(ctx, start, stop, n)
    found = Range(low, _steps(ctx, span, i64(abs(by))), step)
    if by == 1 and _at_most_one(ctx, start, stop):
        ctx.short.add(found.length)
    return found


def _at_most_one(ctx: Context, start: Atom | None, stop: Atom | None) -> bool:
    """x[k:k+1], x[:1], x[-1:] and the like."""
    if start is None or stop is None:
        return (start is None and stop == i64(1)) or (stop is None and start == i64(-1))
    if isinstance(start, Const) and isinstance(stop, Const):
        low, high = int(start.value.real), int(stop.value.real)
        return high - low == 1 and (low < 0) == (high < 0)
    return ctx.b.definition(stop) in (Apply("add", (start, i64(1))), Apply("add", (i64(1), start)))


def _slice_by(ctx: Context, start: Atom | None, stop: Atom | None, step: Atom, n: Atom) -> Range:
    """A step that is only known at run time: both directions, and the one that applies."""
    ctx.check(atoms.apply(ctx, "ne", step, i64(0)), "ValueError", "slice step cannot be zero")
    up = atoms.apply(ctx, "gt", step, i64(0))
    rising, falling = _rising(ctx, start, stop, n), _falling(ctx, start, stop, n)
    low, span = (atoms.select(ctx, up, a, b) for a, b in zip(rising, falling, strict=True))
    return Range(low, _steps(ctx, span, atoms.apply(ctx, "abs", step)), step)


def _rising(ctx: Context, start: Atom | None, stop: Atom | None, n: Atom) -> tuple[Atom, Atom]:
    """First position and distance to the end, for a positive step."""
    low = i64(0) if start is None else _clamp(ctx, start, n, i64(0), n)
    high = n if stop is None else _clamp(ctx, stop, n, i64(0), n)
    return low, atoms.size_op(ctx, "sub", high, low)


def _falling(ctx: Context, start: Atom | None, stop: Atom | None, n: Atom) -> tuple[Atom, Atom]:
    """The same for a negative step."""
    last = atoms.size_op(ctx, "sub", n, i64(1))
    low = last if start is None else _clamp(ctx, start, n, i64(-1), last)
    high = i64(-1) if stop is None else _clamp(ctx, stop, n, i64(-1), last)
    return low, atoms.size_op(ctx, "sub", low, high)


def _steps(ctx: Context, span: Atom, by: Atom) -> Dim:
    """How many steps it takes."""
    op = atoms.size_op
    if by != i64(1):
        span = op(ctx, "add", op(ctx, "floordiv", op(ctx, "sub", span, i64(1)), by), i64(1))
    return ctx.atom_dim(op(ctx, "max", span, i64(0)))


def _simple_slice(ctx: Context, start: Atom | None, stop: Atom | None, n: Atom) -> Range | None:
    """a[c:], a[:-d] and a[c:-d]: max(n - c - d, 0) elements from c, whatever n is. Equal lengths are one variable."""
    first = 0 if start is None else int(start.value.real) if isinstance(start, Const) else -1
    left = 0 if stop is None else -int(stop.value.real) if isinstance(stop, Const) else -1
    if first < 0 or left < 0 or (left == 0 and stop is not None):
        return None
    rest = atoms.size_op(ctx, "add", n, i64(max(-first - left, LOWEST)))
    return Range(i64(first), ctx.atom_dim(atoms.size_op(ctx, "max", rest, i64(0))), i64(1))


def _bound(ctx: Context, value: Value | None) -> Atom | None:
    if value is None or (isinstance(value, Static) and value.value is None):
        return None
    if not isinstance(value, Scalar):
        ctx.fail("TP104", f"slice bounds must be integers, not {type_text(value)}")
    return scalars.to_index(ctx, value, "a slice bound")


def _clamp(ctx: Context, bound: Atom, n: Atom, low: Atom, high: Atom) -> Atom:
    op = atoms.size_op
    if isinstance(bound, Const):
        value = int(bound.value.real)
        if value >= 0:
            return low if bound == low else op(ctx, "min", bound, high)
        return op(ctx, "max", op(ctx, "add", n, bound), low)
    negative = op(ctx, "lt", bound, i64(0))
    wrapped = atoms.select(ctx, negative, op(ctx, "add", bound, n), bound)
    return op(ctx, "min", op(ctx, "max", wrapped, low), high)


def compose(ctx: Context, outer: Range, inner: Range) -> Range:
    if outer.start == i64(0) and outer.step == i64(1):
        return inner
    start = _affine(ctx, outer.start, inner.start, outer.step)
    return Range(start, inner.length, atoms.apply(ctx, "mul", outer.step, inner.step))
