"""Loops that another one does too: what they carry, that one carries as well, from the same start by the same steps.

Takes and gives a verified function. Relies on `cse`, which finds loops that are equal, and makes equal what is in them.
The backward part of an element runs the loops of its forward part again and keeps what they go through, next to that
forward part, where values and derivatives are wanted at once.
"""

from __future__ import annotations

from collections.abc import Hashable, Sequence
from dataclasses import replace

from tapeless.ir.core import Body, For, Function, Stm, While
from tapeless.ir.effects import has_effects
from tapeless.ir.hints import NONE
from tapeless.ir.types import Atom, Var
from tapeless.ir.walk import Substitution, free_in_body, free_in_exp, in_regions, map_function, with_stms
from tapeless.passes.analysis.dependence import Footprints
from tapeless.passes.analysis.moving import brought_forward
from tapeless.passes.tidy.cse import full_key

Loop = For | While
Stms = tuple[Stm, ...]


def drop_repeated_loops(function: Function) -> Function:
    found = _Repeated()
    function = map_function(function, found.body)
    return map_function(function, Substitution(found.same).body) if found.same else function


class _Repeated:
    def __init__(self) -> None:
        self.same: dict[Var, Atom] = {}  # results of loops that are gone
        self.footprints = Footprints()
        self.keys: dict[int, tuple[Loop, Hashable]] = {}

    def body(self, body: Body) -> Body:
        loops = [s for s in body.stms if isinstance(s.exp, (For, While))]
        stms = body.stms
        if len(loops) > 1:
            loops.sort(key=lambda s: -len(s.vars))
            for k, small in enumerate(loops):
                stms = next((new for big in loops[:k] if (new := self.without(small, big, stms)) is not None), stms)
        return with_stms(
            Body(stms, body.results) if stms is not body.stms else body, [in_regions(s, self.body) for s in stms]
        )

    def without(self, small: Stm, big: Stm, stms: Stms) -> Stms | None:
        """The statements without a loop that the other one does, if so. That one comes no later."""
        a, b = small.exp, big.exp
        assert isinstance(a, (For, While)) and isinstance(b, (For, While))
        if type(a) is not type(b) or len(a.params) >= len(b.params) or not _could_be_in(a, b):
            return None
        i, j = (next((k for k, s in enumerate(stms) if s is loop), -1) for loop in (small, big))
        if min(i, j) < 0:
            return None
        places = _places(a, b)
        part = _part(b, places) if places is not None else None
        if places is None or part is None or self.key(a) is None or self.key(a) != full_key(part):
            return None
        if i < j:
            ahead = brought_forward(self.footprints, stms[i:j], big)
            if ahead is None:
                return None
            rest = [s for s in stms[i + 1 : j] if not any(s is other for other in ahead)]
            found = (*stms[:i], *ahead, big, *rest, *stms[j + 1 :])
        else:
            found = (*stms[:i], *stms[i + 1 :])
        self.same.update({v: big.vars[q] for v, q in zip(small.vars, places, strict=True)})
        return found

    def key(self, loop: Loop) -> Hashable:
        known = self.keys.get(id(loop))
        if known is None:
            known = self.keys[id(loop)] = loop, full_key(replace(loop, hints=NONE))
        return known[1]


def _could_be_in(small: Loop, big: Loop) -> bool:
    if isinstance(small, For) and isinstance(big, For) and small.bound != big.bound:
        return False
    if any(p.type.shape for p in small.params) or not set(small.inits) <= set(big.inits):
        return False
    return not any(has_effects(body) for body in _bodies(small))


def _bodies(loop: Loop) -> tuple[Body, ...]:
    return (loop.body,) if isinstance(loop, For) else (loop.cond, loop.body)


def _places(small: Loop, big: Loop) -> list[int] | None:
    """Which of the larger loop's variables those of the smaller one are."""
    places: list[int] = []
    for p, init in zip(small.params, small.inits, strict=True):
        fits = [
            q for q, other in enumerate(big.inits) if other == init and big.params[q].type == p.type and q not in places
        ]
        if not fits:
            return None
        places.append(next((q for q in fits if big.params[q].name == p.name), fits[0]))
    return places


def _part(loop: Loop, places: Sequence[int]) -> Loop | None:
    """The loop with these variables alone; None if they need others."""
    results = tuple(loop.body.results[q] for q in places)
    needed = {r for r in results if isinstance(r, Var)}
    stms: list[Stm] = []
    for s in reversed(loop.body.stms):
        if not needed.isdisjoint(s.vars):
            stms.append(s)
            needed.update(free_in_exp(s.exp))
    body = Body(tuple(reversed(stms)), results)
    params = tuple(loop.params[q] for q in places)
    inits = tuple(loop.inits[q] for q in places)
    part = replace(loop, params=params, inits=inits, body=body, hints=NONE)
    used = {v for b in _bodies(part) for v in free_in_body(b)}
    return None if any(p in used and p not in params for p in loop.params) else part
