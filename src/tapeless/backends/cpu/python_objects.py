"""Python's and NumPy's objects as machine code sees them, and functions of Python that are machine code.

Gives the places of fields in objects, the addresses of functions of the two C interfaces by `address`, and
`function_at`, which makes what Python calls in its own convention. `usable` says whether all of it is as we take it to
be: it is not where reference counts lie elsewhere (Python without its lock) or the interpreter is another one.
"""

from __future__ import annotations

import ctypes
import functools
import platform
import struct
import sys
from collections.abc import Callable
from typing import Any

import numpy as np

TYPE, NUMBER = 8, 16  # of an object; the value of numbers of Python and NumPy that are not int
DATA, AXES, SIDES, DTYPE, FLAGS = 16, 24, 32, 56, 64  # of an array
LENGTH, ITEMS = 16, 24  # of a list; the length is there in a tuple too
MEMBER, OFFSET = 40, 16  # what a slot of a class is said to be, and where it says that an object has it
OF_NUMPY = {"PyArray_Scalar": 60, "PyArray_New": 93}  # places in its table, which never change
FASTCALL, KEYWORDS = 0x80, 0x02  # arguments come as a row of objects; and the names of the last of them


class _Method(ctypes.Structure):
    """PyMethodDef"""

    _fields_ = (
        ("name", ctypes.c_char_p),
        ("code", ctypes.c_void_p),
        ("flags", ctypes.c_int),
        ("doc", ctypes.c_char_p),
    )


def function_at(address: int, name: str, kept: Any) -> Callable[..., Any]:
    """A function of Python. Its code takes `kept`, the arguments and their number, and gives an object or null."""
    method = _Method(name.encode(), address, FASTCALL, None)
    made: Callable[..., Any] = _new_function()(ctypes.addressof(method), (method, kept), None)
    return made


def method_at(cls: type, address: int, name: str, kept: Any) -> Any:
    """A method of a class, for ever. Its code takes the object, the arguments, their number, and the names of more."""
    method = _Method(name.encode(), address, FASTCALL | KEYWORDS, None)
    _methods.append((method, kept))
    new = ctypes.pythonapi["PyDescr_NewMethod"]
    new.argtypes, new.restype = [ctypes.py_object, ctypes.c_void_p], ctypes.py_object
    return new(cls, ctypes.addressof(method))


_methods: list[Any] = []


def member_at(cls: type, slot: str) -> int:
    """The place of a slot in objects of a class."""
    place: int = _read("n", _read("P", id(getattr(cls, slot)) + MEMBER) + OFFSET)
    return place


@functools.cache
def _new_function() -> Any:
    new = ctypes.pythonapi["PyCFunction_NewEx"]
    new.argtypes, new.restype = [ctypes.c_void_p, ctypes.py_object, ctypes.c_void_p], ctypes.py_object
    return new


@functools.cache
def address(name: str) -> int:
    """Of a function of Python's C interface, or of NumPy's."""
    if name in OF_NUMPY:
        return int(_numpy_table()[OF_NUMPY[name]])
    found: int | None = ctypes.cast(ctypes.pythonapi[name], ctypes.c_void_p).value
    assert found is not None
    return found


@functools.cache
def _numpy_table() -> Any:
    get = ctypes.pythonapi["PyCapsule_GetPointer"]
    get.argtypes, get.restype = [ctypes.py_object, ctypes.c_char_p], ctypes.c_void_p
    table = get(np._core._multiarray_umath._ARRAY_API, None)  # type: ignore[attr-defined]
    return (ctypes.c_void_p * (1 + max(OF_NUMPY.values()))).from_address(table)


class _Slotted:
    __slots__ = ("first", "second")
    second: Any


@functools.cache
def usable() -> bool:
    if sys.implementation.name != "cpython" or platform.system() != "Linux" or struct.calcsize("P") != 8:
        return False
    try:
        address("PyArray_Scalar")
        return _as_expected()
    except (AttributeError, ValueError):  # another NumPy, another Python
        return False


def _as_expected() -> bool:
    """Looks at a number of each kind and at an array."""
    numbers: list[tuple[Any, str]] = [(1.5, "d"), (np.float64(2.5), "d"), (np.float32(3.5), "f"), (np.int64(-7), "q")]
    numbers += [(np.int32(-9), "i"), (np.bool_(True), "?")]
    for value, code in numbers:
        if _read("P", id(value) + TYPE) != id(type(value)) or _read(code, id(value) + NUMBER) != value:
            return False
    row, member = [1.5, 2.5], _Slotted()
    member.second = row
    if _read("n", id(row) + LENGTH) != 2 or _read("P", _read("P", id(row) + ITEMS) + 8) != id(row[1]):
        return False
    if _read("n", id((1, 2, 3)) + LENGTH) != 3 or _read("P", id(member) + member_at(_Slotted, "second")) != id(row):
        return False
    array = np.zeros((3, 5), np.float32)
    at = id(array)
    return bool(
        _read("P", at + TYPE) == id(np.ndarray)
        and _read("P", at + DATA) == array.ctypes.data
        and _read("i", at + AXES) == array.ndim
        and struct.unpack("qq", ctypes.string_at(_read("P", at + SIDES), 16)) == array.shape
        and _read("P", at + DTYPE) == id(array.dtype)
        and _read("i", at + FLAGS) == array.flags.num
    )


def _read(code: str, at: int) -> Any:
    return struct.unpack(code, ctypes.string_at(at, struct.calcsize(code)))[0]
