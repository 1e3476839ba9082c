"""The adjoints of a scope: what has been added up so far for each variable. None stands for zero.

Note [Parts of adjoints]
An adjoint to which only parts have been added so far is zero elsewhere. When all of it gets something, the parts are
added to that instead: no zeros, no sum of whole arrays.
"""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass

from tapeless.ir.core import Axis
from tapeless.ir.types import Atom, Var
from tapeless.ops.emit import Emit

MOST_PARTS = 16


@dataclass(frozen=True)
class Parts:
    """Note [Parts of adjoints]. `sum` is zero but for these cells."""

    sum: Var
    cells: tuple[tuple[tuple[Axis, ...], Atom], ...] = ()


class Adjoints:
    def __init__(self, emit: Emit) -> None:
        self.emit = emit
        self.sums: dict[Var, Atom] = {}
        self.parts: dict[Var, Parts] = {}  # adjoints that are zero elsewhere: Note [Parts of adjoints]

    def get(self, v: Var) -> Atom | None:
        return self.sums.get(v)

    def full(self, v: Var) -> Atom:
        """With zeros written out."""
        found = self.sums.get(v)
        return self.emit.zero(v.type) if found is None else found

    def take(self, v: Var) -> Atom | None:
        """For a variable whose adjoint is complete."""
        return self.sums.pop(v, None)

    def put(self, v: Var, value: Atom) -> None:
        """In place of what was there."""
        self.sums[v] = value

    def add(self, v: Var, value: Atom) -> None:
        before = self.sums.get(v)
        parts = self.parts.pop(v, None)
        if before is None:
            self.sums[v] = value
        elif parts is not None and parts.sum is before and isinstance(value, Var):
            for axes, cells in parts.cells:
                value = self.emit.add_at(value, axes, cells)
            self.sums[v] = value
        else:
            self.sums[v] = self.emit.add(before, value)

    def add_at(self, v: Var, axes: Sequence[Axis], value: Atom) -> None:
        """At some cells of an array."""
        array = self.full(v)
        assert isinstance(array, Var)
        parts = self.parts.pop(v, None) if v in self.sums else Parts(array)
        self.sums[v] = total = self.emit.add_at(array, axes, value)
        if parts is not None and parts.sum is array and len(parts.cells) < MOST_PARTS:
            self.parts[v] = Parts(total, (*parts.cells, (tuple(axes), value)))
