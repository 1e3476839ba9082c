"""Iterations solved for the values at their start, from those at their end: a loop that runs backwards needs no memory.

`invert` takes a loop and the carried values that are needed; gives an `Inverse`, or in words what stands in the way.
Integers come back exactly. Floats come back up to rounding, which grows or not with the loop, so the backward pass
measures how far it is off: `ad.recovery.drift`.

Note [Solving]
What is known: the values at the end, the index, everything from outside. Statements whose operands are known are run
again; of a statement whose result is known and that has one operand that is not, the operand is solved for. That goes
on until nothing new is learned. Sweeps, branches and loops are solved by the same means inside.
"""

from __future__ import annotations

from dataclasses import dataclass
from typing import TYPE_CHECKING

from tapeless.ir.builder import Builder
from tapeless.ir.calls import Functions
from tapeless.ir.core import Body, For, Lambda
from tapeless.ir.types import Atom, Var
from tapeless.ops.table import INEXACT
from tapeless.passes.tidy.dce import live_part
from tapeless.reversible.solve import Solver

if TYPE_CHECKING:
    from collections.abc import Sequence


@dataclass
class Inverse:
    """`lam` takes the index and the values of `state` at the end of an iteration, and gives those at its start."""

    state: list[Var]
    lam: Lambda

    def emit(self, b: Builder, index: Var, ends: Sequence[Var]) -> list[Atom]:
        return list(b.inline(self.lam, [index, *ends]))


def invert(
    exp: For, needed: set[Var], exact: bool, functions: Functions | None = None, declared: bool = False
) -> Inverse | str:
    """`exact`: only by operations that lose nothing, and calls of functions that say how they are undone if that may be
    `declared`.
    """
    body = exp.body
    candidates = [p for p in exp.params if not (exact and not declared and p.type.dtype in INEXACT)]
    while True:
        b = Builder(functions=functions)
        index = Var(exp.index.name, exp.index.type)
        ends = {p: Var(p.name, p.type) for p in candidates}
        solver = Solver(b, body, (*exp.params, exp.index), exact)
        solver.learn(exp.index, index)
        for p, end in ends.items():
            solver.learn(body.results[exp.params.index(p)], end)
        solver.run()
        solved = [p for p in candidates if solver.knows(p)]
        if set(solved) == set(candidates):
            break
        candidates = solved
    if not needed <= set(candidates):
        lost = next(p for p in exp.params if p in needed and p not in candidates)
        return f"'{lost.name}' at the start of an iteration cannot be solved for from the values at its end"
    return _least(
        Lambda((index, *ends.values()), Body(tuple(b.stms), tuple(solver.atom(p) for p in ends))), ends, needed
    )


def _least(lam: Lambda, ends: dict[Var, Var], needed: set[Var]) -> Inverse:
    """Without values that are only there because they could be solved for."""
    names, results = list(ends), dict(zip(ends, lam.body.results, strict=True))
    state = set(needed)
    while True:
        live, vars = live_part(Body(lam.body.stms, tuple(results[p] for p in names if p in state)))
        used = {p for p in names if ends[p] in vars or any(r is ends[p] for r in live.results)}
        if used <= state:
            kept = [p for p in names if p in state]
            return Inverse(kept, Lambda((lam.params[0], *(ends[p] for p in kept)), live))
        state |= used
