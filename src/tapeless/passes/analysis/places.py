"""Which memory a result lies in: following updates backwards through a region.

Takes Core bodies that passed the in-place check; used to decide where carried arrays and results of branches live.

Note [Written over]
`x = map(f, x)` at the end of a loop's body needs no second array: element i is read before it is written, by the same
iteration. That holds when nobody reads the old array after the map or, inside it, at another element. Parts of it with
fewer axes (a row, a column) are allowed in the map: the lowering sets a copy of them aside first, unless each
iteration reads its own part. The map may stand in a branch or among accumulators of other arrays.
"""

from __future__ import annotations

from collections.abc import Iterable

from tapeless.ir.core import (
    At,
    Atom,
    Body,
    Call,
    Copy,
    For,
    Hist,
    If,
    Index,
    Library,
    Reshape,
    Scatter,
    Stm,
    Sweep,
    Transpose,
    Update,
    Var,
    While,
    WithAcc,
)
from tapeless.ir.walk import free_in_exp, free_in_lambda

Root = tuple[Var | None, bool]  # an array of outside, and whether it was updated on the way
NONE: Root = (None, False)


def in_place(body: Body, result: Atom, param: Var) -> bool:
    """Whether a result of the body is `param` or a later version of it, in its memory."""
    return roots_of(body, [result])[0][0] is param


def branch_roots(exp: If) -> list[Root]:
    """For each result of a branch the array of outside in whose memory it lies, whichever arm was taken.

    One arm may update an array in place and the other make the result elsewhere: it is then copied there. That must
    not overwrite another result, so nothing shares the memory of an array that two results lie in. Nor does an array of another
    size, which only the taken arm knows.
    """
    arms = [roots_of(arm, arm.results) for arm in (exp.then, exp.orelse)]
    found: list[Root] = []
    for k, ((first, first_updated), (second, second_updated)) in enumerate(zip(*arms, strict=True)):
        updated = [r for r, u in ((first, first_updated), (second, second_updated)) if u]
        root = updated[0] if updated else first if first is second else None
        alone = all(r is not root for roots in arms for j, (r, _) in enumerate(roots) if j != k)
        fits = root is not None and all(arm.results[k].type == root.type for arm in (exp.then, exp.orelse))
        found.append((root, bool(updated)) if alone and fits else NONE)
    return found


def roots_of(body: Body, results: Iterable[Atom]) -> list[Root]:
    """For each result the array of outside in whose memory it lies."""
    definitions = {v: s for s in body.stms for v in s.vars}
    branches: dict[int, list[Root]] = {}  # by statement: an `if` has many results

    def root(result: Atom) -> Root:
        updated = False
        while isinstance(result, Var) and result.type.shape:
            stm = definitions.get(result)
            if stm is None:
                return result, updated
            k = stm.vars.index(result)
            match stm.exp:
                case Update(array=array):
                    result, updated = array, True
                case For(params=params, inits=inits, body=inner) | While(params=params, inits=inits, body=inner):
                    if not in_place(inner, inner.results[k], params[k]):
                        return NONE
                    result, updated = inits[k], True
                case If() as exp:
                    if id(stm) not in branches:
                        branches[id(stm)] = branch_roots(exp)
                    below, changed = branches[id(stm)][k]
                    if below is None:
                        return NONE
                    result, updated = below, updated or changed
                case Hist(dests=arrays) | Scatter(dests=arrays) | WithAcc(arrays=arrays):
                    if k >= len(arrays):
                        return NONE
                    result, updated = arrays[k], True
                case _:
                    return NONE
        return NONE

    return [root(r) for r in results]


def written_over(body: Body, result: Atom, source: Var) -> bool:
    """Note [Written over]: whether `result` can be made in the memory of `source`, which nobody else needs."""
    if not isinstance(result, Var) or result.type != source.type or sum(r is result for r in body.results) > 1:
        return False
    definitions = {v: s for s in body.stms for v in s.vars}
    while (made := definitions.get(result)) is not None and isinstance(made.exp, Update):
        result = made.exp.array
    if made is None or result.type != source.type:
        return False
    names = _Names(source)
    position = body.stms.index(made)
    for stm in body.stms[:position]:
        names.extend(stm)
    if any(names.used(stm) for stm in body.stms[position + 1 :]) or any(r in names for r in body.results):
        return False
    return _makes_over(made, made.vars.index(result), names)


class _Names:
    """The names of an array's memory in a body: of all of it, or of a part with fewer axes."""

    def __init__(self, source: Var) -> None:
        self.source = source
        self.whole = {source}
        self.parts: set[Var] = set()

    def __contains__(self, v: object) -> bool:
        return v in self.whole or v in self.parts

    @property
    def single(self) -> bool:
        return not self.parts and self.whole == {self.source}

    def used(self, stm: Stm) -> bool:
        return any(v in self for v in free_in_exp(stm.exp))

    def extend(self, stm: Stm) -> None:
        match stm.exp:
            case Index(array=array, axes=axes) if array in self:
                part = array in self.parts or any(isinstance(a, At) for a in axes)
                (self.parts if part else self.whole).update(v for v in stm.vars if v.type.shape)
            case Reshape(array=array) | Transpose(array=array) if array in self:
                (self.parts if array in self.parts else self.whole).update(stm.vars)
            case Sweep() | Copy() | Library() | Call():
                pass  # these make new arrays
            case _ if self.used(stm):
                self.whole.update(v for v in stm.vars if v.type.shape)


def _makes_over(stm: Stm, k: int, names: _Names) -> bool:
    match stm.exp:
        case Sweep(reduces=reduces, scans=(), lam=lam, arrays=arrays) as exp:
            if k < sum(len(r.neutral) for r in reduces):
                return False
            if any(v in names.whole for v in (*free_in_lambda(lam), *(a for a in arrays if a is not names.source))):
                return False
            if any(a in names for r in reduces for a in (*r.neutral, *free_in_lambda(r.op))):
                return False
            result = lam.body.results[k]
            if not result.type.shape or not names.used(stm):
                return True
            rows = [p for p, a in zip(lam.params[1:], exp.arrays, strict=True) if a is names.source]
            return len(rows) == 1 and written_over(lam.body, result, rows[0])
        case If(then=then, orelse=orelse):
            return all(
                arm.results[k] is names.source or (names.single and written_over(arm, arm.results[k], names.source))
                for arm in (then, orelse)
            )
        case WithAcc(arrays=arrays, lam=lam) if k >= len(arrays) and not any(a in names for a in arrays):
            return names.single and written_over(lam.body, lam.body.results[k - len(arrays)], names.source)
        case _:
            return False
