"""What a function sees outside of itself: names of enclosing functions, globals, and the Python objects behind them.

Gives `lookup` of a name, and `from_python`, the value of an object. Values are read at compile time and watched; arrays
become hidden arguments (`captures`), functions of the user become closures, methods are bound to their objects.
"""

from __future__ import annotations

import ast
import contextlib
import dataclasses
import functools
import sys
import types
import weakref

import numpy as np

from tapeless.errors import CompileError
from tapeless.frontend.source import sources
from tapeless.frontend.source.foreign_arrays import Unreadable, is_foreign
from tapeless.frontend.source.marks import FIXED, is_short, peek
from tapeless.frontend.source.origins import NUMBERS, Origin, stays
from tapeless.frontend.source.plain_objects import plain_hint, refused
from tapeless.frontend.state.advice import ELEMENT_TYPES
from tapeless.frontend.state.captures import NewCapture
from tapeless.frontend.state.code_copies import MOST_NUMBERS, SHORT, refuse_long
from tapeless.frontend.state.context import Context, Watch, whole_number
from tapeless.frontend.state.handlers import OPERATORS, call_value, find_handler
from tapeless.frontend.state.refusals import is_library, refuse_call
from tapeless.frontend.state.values import (
    Array,
    Builtin,
    Closure,
    MaybeUndefined,
    Scalar,
    Sequence_,
    SliceValue,
    Static,
    Value,
    weak,
)
from tapeless.ir import containers
from tapeless.ir.node import node
from tapeless.ir.types import FROM_NUMPY, const


@node(frozen=True, eq=False)
class Instance(Static):
    """An object of a class of the user. `frontend.data.classes` says what its attributes are."""

    def __eq__(self, other: object) -> bool:
        return isinstance(other, Instance) and self.value is other.value

    def __hash__(self) -> int:
        return id(self.value)


def lookup(ctx: Context, name: str) -> Value:
    frame = ctx.frames[ctx.frame]
    number = ctx.frame
    while number >= 0:  # this function, then the compiled functions around it
        key = (number, name)
        if key in ctx.state.names:
            value = ctx.state.names[key]
            if isinstance(value, MaybeUndefined):
                ctx.doubted.add(key)
            return ctx.use(value, name)
        if name in ctx.frames[number].locals:
            ctx.without_value(key)
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
    if refused(value):  # Note [Subclasses] in source/plain_objects.py
        ctx.fail("TP109", f"'{name}' is {refused(value)}, which is not supported", plain_hint(value))
    match value:
        case None | str() | types.ModuleType() | type() | types.BuiltinFunctionType() | np.ufunc():
            watch(ctx, origin, name)
            return _static(ctx, origin)
        case bool() | int() | float() | complex():
            if isinstance(value, np.generic):  # np.float64 is a float
                return _numpy_scalar(ctx, origin, name)
            watch(ctx, origin, name)
            return whole_number(ctx, value, f"'{name}' = {value}") if isinstance(value, int) else weak(value)
        case np.generic():
            return _numpy_scalar(ctx, origin, name)
        case slice():
            _watch_type(ctx, origin, name)
            ends = [from_python(ctx, reads.step(origin, "field", f), f"{name}.{f}") for f in ("start", "stop", "step")]
            return SliceValue(*(None if end == Static(None) else end for end in ends))
        case np.ndarray():
            return _captured_array(ctx, origin, name)
        case types.FunctionType():
            if getattr(value, "__tapeless__", None) or find_handler(value) is not None:
                watch(ctx, origin, name)
                return _static(ctx, origin)
            watch(ctx, origin, name)
            return python_function(ctx, origin)
        case types.MethodType() if _is_written(value):
            return _method(ctx, origin, name)
        case functools.partial() if type(value) is functools.partial and find_handler(value) is None:
            return _partial(ctx, origin, name)
        case functools._lru_cache_wrapper() if find_handler(value) is None:  # gives what the function gives
            watch(ctx, origin, name)
            return from_python(ctx, reads.step(origin, "attribute", "__wrapped__"), name)
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
    if peek(value, "__tapeless__") == "bound":
        return _method(ctx, origin, name)
    if is_foreign(value):
        return _foreign_array(ctx, origin, name)
    found = containers.stand_in_of(type(value))
    if found is not None:  # of a library
        _watch_type(ctx, origin, name)
        items = tuple(from_python(ctx, reads.step(origin, "field", f), f"{name}.{f}") for f in found[1])
        return Sequence_(items, "dataclass", found[1], found[0])
    watch(ctx, origin, name)
    if find_handler(value) is None and isinstance(peek(value, "python"), types.FunctionType):  # a tp.function
        python = reads.step(origin, "attribute", "python")
        return transform_of(ctx, python) or python_function(ctx, python)
    if peek(value, "__tapeless__") == "vmapped":
        return _vmapped(ctx, origin, name)
    cls: type = type(value)
    if find_handler(value) is None and is_users(cls):
        reads.remember(origin)
        if hasattr(cls, "__bool__") or hasattr(cls, "__len__"):  # what `if` makes of it
            with contextlib.suppress(Exception):
                watch(ctx, reads.step(origin, "truth"), f"bool({name})")
        return Instance(value)
    return _static(ctx, origin)


