"""Which subclasses of arrays, numbers and containers mean in compiled code what they mean in Python.

`own_meaning` takes a class and the class it is compiled as; gives the name of what it does in its own way, or "".

Note [Subclasses]
Compiled code knows arrays, numbers and containers as such. A subclass that redefines an operator, a method or an
attribute of its base (np.matrix, masked arrays, quantities with units, IntFlag) means something else and is refused.
One that only adds to its base, or says how it is made, shown, hashed or pickled, is taken as its base: enumerations of
ints, arrays that carry a name. Results are plain. np.memmap is one of NumPy's own: it redefines how results are
wrapped, to give plain arrays. Of a NamedTuple, methods and operators that are written in Python are compiled.
"""

from __future__ import annotations

import collections
import functools
from typing import Any

import numpy as np

AS_BASE = (np.memmap, collections.OrderedDict, collections.defaultdict)
# how objects are made, kept and shown
HARMLESS = frozenset(
    {
        "__new__", "__init__", "__init_subclass__", "__class_getitem__", "__subclasshook__", "__del__",
        "__module__", "__qualname__", "__doc__", "__dict__", "__weakref__", "__slots__", "__annotations__", "__dir__",
        "__firstlineno__", "__static_attributes__", "__orig_bases__", "__match_args__", "__annotate__", "__annotate_func__",
        "__annotations_cache__", "__type_params__", "__abstractmethods__",
        "__repr__", "__str__", "__format__", "__hash__", "__sizeof__",
        "__reduce__", "__reduce_ex__", "__getstate__", "__setstate__", "__getnewargs__", "__getnewargs_ex__", "__copy__",
        "__deepcopy__", "__array_finalize__", "__array_priority__",
    }
)  # fmt: skip
# Python's special methods that compiled code asks the classes of containers for (`frontend.data.classes`)
ARITHMETIC = {
    "Add": "add", "Sub": "sub", "Mult": "mul", "Div": "truediv", "FloorDiv": "floordiv", "Mod": "mod", "Pow": "pow",
    "BitAnd": "and", "BitOr": "or", "BitXor": "xor", "LShift": "lshift", "RShift": "rshift", "MatMult": "matmul",
}  # fmt: skip
UNARY = {"USub": "__neg__", "UAdd": "__pos__", "Invert": "__invert__"}
COMPARISONS = {
    "Lt": ("__lt__", "__gt__"), "LtE": ("__le__", "__ge__"), "Gt": ("__gt__", "__lt__"), "GtE": ("__ge__", "__le__"),
    "Eq": ("__eq__", "__eq__"), "NotEq": ("__ne__", "__ne__"),
}  # fmt: skip
OPERATORS = frozenset(
    {
        "__len__",
        "__bool__",
        "__contains__",
        "__getitem__",
        "__array__",
        *UNARY.values(),
        *(name for name, _ in COMPARISONS.values()),
    }
    | {f"__{kind}{name}__" for name in ARITHMETIC.values() for kind in ("", "r", "i")}
)
NUMBERS = (bool, int, float, complex)  # in this order: a bool is an int
CONTAINERS = (tuple, list, dict)


@functools.lru_cache(1024)
def own_meaning(cls: type, base: type) -> str:
    """The first attribute of `base` that a subclass redefines, "" for none."""
    if issubclass(cls, AS_BASE):
        return ""
    fields = getattr(cls, "_fields", ())  # of a NamedTuple, which may be called `count`
    for part in cls.__mro__:
        if part not in base.__mro__:
            for name in vars(part):
                if name not in HARMLESS and name not in fields and hasattr(base, name):
                    if not fields or not _is_compiled(name):
                        return name
    return ""


def _is_compiled(name: str) -> bool:
    """Whether compiled code asks the class of a NamedTuple for it."""
    return not name.startswith("__") or name in OPERATORS


def refused(value: Any) -> str:
    """Why a value cannot stand for the array, number or container that it also is; "" when it can."""
    cls = type(value)
    if cls is np.ndarray or cls in NUMBERS or cls in CONTAINERS:
        return ""
    if isinstance(value, np.ndarray):
        base: type | None = np.ndarray
    elif isinstance(value, np.generic):
        base = value.dtype.type
    else:
        base = next((b for b in (*NUMBERS, *CONTAINERS) if issubclass(cls, b)), None)
    name = "" if base is None or base is cls else own_meaning(cls, base)  # type: ignore[arg-type]
    return f"a {cls.__name__} with a '{name}' of its own" if name else ""


def plain_hint(value: Any) -> str:
    """What to write instead of what is refused."""
    if isinstance(value, np.ndarray):
        return "use np.asarray(...) of it, if its numbers are what you want."
    return "use a plain number." if isinstance(value, NUMBERS) else "use a plain tuple, list or dict."
