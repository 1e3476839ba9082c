"""The tests and copies in the plain form of reversible functions: what `reversible/dialect/support.py` is in compiled code."""

from __future__ import annotations

from collections.abc import Callable, Sequence

from tapeless.frontend.data import atoms, scalars
from tapeless.frontend.data.arguments import settled
from tapeless.frontend.data.arrays import as_numeric, elementwise
from tapeless.frontend.data.indexing import get_item
from tapeless.frontend.data.leaves import leaves_of, rebuilt
from tapeless.frontend.data.python_operators import truth_of
from tapeless.frontend.numpy.methods import call_method
from tapeless.frontend.state.context import Context, type_text
from tapeless.frontend.state.handlers import call_numpy, operator
from tapeless.frontend.state.values import Array, Planned, Scalar, Sequence_, Static, Value, weak
from tapeless.ir.hints import How, Recovery
from tapeless.ir.types import Atom, Const, DType, const, i64
from tapeless.reversible.dialect.support import (
    ABSOLUTE,
    AGAIN,
    BRANCH,
    DIRTY,
    EMPTY,
    ENTRY,
    FACTOR,
    NO_ADDING,
    NO_SCALING,
    OCCUPIED,
    SHARED,
    tolerance_for,
)

ERROR = "InvertibilityError"
LAST_DIGITS = {8: 2.0**-48, 4: 2.0**-19}  # what some of them are worth, by the bytes of a number


@operator("reversible.fresh")
def _fresh(ctx: Context, args: list[Value], keywords: dict[str, Value]) -> Value:
    """A value of its own: arrays are copied."""
    (value,) = args
    leaves = [call_method(ctx, v, "copy", [], {}) if isinstance(v, Array) else v for v in leaves_of(value)]
    return rebuilt(value, leaves)


@operator("reversible.put")
def _put(ctx: Context, args: list[Value], keywords: dict[str, Value]) -> Value:
    """A dataclass with another value in one of its fields."""
    whole, name, value = args
    assert isinstance(name, Static)
    if not isinstance(whole, Sequence_) or whole.kind != "dataclass":
        ctx.fail("TP104", f"the field '{name.value}' of {type_text(whole)} cannot be changed", "use a dataclass.")
    items = [value if key == name.value else item for key, item in zip(whole.keys, whole.items, strict=True)]
    return Sequence_(tuple(items), whole.kind, whole.keys, whole.cls)


@operator("reversible.undone")
def _undone(ctx: Context, args: list[Value], keywords: dict[str, Value]) -> Value:
    items, *names = args
    chosen = tuple((n.value, Recovery(How.invert)) for n in names if isinstance(n, Static))
    if isinstance(items, Planned):
        return Planned(items.iterable, items.wish, chosen)
    return Planned(items, None, chosen)


@operator("reversible.branch")
def _branch(ctx: Context, args: list[Value], keywords: dict[str, Value]) -> Value:
    after, before = (truth_of(ctx, a) for a in args)
    ctx.check(atoms.apply(ctx, "eq", after, before), ERROR, BRANCH, after, before)
    return Static(None)


@operator("reversible.entry")
def _entry(ctx: Context, args: list[Value], keywords: dict[str, Value]) -> Value:
    after = truth_of(ctx, args[0])
    ctx.check(atoms.logical_not(ctx, after), ERROR, ENTRY, after)
    return Static(None)


@operator("reversible.again")
def _again(ctx: Context, args: list[Value], keywords: dict[str, Value]) -> Value:
    after = truth_of(ctx, args[0])
    ctx.check(after, ERROR, AGAIN, after)
    return Static(None)


@operator("reversible.clean")
def _clean(ctx: Context, args: list[Value], keywords: dict[str, Value]) -> Value:
    """NaN is nothing that comes back: the comparison is the one that fails for it."""
    name, now, first, tolerance = args
    assert isinstance(name, Static) and isinstance(tolerance, Scalar) and isinstance(tolerance.atom, Const)
    message = DIRTY.format(name=name.value)
    limit = float(tolerance.atom.value.real)
    for x, y in zip(leaves_of(now), leaves_of(first), strict=True):
        if isinstance(x, (Scalar, Array)):
            compare(ctx, as_numeric(ctx, x, "ancilla"), as_numeric(ctx, y, "ancilla"), limit, message)
    return Static(None)


