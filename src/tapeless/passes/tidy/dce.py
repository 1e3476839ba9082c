"""Dead code: removes what no result and no effect depends on, down to single results of regions.

Takes and gives a verified function. Relies on `facts` for what is an effect. Linear: one walk that notes where each
variable comes from, one that marks what is needed, one that drops the rest.

Note [Marking]
A variable is needed if a result of the function, an effect, or a needed variable depends on it. A region statement
depends, result by result, on what the region gives there: a carried value that only serves itself is not needed
although it is used, and goes with its parameter. So does one of several values that an operator reduces together, if
the others do not depend on it. An effect needs the statements around it: the branch taken, the
trips made. Updates of an accumulator are effects on its array, and needed if that is. `progress` stays where all
statements around it do: Note [Progress].

Note [Tests of positions]
An index whose element nobody uses is there for its test only, which needs the position and the size but not what the
array holds. If the array is not needed otherwise, the test is put in the place of the index.
"""

from __future__ import annotations

from collections.abc import Callable, Iterable, Sequence
from itertools import accumulate, pairwise
from operator import is_
from typing import TypeVar, assert_never

from tapeless.ir.builder import Builder
from tapeless.ir.core import (
    Apply,
    At,
    Body,
    Check,
    Exp,
    For,
    Function,
    Hist,
    If,
    Index,
    Lambda,
    Progress,
    Reduction,
    Scatter,
    Stm,
    Sweep,
    UpdateAcc,
    While,
    WithAcc,
    WithRegions,
)
from tapeless.ir.effects import is_effect
from tapeless.ir.operands import REGIONS, operands
from tapeless.ir.types import BOOL, I64, Atom, Var, dim_atom, i64
from tapeless.ir.walk import map_function, type_vars

HARD = (*REGIONS, UpdateAcc)  # for `all_is_used`
T = TypeVar("T")
Origin = tuple[Stm, int]


def dce(function: Function) -> Function:
    if all_is_used(function.body):
        return function
    needs = Needs()
    needs.collect(function.body, ())
    needs.mark(function.body.results)
    needs.run()
    needs.keep_progress()
    return map_function(function, Trim(needs).body)


def live_part(body: Body) -> tuple[Body, set[Var]]:
    """A region by itself: what its results and its updates of accumulators of outside need, and the variables
    needed.
    """
    needs = Needs()
    needs.collect(body, ())
    needs.mark(body.results)
    for acc, updates in needs.updates.items():
        if acc not in needs.params:
            for update, around in updates:
                needs.effect(update, around)
    needs.run()
    needs.keep_progress()
    return Trim(needs).body(body), needs.vars


# -- nothing to do


def all_is_used(function_body: Body) -> bool:
    """Is each variable and each row used by something? Without loops nothing is dead then, since what is used last is
    used by an effect or by the results. May say no where that is hard to tell.
    """
    bound: set[Var] = set()
    used: set[Atom] = set()
    left = [function_body]
    while left:
        body = left.pop()
        used.update([a for a in body.results if isinstance(a, Var)])
        for stm in body.stms:
            exp = stm.exp
            bound.update(stm.vars)
            atoms = exp.args if isinstance(exp, Apply) else operands(exp)
            for atom in atoms:
                if type(atom) is Var:
                    used.add(atom)
            if isinstance(exp, Apply):
                continue
            for v in stm.vars:
                if v.type.shape:
                    used.update([d for d in v.type.shape if isinstance(d, Var)])
            if isinstance(exp, Index) and stm.vars:
                continue
            if isinstance(exp, (Sweep, If)) and stm.vars:
                params, bodies = _regions(exp)
                bound.update(params[1:])  # all but the index
                left.extend(bodies)
            elif isinstance(exp, HARD) or not (stm.vars or is_effect(exp)):
                return False
    return bound <= used


# -- what is needed: Note [Marking]


