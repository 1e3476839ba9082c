"""Which values vary with the inputs of a derivative, and which of them matter for its outputs.

`varied` follows values forwards from the inputs, through loops until nothing changes; `useful` follows them backwards
from the results. A value that is not both has no derivative worth computing: it is neither differentiated nor kept.
"""

from __future__ import annotations

from collections.abc import Iterable, Sequence

from tapeless.ir.core import (
    Apply,
    Body,
    Check,
    For,
    Full,
    Hist,
    If,
    Index,
    Iota,
    Lambda,
    Library,
    Plain,
    Print,
    Progress,
    Reduction,
    Scatter,
    Stm,
    Sweep,
    Update,
    UpdateAcc,
    While,
    WithAcc,
)
from tapeless.ir.operands import operands
from tapeless.ir.types import Atom, Var
from tapeless.ir.walk import free_in_lambda
from tapeless.ops.emit import differentiable
from tapeless.ops.table import TABLE


def varied(body: Body, seeds: Iterable[Var]) -> set[Var]:
    """The variables of the body, at any depth, that vary with `seeds`."""
    found = _Varied(set(seeds))
    found.body(body)
    return found.known


def useful(body: Body, wanted: Iterable[Atom]) -> set[Var]:
    """The variables on which one of the `wanted` results of the body depends, as far as derivatives go."""
    found = _Useful({a for a in wanted if isinstance(a, Var)})
    found.body(body)
    return found.known


def flows(exp: Plain) -> list[Atom]:
    """The operands of a statement without regions whose tangents reach its results."""
    match exp:
        case Apply(op=name, args=args):
            row = TABLE[name]
            moving = (row.own_rule or rule is not None for rule in row.partials)
            return [a for a, moves in zip(args, moving, strict=True) if moves and differentiable(a.type)]
        case Index(array=array):
            return [array]
        case Update(array=array, value=value):
            return [array, value]
        case Full(value=value):
            return [value] if value is not None else []
        case Library(name="callback", args=args):  # what its results are like does not count
            return [a for a in args[int(exp.attr("likes")) :] if differentiable(a.type)]
        case Library(name="argsort" | "ranked") | Iota() | Check() | Print() | Progress():
            return []
        case _:
            return [a for a in operands(exp) if differentiable(a.type)]


class _Varied:
    def __init__(self, known: set[Var]) -> None:
        self.known = known

    def any(self, atoms: Iterable[Atom]) -> bool:
        return any(a in self.known for a in atoms if isinstance(a, Var))

    def mark(self, vars: Iterable[Var]) -> None:
        self.known.update(v for v in vars if differentiable(v.type) or v.type.acc)

    def body(self, body: Body) -> None:
        for stm in body.stms:
            self.stm(stm)

    def join(self, vars: Sequence[Var], results: Sequence[Atom]) -> None:
        self.mark(v for v, r in zip(vars, results, strict=True) if self.any([r]))

    def stm(self, stm: Stm) -> None:
        match stm.exp:
            case If(then=then, orelse=orelse):
                for arm in (then, orelse):
                    self.body(arm)
                    self.join(stm.vars, arm.results)
            case For(params=params, inits=inits, body=body) | While(params=params, inits=inits, body=body):
                self.join(params, inits)
                while True:
                    before = len(self.known)
                    self.body(body)
                    self.join(params, body.results)
                    if len(self.known) == before:
                        break
                self.mark(v for v, p in zip(stm.vars, params, strict=True) if p in self.known)
            case Sweep(arrays=arrays, lam=lam, reduces=reduces, scans=scans):
                self.rows(lam, arrays)
                self.body(lam.body)
                at = 0
                for r in (*reduces, *scans):
                    k = len(r.neutral)
                    self.operator(r, lam.body.results[at : at + k], stm.vars[at : at + k])
                    at += k
                self.join(stm.vars[at:], lam.body.results[at:])
            case Hist(op=op, dests=dests, arrays=arrays, lam=lam):
                self.rows(lam, arrays)
                self.body(lam.body)
                self.operator(op, [*lam.body.results[1:], *dests], stm.vars)
            case Scatter(dests=dests, arrays=arrays, lam=lam):
                self.rows(lam, arrays)
                self.body(lam.body)
                self.join(stm.vars, lam.body.results[1:])
                self.join(stm.vars, dests)
            case WithAcc(arrays=arrays, lam=lam):
                self.join(lam.params, arrays)
                self.body(lam.body)
                self.join(stm.vars, [*lam.params, *lam.body.results])
            case UpdateAcc(acc=acc, value=value):
                if self.any([value]):
                    self.mark([acc])
            case _:
                if self.any(flows(stm.exp)):
                    self.mark(stm.vars)

    def rows(self, lam: Lambda, arrays: Sequence[Var]) -> None:
        self.join(lam.params[1:], arrays)

    def operator(self, reduction: Reduction, values: Sequence[Atom], vars: Sequence[Var]) -> None:
        """A reduction's results vary together: any of the values may reach any of them."""
        if self.any([*values, *reduction.neutral, *free_in_lambda(reduction.op)]):
            self.mark(reduction.op.params)
            self.body(reduction.op.body)
            self.mark(vars)


