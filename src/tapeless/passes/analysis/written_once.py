"""Whether an iteration of a loop writes each cell of an array at most once.

Takes the writes of one iteration's body, gives a proof or not. Reverse mode asks: where a cell is written again, the
first value has no adjoint, and a parallel sweep of writes does not know which one was the last.

Note [Apart]
Two writes are apart when they are in different arms of one branch, or when their positions on some axis are never
equal: their fixed parts differ by a constant that no sum of multiples of what varies in inner loops makes up for
(2*j and 2*j + 1). A write in inner loops meets itself unless each of these loops has an axis c*j + r, where r does not
change in it.
"""

from __future__ import annotations

import math
from dataclasses import dataclass
from itertools import combinations

from tapeless.ir.core import At, Axis, Body, For, If, Stm, Update
from tapeless.ir.operands import regions
from tapeless.ir.types import Var
from tapeless.symbolic.polynomials import Polynomial
from tapeless.symbolic.positions import Position, form_of


@dataclass(frozen=True)
class _Step:
    """One region on the way to a write: an arm of a branch, or a loop and what is made in it."""

    stm: Stm
    arm: int
    index: Var | None  # of a counted loop
    made: frozenset[Var]  # nothing for a branch

    @property
    def loops(self) -> bool:
        return not isinstance(self.stm.exp, If)


@dataclass(frozen=True)
class _Write:
    path: tuple[_Step, ...]
    axes: tuple[Axis, ...]


def written_once(loop: For, versions: set[Var], forms: dict[Var, Position]) -> bool:
    """`versions` are the names of the array in the body, `forms` its integers as affine forms."""
    writes: list[_Write] = []
    _collect(loop.body, (), versions, writes)
    places = {id(w): _positions(w, loop.index, forms) for w in writes}
    return all(_alone(w, places[id(w)]) for w in writes) and all(
        _apart(a, b, places[id(a)], places[id(b)]) for a, b in combinations(writes, 2)
    )


def _collect(body: Body, path: tuple[_Step, ...], versions: set[Var], writes: list[_Write]) -> None:
    for s in body.stms:
        if isinstance(s.exp, Update) and s.exp.array in versions:
            writes.append(_Write(path, s.exp.axes))
        for arm, region in enumerate(regions(s.exp)):
            branch = isinstance(s.exp, If)
            index = s.exp.index if isinstance(s.exp, For) else None
            made = frozenset() if branch else frozenset((*region.params, *_made(region.body)))
            if index is not None:
                made |= {index}
            _collect(region.body, (*path, _Step(s, arm, index, made)), versions, writes)


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


def _apart(a: _Write, b: _Write, ats: Positions, others: Positions) -> bool:
    for x, y in zip(a.path, b.path, strict=False):
        if x.stm is y.stm and x.arm != y.arm and not x.loops:
            return True
        if x.stm is not y.stm or x.loops:
            break
    varying = {v for step in (*a.path, *b.path) for v in step.made}
    for p, q in zip(ats, others, strict=True):
        if p is None or q is None:
            continue
        gap = _fixed(p, varying) - _fixed(q, varying)
        step = math.gcd(*(f.coefficient(v) for f in (p, q) for v in f.symbols & varying))
        if gap.is_constant and (gap.const % step if step else gap.const):
            return True
    return False


def _fixed(form: Position, varying: set[Var]) -> Position:
    return Polynomial({m: c for m, c in form.terms.items() if not varying & set(m)}, form.const)
