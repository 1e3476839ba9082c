"""Decisions instead of values: what a comparison said, where the backward pass needs a carried value for nothing else.

`decide` takes an iteration backwards and the carried values that would be kept for it; gives `Decisions`: truth values
computed forwards, and the iteration that reads them. None where that does not take fewer bytes.

Note [Decisions]
The values at the start of an iteration lead to its adjoints in two ways: as numbers (slopes, positions, sizes), or by
truth values that choose. A truth value is cut where something else than a truth value is made of it: its definition
goes, and it is read from an array with an axis for each sweep around it. Numbers that lead to adjoints without passing
a cut are hard: what they come from is kept, and the search starts again without it. A cut may lie in sweeps and
`with_acc`, not in branches and loops, which count as one operation. All that leads to it is known at the start of the
iteration, so the forward loop computes it too: its body becomes the forward part of the iteration run again, which does
the same, and after that the part of the backward pass that leads to cuts.
"""

from __future__ import annotations

from collections.abc import Collection, Iterable, Mapping, Sequence
from copy import copy
from dataclasses import dataclass, replace

from tapeless.ad.recovery.decision_rows import deciding, reading
from tapeless.ad.recovery.iteration import Region
from tapeless.ad.recovery.sizes import fewer
from tapeless.ir.core import (
    Apply,
    ArrayLit,
    Body,
    Broadcast,
    Check,
    Concat,
    Copy,
    Exp,
    For,
    Full,
    Index,
    Iota,
    Print,
    Reshape,
    Stm,
    Sweep,
    Transpose,
    Update,
    UpdateAcc,
    WithAcc,
)
from tapeless.ir.operands import regions
from tapeless.ir.types import Atom, Dim, DType, Type, Var
from tapeless.ir.walk import Substitution, all_stms, free_in_exp, free_in_lambda, map_regions
from tapeless.passes.tidy.dce import live_part

MOVES = (Index, Update, Iota, Full, ArrayLit, Reshape, Transpose, Broadcast, Concat, Copy)
NOTHING: frozenset[Var] = frozenset()


@dataclass(frozen=True)
class Decisions:
    """`region` expects the decisions of one iteration as `reads`, and does not need `values`. `body` is the iteration
    forwards in the names of the region; its results are the values at the end, then the decisions.
    """

    values: frozenset[Var]
    region: Region
    reads: tuple[Var, ...]
    body: Body

    def forwards(self, exp: For) -> tuple[For, list[Atom], dict[Var, Atom]]:
        """The loop with the decisions; they, and the names of what the region has forwards."""
        given = (self.region.index, *self.region.params)
        names = Substitution(dict(zip(given, (exp.index, *exp.params), strict=True)), refresh=True)
        body, count = names.body(self.body), len(exp.params)
        return replace(exp, body=Body(body.stms, body.results[:count])), list(body.results[count:]), names.map


def decide(region: Region, kept: Mapping[Var, Sequence[Type]], logged: Collection[Var]) -> Decisions | None:
    """`kept` are the region's parameters that would be kept, with what that takes; `logged` those of them that are
    updated again in the backward pass if they are.
    """
    again = tuple(r for p, r in zip(region.params, region.again, strict=True) if p in logged)
    whole, _ = live_part(Body(region.body.stms, (*region.body.results, *again)))
    body = Body(whole.stms, whole.results[: len(region.body.results)])
    if not any(v.type.dtype is DType.bool for s in all_stms(body) for v in s.vars):
        return None
    tries = [list(kept), *([p] for p in kept)] if len(kept) > 1 else [list(kept)]
    first = Search(region, body)
    for wanted in tries:
        found = _decide(region, first, set(wanted), logged)
        if found is not None and fewer(
            [r.type for r in found.reads], [t for p in kept if p in found.values for t in kept[p]]
        ):
            return found
    return None


