"""Rows that are made only to be added to an accumulator: each element is added where it is made.

Takes and gives a verified function; the opposite of `own_cells`, for accumulators that stayed. Comes after fusion,
which wants results of sweeps. `r = map n (\\i -> e)` with `update_acc a[k, :] = r` and no other reader of `r` becomes
`map n (\\i -> update_acc a[k, i] = e)`: an array less, and one pass over memory less. Each cell still belongs to one
iteration, so the loop is in SIMD as before, and terms are added to a cell in the order of before.
"""

from __future__ import annotations

from collections import Counter
from dataclasses import replace

from tapeless.ir.core import At, Body, Function, Lambda, Range, Stm, Sweep, UpdateAcc
from tapeless.ir.operands import operands
from tapeless.ir.types import Atom, Var
from tapeless.ir.walk import all_stms, in_regions, map_function, use_counts, with_stms
from tapeless.passes.analysis.facts import may_fail
from tapeless.passes.parallel.merged_sweeps import is_whole, mapped_vars


def add_in_place(function: Function) -> Function:
    if not any(_candidate(stm) for stm in all_stms(function.body)):
        return function
    uses = use_counts(function.body)

    def visit(body: Body) -> Body:
        return with_stms(body, [in_regions(stm, visit) for stm in _entered(body, uses).stms])

    return map_function(function, visit)


def _candidate(stm: Stm) -> Var | None:
    """The row that a statement adds to a whole axis of an accumulator."""
    match stm.exp:
        case UpdateAcc(acc, (*places, Range() as axis), Var() as row) if acc.type.acc == "add" and row.type.rank == 1:
            if all(isinstance(p, At) for p in places) and is_whole(axis, acc.type.shape[-1]):
                return row
    return None


def _entered(body: Body, uses: Counter[Atom]) -> Body:
    """The body with additions of rows inside the sweeps that make these."""
    makers = {v: k for k, s in enumerate(body.stms) if isinstance(s.exp, Sweep) for v in mapped_vars(s)}
    stms: list[Stm | None] = list(body.stms)
    known = {v: k for k, s in enumerate(body.stms) for v in s.vars}
    for k, stm in enumerate(body.stms):
        row = _candidate(stm)
        if row is None or row not in makers or uses[row] != 1:
            continue
        maker = makers[row]
        if any(may_fail(s) for s in body.stms[maker + 1 : k]):
            continue  # the place may be inside only after that
        if all(known.get(v, -1) < maker for v in operands(stm.exp) if isinstance(v, Var) and v is not row):
            sweep = stms[maker]
            assert sweep is not None
            stms[maker], stms[k] = _adding(sweep, row, stm), None
    left = tuple(s for s in stms if s is not None)
    return body if len(left) == len(stms) else Body(left, body.results)


def _adding(maker: Stm, row: Var, stm: Stm) -> Stm:
    sweep, update = maker.exp, stm.exp
    assert isinstance(sweep, Sweep) and isinstance(update, UpdateAcc)
    at = maker.vars.index(row)
    body = sweep.lam.body
    axes = (*update.axes[:-1], At(sweep.lam.params[0]))
    add = Stm((), UpdateAcc(update.acc, axes, body.results[at]), stm.span)
    lam = Lambda(sweep.lam.params, Body((*body.stms, add), (*body.results[:at], *body.results[at + 1 :])))
    return Stm((*maker.vars[:at], *maker.vars[at + 1 :]), replace(sweep, lam=lam), maker.span)
