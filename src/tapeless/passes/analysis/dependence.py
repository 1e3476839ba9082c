"""Which statements of a region may trade places: what each uses, which arrays it consumes, whether it has effects.

Takes expressions; gives their footprints, and the groups of names that may stand for one piece of memory. Relies on
names being bound once. Passes that move statements ask here; answers err on the side of "they must stay in order".

Note [Trading places]
Two neighbours may trade places unless
  * one uses what the other binds,
  * both have ordered effects: checks, prints, tested positions. Updates of accumulators have no order,
  * the first has such an effect and the second an untested position, or a library routine that is not for all operands: the position
    may be inside, and the operands be right, only because the test held, or
  * one consumes memory that the other looks at. Arrays are values, so the results would be right all the same, but a
    reader that comes after the consumer costs a copy of the array (`consumption.py`).
Memory is judged by groups of names: views, rows of a sweep, new versions by an update, carried values and results of
branches are in the group of what they came from. Results of sweeps, copies and the like have memory of their own.
"""

from __future__ import annotations

from collections.abc import Iterable, Sequence
from dataclasses import replace
from typing import assert_never

from tapeless.ir.core import (
    Apply,
    ArrayLit,
    At,
    Body,
    Broadcast,
    Call,
    Check,
    Concat,
    Copy,
    Exp,
    For,
    Full,
    Hist,
    If,
    Index,
    Iota,
    Lambda,
    Library,
    Print,
    Progress,
    Reduction,
    Reshape,
    Scatter,
    Stm,
    Sweep,
    Transpose,
    Update,
    UpdateAcc,
    While,
    WithAcc,
    WithRegions,
)
from tapeless.ir.effects import is_effect
from tapeless.ir.node import node
from tapeless.ir.operands import operands, regions
from tapeless.ir.types import Atom, Var
from tapeless.ops.library import library_op
from tapeless.passes.analysis.facts import axis_is_inside

Names = dict[Var, None]  # a set that keeps its order, so that a program is compiled to the same code every time


@node(frozen=True, slots=True)
class Footprint:
    """`free` are the names used from outside, `inner` those of them used in regions. `size` counts statements."""

    free: Names
    inner: Names
    consumed: frozenset[Var]  # of names bound inside too
    ordered: bool  # Note [Trading places]
    size: int
    bare: bool  # may rely on tests before it

    def must_precede(self, later: Footprint) -> bool:
        """Do effects keep it in front of what comes after it?"""
        return self.ordered and (later.ordered or later.bare)


class Footprints:
    """Footprints of expressions with regions are kept: a nest is walked once, not once per level."""

    def __init__(self) -> None:
        self.known: dict[int, tuple[Exp, Footprint]] = {}

    def stm(self, stm: Stm) -> Footprint:
        found = self.exp(stm.exp)
        free = found.free
        dims = [d for v in stm.vars for d in v.type.shape if isinstance(d, Var) and d not in free and d not in stm.vars]
        if not dims:
            return found
        return replace(found, free={**found.free, **dict.fromkeys(dims)})

    def exp(self, exp: Exp) -> Footprint:
        if (known := self.known.get(id(exp))) is not None:
            return known[1]
        own = dict.fromkeys([a for a in operands(exp) if isinstance(a, Var)])
        if not isinstance(exp, WithRegions):
            return Footprint(own, {}, frozenset(consumed_by(exp)), is_ordered(exp), 1, is_bare(exp))
        found = self._with_regions(exp, own)
        self.known[id(exp)] = exp, found
        return found

    def _with_regions(self, exp: Exp, own: Names) -> Footprint:
        first, *others = [self.region(r) for r in regions(exp)]
        inner, consumed = first.free, first.consumed.union(consumed_by(exp))
        ordered, size, bare = first.ordered, 1 + first.size, first.bare
        for p in others:
            inner, consumed = inner | p.free, consumed | p.consumed
            ordered, size, bare = ordered or p.ordered, size + p.size, bare or p.bare
        return Footprint(own | inner, inner, consumed, ordered, size, bare)

    def region(self, lam: Lambda) -> Footprint:
        """Of the statements and results of a region."""
        bound: set[Var] = set(lam.params)
        free: Names = {}
        for p in lam.params:
            for d in p.type.shape:
                if isinstance(d, Var) and d not in bound:
                    free[d] = None
        consumed: set[Var] = set()
        ordered, bare, size = False, False, len(lam.body.stms)
        for stm in lam.body.stms:
            exp = stm.exp
            if isinstance(exp, Apply):
                used: Iterable[Atom] = exp.args
            elif isinstance(exp, WithRegions):
                found = self.exp(exp)
                used = found.free
                consumed |= found.consumed
                ordered, bare = ordered or found.ordered, bare or found.bare
                size += found.size - 1
            else:
                used = operands(exp)
                consumed.update(consumed_by(exp))
                ordered, bare = ordered or is_ordered(exp), bare or is_bare(exp)
            for a in used:
                if isinstance(a, Var) and a not in bound:
                    free[a] = None
            bound.update(stm.vars)
            for v in stm.vars:
                for d in v.type.shape:
                    if isinstance(d, Var) and d not in bound:
                        free[d] = None
        for a in lam.body.results:
            if isinstance(a, Var) and a not in bound:
                free[a] = None
        return Footprint(free, free, frozenset(consumed), ordered, size, bare)