def _decide(region: Region, first: Search, wanted: set[Var], logged: Collection[Var]) -> Decisions | None:
    while wanted:
        again = [region.again[k] for k, p in enumerate(region.params) if p in logged and p not in wanted]
        search = first.anew()
        search.run(wanted, (*first.body.results, *again))
        if not search.hard:
            break
        wanted -= search.hard
    if not wanted:
        return None
    return _apart(region, frozenset(wanted), search, again)


def _apart(region: Region, values: frozenset[Var], search: Search, again: Sequence[Atom]) -> Decisions | None:
    """The iteration in two: what decides, and what reads the decisions."""
    old = region.body
    body, found = reading(old, search.cuts)
    _, needed = live_part(Body(body.stms, (*body.results, *again)))
    if any(v in needed for v in values):
        return None
    cuts = [v for v in search.cuts if found[v] in needed]
    body, found = reading(old, cuts)
    reads = tuple(found[v] for v in cuts)
    return Decisions(values, replace(region, body=body), reads, _forwards(region, search, cuts))


def _forwards(region: Region, search: Search, cuts: Collection[Var]) -> Body:
    made = {v: None for s in region.forward.stms for v in s.vars}
    after = Body(tuple(s for s in region.body.stms if made.keys().isdisjoint(s.vars)), ())
    after = _forward_part(after, _accumulators(after), search.adjoint)
    both, arrays = deciding(Body((*region.forward.stms, *after.stms), ()), cuts)
    results = (*region.again, *(arrays[v] for v in cuts))
    body, _ = live_part(Body(both.stms, (*results, *made)))
    return Body(body.stms, results)


# -- where to cut: Note [Decisions]


class Search:
    """`cuts` are truth values that are kept, `hard` the values at the start that are needed as numbers. `sources` says
    which of those wanted a variable comes from without passing a cut.
    """

    def __init__(self, region: Region, body: Body) -> None:
        self.body = body
        self.cuts: dict[Var, None] = {}
        self.hard: set[Var] = set()
        self.sources: dict[Var, frozenset[Var]] = {}
        self.inside = {region.index, *region.params, *_bound(body)}
        self.places: set[Var] = set()  # truth values that may be cut
        self.adjoint = set(region.ends.values())
        self._mark(body)

    def anew(self) -> Search:
        """Another one in the same body."""
        new = copy(self)
        new.cuts, new.hard, new.sources, new.places = {}, set(), {}, set()
        return new

    def run(self, wanted: Iterable[Var], results: Iterable[Atom]) -> None:
        self.sources.update({p: frozenset([p]) for p in wanted})
        self._walk(self.body, ())
        self._use(results)

    # -- what depends on adjoints

    def _mark(self, body: Body) -> None:
        for s in body.stms:
            match s.exp:
                case Sweep(arrays=arrays, lam=lam) as exp:
                    self._mark_rows(lam.params[1:], arrays)
                    self._mark(lam.body)
                    for v, results in zip(s.vars, _together(exp), strict=True):
                        if not self.adjoint.isdisjoint(results):
                            self.adjoint.add(v)
                case WithAcc(arrays=arrays, lam=lam) as exp:
                    self._mark_rows(lam.params, arrays)
                    self._mark(lam.body)
                    if not self.adjoint.isdisjoint(free_in_exp(exp)):
                        self.adjoint.update(s.vars[: len(arrays)])
                    for v, r in zip(s.vars[len(arrays) :], lam.body.results, strict=True):
                        if r in self.adjoint:
                            self.adjoint.add(v)
                case exp:
                    if not self.adjoint.isdisjoint(free_in_exp(exp)):
                        self.adjoint.update(s.vars)

    def _mark_rows(self, params: Sequence[Var], arrays: Sequence[Var]) -> None:
        self.adjoint.update(p for p, a in zip(params, arrays, strict=True) if a in self.adjoint)

    # -- what leads to them

    def _walk(self, body: Body, around: tuple[Dim, ...]) -> None:
        for s in body.stms:
            match s.exp:
                case Sweep() as exp:
                    self._sweep(s, exp, around)
                case WithAcc(arrays=arrays, lam=lam) if not self.adjoint.isdisjoint(s.vars[: len(arrays)]):
                    self._use(a for a in arrays if a not in self.adjoint)
                    self._walk(lam.body, around)
                    for v, r in zip(s.vars[len(arrays) :], lam.body.results, strict=True):
                        self._give(v, [r])
                case exp:
                    self._plain(s, exp)
            for v in s.vars:
                if v.type.dtype is DType.bool and self._known((*around, *v.type.shape)):
                    self.places.add(v)

    def _plain(self, s: Stm, exp: Exp) -> None:
        used = free_in_exp(exp)
        if not self.adjoint.isdisjoint(s.vars) or _acts(s):
            self._use(used)
        elif not isinstance(exp, MOVES) and not all(v.type.dtype is DType.bool for v in s.vars):
            self._cut(used)
        for v in s.vars:
            self._give(v, used)

    def _sweep(self, s: Stm, exp: Sweep, around: tuple[Dim, ...]) -> None:
        operators = [*exp.reduces, *exp.scans]
        self._use(a for r in operators for a in (*r.neutral, *free_in_lambda(r.op)))
        if isinstance(exp.width, Var):
            self._use([exp.width])
        self._cut(exp.arrays)
        for p, a in zip(exp.lam.params[1:], exp.arrays, strict=True):
            self._give(p, [a])
        self._walk(exp.lam.body, (*around, exp.width))
        for v, results in zip(s.vars, _together(exp), strict=True):
            self._give(v, results)

    def _give(self, v: Var, used: Iterable[Atom]) -> None:
        """`v` is made of these."""
        if v in self.adjoint:
            self._use(used)
        elif found := NOTHING.union(*(self.sources.get(a, NOTHING) for a in used if isinstance(a, Var))):
            self.sources[v] = found

    def _use(self, atoms: Iterable[Atom]) -> None:
        """An adjoint is made of these."""
        atoms = list(atoms)
        self._cut(atoms)
        self.hard.update(*(self.sources.get(a, NOTHING) for a in atoms if isinstance(a, Var)))

    def _cut(self, atoms: Iterable[Atom]) -> None:
        for a in atoms:
            if isinstance(a, Var) and a in self.places and a in self.sources:
                del self.sources[a]
                self.cuts[a] = None

    def _known(self, sizes: Iterable[Dim]) -> bool:
        """Whether they are the same in every iteration."""
        return not any(d in self.inside for d in sizes)


