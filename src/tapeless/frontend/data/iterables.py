"""What can be looped over: how many iterations, and the element at a position.

Note [Length of a range]
stop - start may leave 64 bits. Towards the negative it cannot, since the greater of both is taken for `stop`. If it is
too large the range raises OverflowError, unless its step is 1 and the loop goes to its end: that it would never come
to, so a test in front of every inner loop is saved.
"""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import replace

from tapeless.frontend.data import atoms, scalars
from tapeless.frontend.data.arrays import make_array, read
from tapeless.frontend.data.constants import constant
from tapeless.frontend.data.indexing import row_view
from tapeless.frontend.data.rows import rows
from tapeless.frontend.state.code_copies import refuse_long
from tapeless.frontend.state.context import Context, type_text
from tapeless.frontend.state.values import (
    Array,
    Grown,
    Planned,
    RangeValue,
    Scalar,
    Sequence_,
    Strided,
    Value,
    Zipped,
    weak,
)
from tapeless.ir.builder import full_axes
from tapeless.ir.core import Range
from tapeless.ir.types import Atom, Const, Type, i64

GREATEST = 2**63 - 1


def iteration(ctx: Context, iterable: Value, may_stop: bool = False) -> tuple[Atom, Callable[[Atom], Value]]:
    """How many iterations, and the element at a position. `may_stop`: the loop may be left before its end."""
    match iterable:
        case RangeValue(start=start, step=step):
            return range_count(ctx, iterable, may_stop), lambda i: _range_element(ctx, start, step, i)
        case Planned(iterable=inner):
            return iteration(ctx, inner, may_stop)
        case Array(type=t):
            return ctx.size_atom(t.shape[0]), lambda i: row_view(ctx, iterable, i)
        case Grown(length=length):
            return length.atom, lambda i: grown_item(ctx, iterable, row_view(ctx, grown_rows(ctx, iterable), i))
        case Zipped(parts=parts, start=first):
            found = [iteration(ctx, p, True) for p in parts]
            count = found[0][0]
            for other, _ in found[1:]:
                if other is not count and other != count:
                    count = atoms.apply(ctx, "min", count, other)

            def element(i: Atom) -> Value:
                items = [make(i) for _, make in found]
                if first is not None:
                    number = (
                        Scalar(i, True) if first.atom == i64(0) else scalars.binary(ctx, "Add", first, Scalar(i, True))
                    )
                    return Sequence_((number, *items))
                return Sequence_(tuple(items))

            return count, element
        case Sequence_(items=items):
            found_rows = rows(ctx, items) if items else None
            if found_rows is not None:
                return i64(len(items)), lambda i: anonymous(found_rows(i))
            made = make_array(ctx, Sequence_(items, "list"))
            return iteration(ctx, made)
        case _:
            ctx.fail(
                "TP104", f"cannot loop over {type_text(iterable)}", "loop over range, arrays, zip, enumerate or tuples."
            )


def grown_rows(ctx: Context, grown: Grown) -> Array:
    """The items of a list of run-time length, as a part of the array that holds them."""
    array = grown.array
    if array is None:
        ctx.fail(
            "TP104",
            "a list is used in a loop before it is known what it holds",
            "put its first item in before the loop.",
        )
    size = ctx.atom_dim(grown.length.atom)
    if grown.first is None and size == ctx.canon(array.type.shape[0]):
        return array
    first = i64(0) if grown.first is None else grown.first.atom
    axes = (Range(first, size, i64(1)), *full_axes(array.type.shape[1:]))
    step = Strided(axes, tuple(range(array.type.rank)))
    return Array(array.cell, Type(array.type.dtype, (size, *array.type.shape[1:])), (*array.view, step))


def grown_item(ctx: Context, grown: Grown, found: Value) -> Value:
    """An item that was read of these rows. A row of a list of lists is a view: Note [Lists of lists]. Of an array Python has a
    reference to the one that was put there: it is not written.
    """
    if isinstance(found, Scalar):
        table = None if grown.table is None else ctx.state.names.get(grown.table.key)
        return Scalar(found.atom, table.weak if isinstance(table, Grown) else grown.weak)
    assert isinstance(found, Array)
    rows_ = None if grown.array is None else grown.array.cell.rows
    if grown.form == "list" and rows_ is not None and rows_.own and not rows_.copied and grown.ref is not None:
        rows_.seen = True  # Note [Lists of lists]
        length = Scalar(ctx.size_atom(found.type.shape[0]), True)
        return Grown(found, length, grown.weak, table=grown.ref)
    if grown.form == "mixed" and grown.columns:
        kinds = enumerate(grown.columns)
        items = [(row_view(ctx, found, i64(k)), dtype, weak) for k, (dtype, weak) in kinds]
        parts = [Scalar(atoms.convert(ctx, n.atom, d), weak) for n, d, weak in items if isinstance(n, Scalar)]
        return Sequence_(tuple(parts))
    if grown.form in ("tuple", "list") and isinstance(size := ctx.canon(found.type.shape[0]), int):
        numbers = [row_view(ctx, found, i64(k)) for k in range(size)]
        return Sequence_(tuple(Scalar(n.atom, grown.weak) for n in numbers if isinstance(n, Scalar)), grown.form)
    if grown.form == "mixed":
        ctx.fail(
            "TP104",
            "the items of this list are lists of several types, which are not read one by one here",
            "use np.array of it.",
        )
    reason = "items of a list that has grown in a loop cannot be written"
    if grown.form == "list":
        array = ctx.new_cell(ctx.b.copy(read(ctx, found)), readonly=reason, item=True)
        return Grown(array, Scalar(ctx.size_atom(found.type.shape[0]), True), grown.weak)
    return ctx.new_cell(ctx.b.copy(read(ctx, found)), readonly=reason, item=True)


