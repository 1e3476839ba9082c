"""`print` in compiled code: the text goes through Python's sys.stdout, formatted as Python would.

Gives the address of `rt_print(text, slots)`, as backends/llvm/calls.py calls it. Any thread may call it: it takes the
interpreter's lock for the while.
"""

from __future__ import annotations

import ctypes
import functools
import re
import struct
import sys

import numpy as np

from tapeless.ir.core import Shown

ARGUMENT = re.compile("\x01([?bBhHiIqQfdcz])([^\x01]*)\x01")
_kept: list[object] = []


def _format(text: bytes, slots: int) -> str:
    values = iter(range(slots, sys.maxsize, 8))

    def read(code: str) -> float:
        number: float = struct.unpack(code, ctypes.string_at(next(values), struct.calcsize(code)))[0]
        return number

    def value(code: str) -> object:
        match code:
            case "f":
                return np.float32(read("f"))
            case "z":
                return complex(read("d"), read("d"))
            case "c":
                return np.complex64(complex(read("f"), read("f")))
        return read(code)

    def shown(match: re.Match[str]) -> str:
        return Shown(0, match[2]).text(value(match[1]))

    return ARGUMENT.sub(shown, text.decode())


def _print(text: bytes, slots: int) -> None:
    sys.stdout.write(_format(text, slots))


@functools.cache
def address() -> int:
    callback = ctypes.CFUNCTYPE(None, ctypes.c_char_p, ctypes.c_void_p)(_print)
    _kept.append(callback)
    return ctypes.cast(callback, ctypes.c_void_p).value or 0
