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

ARGUMENT = re.compile("\x01([?bBhHiIqQfdcz])")
_kept: list[object] = []


def _format(text: bytes, slots: int) -> str:
    values = iter(range(slots, sys.maxsize, 8))

    def read(code: str) -> float:
        number: float = struct.unpack(code, ctypes.string_at(next(values), struct.calcsize(code)))[0]
        return number

    def shown(match: re.Match[str]) -> str:
        match match[1]:
            case "d":
                return repr(read("d"))
            case "f":
                return str(np.float32(read("f")))
            case "z":
                return repr(complex(read("d"), read("d")))
            case "c":
                return str(np.complex64(complex(read("f"), read("f"))))
            case code:  # a bool or an integer
                return str(read(code))

    return ARGUMENT.sub(shown, text.decode())


def _print(text: bytes, slots: int) -> None:
    sys.stdout.write(_format(text, slots))


@functools.cache
def address() -> int:
    callback = ctypes.CFUNCTYPE(None, ctypes.c_char_p, ctypes.c_void_p)(_print)
    _kept.append(callback)
    return ctypes.cast(callback, ctypes.c_void_p).value or 0
