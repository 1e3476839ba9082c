"""Recognises matrix products that were written out, as sweeps or as loops, and calls the library for them.

Takes and gives a verified function. Relies on simplified Core: positions that need no test carry no flags, and
what does not belong to the product stands outside of the nest. Sums are taken in another order than before.

Note [Reading a nest]
A nest is read symbolically. Each name in it stands for a term: an array of outside with an index of the nest on some
of its axes, the product of two such elements, the sum of these over an index, or a stack of terms, one for each index.
A statement that makes none of these ends the attempt. An axis takes an index only if the index runs over
all of the axis, so what remains in the end are whole matrices:
    c[i, j] = sum over k of a[i, k] * b[k, j]      c = a @ b, with a or b transposed where the indices say so
    y[i]    = sum over k of a[i, k] * x[k]         y = a @ x
A factor that is the same everywhere is applied afterwards. A loop may also add to what the array held before.

Note [Left alone]
Integers (the library is no faster), dot products, matrices of constant sizes up to 8 (they live in registers), loops
with hints, and products in the lambda of a sweep: many small products at once are better as plain code.
"""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass, replace

from tapeless.ir.builder import Builder
from tapeless.ir.core import (
    Apply,
    At,
    Axis,
    Body,
    Exp,
    For,
    Full,
    Function,
    Hist,
    Index,
    Library,
    Reduction,
    Scatter,
    Stm,
    Sweep,
    Transpose,
    Update,
)
from tapeless.ir.hints import NONE
from tapeless.ir.printer import plain_operator
from tapeless.ir.rewrite import Rewriter
from tapeless.ir.types import I64, Atom, Const, Dim, DType, Type, Var, atom_dim
from tapeless.passes.parallel.merged_sweeps import is_whole

KINDS = (DType.f32, DType.f64, DType.c64, DType.c128)
IN_REGISTERS = 8  # sizes up to this one


def recognise_products(function: Function) -> Function:
    return Recogniser().function(function)


class Recogniser(Rewriter):
    """`zeros` are the arrays known to be filled with zeros, `in_sweep` whether the statement runs for each element."""

    def __init__(self) -> None:
        super().__init__()
        self.zeros: set[Var] = set()
        self.in_sweep = False

    def stm(self, stm: Stm) -> None:
        match stm.exp:
            case Full(_, Const(value)) if value == 0:
                self.zeros.add(stm.vars[0])
            case Sweep() | For() if not self.in_sweep:
                if new := self.product(stm):
                    self.out.extend(new)
                    return
        super().stm(stm)

    def inside(self, exp: Exp) -> Exp:
        outer, self.in_sweep = self.in_sweep, self.in_sweep or isinstance(exp, (Sweep, Hist, Scatter))
        new = super().inside(exp)
        self.in_sweep = outer
        return new

    def product(self, stm: Stm) -> list[Stm] | None:
        if len(stm.vars) != 1 or stm.vars[0].type.dtype not in KINDS or stm.vars[0].type.rank not in (1, 2):
            return None
        nest = Nest()
        found = nest.swept(stm) if isinstance(stm.exp, Sweep) else nest.looped(stm)
        return self.emit_product(stm, found, nest) if found else None

    def emit_product(self, stm: Stm, found: Found, nest: Nest) -> list[Stm] | None:
        total = found.total
        widths = [nest.widths[v] for v in (*found.at, total.index)]
        if all(isinstance(w, int) and w <= IN_REGISTERS for w in widths):
            return None
        for left, right in ((total.left, total.right), (total.right, total.left)):
            if left.fits(found.at[0], total.index) and right.fits(total.index, *found.at[1:]):
                break
        else:
            return None
        (result,) = stm.vars
        b = Builder(stm.span)
        factors = (oriented(b, left, found.at[0]), oriented(b, right, total.index))
        type = Type(result.type.dtype, tuple(nest.widths[v] for v in found.at))
        value = b.let(type, Library("matmul", factors), result.name)
        for factor in total.factors:
            value = elementwise(b, "mul", value, factor)
        if total.adds and found.start is not None and found.start not in self.zeros:
            value = elementwise(b, "add", found.start, value)
        last = b.stms.pop()  # makes the value: it is the result
        return [*b.stms, Stm((result,), last.exp, last.span)]


