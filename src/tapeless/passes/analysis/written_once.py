"""Whether an iteration of a loop, or all of them together, write each cell of an array at most once.

Takes the writes of a body, gives a proof or not. Reverse mode asks: where a cell is written again, the first value has no
adjoint, and a parallel sweep of writes does not know which one was the last.

Note [Apart]
Two writes are apart when they are in different arms of one branch, or when their positions on some axis are never
equal: their fixed parts differ by a constant that no sum of multiples of what varies in inner loops makes up for
(2*j and 2*j + 1), or one is above the other wherever in their loops they are (j, and i + j + 1 for i from 0). What both
have on another axis, alone and alike, is the same where they meet, so it does not vary. A write in inner loops meets itself
unless each of these loops has an axis c*j + r, where r does not change in it.
"""

from __future__ import annotations

import math
from collections.abc import Mapping
from dataclasses import dataclass
from itertools import combinations

from tapeless.ir.core import At, Axis, Body, For, If, Stm, Update
from tapeless.ir.operands import regions
from tapeless.ir.types import Atom, Var
from tapeless.symbolic.polynomials import Polynomial, number
from tapeless.symbolic.positions import Position, form_of


@dataclass(frozen=True)
class _Step:
    """One region on the way to a write: an arm of a branch, or a loop and what is made in it."""

    stm: Stm
    arm: int
    index: Var | None  # of a counted loop
    bound: Atom | None
    made: frozenset[Var]  # nothing for a branch

    @property
    def loops(self) -> bool:
        return not isinstance(self.stm.exp, If)


@dataclass(frozen=True)
class _Write:
    path: tuple[_Step, ...]
    axes: tuple[Axis, ...]


def written_once(loop: For, versions: set[Var], forms: dict[Var, Position]) -> bool:
    """By each iteration. `versions` are the names of the array in the body, `forms` its integers as affine forms."""
    return _once(loop, (), versions, forms)


def written_once_by_all(stm: Stm, loop: For, versions: set[Var], forms: dict[Var, Position]) -> bool:
    """By all iterations together."""
    made = frozenset((*loop.params, *_made(loop.body), loop.index))
    return _once(loop, (_Step(stm, 0, loop.index, loop.bound, made),), versions, forms)


def _once(loop: For, path: tuple[_Step, ...], versions: set[Var], forms: dict[Var, Position]) -> bool:
    writes: list[_Write] = []
    _collect(loop.body, path, versions, writes)
    places = {id(w): _positions(w, loop.index, forms) for w in writes}
    return all(_alone(w, places[id(w)]) for w in writes) and all(
        _apart(a, b, places[id(a)], places[id(b)], forms) for a, b in combinations(writes, 2)
    )


def _collect(body: Body, path: tuple[_Step, ...], versions: set[Var], writes: list[_Write]) -> None:
    for s in body.stms:
        if isinstance(s.exp, Update) and s.exp.array in versions:
            writes.append(_Write(path, s.exp.axes))
        for arm, region in enumerate(regions(s.exp)):
            branch = isinstance(s.exp, If)
            index, bound = (s.exp.index, s.exp.bound) if isinstance(s.exp, For) else (None, None)
            made = frozenset() if branch else frozenset((*region.params, *_made(region.body)))
            if index is not None:
                made |= {index}
            _collect(region.body, (*path, _Step(s, arm, index, bound, made)), versions, writes)


def _made(body: Body) -> list[Var]:
    found = [v for s in body.stms for v in s.vars]
    for s in body.stms:
        for r in regions(s.exp):
            found += [*r.params, *_made(r.body)]
    return found


Positions = list[Position | None]


def _positions(write: _Write, index: Var, forms: dict[Var, Position]) -> Positions:
    """Of each axis; None for a slice, and for what may count from the end."""
    indices = {index, *(step.index for step in write.path)}
    found: Positions = []
    for a in write.axes:
        form = form_of(a.index, forms) if isinstance(a, At) else None
        if isinstance(a, At) and a.wrap and form is not None:
            upward = form.symbols <= indices and all(c >= 0 for c in (form.const, *form.terms.values()))
            form = form if upward else None
        found.append(form)
    return found


def _alone(write: _Write, positions: Positions) -> bool:
    return all(any(_moves(p, step) for p in positions if p is not None) for step in write.path if step.loops)


def _moves(position: Position, step: _Step) -> bool:
    """Whether each iteration of this inner loop has a position of its own."""
    return step.index is not None and position.symbols & step.made == {step.index}


def _apart(a: _Write, b: _Write, ats: Positions, others: Positions, forms: dict[Var, Position]) -> bool:
    """Note [Apart]"""
    varying = {v for step in (*a.path, *b.path) for v in step.made}
    pairs = [(p, q) for p, q in zip(ats, others, strict=True) if p is not None and q is not None]
    for x, y in zip(a.path, b.path, strict=False):
        if x.stm is y.stm and x.arm != y.arm and not x.loops:
            return True
        if x.stm is not y.stm:
            break
        if x.loops:
            if not any(p == q and p.symbols & varying == {x.index} for p, q in pairs):
                break
            varying -= {x.index}
    ends = {s.index: form_of(s.bound, forms).shifted(-1) for s in (*a.path, *b.path) if s.index and s.bound}
    return any(_never_equal(p, q, varying, ends) for p, q in pairs)


def _never_equal(p: Position, q: Position, varying: set[Var], ends: Mapping[Var, Position]) -> bool:
    gap = _fixed(p, varying) - _fixed(q, varying)
    step = math.gcd(*(f.coefficient(v) for f in (p, q) for v in f.symbols & varying))
    if gap.is_constant and (gap.const % step if step else gap.const):
        return True
    return any(_above(x, y, varying, ends) for x, y in ((p, q), (q, p)))


def _above(p: Position, q: Position, varying: set[Var], ends: Mapping[Var, Position]) -> bool:
    low, high = _least(p, varying, ends), _least(q.scaled(-1), varying, ends)
    gap = None if low is None or high is None else low + high
    return gap is not None and gap.is_constant and gap.const > 0


def _least(form: Position, varying: set[Var], ends: Mapping[Var, Position]) -> Position | None:
    """With each index of a loop at its first or last value, so that the form is smallest."""
    for _ in range(len(ends)):
        left = form.symbols & varying
        if not left:
            break
        if not left <= ends.keys() or any(len(m) > 1 for m in form.terms if left & set(m)):
            return None
        form = form.replace({v: number(0) if form.coefficient(v) > 0 else ends[v] for v in left})
    return None if form.symbols & varying else form


def _fixed(form: Position, varying: set[Var]) -> Position:
    return Polynomial({m: c for m, c in form.terms.items() if not varying & set(m)}, form.const)
