"""Sweeps taken apart, for the solver: one for each thing that they compute.

Fusion puts `p += f(q)` and `q += h * p` into one sweep, in which neither `p` nor `q` is known. Apart, the second one is
solved for `q`, and then the first one for `p`. What one needs of another it reads as a row.
"""

from __future__ import annotations

from collections.abc import Mapping, Sequence

from tapeless.ir.core import Body, Lambda, Reduction, Stm, Sweep
from tapeless.ir.types import Var
from tapeless.ir.walk import Substitution, free_in_lambda, refresh_lambda, with_stms
from tapeless.passes.tidy.dce import live_part


def split_sweeps(body: Body) -> Body:
    """Those of the body itself; regions inside are for those who look at them."""
    stms: list[Stm] = []
    for s in body.stms:
        stms += _apart(s, s.exp) if isinstance(s.exp, Sweep) else [s]
    return with_stms(body, stms)


def _apart(stm: Stm, exp: Sweep) -> list[Stm]:
    results = exp.lam.body.results
    groups = _groups(exp)
    if len(groups) == 1:
        return [stm]
    defined = {v: k for k, s in enumerate(exp.lam.body.stms) for v in s.vars}
    mapped = [g for g in groups if g.reduction is None]
    mapped.sort(key=lambda g: defined.get(results[g.numbers[0]], -1))  # type: ignore[arg-type]
    found: list[Stm] = []
    known: dict[Var, Var] = {}  # of the lambda: the array whose rows it is
    for g in mapped:
        found.append(_one(stm, exp, g, known))
        r = results[g.numbers[0]]
        if isinstance(r, Var) and r in defined:
            known[r] = stm.vars[g.numbers[0]]
    return [*found, *(_one(stm, exp, g, known) for g in groups if g.reduction is not None)]


class _Group:
    """The numbers of results that belong together."""

    def __init__(self, numbers: Sequence[int], reduction: Reduction | None = None, scan: bool = False) -> None:
        self.numbers, self.reduction, self.scan = list(numbers), reduction, scan


def _groups(exp: Sweep) -> list[_Group]:
    found: list[_Group] = []
    at = 0
    for scan, reductions in ((False, exp.reduces), (True, exp.scans)):
        for r in reductions:
            found.append(_Group(range(at, at + len(r.neutral)), r, scan))
            at += len(r.neutral)
    return [*found, *(_Group([k]) for k in range(at, len(exp.lam.body.results)))]


def _one(stm: Stm, exp: Sweep, group: _Group, known: Mapping[Var, Var]) -> Stm:
    """The sweep for these results only."""
    body = exp.lam.body
    rows = {v: Var(v.name, v.type) for v in known if v not in [body.results[k] for k in group.numbers]}
    new = Substitution(rows)
    results = tuple(new.atom(body.results[k]) for k in group.numbers)
    live, _ = live_part(Body(tuple(new.stm(s) for s in body.stms), results))
    used = free_in_lambda(Lambda((), live))
    arrays = [(p, a) for p, a in zip(exp.lam.params[1:], exp.arrays, strict=True) if p in used]
    arrays += [(row, known[v]) for v, row in rows.items() if row in used]
    lam = refresh_lambda(Lambda((exp.lam.params[0], *(p for p, _ in arrays)), live))
    reduces = () if group.reduction is None or group.scan else (group.reduction,)
    scans = (group.reduction,) if group.reduction is not None and group.scan else ()
    vars = tuple(stm.vars[k] for k in group.numbers)
    return Stm(vars, Sweep(exp.width, tuple(a for _, a in arrays), lam, reduces, scans), stm.span)
