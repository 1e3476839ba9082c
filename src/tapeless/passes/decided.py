"""Extrema whose decision is computed beside them anyway choose by it.

Takes and gives verified Core. Where `first = a <= b or isnan(a)` stands in the body of `minimum(a, b)`, as it does where the way
back keeps what was chosen, a selection by it needs no comparisons of its own. Relies on `FIRST_WINS` being the
definition of the extrema.

Note [The second one]
`not (a <= b)` and `a is no NaN` are single comparisons for the machine, and one can be made under the mask of the other: that the second
operand wins is cheaper to know than that the first one does. So the selection is made by that, and the decision is its opposite.
"""

from __future__ import annotations

from tapeless.ir.core import Apply, Body, Function, Stm
from tapeless.ir.types import BOOL, Atom, Const, Var
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
    extrema = {id(s): s.exp for s in body.stms if isinstance(s.exp, Apply) and _is_extremum(s)}
    decided = {k: steps for k, exp in extrema.items() if (steps := _decision(exp, made)) is not None}
    seconds = {id(steps[-1]): _second_wins(steps[-1]) for steps in decided.values()}
    stms: list[Stm] = []
    done: set[int] = set()

    def put(stm: Stm) -> None:
        if id(stm) in done:
            return
        done.add(id(stm))
        if id(stm) in decided:
            for step in decided[id(stm)]:  # a decision goes before the extremum that it decides
                put(step)
            second, _ = seconds[id(decided[id(stm)][-1])]
            stm = Stm(stm.vars, Apply("select", (second, *extrema[id(stm)].args[::-1])), stm.span)
        elif id(stm) in seconds:
            second, steps = seconds[id(stm)]
            stms.extend(steps)
            stm = Stm(stm.vars, Apply("not", (second,)), stm.span)
        stms.append(in_regions(stm, _body))

    for stm in body.stms:
        put(stm)
    return with_stms(body, stms)


def _second_wins(first: Stm) -> tuple[Atom, list[Stm]]:
    """The opposite of a decision, and the statements that make it. Note [The second one]"""
    assert isinstance(first.exp, Apply)
    if first.exp.op == "not":
        return first.exp.args[0], []
    others = [Stm((Var("t", BOOL),), Apply("not", (a,)), first.span) for a in first.exp.args]
    both = Stm((Var("t", BOOL),), Apply("and", tuple(s.vars[0] for s in others)), first.span)
    return both.vars[0], [*others, both]


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
