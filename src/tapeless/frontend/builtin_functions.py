"""Python's built-in functions and types.

Takes values, gives values: what has a known length is worked out at compile time, the rest becomes Core.
Results are Python numbers where Python gives them.
"""

from __future__ import annotations

import types
from collections.abc import Callable
from typing import Any

import numpy as np

from tapeless.frontend import atoms, scalars
from tapeless.frontend.arrays import elementwise, make_array, read
from tapeless.frontend.atoms import apply, convert
from tapeless.frontend.context import Context, type_text
from tapeless.frontend.copies import SHORT, refuse_beyond, refuse_long
from tapeless.frontend.expressions import binary_values, truth_of
from tapeless.frontend.indexing import get_item, row_view
from tapeless.frontend.pymath import floats, to_integer
from tapeless.frontend.registry import integer, known, register, text, with_signature
from tapeless.frontend.rows import long_constants, rows
from tapeless.frontend.values import (
    Array,
    Closure,
    RangeValue,
    Scalar,
    Sequence_,
    SliceValue,
    Static,
    Value,
    Zipped,
    weak,
)
from tapeless.ir.types import Atom, Const, DType, const, i64, zero_of

# -- lengths and iteration


@known("len")
def _len(ctx: Context, obj: Value) -> Value:
    match obj:
        case Array(type=t):
            return Scalar(ctx.size_atom(t.shape[0]), True)
        case Sequence_(items=items):
            return weak(len(items))
        case RangeValue():
            from tapeless.frontend.iteration import range_count

            return Scalar(apply(ctx, "max", range_count(ctx, obj, tested=True), i64(0)), True)
        case Static(value=str() as chars):
            return weak(len(chars))
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
    if strict is not None and strict != weak(False):
        ctx.fail("TP112", "zip: the argument 'strict' cannot be compiled", "compare the lengths before the loop.")
    return Zipped(iterables)


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
            return Sequence_(tuple(reversed(items)))
        case Array():
            return get_item(ctx, sequence, SliceValue(None, None, weak(-1)))
        case RangeValue(start=start, step=step):
            count = _len(ctx, sequence)
            assert isinstance(count, Scalar)
            last = scalars.binary(ctx, "Sub", count, weak(1))
            first = scalars.binary(ctx, "Add", start, scalars.binary(ctx, "Mult", last, step))
            stop = scalars.binary(ctx, "Sub", start, step)
            return RangeValue(first, stop, scalars.unary_op(ctx, "USub", step), sequence.parallel)
        case _:
            ctx.fail("TP104", f"{type_text(sequence)} cannot be reversed")


def items_of(ctx: Context, what: str, value: Value) -> list[Value]:
    """The elements of something whose length is known at compile time."""
    match value:
        case Sequence_(kind="dict", keys=keys):
            return [weak(k) if isinstance(k, bool | int | float | complex) else Static(k) for k in keys]
        case Sequence_(items=items):
            return list(items)
        case Zipped(parts=parts, start=start):
            rows = [Sequence_(r) for r in zip(*(items_of(ctx, what, p) for p in parts), strict=False)]
            if start is None:
                return list(rows)
            numbers = (scalars.binary(ctx, "Add", start, weak(k)) for k in range(len(rows)))
            return [Sequence_((n, *r.items)) for n, r in zip(numbers, rows, strict=True)]
        case RangeValue():
            bounds = [x.atom.value for x in (value.start, value.stop, value.step) if isinstance(x.atom, Const)]
            if len(bounds) == 3:
                counted = range(*(int(b.real) for b in bounds))
                refuse_long(ctx, what, len(counted))
                return [weak(k) for k in counted]
        case Array(type=t):
            n = ctx.canon(t.shape[0])
            if isinstance(n, int):
                refuse_long(ctx, what, n)
                return [row_view(ctx, value, i64(k)) for k in range(n)]
    ctx.fail("TP104", f"{what} needs a length known at compile time", "use an array.")


