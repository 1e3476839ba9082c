"""Carried values with a closed form in the loop's index: counters and induction variables.

`take_closed` gives the loop without them: inside, each is computed from the index; after the loop, from the number of
trips. That is exact: integers wrap alike, and whole floats stay below 2**53. Other floats would round differently, so
that a comparison could come out otherwise when it is made again; they are not taken.
"""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import dataclass, replace

from tapeless.ir.builder import Builder
from tapeless.ir.core import Apply, Body, For, Stm
from tapeless.ir.types import Atom, Const, DType, Var
from tapeless.ir.walk import all_stms
from tapeless.ops.emit import Emit

EXACT = 2.0**20  # starts and steps of whole floats: so many trips as a machine can make stay exact


@dataclass(frozen=True)
class Counter:
    """start + step * index"""

    param: Var
    start: Atom
    step: Atom
    minus: bool

    def at(self, emit: Emit, index: Atom) -> Atom:
        dtype = self.param.type.dtype
        moved = emit("mul", emit.convert(index, dtype), self.step)
        return emit("sub" if self.minus else "add", self.start, moved)


def take_closed(b: Builder, stm: Stm, exp: For, active: Callable[[Atom], bool]) -> tuple[Stm, For, list[Counter]]:
    """The loop without its counters, which are bound here."""
    counters = [c for c in counters_of(exp) if not active(c.param)]
    if not counters:
        return stm, exp, []
    emit = Emit(b)
    with b.region() as stms:
        for c in counters:
            b.alias(c.param, c.at(emit, exp.index))
        for s in exp.body.stms:
            b.add(s)
    end = emit("max", exp.bound, 0, label="trips")
    for c in counters:
        b.alias(stm.vars[exp.params.index(c.param)], c.at(emit, end))
    gone = {exp.params.index(c.param) for c in counters}
    left = [k for k in range(len(exp.params)) if k not in gone]
    new = replace(
        exp,
        params=tuple(exp.params[k] for k in left),
        inits=tuple(exp.inits[k] for k in left),
        body=Body(tuple(stms), tuple(exp.body.results[k] for k in left)),
    )
    return Stm(tuple(stm.vars[k] for k in left), new, stm.span), new, counters


def counters_of(exp: For) -> list[Counter]:
    made = {s.vars[0]: s.exp for s in exp.body.stms if isinstance(s.exp, Apply)}
    bound = {*exp.params, exp.index, *(v for s in all_stms(exp.body) for v in s.vars)}
    found: list[Counter] = []
    for p, start, result in zip(exp.params, exp.inits, exp.body.results, strict=True):
        match made.get(result) if isinstance(result, Var) else None:
            case Apply(op="add", args=(a, step)) | Apply(op="add", args=(step, a)) if a is p:
                minus = False
            case Apply(op="sub", args=(a, step)) if a is p:
                minus = True
            case _:
                continue
        if step not in bound and _exact(p, start, step):
            found.append(Counter(p, start, step, minus))
    return found


def _exact(p: Var, start: Atom, step: Atom) -> bool:
    if p.type.dtype.is_int:
        return True
    whole = [a.value for a in (start, step) if isinstance(a, Const) and isinstance(a.value, float)]
    return p.type.dtype is DType.f64 and len(whole) == 2 and all(v.is_integer() and abs(v) <= EXACT for v in whole)
