"""Code for one of several plans: branches that a budget decides are taken as they go in one call.

`assumed` takes a function, numbers that are known of a call, and the parameter that is its budget. Conditions of
branches which depend on that and can be computed become constants, with a test in front that they are what they were
taken for. What is left of the other branches goes with the next passes.
"""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import replace
from typing import Any

import numpy as np

from tapeless.ir.core import Apply, Body, Check, Function, If, Stm
from tapeless.ir.operands import regions
from tapeless.ir.types import Atom, Const, DType, Var, const
from tapeless.ir.walk import map_regions, substitute_body
from tapeless.ops.table import TABLE

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
        self.values: dict[Var, Any] = {v: np.asarray(x, v.type.dtype.numpy)[()] for v, x in known.items()}
        self.by_budget, self.computed = {budget}, set[Var]()
        self.taken: dict[Var, bool] = {}

    def body(self, body: Body) -> None:
        with np.errstate(all="ignore"):
            for stm in body.stms:
                self.stm(stm)

    def stm(self, stm: Stm) -> None:
        match stm.exp:
            case Apply(op=op, args=args) if len(stm.vars) == 1:
                self.operation(stm.vars[0], op, args)
            case If(cond=cond, then=then, orelse=orelse):
                if isinstance(cond, Var) and cond in self.by_budget & self.computed and cond in self.values:
                    self.taken[cond] = bool(self.values[cond])
                    self.body(then if self.taken[cond] else orelse)
                    return
                self.body(then)
                self.body(orelse)
            case _:
                for region in regions(stm.exp):
                    self.body(region.body)

    def operation(self, var: Var, op: str, args: tuple[Atom, ...]) -> None:
        if any(a in self.by_budget for a in args):
            self.by_budget.add(var)
            self.computed.add(var)
        if var.type.shape or var.type.dtype not in (DType.i64, DType.bool):
            return
        numbers = [a.value if isinstance(a, Const) else self.values.get(a) for a in args]
        if not any(x is None for x in numbers):
            self.values[var] = var.type.dtype.numpy.type(
                TABLE[op].numpy(*numbers, *([var.type.dtype.numpy] if op == "convert" else []))
            )


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