def compare(
    ctx: Context, now: Scalar | Array, first: Scalar | Array, limit: float, message: str, size: Atom | None = None
) -> None:
    """`size`: of numbers on the way, whose last digits are lost."""
    dtype = now.type.dtype if isinstance(now, Array) else now.dtype
    exact = not (dtype.is_float or dtype.is_complex)
    real_bytes = dtype.bytes // (2 if dtype.is_complex else 1)
    near = tolerance_for(limit, real_bytes)

    def good(x: Scalar, y: Scalar) -> Scalar:
        a, b = (s.atom for s in scalars.common(ctx, x, y))
        if exact:
            return Scalar(atoms.apply(ctx, "eq", a, b), True)
        off = _size(ctx, atoms.apply(ctx, "sub", a, b))
        scale = atoms.apply(ctx, "max", _size(ctx, b), const(1.0, DType.f64))
        bound = atoms.apply(ctx, "mul", scale, const(near, DType.f64))
        if size is not None:
            digit = LAST_DIGITS[real_bytes]
            bound = atoms.apply(ctx, "add", bound, atoms.apply(ctx, "mul", size, const(digit, DType.f64)))
        near_enough = atoms.apply(ctx, "and", atoms.apply(ctx, "le", off, bound), atoms.apply(ctx, "isfinite", off))
        return Scalar(atoms.logical_or(ctx, near_enough, atoms.apply(ctx, "eq", a, b)), True)

    _all(ctx, good, [now, first], message)


def _size(ctx: Context, a: Atom) -> Atom:
    return atoms.convert(ctx, atoms.apply(ctx, "abs", a), DType.f64)


def _all(ctx: Context, good: Callable[..., Scalar], operands: Sequence[Scalar | Array], message: str) -> None:
    """Tests all elements; the message shows those of the first that fails."""
    if not any(isinstance(x, Array) for x in operands):
        found = good(*operands)
        _check(ctx, found.atom, message, [x.atom for x in operands if isinstance(x, Scalar)])
        return
    found_all = elementwise(ctx, lambda *xs: good(*xs), operands)
    cond = truth_of(ctx, call_numpy(ctx, "all", [found_all]))
    first = _first_false(ctx, found_all)
    shown: list[Atom] = []
    for x in operands:
        value: Value = x
        if isinstance(x, Array):
            flat = call_method(ctx, settled(ctx, x), "flatten", [], {})
            size = call_numpy(ctx, "size", [flat])
            padded = call_numpy(ctx, "append", [flat, weak(0)])  # it may be empty
            assert isinstance(padded, Array) and isinstance(first, Scalar) and isinstance(size, Scalar)
            value = get_item(ctx, padded, Scalar(atoms.apply(ctx, "min", first.atom, size.atom)))
        assert isinstance(value, Scalar)
        shown.append(value.atom)
    _check(ctx, cond, message, shown)


def _first_false(ctx: Context, found: Value) -> Value:
    """Its position: how many are true before it."""
    assert isinstance(found, Array)
    flat = call_method(ctx, settled(ctx, found), "flatten", [], {})
    return call_numpy(ctx, "sum", [call_numpy(ctx, "cumprod", [flat])])


def _check(ctx: Context, cond: Atom, message: str, shown: Sequence[Atom]) -> None:
    """Of complex numbers the message has the absolute values."""
    if any(a.type.dtype.is_complex for a in shown):
        message += ABSOLUTE
        shown = [_size(ctx, a) for a in shown]
    ctx.check(cond, ERROR, message, *shown)


@operator("reversible.filled")
def _filled(ctx: Context, args: list[Value], keywords: dict[str, Value]) -> Value:
    (top,) = args
    assert isinstance(top, Scalar)
    ctx.check(atoms.apply(ctx, "gt", top.atom, i64(0)), ERROR, EMPTY, top.atom)
    return Static(None)


@operator("reversible.vacant")
def _vacant(ctx: Context, args: list[Value], keywords: dict[str, Value]) -> Value:
    def good(x: Scalar) -> Scalar:
        return Scalar(atoms.apply(ctx, "eq", x.atom, const(0, x.dtype)), True)

    _all(ctx, good, [as_numeric(ctx, args[0], "value")], OCCUPIED)
    return Static(None)


@operator("reversible.nothing")
def _nothing(ctx: Context, args: list[Value], keywords: dict[str, Value]) -> Value:
    value = as_numeric(ctx, args[0], "value")
    if isinstance(value, Array):
        return call_numpy(ctx, "zeros_like", [value])
    return Scalar(const(0, value.dtype), value.weak)


