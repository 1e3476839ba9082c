"""Code for one of several plans: branches that a budget decides are taken as they go in one call.

`assumed` takes a function, numbers that are known of a call, and the parameter that is its budget. Conditions of
branches which depend on that and are the same throughout the call become constants, with a test in front that they are
what they were taken for. What is left of the other branches goes with the next passes.

Note [The same throughout]
In a loop over n iterations its index is known to lie between 0 and n - 1, so what depends on it lies between bounds as
well. An operation that rises or falls with each operand alone is largest and smallest at the ends of theirs. A
comparison that comes out alike at all of these ends is the same in every iteration. Loops that only count, in front of
loops whose logs are of uneven lengths, are run.
"""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import replace
from itertools import product
from typing import Any

import numpy as np

from tapeless.ir.core import Apply, Body, Check, For, Function, If, Stm
from tapeless.ir.operands import regions
from tapeless.ir.types import Atom, Const, DType, Var, const
from tapeless.ir.walk import map_regions, substitute_body
from tapeless.ops.op import Op
from tapeless.ops.table import TABLE

FOLLOWED = 10_000  # iterations of loops that count, which are worth running
Bounds = tuple[Any, Any]  # of an integer or a bool, both ends included
MESSAGE = "this code is for a call of other sizes, which keeps its values in another way"


def assumed(function: Function, known: Mapping[Var, Any], budget: Var) -> Function:
    """The same object where nothing is decided."""
    reader = _Reader(known, budget)
    reader.body(function.body)
    if not reader.taken:
        return function
    constants = {v: const(value, DType.bool) for v, value in reader.taken.items()}
    return replace(function, body=substitute_body(_tested(function.body, reader.taken), constants))


class _Reader:
    """Follows a call as far as it is known. `taken` are the conditions that it comes to."""

    def __init__(self, known: Mapping[Var, Any], budget: Var) -> None:
        self.bounds = {v: _exactly(v.type.dtype.numpy.type(x)) for v, x in known.items()}
        self.by_budget, self.computed = {budget}, set[Var]()
        self.taken: dict[Var, bool] = {}
        self.left = FOLLOWED

    def body(self, body: Body) -> None:
        for stm in body.stms:
            self.stm(stm)

    def stm(self, stm: Stm) -> None:
        match stm.exp:
            case Apply(op=op, args=args) if len(stm.vars) == 1:
                self.operation(stm.vars[0], op, args)
            case If(cond=cond, then=then, orelse=orelse):
                if isinstance(cond, Var) and cond in self.by_budget & self.computed and self.number(cond) is not None:
                    self.taken[cond] = bool(self.bounds[cond][0])
                    self.body(then if self.taken[cond] else orelse)
                    return
                self.body(then)
                self.body(orelse)
            case For(index=index, bound=bound, body=body):
                if (counted := self.count(stm.exp)) is not None:
                    self.bounds.update(zip(stm.vars, map(_exactly, counted), strict=True))
                    return
                most = self.bounds_of(bound)
                if most is not None and most[1] > 0:
                    self.bounds[index] = (np.int64(0), most[1] - 1)
                self.body(body)
            case _:
                for region in regions(stm.exp):
                    self.body(region.body)

    def bounds_of(self, a: Atom) -> Bounds | None:
        return _exactly(a.dtype.numpy.type(a.value)) if isinstance(a, Const) else self.bounds.get(a)

    # -- loops that count

    def count(self, loop: For) -> list[Any] | None:
        """What it ends with; None where it does more than count, or takes long."""
        trips, values = self.number(loop.bound), [self.number(a) for a in loop.inits]
        if trips is None or any(x is None for x in values) or self.left < trips:
            return None
        for k in range(int(trips)):
            self.left -= 1
            self.bounds[loop.index] = _exactly(np.int64(k))
            self.bounds.update(zip(loop.params, map(_exactly, values), strict=True))
            if not all(self.step(stm) for stm in loop.body.stms):
                return None
            values = [self.number(a) for a in loop.body.results]
            if any(x is None for x in values):
                return None
        return values

    def step(self, stm: Stm) -> bool:
        """Whether it was arithmetic of known numbers, and is done."""
        if isinstance(stm.exp, For):
            found = self.count(stm.exp)
            self.bounds.update(zip(stm.vars, map(_exactly, found or ()), strict=False))
            return found is not None
        if not isinstance(stm.exp, Apply):
            return False
        self.operation(stm.vars[0], stm.exp.op, stm.exp.args)
        return self.number(stm.vars[0]) is not None

    def number(self, a: Atom) -> Any | None:
        bounds = self.bounds_of(a)
        return None if bounds is None or bounds[0] != bounds[1] else bounds[0]

    # -- operations

    def operation(self, var: Var, op: str, args: tuple[Atom, ...]) -> None:
        if any(a in self.by_budget for a in args):
            self.by_budget.add(var)
            self.computed.add(var)
        if var.type.shape or var.type.dtype not in (DType.i64, DType.bool, DType.f64):  # f64: square roots of lengths
            return
        found = [self.bounds_of(a) for a in args]
        operands = [bounds for bounds in found if bounds is not None]
        if len(operands) == len(args) and (bounds := _result(var.type.dtype, op, operands)) is not None:
            self.bounds[var] = bounds


def _exactly(value: Any) -> Bounds:
    return value, value


def _result(dtype: DType, op: str, operands: Sequence[Bounds]) -> Bounds | None:
    """Note [The same throughout]. None where it is not known."""
    row = TABLE[op]
    if op == "select":
        (low, high), first, second = operands
        choice = [first if low else second] if low == high else [first, second]
        return min(a[0] for a in choice), max(a[1] for a in choice)
    if any(low != high for low, high in operands) and not _is_largest_at_ends(row, operands):
        return None
    more = [dtype.numpy] if op == "convert" else []
    try:
        with np.errstate(all="raise", under="ignore"):
            values: list[Any] = [dtype.numpy.type(row.numpy(*ends, *more)) for ends in product(*operands)]
    except FloatingPointError:
        return None
    return min(values), max(values)


def _is_largest_at_ends(row: Op, operands: Sequence[Bounds]) -> bool:
    if row.comparison is not None:
        return row.comparison.order != 0
    if all(isinstance(low, np.bool_) for low, _ in operands):
        return row.comparison is None
    divides = not (row.linear or row.commutative or len(operands) == 1)
    return row.monotone and not (divides and operands[1][0] <= 0 <= operands[1][1])


def _tested(body: Body, taken: Mapping[Var, bool]) -> Body:
    """With a test behind each of the conditions, which have other names there."""
    stms: list[Stm] = []
    for stm in body.stms:
        exp = map_regions(stm.exp, lambda inner: _tested(inner, taken))
        if len(stm.vars) != 1 or stm.vars[0] not in taken:
            stms.append(stm if exp is stm.exp else Stm(stm.vars, exp, stm.span))
            continue
        now = Var(stm.vars[0].name, stm.vars[0].type)
        stms.append(Stm((now,), exp, stm.span))
        if not taken[stm.vars[0]]:
            other = Var(now.name, now.type)
            stms.append(Stm((other,), Apply("not", (now,)), stm.span))
            now = other
        stms.append(Stm((), Check(now, "OtherPlan", MESSAGE), stm.span))
    same = len(stms) == len(body.stms) and all(a is b for a, b in zip(stms, body.stms, strict=True))
    return body if same else Body(tuple(stms), body.results)
