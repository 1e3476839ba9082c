"""Which buffers of a program may share memory."""

from __future__ import annotations

from collections.abc import Iterable

from tapeless.lower.ir.counts import Counts
from tapeless.lower.ir.loopir import Buffer


def alias_classes(params: Iterable[object], counts: Counts) -> dict[Buffer, int]:
    """A number for each buffer of a program, given what it mentions; buffers with different numbers never overlap while one of them is written.

    Buffers that are swapped share a number: the memory of one is the memory of the other an iteration later.
    """
    parent: dict[Buffer, Buffer] = {b: b for b in params if isinstance(b, Buffer)}

    def root(buffer: Buffer) -> Buffer:
        while parent[buffer] is not buffer:
            buffer = parent[buffer]
        return buffer

    for buffer in counts.buffers:
        parent.setdefault(buffer, buffer)
    for a, b in counts.swapped:
        parent[root(a)] = root(b)
    numbers: dict[Buffer, int] = {}
    return {buffer: numbers.setdefault(root(buffer), len(numbers)) for buffer in parent}
