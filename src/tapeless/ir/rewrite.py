"""A walk over Core in the order of execution that replaces variables: what simplify and cse have in common.

Takes a function; a pass overrides `stm`. Gives the same object back wherever nothing changed, so that `is` tells
whether a pass did something. Relies on names being bound once: one map serves all scopes.
"""

from __future__ import annotations

from collections.abc import Sequence
from operator import is_

from tapeless.ir.core import (
    Apply,
    At,
    Axis,
    Body,
    Exp,
    For,
    Function,
    If,
    Index,
    Lambda,
    Range,
    Stm,
    Sweep,
    Update,
    While,
)
from tapeless.ir.operands import REGIONS, operands
from tapeless.ir.types import Atom, Dim, Type, Var, atom_dim
from tapeless.ir.walk import map_exp, map_function


def _same_body(body: Body) -> Body:
    return body


def _same_lambda(lam: Lambda) -> Lambda:
    return lam


def _same_atom(atom: Atom) -> Atom:
    return atom


class Rewriter:
    """`map` says what stands for a variable from here on, `out` holds the statements of the region being made."""

    def __init__(self) -> None:
        self.map: dict[Var, Atom] = {}
        self.out: list[Stm] = []

    def function(self, function: Function) -> Function:
        return map_function(function, self.body)

    def stm(self, stm: Stm) -> None:
        """Walks one statement; `emit` puts it, or what it became, into `out`."""
        exp = self.rename(stm.exp)
        self.emit(stm, self.inside(exp) if type(exp) in REGIONS else exp)

    def emit(self, stm: Stm, exp: Exp) -> tuple[Var, ...]:
        vars = self.bind(stm.vars)
        self.out.append(stm if exp is stm.exp and vars is stm.vars else Stm(vars, exp, stm.span))
        return vars

    # -- operands

    def atom(self, atom: Atom) -> Atom:
        return self.map.get(atom, atom) if isinstance(atom, Var) else atom

    def atoms(self, many: tuple[Atom, ...]) -> tuple[Atom, ...]:
        """The same tuple if nothing in it changes."""
        map = self.map
        for a in many:
            if isinstance(a, Var) and a in map:
                return tuple([self.atom(a) for a in many])
        return many

    def dim(self, dim: Dim) -> Dim:
        return atom_dim(self.map.get(dim, dim)) if isinstance(dim, Var) else dim

    def type(self, type: Type) -> Type:
        for d in type.shape:
            if isinstance(d, Var) and d in self.map:
                return Type(type.dtype, tuple(self.dim(d) for d in type.shape), type.acc)
        return type

    def bind(self, vars: tuple[Var, ...]) -> tuple[Var, ...]:
        """Binding occurrences: a variable whose type has changed becomes a new one."""
        changed = False
        for v in vars:
            if v.type.shape and (type := self.type(v.type)) is not v.type:
                self.map[v] = Var(v.name, type)
                changed = True
        return tuple([self.variable(v) for v in vars]) if changed else vars

    def variable(self, var: Var) -> Var:
        new = self.map.get(var, var)
        assert isinstance(new, Var), f"{var} must stay a variable, got {new}"
        return new

    def axes(self, axes: tuple[Axis, ...]) -> tuple[Axis, ...]:
        map = self.map
        for a in axes:
            for part in (a.index,) if isinstance(a, At) else (a.start, a.length, a.step):
                if isinstance(part, Var) and part in map:
                    return tuple([self.axis(a) for a in axes])
        return axes

    def axis(self, axis: Axis) -> Axis:
        if isinstance(axis, At):
            return At(self.atom(axis.index), axis.wrap, axis.check)
        return Range(self.atom(axis.start), self.dim(axis.length), self.atom(axis.step))

    def rename(self, exp: Exp) -> Exp:
        """The expression with its own operands replaced; its regions are not looked at."""
        if not self.map:
            return exp
        if isinstance(exp, Apply):  # most statements are one of these three
            args = self.atoms(exp.args)
            return exp if args is exp.args else Apply(exp.op, args)
        if isinstance(exp, Index):
            array, axes = self.variable(exp.array), self.axes(exp.axes)
            return exp if array is exp.array and axes is exp.axes else Index(array, axes)
        if isinstance(exp, Update):
            array, axes, value = self.variable(exp.array), self.axes(exp.axes), self.atom(exp.value)
            same = array is exp.array and axes is exp.axes and value is exp.value
            return exp if same else Update(array, axes, value)
        map = self.map
        if not any(a in map for a in operands(exp) if isinstance(a, Var)):
            return exp
        return map_exp(exp, self.atom, _same_body, _same_lambda)

    # -- regions

    def body(self, body: Body) -> Body:
        outer, self.out = self.out, []
        for stm in body.stms:
            self.stm(stm)
        stms, self.out = self.out, outer
        return self.close(body, stms)

    def close(self, body: Body, stms: Sequence[Stm]) -> Body:
        results = self.atoms(body.results)
        if results is body.results and len(stms) == len(body.stms) and all(map(is_, stms, body.stms)):
            return body
        return Body(tuple(stms), results)

    def lam(self, lam: Lambda) -> Lambda:
        params = self.bind(lam.params)
        body = self.body(lam.body)
        return lam if params is lam.params and body is lam.body else Lambda(params, body)

    def inside(self, exp: Exp) -> Exp:
        """The expression with its regions walked; its own operands are not looked at."""
        if isinstance(exp, For):
            (index, *params), body = self.bind((exp.index, *exp.params)), self.body(exp.body)
            if body is exp.body and index is exp.index and all(map(is_, params, exp.params)):
                return exp
            return For(index, exp.bound, tuple(params), exp.inits, body, exp.hints)
        if isinstance(exp, While):  # both regions see the same parameters
            carried, cond, body = self.bind(exp.params), self.body(exp.cond), self.body(exp.body)
            if cond is exp.cond and body is exp.body and carried is exp.params:
                return exp
            return While(carried, exp.inits, cond, body, exp.hints)
        if isinstance(exp, If):  # these two are the most frequent: without the general rebuilding
            then, orelse = self.body(exp.then), self.body(exp.orelse)
            return exp if then is exp.then and orelse is exp.orelse else If(exp.cond, then, orelse)
        if isinstance(exp, Sweep) and not exp.reduces and not exp.scans:
            f = self.lam(exp.lam)
            return exp if f is exp.lam else Sweep(exp.width, exp.arrays, f)
        changed = False

        def on_body(body: Body) -> Body:
            nonlocal changed
            new = self.body(body)
            changed = changed or new is not body
            return new

        def on_lambda(lam: Lambda) -> Lambda:
            nonlocal changed
            new = self.lam(lam)
            changed = changed or new is not lam
            return new

        new = map_exp(exp, _same_atom, on_body, on_lambda)
        return new if changed else exp
