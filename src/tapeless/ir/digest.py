"""A short text that tells one Core function from another: `digest(f)`, equal for functions that compile to the same.

Faster than printing, which is for people. Variables are numbered in the order they appear, so that two traces of one
program agree. Names and places in the source count: they appear in messages and in `explain`.
"""

from __future__ import annotations

import dataclasses
import hashlib
from enum import Enum
from typing import Any

from tapeless.ir.core import Function
from tapeless.ir.span import Span
from tapeless.ir.types import Const, Type, Var


def digest(f: Function) -> str:
    return hashlib.sha256("\n".join(_Writer().function(f)).encode()).hexdigest()


class _Fields(dict[type, tuple[str, ...] | None]):
    """The names of the fields of a kind of node, None for what is no node."""

    def __missing__(self, kind: type) -> tuple[str, ...] | None:
        is_node = dataclasses.is_dataclass(kind)
        self[kind] = tuple(field.name for field in dataclasses.fields(kind) if field.init) if is_node else None
        return self[kind]


_FIELDS = _Fields()


class _Writer:
    """`texts` has what is written often, by the id of the object: places in the source, and types of scalars."""

    def __init__(self) -> None:
        self.out: list[str] = []
        self.numbers: dict[Var, int] = {}
        self.texts: dict[int, str] = {}

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
        elif kind is Span or (kind is Type and not x.shape):
            out.append(self.texts.get(id(x)) or self._text(x))
        elif kind is Const:
            out.append(f"{x.value!r} {x.dtype._name_}")
        elif (fields := _FIELDS[kind]) is not None:
            out.append(kind.__name__)
            for name in fields:
                self.put(getattr(x, name))
        elif isinstance(x, Enum):
            out.append(x.name)
        else:
            out.append(f"{kind.__name__} {x!r}")

    def _text(self, x: Span | Type) -> str:
        if isinstance(x, Span):
            text = f"{x.file} {x.line} {x.column} {x.end_line} {x.end_column} {x.function}"
        else:
            text = f"{x.dtype.name} {x.acc}"
        self.texts[id(x)] = text
        return text
