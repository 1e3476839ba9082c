"""Bytes of values: at run time, as an operand, and symbolically, to compare two plans before sizes are known."""

from __future__ import annotations

from collections import Counter
from collections.abc import Iterable
from typing import TYPE_CHECKING

from tapeless.ir.types import Atom, Type, Var, dim_atom, i64
from tapeless.symbolic.polynomials import number
from tapeless.symbolic.positions import Position, elements

if TYPE_CHECKING:
    from tapeless.ops.emit import Emit


def bytes_of(emit: Emit, types: Iterable[Type]) -> Atom:
    """Of one value of each, computed here."""
    total: Atom = i64(0)
    for t in types:
        size: Atom = i64(t.dtype.bytes)
        for d in t.shape:
            size = emit("mul", size, dim_atom(d))
        total = emit("add", total, size)
    return total


def at_most(times: int, some: Iterable[Type], others: Iterable[Type]) -> bool:
    """Whether some values take, whatever the sizes are, the memory of others so many times at the most."""
    here, there = dict(_bytes(some).parts()), dict(_bytes(others).parts())
    dominated = all(any(_divides(term, other) for other in there) for term in here)
    return dominated and sum(here.values()) <= times * sum(there.values())


def fewer(some: Iterable[Type], others: Iterable[Type]) -> bool:
    """Whether some values surely take less memory than others: each product of sizes is paid for by one that has all
    its factors.
    """
    left = dict(_bytes(others).parts())
    for term, count in _bytes(some).parts():
        for other in left:
            if left[other] >= count and _divides(term, other):
                left[other] -= count
                break
        else:
            return False
    return any(left.values())


def _bytes(types: Iterable[Type]) -> Position:
    return sum((elements(t.shape).scaled(t.dtype.bytes) for t in types), start=number(0))


def _divides(term: tuple[Var, ...], other: tuple[Var, ...]) -> bool:
    return not Counter(term) - Counter(other)