def _is_written(method: types.MethodType) -> bool:
    """Whether it is a method of the user, which can be compiled."""
    function = method.__func__
    if find_handler(method) is not None:
        return False
    if isinstance(function, types.FunctionType):
        return not is_library(function.__code__.co_filename)
    return isinstance(peek(function, "python"), types.FunctionType)


_of_users: weakref.WeakKeyDictionary[type, bool] = weakref.WeakKeyDictionary()


def is_users(cls: type) -> bool:
    """Whether a class is written in Python, and by the user."""
    known = _of_users.get(cls)
    if known is None:
        module = sys.modules.get(cls.__module__)
        file = getattr(module, "__file__", None) or ""
        in_python = any(isinstance(v, types.FunctionType) for c in cls.__mro__[:-1] for v in vars(c).values())
        known = cls.__module__.partition(".")[0] not in FIXED and not is_library(file) and in_python
        _of_users[cls] = known
    return known


def _method(ctx: Context, origin: Origin, name: str) -> Value:
    """A method is made anew each time that it is asked for: its object and its function are watched."""
    _watch_type(ctx, origin, name)
    receiver = from_python(ctx, ctx.reads.step(origin, "field", "__self__"), f"{name}.__self__")
    function = from_python(ctx, ctx.reads.step(origin, "field", "__func__"), name)
    return bound(receiver, function, origin.value.__name__, origin.value)


def bound(receiver: Value, function: Value, name: str, python: object = None) -> Value:
    """A method."""
    names = positional(function.node)[1:] if isinstance(function, Closure) else []

    def call(ctx: Context, args: list[Value], keywords: dict[str, Value]) -> Value:
        return call_value(ctx, function, [receiver, *args], keywords)

    return Builtin(name, call, tuple(names), python)


def _partial(ctx: Context, origin: Origin, name: str) -> Value:
    """functools.partial(...) of the surroundings: arguments given now are read as any value is."""
    _watch_type(ctx, origin, name)

    def part(attribute: str) -> Value:
        return from_python(ctx, ctx.reads.step(origin, "field", attribute), f"{name}.{attribute}")

    function, first, named = part("func"), part("args"), part("keywords")
    assert isinstance(first, Sequence_) and isinstance(named, Sequence_)
    given = dict(zip(named.keys, named.items, strict=True))

    def call(ctx: Context, args: list[Value], keywords: dict[str, Value]) -> Value:
        return call_value(ctx, function, [*first.items, *args], {**given, **keywords})

    names = positional(function.node)[len(first.items) :] if isinstance(function, Closure) else []
    return Builtin(name, call, tuple(names), origin.value)


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

    def part(attribute: str) -> Value:
        return from_python(ctx, ctx.reads.step(origin, "field", attribute), f"{name}.{attribute}")

    return OPERATORS["vmap"](ctx, [part("f"), part("in_axes"), part("out_axes")], {})


