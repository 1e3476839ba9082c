"""What the passes over loops have in common: they go through a function from the inside out, and ask what decides."""

from __future__ import annotations

from collections.abc import Callable
from functools import cached_property

from tapeless.ir.core import Body, For, Function, Stm
from tapeless.ir.segments import Segment
from tapeless.ir.types import Var
from tapeless.ir.walk import in_regions, map_function, with_stms
from tapeless.passes.coarsen.decisions import deciding

Report = Callable[[Segment], None]


class ByLoops:
    """`loop` gives the statements that take the place of a loop, whose own loops have had their turn."""

    def __init__(self, function: Function, report: Report) -> None:
        self.function, self.report = function, report

    @cached_property
    def deciding(self) -> set[Var]:
        return deciding(self.function.body)

    def changed(self) -> Function:
        return map_function(self.function, self.body)

    def body(self, body: Body) -> Body:
        stms: list[Stm] = []
        for s in body.stms:
            s = in_regions(s, self.body)
            stms += self.loop(s, s.exp) if isinstance(s.exp, For) else [s]
        return with_stms(body, stms)

    def loop(self, stm: Stm, exp: For) -> list[Stm]:
        raise NotImplementedError
