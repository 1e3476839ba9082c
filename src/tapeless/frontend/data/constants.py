"""Constants as values: numbers, texts, and sets, which hold constants only."""

from __future__ import annotations

from typing import Any

from tapeless.frontend.state.values import Sequence_, Static, Value, weak


class ConstantSet(frozenset[Any]):
    """A set that compiled code makes. It is not gone through, for its order is not known here."""


ConstantSet.__name__ = "set"


def constant(known: Any) -> Value:
    if type(known) is tuple:
        return Sequence_(tuple(constant(k) for k in known))
    return weak(known) if type(known) in (bool, int, float, complex) else Static(known)
