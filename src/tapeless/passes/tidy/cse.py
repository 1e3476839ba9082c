"""Common subexpressions: what was computed before, here or in an enclosing region, is not computed again.

Takes and gives a verified function, in one walk in the order of execution. Relies on `facts` for which arrays must stay
two (Note [Taken arrays]). Effects and consumers (update, hist, scatter, with_acc) are never merged, nor is `copy`.

Note [Keys]
Expressions are looked up by a key: the expression itself, with the operands of commutative operations in one order, x -
1 for integers as x + -1, and without the tests of positions, which have passed once the first of two equal accesses is
done. For an expression with regions the key is a tuple in which names bound inside are numbered, so that names do not
matter. Checks inside are part of it: they have passed as well. What prints or updates an accumulator has no key. Such a
key holds those of all levels below, so it is only made once there is another expression with the same operands.
"""

from __future__ import annotations

from collections.abc import Hashable
from dataclasses import replace
from functools import cached_property
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
    Function,
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
)
from tapeless.ir.effects import runs_python
from tapeless.ir.operands import REGIONS, operands, regions
from tapeless.ir.rewrite import Rewriter
from tapeless.ir.types import Atom, Const, Type, Var, const
from tapeless.ir.walk import map_exp
from tapeless.ops.table import LOOSE, TABLE
from tapeless.passes.analysis.facts import taken_arrays

BUDGET = 200  # statements in the regions of one expression that is compared with others
EXACT = {loose: row for row, loose in LOOSE.items()}
# What makes an array, and so is merged only if nobody takes the array.
MAKERS = (Iota, Full, ArrayLit, Concat, Library)
VIEWS = (Reshape, Transpose, Broadcast)


def cse(function: Function) -> Function:
    return Cse(function).function(function)


class Cse(Rewriter):
    """`seen` maps keys to the variables that hold the value, in the order of execution: regions forget theirs."""

    def __init__(self, function: Function) -> None:
        super().__init__()
        self.seen: dict[Hashable, tuple[Var, ...]] = {}
        self.taken = taken_arrays(function)

    def stm(self, stm: Stm) -> None:
        same: dict[Var, Var] = {}  # results that are others of the statement
        self.shared(stm, same)
        for v, other in same.items():
            self.map[v] = self.map.get(other, other)

    def shared(self, stm: Stm, same: dict[Var, Var]) -> None:
        exp = self.rename(stm.exp) if self.map else stm.exp
        if isinstance(exp, Apply):
            key: Hashable = apply_key(exp, stm.vars[0].type)
        elif isinstance(exp, Index):
            key = index_key(exp)
        elif type(exp) in REGIONS:
            exp = self.inside(exp)
            if isinstance(exp, Sweep) and len(exp.reduces) > 1:
                stm, exp = self.reduced_once(stm, exp, same)
            if isinstance(exp, Sweep) and len(stm.vars) > 1:
                stm, exp = self.mapped_once(stm, exp, same)
            key = region_key(exp) if self.may_share(stm) else None
        elif isinstance(exp, VIEWS):
            key = exp
        elif isinstance(exp, MAKERS):
            alone = runs_python(exp) or (isinstance(exp, Full) and exp.value is None)
            key = exp if self.may_share(stm) and not alone else None
        elif isinstance(exp, Call):
            key = exp if self.may_share(stm) and not exp.effects else None
        else:
            key = None
        if key is None:
            self.emit(stm, exp)
            return
        before = self.seen.get(key)
        if before is None and isinstance(exp, Apply) and exp.op in EXACT:
            before = self.seen.get((EXACT[exp.op], *exp.args))  # Note [Loose rows] in `ops.table`
        if before is None:
            self.seen[key] = self.emit(stm, exp)
        elif not self.merge(stm.vars, before):
            self.emit(stm, exp)

    def reduced_once(self, stm: Stm, exp: Sweep, same: dict[Var, Var]) -> tuple[Stm, Sweep]:
        """Without reductions that another one of the sweep does as well."""
        first: dict[Hashable, tuple[Var, ...]] = {}
        kept: list[Reduction] = []
        places: list[int] = []
        at = 0
        for r in exp.reduces:
            mine = range(at, at + len(r.neutral))
            at = mine.stop
            vars, operands = stm.vars[mine.start : at], exp.lam.body.results[mine.start : at]
            key = Numbering().lam(r.op), r.neutral, operands
            before = first.setdefault(key, vars)
            if before is vars or any(v.type.shape for v in vars):
                kept.append(r)
                places.extend(mine)
            else:
                same.update(zip(vars, before, strict=True))
        if len(kept) == len(exp.reduces):
            return stm, exp
        places.extend(range(at, len(stm.vars)))
        body = Body(exp.lam.body.stms, tuple(exp.lam.body.results[k] for k in places))
        exp = replace(exp, lam=Lambda(exp.lam.params, body), reduces=tuple(kept))
        return Stm(tuple(stm.vars[k] for k in places), exp, stm.span), exp

    def mapped_once(self, stm: Stm, exp: Sweep, same: dict[Var, Var]) -> tuple[Stm, Sweep]:
        """Without arrays whose elements another one has as well."""
        results = exp.lam.body.results
        first: dict[tuple[Atom, Type], Var] = {}
        places: list[int] = []
        for k, (v, r) in enumerate(zip(stm.vars, results, strict=True)):
            combined = k < sum(len(c.neutral) for c in (*exp.reduces, *exp.scans))
            key = r, self.type(v.type)
            if combined or v in self.taken or first.setdefault(key, v) is v:
                places.append(k)
            else:
                same[v] = first[key]
        if len(places) == len(results):
            return stm, exp
        body = Body(exp.lam.body.stms, tuple(results[k] for k in places))
        exp = replace(exp, lam=Lambda(exp.lam.params, body))
        return Stm(tuple(stm.vars[k] for k in places), exp, stm.span), exp

    def may_share(self, stm: Stm) -> bool:
        return self.taken.isdisjoint(stm.vars)

    def merge(self, vars: tuple[Var, ...], before: tuple[Var, ...]) -> bool:
        """Declines if the types differ, as they may in the names of dimensions that are equal."""
        for v, old in zip(vars, before, strict=True):
            if v.type.shape and self.type(v.type) != old.type:
                return False
        self.map.update(zip(vars, before, strict=True))
        return True

    def body(self, body: Body) -> Body:
        known = len(self.seen)
        new = super().body(body)
        while len(self.seen) > known:
            self.seen.popitem()
        return new


