"""Names and attributes: local variables, enclosing functions, globals, modules, and what arrays and containers offer.

Values of the surroundings are read at compile time and watched; arrays of the surroundings become hidden arguments.
"""

from __future__ import annotations

import dataclasses
import types
from typing import Any

import numpy as np

from tapeless.frontend.arrays import transpose
from tapeless.frontend.context import Captured, Context, Watch, object_text
from tapeless.frontend.copies import MOST_NUMBERS, SHORT, refuse_long
from tapeless.frontend.marks import peek
from tapeless.frontend.origins import NUMBERS, Origin
from tapeless.frontend.plain import plain_hint, refused
from tapeless.frontend.refusals import refuse_attribute, similar
from tapeless.frontend.values import (
    Array,
    Cell,
    Method,
    Scalar,
    Sequence_,
    Static,
    Value,
    weak,
)
from tapeless.ir.types import FROM_NUMPY, DType, Type, Var, const


def lookup(ctx: Context, name: str) -> Value:
    frame = ctx.frames[ctx.frame]
    number = ctx.frame
    while number >= 0:  # this function, then the compiled functions around it
        key = (number, name)
        if key in ctx.state.names:
            return ctx.use(ctx.state.names[key], name)
        if name in ctx.frames[number].locals:
            ctx.fail("TP110", f"'{name}' is used before it has a value on this path", "assign it first.")
        frame = ctx.frames[number]
        number = frame.outer
    function = frame.function
    if name in function.value.__code__.co_freevars:
        try:
            found = ctx.reads.step(function, "cell", name)
        except ValueError:
            ctx.fail("TP102", f"'{name}' has no value yet in the enclosing function")
        return from_python(ctx, found, name)
    try:
        found = ctx.reads.step(function, "global", name)
    except KeyError:
        ctx.fail("TP102", f"the name '{name}' is not defined")
    return from_python(ctx, found, name)


def from_python(ctx: Context, origin: Origin, name: str) -> Value:
    """A value of the surroundings."""
    value, reads = origin.value, ctx.reads
    if refused(value):  # Note [Subclasses] in plain.py
        ctx.fail("TP109", f"'{name}' is {refused(value)}, which is not supported", plain_hint(value))
    match value:
        case None | str() | types.ModuleType() | type() | types.BuiltinFunctionType() | np.ufunc():
            watch(ctx, origin, name)
            return _static(ctx, origin)
        case bool() | int() | float() | complex():
            if isinstance(value, np.generic):  # np.float64 is a float
                return _numpy_scalar(ctx, origin, name)
            watch(ctx, origin, name)
            if isinstance(value, int) and not -(2**63) <= value < 2**63:
                ctx.fail("TP109", f"'{name}' = {value} does not fit into 64 bits", "make it a float.")
            return weak(value)
        case np.generic():
            return _numpy_scalar(ctx, origin, name)
        case np.ndarray():
            return _captured_array(ctx, origin, name)
        case types.FunctionType():
            from tapeless.frontend.calls import python_function

            if getattr(value, "__tapeless__", None) or _known(value):
                watch(ctx, origin, name)
                return _static(ctx, origin)
            watch(ctx, origin, name)
            return python_function(ctx, origin)
        case tuple() | list():
            _watch_type(ctx, origin, name)
            if len(value) > SHORT and type(value) in (tuple, list) and set(map(type, value)) <= NUMBERS:
                return _numbers(ctx, origin, name)
            refuse_long(ctx, f"'{name}'", len(value))
            items = tuple(from_python(ctx, reads.step(origin, "item", k), f"{name}[{k}]") for k in range(len(value)))
            watch(ctx, reads.step(origin, "length"), f"len({name})")
            if hasattr(value, "_fields"):
                return Sequence_(items, "namedtuple", tuple(value._fields), type(value))
            return Sequence_(items, "tuple" if isinstance(value, tuple) else "list")
        case dict():
            _watch_type(ctx, origin, name)
            refuse_long(ctx, f"'{name}'", len(value))
            keys = tuple(value)
            watch(ctx, reads.step(origin, "keys"), f"keys of {name}")
            items = tuple(from_python(ctx, reads.step(origin, "item", k), f"{name}[{k!r}]") for k in keys)
            return Sequence_(items, "dict", keys)
    if dataclasses.is_dataclass(value):
        _watch_type(ctx, origin, name)
        fields = tuple(f.name for f in dataclasses.fields(value))
        items = tuple(from_python(ctx, reads.step(origin, "field", f), f"{name}.{f}") for f in fields)
        return Sequence_(items, "dataclass", fields, type(value))
    watch(ctx, origin, name)
    if isinstance(peek(value, "python"), types.FunctionType):  # a tp.function
        from tapeless.frontend.calls import python_function

        python = reads.step(origin, "attribute", "python")
        return transform_of(ctx, python) or python_function(ctx, python)
    if peek(value, "__tapeless__") == "vmapped":
        return _vmapped(ctx, origin, name)
    return _static(ctx, origin)


