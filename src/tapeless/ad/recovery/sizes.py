"""Bytes of values: at run time, as an operand, and symbolically, to compare two plans before sizes are known."""

from __future__ import annotations

from collections import Counter
from collections.abc import Iterable
from typing import TYPE_CHECKING

from tapeless.ir.types import Atom, Type, Var, dim_atom, i64
from tapeless.ir.walk import type_vars

if TYPE_CHECKING:
    from tapeless.ad.emit import Emit

Terms = Counter[tuple[Var, ...]]  # a sum of products of sizes: the factor of each product


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
    here, there = _terms(some), _terms(others)
    dominated = all(any(_divides(term, other) for other in there) for term in here)
    return dominated and here.total() <= times * there.total()


def fewer(some: Iterable[Type], others: Iterable[Type]) -> bool:
    """Whether some values surely take less memory than others: each product of sizes is paid for by one that has all
    its factors.
    """
    left = _terms(others)
    for term, count in _terms(some).items():
        for other in left:
            if left[other] >= count and _divides(term, other):
                left[other] -= count
                break
        else:
            return False
    return any(left.values())


def _terms(types: Iterable[Type]) -> Terms:
    found: Terms = Counter()
    for t in types:
        factor = t.dtype.bytes
        for d in t.shape:
            factor *= d if isinstance(d, int) else 1
        found[tuple(sorted(type_vars(t), key=id))] += factor
    return found


def _divides(term: tuple[Var, ...], other: tuple[Var, ...]) -> bool:
    return not Counter(term) - Counter(other)
