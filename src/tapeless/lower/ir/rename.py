"""Scalars and buffers of Loop IR under other names, and scalars that come back from memory."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import fields, is_dataclass, replace
from typing import Any

from tapeless.ir.span import Span
from tapeless.ir.types import Atom, Const, Type, Var
from tapeless.lower.ir.loopir import Assign, Buffer, Declare, Load, Stm


def renamed(x: Any, names: Mapping[Var, Var], buffers: Mapping[Buffer, Buffer] | None = None) -> Any:
    """A statement, a block or what they are made of, with other names wherever they stand."""
    if isinstance(x, Var):
        return names.get(x, x)
    if isinstance(x, Buffer):
        return (buffers or {}).get(x, x)
    if isinstance(x, tuple):
        new = tuple(renamed(y, names, buffers) for y in x)
        return new if any(a is not b for a, b in zip(new, x, strict=True)) else x
    if is_dataclass(x) and not isinstance(x, (type, Type, Const, Span)):
        changed = {f.name: renamed(getattr(x, f.name), names, buffers) for f in fields(x)}
        return replace(x, **changed) if any(changed[k] is not getattr(x, k) for k in changed) else x
    return x


def fetched(v: Var, buffer: Buffer, index: Atom, made: Stm | None) -> list[Stm]:
    """A scalar that others left in memory: bound as the statement that `made` it did, or assigned where none did."""
    if made is not None and not isinstance(made, Declare):
        return [Load(v, buffer, index)]
    value = Var(v.name, v.type)
    return [Load(value, buffer, index), Assign(v, value) if made is None else Declare(v, value)]