@known("tuple")
def _tuple(ctx: Context, iterable: Value | None = None) -> Value:
    return Sequence_(tuple(items_of(ctx, "a tuple", iterable)) if iterable is not None else ())


@known("list")
def _list(ctx: Context, iterable: Value | None = None) -> Value:
    return Sequence_(tuple(items_of(ctx, "a list", iterable)) if iterable is not None else (), "list")


def _dict_of_keywords(ctx: Context, args: list[Value], keywords: dict[str, Value]) -> Value:
    if args:
        ctx.fail("TP112", "dict takes keyword arguments only here", "write the dict out: {'a': a}.")
    return Sequence_(tuple(keywords.values()), "dict", tuple(keywords))


register("dict", _dict_of_keywords)


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
    from tapeless.frontend.elementwise_options import round_number

    if not isinstance(number, Scalar):
        ctx.fail("TP104", f"round takes a number, not {type_text(number)}", "use np.round for arrays.")
    if ndigits is None:
        return to_integer(ctx, number, "rint")
    digits = integer(ctx, "round: ndigits", ndigits)
    return Scalar(round_number(ctx, number, digits, exact=number.weak).atom, number.weak)


def _single(ctx: Context, name: str, value: Value) -> Scalar:
    """A number, or the element of an array of one."""
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


# -- folds


FOLDED = 4096  # a fold of more constants than these is left to the compiled code


@known("sum")
def _sum(ctx: Context, iterable: Value, start: Value | None = None) -> Value:
    return fold_values(ctx, "Add", "sum", iterable, start or weak(0))


def fold_values(ctx: Context, operator: str, what: str, iterable: Value, start: Value) -> Value:
    """start + x0 + x1 + ..., in this order, as Python does it."""
    if not isinstance(iterable, Array | RangeValue):
        items = items_of(ctx, what, iterable)
        folded = isinstance(start, Scalar) and start.static and len(items) <= FOLDED and long_constants(items)
        make = rows(ctx, items) if len(items) > SHORT and not folded else None
        if make is not None and isinstance(start, Scalar):
            return _loop(ctx, i64(len(items)), start, lambda total, k: binary_values(ctx, operator, total, make(k)))
        for k, item in enumerate(items):
            before = ctx.b.made
            start = binary_values(ctx, operator, start, item)
            refuse_beyond(ctx, what, len(items), k + 1, ctx.b.made - before)
        return start
    if isinstance(iterable, Array) and iterable.type.rank > 1:
        from tapeless.frontend.reductions import NAMES

        if start in (weak(0), weak(1)):
            return NAMES[operator](ctx, iterable, weak(0))
        return binary_values(ctx, operator, start, NAMES[operator](ctx, iterable, weak(0)))
    from tapeless.frontend.iteration import iteration

    if not isinstance(start, Scalar):
        ctx.fail("TP104", f"{what} starts with a number here, not {type_text(start)}")
    count, element = iteration(ctx, iterable)
    return _loop(ctx, count, start, lambda total, k: binary_values(ctx, operator, total, element(k)))


def _loop(ctx: Context, count: Atom, start: Scalar, step: Callable[[Scalar, Atom], Value]) -> Scalar:
    """A running value, in the type that it has after the first step."""
    with ctx.b.region():  # a trial, for the type
        trial = step(start, i64(0))
    if not isinstance(trial, Scalar):
        ctx.fail("TP104", f"the elements must be numbers, not {type_text(trial)}")
    dtype, is_weak = scalars.join(ctx, trial, start)

    def body(k: Atom, running: Atom) -> list[Atom]:
        value = step(Scalar(running, is_weak), k)
        assert isinstance(value, Scalar)
        return [scalars.exactly(ctx, value.atom, dtype)]

    (result,) = ctx.b.for_(count, [scalars.exactly(ctx, start.atom, dtype)], body, ["r"])
    return Scalar(result, is_weak)