def grown_items(ctx: Context, grown: Grown, count: int) -> list[Value]:
    """The items of a list that is known to have so many."""
    found = grown_rows(ctx, grown)
    return [grown_item(ctx, grown, row_view(ctx, found, i64(k))) for k in range(count)]


def anonymous(value: Value) -> Value:
    """The value with lists in it that nobody knows: what is read of them is right, and they cannot be changed."""
    match value:
        case Sequence_(items=items):
            return replace(value, items=tuple(map(anonymous, items)), ref=None)
        case _:
            return value


def range_count(ctx: Context, r: RangeValue, tested: bool = False) -> Atom:
    """How many numbers a range has: Note [Length of a range]. `tested`: raises also if it has 2**63 or more and step 1."""
    op = atoms.apply
    start, stop, step = (scalars.to_index(ctx, x, "an argument of range") for x in (r.start, r.stop, r.step))
    if isinstance(step, Const):
        k = int(step.value.real)
        if k == 0:
            ctx.fail("TP112", "range() step must not be zero")
        if start == i64(0) and k == 1:
            return op(ctx, "sub", stop, start)  # a negative count runs no iteration
        distance = _distance(ctx, start, stop) if k > 0 else _distance(ctx, stop, start)
        size: Atom = i64(min(abs(k), GREATEST))  # for the distance is no greater
        fits = _is_natural(start if k > 0 else stop) or (abs(k) == 1 and not tested)
    else:
        ctx.check(op(ctx, "ne", step, i64(0)), "ValueError", "range() arg 3 must not be zero")
        up = op(ctx, "gt", step, i64(0))
        distance = atoms.select(ctx, up, _distance(ctx, start, stop), _distance(ctx, stop, start))
        size = atoms.select(ctx, up, step, op(ctx, "neg", op(ctx, "max", step, i64(-GREATEST))))
        fits = _is_natural(start) and _is_natural(stop)
    if not fits and not ctx.options.unsafe:
        ctx.check(op(ctx, "ge", distance, i64(0)), "OverflowError", "range() goes over a distance of more than 64 bits")
    if size == i64(1):
        return distance
    return op(ctx, "add", op(ctx, "floordiv", op(ctx, "sub", distance, i64(1)), size), i64(1))


def _distance(ctx: Context, low: Atom, high: Atom) -> Atom:
    """high - low, 0 if that is negative; a negative number if it has more than 64 bits."""
    return atoms.apply(ctx, "sub", atoms.apply(ctx, "max", high, low), low)


def _is_natural(atom: Atom) -> bool:
    return isinstance(atom, Const) and atom.value.real >= 0


def _range_element(ctx: Context, start: Scalar, step: Scalar, i: Atom) -> Scalar:
    value = i
    if step.atom != i64(1):
        value = atoms.apply(ctx, "mul", value, scalars.to_index(ctx, step))
    if start.atom != i64(0):
        value = atoms.apply(ctx, "add", scalars.to_index(ctx, start), value)
    if isinstance(start.atom, Const) and abs(start.atom.value) < 2**52 and step.atom in (i64(1), i64(-1)):
        ctx.counters.add(value)
    return Scalar(value, True)


def constants_in(iterable: RangeValue) -> range | None:
    """The numbers of a range of constants; None where they are not known."""
    bounds = [x.atom.value.real for x in (iterable.start, iterable.stop, iterable.step) if isinstance(x.atom, Const)]
    return range(*map(int, bounds)) if len(bounds) == 3 and bounds[2] else None


def of_unknown_length(ctx: Context, iterable: Value) -> bool:
    """Whether it can be gone through, and only when it runs is known how often."""
    match iterable:
        case Array(type=t):
            return bool(t.shape) and not isinstance(ctx.canon(t.shape[0]), int)
        case RangeValue():
            return constants_in(iterable) is None
        case Grown(length=length):
            return not isinstance(length.atom, Const)
        case _:
            return False


def items_of(ctx: Context, what: str, value: Value) -> list[Value]:
    """The elements of something whose length is known at compile time."""
    match value:
        case Sequence_(kind="dict", keys=keys):
            return [constant(k) for k in keys]
        case Sequence_(kind="dataclass"):
            ctx.fail("TP104", f"{type_text(value)} cannot be gone through", "name its fields.")
        case Sequence_(items=items):
            return list(items)
        case Zipped(parts=parts, start=start):
            found = [Sequence_(r) for r in zip(*(items_of(ctx, what, p) for p in parts), strict=False)]
            if start is None:
                return list(found)
            numbers = (scalars.binary(ctx, "Add", start, weak(k)) for k in range(len(found)))
            return [Sequence_((n, *r.items)) for n, r in zip(numbers, found, strict=True)]
        case RangeValue():
            if (counted := constants_in(value)) is not None:
                refuse_long(ctx, what, len(counted))
                return [weak(k) for k in counted]
        case Array(type=t):
            n = ctx.canon(t.shape[0])
            if isinstance(n, int):
                refuse_long(ctx, what, n)
                return [row_view(ctx, value, i64(k)) for k in range(n)]
        case Grown(length=Scalar(atom=Const(value=count)), array=Array()):
            refuse_long(ctx, what, int(count.real))
            return grown_items(ctx, value, int(count.real))
    hint = (
        "loop over the array, slice it, or use NumPy's functions of it."
        if isinstance(value, Array)
        else "use an array."
    )
    ctx.fail("TP104", f"{what} needs a length known at compile time", hint)