def _watch_type(ctx: Context, origin: Origin, name: str) -> None:
    """A container may be replaced by one like it; one of another type is something else."""
    ctx.reads.saw(origin)
    watch(ctx, ctx.reads.step(origin, "type"), f"type({name})")


def watch(ctx: Context, origin: Origin, name: str) -> None:
    """Whatever was resolved by name is compared at each call (`frontend.guards`)."""
    ctx.reads.saw(origin)
    if not ctx.inside_prelude and not stays(origin):
        ctx.reads.watch(origin, name)
        ctx.watches.setdefault(origin.path, Watch(origin, name))


def _numpy_scalar(ctx: Context, origin: Origin, name: str) -> Value:
    kind = np.asarray(origin.value).dtype
    dtype = FROM_NUMPY.get(kind)
    if dtype is None:
        ctx.fail("TP109", f"'{name}' has the element type {kind}, which is not supported", ELEMENT_TYPES)
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
        ctx.fail("TP109", f"'{name}' is an array of {value.dtype}, which is not supported", ELEMENT_TYPES)
    raise NewCapture(origin, name, fixed=is_short(value) and not ctx.options.resized)


def _foreign_array(ctx: Context, origin: Origin, name: str) -> Value:
    """An array of another library, as NumPy sees it: Note [Arrays of other libraries]."""
    known = ctx.reads.arrays.get(id(origin.value))  # the trace may have started again
    if known is None:
        try:
            known = origin.value, ctx.reads.step(origin, "array")
        except Unreadable as problem:
            ctx.fail("TP109", f"'{name}' is {problem.what}, which is not supported", problem.hint)
        ctx.reads.arrays[id(origin.value)] = known
    first = known[1].parent
    if first is not None and first.path != origin.path:  # one array by two names, as long as both refer to it
        watch(ctx, first, name)
        watch(ctx, origin, name)
    return _captured_array(ctx, known[1], name)


def python_function(ctx: Context, origin: Origin) -> Closure:
    """A function object as something that can be compiled into a caller."""
    function = origin.value
    try:
        if function not in ctx.found:  # a function may be called many times
            ctx.found[function] = sources.find(function)
        source, node = ctx.found[function]
    except CompileError as error:
        if error.line:
            raise
        if is_library(function.__code__.co_filename):
            refuse_call(ctx, function, ())
        ctx.fail(error.code, error.reason, error.hint)
    ctx.reads.saw(origin, source.digest)
    ctx.reads.remember(origin)
    names = positional(node)
    defaults: dict[str, Value] = {}
    watch(ctx, ctx.reads.step(origin, "code"), f"{function.__name__}.__code__")
    given = function.__defaults__ or ()
    if given:  # without any, none can have been used
        watch(ctx, ctx.reads.step(origin, "defaults"), f"{function.__name__}.__defaults__")
    if function.__kwdefaults__:
        watch(ctx, ctx.reads.step(origin, "keyword defaults"), f"{function.__name__}.__kwdefaults__")
    for k, name in enumerate(names[len(names) - len(given) :]):
        defaults[name] = from_python(ctx, ctx.reads.step(origin, "default", k), f"{function.__name__}.{name}")
    for name in function.__kwdefaults__ or {}:
        defaults[name] = from_python(
            ctx, ctx.reads.step(origin, "keyword default", name), f"{function.__name__}.{name}"
        )
    return Closure(node, source, -1, tuple(defaults.items()), function.__name__, function)


def positional(node: ast.FunctionDef | ast.Lambda) -> list[str]:
    return [a.arg for a in (*node.args.posonlyargs, *node.args.args)]
