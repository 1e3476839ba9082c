"""Which buffers of a program may share memory."""

from __future__ import annotations

from collections.abc import Iterable

from tapeless.lower.ir.loopir import Buffer, Swap
from tapeless.lower.ir.walk import Block, buffers, walk


def alias_classes(params: Iterable[object], body: Block) -> dict[Buffer, int]:
    """A number for each buffer; buffers with different numbers never overlap while one of them is written.

    Buffers that are swapped share a number: the memory of one is the memory of the other an iteration later.
    """
    parent: dict[Buffer, Buffer] = {b: b for b in params if isinstance(b, Buffer)}

    def root(buffer: Buffer) -> Buffer:
        while parent[buffer] is not buffer:
            buffer = parent[buffer]
        return buffer

    for stm in walk(body):
        for buffer in buffers(stm):
            parent.setdefault(buffer, buffer)
        if isinstance(stm, Swap):
            parent[root(stm.a)] = root(stm.b)
    numbers: dict[Buffer, int] = {}
    return {buffer: numbers.setdefault(root(buffer), len(numbers)) for buffer in parent}
