"""Simplification: constants and copies are propagated, expressions get cheaper, trivial regions dissolve.

Takes and gives a verified function, in one walk in the order of execution. Relies on `algebra` for operations on
scalars and on `views` for arrays; what this leaves unused is for `dce`. No rule duplicates a statement.
"""

from __future__ import annotations

from collections.abc import Callable, Collection, Sequence
from dataclasses import replace
from typing import Any, TypeVar

from tapeless.ir.core import (
    Apply,
    ArrayLit,
    Body,
    Broadcast,
    Call,
    Check,
    Concat,
    Copy,
    Exp,
    For,
    Full,
    Function,
    Hist,
    If,
    Index,
    Iota,
    Lambda,
    Library,
    Reshape,
    Scatter,
    Stm,
    Sweep,
    Transpose,
    Update,
    UpdateAcc,
    While,
    WithAcc,
)
from tapeless.ir.operands import operands
from tapeless.ir.rewrite import Rewriter
from tapeless.ir.span import NOWHERE
from tapeless.ir.types import Atom, Const, DType, Var, i64
from tapeless.passes.analysis.facts import equal_bodies, is_view, repeated_results, sizes_in, used_once
from tapeless.passes.analysis.views import covers, settle, simplify_view
from tapeless.passes.parallel.known_rows import known_rows
from tapeless.passes.tidy.algebra import inner, plain_guard, simplify_apply
from tapeless.passes.tidy.selections import may_run_both

T = TypeVar("T")
NEARBY = 32  # statements back to where the original of a copy is looked for


def simplify(function: Function, *, speculate: bool = False) -> Function:
    """`speculate`: Note [Branches as selections] in `selections`."""
    return Simplifier(function, speculate).function(function)


