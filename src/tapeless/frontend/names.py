"""Names and attributes: local variables, enclosing functions, globals, modules, and what arrays and containers offer.

Values of the surroundings are read at compile time and watched; arrays of the surroundings become hidden arguments.
"""

from __future__ import annotations

import builtins
import dataclasses
import types
from collections.abc import Callable
from typing import Any

import numpy as np

from tapeless.frontend.arrays import transpose
from tapeless.frontend.context import Captured, Context, Watch, type_text
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

Get = Callable[[], Any]
STABLE = ("numpy", "scipy", "math", "cmath", "tapeless")  # modules whose contents nobody replaces


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
    if name in frame.closure:
        cell = frame.closure[name]
        try:
            value = cell.cell_contents
        except ValueError:
            ctx.fail("TP102", f"'{name}' has no value yet in the enclosing function")
        ctx.scope = id(cell)
        return from_python(ctx, value, lambda: cell.cell_contents, name)
    if name in frame.globals:
        table = frame.globals
        ctx.scope = id(table)
        return from_python(ctx, table[name], lambda: table[name], name)
    if hasattr(builtins, name):
        return Static(getattr(builtins, name))
    ctx.fail("TP102", f"the name '{name}' is not defined")


def from_python(ctx: Context, value: Any, get: Get, name: str) -> Value:
    """A value of the surroundings."""
    match value:
        case None | str() | types.ModuleType() | type() | types.BuiltinFunctionType() | np.ufunc():
            if not isinstance(value, types.ModuleType) and name.partition(".")[0] not in STABLE:
                _watch(ctx, value, get, name)
            return Static(value)
        case bool() | int() | float() | complex():
            if isinstance(value, np.generic):  # np.float64 is a float
                return _numpy_scalar(ctx, value, get, name)
            _watch(ctx, value, get, name)
            if isinstance(value, int) and not -(2**63) <= value < 2**63:
                ctx.fail("TP109", f"'{name}' = {value} does not fit into 64 bits", "make it a float.")
            return weak(value)
        case np.generic():
            return _numpy_scalar(ctx, value, get, name)
        case np.ndarray():
            return _captured_array(ctx, value, get, name)
        case types.FunctionType():
            from tapeless.frontend.calls import python_function

            if getattr(value, "__tapeless__", None) or _known(value):
                return Static(value)
            _watch(ctx, value, get, name)
            return python_function(ctx, value)
        case tuple() | list():
            items = tuple(
                from_python(ctx, item, lambda k=k: get()[k], f"{name}[{k}]")  # type: ignore[misc]
                for k, item in enumerate(value)
            )
            _watch(ctx, len(value), lambda: len(get()), f"len({name})")
            if hasattr(value, "_fields"):
                return Sequence_(items, "namedtuple", tuple(value._fields), type(value))
            return Sequence_(items, "tuple" if isinstance(value, tuple) else "list")
        case dict():
            keys = tuple(value)
            _watch(ctx, keys, lambda: tuple(get()), f"keys of {name}")
            items = tuple(
                from_python(ctx, value[k], lambda k=k: get()[k], f"{name}[{k!r}]")  # type: ignore[misc]
                for k in keys
            )
            return Sequence_(items, "dict", keys)
    if dataclasses.is_dataclass(value):
        fields = tuple(f.name for f in dataclasses.fields(value))
        items = tuple(
            from_python(ctx, getattr(value, f), lambda f=f: getattr(get(), f), f"{name}.{f}")  # type: ignore[misc]
            for f in fields
        )
        return Sequence_(items, "dataclass", fields, type(value))
    python = getattr(value, "python", None)
    if isinstance(python, types.FunctionType):  # a tp.function
        from tapeless.frontend.calls import python_function

        _watch(ctx, value, get, name)
        transform = getattr(python, "__tapeless_transform__", None)
        return python_function(ctx, python) if transform is None else Static(transform)
    _watch(ctx, value, get, name)
    if getattr(value, "__tapeless__", None) == "vmapped":
        return _vmapped(ctx, value, get, name)
    return Static(value)


def _vmapped(ctx: Context, value: Any, get: Get, name: str) -> Value:
    """The result of a tp.vmap of the surroundings: mapped here."""
    from tapeless.frontend.mapping import op_vmap

    def part(attribute: str) -> Value:
        return from_python(ctx, getattr(value, attribute), lambda: getattr(get(), attribute), f"{name}.{attribute}")

    return op_vmap(ctx, [part("f"), part("in_axes"), part("out_axes")], {})


