"""Extrema whose decision is computed beside them anyway choose by it.

Takes and gives verified Core. Where `first = a <= b or isnan(a)` stands in the body of `minimum(a, b)`, as it does where the way
back keeps what was chosen, `select(first, a, b)` needs no comparisons of its own. Relies on `FIRST_WINS` being the
definition of the extrema.
"""

from __future__ import annotations

from tapeless.ir.core import Apply, Body, Function, Stm
from tapeless.ir.types import Atom, Const, Var
from tapeless.ir.walk import all_stms, in_regions, map_function, with_stms
from tapeless.ops.partials import FIRST_WINS


def choose_by_decisions(function: Function) -> Function:
    if not any(_is_extremum(s) for s in all_stms(function.body)):
        return function
    return map_function(function, _body)


def _is_extremum(stm: Stm) -> bool:
    return isinstance(stm.exp, Apply) and stm.exp.op in FIRST_WINS and stm.vars[0].type.dtype.is_float


def _body(body: Body) -> Body:
    """The same object where nothing changes."""
    made: dict[object, Stm] = {s.exp: s for s in body.stms if isinstance(s.exp, Apply)}
    stms: dict[int, Stm] = {}  # by identity: a decision goes before the extremum that it decides
    for stm in body.stms:
        new = in_regions(stm, _body)
        if isinstance(stm.exp, Apply) and _is_extremum(stm) and (steps := _decision(stm.exp, made)) is not None:
            stms.update((id(s), s) for s in steps)
            new = Stm(stm.vars, Apply("select", (steps[-1].vars[0], *stm.exp.args)), stm.span)
        stms.setdefault(id(new), new)
    return with_stms(body, list(stms.values()))


def _decision(extremum: Apply, made: dict[object, Stm]) -> list[Stm] | None:
    """The statements that say whether the first operand is the result, where all of them are there."""
    steps: list[Stm] = []
    missing = False

    def find(op: str, *args: Atom | float) -> Atom:
        nonlocal missing
        operands = tuple(a for a in args if isinstance(a, Var | Const))
        stm = made.get(Apply(op, operands)) or made.get(Apply(op, operands[::-1]) if op == "or" else None)
        if stm is None:
            missing = True
            return extremum.args[0]
        steps.append(stm)
        return stm.vars[0]

    FIRST_WINS[extremum.op](find, *extremum.args)
    return None if missing else steps
