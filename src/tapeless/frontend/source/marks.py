"""What a value of the surroundings is, in a form that can be compared between processes.

`mark_of` takes a Python object and gives a tuple; equal marks mean that a trace would see the same. The parts of
containers and functions have marks of their own (`frontend.source.origins`). What cannot be told raises `Unknown`.
"""

from __future__ import annotations

import dataclasses
import sys
import types
from typing import Any

import numpy as np

from tapeless.frontend.source import sources
from tapeless.frontend.source.codes import fingerprint
from tapeless.frontend.source.plain_objects import refused
from tapeless.ir.pytree import TreeDef, class_of

Mark = tuple[Any, ...]
PLAIN = (bool, int, float, complex, str, type(None), type(Ellipsis))
FIXED = ("numpy", "scipy", "builtins", "math", "cmath", "operator", "tapeless")  # told apart by their versions
MOST_OF_A_TABLE = 64  # numbers
IDENTITY = ("array", "function", "transform", "known")  # the same object twice is not the same as two that are alike


class Unknown(Exception):
    """A value that another process could not recognise."""


class Keys(tuple[Any, ...]):
    """The keys of a dict, which are compared as a whole."""


def peek(value: Any, name: str) -> Any:
    """An attribute of a foreign object, None when it has none or will not tell."""
    try:
        return getattr(value, name, None)
    except Exception:
        return None


def is_short(array: np.ndarray[Any, Any]) -> bool:
    """Whether an array of the surroundings is a table of a few numbers, the sizes of which hardly ever change."""
    return 0 < array.size <= MOST_OF_A_TABLE


def by_identity(mark: Mark) -> bool:
    return mark[0] in IDENTITY


def mark_of(value: Any, text: str | None = None) -> Mark:
    """`text`: for a function, the digest of the source that was compiled; else it is looked up."""
    kind = type(value)
    if kind in PLAIN:
        return (kind.__name__, repr(value))
    if refused(value):
        raise Unknown(refused(value))
    match value:
        case np.generic():
            return ("number", value.dtype.str, value.tobytes())
        case np.ndarray():
            flags = value.flags
            short = is_short(value)
            sizes = value.shape if short else tuple(d == 1 for d in value.shape)
            return ("array", _class(kind), value.dtype.str, short, sizes, flags.writeable, flags.c_contiguous)
        case np.dtype():
            return ("dtype", value.str)
        case types.ModuleType():
            if sys.modules.get(value.__name__) is not value:
                raise Unknown(f"the module {value.__name__}")
            return ("module", value.__name__)
        case type():
            return _class(value)
        case types.BuiltinFunctionType() | np.ufunc():
            return _named(value)
        case types.FunctionType():
            return _function(value, text)
        case types.CodeType():
            return ("code", fingerprint(value, places=True))
        case Keys():
            return ("keys", *(mark_of(key) for key in value))
        case tuple() | list() | dict():
            return ("container", _class(kind))
    if dataclasses.is_dataclass(value):
        return ("container", _class(kind))
    own = peek(value, "__tapeless_mark__")
    if own is not None:
        return ("known", _class(kind), *(mark_of(part) for part in own()))
    if callable(value) and peek(value, "__name__") and _root(value) in FIXED:  # NumPy's functions are objects
        return _named(value)
    if _root(kind) in FIXED and isinstance(peek(value, "name"), str):  # SciPy's distributions
        return _named(value, value.name, kind.__module__)
    raise Unknown(f"an object of type {kind.__name__}")


def _function(function: types.FunctionType, text: str | None) -> Mark:
    if getattr(function, "__tapeless_transform__", None) is not None:  # called instead of it
        return ("transform",)
    if _root(function) in FIXED:
        return _named(function)
    if hasattr(function, "__tapeless__") or hasattr(function, "__tapeless_handler__"):
        raise Unknown(f"the function '{function.__name__}'")
    text = sources.digest_of(function) if text is None else text
    if not text:
        raise Unknown(f"the source of '{function.__name__}'")
    code = function.__code__
    defaults = len(function.__defaults__ or ()), tuple(function.__kwdefaults__ or ())
    return ("function", code.co_filename, fingerprint(code, places=True), *defaults, text)


def _root(value: Any) -> str:
    return str(peek(value, "__module__") or "").partition(".")[0]


def _named(value: Any, name: str = "", module: str = "") -> Mark:
    """An object that its module has under its own name."""
    name = name or getattr(value, "__qualname__", None) or value.__name__
    module = module or getattr(value, "__module__", None) or ""
    for candidate in (module,) if module else ("numpy", "scipy.special"):  # ufuncs may not know their module
        found = sys.modules.get(candidate)
        for part in name.split("."):
            found = getattr(found, part, None)
        if found is value:
            return ("named", candidate, name)
    raise Unknown(f"'{name}'")


def _class(cls: type) -> Mark:
    """A class with all that can be asked of it in compiled code."""
    named = _named(cls)
    if _root(cls) in FIXED:
        return named
    if type(cls) is not type:  # a metaclass may decide what is an instance
        raise Unknown(f"the class '{cls.__name__}'")
    bases = tuple((base.__module__, base.__qualname__) for base in cls.__mro__)
    if dataclasses.is_dataclass(cls):
        given = dataclasses.fields(cls)
        fields = tuple((f.name, f.init, f.default_factory is dataclasses.MISSING) for f in given)
        defaults = [(f.name, f.default) for f in given if f.default is not dataclasses.MISSING]
        kind = "dataclass with __post_init__" if hasattr(cls, "__post_init__") else "dataclass"
    elif hasattr(cls, "_fields"):
        fields, kind = tuple(cls._fields), "namedtuple"
        defaults = list(getattr(cls, "_field_defaults", {}).items())
    else:
        return (*named, bases)
    return (*named, bases, kind, fields, tuple((name, _whole(value)) for name, value in defaults))


def _whole(value: Any) -> Mark:
    """The mark of a default, which may be a tuple of others."""
    if type(value) is tuple:
        return ("tuple", *(_whole(item) for item in value))
    if type(value) in PLAIN or isinstance(value, np.generic):
        return mark_of(value)
    raise Unknown(f"a default of type {type(value).__name__}")


def tree_mark(tree: TreeDef) -> Mark:
    """Of the structure of the arguments."""
    cls = class_of(tree)
    if cls is None:
        return ()
    keys = mark_of(Keys(tree.keys))
    return (_class(cls), keys, *(tree_mark(child) for child in tree.children))