class Needs:
    """`vars` are the needed variables, `stms` (by id) the statements that effects inside them need to run."""

    def __init__(self) -> None:
        self.vars: set[Var] = set()
        self.stms: set[int] = set()
        self.pending: list[Var] = []
        self.results: dict[Var, Origin] = {}  # the statement that binds a variable, and which of its results it is
        self.params: dict[Var, Origin] = {}  # the statement whose region has the parameter, and which one it is
        self.operands: dict[Var, Origin] = {}  # the sweep whose operator has the parameter, and of which result
        self.updates: dict[Var, list[tuple[Stm, tuple[Stm, ...]]]] = {}  # those of an accumulator, with what is around
        self.shown: list[tuple[Stm, tuple[Stm, ...]]] = []  # those that say how far a loop is, with what is around

    def collect(self, body: Body, around: tuple[Stm, ...]) -> None:
        results, params = self.results, self.params
        for stm in body.stms:
            exp = stm.exp
            if isinstance(exp, Apply):
                results[stm.vars[0]] = stm, 0
                continue
            for k, v in enumerate(stm.vars):
                results[v] = stm, k
            if isinstance(exp, WithRegions):
                bound, bodies = _regions(exp)
                for k, p in enumerate(bound):
                    params[p] = stm, k
                if isinstance(exp, Sweep):
                    for r, (start, _) in zip((*exp.reduces, *exp.scans), _groups(exp), strict=True):
                        for k, p in enumerate(r.op.params):
                            self.operands[p] = stm, start + k % len(r.neutral)
                for inner in bodies:
                    self.collect(inner, (*around, stm))
            elif isinstance(exp, UpdateAcc):
                self.updates.setdefault(exp.acc, []).append((stm, around))
            elif isinstance(exp, Progress):
                self.shown.append((stm, around))
            elif is_effect(exp):
                self.effect(stm, around)

    def effect(self, stm: Stm, around: Iterable[Stm]) -> None:
        self.stms.add(id(stm))
        self.mark(_tested(stm.exp) if isinstance(stm.exp, Index) else operands(stm.exp))
        for outer in around:
            if id(outer) not in self.stms:
                self.stms.add(id(outer))
                self.control(outer)

    def mark(self, atoms: Iterable[Atom]) -> None:
        for a in atoms:
            if isinstance(a, Var) and a not in self.vars:
                self.vars.add(a)
                self.pending.append(a)

    def run(self) -> None:
        while self.pending:
            var = self.pending.pop()
            if var.type.shape:
                self.mark(type_vars(var.type))
            if origin := self.results.get(var):
                stm, k = origin
                if isinstance(stm.exp, Apply):
                    self.mark(stm.exp.args)
                elif isinstance(stm.exp, WithRegions):
                    self.control(stm)
                    self.result(stm.exp, k)
                else:
                    self.mark(operands(stm.exp))
            elif origin := self.params.get(var):
                self.param(origin[0].exp, var, origin[1])
            elif origin := self.operands.get(var):
                self.mark([origin[0].vars[origin[1]]])

    def keep_progress(self) -> None:
        """To be called when all else has been marked."""
        for stm, around in self.shown:
            if all(id(s) in self.stms or not self.vars.isdisjoint(s.vars) for s in around):
                self.effect(stm, ())
        self.run()

    def control(self, stm: Stm) -> None:
        """What a statement with regions needs to run at all."""
        exp = stm.exp
        assert isinstance(exp, WithRegions)
        match exp:
            case If(cond):
                self.mark([cond])
            case For(bound=bound):
                self.mark([bound])
            case While(cond=test):
                self.mark(test.results)
            case Sweep(width):
                self.mark([dim_atom(width)])
            case Hist(op, dests, width, _, lam):
                self.operator(op)
                self.mark([dim_atom(width), *dests, *lam.body.results, *stm.vars])  # all or nothing
            case Scatter(dests, width, _, lam):
                self.mark([dim_atom(width), *dests, *lam.body.results, *stm.vars])
            case WithAcc():
                pass
            case _:
                assert_never(exp)

    def result(self, exp: WithRegions, k: int) -> None:
        """What result number k depends on."""
        match exp:
            case If(_, then, orelse):
                self.mark([then.results[k], orelse.results[k]])
            case For(params=params) | While(params=params):
                self.mark([params[k]])
            case Sweep():
                for operator, (start, stop) in zip((*exp.reduces, *exp.scans), _groups(exp), strict=True):
                    if start <= k < stop:
                        self.mark((operator.neutral[k - start], operator.op.body.results[k - start]))
                        self.mark(exp.lam.body.results[k : k + 1])
                        return
                self.mark([exp.lam.body.results[k]])
            case WithAcc(arrays, lam):
                number = len(arrays)
                self.mark([lam.params[k] if k < number else lam.body.results[k - number]])
            case Hist() | Scatter():
                pass  # `control` has marked all
            case _:
                assert_never(exp)

    def operator(self, r: Reduction) -> None:
        self.mark((*r.neutral, *r.op.body.results))

    def param(self, exp: Exp, var: Var, k: int) -> None:
        """What parameter number k of a region depends on."""
        match exp:
            case For(index, _, _, inits, body):
                if var is not index:
                    self.mark([inits[k - 1], body.results[k - 1]])
            case While(_, inits, _, body):
                self.mark([inits[k], body.results[k]])
            case Sweep(arrays=arrays) | Hist(arrays=arrays) | Scatter(arrays=arrays):
                self.mark(arrays[k - 1 : k])  # nothing for the index
            case WithAcc(arrays):
                self.mark([arrays[k]])
                for update, around in self.updates.get(var, ()):
                    self.effect(update, around)


