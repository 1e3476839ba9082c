"""Python's built-in functions and types.

Takes values, gives values: what has a known length is worked out at compile time, the rest becomes Core.
Results are Python numbers where Python gives them.
"""

from __future__ import annotations

import collections
import types
from collections.abc import Callable
from dataclasses import replace
from typing import Any

import numpy as np

from tapeless.frontend.data import scalars
from tapeless.frontend.data.arguments import flag, integer, known, text, with_signature
from tapeless.frontend.data.arrays import elementwise, make_array
from tapeless.frontend.data.atoms import apply, convert
from tapeless.frontend.data.classes import special
from tapeless.frontend.data.constants import ConstantSet
from tapeless.frontend.data.indexing import get_item
from tapeless.frontend.data.iterables import items_of, iteration, range_count
from tapeless.frontend.data.python_operators import binary_values, truth_of
from tapeless.frontend.numpy.elementwise_options import round_number
from tapeless.frontend.python import growth
from tapeless.frontend.python.attributes import attribute
from tapeless.frontend.python.dict_methods import pairs_of
from tapeless.frontend.python.pymath import floats, to_integer
from tapeless.frontend.python.references import either, new_dict, view_of
from tapeless.frontend.state.context import Context, type_text
from tapeless.frontend.state.handlers import register
from tapeless.frontend.state.parts import is_deque
from tapeless.frontend.state.values import (
    Array,
    Closure,
    Grown,
    RangeValue,
    Scalar,
    Sequence_,
    SliceValue,
    Static,
    Text,
    Value,
    Zipped,
    weak,
)
from tapeless.ir.types import Atom, Const, DType, const, i64

# -- lengths and iteration


@known("len")
def _len(ctx: Context, obj: Value) -> Value:
    match obj:
        case Array(type=t):
            return Scalar(ctx.size_atom(t.shape[0]), True)
        case Sequence_(items=items, kind=kind):
            if (defined := special(ctx, "__len__", obj)) is not None:
                return defined
            if kind == "dataclass":
                ctx.fail("TP104", f"{type_text(obj)} has no len()", "define __len__ in its class.")
            return weak(len(items))
        case RangeValue():
            return Scalar(apply(ctx, "max", range_count(ctx, obj, tested=True), i64(0)), True)
        case Grown(length=length):
            return length
        case Static(value=str() | frozenset() as known):
            return weak(len(known))
        case _:
            ctx.fail("TP104", f"{type_text(obj)} has no len()")


@known("range")
def _range(ctx: Context, *bounds: Value) -> Value:
    if not 1 <= len(bounds) <= 3:
        ctx.call_error(f"range takes 1 to 3 arguments, but {len(bounds)} were given")
    found: list[Scalar] = []
    for b in bounds:
        if not isinstance(b, Scalar):
            ctx.fail("TP104", f"an argument of range must be an integer, not {type_text(b)}")
        found.append(Scalar(scalars.to_index(ctx, b, "an argument of range"), True))
    if len(found) == 1:
        found = [weak(0), found[0]]
    step = found[2] if len(found) == 3 else weak(1)
    if step.atom == i64(0):
        ctx.fail("TP112", "range() arg 3 must not be zero")
    return RangeValue(found[0], found[1], step)


@known("zip")
def _zip(ctx: Context, *iterables: Value, strict: Value | None = None) -> Value:
    if not iterables:
        return Sequence_(())
    if strict is not None and flag(ctx, "zip: strict", strict):
        _same_lengths(ctx, iterables)
    return Zipped(iterables)


def _same_lengths(ctx: Context, iterables: tuple[Value, ...]) -> None:
    """Tested before the first iteration; Python finds out after the last one."""
    counts = [apply(ctx, "max", iteration_count(ctx, v), i64(0)) for v in iterables]
    for k, count in enumerate(counts[1:], 2):
        others = "argument 1" if k == 2 else f"arguments 1-{k - 1}"
        for test, word in (("ge", "shorter"), ("le", "longer")):
            ok = apply(ctx, test, count, counts[0])
            text = f"zip() argument {k} is {word} than {others}"
            if isinstance(ok, Const) and not ok.value:
                ctx.fail("TP112", text)
            ctx.check(ok, "ValueError", text)


def iteration_count(ctx: Context, value: Value) -> Atom:
    return i64(len(value.items)) if isinstance(value, Sequence_) else iteration(ctx, value, True)[0]


