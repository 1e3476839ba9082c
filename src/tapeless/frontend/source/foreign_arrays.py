"""Arrays of other libraries in the memory of the CPU, as NumPy sees them: PyTorch, JAX, pandas, and whatever speaks DLPack or
NumPy's array interface.

`is_foreign` says whether a value is one; `array_of` gives the NumPy array, in the same memory wherever the library lets
NumPy look at it, and raises `Unreadable` where there is none.

Note [Arrays of other libraries]
Inside of compiled code they are what `np.asarray` makes of them, with NumPy's meaning of indices, methods and operators.
DLPack and the array interface are for arrays, so what speaks them is one. `__array__` is also there for objects that mean
something else by their operators (units, labels, lazy values), or have methods that compiled code calls. So what has
only that is taken where its class offers nothing else; and pandas is, without its labels.
"""

from __future__ import annotations

import functools
from typing import Any

import numpy as np

from tapeless.frontend.source.plain_objects import HARMLESS

OTHERS = (np.ndarray, np.generic, int, float, complex, str, bytes, type)  # never foreign arrays
INTERFACE, CONVERSION, DLPACK = "__array_interface__", "__array__", ("__dlpack__", "__dlpack_device__")
LABELLED = ("pandas",)


class Unreadable(Exception):
    """An array that NumPy cannot see. `what` it is, as in 'x is ...'; `hint`: what to pass instead."""

    def __init__(self, what: str, hint: str) -> None:
        super().__init__(what)
        self.what, self.hint = what, hint


def is_foreign(value: Any) -> bool:
    if isinstance(value, OTHERS):
        return False
    return _is_array_class(type(value)) or _has_interface(value)  # type: ignore[arg-type]


def _has_interface(value: Any) -> bool:
    """As an attribute of its own."""
    own = getattr(value, "__dict__", None)
    return isinstance(own, dict) and INTERFACE in own


@functools.lru_cache(1024)
def _is_array_class(cls: type) -> bool:
    if library_of(cls) == "tapeless":
        return False
    if hasattr(cls, INTERFACE) or all(hasattr(cls, name) for name in DLPACK):
        return True
    return hasattr(cls, CONVERSION) and (library_of(cls) in LABELLED or _only_converts(cls))


def _only_converts(cls: type) -> bool:
    names = {name for part in cls.__mro__[:-1] for name in vars(part)}
    return names <= {*HARMLESS, CONVERSION}


def library_of(cls: type) -> str:
    root = cls.__module__.partition(".")[0]
    return "jax" if root == "jaxlib" else root


def array_of(value: Any) -> np.ndarray[Any, Any]:
    if isinstance(value, np.ndarray):
        return value
    kind = f"{'an' if type(value).__name__[0] in 'AEIOU' else 'a'} {type(value).__name__} of {library_of(type(value))}"
    if getattr(value, "requires_grad", False) is True:  # PyTorch would not hear of what is computed here
        hint = "pass .detach() of it: PyTorch does not see what compiled code does; tp.grad gives the gradient."
        raise Unreadable(f"{kind} that requires a gradient", hint)
    try:
        numpy_form = _has_numpy_form(type(value)) or _has_interface(value)  # type: ignore[arg-type]
        found = np.asarray(value) if numpy_form else np.from_dlpack(value)
    except Exception as problem:  # whatever the library says
        raise Unreadable(f"{kind} that NumPy cannot read ({problem})", "pass a NumPy array.") from None
    if type(found) is not np.ndarray:
        raise Unreadable(f"{kind} that NumPy cannot read", "pass a NumPy array.")
    return found


@functools.lru_cache(1024)
def _has_numpy_form(cls: type) -> bool:
    return hasattr(cls, INTERFACE) or hasattr(cls, CONVERSION)