def _numbers(ctx: Context, origin: Origin, name: str) -> Value:
    """A long tuple or list of Python's numbers, watched as a whole."""
    refuse_long(ctx, f"'{name}'", len(origin.value), MOST_NUMBERS)
    watch(ctx, ctx.reads.step(origin, "numbers"), f"numbers of {name}")
    kept = ctx.reads.numbers.get(id(origin.value))  # the trace may have started again
    if kept is not None:
        known: Value = kept[1]
        return known
    for k, number in enumerate(origin.value):
        if type(number) is int and not -(2**63) <= number < 2**63:
            ctx.fail("TP109", f"'{name}[{k}]' = {number} does not fit into 64 bits", "make it a float.")
    made = Sequence_(tuple(map(weak, origin.value)), "tuple" if isinstance(origin.value, tuple) else "list")
    ctx.reads.numbers[id(origin.value)] = (origin.value, made)
    return made


def _static(ctx: Context, origin: Origin) -> Value:
    """An object whose parts may be asked for later."""
    ctx.reads.remember(origin)
    return Static(origin.value)


def transform_of(ctx: Context, python: Origin) -> Value | None:
    """The transform that is called instead of a function, if there is one."""
    if getattr(python.value, "__tapeless_transform__", None) is None:
        return None
    ctx.reads.saw(python)
    found = ctx.reads.step(python, "attribute", "__tapeless_transform__")
    ctx.reads.saw(found)
    return _static(ctx, found)


def _vmapped(ctx: Context, origin: Origin, name: str) -> Value:
    """The result of a tp.vmap of the surroundings: mapped here."""
    from tapeless.frontend.mapping import op_vmap

    def part(attribute: str) -> Value:
        return from_python(ctx, ctx.reads.step(origin, "field", attribute), f"{name}.{attribute}")

    return op_vmap(ctx, [part("f"), part("in_axes"), part("out_axes")], {})


def _known(value: Any) -> bool:
    from tapeless.frontend.functions import find_handler

    return find_handler(value) is not None


def _watch_type(ctx: Context, origin: Origin, name: str) -> None:
    """A container may be replaced by one like it; one of another type is something else."""
    ctx.reads.saw(origin)
    watch(ctx, ctx.reads.step(origin, "type"), f"type({name})")


def watch(ctx: Context, origin: Origin, name: str) -> None:
    """Whatever was resolved by name is compared at each call (`frontend.guards`)."""
    ctx.reads.saw(origin)
    if not ctx.inside_prelude:
        ctx.reads.watch(origin, name)
        ctx.watches.setdefault(origin.path, Watch(origin, name))


def _numpy_scalar(ctx: Context, origin: Origin, name: str) -> Value:
    kind = np.asarray(origin.value).dtype
    dtype = FROM_NUMPY.get(kind)
    if dtype is None:
        ctx.fail("TP109", f"'{name}' has the element type {kind}, which is not supported", _dtype_hint())
    watch(ctx, origin, name)
    return Scalar(const(origin.value, dtype))


def _captured_array(ctx: Context, origin: Origin, name: str) -> Value:
    value = origin.value
    ctx.reads.saw(origin)
    found = ctx.captured.get(id(value))
    if found is not None:
        if origin.path != found.origin.path:  # one array by two names, as long as both refer to it
            watch(ctx, found.origin, found.name)
            watch(ctx, origin, name)
        return Array(found.cell, found.param.type)
    if value.ndim == 0:
        return _numpy_scalar(ctx, ctx.reads.step(origin, "number"), name)
    dtype = FROM_NUMPY.get(value.dtype.newbyteorder("="))
    if dtype is None:
        ctx.fail("TP109", f"'{name}' is an array of {value.dtype}, which is not supported", _dtype_hint())
    raise NewCapture(origin, name)


class NewCapture(Exception):
    """An array of the surroundings was met: tracing starts again with it among the parameters, known on every path."""

    def __init__(self, origin: Origin, name: str, fixed: bool = False) -> None:
        super().__init__(name)
        self.origin, self.name, self.fixed = origin, name, fixed