@known("enumerate")
def _enumerate(ctx: Context, iterable: Value, start: Value | None = None) -> Value:
    first = start or weak(0)
    if not isinstance(first, Scalar):
        ctx.fail("TP104", f"the start of enumerate must be an integer, not {type_text(first)}")
    return Zipped((iterable,), Scalar(scalars.to_index(ctx, first, "the start of enumerate"), True))


@known("reversed")
def _reversed(ctx: Context, sequence: Value) -> Value:
    match sequence:
        case Sequence_(items=items, kind=kind) if kind in ("tuple", "list", "namedtuple"):
            return view_of(ctx, reversed(items), sequence)
        case Array():
            return get_item(ctx, sequence, SliceValue(None, None, weak(-1)))
        case Grown(ref=box):
            found = growth.item(ctx, sequence, SliceValue(None, None, weak(-1)))
            return found if box is None or not isinstance(found, Grown) else replace(found, ref=either(ctx, [box]))
        case RangeValue(start=start, step=step):
            count = _len(ctx, sequence)
            assert isinstance(count, Scalar)
            last = scalars.binary(ctx, "Sub", count, weak(1))
            first = scalars.binary(ctx, "Add", start, scalars.binary(ctx, "Mult", last, step))
            stop = scalars.binary(ctx, "Sub", start, step)
            back = scalars.unary_op(ctx, "USub", step)
            return replace(sequence, start=first, stop=stop, step=back)
        case _:
            ctx.fail("TP104", f"{type_text(sequence)} cannot be reversed")


@known("tuple")
def _tuple(ctx: Context, iterable: Value | None = None) -> Value:
    return Sequence_(tuple(items_of(ctx, "a tuple", iterable)) if iterable is not None else ())


def _dict(ctx: Context, args: list[Value], keywords: dict[str, Value]) -> Value:
    if len(args) > 1:
        ctx.call_error(f"dict expected at most 1 argument, got {len(args)}")
    return new_dict(ctx, {**(pairs_of(ctx, "dict", args[0]) if args else {}), **keywords})


register("dict", _dict)


@known("slice")
def _slice(ctx: Context, *bounds: Value) -> Value:
    if len(bounds) == 1:
        return SliceValue(None, bounds[0], None)
    return SliceValue(*bounds, *[None] * (3 - len(bounds)))


# -- numbers


@known("abs")
def abs_(ctx: Context, x: Value) -> Value:
    def rule(a: Scalar) -> Scalar:
        if a.dtype is DType.bool:
            return Scalar(convert(ctx, a.atom, DType.i64), True) if a.weak else a
        return Scalar(scalars.arithmetic(ctx, "abs", a.atom), a.weak)

    if (defined := special(ctx, "__abs__", x)) is not None:
        return defined
    if isinstance(x, Array) and x.type.dtype is DType.bool:
        return make_array(ctx, x)
    return elementwise(ctx, rule, [x], "abs")


@known("pow")
def _pow(ctx: Context, base: Value, exp: Value, mod: Value | None = None) -> Value:
    if mod is not None:
        ctx.fail("TP112", "pow with a modulus cannot be compiled", "multiply and reduce in a loop.")
    return binary_values(ctx, "Pow", base, exp)


@known("divmod")
def _divmod(ctx: Context, x: Value, y: Value) -> Value:
    return Sequence_((binary_values(ctx, "FloorDiv", x, y), binary_values(ctx, "Mod", x, y)))


@known("round")
def _round(ctx: Context, number: Value, ndigits: Value | None = None) -> Value:
    if not isinstance(number, Scalar):
        ctx.fail("TP104", f"round takes a number, not {type_text(number)}", "use np.round for arrays.")
    if ndigits is None:
        return to_integer(ctx, number, "rint")
    digits = integer(ctx, "round: ndigits", ndigits)
    return Scalar(round_number(ctx, number, digits, exact=number.weak).atom, number.weak)


def _single(ctx: Context, name: str, value: Value) -> Scalar:
    """A number, or the element of an array of one."""
    value = special(ctx, f"__{name}__", value) or value
    if isinstance(value, Array) and all(isinstance(d, int) and d == 1 for d in value.type.shape):
        value = get_item(ctx, value, Sequence_((weak(0),) * value.type.rank))
    if not isinstance(value, Scalar):
        hint = f"use .astype({name})" if isinstance(value, Array) else ""
        ctx.fail("TP104", f"{name}() takes a number, not {type_text(value)}", hint)
    return value