@operator("reversible.undoable")
def _undoable(ctx: Context, args: list[Value], keywords: dict[str, Value]) -> Value:
    name, target, value, scales = args
    numbers = [v for v in (target, value) if isinstance(v, (Scalar, Array))]
    kinds = {(v.type if isinstance(v, Array) else v.atom.type).dtype for v in numbers}
    product = scales == weak(True)
    whole = len(numbers) == 2 and all(kind.is_int or kind is DType.bool for kind in kinds)
    truth = kinds == {DType.bool} and not (isinstance(target, Scalar) and target.weak)
    if whole and (product or truth):
        assert isinstance(name, Static)
        reason = (NO_SCALING if product else NO_ADDING).format(name=name.value, kind=type_text(target))
        ctx.not_invertible("TP401", reason)
    return Static(None)


@operator("reversible.factor")
def _factor(ctx: Context, args: list[Value], keywords: dict[str, Value]) -> Value:
    def good(x: Scalar) -> Scalar:
        zero = const(0, x.dtype)
        found = atoms.apply(ctx, "ne", x.atom, zero)
        if x.dtype.is_float or x.dtype.is_complex:
            found = atoms.logical_and(ctx, found, _finite(ctx, x.atom))
        return Scalar(found, True)

    _all(ctx, good, [as_numeric(ctx, args[0], "factor")], FACTOR)
    return Static(None)


def _finite(ctx: Context, a: Atom) -> Atom:
    """NaN and infinities are not less than infinity."""
    return atoms.apply(ctx, "lt", _size(ctx, a), const(float("inf"), DType.f64))


@operator("reversible.apart")
def _apart(ctx: Context, args: list[Value], keywords: dict[str, Value]) -> Value:
    """Two subscripts of one array meet where they do on all axes."""
    one, other, shape, here, there, or_same = args
    assert isinstance(one, Static) and isinstance(other, Static)
    assert isinstance(shape, Sequence_) and isinstance(here, Sequence_) and isinstance(there, Sequence_)
    if or_same == weak(True) and len(here.items) == len(there.items):
        if all(isinstance(i, Scalar) for i in (*here.items, *there.items)):
            return Static(None)  # a cell or a row may meet itself
    message = SHARED.format(one=one.value, other=other.value)
    meet: Atom = Const(True, DType.bool)
    shown: Atom | None = None
    for n, a, b in zip(shape.items, here.items, there.items, strict=False):
        assert isinstance(n, Scalar)
        (low, high, first), (low2, high2, second) = _extent(ctx, n.atom, a), _extent(ctx, n.atom, b)
        if shown is None:
            shown = second
        over = atoms.logical_and(ctx, atoms.apply(ctx, "lt", low, high2), atoms.apply(ctx, "lt", low2, high))
        if first is not None and second is not None:
            over = atoms.apply(ctx, "eq", first, second)
        meet = atoms.logical_and(ctx, meet, over)
    ctx.check(atoms.logical_not(ctx, meet), ERROR, message, shown if shown is not None else i64(0))
    return Static(None)


def _extent(ctx: Context, n: Atom, index: Value) -> tuple[Atom, Atom, Atom | None]:
    """From where to where a subscript reaches, and the index if it is one. All of the axis where that is not known."""
    everything = (i64(0), n, None)
    match index:
        case Scalar() if index.dtype.is_int:
            at = _wrapped(ctx, atoms.convert(ctx, index.atom, DType.i64), n)
            return at, atoms.apply(ctx, "add", at, i64(1)), at
        case Sequence_(items=(low, high, step)) if step == Static(None):
            start = _bound(ctx, low, n, i64(0))
            return start, _bound(ctx, high, n, n), None
        case _:
            return everything


def _wrapped(ctx: Context, at: Atom, n: Atom) -> Atom:
    if isinstance(at, Const) and at.value.real >= 0:
        return at
    return atoms.select(ctx, atoms.apply(ctx, "lt", at, i64(0)), atoms.apply(ctx, "add", at, n), at)


def _bound(ctx: Context, value: Value, n: Atom, default: Atom) -> Atom:
    if not isinstance(value, Scalar):
        return default
    at = _wrapped(ctx, atoms.convert(ctx, value.atom, DType.i64), n)
    return atoms.apply(ctx, "min", atoms.apply(ctx, "max", at, i64(0)), n)
