"""What classes of dataclasses and NamedTuples define: methods, properties and Python's operators.

Takes a container and a name; gives what the class has under it, bound to the container. `special` calls one of Python's
special methods. Methods that `dataclass` and `NamedTuple` write themselves do not count: containers know what they mean.
"""

from __future__ import annotations

import inspect
import sys
import types

from tapeless.frontend.data.atoms import logical_not
from tapeless.frontend.source.marks import FIXED
from tapeless.frontend.source.origins import UNRECORDED, Origin, made_here
from tapeless.frontend.source.plain_objects import ARITHMETIC, COMPARISONS
from tapeless.frontend.state.context import Context
from tapeless.frontend.state.handlers import call_value
from tapeless.frontend.state.surroundings import from_python
from tapeless.frontend.state.values import Builtin, Scalar, Sequence_, Static, Value
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
            return None if is_generated(found) else _bound(value, from_python(ctx, _part(ctx, cls, name), text), name)
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
    return _bound(Static(cls), from_python(ctx, origin, f"{cls.__name__}.{name}"), name)


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


def _bound(receiver: Value, function: Value, name: str) -> Value:
    return Builtin(name, lambda ctx, args, keywords: call_value(ctx, function, [receiver, *args], keywords))


def special(ctx: Context, name: str, value: Value, *args: Value) -> Value | None:
    """The result of a special method. None where there is none or it answers NotImplemented."""
    if not has_special(value, name):
        return None
    assert isinstance(value, Sequence_)
    method = attribute_of_class(ctx, value, name)
    if method is None:
        return None
    result = call_value(ctx, method, args)
    return None if result == Static(NotImplemented) else result


def has_special(value: Value, name: str) -> bool:
    if not isinstance(value, Sequence_) or value.cls is None:
        return False
    found = getattr(value.cls, name, None)
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