class _Useful:
    def __init__(self, known: set[Var]) -> None:
        self.known = known

    def any(self, vars: Iterable[Atom]) -> bool:
        return any(v in self.known for v in vars)

    def want(self, atoms: Iterable[Atom]) -> None:
        self.known.update(a for a in atoms if isinstance(a, Var) and (differentiable(a.type) or a.type.acc))

    def body(self, body: Body) -> None:
        for stm in reversed(body.stms):
            self.stm(stm)

    def join(self, vars: Sequence[Var], sources: Sequence[Atom]) -> None:
        self.want(s for v, s in zip(vars, sources, strict=True) if v in self.known)

    def stm(self, stm: Stm) -> None:
        match stm.exp:
            case If(then=then, orelse=orelse):
                for arm in (then, orelse):
                    self.join(stm.vars, arm.results)
                    self.body(arm)
            case For(params=params, inits=inits, body=body) | While(params=params, inits=inits, body=body):
                self.join(stm.vars, body.results)
                self.join(stm.vars, params)
                while True:
                    before = len(self.known)
                    self.body(body)
                    self.join(params, body.results)
                    if len(self.known) == before:
                        break
                self.join(params, inits)
            case Sweep(arrays=arrays, lam=lam, reduces=reduces, scans=scans):
                at = 0
                for r in (*reduces, *scans):
                    k = len(r.neutral)
                    if self.any(stm.vars[at : at + k]):
                        self.want([*lam.body.results[at : at + k], *r.neutral, *r.op.body.results])
                        self.body(r.op.body)
                    at += k
                self.join(stm.vars[at:], lam.body.results[at:])
                self.body(lam.body)
                self.join(lam.params[1:], arrays)
            case Hist(op=op, dests=dests, arrays=arrays, lam=lam):
                if self.any(stm.vars):
                    self.want([*lam.body.results[1:], *dests, *op.neutral, *op.op.body.results])
                    self.body(op.op.body)
                    self.body(lam.body)
                    self.join(lam.params[1:], arrays)
            case Scatter(dests=dests, arrays=arrays, lam=lam):
                self.join(stm.vars, dests)
                self.join(stm.vars, lam.body.results[1:])
                self.body(lam.body)
                self.join(lam.params[1:], arrays)
            case WithAcc(arrays=arrays, lam=lam):
                self.join(stm.vars, [*lam.params, *lam.body.results])
                self.body(lam.body)
                self.join(lam.params, arrays)
            case UpdateAcc(acc=acc, value=value):
                if acc in self.known:
                    self.want([value])
            case _:
                if self.any(stm.vars):
                    self.want(flows(stm.exp))