def _regions(exp: WithRegions) -> tuple[tuple[Var, ...], list[Body]]:
    """The parameters that are bound to something outside, and the regions."""
    match exp:
        case If(_, then, orelse):
            return (), [then, orelse]
        case For(index, _, params, _, body):
            return (index, *params), [body]
        case While(params, _, cond, body):
            return params, [cond, body]
        case Sweep(_, _, lam, reduces, scans):
            return lam.params, [*(r.op.body for r in (*reduces, *scans)), lam.body]
        case Hist(op=op, lam=lam):
            return lam.params, [op.op.body, lam.body]
        case Scatter(lam=lam) | WithAcc(lam=lam):
            return lam.params, [lam.body]
        case _:
            assert_never(exp)


def _groups(sweep: Sweep) -> list[tuple[int, int]]:
    """The positions of the results of each operator, reductions first."""
    if not sweep.reduces and not sweep.scans:
        return []
    ends = list(accumulate((len(r.neutral) for r in (*sweep.reduces, *sweep.scans)), initial=0))
    return list(pairwise(ends))


# -- Note [Tests of positions]


def _tested(exp: Index) -> list[Atom]:
    """What the tests of an index need: all but the array, and the sizes of tested axes."""
    sizes = [dim_atom(n) for a, n in zip(exp.axes, exp.array.type.shape, strict=True) if isinstance(a, At) and a.check]
    return [*operands(exp)[1:], *sizes]


def tests_of_position(stm: Stm, exp: Index) -> list[Stm]:
    b = Builder(stm.span)
    for k, (a, length) in enumerate(zip(exp.axes, exp.array.type.shape, strict=True)):
        if isinstance(a, At) and a.check:
            size = dim_atom(length)
            lowest = b.let(I64, Apply("neg", (size,))) if a.wrap else i64(0)
            low, high = b.let(BOOL, Apply("ge", (a.index, lowest))), b.let(BOOL, Apply("lt", (a.index, size)))
            inside = b.let(BOOL, Apply("and", (low, high)))
            message = f"index {{0}} is out of bounds for axis {k} with size {{1}}"
            b.effect(Check(inside, "IndexError", message, (a.index, size)))
    return b.stms


# -- dropping the rest