def _extremum(name: str) -> None:
    def handler(ctx: Context, args: list[Value], keywords: dict[str, Value]) -> Value:
        for key in keywords:
            ctx.fail("TP112", f"{name}: the argument '{key}' cannot be compiled", "write the comparison out.")
        if len(args) == 1:
            if isinstance(args[0], Array):
                return _extremum_of_array(ctx, name, args[0])
            args = items_of(ctx, name, args[0])
        if not args:
            ctx.fail("TP112", f"{name}() of no arguments")
        result = args[0]
        for k, other in enumerate(args[1:]):
            before = ctx.b.made
            if not (isinstance(result, Scalar) and isinstance(other, Scalar)):
                wrong = other if isinstance(result, Scalar) else result
                ctx.fail("TP120", f"{name} compares numbers, not {type_text(wrong)}", f"use np.{name}imum for arrays.")
            result = better(ctx, name, result, other)
            refuse_beyond(ctx, name, len(args), k + 2, ctx.b.made - before)
        return result

    register(name, handler)


def better(ctx: Context, name: str, a: Scalar, b: Scalar) -> Scalar:
    """Python's min and max of two numbers, in a type that holds both."""
    dtype, is_weak = scalars.join(ctx, a, b)
    if dtype.is_complex:
        ctx.fail("TP104", f"{name} does not take complex numbers")
    x, y = scalars.exactly(ctx, a.atom, dtype), scalars.exactly(ctx, b.atom, dtype)
    if dtype is DType.bool:
        return Scalar(apply(ctx, "and" if name == "min" else "or", x, y), is_weak)
    return Scalar(apply(ctx, name, x, y), is_weak)


def _extremum_of_array(ctx: Context, name: str, array: Array) -> Value:
    if array.type.rank != 1:
        ctx.fail("TP120", f"{name} of an array with rows is ambiguous", f"use np.{name}.")
    n = ctx.size_atom(array.type.shape[0])
    ctx.check(apply(ctx, "gt", n, i64(0)), "ValueError", f"{name}() iterable argument is empty")
    var = read(ctx, array)
    first = atoms.lazy_if(
        ctx,
        apply(ctx, "gt", n, i64(0)),
        lambda: ctx.b.row(var, i64(0)),
        lambda: zero_of(var.type.dtype),
        var.type.row(),
    )
    return _loop(ctx, n, Scalar(first), lambda best, k: better(ctx, name, best, Scalar(ctx.b.row(var, k))))


_extremum("min")
_extremum("max")


def _quantifier(name: str, row: str, end: bool) -> None:
    def body(ctx: Context, iterable: Value) -> Value:
        if isinstance(iterable, Array):
            if iterable.type.rank != 1:
                ctx.fail("TP120", f"{name} of an array with rows is ambiguous", f"use np.{name}.")
            from tapeless.frontend.reductions import all_, any_, python_bool

            return python_bool((any_ if name == "any" else all_)(ctx, iterable))
        result: Atom = Const(not end, DType.bool)
        for item in items_of(ctx, name, iterable):
            result = apply(ctx, row, result, truth_of(ctx, item))
        return Scalar(result, True)

    register(name, with_signature(name, body))


_quantifier("any", "or", True)
_quantifier("all", "and", False)


# -- types, printing

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
        case Sequence_():
            return value.cls or CONTAINERS[value.kind]
        case Static():
            return type(value.value)
        case RangeValue():
            return range
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
        if not (isinstance(c, Static) and isinstance(c.value, type | types.UnionType)):
            ctx.fail("TP104", f"isinstance compares with types, not {type_text(c)}")
        if issubclass(found, c.value):
            return weak(True)
    return weak(False)


@known("getattr")
def _getattr(ctx: Context, obj: Value, name: Value) -> Value:
    from tapeless.frontend.names import attribute

    return attribute(ctx, obj, text(ctx, "getattr: the name", name))


@known("print")
def _print(ctx: Context, *values: Value) -> Value:
    from tapeless.frontend.effects import print_values

    print_values(ctx, list(values))
    return Static(None)