# -- Note [Keys]


def apply_key(exp: Apply, type: Type) -> Hashable:
    op, args = exp.op, exp.args
    if len(args) == 2:
        x, y = args
        row = TABLE[op]
        if row.commutative:
            if id(x) > id(y) if isinstance(x, Var) and isinstance(y, Var) else isinstance(y, Var):
                x, y = y, x
            return op, x, y
        if op == "sub" and isinstance(y, Const) and y.dtype.is_int:
            return "add", x, const(-int(y.value.real), y.dtype)
        return (row.comparison.mirrored, y, x) if row.comparison and row.comparison.order > 0 else (op, x, y)
    return (op, type.dtype, *args) if op == "convert" else (op, *args)


def index_key(exp: Index) -> Hashable:
    for a in exp.axes:
        if isinstance(a, At) and a.check:
            return Index(exp.array, tuple(At(a.index, a.wrap) if isinstance(a, At) else a for a in exp.axes))
    return exp


def region_key(exp: Exp) -> Hashable:
    """None if there is none: see `full_key`."""
    return None if isinstance(exp, (Hist, Scatter, WithAcc)) else RegionKey(exp)


class RegionKey:
    """Stands for the key of an expression with regions."""

    def __init__(self, exp: Exp) -> None:
        self.exp = exp
        self.rough = (type(exp), *operands(exp), *[_outline(r.body) for r in regions(exp)])
        self.hash = hash(self.rough)

    @cached_property
    def full(self) -> Hashable:
        return full_key(self.exp)

    def __hash__(self) -> int:
        return self.hash

    def __eq__(self, other: object) -> bool:
        if self is other:
            return True
        if not isinstance(other, RegionKey) or self.hash != other.hash or self.rough != other.rough:
            return False
        return self.full is not None and self.full == other.full


def _outline(body: Body) -> Hashable:
    """The operations and constants that stand in it: few that differ have these in common."""
    found: list[Hashable] = []
    for stm in body.stms:
        exp = stm.exp
        if isinstance(exp, Apply):
            found.append(exp.op)
            found += [a for a in exp.args if type(a) is Const]
        else:
            found.append(type(exp).__name__)
    return tuple(found)