def _known(value: Any) -> bool:
    from tapeless.frontend.functions import find_handler

    return find_handler(value) is not None


def _watch(ctx: Context, value: Any, get: Get, name: str) -> None:
    if not ctx.inside_prelude:
        ctx.watches.setdefault((ctx.scope, name), Watch(get, value, name))


def _numpy_scalar(ctx: Context, value: Any, get: Get, name: str) -> Value:
    dtype = FROM_NUMPY.get(np.asarray(value).dtype)
    if dtype is None:
        ctx.fail(
            "TP109", f"'{name}' has the element type {np.asarray(value).dtype}, which is not supported", _dtype_hint()
        )
    _watch(ctx, value, get, name)
    return Scalar(const(value, dtype))


def _captured_array(ctx: Context, value: Any, get: Get, name: str) -> Value:
    found = ctx.captured.get(id(value))
    if found is not None:
        return Array(found.cell, found.param.type)
    if value.ndim == 0:
        return _numpy_scalar(ctx, value[()], lambda: get()[()], name)
    dtype = FROM_NUMPY.get(value.dtype.newbyteorder("="))
    if dtype is None:
        ctx.fail("TP109", f"'{name}' is an array of {value.dtype}, which is not supported", _dtype_hint())
    raise NewCapture(value, get, name)


class NewCapture(Exception):
    """An array of the surroundings was met: tracing starts again with it among the parameters, known on every path."""

    def __init__(self, value: Any, get: Get, name: str) -> None:
        super().__init__(name)
        self.value, self.get, self.name = value, get, name


def capture(ctx: Context, value: Any, get: Get, name: str) -> None:
    """Makes an array of the surroundings a hidden parameter."""
    dtype = FROM_NUMPY[value.dtype.newbyteorder("=")]
    shape: list[int | Var] = []
    for d in value.shape:
        if d == 1:
            shape.append(1)
        else:
            var = Var(f"{name}_n", Type(DType.i64))
            ctx.sizes.append(var)
            shape.append(var)
    param = Var(name.replace(".", "_"), Type(dtype, tuple(shape)))
    reason = "" if value.flags.writeable else f"'{name}' is a read-only array"
    cell = Cell(name, argument=True, readonly=reason, scattered=not value.flags.c_contiguous)
    ctx.captured[id(value)] = Captured(get, param, cell, name)
    ctx.state.cells[cell] = param


def _dtype_hint() -> str:
    return "use float32, float64, int32, int64, bool, complex64 or complex128."


# -- attributes


def attribute(ctx: Context, base: Value, name: str) -> Value:
    match base:
        case Static(value=types.ModuleType() as module):
            if not hasattr(module, name):
                ctx.fail("TP103", f"module '{module.__name__}' has no attribute '{name}'")
            value = getattr(module, name)
            return from_python(ctx, value, lambda: getattr(module, name), f"{module.__name__}.{name}")
        case Static(value=type() as cls) if hasattr(cls, name):
            return from_python(ctx, getattr(cls, name), lambda: getattr(cls, name), f"{cls.__name__}.{name}")
        case Array():
            return _array_attribute(ctx, base, name)
        case Scalar():
            return _scalar_attribute(ctx, base, name)
        case Sequence_(keys=keys, kind=kind) if kind in ("namedtuple", "dataclass") and name in keys:
            return base.items[keys.index(name)]
        case Sequence_(kind="dict") if name in ("keys", "values", "items", "get"):
            return Method(base, name)
        case Static(value=obj) if obj is not None and not isinstance(obj, str) and hasattr(obj, name):
            return from_python(ctx, getattr(obj, name), lambda: getattr(obj, name), f"{type(obj).__name__}.{name}")
    if isinstance(base, Sequence_) and base.kind == "list" and name in ("append", "extend", "insert", "pop"):
        ctx.fail(
            "TP101",
            f"lists cannot grow in compiled code ('{name}')",
            "allocate an array with np.empty and keep a count.",
        )
    ctx.fail("TP103", f"{type_text(base)} has no attribute '{name}' that can be compiled")


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
    ctx.fail("TP103", f"arrays have no attribute '{name}' that can be compiled")


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
        case _ if name in ARRAY_METHODS or name in ("conjugate", "is_integer"):
            return Method(value, name)
    ctx.fail("TP103", f"{type_text(value)} has no attribute '{name}' that can be compiled")