def _together(exp: Sweep) -> list[tuple[Atom, ...]]:
    """For each result of a sweep, the results of its lambda that it is made of."""
    results, found = exp.lam.body.results, list[tuple[Atom, ...]]()
    for r in (*exp.reduces, *exp.scans):
        found += [results[len(found) : len(found) + len(r.neutral)]] * len(r.neutral)
    return [*found, *((r,) for r in results[len(found) :])]


def _acts(stm: Stm) -> bool:
    return any(isinstance(s.exp, (UpdateAcc, Check, Print)) for s in all_stms(Body((stm,), ())))


def _bound(body: Body) -> set[Var]:
    found = {v for s in all_stms(body) for v in s.vars}
    return found.union(p for s in all_stms(body) for r in regions(s.exp) for p in r.params)


def _accumulators(body: Body) -> set[Var]:
    """Those of the body itself."""
    return {p for s in all_stms(body) if isinstance(s.exp, WithAcc) for p in s.exp.lam.params}


def _forward_part(body: Body, own: Collection[Var], adjoint: Collection[Var]) -> Body:
    """The body without effects on accumulators of outside, and without what tests adjoints. Unused adjoints are left."""
    stms: list[Stm] = []
    for s in body.stms:
        if isinstance(s.exp, UpdateAcc) and s.exp.acc not in own:
            continue
        if not isinstance(s.exp, Apply):
            s = replace(s, exp=map_regions(s.exp, lambda b: _forward_part(b, own, adjoint)))
        walked = isinstance(s.exp, (Sweep, WithAcc, Apply))
        if walked or not _acts(s) or not any(v in adjoint for v in free_in_exp(s.exp)):
            stms.append(s)
    return Body(tuple(stms), body.results)
