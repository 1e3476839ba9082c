"""Parallel loops as kernels: what runs on threads or on a GPU, apart from the host's own statements.

`outlined` takes a program and gives one in which each outermost parallel loop is launched (Note [Kernels] in `loopir`).
"""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass, replace
from functools import cached_property
from operator import is_

from tapeless.ir.types import Var
from tapeless.lower.ir.counts import Counts
from tapeless.lower.ir.loopir import Buffer, For, Kernel, Launch, Program, Stm, Tag
from tapeless.lower.ir.walk import HOLDING, Block, with_blocks


def outlined(program: Program, tag: Tag) -> Program:
    """Launches the loops of this tag, those of the functions that it invokes too. A program of launches stays as it is."""
    functions = tuple(outlined(f, tag) for f in program.functions)
    body = _Outliner(tag, program.body, program.name).block(program.body)
    return replace(program, body=body, functions=functions)


@dataclass
class _Outliner:
    tag: Tag
    whole: Block
    program: str
    kernels: int = 0

    @cached_property
    def mentions(self) -> Mapping[Buffer, int]:
        return Counts(self.whole, scalars=False).buffers

    def block(self, block: Block) -> Block:
        """The same object where nothing is launched."""
        new = tuple([self.stm(stm) if type(stm) in HOLDING else stm for stm in block])
        return block if all(map(is_, new, block)) else new

    def stm(self, stm: Stm) -> Stm:
        match stm:
            case For(tag=tag) if tag == self.tag:
                self.kernels += 1
                name = f"{self.program}_kernel{self.kernels}"
                return Launch(Kernel(name, captured(stm, self.mentions), (stm,)))
            case _:
                return with_blocks(stm, self.block)


def captured(loop: For, mentions: Mapping[Buffer, int]) -> tuple[Var | Buffer, ...]:
    """The scalars and buffers of outside that the body uses: buffers that only it mentions, or that it allocates, are
    its own.
    """
    counts = Counts(loop.body)
    own = counts.private(mentions) | counts.allocated
    return (*(v for v in counts.free if v is not loop.var), *(b for b in counts.buffers if b not in own))
