"""A short text that tells one Core function from another: `digest(f)`, equal for functions that compile to the same.

Faster than printing, which is for people. Variables are numbered in the order they appear, so that two traces of one
program agree. Names and places in the source count: they appear in messages and in `explain`.
"""

from __future__ import annotations

import dataclasses
import hashlib
from collections.abc import Callable, Sequence
from enum import Enum
from operator import attrgetter
from typing import Any

from tapeless.ir.core import Function
from tapeless.ir.span import Span
from tapeless.ir.types import Const, Type, Var


def digest(f: Function) -> str:
    return hashlib.sha256("\n".join(_Writer().function(f)).encode()).hexdigest()


class _Fields(dict[type, Callable[[Any], tuple[Any, ...]] | None]):
    """What takes the fields of a kind of node, None for what is no node."""

    def __missing__(self, kind: type) -> Callable[[Any], tuple[Any, ...]] | None:
        self[kind] = _taking(kind) if dataclasses.is_dataclass(kind) else None
        return self[kind]


def _taking(kind: type) -> Callable[[Any], tuple[Any, ...]]:
    names = [field.name for field in dataclasses.fields(kind) if field.init]
    if len(names) > 1:
        return attrgetter(*names)
    return lambda x: tuple(getattr(x, name) for name in names)


_FIELDS = _Fields()


class _Writer:
    """`texts` has what is written often, by the id of the object: places in the source, and types of scalars."""

    def __init__(self) -> None:
        self.out: list[str] = []
        self.numbers: dict[Var, str] = {}
        self.texts: dict[int, str] = {}

    def function(self, f: Function) -> list[str]:
        self.put((f,))
        return self.out

    def put(self, items: Sequence[Any]) -> None:
        out, numbers = self.out, self.numbers
        for x in items:
            kind = type(x)
            if kind is Var:
                number = numbers.get(x)
                if number is None:
                    number = numbers[x] = str(len(numbers))
                    out.append(f"{number} {x.name}")
                    self.put((x.type,))
                else:
                    out.append(number)
            elif kind is tuple:
                out.append(f"({len(x)}")
                self.put(x)
            elif kind is Span or (kind is Type and not x.shape):
                out.append(self.texts.get(id(x)) or self._text(x))
            elif kind is Const:
                out.append(f"{x.value!r} {x.dtype._name_}")
            elif kind is bool or kind is str:
                out.append(repr(x))
            elif (fields := _FIELDS[kind]) is not None:
                out.append(kind.__name__)
                self.put(fields(x))
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
