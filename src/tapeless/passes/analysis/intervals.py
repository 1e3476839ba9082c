"""Intervals of the floats of a body: what they cannot be, and what that decides.

`Intervals` takes a body; gives, by variable, the interval of a scalar (`known`), comparisons that come out one way
whatever the arguments are (`decided`), the operands in which the slopes of a row are numbers (`level`), and rows with
`tame` slopes, numbers wherever the operands are numbers. Relies on `ops/intervals.py` for single rows.

Note [Not a number]
A value is in its interval or is NaN. Comparisons with NaN do not hold, so one that holds for no number of an interval
never holds; that one holds for all of them proves nothing, but of `ne`.

Note [Carried signs]
A value that a loop carries is taken to have the sign that it starts with, if the body keeps it: a sum of squares that
starts at 0 is never negative. Where the body does not, nothing is known of it.
"""

from __future__ import annotations

import math
from collections.abc import Callable, Iterator, Sequence
from contextlib import contextmanager

from tapeless.ir.core import Apply, Body, Check, For, If, Lambda, Reduction, Stm, Sweep, While
from tapeless.ir.operands import regions
from tapeless.ir.types import Atom, Const, DType, Var
from tapeless.ops.intervals import ALL, Interval, both, bounded, bounded_slopes, hull, interval_of, of_const
from tapeless.ops.op import FLOATS
from tapeless.ops.table import TABLE

DEEP = 3  # loops in each other whose carried values are looked at: each doubles the work
POSITIVE, NEGATIVE = (0.0, math.inf), (-math.inf, 0.0)


