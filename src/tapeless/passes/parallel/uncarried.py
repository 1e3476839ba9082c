"""Loops and branches without arrays that they carried: something else stands for all their versions.

`Uncarried` takes a body and, by the names of arrays that come into it, what stands for them; it stops carrying them.
What becomes of statements that use them is said by those who use it.
"""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from typing import assert_never

from tapeless.ir.core import Body, For, If, Stm, While
from tapeless.ir.types import Atom, Var


class Uncarried:
    def __init__(self, stands_for: Mapping[Var, Var]) -> None:
        self.stands_for = dict(stands_for)  # by version

    def body(self, body: Body, keep: Sequence[int]) -> Body:
        stms = [new for s in body.stms for new in self.stm(s)]
        return Body(tuple(stms), tuple(body.results[j] for j in keep))

    def stm(self, s: Stm) -> list[Stm]:
        return [self._region(s, s.exp)] if isinstance(s.exp, (For, While, If)) else [s]

    def _region(self, s: Stm, exp: For | While | If) -> Stm:
        match exp:
            case For(params=params, inits=inits, body=inner):
                keep = self._carried(params, inits, s.vars)
                new = self.body(inner, keep)
                return Stm(tuple(s.vars[j] for j in keep), For(
                    exp.index, exp.bound, tuple(params[j] for j in keep), tuple(inits[j] for j in keep), new, exp.hints
                ), s.span)  # fmt: skip
            case While(params=params, inits=inits, body=inner):
                keep = self._carried(params, inits, s.vars)
                new = self.body(inner, keep)
                return Stm(tuple(s.vars[j] for j in keep), While(
                    tuple(params[j] for j in keep), tuple(inits[j] for j in keep), exp.cond, new, exp.hints
                ), s.span)  # fmt: skip
            case If(cond=cond, then=then, orelse=orelse):
                all_results = list(range(len(s.vars)))
                first, second = self.body(then, all_results), self.body(orelse, all_results)
                keep = []
                for j, v in enumerate(s.vars):
                    r = first.results[j]
                    if isinstance(r, Var) and r in self.stands_for:
                        self.stands_for[v] = self.stands_for[r]
                    else:
                        keep.append(j)
                trim = [Body(b.stms, tuple(b.results[j] for j in keep)) for b in (first, second)]
                return Stm(tuple(s.vars[j] for j in keep), If(cond, trim[0], trim[1]), s.span)
            case _:
                assert_never(exp)

    def _carried(self, params: Sequence[Var], inits: Sequence[Atom], vars: Sequence[Var]) -> list[int]:
        keep = []
        for j, a in enumerate(inits):
            if isinstance(a, Var) and a in self.stands_for:
                self.stands_for[params[j]] = self.stands_for[a]
                self.stands_for[vars[j]] = self.stands_for[a]
            else:
                keep.append(j)
        return keep