def is_ordered(exp: Exp) -> bool:
    """Has it, regions aside, an effect that must keep its place among others? Note [Trading places]."""
    if isinstance(exp, UpdateAcc):
        return any(isinstance(a, At) and a.check for a in exp.axes)
    return is_effect(exp)


def is_bare(exp: Exp) -> bool:
    """Is it, regions aside, a position that is neither tested nor inside in any case, or a routine that not all operands suit?"""
    if isinstance(exp, Library):
        return library_op(exp.name).partial
    if not isinstance(exp, (Index, Update, UpdateAcc)):
        return False
    shape = exp.array.type.shape if not isinstance(exp, UpdateAcc) else exp.acc.type.shape
    return any(
        not (isinstance(a, At) and a.check) and not axis_is_inside(a, n) for a, n in zip(exp.axes, shape, strict=True)
    )


def consumed_by(exp: Exp) -> Sequence[Var]:
    """The arrays whose memory the expression itself takes over, its regions aside."""
    match exp:
        case Update(array):
            return (array,)
        case Hist(_, dests) | Scatter(dests):
            return dests
        case WithAcc(arrays):
            return arrays
        case For(_, _, params, inits, body) | While(params, inits, _, body):
            carried = zip(params, inits, body.results, strict=True)
            return [a for p, a, r in carried if isinstance(a, Var) and a.type.shape and r is not p]
        case Apply() | Index() | UpdateAcc() | Library() | Check() | Print() | Iota() | Full() | ArrayLit() | Reshape():
            return ()
        case Transpose() | Broadcast() | Concat() | Copy() | Call() | Progress() | Sweep() | If():
            return ()
        case _:
            assert_never(exp)


# -- memory


class Memory:
    """Groups of arrays that may share memory: a forest, `find` gives the name that stands for the group."""

    def __init__(self) -> None:
        self.parent: dict[Var, Var] = {}

    def find(self, var: Var) -> Var:
        parent = self.parent
        while (up := parent.get(var, var)) is not var:
            if (top := parent.get(up, up)) is not up:
                parent[var] = top
            var = up
        return var

    def groups(self, vars: Iterable[Var]) -> set[Var]:
        return {self.find(v) for v in vars if v.type.shape}

    def share(self, a: Atom, b: Atom) -> None:
        if isinstance(a, Var) and isinstance(b, Var) and a.type.shape and b.type.shape:
            self.parent[self.find(a)] = self.find(b)

    def share_all(self, some: Iterable[Atom], others: Iterable[Atom]) -> None:
        for a, b in zip(some, others, strict=True):
            self.share(a, b)

    def body(self, body: Body) -> None:
        for stm in body.stms:
            if not isinstance(stm.exp, Apply):
                self.stm(stm)

    def stm(self, stm: Stm) -> None:
        vars, exp = stm.vars, stm.exp
        match exp:
            case Index(array) | Reshape(array) | Transpose(array) | Broadcast(array) | Update(array):
                self.share(vars[0], array)
            case If(_, then, orelse):
                self.share_all(vars, then.results)
                self.share_all(vars, orelse.results)
            case For(_, _, params, inits, body) | While(params, inits, _, body):
                self.share_all(vars, params)
                self.share_all(params, inits)
                self.share_all(params, body.results)
            case Sweep(_, arrays, lam, reduces, scans):
                self.share_all(lam.params[1:], arrays)
                self.operands(lam.body.results, (*reduces, *scans))
            case Hist(op, dests, _, arrays, lam):
                self.share_all(vars, dests)
                self.share_all(lam.params[1:], arrays)
                self.operands(lam.body.results[1:], (op,))
            case Scatter(dests, _, arrays, lam):
                self.share_all(vars, dests)
                self.share_all(lam.params[1:], arrays)
            case WithAcc(arrays, lam):
                self.share_all(vars, (*arrays, *lam.body.results))
                self.share_all(lam.params, arrays)
            case Apply() | Iota() | Full() | ArrayLit() | Concat() | Copy():
                pass
            case UpdateAcc() | Library() | Call() | Check() | Print() | Progress():
                pass
            case _:
                assert_never(exp)
        if isinstance(exp, WithRegions):
            for region in regions(exp):
                self.body(region.body)

    def operands(self, results: Sequence[Atom], operators: Sequence[Reduction]) -> None:
        """The right operands are what the lambda gave. The running value on the left has memory of its own."""
        rest = iter(results)
        for operator in operators:
            for param in operator.op.params[len(operator.neutral) :]:
                self.share(param, next(rest))


def clash(memory: Memory, a: Footprint, b: Footprint) -> bool:
    """Does one of them consume memory that the other looks at?"""
    if not a.consumed and not b.consumed:
        return False
    return not (
        memory.groups(a.consumed).isdisjoint(memory.groups(b.free))
        and memory.groups(b.consumed).isdisjoint(memory.groups(a.free))
    )
