"""Methods of arrays, numbers and dicts.

Takes the receiver and the arguments of a call; most methods of arrays are the NumPy function of that name. Gives
`ARRAY_METHODS`, the names that arrays and NumPy numbers offer, and `call_method`.
"""

from __future__ import annotations

from collections.abc import Callable

from tapeless.frontend.data import atoms, scalars
from tapeless.frontend.data.arguments import array, dtype, numeric, with_signature
from tapeless.frontend.data.arrays import broadcast_to, cast, make_array, read, write
from tapeless.frontend.data.atoms import apply, convert
from tapeless.frontend.data.indexing import get_item
from tapeless.frontend.data.iterables import items_of
from tapeless.frontend.data.python_operators import static_key
from tapeless.frontend.numpy.elementwise import count_bits
from tapeless.frontend.numpy.matrices import np_diagonal
from tapeless.frontend.numpy.shapes import flat, np_transpose, to_shape
from tapeless.frontend.numpy.sorting import sort_in_place
from tapeless.frontend.state.context import Context, new_box, type_text
from tapeless.frontend.state.handlers import BY_NAME, Handler
from tapeless.frontend.state.values import Array, Grown, Rows, Scalar, Sequence_, Static, Value, weak
from tapeless.ir.types import DType, i64

dtype_argument = dtype  # a parameter of the same name hides it

# Methods that are the NumPy function of the same name (or of this one) with the array as its first argument.
AS_FUNCTION: dict[str, str] = {
    **{name: f"np.{name}" for name in (
        "sum", "prod", "min", "max", "mean", "var", "std", "any", "all", "argmin", "argmax", "cumsum", "cumprod",
        "ravel", "squeeze", "swapaxes", "repeat", "dot", "argsort", "clip", "round", "conj", "trace", "take",
        "searchsorted", "nonzero", "argpartition", "choose",
    )},
    "conjugate": "np.conj",
}  # fmt: skip

# Methods that cannot be compiled -> what to write instead.
REFUSED: dict[str, str] = {
    "view": "use .astype to convert, or .reshape for another shape.",
    "resize": "make a new array of that size.",
    "tobytes": "do it outside the compiled function.",
    "tofile": "do it outside the compiled function.",
    "partition": "use np.partition.",
    "compress": "use np.compress.",
    "byteswap": "do it outside the compiled function.",
}

OF_NUMBERS = frozenset({"is_integer", "bit_count"})  # and not of arrays
METHODS: dict[str, Handler] = {}  # the receiver is the first argument


def method(name: str) -> Callable[[Callable[..., Value]], Callable[..., Value]]:
    def decorate(body: Callable[..., Value]) -> Callable[..., Value]:
        METHODS[name] = with_signature(f".{name}", body)
        return body

    return decorate


@method("copy")
def _copy(ctx: Context, a: Value, order: Value | None = None) -> Value:
    return make_array(ctx, a) if isinstance(a, Array) else a


@method("flatten")
def _flatten(ctx: Context, a: Value) -> Value:
    var = read(ctx, flat(ctx, array(ctx, ".flatten", a)))
    return ctx.new_cell(ctx.b.copy(var))


@method("tolist")
def _tolist(ctx: Context, receiver: Array) -> Value:
    made = make_array(ctx, receiver)
    assert isinstance(made, Array)
    if made.type.rank > 2:
        ctx.fail("TP104", ".tolist of an array of more than two axes cannot be compiled", "index the array.")
    form = "list" if made.type.rank == 2 else ""
    made.cell.rows = Rows() if form else None
    length = Scalar(ctx.size_atom(made.type.shape[0]), True)
    return Grown(made, length, True, form=form, ref=new_box(ctx))


@method("reshape")
def _reshape(ctx: Context, a: Value, *shape: Value) -> Value:
    items = shape[0].items if len(shape) == 1 and isinstance(shape[0], Sequence_) else shape
    return to_shape(ctx, array(ctx, ".reshape", a), items)


@method("transpose")
def _transpose(ctx: Context, a: Value, *axes: Value) -> Value:
    if not axes or (len(axes) == 1 and axes[0] == Static(None)):
        return np_transpose(ctx, a)
    return np_transpose(ctx, a, axes[0] if len(axes) == 1 else Sequence_(axes))


@method("astype")
def _astype(ctx: Context, a: Value, dtype: Value, copy: Value | None = None) -> Value:
    kind = dtype_argument(ctx, dtype)
    value = numeric(ctx, ".astype", a)
    if kind is None:
        ctx.fail("TP112", ".astype needs an element type")
    if isinstance(value, Scalar):
        return Scalar(scalars.narrowed(ctx, value.atom, kind))
    if kind is value.type.dtype:
        return value if copy == weak(False) else make_array(ctx, value)
    return ctx.new_cell(cast(ctx, read(ctx, value), kind))