class Intervals:
    def __init__(self, body: Body, slopes: bool = False) -> None:
        self.known: dict[Var, Interval] = {}
        self.decided: dict[Var, bool] = {}
        self.level: dict[Var, frozenset[int]] = {}
        self.tame: set[Var] = set()
        self._slopes = slopes
        self._made: dict[Var, Apply] = {}  # truth values
        self._loops = 0
        self._narrowed: list[tuple[Var, Interval]] = []  # by conditions, and what was known before
        self._body(body)

    def of(self, a: Atom) -> Interval:
        return of_const(a.value) if isinstance(a, Const) else self.known.get(a, ALL)

    def _body(self, body: Body) -> None:
        for s in body.stms:
            if isinstance(s.exp, Apply):
                self._apply(s.vars[0], s.exp)
            else:
                RULES.get(type(s.exp), Intervals._other)(self, s, s.exp)

    @contextmanager
    def _region(self) -> Iterator[None]:
        """What conditions say inside is forgotten afterwards; variables of the region are in nobody's way."""
        count = len(self._narrowed)
        yield
        while len(self._narrowed) > count:
            v, before = self._narrowed.pop()
            self.known[v] = before

    def _other(self, stm: Stm, exp: object) -> None:
        for lam in regions(stm.exp):
            with self._region():
                self._body(lam.body)

    # -- rows

    def _apply(self, v: Var, exp: Apply) -> None:
        if v.type.dtype is DType.bool:
            self._made[v] = exp
            self._decide(v, exp)
            return
        if v.type.dtype not in FLOATS or exp.args[-1].type.dtype.is_complex:
            return
        args = tuple([a if isinstance(a, Const) else self.known.get(a, ALL) for a in exp.args])
        dtype = exp.args[-1].type.dtype
        found = interval_of(exp.op, args, dtype, len(args) == 2 and exp.args[0] is exp.args[1])
        if found != ALL:
            self.known[v] = found
        else:
            self.known.pop(v, None)
        if self._slopes and TABLE[exp.op].singular_at:
            self.level[v] = bounded_slopes(exp.op, args, dtype)
            tame = len(bounded_slopes(exp.op, args, dtype, finite=True)) == len(args)
            (self.tame.add if tame else self.tame.discard)(v)

    def _decide(self, v: Var, exp: Apply) -> None:
        """Note [Not a number]"""
        if exp.args[0].type.dtype not in FLOATS:
            return
        outcome: bool | None = None
        if exp.op == "isinf":
            outcome = False if bounded(self.of(exp.args[0])) else None
        elif (means := TABLE[exp.op].comparison) is not None:
            (a, b), (c, d) = map(self.of, exp.args)
            apart = b < c or d < a
            if not means.order:
                outcome = means.reflexive is False if apart else None
            else:
                if means.order < 0:
                    a, b, c, d = c, d, a, b
                outcome = False if b < c or (b == c and not means.reflexive) else None
        if outcome is None:
            self.decided.pop(v, None)
        else:
            self.decided[v] = outcome

    # -- conditions

    def _assume(self, cond: Atom, holds: bool) -> None:
        exp = self._made.get(cond) if isinstance(cond, Var) else None
        if exp is None:
            return
        if exp.op == "not":
            self._assume(exp.args[0], not holds)
        elif (exp.op == "and" and holds) or (exp.op == "or" and not holds):
            for a in exp.args:
                self._assume(a, holds)
        elif (means := TABLE[exp.op].comparison) and means.order and exp.args[0].type.dtype in FLOATS:
            x, y = exp.args if means.order > 0 else exp.args[::-1]
            strict = not means.reflexive
            if not holds:
                x, y, strict = y, x, not strict
            low, high = self.of(y)[0], self.of(x)[1]
            if holds or isinstance(y, Const):  # a comparison with NaN does not hold, and its opposite does not either
                self._between(x, low, strict, math.inf)
            if holds or isinstance(x, Const):
                self._between(y, high, strict, -math.inf)

    def _between(self, v: Atom, end: float, strict: bool, to: float) -> None:
        """The value is between an end, itself not if `strict`, and infinity of either sign, or NaN."""
        if isinstance(v, Var):
            start = math.nextafter(end, to) if strict and v.type.dtype is DType.f64 else end
            before = self.of(v)
            self._narrowed.append((v, before))
            self.known[v] = both(before, (start, to) if to > 0 else (to, start))

    # -- regions

    def _if(self, stm: Stm, exp: If) -> None:
        ends: list[list[Interval]] = []
        for arm, holds in ((exp.then, True), (exp.orelse, False)):
            with self._region():
                self._assume(exp.cond, holds)
                ends.append(self._round(arm))
        self._learn(stm.vars, [hull(x, y) for x, y in zip(*ends, strict=True)])

    def _check(self, stm: Stm, exp: Check) -> None:
        self._assume(exp.cond, True)

    def _for(self, stm: Stm, exp: For) -> None:
        self._learn(stm.vars, self._carried(exp.params, exp.inits, lambda: self._round(exp.body)))

    def _while(self, stm: Stm, exp: While) -> None:
        def run() -> list[Interval]:
            self._body(exp.cond)
            self._assume(exp.cond.results[0], True)
            return self._round(exp.body)

        self._learn(stm.vars, self._carried(exp.params, exp.inits, run))

    def _round(self, body: Body) -> list[Interval]:
        self._body(body)
        return [self.of(r) for r in body.results]

    def _carried(
        self, params: Sequence[Var], inits: Sequence[Atom], run: Callable[[], list[Interval]]
    ) -> list[Interval]:
        """Note [Carried signs]. `run` goes through the body; the intervals of its results."""
        self._loops += 1
        guess = [_sign(self.of(a)) if self._loops <= DEEP and a.type.is_scalar else ALL for a in inits]
        while True:
            self._learn(params, guess)
            with self._region():
                found = run()
            kept = [g if _inside(x, g) else ALL for x, g in zip(found, guess, strict=True)]
            if kept == guess:
                break
            guess = kept
        self._loops -= 1
        return guess

    def _sweep(self, stm: Stm, exp: Sweep) -> None:
        with self._region():
            parts = self._round(exp.lam.body)
        ends: list[Interval] = []
        for r in exp.reduces:
            mine, parts = parts[: len(r.neutral)], parts[len(r.neutral) :]
            ends += [_total(r, mine[0])] if len(mine) == 1 else [ALL] * len(mine)
        self._learn(stm.vars[: len(ends)], ends)

    def _learn(self, vars: Sequence[Var], intervals: Sequence[Interval]) -> None:
        for v, x in zip(vars, intervals, strict=True):
            if x != ALL and v.type.is_scalar and v.type.dtype in FLOATS:
                self.known[v] = x
            else:
                self.known.pop(v, None)


RULES: dict[type, Callable[..., None]] = {
    If: Intervals._if,
    Check: Intervals._check,
    For: Intervals._for,
    While: Intervals._while,
    Sweep: Intervals._sweep,
}


def _sign(x: Interval) -> Interval:
    return POSITIVE if x[0] >= 0 else NEGATIVE if x[1] <= 0 else ALL


def _inside(x: Interval, y: Interval) -> bool:
    return y[0] <= x[0] and x[1] <= y[1]


def _total(r: Reduction, x: Interval) -> Interval:
    """A sum of terms of one sign has it; so has the greatest or least of them, and what it starts with."""
    match r.op:
        case Lambda((a, b), Body((Stm(_, Apply(op, args)),), (_,))) if {a, b} == set(args):
            row = TABLE[op]
            neutral = of_const(r.neutral[0].value) if isinstance(r.neutral[0], Const) else ALL
            if row.linear or row.extremum:
                return _sign(hull(x, neutral))
    return ALL