def full_key(exp: Exp) -> Hashable:
    """None for an expression that prints, updates an accumulator or an array of outside, or is too large."""
    try:
        return Numbering().exp(exp)
    except Declined:
        return None


class Declined(Exception):
    """The expression cannot be merged with another one."""


class Numbering:
    """Makes keys in which the variables bound so far are numbers."""

    def __init__(self) -> None:
        self.numbers: dict[Var, int] = {}
        self.stms = 0

    def exp(self, exp: Exp) -> Hashable:
        """The class, every operand and every region, in the order of `map_exp`, and what else the fields hold."""
        if isinstance(exp, (Print, Progress, UpdateAcc)):
            raise Declined
        if isinstance(exp, (Update, Hist, Scatter, WithAcc)):
            consumed = (
                (exp.array,) if isinstance(exp, Update) else exp.arrays if isinstance(exp, WithAcc) else exp.dests
            )
            if any(a not in self.numbers for a in consumed):
                raise Declined
        if isinstance(exp, Apply):
            return exp.op, *[self.atom(a) for a in exp.args]
        key: list[Hashable] = [type(exp).__name__, *_attributes(exp)]

        def atom(a: Atom) -> Atom:
            key.append(self.atom(a))
            return a

        def body(b: Body) -> Body:
            key.append(self.body(b))
            return b

        def lam(f: Lambda) -> Lambda:
            key.append(self.lam(f))
            return f

        map_exp(exp, atom, body, lam)
        return tuple(key)

    def atom(self, a: Atom) -> Hashable:
        return self.numbers.get(a, a) if isinstance(a, Var) else a

    def bind(self, var: Var) -> Hashable:
        self.numbers.setdefault(var, len(self.numbers))
        return var.type.dtype, *[self.atom(d) if isinstance(d, Var) else (d,) for d in var.type.shape]

    def body(self, body: Body) -> Hashable:
        self.stms += len(body.stms)
        if self.stms > BUDGET:
            raise Declined
        stms = tuple((self.exp(s.exp), *[self.bind(v) for v in s.vars]) for s in body.stms)
        return stms, tuple(self.atom(r) for r in body.results)

    def lam(self, lam: Lambda) -> Hashable:
        return tuple(self.bind(p) for p in lam.params), self.body(lam.body)


def _attributes(exp: Exp) -> tuple[Hashable, ...]:
    """The fields that are neither operands nor regions, constant dimensions included."""
    match exp:
        case Index(_, axes) | Update(_, axes):
            return tuple(("at", a.wrap) if isinstance(a, At) else ("range", *shape_key((a.length,))) for a in axes)
        case Reshape(_, shape) | Full(shape):
            return shape_key(shape)
        case Broadcast(_, shape, places):
            return (*shape_key(shape), places)
        case Iota(length):
            return shape_key((length,))
        case Transpose(_, perm):
            return (perm,)
        case Concat(arrays, axis):
            return len(arrays), axis
        case ArrayLit(items):
            return (len(items),)
        case Library() if runs_python(exp):
            raise Declined
        case Library(name, _, attrs):
            return name, attrs
        case Call(name, _, False):
            return (name,)
        case For(params=params) | While(params=params):
            return (len(params),)
        case Sweep(width, arrays, _, reduces, scans):
            operators = tuple((len(r.neutral), r.commutative) for r in (*reduces, *scans))
            return (*shape_key((width,)), len(arrays), len(reduces), len(scans), operators)
        case Hist(op, dests, width, arrays):
            return (*shape_key((width,)), len(dests), len(arrays), op.commutative)
        case Scatter(dests, width, arrays):
            return (*shape_key((width,)), len(dests), len(arrays))
        case WithAcc(arrays, lam, slopes):
            return len(arrays), tuple(p.type.acc for p in lam.params), slopes
        case UpdateAcc() | Print() | Progress() | Call():
            raise Declined
        case Apply() | If() | Copy() | Check():
            return ()
        case _:
            assert_never(exp)


def shape_key(shape: tuple[int | Var, ...]) -> tuple[Hashable, ...]:
    """Constant dimensions, and where there are symbolic ones (which are operands)."""
    return tuple(None if isinstance(d, Var) else d for d in shape)