def elementwise(b: Builder, op: str, x: Var, y: Atom) -> Var:
    """`op` on the elements of x and those of y, or y itself."""
    row = x.type.row()
    arrays = [a for a in (x, y) if isinstance(a, Var) and a.type.shape]

    def element(index: Var, *rows: Var) -> list[Atom]:
        other = rows[1] if len(rows) == 2 else y
        return [elementwise(b, op, rows[0], other) if row.shape else b.let(row, Apply(op, (rows[0], other)))]

    return b.map(x.type.shape[0], arrays, element, x.name)[0]


# -- terms: Note [Reading a nest]


@dataclass(frozen=True)
class Access:
    """`base` with an index on the axes where `at` has one; `open` are the others, in the order of the view's axes."""

    base: Var
    at: tuple[Var | None, ...]
    open: tuple[int, ...]

    def enter(self, index: Var) -> Access:
        """The row of the first open axis."""
        return Access(self.base, _put(self.at, self.open[0], index), self.open[1:])

    def renamed(self, old: Var, new: Var) -> Access:
        return replace(self, at=tuple(new if v is old else v for v in self.at))

    def fits(self, *indices: Var) -> bool:
        """Is it the element at these indices of the base, or of the base transposed?"""
        return len(self.at) == len(indices) and (self.at == indices or self.at == indices[::-1])


@dataclass(frozen=True)
class Times:
    left: Access
    right: Access

    def renamed(self, old: Var, new: Var) -> Times:
        return Times(self.left.renamed(old, new), self.right.renamed(old, new))


@dataclass(frozen=True)
class Total:
    """The sum of products over `index`, times `factors`; `adds` if added to what the carried array holds."""

    left: Access
    right: Access
    index: Var
    factors: tuple[Atom, ...] = ()
    adds: bool = False

    def renamed(self, old: Var, new: Var) -> Total:
        return replace(self, left=self.left.renamed(old, new), right=self.right.renamed(old, new))


@dataclass(frozen=True)
class Stack:
    """One term for each index."""

    index: Var
    row: Term

    def enter(self, index: Var) -> Term:
        return self.row.renamed(self.index, index)

    def renamed(self, old: Var, new: Var) -> Stack:
        return Stack(self.index, self.row.renamed(old, new))


@dataclass(frozen=True)
class Held:
    """The element of a carried array at these indices; with `plus`, that product is added."""

    array: Var
    at: tuple[Var, ...]
    plus: Times | None = None

    def renamed(self, old: Var, new: Var) -> Held:
        return self  # never in a stack


Term = Access | Times | Total | Stack | Held


@dataclass(frozen=True)
class Found:
    """The result at the indices `at` is `total`; `start` is the array that a loop began with."""

    at: tuple[Var, ...]
    total: Total
    start: Var | None = None


def _put(at: tuple[Var | None, ...], axis: int, index: Var) -> tuple[Var | None, ...]:
    return (*at[:axis], index, *at[axis + 1 :])


def oriented(b: Builder, factor: Access, first: Var) -> Var:
    """The matrix whose first index is this one; a vector itself."""
    return factor.base if factor.at[0] is first else b.transpose(factor.base, (1, 0))


# -- reading