@method("fill")
def _fill(ctx: Context, a: Value, value: Value) -> Value:
    if not isinstance(a, Array):
        ctx.fail("TP104", f".fill writes into an array, not {type_text(a)}")
    number = numeric(ctx, ".fill", value)
    if not isinstance(number, Scalar):
        ctx.fail("TP104", ".fill takes one number", "assign with a[...] = b.")
    write(ctx, a, broadcast_to(ctx, number, ctx.dims(a.type.shape), a.type.dtype, ".fill"))
    return Static(None)


@method("item")
def _item(ctx: Context, a: Value, *position: Value) -> Value:
    """One element as a Python number."""
    value = numeric(ctx, ".item", a)
    if isinstance(value, Array):
        at: Value
        if not position:
            size = [ctx.canon(d) for d in value.type.shape]
            for d in size:
                one = apply(ctx, "eq", ctx.size_atom(d), i64(1))
                ctx.check(one, "ValueError", "can only convert an array of size 1 to a Python scalar")
            at = Sequence_((weak(0),) * len(size))
        elif len(position) == 1 and not isinstance(position[0], Sequence_):
            value, at = flat(ctx, value), position[0]
        else:
            at = position[0] if len(position) == 1 else Sequence_(position)
        element = get_item(ctx, value, at)
        assert isinstance(element, Scalar)
        value = element
    return python_number(ctx, value)


def python_number(ctx: Context, value: Scalar) -> Scalar:
    widest = {DType.i32: DType.i64, DType.f32: DType.f64, DType.c64: DType.c128}
    kind = widest.get(value.dtype, value.dtype)
    return Scalar(convert(ctx, value.atom, kind), True)


@method("sort")
def _sort(ctx: Context, a: Value, axis: Value | None = None) -> Value:
    if not isinstance(a, Array):
        ctx.fail("TP104", f".sort works on arrays, not {type_text(a)}")
    sort_in_place(ctx, a, axis)
    return Static(None)


@method("diagonal")
def _diagonal(
    ctx: Context, a: Value, offset: Value | None = None, axis1: Value | None = None, axis2: Value | None = None
) -> Value:
    return np_diagonal(ctx, a, offset, axis1, axis2)


@method("is_integer")
def _is_integer(ctx: Context, a: Value) -> Value:
    if not isinstance(a, Scalar) or a.dtype.is_complex:
        ctx.fail("TP104", f".is_integer works on numbers, not {type_text(a)}")
    if not a.dtype.is_float:
        return weak(True)
    whole = apply(ctx, "eq", a.atom, apply(ctx, "floor", a.atom))
    return Scalar(atoms.logical_and(ctx, whole, apply(ctx, "isfinite", a.atom)), True)


@method("bit_count")
def _bit_count(ctx: Context, a: Value) -> Value:
    if not isinstance(a, Scalar) or not (a.dtype.is_int or (a.dtype is DType.bool and a.weak)):
        ctx.fail("TP104", f".bit_count works on whole numbers, not {type_text(a)}")
    number = a if a.dtype.is_int else Scalar(convert(ctx, a.atom, DType.i64))
    return Scalar(convert(ctx, count_bits(ctx, number), DType.i64), True)


ARRAY_METHODS = frozenset(AS_FUNCTION) | (frozenset(METHODS) - OF_NUMBERS) | frozenset(REFUSED)


def call_method(ctx: Context, receiver: Value, name: str, args: list[Value], keywords: dict[str, Value]) -> Value:
    if isinstance(receiver, Sequence_):
        return _dict_method(ctx, receiver, name, args)
    if name in REFUSED:
        ctx.fail("TP103", f".{name} of an array cannot be compiled", REFUSED[name])
    if name in METHODS:
        return METHODS[name](ctx, [receiver, *args], keywords)
    if name in AS_FUNCTION:
        result = BY_NAME[AS_FUNCTION[name]](ctx, [receiver, *args], keywords)
        if name in ("conj", "conjugate") and isinstance(result, Scalar) and isinstance(receiver, Scalar):
            return Scalar(result.atom, receiver.weak)
        if name in ("conj", "conjugate") and isinstance(receiver, Array) and not receiver.type.dtype.is_complex:
            return receiver  # the method gives a real array itself, np.conj a new one
        return result
    ctx.fail("TP103", f"{type_text(receiver)} has no method '{name}' that can be compiled")


def _dict_method(ctx: Context, receiver: Sequence_, name: str, args: list[Value]) -> Value:
    keys = items_of(ctx, "a dict", receiver) if receiver.kind == "dict" else []
    match name:
        case "keys" if not args:
            return Sequence_(tuple(keys))
        case "values" if not args:
            return Sequence_(receiver.items)
        case "items" if not args:
            return Sequence_(tuple(Sequence_(pair) for pair in zip(keys, receiver.items, strict=True)))
        case "get" if args:
            key = static_key(ctx, args[0])
            if key in receiver.keys:
                return receiver.items[receiver.keys.index(key)]
            return args[1] if len(args) > 1 else Static(None)
    ctx.fail("TP103", f"{type_text(receiver)} has no method '{name}' that can be compiled")
