"""Attributes: what modules, types, arrays, numbers and containers offer.

Takes a value and a name; gives a value. What is read of the surroundings goes through `surroundings`.
"""

from __future__ import annotations

import types
from collections.abc import Iterable
from typing import Any

from tapeless.frontend.data.arrays import transpose
from tapeless.frontend.data.classes import (
    Super,
    attribute_of_class,
    attribute_of_object,
    attribute_of_super,
    class_method,
)
from tapeless.frontend.data.dimensions import total_size
from tapeless.frontend.numpy.methods import ARRAY_METHODS, OF_NUMBERS, REFUSED
from tapeless.frontend.python.dict_methods import OF_DICTS
from tapeless.frontend.python.list_methods import OF_DEQUES, OF_LISTS
from tapeless.frontend.python.records import replaced
from tapeless.frontend.python.string_methods import METHODS as STRING_METHODS
from tapeless.frontend.source.origins import Origin
from tapeless.frontend.state.context import Context, object_text
from tapeless.frontend.state.handlers import BOUND, call_numpy, find_handler
from tapeless.frontend.state.parts import is_deque
from tapeless.frontend.state.refusals import refuse_attribute, refuse_name
from tapeless.frontend.state.surroundings import Instance, from_python
from tapeless.frontend.state.values import Array, Builtin, Grown, Method, Scalar, Sequence_, Static, Value, weak


def attribute(ctx: Context, base: Value, name: str) -> Value:
    name = _mangled(ctx, name)
    match base:
        case Static(value=types.ModuleType() as module):
            if not _has(ctx, module, name):
                refuse_name(ctx, module, name)
            holder = ctx.reads.module(module)
            return from_python(ctx, ctx.reads.step(holder, "attribute", name), f"{module.__name__}.{name}")
        case Static(value=type() as cls) if _has(ctx, cls, name):
            bound = class_method(ctx, cls, name)
            return bound or from_python(ctx, _part(ctx, cls, name), f"{cls.__name__}.{name}")
        case Array():
            return _array_attribute(ctx, base, name)
        case Scalar():
            return _scalar_attribute(ctx, base, name)
        case Sequence_(keys=keys, kind=kind) if kind in ("namedtuple", "dataclass") and name in keys:
            return base.items[keys.index(name)]
        case Sequence_(kind="namedtuple") if name == "_replace":
            return Builtin(name, lambda ctx, args, keywords: replaced(ctx, base, keywords))
        case Sequence_(kind="namedtuple") if name == "_asdict":
            return Builtin(name, lambda ctx, args, keywords: Sequence_(base.items, "dict", base.keys))
        case Sequence_(kind="dict") if name in OF_DICTS:
            return Method(base, name)
        case Sequence_(kind="list") | Grown() if name in (OF_DEQUES if is_deque(base) else OF_LISTS):
            return Method(base, name)
        case Sequence_(kind="tuple", ref=None) if name in ("index", "count"):
            return Method(base, name)
        case Sequence_(cls=cls) if cls is not None and (found := attribute_of_class(ctx, base, name)) is not None:
            return found
        case Static(value=Super() as given):
            return attribute_of_super(ctx, given, name)
        case Instance() if (found := attribute_of_object(ctx, base, name)) is not None:
            return found
        case Static(value=str()) if name in STRING_METHODS:
            return Method(base, name)
        case Static(value=obj) if obj is not None and not isinstance(obj, str) and _has(ctx, obj, name):
            return from_python(ctx, _part(ctx, obj, name), f"{type(obj).__name__}.{name}")
    refuse_attribute(ctx, base, name, _offered(base))


def _mangled(ctx: Context, name: str) -> str:
    """In the methods of a class, Python has another name for `__x`."""
    if not name.startswith("__") or name.endswith("__") or ctx.frame not in ctx.frames:
        return name
    path = str(ctx.frames[ctx.frame].function.value.__qualname__).split(".")
    cls = path[-2] if len(path) > 1 else ""
    return f"_{cls.lstrip('_')}{name}" if cls.strip("_") not in ("", "<locals>") else name


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
            return Scalar(total_size(ctx, t.shape), True)
        case "T":
            return transpose(ctx, array, tuple(reversed(range(t.rank))))
        case "nbytes" | "itemsize":
            if name == "itemsize":
                return weak(t.dtype.bytes)
        case "real" | "imag":
            return call_numpy(ctx, name, [array])
        case _:
            if name in ARRAY_METHODS:
                return Method(array, name)
    refuse_attribute(ctx, array, name, _offered(array))


def _scalar_attribute(ctx: Context, value: Scalar, name: str) -> Value:
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
        case _ if name in {"conjugate", *OF_NUMBERS} or (name in ARRAY_METHODS and not value.weak):
            return Method(value, name)
    refuse_attribute(ctx, value, name, _offered(value))


OF_ARRAYS = {*ARRAY_METHODS - REFUSED.keys(), "shape", "ndim", "dtype", "size", "T", "itemsize", "real", "imag"}


def _offered(base: Value) -> Iterable[str]:
    """The attributes that a value has in compiled code."""
    match base:
        case Array():
            return OF_ARRAYS
        case Scalar(weak=is_weak):
            return {"real", "imag", "conjugate", *OF_NUMBERS} if is_weak else OF_ARRAYS - {"itemsize"}
        case Sequence_(kind="dict"):
            return OF_DICTS.keys()
        case Sequence_(kind="list") | Grown():
            return OF_LISTS.keys()
        case Sequence_(kind="tuple", ref=None):
            return ("index", "count")
        case Sequence_(keys=keys):
            return map(str, keys)
        case Static(value=str()):
            return STRING_METHODS
        case Static(value=obj) if isinstance(obj, tuple(BOUND)):
            return [n for n in dir(obj) if not n.startswith("_") and find_handler(getattr(obj, n, None)) is not None]
        case Static(value=obj):
            return dir(obj)
        case _:
            return ()
