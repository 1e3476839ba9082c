"""A short text that tells one Core function from another: `digest(f)`, equal for functions that compile to the same.

Faster than printing, which is for people. Variables are numbered in the order they appear, so that two traces of one
program agree. Names and places in the source count: they appear in messages and in `explain`.
"""

from __future__ import annotations

import dataclasses
import functools
import hashlib
from enum import Enum
from typing import Any

from tapeless.ir.core import Function
from tapeless.ir.types import Var


def digest(f: Function) -> str:
    return hashlib.sha256("\n".join(_Writer().function(f)).encode()).hexdigest()


@functools.cache
def _fields(kind: type) -> tuple[str, ...]:
    return tuple(field.name for field in dataclasses.fields(kind))


class _Writer:
    def __init__(self) -> None:
        self.out: list[str] = []
        self.numbers: dict[Var, int] = {}
        self.spans: dict[int, str] = {}

    def function(self, f: Function) -> list[str]:
        self.put(f)
        return self.out

    def put(self, x: Any) -> None:
        out, kind = self.out, type(x)
        if kind is Var:
            number = self.numbers.get(x)
            if number is None:
                number = self.numbers[x] = len(self.numbers)
                out.append(f"{number} {x.name}")
                self.put(x.type)
            else:
                out.append(str(number))
        elif kind is tuple:
            out.append(f"({len(x)}")
            for item in x:
                self.put(item)
        elif isinstance(x, Enum):
            out.append(x.name)
        elif dataclasses.is_dataclass(kind):
            out.append(kind.__name__)
            for name in _fields(kind):
                self.put(getattr(x, name))
        else:
            out.append(f"{kind.__name__} {x!r}")