class Nest:
    """`terms` of the names bound so far, `widths` of the indices, `carried` values from the outermost loop inwards.

    `cell` is where the innermost of a nest of loops updates the array that they all carry.
    """

    def __init__(self) -> None:
        self.terms: dict[Var, Term] = {}
        self.widths: dict[Var, Dim] = {}
        self.carried: list[Var] = []
        self.cell: tuple[Var, ...] = ()

    def term(self, atom: Atom) -> Term | None:
        if not isinstance(atom, Var):
            return None
        if atom in self.terms:
            return self.terms[atom]
        rank = atom.type.rank
        return Access(atom, (None,) * rank, tuple(range(rank))) if rank and self.is_outside(atom) else None

    def is_outside(self, atom: Atom | int) -> bool:
        """Is it known before the nest?"""
        return atom not in self.terms and atom not in self.widths and atom not in self.carried

    def runs(self, index: Var, width: Dim) -> bool:
        """Notes how far an index runs, unless that is not the same throughout."""
        self.widths[index] = width
        return self.is_outside(width)

    def runs_over(self, index: Atom, dim: Dim) -> bool:
        """Does the index run over all of an axis of this length?"""
        return isinstance(index, Var) and self.widths.get(index) == dim

    # -- nests

    def swept(self, stm: Stm) -> Found | None:
        """A map, or a map of maps, of sums."""
        at: list[Var] = []
        term = self.exp(stm.exp)
        while isinstance(term, Stack):
            at.append(term.index)
            term = term.row
        return Found(tuple(at), term) if isinstance(term, Total) and len(at) == stm.vars[0].type.rank else None

    def looped(self, stm: Stm) -> Found | None:
        """Loops in loops around the update of one array, of which nothing but the same cell is read."""
        exp: Exp = stm.exp
        start: Var | None = None
        indices: list[Var] = []
        while True:
            match exp:
                case For(index, bound, (param,), (Var() as init,), Body((*stms, last), (result,)), hints) if (
                    hints == NONE
                ):
                    if last.vars != (result,) or (start is not None and init is not self.carried[-1]):
                        return None
                    start, exp = start or init, last.exp
                    self.carried.append(param)
                    indices.append(index)
                    if not self.runs(index, atom_dim(bound)):
                        return None
                    self.cell = self.position(exp) if isinstance(exp, Update) else ()
                    if not self.stms(stms):
                        return None
                case Update(array, _, value) if start is not None and self.cell and array is self.carried[-1]:
                    return self.written(self.term(value), indices, start)
                case _:
                    return None

    def written(self, value: Term | None, indices: Sequence[Var], start: Var) -> Found | None:
        """What the innermost of the loops over `indices` writes to the cell."""
        match value:
            case Total() as total if set(indices) == set(self.cell):
                return Found(self.cell, total, start)
            case Held(array, at, Times(left, right)) if self.is_held(Held(array, at)):
                over = [v for v in indices if v not in at]
                if len(over) == 1 and len(indices) == len(at) + 1:
                    return Found(at, Total(left, right, over[0], adds=True), start)
        return None

    def is_held(self, term: Term | None) -> bool:
        """Is it what the cell held before it is written?"""
        return bool(self.cell) and term == Held(self.carried[-1], self.cell)

    # -- statements

    def stms(self, stms: Sequence[Stm]) -> bool:
        for stm in stms:
            if len(stm.vars) != 1 or (term := self.exp(stm.exp)) is None:
                return False
            self.terms[stm.vars[0]] = term
        return True

    def exp(self, exp: Exp) -> Term | None:
        match exp:
            case Index(array) if array in self.carried:
                cell = self.position(exp)
                return Held(array, cell) if cell else None
            case Index():
                return self.index(exp)
            case Transpose(array, perm):
                term = self.term(array)
                return replace(term, open=tuple(term.open[p] for p in perm)) if isinstance(term, Access) else None
            case Apply("mul" | "add" as op, (x, y)):
                return self.apply(op, x, y) or self.apply(op, y, x)
            case Sweep():
                return self.sweep(exp)
            case For():
                return self.loop(exp)
            case Library("matmul", (x, y)) if x.type.rank == y.type.rank == 1:
                return self.dot(x, y)
        return None

    def index(self, exp: Index) -> Term | None:
        term = self.term(exp.array)
        if not isinstance(term, Access):
            return None
        at, left = term.at, []
        for axis, place in zip(exp.axes, term.open, strict=True):
            dim = term.base.type.shape[place]
            if isinstance(axis, At) and isinstance(axis.index, Var) and self.is_plain(axis, dim):
                at = _put(at, place, axis.index)
            elif is_whole(axis, dim):
                left.append(place)
            else:
                return None
        return Access(term.base, at, tuple(left))

    def position(self, exp: Index | Update) -> tuple[Var, ...]:
        """The indices of a cell if each runs over its axis, else nothing."""
        plain = all(map(self.is_plain, exp.axes, exp.array.type.shape))
        at = [a.index for a in exp.axes if isinstance(a, At) and isinstance(a.index, Var)]
        return tuple(at) if plain and len(set(at)) == len(exp.axes) else ()

    def is_plain(self, axis: Axis, dim: Dim) -> bool:
        """An untested position that runs over the axis."""
        return isinstance(axis, At) and not axis.wrap and not axis.check and self.runs_over(axis.index, dim)

    def apply(self, op: str, x: Atom, y: Atom) -> Term | None:
        match op, self.term(x), self.term(y):
            case "mul", Access(open=()) as left, Access(open=()) as right:
                return Times(left, right)
            case "mul", Total(adds=False) as total, None if self.is_outside(y):
                return replace(total, factors=(*total.factors, y))
            case "add", Held(plus=None) as held, Times() as product:
                return replace(held, plus=product)
            case "add", Held() as held, Total(adds=False) as total if self.is_held(held):
                return replace(total, adds=True)
        return None

    def dot(self, x: Atom, y: Atom) -> Term | None:
        match self.term(x), self.term(y):
            case Access(base, open=(axis,)) as left, Access(open=(_,)) as right:
                index = Var("k", I64)
                self.widths[index] = base.type.shape[axis]
                return Total(left.enter(index), right.enter(index), index)
        return None

    def sweep(self, sweep: Sweep) -> Term | None:
        """A stack of what the lambda gives, or its sum."""
        index, *params = sweep.lam.params
        if not self.runs(index, sweep.width):
            return None
        for param, array in zip(params, sweep.arrays, strict=True):
            stack = self.term(array)
            if not isinstance(stack, (Access, Stack)):
                return None
            self.terms[param] = stack.enter(index)
        if len(sweep.lam.body.results) != 1 or not self.stms(sweep.lam.body.stms):
            return None
        match self.term(sweep.lam.body.results[0]), sweep.reduces, sweep.scans:
            case Access() | Times() | Total(adds=False) | Stack() as term, (), ():
                return Stack(index, term)
            case Times(left, right), (operator,), () if is_sum(operator):
                return Total(left, right, index)
        return None

    def loop(self, loop: For) -> Term | None:
        """A scalar that starts at zero, or at what the cell held, and to which products are added."""
        match loop:
            case For(
                index, bound, (param,), (start,), Body((*stms, Stm((last,), Apply("add", (x, y)))), (result,)), hints
            ) if hints == NONE:
                pass
            case _:
                return None
        if last is not result or param not in (x, y) or not self.runs(index, atom_dim(bound)):
            return None
        adds = self.is_held(self.term(start))
        if not adds and not (isinstance(start, Const) and start.value == 0):
            return None
        self.carried.append(param)
        product = self.term(y if x is param else x) if self.stms(stms) else None
        self.carried.pop()
        return Total(product.left, product.right, index, adds=adds) if isinstance(product, Times) else None


def is_sum(operator: Reduction) -> bool:
    start = operator.neutral[0]
    return plain_operator(operator) == "add" and isinstance(start, Const) and start.value == 0


__all__ = ["recognise_products"]
