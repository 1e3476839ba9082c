"""The two parts of an iteration with decisions: one that makes them, one that reads them from arrays.

`Rows` takes the body of an iteration and the truth values that are cut out of it (`ad.masks`); gives the body with them as further
results of the sweeps around them, and the body that expects them.

Note [Rows of bits]
Truth values of a sweep inside another one are a row for each iteration of the outer one. A row is packed 64 to a word where it is
made, and a bit is read where it was used: an eighth of the memory, and a word says at once whether all of them are alike.
"""

from __future__ import annotations

from collections.abc import Callable, Collection
from dataclasses import dataclass, replace
from typing import TYPE_CHECKING

from tapeless.ir.core import Apply, At, Body, Index, Lambda, Library, Stm, Sweep, WithAcc
from tapeless.ir.span import NOWHERE
from tapeless.ir.types import BOOL, I64, Dim, DType, Type, Var, atom_dim, dim_atom, i64
from tapeless.ops.library import WORD

if TYPE_CHECKING:
    from tapeless.ad.reverse import Reverse

Words = Callable[[Dim], Dim]


@dataclass(frozen=True)
class Rows:
    """`words` says how many hold so many bits; None leaves a byte for each truth value."""

    words: Words | None

    def reading(self, body: Body, cuts: Collection[Var], depth: int = 0) -> tuple[Body, dict[Var, Var]]:
        """The body without the definitions of the cuts, and the variables that it expects for them."""
        stms, found = list[Stm](), dict[Var, Var]()
        for s in body.stms:
            match s.exp:
                case Sweep() as exp:
                    sweep, more = self._reading_sweep(exp, cuts, depth)
                    s = replace(s, exp=sweep)
                    found.update(more)
                case WithAcc(lam=lam) as exp:
                    inner, rows = self.reading(lam.body, cuts, depth)
                    s = replace(s, exp=replace(exp, lam=Lambda(lam.params, inner)))
                    found.update(rows)
                case _:
                    pass
            mine = [v for v in s.vars if v in cuts]
            found.update({v: v for v in mine})
            if not mine or len(mine) < len(s.vars):
                stms.append(replace(s, vars=tuple(Var(v.name, v.type) if v in mine else v for v in s.vars)))
        return Body(tuple(stms), body.results), found

    def _reading_sweep(self, exp: Sweep, cuts: Collection[Var], depth: int) -> tuple[Sweep, dict[Var, Var]]:
        lam = exp.lam
        inner, rows = self.reading(lam.body, cuts, depth + 1)
        stms, arrays, found = list[Stm](), dict[Var, Var](), dict[Var, Var]()
        for v, r in rows.items():
            if (words := self._packed(r.type, exp.width, depth)) is None:
                found[v] = arrays[r] = Var(r.name, Type(r.type.dtype, (exp.width, *r.type.shape)))
            else:
                found[v] = Var(r.name, words)
                stms.extend(_bit_of(found[v], lam.params[0], r))
        new = Lambda((*lam.params, *arrays), Body((*stms, *inner.stms), inner.results))
        return replace(exp, arrays=(*exp.arrays, *arrays.values()), lam=new), found

    def deciding(self, body: Body, cuts: Collection[Var], depth: int = 0) -> tuple[Body, dict[Var, Var]]:
        """The body with the cuts as further results of the sweeps that they are in, and their names outside."""
        stms, found = list[Stm](), dict[Var, Var]()
        for s in body.stms:
            packed = list[Stm]()
            match s.exp:
                case Sweep(lam=lam) | WithAcc(lam=lam) as exp:
                    axes = (exp.width,) if isinstance(exp, Sweep) else ()
                    inner, given = self.deciding(lam.body, cuts, depth + len(axes))
                    more = {v: Var(g.name, Type(g.type.dtype, (*axes, *g.type.shape))) for v, g in given.items()}
                    inner = Body(inner.stms, (*inner.results, *given.values()))
                    s = Stm((*s.vars, *more.values()), replace(exp, lam=Lambda(lam.params, inner)), s.span)
                    for v, row in more.items():
                        words = self._packed(given[v].type, axes[0], depth) if axes else None
                        if words is not None:
                            more[v] = Var(row.name, words)
                            packed.append(Stm((more[v],), Library("pack", (row,)), s.span))
                    found.update(more)
                case _:
                    pass
            stms += [s, *packed]
            found.update({v: v for v in s.vars if v in cuts})
        return Body(tuple(stms), body.results), found

    def _packed(self, item: Type, width: Dim, depth: int) -> Type | None:
        """The type of the words that hold a row of these, if it is packed."""
        if self.words is None or item != BOOL or depth == 0 or (isinstance(width, int) and width < WORD):
            return None
        return Type(DType.i64, (self.words(width),))


def _bit_of(words: Var, index: Var, bit: Var) -> list[Stm]:
    place, word = Var("place", I64), Var("word", I64)
    return [
        Stm((place,), Apply("shr", (index, i64(6))), NOWHERE),
        Stm((word,), Index(words, (At(place),)), NOWHERE),
        Stm((bit,), Apply("bit", (word, index)), NOWHERE),
    ]


def words_here(reverse: Reverse) -> Words | None:
    """Emits how many words there are. None inside of loops and lambdas, around which such a size would not be known."""
    if not reverse.once:
        return None
    known: dict[Dim, Dim] = {}

    def words(width: Dim) -> Dim:
        if width not in known:
            more = reverse.emit("add", dim_atom(width), WORD - 1)
            known[width] = atom_dim(reverse.emit("floordiv", more, WORD))
        return known[width]

    return words
