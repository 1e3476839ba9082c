"""What rules of reverse mode ask of bodies: which values a choice leaves out, which are sizes, which may be rounded
otherwise.
"""

from __future__ import annotations

from collections.abc import Collection

from tapeless.ir.core import Apply, Body, If, Stm
from tapeless.ir.types import Atom, DType, Var
from tapeless.ir.walk import all_stms, free_in_body, type_vars
from tapeless.ops.table import LOOSE, TABLE
from tapeless.passes.analysis.intervals import Intervals


def chosen_in(body: Body) -> set[Var]:
    """Products that are operands of a choice, directly or through other rows: Note [Operands of choices]."""
    found: set[Atom] = set()
    for s in reversed(body.stms):
        if not isinstance(s.exp, Apply):
            continue
        if s.exp.op == "select":
            found.update(s.exp.args[1:])
        elif TABLE[s.exp.op].extremum or s.vars[0] in found:
            found.update(s.exp.args)
    return {v for v in found if isinstance(v, Var)}


def large_in(body: Body, tame: set[Var]) -> set[Var]:
    """What may be infinite or NaN though the operands are numbers: a row that is not defined everywhere has singular
    points, and it is at one of them unless it is `tame`.
    """
    found: set[Var] = set()
    for s in body.stms:
        if not isinstance(s.exp, Apply):
            continue
        steep = TABLE[s.exp.op].singular_at and s.vars[0] not in tame
        if steep or any(a in found for a in s.exp.args):
            found.update(s.vars)
    return found


def slopes_in(body: Body) -> Intervals:
    """Where rows that have singular points are at none of them."""
    steep = any(isinstance(s.exp, Apply) and TABLE[s.exp.op].singular_at for s in all_stms(body))
    return Intervals(body if steep else Body((), ()), slopes=True)


def loosened(body: Body, given: Collection[Atom] = ()) -> Body:
    """The body, which is run again for slopes only, with rows that need not be rounded like those of the program: Note
    [Loose rows] in `ops.table`. Those that loops look at stay, and those that decide: their operands have to be those
    of the first run, to the last bit. So do the results that are `given` to such rows.
    """
    exact = set(given)
    stms: list[Stm] = []
    for s in reversed(body.stms):
        exp = s.exp
        if isinstance(exp, If):
            places = [k for k, v in enumerate(s.vars) if v in exact]
            arms = (loosened(arm, [arm.results[k] for k in places]) for arm in (exp.then, exp.orelse))
            exact.update(free_in_body(Body((s,), ())))
            s = Stm(s.vars, If(exp.cond, *arms), s.span)
        elif not isinstance(exp, Apply):
            exact.update(free_in_body(Body((s,), ())))
        elif s.vars[0] in exact or TABLE[exp.op].decides or not _moves(s, exp):
            exact.update(exp.args)
        elif exp.op in LOOSE and exp.args[0].type.dtype in TABLE[LOOSE[exp.op]].dtypes:
            s = Stm(s.vars, Apply(LOOSE[exp.op], exp.args), s.span)
        stms.append(s)
    return Body(tuple(reversed(stms)), body.results)


def _moves(stm: Stm, exp: Apply) -> bool:
    """Does the result of a row follow its operands smoothly? Rows of steps do not."""
    if exp.op == "convert":
        return not stm.vars[0].type.dtype.is_int and stm.vars[0].type.dtype is not DType.bool
    return exp.op == "identity" or any(TABLE[exp.op].partials)


def sizes_in(body: Body) -> set[Var]:
    """Variables that are sizes of arrays."""
    vars = [*free_in_body(body), *(v for s in all_stms(body) for v in s.vars)]
    return {d for v in vars for d in type_vars(v.type)}
