"""Numbers that are known before a block runs: where what it takes is decided in advance, its memory or the way it goes.

Takes a block of Loop IR; gives statements of integer arithmetic to put before it.
"""

from __future__ import annotations

from dataclasses import replace

from tapeless.ir.types import I64, Atom, Var
from tapeless.lower.ir.loopir import Assign, Let, Stm
from tapeless.lower.ir.walk import Block, binds, walk


class Before:
    """Arithmetic before a block: `stms`."""

    def __init__(self, block: Block) -> None:
        self.stms: list[Stm] = []
        self.lets = {s.var: s for s in walk(block) if isinstance(s, Let)}
        self.inside = {v for s in walk(block) for v in binds(s)} | {s.var for s in walk(block) if isinstance(s, Assign)}
        self.known: dict[Var, Atom | None] = {}

    def let(self, op: str, *args: Atom) -> Var:
        var = Var("before", I64)
        self.stms.append(Let(var, op, args))
        return var

    def value(self, a: Atom) -> Atom | None:
        """Of an atom of the block, if it is known before it."""
        if not isinstance(a, Var) or a not in self.inside:
            return a
        if a not in self.known:
            let = self.lets.get(a)
            args = [self.value(x) for x in let.args] if let is not None else [None]
            known = [x for x in args if x is not None]
            if let is None or len(known) < len(args):
                self.known[a] = None
            else:
                var = Var(a.name, a.type)
                self.stms.append(replace(let, var=var, args=tuple(known)))
                self.known[a] = var
        return self.known[a]