@known("int")
def _int(ctx: Context, x: Value | None = None) -> Value:
    if isinstance(x, Static) and isinstance(x.value, str):
        return _parsed(ctx, int, x.value)
    return weak(0) if x is None else to_integer(ctx, _single(ctx, "int", x))


@known("float")
def _float(ctx: Context, x: Value | None = None) -> Value:
    if isinstance(x, Static) and isinstance(x.value, str):
        return _parsed(ctx, float, x.value)
    return weak(0.0) if x is None else floats(ctx, "float", [_single(ctx, "float", x)])[0]


def _parsed(ctx: Context, kind: Callable[[str], Any], chars: str) -> Value:
    try:
        return weak(kind(chars))
    except ValueError as problem:
        ctx.fail("TP112", str(problem))


@known("bool")
def _bool(ctx: Context, x: Value | None = None) -> Value:
    return weak(False) if x is None else Scalar(truth_of(ctx, x), True)


@known("complex")
def _complex(ctx: Context, real: Value | None = None, imag: Value | None = None) -> Value:
    first = _single(ctx, "complex", real or weak(0.0))
    whole = convert(ctx, first.atom, DType.c128)
    if imag is None:
        return Scalar(whole, True)
    second = _single(ctx, "complex", imag)
    if first.dtype.is_complex or second.dtype.is_complex:
        turned = apply(ctx, "mul", convert(ctx, second.atom, DType.c128), const(1j, DType.c128))
        return Scalar(apply(ctx, "add", whole, turned), True)
    parts = floats(ctx, "complex", [first, second])
    return Scalar(apply(ctx, "complex", *(p.atom for p in parts)), True)


def _operator(name: str, operator: str) -> None:
    def body(ctx: Context, a: Value, b: Value) -> Value:
        return binary_values(ctx, operator, a, b)

    register(f"operator.{name}", with_signature(f"operator.{name}", body))


for _name, _operator_name in {
    "add": "Add", "sub": "Sub", "mul": "Mult", "truediv": "Div", "floordiv": "FloorDiv", "mod": "Mod", "pow": "Pow",
    "and_": "BitAnd", "or_": "BitOr", "xor": "BitXor", "lshift": "LShift", "rshift": "RShift", "matmul": "MatMult",
}.items():  # fmt: skip
    _operator(_name, _operator_name)


# -- types

PYTHON_TYPES: dict[DType, type] = {DType.bool: bool, DType.i64: int, DType.f64: float, DType.c128: complex}
CONTAINERS: dict[str, type] = {"tuple": tuple, "list": list, "dict": dict}


def python_type(ctx: Context, value: Value) -> type:
    """The type that the value has in Python."""
    match value:
        case Scalar(weak=True):
            return PYTHON_TYPES[value.dtype]
        case Scalar():
            found: type = value.dtype.numpy.type
            return found
        case Array():
            return np.ndarray
        case Sequence_() | Grown() if is_deque(value):
            return collections.deque
        case Sequence_():
            return value.cls or CONTAINERS[value.kind]
        case Grown():
            return list
        case Text():
            return str
        case Static():
            return set if isinstance(value.value, ConstantSet) else type(value.value)
        case RangeValue():
            return range
        case SliceValue():
            return slice
        case Closure():
            return types.FunctionType
        case _:
            ctx.fail("TP104", f"the type of {type_text(value)} is not known here")


@known("type")
def _type(ctx: Context, obj: Value | None) -> Value:
    return Static(python_type(ctx, obj if obj is not None else Static(None)))


@known("isinstance")
def _isinstance(ctx: Context, obj: Value | None, class_or_tuple: Value) -> Value:
    classes = class_or_tuple.items if isinstance(class_or_tuple, Sequence_) else (class_or_tuple,)
    found = python_type(ctx, obj if obj is not None else Static(None))
    for c in classes:
        if not (isinstance(c, Static) and isinstance(c.value, (type, types.UnionType))):
            ctx.fail("TP104", f"isinstance compares with types, not {type_text(c)}")
        if issubclass(found, c.value):
            return weak(True)
    return weak(False)


@known("getattr")
def _getattr(ctx: Context, obj: Value, name: Value) -> Value:
    return attribute(ctx, obj, text(ctx, "getattr: the name", name))