class Simplifier(Rewriter):
    """`defs` are the expressions behind variables, `gone` the arrays consumed so far, each as its one in `roots`."""

    def __init__(self, original: Function, speculate: bool) -> None:
        super().__init__()
        self.original = original
        self.speculate = speculate
        self.defs: dict[Var, Exp] = {}
        self.roots: dict[Var, Var] = {}
        self.gone: set[Var] = set()
        self.updated: set[Var] = set()  # accumulators
        self.assumed: list[Var] = []  # conditions known in the region at hand, or outside of it
        self.span = NOWHERE  # of the statement at hand
        self._dims: set[Var] | None = None
        self.regions = [original.body]  # around the statement at hand, as they were
        self._once: dict[int, tuple[Body, frozenset[Var]]] = {}  # by the id of a region

    def stm(self, stm: Stm) -> None:
        exp = self.rename(stm.exp) if self.map else stm.exp
        if isinstance(exp, Apply):
            self.apply(stm, exp)
            return
        outer, self.span = self.span, stm.span
        rule = RULES.get(type(exp), Simplifier.keep)
        rule(self, stm, exp)
        self.span = outer

    def keep(self, stm: Stm, exp: Exp) -> None:
        vars = self.emit(stm, exp)
        for v in vars:
            self.defs[v] = exp

    # -- names

    def alias(self, var: Var, atom: Atom) -> None:
        """From here on the atom stands for the variable. Dimensions of other names are equal: a view says so."""
        if var.type.shape and self.type(var.type) != atom.type:
            assert isinstance(atom, Var)
            (var,) = self.bind((var,))
            self.out.append(Stm((var,), Reshape(atom, var.type.shape), self.span))
            self.roots[var] = self.root(atom)
        elif self.is_no_length(var, atom):
            self.out.append(Stm((var,), Apply("identity", (atom,)), self.span))
        else:
            self.map[var] = atom

    def alias_all(self, vars: Sequence[Var], atoms: Sequence[Atom]) -> None:
        """Scalars first: they may be dimensions of the arrays beside them."""
        for arrays in (False, True):
            for v, a in zip(vars, atoms, strict=True):
                if bool(v.type.shape) == arrays:
                    self.alias(v, self.atom(a))

    def is_no_length(self, var: Var, atom: Atom) -> bool:
        """A negative constant for a variable in types: code that never runs, but must be legal."""
        if not isinstance(atom, Const) or atom.dtype is not DType.i64 or atom.value.real >= 0:
            return False
        if self._dims is None:
            self._dims = sizes_in(self.original.body)
        return var in self._dims

    def is_used_once(self, var: Var) -> bool:
        body = self.regions[-1]
        if id(body) not in self._once:
            self._once[id(body)] = body, used_once(body)
        return var in self._once[id(body)][1]

    # -- operations on scalars

    def apply(self, stm: Stm, exp: Apply, once: Collection[Var] = ()) -> None:
        """`once` are variables that have no other use, beside those of the region at hand."""
        (var,) = stm.vars
        if exp.op == "select":
            exp = self.with_fewer_choices(exp, once)
        if self.speculate and exp.op == "select":
            exp = plain_guard(exp, self.defs)
        while True:
            new = simplify_apply(exp, var.type, self.defs)
            if not isinstance(new, Apply):
                break
            exp = new
        if new is not None and self.is_no_length(var, new):
            exp, new = exp if exp.op == "identity" else Apply("identity", (new,)), None
        if new is None:
            self.out.append(stm if exp is stm.exp else Stm(stm.vars, exp, stm.span))
            self.defs[var] = exp
        else:
            self.map[var] = new

    def with_fewer_choices(self, exp: Apply, once: Collection[Var]) -> Apply:
        """Of (a if q else b) if p else (a if q else c): a if q else (b if p else c)."""
        cond, *arms = exp.args
        first, second = (inner(arm, "select", self.defs) for arm in arms)
        if not first or not second or not all(v in once or self.is_used_once(v) for v in arms if isinstance(v, Var)):
            return exp
        (q, a, b), (r, c, d) = first, second
        if q is not r or (a == c) == (b == d):
            return exp
        other = Var("other", a.type)
        self.apply(Stm((other,), exp, self.span), Apply("select", (cond, b, d) if a == c else (cond, a, c)))
        return Apply("select", (q, a, self.atom(other)) if a == c else (q, self.atom(other), b))

    def scalar(self, op: str, x: Atom, y: Atom) -> Atom:
        var = Var("i", x.type)
        exp = Apply(op, (x, y))
        self.apply(Stm((var,), exp, self.span), exp)
        return self.atom(var)

    # -- arrays

    def root(self, array: Var) -> Var:
        return self.roots.get(array, array)

    def is_gone(self, array: Var) -> bool:
        return bool(self.gone) and self.root(array) in self.gone

    def consume(self, atoms: Sequence[Atom]) -> None:
        self.gone.update(self.root(a) for a in atoms if isinstance(a, Var) and a.type.shape)

    def view(self, stm: Stm, exp: Index | Reshape | Transpose | Broadcast) -> None:
        now: Exp = exp
        while (new := simplify_view(now, self)) is not None:
            if isinstance(new, (Var, Const)):
                self.alias(stm.vars[0], new)
                return
            now = new
        self.keep(stm, now)
        if is_view(now) and stm.vars[0].type.shape:
            self.roots[self.variable(stm.vars[0])] = self.root(now.array)  # type: ignore[union-attr]

    def update(self, stm: Stm, exp: Update) -> None:
        axes = settle(exp.axes, exp.array.type)
        match self.defs.get(exp.value) if isinstance(exp.value, Var) else None:
            case Index(array, places) if array is exp.array and places == axes:  # writes what is there
                self.alias(stm.vars[0], array)
                return
        array = exp.array
        match self.defs.get(array):
            case Update(before, written) if covers(axes, written, array.type) and self.only_here(array, stm.exp):
                array = before  # nobody has seen what is written over
        self.consume([array])
        same = array is exp.array and axes is exp.axes
        self.keep(stm, exp if same else Update(array, axes, exp.value))

    def only_here(self, array: Var, exp: Exp) -> bool:
        """Is the array made in this region, nearby, and used by the (original) expression at hand alone?"""
        here = any(array in s.vars for s in self.out[-NEARBY:])
        return here and array in operands(exp) and self.is_used_once(array)

    def copy(self, stm: Stm, exp: Copy) -> None:
        """A copy of an array that was made in this region and has no other use is that array."""
        array = exp.array
        fresh = isinstance(self.defs.get(array), (Full, ArrayLit, Iota, Concat, Copy, Sweep, Library, Call))
        if fresh and self.only_here(array, stm.exp):
            self.alias(stm.vars[0], array)
        else:
            self.keep(stm, exp)

    # -- effects

    def check(self, stm: Stm, exp: Check) -> None:
        if isinstance(exp.cond, Const) and exp.cond.value:
            return
        self.emit(stm, exp)
        self.assume(exp.cond, True)

    def assume(self, cond: Atom, value: bool) -> None:
        """The condition has this value up to the end of the region."""
        if not isinstance(cond, Var) or cond in self.map:
            return
        self.map[cond] = Const(value, DType.bool)
        self.assumed.append(cond)
        match self.defs.get(cond):
            case Apply("not", (c,)):
                self.assume(c, not value)
            case Apply("and", (a, b)) if value:
                self.assume(a, True)
                self.assume(b, True)
            case Apply("or", (a, b)) if not value:
                self.assume(a, False)
                self.assume(b, False)

    def body(self, body: Body) -> Body:
        known = len(self.assumed)
        self.regions.append(body)
        new = super().body(body)
        self.regions.pop()
        self.forget(known)
        return new

    def forget(self, known: int) -> None:
        while len(self.assumed) > known:
            del self.map[self.assumed.pop()]

    def update_acc(self, stm: Stm, exp: UpdateAcc) -> None:
        self.updated.add(exp.acc)
        axes = settle(exp.axes, exp.acc.type)
        self.emit(stm, exp if axes is exp.axes else UpdateAcc(exp.acc, axes, exp.value))

    def with_acc(self, stm: Stm, exp: WithAcc) -> None:
        """An accumulator that is never updated gives its array back."""
        self.consume(exp.arrays)
        lam, number = self.lam(exp.lam), len(exp.arrays)
        kept = [k for k, p in enumerate(lam.params) if p in self.updated]
        if kept and len(kept) == number:
            self.keep(stm, exp if lam is exp.lam else WithAcc(exp.arrays, lam, exp.slopes))
            return
        vars = [stm.vars[k] for k in kept] + list(stm.vars[number:])
        if kept:
            arrays = tuple(exp.arrays[k] for k in kept)
            lam = Lambda(tuple(lam.params[k] for k in kept), lam.body)
            self.keep(Stm(tuple(vars), exp, stm.span), WithAcc(arrays, lam, exp.slopes))
        else:
            self.out.extend(lam.body.stms)
            self.alias_all(vars, lam.body.results)
        for k in range(number):
            if k not in kept:
                self.alias(stm.vars[k], exp.arrays[k])

    # -- branches

    def if_(self, stm: Stm, exp: If) -> None:
        cond, yes, no = exp.cond, exp.then, exp.orelse
        while negated := inner(cond, "not", self.defs):
            cond, yes, no = self.atom(negated[0]), no, yes
        if isinstance(cond, Const):
            self.inline(yes if cond.value else no, stm.vars)
            return
        then, orelse = self.branch(yes, cond, True), self.branch(no, cond, False)
        if equal_bodies(then, orelse):
            self.out.extend(then.stms)
            self.alias_all(stm.vars, then.results)
            return
        common = [k for k in range(len(stm.vars)) if then.results[k] == orelse.results[k]]
        for k in common:  # dimensions of the others, perhaps
            if not stm.vars[k].type.shape:
                self.alias(stm.vars[k], then.results[k])
        again = repeated_results(stm.vars, then, orelse)
        dropped = {*common, *again}
        self.map.update((stm.vars[k], first) for k, first in again.items())  # dimensions of the others, perhaps
        self.choose(stm, exp, If(cond, _without(then, dropped), _without(orelse, dropped)), _others(stm.vars, dropped))
        for k, first in again.items():
            self.map[stm.vars[k]] = self.atom(first)  # which may be the condition by now
        for k in common:
            if stm.vars[k].type.shape:
                self.alias(stm.vars[k], then.results[k])

    def choose(self, stm: Stm, before: If, now: If, vars: tuple[Var, ...]) -> None:
        """The walked branch with the results that differ."""
        then, orelse = now.then, now.orelse
        if may_run_both([*then.stms, *orelse.stms], vars, self.speculate):
            self.out.extend((*then.stms, *orelse.stms))
            once = used_once(then) | used_once(orelse)
            for var, x, y in zip(vars, then.results, orelse.results, strict=True):
                choice = Apply("select", (now.cond, x, y))
                self.apply(Stm((var,), choice, stm.span), choice, once)
        elif then is before.then and orelse is before.orelse and now.cond is before.cond:
            self.keep(stm, before)
        else:
            self.keep(Stm(vars, before, stm.span), now)

    def inline(self, body: Body, vars: Sequence[Var]) -> None:
        """The region runs exactly once, here."""
        for stm in body.stms:
            self.stm(stm)
        self.alias_all(vars, body.results)

    def branch(self, body: Body, cond: Atom, value: bool) -> Body:
        known = len(self.assumed)
        self.assume(cond, value)
        new = self.body(body)
        self.forget(known)
        return new

    # -- loops

    def for_(self, stm: Stm, exp: For) -> None:
        trips = exp.bound.value.real if isinstance(exp.bound, Const) else None
        if trips is not None and trips <= 0:
            self.alias_all(stm.vars, exp.inits)
        elif trips == 1:
            self.map[exp.index] = i64(0)
            self.alias_all(exp.params, exp.inits)
            self.inline(exp.body, stm.vars)
        else:
            self.loop(stm, exp)

    def while_(self, stm: Stm, exp: While) -> None:
        match exp.cond:
            case Body((), (Const(False),)):
                self.alias_all(stm.vars, exp.inits)
            case _:
                self.loop(stm, exp)

    def loop(self, stm: Stm, exp: For | While) -> None:
        """What needs no parameter is not carried. That may show when the body has been walked."""
        constant, twice = self.replace_needless(exp)
        if constant or twice:
            self.drop(stm, exp, constant, twice)
            return
        self.consume(exp.inits)
        new = self.inside(exp)
        assert isinstance(new, (For, While))
        if new is not exp and any(self.replace_needless(new)):
            self.loop(stm, new)
        else:
            self.keep(stm, new)

    def replace_needless(self, exp: For | While) -> tuple[list[int], dict[int, int]]:
        """Replaces carried values that never change, and those that another one always equals. Says which."""
        constant: list[int] = []
        twice: dict[int, int] = {}
        first: dict[tuple[Atom, Atom], int] = {}
        for k in sorted(range(len(exp.params)), key=lambda k: exp.params[k].type.rank):  # dimensions come first
            param, start, result = exp.params[k], exp.inits[k], exp.body.results[k]
            if result is param or self.atom(result) == start:
                if not param.type.shape or self.type(param.type) == start.type:
                    self.map[param] = start
                    constant.append(k)
            elif not param.type.shape and first.setdefault((start, result), k) != k:
                twice[k] = first[start, result]
                self.map[param] = exp.params[twice[k]]
        return constant, twice

    def drop(self, stm: Stm, exp: For | While, constant: list[int], twice: dict[int, int]) -> None:
        dropped = {*constant, *twice}
        params, inits, body = _others(exp.params, dropped), _others(exp.inits, dropped), _without(exp.body, dropped)
        for k, j in twice.items():
            self.map[stm.vars[k]] = stm.vars[j]
        for k in constant:  # dimensions of the others, perhaps
            if not stm.vars[k].type.shape:
                self.alias(stm.vars[k], exp.inits[k])
        smaller: For | While
        if isinstance(exp, For):
            smaller = For(exp.index, exp.bound, params, inits, body, exp.hints)
        else:
            smaller = While(params, inits, exp.cond, body, exp.hints)
        self.loop(Stm(_others(stm.vars, dropped), exp, stm.span), smaller)
        for k in constant:
            if stm.vars[k].type.shape:
                self.alias(stm.vars[k], exp.inits[k])

    # -- parallel operators

    def swept(self, stm: Stm, exp: Sweep | Hist | Scatter) -> None:
        if not isinstance(exp, Sweep):
            self.consume(exp.dests)
        params = self.bind(exp.lam.params)
        known, made = known_rows(exp.arrays, params, self.defs, self.is_gone, stm.span)
        if known:
            for k, row in known.items():
                self.map[exp.lam.params[1 + k]] = row
            body = Body((*made, *exp.lam.body.stms), exp.lam.body.results) if made else exp.lam.body
            lam = Lambda((params[0], *_others(params[1:], known)), body)
            exp = replace(exp, arrays=_others(exp.arrays, known), lam=lam)
        self.keep(stm, self.inside(exp))


def _others(many: tuple[T, ...], dropped: Collection[int]) -> tuple[T, ...]:
    return tuple([x for k, x in enumerate(many) if k not in dropped])


def _without(body: Body, dropped: Collection[int]) -> Body:
    return Body(body.stms, _others(body.results, dropped)) if dropped else body


RULES: dict[type, Callable[[Simplifier, Stm, Any], None]] = {
    Index: Simplifier.view,
    Reshape: Simplifier.view,
    Transpose: Simplifier.view,
    Broadcast: Simplifier.view,
    Update: Simplifier.update,
    Copy: Simplifier.copy,
    Check: Simplifier.check,
    UpdateAcc: Simplifier.update_acc,
    WithAcc: Simplifier.with_acc,
    If: Simplifier.if_,
    For: Simplifier.for_,
    While: Simplifier.while_,
    Sweep: Simplifier.swept,
    Hist: Simplifier.swept,
    Scatter: Simplifier.swept,
}
