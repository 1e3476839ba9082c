"""Loops that carry the same values: the second runs alongside the first, in one loop.

Takes and gives a verified function. Relies on `cse` to find what the bodies have in common afterwards. A loop and its
copy with tangents are two such loops: the copy computes all that the loop does, and more.

Note [Values in step]
Two carried values are in step if they start equal and each way around makes equal values of equal ones. All that start equal are
taken for equal at first; the bodies are compared on that ground, and those that turn out to be made otherwise are told
apart, until nothing changes. `while` loops go around as often as each other if their conditions say the same.
"""

from __future__ import annotations

from collections.abc import Hashable, Sequence

from tapeless.ir.core import Apply, Body, For, Function, Index, Stm, While, WithRegions
from tapeless.ir.rewrite import Rewriter
from tapeless.ir.types import Var
from tapeless.ir.walk import Substitution
from tapeless.passes.analysis.dependence import Footprints
from tapeless.passes.tidy.cse import apply_key, index_key

PROGRAMS = ("bessel'",)  # all of the collection that it changes: `tests/passes/test_firings.py`

Loop = For | While
NEAREST = 16  # so many earlier loops are compared with each, the nearest ones


def merge_loops(function: Function) -> Function:
    return Alongside().function(function)


class Alongside(Rewriter):
    def __init__(self) -> None:
        super().__init__()
        self.footprints = Footprints()

    def stm(self, stm: Stm) -> None:
        exp = self.rename(stm.exp)
        if isinstance(exp, WithRegions):
            exp = self.inside(exp)
        if not isinstance(exp, For | While) or not self.joined(Stm(stm.vars, exp, stm.span), exp):
            self.emit(stm, exp)

    def joined(self, stm: Stm, exp: Loop) -> bool:
        """Whether the loop has become part of an earlier one of the region."""
        tried = 0
        for at in reversed(range(len(self.out))):
            before = self.out[at].exp
            if not isinstance(before, For | While):
                continue
            tried += 1
            if tried > NEAREST:
                break
            shared = in_step(before, exp)
            place = self.place(at, stm) if shared else None
            if place is None:
                continue
            first = self.out[at]
            merged = _merged(first, before, stm, exp, shared)
            if place == at:
                self.out[at] = merged
            else:
                del self.out[at]
                self.out.append(merged)
            results = dict(zip(before.params, first.vars, strict=True))
            for p, v in zip(exp.params, stm.vars, strict=True):
                if p in shared:
                    self.map[v] = results[shared[p]]
            return True
        return False

    def place(self, at: int, second: Stm) -> int | None:
        """Where both can run: at the first, if all that the second uses is there, or at the second, if nobody needs the
        first before. Note [Trading places] in `dependence`.
        """
        first, between = self.out[at], self.out[at + 1 :]
        one, two = self.footprints.stm(first), self.footprints.stm(second)
        if one.ordered or two.ordered or one.consumed or two.consumed or any(v in two.free for v in first.vars):
            return None
        others = [self.footprints.stm(s) for s in between]
        if any(o.consumed for o in others):
            return None
        bound = {v for s in between for v in s.vars}
        if bound.isdisjoint(two.free) and not any(o.must_precede(two) for o in others):
            return at
        return None if any(v in o.free for o in others for v in first.vars) else len(self.out)


def _merged(first: Stm, a: Loop, second: Stm, b: Loop, shared: dict[Var, Var]) -> Stm:
    own = [k for k, p in enumerate(b.params) if p not in shared]
    params = (*a.params, *(b.params[k] for k in own))
    inits = (*a.inits, *(b.inits[k] for k in own))
    renamed = Substitution({**shared, b.index: a.index} if isinstance(a, For) and isinstance(b, For) else shared)
    again = renamed.body(b.body)
    body = Body((*a.body.stms, *again.stms), (*a.body.results, *(again.results[k] for k in own)))
    vars = (*first.vars, *(second.vars[k] for k in own))
    if isinstance(a, For):
        return Stm(vars, For(a.index, a.bound, params, inits, body, a.hints), first.span)
    return Stm(vars, While(params, inits, a.cond, body, a.hints), first.span)


# -- Note [Values in step]


def in_step(a: Loop, b: Loop) -> dict[Var, Var]:
    """For values that the second loop carries, those of the first that are the same on every way around. Empty where
    the loops do not go around equally often, or share no more than counters.
    """
    if isinstance(a, For):
        alike = isinstance(b, For) and a.bound == b.bound
    else:
        alike = isinstance(b, While)
    if not alike or a.hints != b.hints or {a.inits[k] for k in range(len(a.inits))}.isdisjoint(b.inits):
        return {}
    groups = _numbered([(p.type, init) for loop in (a, b) for p, init in zip(loop.params, loop.inits, strict=True)])
    while True:
        values = _Values(a, b, groups)
        split = _numbered(list(zip(groups, values.results, strict=True)))
        if split == groups:
            break
        groups = split
    if not values.end_together:
        return {}
    first = {group: p for p, group in reversed(list(zip(a.params, groups, strict=False)))}
    shared = {p: first[g] for p, g in zip(b.params, groups[len(a.params) :], strict=True) if g in first}
    return shared if any(p.type.dtype.is_float for p in shared) else {}


def _numbered(keys: Sequence[Hashable]) -> list[int]:
    numbers: dict[Hashable, int] = {}
    return [numbers.setdefault(key, len(numbers)) for key in keys]


class _Values(Rewriter):
    """What the bodies of two loops compute if carried values of one group are equal: `map` has one name for each."""

    def __init__(self, a: Loop, b: Loop, groups: Sequence[int]) -> None:
        super().__init__()
        self.seen: dict[Hashable, Var] = {}
        named: dict[int, Var] = {}
        for p, group in zip((*a.params, *b.params), groups, strict=True):
            self.name(p, named.setdefault(group, p))
        self.end_together = True
        if isinstance(a, For) and isinstance(b, For):
            self.name(b.index, a.index)
        elif isinstance(a, While) and isinstance(b, While):
            self.end_together = self.values(a.cond) == self.values(b.cond)
        self.results = (*self.values(a.body), *self.values(b.body))

    def name(self, var: Var, known: Var) -> None:
        if known is not var:
            self.map[var] = known

    def values(self, body: Body) -> tuple[Hashable, ...]:
        for stm in body.stms:
            if isinstance(stm.exp, Apply | Index):
                exp = self.rename(stm.exp)
                key = apply_key(exp, stm.vars[0].type) if isinstance(exp, Apply) else index_key(exp)  # type: ignore[arg-type]
                self.name(stm.vars[0], self.seen.setdefault(key, stm.vars[0]))
        return self.atoms(body.results)