def capture(ctx: Context, origin: Origin, name: str, fixed: bool = False) -> None:
    """Makes an array of the surroundings a hidden parameter. `fixed`: its size never changes."""
    value = origin.value
    dtype = FROM_NUMPY[value.dtype.newbyteorder("=")]
    shape: list[int | Var] = []
    for d in value.shape:
        if d == 1 or fixed:
            shape.append(d)
        else:
            var = Var(f"{name}_n", Type(DType.i64))
            ctx.sizes.append(var)
            shape.append(var)
    param = Var(name.replace(".", "_"), Type(dtype, tuple(shape)))
    reason = "" if value.flags.writeable else f"'{name}' is a read-only array"
    cell = Cell(name, argument=True, readonly=reason, scattered=not value.flags.c_contiguous)
    ctx.captured[id(value)] = Captured(origin, param, cell, name)
    ctx.state.cells[cell] = param


def _dtype_hint() -> str:
    return "use float32, float64, int32, int64, bool, complex64 or complex128."


# -- attributes


def attribute(ctx: Context, base: Value, name: str) -> Value:
    match base:
        case Static(value=types.ModuleType() as module):
            if not _has(ctx, module, name):
                ctx.fail("TP103", f"module '{module.__name__}' has no attribute '{name}'", similar(name, dir(module)))
            holder = ctx.reads.module(module)
            return from_python(ctx, ctx.reads.step(holder, "attribute", name), f"{module.__name__}.{name}")
        case Static(value=type() as cls) if _has(ctx, cls, name):
            return from_python(ctx, _part(ctx, cls, name), f"{cls.__name__}.{name}")
        case Array():
            return _array_attribute(ctx, base, name)
        case Scalar():
            return _scalar_attribute(ctx, base, name)
        case Sequence_(keys=keys, kind=kind) if kind in ("namedtuple", "dataclass") and name in keys:
            return base.items[keys.index(name)]
        case Sequence_(kind="dict") if name in ("keys", "values", "items", "get"):
            return Method(base, name)
        case Static(value=obj) if obj is not None and not isinstance(obj, str) and _has(ctx, obj, name):
            return from_python(ctx, _part(ctx, obj, name), f"{type(obj).__name__}.{name}")
    if isinstance(base, Sequence_) and base.kind == "list" and name in ("append", "extend", "insert", "pop"):
        ctx.fail(
            "TP101",
            f"lists cannot grow in compiled code ('{name}')",
            "allocate an array with np.empty and keep a count.",
        )
    refuse_attribute(ctx, base, name)


def _has(ctx: Context, holder: Any, name: str) -> bool:
    try:
        return hasattr(holder, name)
    except Exception as problem:
        ctx.fail("TP103", f"reading '{name}' of {object_text(holder)} raises {type(problem).__name__}: {problem}")


def _part(ctx: Context, holder: Any, name: str) -> Origin:
    return ctx.reads.step(ctx.reads.origin_of(holder), "attribute", name)


def _array_attribute(ctx: Context, array: Array, name: str) -> Value:
    t = array.type
    match name:
        case "shape":
            return Sequence_(tuple(Scalar(ctx.size_atom(d), True) for d in t.shape))
        case "ndim":
            return weak(t.rank)
        case "dtype":
            return Static(t.dtype.numpy)
        case "size":
            from tapeless.frontend.creation import total_size

            return Scalar(total_size(ctx, t.shape), True)
        case "T":
            return transpose(ctx, array, tuple(reversed(range(t.rank))))
        case "nbytes" | "itemsize":
            if name == "itemsize":
                return weak(t.dtype.bytes)
        case "real" | "imag":
            from tapeless.frontend.functions import call_numpy

            return call_numpy(ctx, name, [array])
        case _:
            from tapeless.frontend.functions import ARRAY_METHODS

            if name in ARRAY_METHODS:
                return Method(array, name)
    refuse_attribute(ctx, array, name)


def _scalar_attribute(ctx: Context, value: Scalar, name: str) -> Value:
    from tapeless.frontend.functions import ARRAY_METHODS, call_numpy

    match name:
        case "real" | "imag":
            return call_numpy(ctx, name, [value])
        case "dtype" if not value.weak:
            return Static(value.dtype.numpy)
        case "shape" if not value.weak:
            return Sequence_(())
        case "ndim" if not value.weak:
            return weak(0)
        case "size" if not value.weak:
            return weak(1)
        case "T" if not value.weak:
            return value
        case _ if name in ("conjugate", "is_integer") or (name in ARRAY_METHODS and not value.weak):
            return Method(value, name)
    refuse_attribute(ctx, value, name)
