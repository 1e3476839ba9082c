"""Which memory a result lies in: following updates backwards through a region.

Takes Core bodies that passed the in-place check; used to decide where carried arrays and results of branches live.

Note [Written over]
`x = map(f, x)` at the end of a loop's body needs no second array: element i is read before it is written, by the same
iteration. That holds when nobody reads the old array after the map or, inside it, at another element. Parts of it with
fewer axes (a row, a column) are allowed in the map: the lowering sets a copy of them aside first, unless each
iteration reads its own part.
"""

from __future__ import annotations

from tapeless.ir.core import (
    At,
    Atom,
    Body,
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


def in_place(body: Body, result: Atom, param: Var) -> bool:
    """Whether a result of the body is `param` or a later version of it, in its memory."""
    return updated_root(body, result)[0] is param


def updated_root(body: Body, result: Atom, around: dict[Var, Stm] | None = None) -> tuple[Var | None, bool]:
    """The variable of outside whose memory a result lies in, and whether it was updated on the way."""
    definitions = {v: s for s in body.stms for v in s.vars}
    updated = False
    while isinstance(result, Var):
        stm = definitions.get(result)
        if stm is None:
            return (result if result.type.shape else None), updated
        match stm.exp:
            case Update(array=array):
                result, updated = array, True
            case For(params=params, inits=inits, body=inner) | While(params=params, inits=inits, body=inner):
                k = stm.vars.index(result)
                if not in_place(inner, inner.results[k], params[k]):
                    return None, False
                result, updated = inits[k], True
            case If(then=then, orelse=orelse):
                k = stm.vars.index(result)
                a, first = updated_root(then, then.results[k])
                b, second = updated_root(orelse, orelse.results[k])
                if (a is None or not first) and (b is None or not second) and a is not b:
                    return None, False
                root = a if a is not None and first else b if b is not None and second else a
                assert root is not None or a is b
                if root is None:
                    return None, False
                result, updated = root, updated or first or second
            case Hist(dests=arrays) | Scatter(dests=arrays) | WithAcc(arrays=arrays):
                k = stm.vars.index(result)
                if k >= len(arrays):
                    return None, False
                result, updated = arrays[k], True
            case _:
                return None, False
    return None, False


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

    def used(self, stm: Stm) -> bool:
        return any(v in self for v in free_in_exp(stm.exp))

    def extend(self, stm: Stm) -> None:
        match stm.exp:
            case Index(array=array, axes=axes) if array in self:
                part = array in self.parts or any(isinstance(a, At) for a in axes)
                (self.parts if part else self.whole).update(v for v in stm.vars if v.type.shape)
            case Reshape(array=array) | Transpose(array=array) if array in self:
                (self.parts if array in self.parts else self.whole).update(stm.vars)
            case Sweep() | Copy() | Library():
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
            arms = (then, orelse)
            return all(
                arm.results[k] is names.source
                or (
                    not names.parts
                    and names.whole == {names.source}
                    and written_over(arm, arm.results[k], names.source)
                )
                for arm in arms
            )
        case _:
            return False
