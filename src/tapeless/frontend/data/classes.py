"""What classes define: methods, properties and Python's operators; of dataclasses, NamedTuples and other objects.

Takes a container or an object and a name; gives what the class has under it, bound to that. `special` calls one of
Python's special methods. Methods that `dataclass` and `NamedTuple` write themselves do not count: containers know what
they mean.

Note [Objects]
A dataclass or a NamedTuple is a container of its fields. Any other object of the user's is known at compile time, as a
module is: it must be the very same at each call, and what is read of it is watched. Numbers and texts are constants,
arrays are hidden arguments whose contents are read at each call. A name is looked up as Python does it: properties, then
what the object itself has, then its class and those it inherits from. A method is watched through the object, which may
get an attribute of the same name later. Attributes cannot be assigned: there would be no telling when.
"""

from __future__ import annotations

import ast
import inspect
import sys
import types

from tapeless.frontend.data.atoms import logical_not
from tapeless.frontend.source.marks import FIXED, peek
from tapeless.frontend.source.origins import UNRECORDED, Origin, made_here
from tapeless.frontend.source.plain_objects import ARITHMETIC, COMPARISONS
from tapeless.frontend.state.context import Context, type_text
from tapeless.frontend.state.handlers import call_value, called, register
from tapeless.frontend.state.surroundings import Instance, bound, from_python
from tapeless.frontend.state.values import Scalar, Sequence_, Static, Value
from tapeless.ir.types import DType


def is_generated(function: object) -> bool:
    """Whether `dataclass` or `NamedTuple` wrote the function."""
    code = getattr(function, "__code__", None)
    return code is None or code.co_filename == "<string>"


def attribute_of_class(ctx: Context, value: Sequence_, name: str) -> Value | None:
    """A method, bound; what a property gives; a constant of the class. None where the class has nothing of that name."""
    cls = value.cls
    found = inspect.getattr_static(cls, name, None) if cls is not None else None
    if found is None or type(found) in (types.MemberDescriptorType, types.GetSetDescriptorType):
        return None
    text = f"{cls.__name__}.{name}"
    match found:
        case types.FunctionType():
            return None if is_generated(found) else bound(value, from_python(ctx, _part(ctx, cls, name), text), name)
        case property(fget=types.FunctionType() as getter):
            return call_value(ctx, from_python(ctx, _inside(ctx, cls, name, "fget", getter), text), [value])
        case staticmethod():
            return from_python(ctx, _part(ctx, cls, name), text)
        case classmethod():
            return class_method(ctx, cls, name)
        case _ if hasattr(type(found), "__get__"):
            return None
    return from_python(ctx, _part(ctx, cls, name), text)


def class_method(ctx: Context, cls: type, name: str) -> Value | None:
    found = inspect.getattr_static(cls, name, None)
    if not isinstance(found, classmethod) or not isinstance(found.__func__, types.FunctionType):
        return None
    origin = _inside(ctx, cls, name, "__func__", found.__func__)
    return bound(Static(cls), from_python(ctx, origin, f"{cls.__name__}.{name}"), name)


def _part(ctx: Context, cls: type, name: str) -> Origin:
    if cls.__module__.partition(".")[0] in FIXED:
        return made_here(getattr(cls, name))
    return ctx.reads.step(_origin(ctx, cls), "field", name)


def _inside(ctx: Context, cls: type, name: str, part: str, function: types.FunctionType) -> Origin:
    """The function of a property or class method."""
    holder = _part(ctx, cls, name)
    return made_here(function) if holder.number == UNRECORDED else ctx.reads.step(holder, "field", part)


def _origin(ctx: Context, cls: type) -> Origin:
    """The class, from its module where that has it by name."""
    module = sys.modules.get(cls.__module__)
    if module is not None and getattr(module, cls.__qualname__, None) is cls:
        found = ctx.reads.step(ctx.reads.module(module), "attribute", cls.__qualname__)
        ctx.reads.saw(found)
        return found
    return ctx.reads.origin_of(cls)


# -- objects


def attribute_of_object(ctx: Context, value: Instance, name: str) -> Value | None:
    """Note [Objects]. None where that says nothing: then it is read by Python."""
    obj = value.value
    cls: type = type(obj)
    if _in_class(cls, "__getattribute__") is not vars(object)["__getattribute__"]:
        return None
    origin, text = ctx.reads.origin_of(obj), f"{cls.__name__}.{name}"
    found = _in_class(cls, name)
    if isinstance(found, property):
        if not _is_compiled(found.fget) or "-packages" in _file_of(found.fget):  # of other packages: its value
            return None
        return call_value(ctx, from_python(ctx, ctx.reads.step(origin, "getter", name), text), [value])
    if name in getattr(obj, "__dict__", ()) or not _is_compiled(found):
        return None
    return bound(value, from_python(ctx, ctx.reads.step(origin, "method", name), text), name, getattr(obj, name))


def _is_compiled(function: object) -> bool:
    """A function, or a tp.function."""
    return isinstance(function, types.FunctionType) or isinstance(peek(function, "python"), types.FunctionType)


def _file_of(function: object) -> str:
    code = peek(peek(function, "python") or function, "__code__")
    return str(peek(code, "co_filename"))


