"""What several passes ask of Core: which statements may fail, what is a view, and which arrays end up being written in
place.

Takes expressions or a function; gives answers that err on the safe side. Relies on a verified program.

Note [Taken arrays]
Two names for one array are free as long as nobody writes it; once somebody does, there must be a copy. So a pass does
not make one fresh array out of two, nor make it once instead of once per iteration, if it is *taken*: consumed, or
handed on to where it may be (carried by a loop, a result of the function), directly or through a view.
"""

from __future__ import annotations

from collections import Counter
from collections.abc import Iterable, Sequence
from typing import assert_never

from tapeless.ir.core import (
    Apply,
    ArrayLit,
    At,
    Axis,
    Body,
    Broadcast,
    Call,
    Check,
    Concat,
    Copy,
    Exp,
    For,
    Full,
    Function,
    Hist,
    If,
    Index,
    Iota,
    Lambda,
    Library,
    Print,
    Progress,
    Range,
    Reshape,
    Scatter,
    Stm,
    Sweep,
    Transpose,
    Update,
    UpdateAcc,
    While,
    WithAcc,
)
from tapeless.ir.effects import tests_or_prints
from tapeless.ir.operands import operands, regions
from tapeless.ir.types import Atom, Const, Var
from tapeless.ir.walk import Substitution, all_stms, free_in_lambda, type_vars

EQUAL_STMS = 16  # statements of branches that are compared


def may_fail(stm: Stm) -> bool:
    """Does it test or print something, in its regions too? What comes later may rely on the test."""
    return tests_or_prints(Body((stm,), ()))


def is_view(exp: Exp) -> bool:
    """Is the result, if it is an array, a window on the memory of `exp.array`?"""
    return isinstance(exp, (Index, Reshape, Transpose, Broadcast))


def is_inside(exp: Index) -> bool:
    """Can no position be outside, whenever this runs? Only constants and whole axes are known to be inside."""
    return all(map(axis_is_inside, exp.axes, exp.array.type.shape))


def axis_is_inside(axis: Axis, length: object) -> bool:
    match axis:
        case At(Const(int(i))):
            return isinstance(length, int) and 0 <= i < length
        case Range(Const(0), n, Const(1)):
            return n == length
    return False


def repeated_results(vars: Sequence[Var], then: Body, orelse: Body) -> dict[int, Var]:
    """Scalar results that another one is in both arms: that one, by their position."""
    first: dict[tuple[Atom, Atom], Var] = {}
    found: dict[int, Var] = {}
    for k, (var, x, y) in enumerate(zip(vars, then.results, orelse.results, strict=True)):
        if not var.type.shape and x != y and first.setdefault((x, y), var) is not var:
            found[k] = first[x, y]
    return found


def equal_bodies(a: Body, b: Body) -> bool:
    """Do two branches do the same, but for the names of what they bind? Long ones and regions are not compared."""
    if len(a.stms) != len(b.stms) or len(a.stms) > EQUAL_STMS:
        return False
    names = Substitution({})
    for s, t in zip(a.stms, b.stms, strict=True):
        if type(s.exp) is not type(t.exp) or regions(s.exp) or names.exp(t.exp) != s.exp:
            return False
        if [v.type for v in s.vars] != [names.type(v.type) for v in t.vars]:
            return False
        names.map.update(zip(t.vars, s.vars, strict=True))
    return tuple(names.atom(r) for r in b.results) == a.results


def taken_arrays(function: Function) -> set[Var]:
    """Note [Taken arrays]. One walk against the order of execution: uses are met before what they use."""
    taken = Taken()
    taken.mark(function.body.results)
    taken.body(function.body)
    return taken.vars


class Taken:
    def __init__(self) -> None:
        self.vars: set[Var] = set()

    def mark(self, atoms: Iterable[Atom]) -> None:
        self.vars.update([a for a in atoms if isinstance(a, Var) and a.type.shape])

    def body(self, body: Body) -> None:
        for stm in reversed(body.stms):
            if not isinstance(stm.exp, Apply):
                self.exp(stm.exp, stm.vars)

    def exp(self, exp: Exp, vars: tuple[Var, ...]) -> None:
        match exp:
            case Index(array) | Reshape(array) | Transpose(array) | Broadcast(array):
                if vars[0] in self.vars:
                    self.mark([array])
            case Update(array):
                self.mark([array])
            case If(_, then, orelse):
                for branch in (then, orelse):
                    self.hand_on(vars, branch.results)
                    self.body(branch)
            case For(_, _, params, inits, body) | While(params, inits, _, body):
                kept = [k for k, (p, r) in enumerate(zip(params, body.results, strict=True)) if p is not r]
                self.mark([inits[k] for k in kept])
                self.mark([body.results[k] for k in kept])
                self.body(body)
                if isinstance(exp, While):
                    self.body(exp.cond)
                self.hand_on(params, inits)
                self.hand_on(vars, inits)
            case Sweep(_, arrays, lam, reduces, scans):
                for r in (*reduces, *scans):
                    self.body(r.op.body)
                self.rows(lam, arrays)
            case Hist(_, dests, _, arrays, lam) | Scatter(dests, _, arrays, lam):
                if isinstance(exp, Hist):
                    self.body(exp.op.op.body)
                self.mark(dests)
                self.rows(lam, arrays)
            case WithAcc(arrays, lam):
                self.hand_on(vars[len(arrays) :], lam.body.results)
                self.body(lam.body)
                self.mark(arrays)
            case Apply() | Iota() | Full() | ArrayLit() | Concat() | Copy():
                pass
            case UpdateAcc() | Library() | Call() | Check() | Print() | Progress():
                pass
            case _:
                assert_never(exp)

    def hand_on(self, vars: Sequence[Var], atoms: Sequence[Atom]) -> None:
        """The atoms whose variables are taken."""
        if self.vars.isdisjoint(vars):
            return
        self.mark([a for v, a in zip(vars, atoms, strict=True) if v in self.vars])

    def rows(self, lam: Lambda, arrays: Sequence[Var]) -> None:
        self.body(lam.body)
        self.hand_on(lam.params[1:], arrays)


def sizes_in(body: Body) -> set[Var]:
    """Variables that are sizes of arrays, or numbers of rows."""
    found: set[Var] = set()
    for stm in all_stms(body):
        bound = (*stm.vars, *(p for region in regions(stm.exp) for p in region.params))
        found.update(d for v in bound for d in type_vars(v.type))
        if isinstance(stm.exp, (Sweep, Hist, Scatter)) and isinstance(stm.exp.width, Var):
            found.add(stm.exp.width)
    return found


def used_once(body: Body) -> frozenset[Var]:
    """The variables that a region binds and uses once, and not in regions inside of it."""
    uses = Counter(a for a in body.results if isinstance(a, Var))
    for stm in body.stms:
        uses.update(a for a in operands(stm.exp) if isinstance(a, Var))
        for region in regions(stm.exp):
            uses.update(dict.fromkeys(free_in_lambda(region), 2))
    return frozenset(v for stm in body.stms for v in stm.vars if uses[v] == 1)
