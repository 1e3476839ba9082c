"""The way of a carried array through one iteration of a loop: updates of cells and slices, branches and loops with
such.

`trace_updates` gives the steps of that way; None when it is another one, as where the array is replaced as a whole.
"""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass

from tapeless.ir.builder import Builder
from tapeless.ir.core import Apply, Body, For, If, Stm, Update, While
from tapeless.ir.types import I64, Atom, Dim, Var, dim_atom


@dataclass(frozen=True)
class Step:
    """An update, or a branch with the steps of its two arms, or a loop with those of its body."""

    stm: Stm
    arms: tuple[tuple[Step, ...], ...] = ()
    number: int = 0  # which of the results of the statement it is


def trace_updates(body: Body, result: Atom, root: Var) -> tuple[Step, ...] | None:
    """The steps from `root` to `result`, first to last."""
    definitions = {v: s for s in body.stms for v in s.vars}
    steps: list[Step] = []
    while result is not root:
        stm = definitions.get(result) if isinstance(result, Var) else None
        if stm is None:
            return None
        assert isinstance(result, Var)
        match stm.exp:
            case Update(array=array):
                steps.append(Step(stm))
                result = array
            case If(then=then, orelse=orelse):
                k = stm.vars.index(result)
                inner = _common_root(then, orelse, k)
                if inner is None:
                    return None
                arms = [trace_updates(arm, arm.results[k], inner) for arm in (then, orelse)]
                if any(arm is None for arm in arms):
                    return None
                steps.append(Step(stm, tuple(a for a in arms if a is not None), k))
                result = inner
            case For(params=params, inits=inits, body=inside) | While(params=params, inits=inits, body=inside):
                k = stm.vars.index(result)
                within = trace_updates(inside, inside.results[k], params[k])
                if within is None:
                    return None
                steps.append(Step(stm, (within,), k))
                result = inits[k]
            case _:
                return None
    return tuple(reversed(steps))


def _common_root(then: Body, orelse: Body, k: int) -> Var | None:
    roots = []
    for arm in (then, orelse):
        definitions = {v: s for s in arm.stms for v in s.vars}
        at: Atom = arm.results[k]
        while isinstance(at, Var) and at in definitions:
            exp = definitions[at].exp
            if isinstance(exp, Update):
                at = exp.array
            elif isinstance(exp, If):
                inner = _common_root(exp.then, exp.orelse, definitions[at].vars.index(at))
                if inner is None:
                    return None
                at = inner
            elif isinstance(exp, (For, While)):
                at = exp.inits[definitions[at].vars.index(at)]
            else:
                return None
        roots.append(at)
    found = roots[0]
    return found if isinstance(found, Var) and found is roots[1] else None


def steps_within(steps: Sequence[Step]) -> list[Step]:
    """All of them, outer ones first."""
    return [found for s in steps for found in (s, *(x for arm in s.arms for x in steps_within(arm)))]


def array_before(step: Step) -> Var | None:
    """What a loop or an update takes."""
    match step.stm.exp:
        case Update(array=array):
            return array
        case For(inits=inits) | While(inits=inits):
            found = inits[step.number]
            return found if isinstance(found, Var) else None
    return None


def cells_of(b: Builder, lengths: Sequence[Dim]) -> Atom:
    """How many cells a slice has."""
    total = dim_atom(lengths[0])
    for d in lengths[1:]:
        total = b.let(I64, Apply("mul", (total, dim_atom(d))), "cells")
    return total
