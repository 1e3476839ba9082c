"""What must keep its bits: values that decide which way a program goes.

`deciding` takes a body, gives the variables that a decision hangs on, directly or through others: conditions of
branches, loops and tests, rows that pick an operand or jump (`decides` in the ops table, and those without a slope),
and what functions and library routines are given, which may do the same. A value of another rounding may decide
otherwise; so nothing that decides is replaced by a form that is equal on paper only.
"""

from __future__ import annotations

from collections.abc import Iterable

from tapeless.ir.core import Apply, Body, Call, Check, For, If, Library, Stm, UpdateAcc, While, WithAcc
from tapeless.ir.operands import operands, regions
from tapeless.ir.types import Atom, Var
from tapeless.ir.walk import all_stms
from tapeless.ops.table import TABLE


def deciding(body: Body) -> set[Var]:
    graph = _Graph()
    for s in all_stms(body):
        graph.stm(s)
    found: set[Var] = set()
    left = list(graph.seeds)
    while left:
        v = left.pop()
        if v not in found:
            found.add(v)
            left.extend(graph.made_of.get(v, ()))
    return found


class _Graph:
    def __init__(self) -> None:
        self.seeds: list[Var] = []
        self.made_of: dict[Var, list[Var]] = {}

    def stm(self, s: Stm) -> None:
        exp = s.exp
        match exp:
            case Apply(args=args):
                if _jumps(s, exp):
                    self.decide(args)
                self.link(s.vars, args)
            case Call() | Library() | Check():
                self.decide(operands(exp))
            case If(cond, then, orelse):
                self.decide([cond])
                self.pairwise(s.vars, then.results)
                self.pairwise(s.vars, orelse.results)
            case For(params=params, inits=inits, body=inner) | While(params=params, inits=inits, body=inner):
                if isinstance(exp, While):
                    self.decide(exp.cond.results)
                for ends in (inits, inner.results):
                    self.pairwise(params, ends)
                    self.pairwise(s.vars, ends)
            case UpdateAcc(acc=acc, value=value):
                self.link([acc], [value])
            case _:
                lams = regions(exp)
                results = [r for lam in lams for r in lam.body.results]
                made = [*operands(exp), *results]
                if isinstance(exp, WithAcc):
                    made += exp.lam.params
                self.link([*s.vars, *(p for lam in lams for p in lam.params)], made)

    def decide(self, atoms: Iterable[Atom]) -> None:
        self.seeds.extend(a for a in atoms if isinstance(a, Var))

    def link(self, vars: Iterable[Var], atoms: Iterable[Atom]) -> None:
        used = [a for a in atoms if isinstance(a, Var)]
        for v in vars:
            self.made_of.setdefault(v, []).extend(used)

    def pairwise(self, vars: Iterable[Var], atoms: Iterable[Atom]) -> None:
        for v, a in zip(vars, atoms, strict=True):
            self.link([v], [a])


def _jumps(s: Stm, exp: Apply) -> bool:
    row = TABLE[exp.op]
    if exp.op == "select":
        return False  # its condition is a comparison of something
    if row.decides or row.comparison:
        return True
    smooth = row.linear or row.own_rule or any(row.partials)
    return not smooth or not (s.vars[0].type.dtype.is_float or s.vars[0].type.dtype.is_complex)
