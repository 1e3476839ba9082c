"""Which index of a nest neighbouring threads of a GPU should differ in: that of neighbouring cells.

Takes the statements of one element, with the indices that tell which; gives the order of the indices, the fastest last.

Note [Neighbours]
Threads of a warp read together what lies together, and wait for one another where it does not. An access that moves by
one cell with an index is one access for all of a warp, if neighbours differ in that index; one that does not move is
too; any other is one for each thread. So accesses are counted by how their cells follow from each index. What a position
is modulo a size is taken for the position: it moves by one, too, but at one place.
"""

from __future__ import annotations

from collections.abc import Mapping, Sequence

from tapeless.ir.types import Atom, Const, Var
from tapeless.lower.ir.loopir import Assign, Atomic, Buffer, Declare, For, Let, Load, Space, Stm, Store
from tapeless.lower.ir.walk import children

TOGETHER, SAME, APART = 4, 1, 32  # what an access of a warp costs
GUESS = 8  # iterations of a loop inside
ELSEWHERE = 0  # stands for a step that is not 1
OWN = (Space.stack, Space.shared)

Steps = Mapping[Var, int]  # by how many cells a number moves with an index


def in_memory_order(block: Sequence[Stm], indices: Sequence[Var]) -> list[int]:
    """The numbers of the indices: the one in which neighbours should differ comes last."""
    found = _Accesses({v: {v: 1} for v in indices}, dict.fromkeys(indices, 0))
    found.block(block, 1)
    fastest = min(reversed(range(len(indices))), key=lambda k: found.costs[indices[k]])
    return [*(k for k in range(len(indices)) if k != fastest), fastest]


class _Accesses:
    def __init__(self, steps: dict[Var, Steps], costs: dict[Var, int]) -> None:
        self.steps, self.costs = steps, costs

    def block(self, block: Sequence[Stm], times: int) -> None:
        for s in block:
            match s:
                case Let(var, op, args):
                    self.steps[var] = self.result(op, args)
                case Load(var, buffer, index):
                    self.access(buffer, index, times)
                    self.steps[var] = dict.fromkeys(self.of(index), ELSEWHERE)
                case Store(buffer, index) | Atomic(_, buffer, index):
                    self.access(buffer, index, times)
                case Declare(var, value) | Assign(var, value):
                    before = self.steps.get(var)
                    now = self.of(value)
                    self.steps[var] = now if before is None else _joined(before, now)
                case _:
                    pass
            inner = times * GUESS if isinstance(s, For) else times
            for b in children(s):
                self.block(b, inner)

    def access(self, buffer: Buffer, index: Atom, times: int) -> None:
        if buffer.space in OWN:
            return
        steps = self.of(index)
        for v in self.costs:
            step = steps.get(v)
            self.costs[v] += times * (SAME if step is None else TOGETHER if abs(step) == 1 else APART)

    def of(self, a: Atom) -> Steps:
        return self.steps.get(a, {}) if isinstance(a, Var) else {}

    def result(self, op: str, args: Sequence[Atom]) -> Steps:
        first = self.of(args[0]) if args else {}
        match op, args:
            case "identity" | "convert", _:
                return first
            case "mod", (_, n) if not self.of(n):
                return first
            case "add" | "sub" | "min" | "max", (_, b):
                second = self.of(b)
                sign = -1 if op == "sub" else 1
                if op in ("min", "max"):
                    return _joined(first, second) if first and second else first or second
                both = {v: first.get(v, 0) + sign * second.get(v, 0) for v in (*first, *second)}
                return {v: ELSEWHERE if ELSEWHERE in (first.get(v), second.get(v)) else n for v, n in both.items()}
            case "select", (_, a, b):
                return _joined(self.of(a), self.of(b))
            case "mul", (a, b):
                for x, y in ((a, b), (b, a)):
                    if isinstance(x, Const) and x.type.dtype.is_int:
                        return {v: n * int(x.value.real) for v, n in self.of(y).items()}
        return dict.fromkeys([v for a in args for v in self.of(a)], ELSEWHERE)


def _joined(a: Steps, b: Steps) -> Steps:
    return {v: a[v] if a.get(v) == b.get(v) else ELSEWHERE for v in (*a, *b)}