class Trim:
    def __init__(self, needs: Needs) -> None:
        self.vars = needs.vars
        self.stms = needs.stms
        self.bound = needs.results.keys() | needs.params.keys()

    def body(self, body: Body, keep: Callable[[int], bool] | None = None) -> Body:
        """`keep` tells which results stay; all if it is left out."""
        stms: list[Stm] = []
        needed = self.vars
        for stm in body.stms:
            exp = stm.exp
            if isinstance(exp, Apply):
                if stm.vars[0] in needed:
                    stms.append(stm)
            elif id(stm) in self.stms or not needed.isdisjoint(stm.vars):
                if isinstance(exp, WithRegions):
                    stms.append(self.stm(stm, exp))
                elif isinstance(exp, Index) and exp.array not in needed and exp.array in self.bound:
                    stms.extend(tests_of_position(stm, exp))  # Note [Tests of positions]
                else:
                    stms.append(stm)
        results = body.results if keep is None else _kept(body.results, keep)
        if len(stms) == len(body.stms) and results is body.results and all(map(is_, stms, body.stms)):
            return body
        return Body(tuple(stms), results)

    def lam(self, lam: Lambda, keep: Callable[[int], bool] | None = None) -> Lambda:
        body = self.body(lam.body, keep)
        return lam if body is lam.body else Lambda(lam.params, body)

    def stm(self, stm: Stm, exp: WithRegions) -> Stm:
        vars, new = self.region(stm.vars, exp)
        return stm if vars is stm.vars and new is exp else Stm(vars, new, stm.span)

    def region(self, vars: tuple[Var, ...], exp: WithRegions) -> tuple[tuple[Var, ...], Exp]:
        """The variables and the expression without what is not needed. Unchanged ones are the same objects."""

        def bound(k: int) -> bool:
            return vars[k] in self.vars

        match exp:
            case If(cond, then, orelse):
                first, second = self.body(then, bound), self.body(orelse, bound)
                same = first is then and second is orelse
                return _kept(vars, bound), exp if same else If(cond, first, second)
            case For(index, limit, params, inits, body, hints):
                keep = self.carried(params)
                inner = self.body(body, keep)
                if inner is body:
                    return vars, exp
                return _kept(vars, keep), For(index, limit, _kept(params, keep), _kept(inits, keep), inner, hints)
            case While(params, inits, cond, body, hints):
                keep = self.carried(params)
                test, inner = self.body(cond), self.body(body, keep)
                if test is cond and inner is body:
                    return vars, exp
                return _kept(vars, keep), While(_kept(params, keep), _kept(inits, keep), test, inner, hints)
            case Sweep():
                return self.sweep(vars, exp)
            case Hist(op, dests, width, arrays, lam):
                operator, (arrays, lam) = self.operator(op), self.rows(arrays, lam)
                same = operator is op and lam is exp.lam
                return vars, exp if same else Hist(operator, dests, width, arrays, lam)
            case Scatter(dests, width, arrays, lam):
                arrays, lam = self.rows(arrays, lam)
                return vars, exp if lam is exp.lam else Scatter(dests, width, arrays, lam)
            case WithAcc(arrays, lam):
                return self.with_acc(vars, exp)
            case _:
                assert_never(exp)

    def carried(self, params: Sequence[Var]) -> Callable[[int], bool]:
        return lambda k: params[k] in self.vars

    def operator(self, r: Reduction, keep: Callable[[int], bool] | None = None) -> Reduction:
        op = self.lam(r.op, keep)
        if keep is not None and (neutral := _kept(r.neutral, keep)) is not r.neutral:
            number = len(r.neutral)
            params = _kept(op.params, lambda k: keep(k % number))
            return Reduction(Lambda(params, op.body), neutral, r.commutative)
        return r if op is r.op else Reduction(op, r.neutral, r.commutative)

    def rows(
        self, arrays: tuple[Var, ...], lam: Lambda, keep: Callable[[int], bool] | None = None
    ) -> tuple[tuple[Var, ...], Lambda]:
        """Arrays whose rows are not looked at go. The lambda is the same object only if the arrays are."""

        def used(k: int) -> bool:
            return lam.params[1 + k] in self.vars

        new = self.lam(lam, keep)
        kept = _kept(arrays, used)
        return (
            (arrays, new) if kept is arrays else (kept, Lambda((lam.params[0], *_kept(lam.params[1:], used)), new.body))
        )

    def sweep(self, vars: tuple[Var, ...], exp: Sweep) -> tuple[tuple[Var, ...], Exp]:
        def keep(k: int) -> bool:
            return vars[k] in self.vars

        operators: list[Reduction | None] = []
        for r, (start, stop) in zip((*exp.reduces, *exp.scans), _groups(exp), strict=True):
            dead = self.vars.isdisjoint(vars[start:stop])
            operators.append(None if dead else self.operator(r, lambda k, start=start: keep(start + k)))  # type: ignore[misc]
        number = len(exp.reduces)
        reduces = tuple([r for r in operators[:number] if r is not None])
        scans = tuple([r for r in operators[number:] if r is not None])
        arrays, lam = self.rows(exp.arrays, exp.lam, keep)
        same = all(map(is_, operators, (*exp.reduces, *exp.scans)))
        if same and lam is exp.lam:
            return vars, exp
        return _kept(vars, keep), Sweep(exp.width, arrays, lam, reduces, scans)

    def with_acc(self, vars: tuple[Var, ...], exp: WithAcc) -> tuple[tuple[Var, ...], Exp]:
        number = len(exp.arrays)

        def array(k: int) -> bool:
            return exp.lam.params[k] in self.vars

        def result(k: int) -> bool:
            return vars[number + k] in self.vars

        body = self.body(exp.lam.body, result)
        arrays, params = _kept(exp.arrays, array), _kept(exp.lam.params, array)
        if body is exp.lam.body and arrays is exp.arrays:
            return vars, exp
        left = (*_kept(vars[:number], array), *_kept(vars[number:], result))
        return left, WithAcc(arrays, Lambda(params, body), exp.slopes)


def _kept(many: tuple[T, ...], keep: Callable[[int], bool]) -> tuple[T, ...]:
    """The same tuple if all are kept."""
    chosen = [x for k, x in enumerate(many) if keep(k)]
    return many if len(chosen) == len(many) else tuple(chosen)