def _in_class(cls: type, name: str) -> object:
    """What a class has or inherits under a name."""
    return next((vars(c)[name] for c in cls.__mro__ if name in vars(c)), None)


@called(Instance, Sequence_)
def _call_object(ctx: Context, function: Instance | Sequence_, args: list[Value], keywords: dict[str, Value]) -> Value:
    """An object whose class has a `__call__`."""
    cls = type(function.value) if isinstance(function, Instance) else function.cls
    own = None if cls is None else _in_class(cls, "__call__")
    if not _is_compiled(own):
        ctx.fail("TP104", f"{type_text(function)} cannot be called")
    return call_value(ctx, from_python(ctx, _part(ctx, cls, "__call__"), cls.__name__), [function, *args], keywords)


class Super:
    """super(): the classes behind `after`, for a method of `receiver`."""

    def __init__(self, cls: type, after: type, receiver: Value) -> None:
        self.cls, self.after, self.receiver = cls, after, receiver


NAME_IT = "name the class: Base.method(self)."


def _super(ctx: Context, args: list[Value], keywords: dict[str, Value]) -> Value:
    frame = ctx.frames[ctx.frame]
    code, cells = frame.function.value.__code__, frame.function.value.__closure__ or ()
    if args or keywords or frame.code.__class__ is not ast.FunctionDef or "__class__" not in code.co_freevars:
        ctx.fail("TP103", "only super() without arguments, in a method, can be compiled", NAME_IT)
    after = cells[code.co_freevars.index("__class__")].cell_contents
    receiver = ctx.state.names.get((ctx.frame, code.co_varnames[0]))
    match receiver:
        case Sequence_(cls=type() as cls) | Static(value=type() as cls):
            pass
        case Instance(value=obj):
            cls = type(obj)
        case _:
            ctx.fail("TP103", "super() is not in a method of a class here", NAME_IT)
    return Static(Super(cls, after, receiver))


register("super", _super)


def attribute_of_super(ctx: Context, given: Super, name: str) -> Value:
    order = given.cls.__mro__
    behind = order[order.index(given.after) + 1 :]
    holder = next((c for c in behind if name in vars(c)), object)
    found = vars(holder).get(name)
    text = f"{holder.__name__}.{name}"
    match found:
        case types.FunctionType():
            return bound(given.receiver, from_python(ctx, _part(ctx, holder, name), text), name)
        case property(fget=types.FunctionType() as getter):
            getter_origin = _inside(ctx, holder, name, "fget", getter)
            return call_value(ctx, from_python(ctx, getter_origin, text), [given.receiver])
        case staticmethod():
            return from_python(ctx, _part(ctx, holder, name), text)
        case classmethod(__func__=types.FunctionType() as function):
            own = Static(given.cls)
            return bound(own, from_python(ctx, _inside(ctx, holder, name, "__func__", function), text), name)
    ctx.fail("TP103", f"super() of '{given.after.__name__}' has no method '{name}' that can be compiled")


# -- Python's special methods


def special(ctx: Context, name: str, value: Value, *args: Value) -> Value | None:
    """The result of a special method. None where there is none or it answers NotImplemented."""
    if not has_special(value, name):
        return None
    method = _method_of_class(ctx, value, name)
    if method is None:
        return None
    result = call_value(ctx, method, args)
    return None if result == Static(NotImplemented) else result


def _method_of_class(ctx: Context, value: Value, name: str) -> Value | None:
    if isinstance(value, Sequence_):
        return attribute_of_class(ctx, value, name)
    assert isinstance(value, Instance)
    cls = type(value.value)
    return bound(value, from_python(ctx, _part(ctx, cls, name), f"{cls.__name__}.{name}"), name)


def has_special(value: Value, name: str) -> bool:
    cls = type(value.value) if isinstance(value, Instance) else value.cls if isinstance(value, Sequence_) else None
    if cls is None:
        return False
    found = getattr(cls, name, None)
    return isinstance(found, types.FunctionType) and not is_generated(found)


def operated(ctx: Context, operator: str, a: Value, b: Value) -> Value | None:
    """a + b and the like where the class of one of them says what it is; None where neither does."""
    name = ARITHMETIC[operator]
    return _first(ctx, f"__{name}__", a, b, f"__r{name}__")


def updated(ctx: Context, operator: str, a: Value, b: Value) -> Value | None:
    """a += b and the like where the class of `a` says what it is."""
    return special(ctx, f"__i{ARITHMETIC[operator]}__", a, b)


def compared(ctx: Context, operator: str, a: Value, b: Value) -> Value | None:
    there, back = COMPARISONS[operator]
    result = _first(ctx, there, a, b, back)
    if result is not None or operator != "NotEq":
        return result
    same = compared(ctx, "Eq", a, b)  # Python's own != is the opposite of ==
    if not isinstance(same, Scalar) or same.dtype is not DType.bool:
        return None
    return Scalar(logical_not(ctx, same.atom), True)


def _first(ctx: Context, there: str, a: Value, b: Value, back: str) -> Value | None:
    result = special(ctx, there, a, b)
    return special(ctx, back, b, a) if result is None else result
