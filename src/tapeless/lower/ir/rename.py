"""Loop IR with other names for scalars and buffers."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import fields, is_dataclass, replace
from typing import Any

from tapeless.ir.span import Span
from tapeless.ir.types import Const, Type, Var
from tapeless.lower.ir.loopir import Buffer


def renamed(x: Any, names: Mapping[Var, Var], buffers: Mapping[Buffer, Buffer] | None = None) -> Any:
    """A statement, a block or what they are made of, with other names wherever they stand."""
    if isinstance(x, Var):
        return names.get(x, x)
    if isinstance(x, Buffer):
        return (buffers or {}).get(x, x)
    if isinstance(x, tuple):
        new = tuple(renamed(y, names, buffers) for y in x)
        return new if any(a is not b for a, b in zip(new, x, strict=True)) else x
    if is_dataclass(x) and not isinstance(x, type | Type | Const | Span):
        changed = {f.name: renamed(getattr(x, f.name), names, buffers) for f in fields(x)}
        return replace(x, **changed) if any(changed[k] is not getattr(x, k) for k in changed) else x
    return x
